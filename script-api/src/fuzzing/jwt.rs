//! Tokens: none that the key has not signed is taken.

use std::cell::OnceCell;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rhai::{Array, Dynamic, Map};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{
    engine::jwt::verification,
    jwt::{KeySet, MOST_KEYS, VERIFY, Verification},
};

/// One key of each kind, and every algorithm that goes with it.
const PUBLIC: [(&str, &str); 9] = [
    ("RS256", include_str!("../../tests/keys/rsa.pub.pem")),
    ("RS384", include_str!("../../tests/keys/rsa.pub.pem")),
    ("RS512", include_str!("../../tests/keys/rsa.pub.pem")),
    ("PS256", include_str!("../../tests/keys/rsa.pub.pem")),
    ("PS384", include_str!("../../tests/keys/rsa.pub.pem")),
    ("PS512", include_str!("../../tests/keys/rsa.pub.pem")),
    ("ES256", include_str!("../../tests/keys/ec256.pub.pem")),
    ("ES384", include_str!("../../tests/keys/ec384.pub.pem")),
    ("EdDSA", include_str!("../../tests/keys/ed25519.pub.pem")),
];

/// What tokens are verified with; the shared secret is a new one in each process.
struct Keys {
    secret: Vec<u8>,
    shared: [Verification; 3],
    public: Vec<Verification>,
}

thread_local! {
    static KEYS: OnceCell<Keys> = const { OnceCell::new() };
}

fn keys() -> Keys {
    let mut secret = vec![0; 64];
    let random = SystemRandom::new().fill(&mut secret);
    random.expect("the system has random bytes");
    let with = |algorithm: &str, name: &str, key: Dynamic| {
        let mut options = Map::new();
        options.insert("algorithm".into(), algorithm.into());
        options.insert(name.into(), key);
        // The least that can be asked for.
        options.insert("required".into(), Array::new().into());
        verification(&VERIFY, &options).expect("the options are right")
    };
    Keys {
        shared: ["HS256", "HS384", "HS512"]
            .map(|name| with(name, "secret", Dynamic::from_blob(secret.clone()))),
        public: PUBLIC
            .map(|(name, key)| with(name, "public_key", key.into()))
            .into(),
        secret,
    }
}

/// The input is a token, a line, and then the claims of another one; or all of it is a key set.
pub fn jwt(input: &[u8]) {
    if let Ok(set) = KeySet::parse(input) {
        assert!((1..=MOST_KEYS).contains(&set.len()));
    }
    let mut lines = input.splitn(2, |&byte| byte == b'\n');
    let (token, claims) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    KEYS.with(|known| {
        let keys = known.get_or_init(keys);
        if let Ok(token) = std::str::from_utf8(token) {
            for how in keys.shared.iter().chain(&keys.public) {
                assert!(how.verify(token, 0.0).is_err(), "nobody has signed {token}");
            }
        }
        signed(keys, claims, token);
    });
}

/// A token that is signed holds its claims, and no other spelling of it is taken.
fn signed(keys: &Keys, claims: &[u8], changes: &[u8]) {
    let Ok(claims @ serde_json::Value::Object(_)) = serde_json::from_slice(claims) else {
        return;
    };
    let key = EncodingKey::from_secret(&keys.secret).expect("a secret is a key");
    let token = encode(&Header::new(Algorithm::HS256), &claims, &key);
    let token = token.expect("any claims can be signed");
    let how = &keys.shared[0];
    if let Ok(found) = how.verify(&token, 0.0) {
        let text = serde_json::to_vec(&claims).expect("claims are JSON");
        let written: serde_json::Value = serde_json::from_slice(&text).expect("it was written");
        assert_eq!(serde_json::Value::Object(found), written);
    }
    for other in keys.shared[1..].iter().chain(&keys.public) {
        assert!(other.verify(&token, 0.0).is_err(), "with another algorithm");
    }
    let mut changed = token.clone().into_bytes();
    let place = changes.iter().fold(0_usize, |sum, &byte| {
        sum.wrapping_mul(7).wrapping_add(byte.into())
    }) % changed.len();
    for byte in [b'A', b'.', b'=', b'-', changed[place] ^ 1] {
        changed[place] = byte;
        let Ok(text) = std::str::from_utf8(&changed) else {
            continue;
        };
        if text != token {
            assert!(how.verify(text, 0.0).is_err(), "{text} in place of {token}");
        }
    }
}
