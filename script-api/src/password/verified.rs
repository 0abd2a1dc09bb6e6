//! Passwords that were verified a while ago, so that not each request of a client takes what
//! verifying takes.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use lru::LruCache;
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

use super::PasswordCheck;

/// How long a password that was right needs not be verified again.
pub const KEPT_FOR: Duration = Duration::from_secs(300);

/// How many of them are known at a time.
pub const MOST_KEPT: usize = 16 * 1024;

const SHARDS: usize = 16;

/// A user, a password and the hash that it was verified against, as a digest under a key that only
/// this process has: nobody finds a password by it, and a changed hash makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Credentials([u8; 32]);

/// Credentials that were right. Wrong ones are never kept.
pub struct Verified {
    key: hmac::Key,
    shards: [Mutex<LruCache<Credentials, Instant>>; SHARDS],
}

impl Verified {
    /// Knows nothing yet. `None` when the system gives no random bytes.
    pub fn new() -> Option<Self> {
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).ok()?;
        let size = NonZeroUsize::new(MOST_KEPT / SHARDS)?;
        Some(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            shards: std::array::from_fn(|_| Mutex::new(LruCache::new(size))),
        })
    }

    /// What stands for a check.
    pub fn credentials(&self, check: &PasswordCheck) -> Credentials {
        let mut context = hmac::Context::with_key(&self.key);
        let hash = check.hash.text().as_bytes();
        let exists = [u8::from(check.exists)];
        for part in [check.user.as_bytes(), &check.password, hash, &exists] {
            // With its length, so that no part can pass for a piece of another one.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        Credentials(digest)
    }

    /// Whether they were right less than [`KEPT_FOR`] ago.
    pub fn knows(&self, credentials: &Credentials, now: Instant) -> bool {
        let mut shard = self.shard(credentials);
        match shard.get(credentials) {
            Some(until) if now < *until => true,
            Some(_) => {
                shard.pop(credentials);
                false
            }
            None => false,
        }
    }

    /// They were right at `now`.
    pub fn keep(&self, credentials: Credentials, now: Instant) {
        self.shard(&credentials).put(credentials, now + KEPT_FOR);
    }

    /// Held for one look-up.
    fn shard(
        &self,
        credentials: &Credentials,
    ) -> std::sync::MutexGuard<'_, LruCache<Credentials, Instant>> {
        let shard = &self.shards[usize::from(credentials.0[0]) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
