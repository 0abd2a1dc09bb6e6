//! Digests, message authentication codes, comparison, and what nobody can guess.

use super::entry::{Entry, Group};
use crate::program::Need::Nothing;

pub(super) const DIGESTS: Group = Group {
    title: "Digests and random values",
    of: None,
    about: "*Data* and *key* are text, bytes, or a body. Digests give bytes: write `.hex()` or `.base64()` behind them. For `()` they give `()`.",
    entries: &[
        Entry::new(
            Nothing,
            &["sha256(data: data) -> bytes"],
            "SHA-256, 32 bytes.",
        ),
        Entry::new(
            Nothing,
            &["sha384(data: data) -> bytes"],
            "SHA-384, 48 bytes.",
        ),
        Entry::new(
            Nothing,
            &["sha512(data: data) -> bytes"],
            "SHA-512, 64 bytes.",
        ),
        Entry::new(
            Nothing,
            &["sha1(data: data) -> bytes"],
            "SHA-1, 20 bytes. It protects nothing any more: only for those who still ask for it.",
        ),
        Entry::new(
            Nothing,
            &["hmac_sha256(key: data | Secret, data: data | Secret) -> bytes"],
            "HMAC (RFC 2104) with SHA-256. Compare it with `constant_time_eq`.",
        ),
        Entry::new(
            Nothing,
            &["hmac_sha384(key: data | Secret, data: data | Secret) -> bytes"],
            "HMAC with SHA-384.",
        ),
        Entry::new(
            Nothing,
            &["hmac_sha512(key: data | Secret, data: data | Secret) -> bytes"],
            "HMAC with SHA-512.",
        ),
        Entry::new(
            Nothing,
            &["hmac_sha1(key: data | Secret, data: data | Secret) -> bytes"],
            "HMAC with SHA-1, for old protocols.",
        ),
        Entry::new(
            Nothing,
            &["constant_time_eq(a: data | Secret, b: data | Secret) -> bool"],
            "Whether the data is the same, in a time that does not tell where it differs; `false` when one is `()`.",
        ),
        Entry::new(
            Nothing,
            &["random_bytes(n: int) -> bytes"],
            "0 to 1,024 bytes from the system's generator; another number is an error.",
        ),
        Entry::new(Nothing, &["uuid_v4() -> text"], "A random UUID (RFC 9562)."),
        Entry::new(
            Nothing,
            &["uuid_v7() -> text"],
            "A UUID that begins with the time, so that later ones sort behind.",
        ),
        Entry::new(
            Nothing,
            &["random_int(least: int, most: int) -> int"],
            "A whole number that nobody can guess, both ends included.",
        ),
        Entry::new(
            Nothing,
            &["bucket(key: key, n: int) -> int"],
            "0 to `n` - 1, always the same for one key, also in other processes and versions: the first 8 bytes of its SHA-256 digest as a big-endian number, modulo `n` (1 to 1,000,000).",
        ),
        Entry::new(
            Nothing,
            &["md5(data: data) -> bytes"],
            "MD5, 16 bytes, for what others have made with it. It protects nothing.",
        ),
        Entry::new(
            Nothing,
            &["crc32(data: data) -> int"],
            "CRC-32, for what others have made with it. It protects nothing.",
        ),
    ],
};
