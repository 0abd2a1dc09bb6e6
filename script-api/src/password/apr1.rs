//! `$apr1$`: Apache's variant of the MD5-based crypt, which `htpasswd` writes unless it is told
//! otherwise (apr-util `crypto/apr_md5.c` describes it).

use md5::{Digest as _, Md5};
use subtle::ConstantTimeEq as _;

/// The characters of its coding, six bits each.
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const MAGIC: &str = "$apr1$";

/// Longer salts are cut by those who write them.
const MOST_SALT: usize = 8;

const ROUNDS: usize = 1000;

/// The digest's bytes in the order in which they are written: three at a time, then the last one.
const GROUPS: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
const LAST: usize = 11;

/// A stored password.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Apr1 {
    salt: String,
    code: [u8; 22],
}

impl Apr1 {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts = text
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_once('$'));
        let parts = parts.and_then(|(salt, code)| {
            let code: [u8; 22] = code.as_bytes().try_into().ok()?;
            let fits = salt.len() <= MOST_SALT && code.iter().all(|byte| ALPHABET.contains(byte));
            fits.then(|| (salt.to_owned(), code))
        });
        let (salt, code) = parts.ok_or("it begins like an `$apr1$` hash and is none")?;
        Ok(Self { salt, code })
    }

    pub(super) fn verify(&self, password: &[u8]) -> bool {
        encode(&digest(password, self.salt.as_bytes()))
            .ct_eq(&self.code)
            .into()
    }
}

fn digest(password: &[u8], salt: &[u8]) -> [u8; 16] {
    let mut inner = Md5::new();
    for part in [password, salt, password] {
        inner.update(part);
    }
    let inner = inner.finalize();

    let mut outer = Md5::new();
    for part in [password, MAGIC.as_bytes(), salt] {
        outer.update(part);
    }
    let mut left = password.len();
    while left > 0 {
        let count = left.min(inner.len());
        outer.update(&inner[..count]);
        left -= count;
    }
    let mut bits = password.len();
    while bits > 0 {
        // A quirk of the first program of this kind, kept ever since.
        outer.update(if bits & 1 == 1 { b"\0" } else { &password[..1] });
        bits >>= 1;
    }
    let mut result = outer.finalize();

    for round in 0..ROUNDS {
        let mut again = Md5::new();
        let odd = round % 2 == 1;
        again.update(if odd { password } else { &result });
        if round % 3 != 0 {
            again.update(salt);
        }
        if round % 7 != 0 {
            again.update(password);
        }
        again.update(if odd { &result[..] } else { password });
        result = again.finalize();
    }
    result.into()
}

fn encode(digest: &[u8; 16]) -> [u8; 22] {
    let mut code = [0; 22];
    let mut write = |at: usize, count: usize, mut value: usize| {
        for place in &mut code[at..at + count] {
            *place = ALPHABET[value & 0x3f];
            value >>= 6;
        }
    };
    for (index, group) in GROUPS.iter().enumerate() {
        let [high, middle, low] = group.map(|byte| usize::from(digest[byte]));
        write(4 * index, 4, high << 16 | middle << 8 | low);
    }
    write(20, 2, usize::from(digest[LAST]));
    code
}
