//! Passwords, kept as hashes: as `htpasswd` writes them, and as Argon2 (PHC strings).
//!
//! Nothing here is quick on purpose. Whoever verifies one on behalf of a client does it where it
//! holds nobody up.

mod apr1;
mod htpasswd;
#[cfg(test)]
mod tests;
mod verified;

use std::fmt;

use argon2::{Argon2, PasswordVerifier as _, password_hash::PasswordHashString};
use ring::digest;
use subtle::ConstantTimeEq as _;

pub use htpasswd::{Htpasswd, MOST_USERS};
pub use verified::{Credentials, KEPT_FOR, MOST_KEPT, Verified};

/// The longest password that is looked at, in bytes. bcrypt itself takes the first 72 only.
pub const MOST_PASSWORD: usize = 1024;

/// The highest cost of a bcrypt hash: some 250 ms of CPU time.
pub const MOST_BCRYPT_COST: u32 = 12;

/// The most memory of an Argon2 hash, in KiB.
pub const MOST_ARGON2_MEMORY: u32 = 64 * 1024;

/// The most memory that an Argon2 hash may go over in all its passes, in KiB: some 250 ms.
pub const MOST_ARGON2_WORK: u32 = 4 * MOST_ARGON2_MEMORY;

/// The most lanes of an Argon2 hash.
const MOST_ARGON2_LANES: u32 = 16;

/// One stored password, checked: verifying it takes a bounded time.
#[derive(Clone, PartialEq)]
pub struct PasswordHash {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Bcrypt {
        cost: u32,
    },
    Argon2 {
        hash: Box<PasswordHashString>,
        work: u32,
    },
    /// `{SHA}`: one SHA-1, without salt.
    Sha1([u8; 20]),
    Apr1(apr1::Apr1),
}

impl PasswordHash {
    /// Reads a hash: `$2y$`, `$2b$` or `$2a$` (bcrypt), `$argon2id$`, `$argon2i$` or `$argon2d$`,
    /// `$apr1$`, `{SHA}`.
    ///
    /// # Errors
    /// When it is none of these, or would take too much to verify. The message holds nothing of it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let kind = if ["$2y$", "$2b$", "$2a$"]
            .iter()
            .any(|head| text.starts_with(head))
        {
            bcrypt_kind(text)?
        } else if text.starts_with("$argon2") {
            argon2_kind(text)?
        } else if let Some(code) = text.strip_prefix("{SHA}") {
            let digest = data_encoding::BASE64.decode(code.as_bytes()).ok();
            let digest = digest.and_then(|digest| digest.try_into().ok());
            Kind::Sha1(digest.ok_or("`{SHA}` is followed by 20 bytes in base64")?)
        } else if text.starts_with("$apr1$") {
            Kind::Apr1(apr1::Apr1::parse(text)?)
        } else {
            return Err(
                "it is no password hash of a kind that is known: write it with `htpasswd -nB USER` \
                 (bcrypt), or as an Argon2 PHC string"
                    .to_owned(),
            );
        };
        Ok(Self {
            text: text.to_owned(),
            kind,
        })
    }

    /// Whether it is this password. Takes up to some 250 ms of CPU time, and the memory of the hash:
    /// nothing for a thread that others wait for, unless [`PasswordHash::is_quick`].
    pub fn verify(&self, password: &[u8]) -> bool {
        if password.len() > MOST_PASSWORD || password.contains(&0) {
            return false;
        }
        match &self.kind {
            Kind::Bcrypt { .. } => bcrypt::verify(password, &self.text).unwrap_or(false),
            Kind::Argon2 { hash, .. } => Argon2::default()
                .verify_password(password, &hash.password_hash())
                .is_ok(),
            Kind::Sha1(digest) => {
                let made = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password);
                made.as_ref().ct_eq(digest).into()
            }
            Kind::Apr1(hash) => hash.verify(password),
        }
    }

    /// Whether verifying takes a few µs only.
    pub fn is_quick(&self) -> bool {
        matches!(self.kind, Kind::Sha1(_))
    }

    /// About how long verifying takes, for comparing hashes with each other.
    fn cost(&self) -> u64 {
        match &self.kind {
            Kind::Sha1(_) => 1,
            // A thousand rounds of MD5.
            Kind::Apr1(_) => 1 << 10,
            // 2^cost rounds of some 30 µs.
            Kind::Bcrypt { cost } => 60 << cost,
            // Some 1 µs for each KiB.
            Kind::Argon2 { work, .. } => 2 * u64::from(*work),
        }
    }

    /// Its text, which tells one hash from another.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A password that is to be verified, where that holds nobody up.
#[derive(Clone)]
pub struct PasswordCheck {
    /// What it is verified against.
    pub hash: PasswordHash,
    /// Whether the hash is that of the user: it is another one's, for the sake of the time that it
    /// takes, when there is no such user.
    pub exists: bool,
    /// Whose it is; empty when nobody says.
    pub user: String,
    /// The password.
    pub password: Vec<u8>,
}

impl PasswordCheck {
    /// The password of a user.
    pub fn of(users: &Htpasswd, user: &str, password: &[u8]) -> Self {
        let (hash, exists) = users.hash_for(user);
        Self {
            hash: hash.clone(),
            exists,
            user: user.to_owned(),
            password: password.to_vec(),
        }
    }

    /// A password and a hash.
    pub fn alone(hash: PasswordHash, password: &str) -> Self {
        Self {
            hash,
            exists: true,
            user: String::new(),
            password: password.as_bytes().to_vec(),
        }
    }

    /// Whether it is right. Takes what [`PasswordHash::verify`] takes.
    pub fn run(&self) -> bool {
        self.hash.verify(&self.password) && self.exists
    }

    /// About the bytes that it holds.
    pub(crate) fn size(&self) -> usize {
        self.hash.text.len() + self.user.len() + self.password.len()
    }
}

/// Says nothing of the password.
impl fmt::Debug for PasswordCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordCheck")
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// Says what kind it is and nothing more.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Bcrypt { .. } => "PasswordHash(bcrypt ..)",
            Kind::Argon2 { .. } => "PasswordHash(argon2 ..)",
            Kind::Sha1(_) => "PasswordHash(sha1 ..)",
            Kind::Apr1(_) => "PasswordHash(apr1 ..)",
        })
    }
}

fn bcrypt_kind(text: &str) -> Result<Kind, String> {
    let broken = || "it begins like a bcrypt hash and is none".to_owned();
    let parts: bcrypt::HashParts = text.parse().map_err(|_| broken())?;
    // 22 characters of salt, 31 of hash; the library looks at the length of the whole only.
    let coded = text.rsplit('$').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./".contains(&byte);
    if coded.len() != 53 || !coded.bytes().all(plain) {
        return Err(broken());
    }
    let cost = parts.get_cost();
    if cost > MOST_BCRYPT_COST {
        return Err(format!(
            "its bcrypt cost is {cost}, which takes too long for each request; {MOST_BCRYPT_COST} \
             at the most: `htpasswd -nB -C {MOST_BCRYPT_COST} USER`"
        ));
    }
    Ok(Kind::Bcrypt { cost })
}

fn argon2_kind(text: &str) -> Result<Kind, String> {
    let broken = |_| "it begins like an Argon2 hash and is none".to_owned();
    let hash = PasswordHashString::new(text).map_err(broken)?;
    let parsed = hash.password_hash();
    argon2::Algorithm::try_from(parsed.algorithm).map_err(broken)?;
    // The library multiplies them before it looks at them.
    let lanes = parsed.params.get_decimal("p");
    if lanes.is_some_and(|lanes| lanes > argon2::Params::MAX_P_COST) {
        return Err("it is an Argon2 hash with too many lanes".to_owned());
    }
    let params = argon2::Params::try_from(&parsed).map_err(broken)?;
    if parsed.salt.is_none() || parsed.hash.is_none() {
        return Err("it is an Argon2 hash without salt or hash".to_owned());
    }
    let (memory, passes) = (params.m_cost(), params.t_cost());
    let work = memory.saturating_mul(passes);
    if memory > MOST_ARGON2_MEMORY || work > MOST_ARGON2_WORK || params.p_cost() > MOST_ARGON2_LANES
    {
        return Err(format!(
            "its Argon2 parameters m={memory},t={passes},p={} take too much for each request; m={}, \
             m times t={} and p={MOST_ARGON2_LANES} at the most",
            params.p_cost(),
            MOST_ARGON2_MEMORY,
            MOST_ARGON2_WORK,
        ));
    }
    Ok(Kind::Argon2 {
        hash: Box::new(hash),
        work,
    })
}
