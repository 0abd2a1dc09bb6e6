//! Digests, message authentication codes, comparison in constant time, and what nobody can guess.

use md5::{Digest as _, Md5};
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
    // For links that others have signed with it; it protects nothing against who tries.
    of_data(engine, "md5", |data| {
        took(data);
        Ok(blob(&Md5::digest(data)))
    });
    of_data(engine, "crc32", |data| {
        Ok(INT::from(crc32fast::hash(data)).into())
    });
    engine
        .register_fn("bucket", |key: &str, n: INT| bucket(key, n))
        .register_fn("bucket", |key: INT, n: INT| bucket(&key.to_string(), n))
        .register_fn("bucket", |_: (), _: INT| ());
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
        .register_fn("random_int", random_int)
        .register_fn("uuid_v4", || text(Uuid::new_v4()))
        .register_fn("uuid_v7", || {
            let now = clock::since_epoch();
            let now = Timestamp::from_unix(NoContext, now.as_secs(), now.subsec_nanos());
            text(Uuid::new_v7(now))
        });
}

/// A whole number from `least` to `most`, both included, each as likely as any other.
fn random_int(least: INT, most: INT) -> NativeResult<INT> {
    if least > most {
        return Err(error(format!(
            "`random_int` gives a number from its first to its second, and {least} is above {most}"
        )));
    }
    // Numbers that there are, less one: it fits also when it is all of them.
    let span = most.abs_diff(least);
    let random = SystemRandom::new();
    // Bits that a number below needs: at least every second draw is one.
    let mask = u64::MAX.checked_shr(span.leading_zeros()).unwrap_or(0);
    loop {
        let mut bytes = [0; 8];
        random
            .fill(&mut bytes)
            .map_err(|_| error("the system gives no random bytes"))?;
        let drawn = u64::from_ne_bytes(bytes) & mask;
        if drawn <= span {
            return Ok(least.wrapping_add_unsigned(drawn));
        }
    }
}

/// The most parts that keys are spread over.
const MOST_BUCKETS: INT = 1_000_000;

/// A number from 0 to `n` - 1 that is always the same for one key: the first 8 bytes of its SHA-256 digest
/// as a number, the most significant first, modulo `n`. Against that, the parts differ by less than one in
/// 10^13.
fn bucket(key: &str, n: INT) -> NativeResult<INT> {
    let within = (1..=MOST_BUCKETS).contains(&n);
    let Some(n) = u64::try_from(n).ok().filter(|_| within) else {
        return Err(error(format!(
            "`bucket` spreads keys over 1 to {MOST_BUCKETS} parts, not {n}"
        )));
    };
    took(key.as_bytes());
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    let first = digest.as_ref().first_chunk::<8>().copied();
    let number = u64::from_be_bytes(first.unwrap_or_default());
    Ok(INT::try_from(number % n).unwrap_or_default())
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_keep_to_their_range_and_use_all_of_it() {
        let drawn: std::collections::BTreeSet<_> =
            (0..500).map(|_| random_int(-1, 3).unwrap()).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [-1, 0, 1, 2, 3]);
        assert_eq!(random_int(7, 7).unwrap(), 7);
        assert!(random_int(INT::MIN, INT::MAX).is_ok());
        assert!(random_int(1, 0).is_err());
    }

    /// The numbers stand in the documentation: they must never change.
    #[test]
    fn buckets_are_what_was_promised() {
        // sha256("alice") begins with 2bd806c97f0e00af.
        assert_eq!(bucket("alice", 100).unwrap(), 0x2bd8_06c9_7f0e_00af % 100);
        assert_eq!(bucket("alice", 1).unwrap(), 0);
        assert!(bucket("alice", 0).is_err() && bucket("alice", MOST_BUCKETS + 1).is_err());
        let mut parts = [0; 4];
        for user in 0..4000 {
            let part = bucket(&format!("user-{user}"), 4).unwrap();
            parts[usize::try_from(part).unwrap()] += 1;
        }
        assert!(
            parts.iter().all(|part| (900..1100).contains(part)),
            "{parts:?}"
        );
    }
}
