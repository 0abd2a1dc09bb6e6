//! Digests, message authentication codes, comparison in constant time, and what nobody can guess.

use rhai::{Blob, Dynamic, Engine, INT, ImmutableString};
use ring::{
    digest, hmac,
    rand::{SecureRandom, SystemRandom},
};
use subtle::ConstantTimeEq;
use uuid::{NoContext, Timestamp, Uuid};

use super::{
    budget, clock,
    current::{NativeResult, error},
    data::{of_data, of_two},
};

/// Bytes of random data that one call gives at the most.
pub(crate) const MOST_RANDOM: INT = 1024;

/// From so many bytes on, to digest them takes long beside other operations: some 40 µs.
const LARGE: usize = 16 * 1024;

pub(super) fn register(engine: &mut Engine) {
    // SHA-1 signs nothing any more; others still ask for it (AWS, old webhooks).
    for (name, algorithm) in [
        ("sha1", &digest::SHA1_FOR_LEGACY_USE_ONLY),
        ("sha256", &digest::SHA256),
        ("sha384", &digest::SHA384),
        ("sha512", &digest::SHA512),
    ] {
        of_data(engine, name, move |data| {
            took(data);
            Ok(blob(digest::digest(algorithm, data).as_ref()))
        });
    }
    for (name, algorithm) in [
        ("hmac_sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        ("hmac_sha256", hmac::HMAC_SHA256),
        ("hmac_sha384", hmac::HMAC_SHA384),
        ("hmac_sha512", hmac::HMAC_SHA512),
    ] {
        of_two(
            engine,
            name,
            || Dynamic::UNIT,
            move |key, data| {
                took(key);
                took(data);
                let key = hmac::Key::new(algorithm, key);
                Ok(blob(hmac::sign(&key, data).as_ref()))
            },
        );
    }
    of_two(
        engine,
        "constant_time_eq",
        || false.into(),
        |a, b| Ok(bool::from(a.ct_eq(b)).into()),
    );
    register_random(engine);
}

fn register_random(engine: &mut Engine) {
    engine
        .register_fn("random_bytes", |count: INT| -> NativeResult<Blob> {
            let within = (0..=MOST_RANDOM).contains(&count);
            let Some(count) = usize::try_from(count).ok().filter(|_| within) else {
                return Err(error(format!(
                    "`random_bytes` gives 0 to {MOST_RANDOM} bytes, not {count}"
                )));
            };
            let mut bytes = vec![0; count];
            SystemRandom::new()
                .fill(&mut bytes)
                .map_err(|_| error("the system gives no random bytes"))?;
            Ok(bytes)
        })
        .register_fn("uuid_v4", || text(Uuid::new_v4()))
        .register_fn("uuid_v7", || {
            let now = clock::since_epoch();
            let now = Timestamp::from_unix(NoContext, now.as_secs(), now.subsec_nanos());
            text(Uuid::new_v7(now))
        });
}

fn took(data: &[u8]) {
    if data.len() >= LARGE {
        budget::look_at_clocks();
    }
}

fn blob(bytes: &[u8]) -> Dynamic {
    Dynamic::from_blob(bytes.to_vec())
}

fn text(uuid: Uuid) -> ImmutableString {
    let mut buffer = Uuid::encode_buffer();
    (&*uuid.hyphenated().encode_lower(&mut buffer)).into()
}
