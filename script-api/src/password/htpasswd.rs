//! Users with their passwords.

use std::sync::Arc;

use hashbrown::HashMap;

use super::PasswordHash;

/// The most users of one file or map.
pub const MOST_USERS: usize = 100_000;

/// Users and the hashes of their passwords. Cloning shares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Htpasswd(Arc<Users>);

#[derive(Debug, PartialEq)]
struct Users {
    hashes: HashMap<String, PasswordHash>,
    /// The most costly one: what is verified, for nothing, when there is no such user.
    decoy: PasswordHash,
}

impl Htpasswd {
    /// Reads a file as `htpasswd` writes it: `user:hash` on each line. Empty lines and lines that
    /// begin with `#` are none.
    ///
    /// # Errors
    /// Says in which line what is wrong.
    pub fn from_file(content: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut users = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |reason: String| format!("line {number}: {reason}");
            let (user, hash) = line
                .split_once(':')
                .ok_or_else(|| wrong("a line is `user:hash`".to_owned()))?;
            // Some files have further fields behind the hash.
            let hash = hash.split(':').next().unwrap_or_default().trim_end();
            let hash = PasswordHash::parse(hash)
                .map_err(|reason| wrong(format!("the password of `{user}`: {reason}")))?;
            users.push((user.to_owned(), hash));
        }
        Self::new(users)
    }

    /// These users.
    ///
    /// # Errors
    /// When there are none, too many, one twice, or a name that can't be one.
    pub fn new(users: impl IntoIterator<Item = (String, PasswordHash)>) -> Result<Self, String> {
        let mut hashes = HashMap::new();
        let mut decoy: Option<PasswordHash> = None;
        for (user, hash) in users {
            check_name(&user)?;
            if decoy
                .as_ref()
                .is_none_or(|decoy| decoy.cost() < hash.cost())
            {
                decoy = Some(hash.clone());
            }
            if hashes.insert(user.clone(), hash).is_some() {
                return Err(format!("the user `{user}` is there twice"));
            }
            if hashes.len() > MOST_USERS {
                return Err(format!("there are more than {MOST_USERS} users"));
            }
        }
        let decoy = decoy.ok_or("there is no user in it")?;
        Ok(Self(Arc::new(Users { hashes, decoy })))
    }

    /// What is to be verified for `user`, and whether that is the user's own hash. For a user that
    /// does not exist it is another hash, which takes as long, so that the time tells nothing of
    /// who exists.
    pub fn hash_for(&self, user: &str) -> (&PasswordHash, bool) {
        match self.0.hashes.get(user) {
            Some(hash) => (hash, true),
            None => (&self.0.decoy, false),
        }
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.0.hashes.len()
    }

    /// Never: there is always a user.
    pub fn is_empty(&self) -> bool {
        self.0.hashes.is_empty()
    }
}

/// A name that a client can send (RFC 7617 section 2).
fn check_name(user: &str) -> Result<(), String> {
    if user.is_empty() {
        return Err("the name of a user can't be empty".to_owned());
    }
    if user.len() > 255 || user.contains(':') || user.chars().any(char::is_control) {
        return Err(format!(
            "`{}` can't be the name of a user: 255 bytes at the most, without `:` and control \
             characters",
            user.escape_debug()
        ));
    }
    Ok(())
}
