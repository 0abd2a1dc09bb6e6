#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use super::*;

fn bcrypt(cost: u32, password: &str) -> String {
    bcrypt::hash(password, cost).unwrap()
}

fn argon2(params: argon2::Params, password: &str) -> String {
    use argon2::{Algorithm, PasswordHasher as _, Version, password_hash::SaltString};
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
    hasher
        .hash_password(password.as_bytes(), &salt)
        .unwrap()
        .to_string()
}

#[test]
fn each_kind_takes_its_own_password_and_no_other() {
    let small = argon2::Params::new(64, 2, 1, None).unwrap();
    let hashes = [
        bcrypt(4, "opensesame"),
        bcrypt(4, "opensesame").replacen("$2b$", "$2y$", 1),
        argon2(small, "opensesame"),
        // `printf opensesame | openssl dgst -sha1 -binary | base64`
        "{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=".to_owned(),
        // `openssl passwd -apr1 -salt lZL6V/ci password`
        "$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00".to_owned(),
    ];
    for text in hashes {
        let hash = PasswordHash::parse(&text).unwrap();
        let right = if text.starts_with("$apr1$") {
            &b"password"[..]
        } else {
            b"opensesame"
        };
        assert!(hash.verify(right), "{text}");
        for wrong in [&b"opensesam"[..], b"", b"Opensesame", b"opensesame\0"] {
            assert!(!hash.verify(wrong), "{text}");
        }
        assert!(!format!("{hash:?}").contains(&text[8..]), "{hash:?}");
    }
}

#[test]
fn what_would_take_too_long_is_refused() {
    let cheap = bcrypt(4, "x");
    let dear = cheap.replacen("$04$", "$13$", 1);
    let reason = PasswordHash::parse(&dear).unwrap_err();
    assert!(reason.contains("cost is 13"), "{reason}");
    assert!(PasswordHash::parse(&cheap.replacen("$04$", "$12$", 1)).is_ok());
    assert!(PasswordHash::parse(&cheap.replacen("$04$", "$31$", 1)).is_err());

    let small = argon2(argon2::Params::new(64, 2, 1, None).unwrap(), "x");
    for (memory, passes, lanes, fits) in [
        (65_536, 4, 4, true),
        (65_537, 1, 1, false),
        (65_536, 5, 1, false),
        (19_456, 2, 1, true),
        (1_024, 1, 17, false),
        (64, 1, 999_999_999, false),
    ] {
        let text = small.replace("m=64,t=2,p=1", &format!("m={memory},t={passes},p={lanes}"));
        assert_eq!(PasswordHash::parse(&text).is_ok(), fits, "{text}");
    }
}

#[test]
fn what_is_no_hash_is_refused() {
    for text in [
        "",
        "opensesame",
        "$1$abc$def",
        "$2y$",
        "$2y$04$tooshort",
        "$2y$04$********************************************************",
        "$argon2id$v=19$m=64,t=2,p=1$",
        "$argon2x$v=19$m=64,t=2,p=1$MDEyMzQ1Njc$AAAAAAAAAAAAAAAA",
        "{SHA}",
        "{SHA}AAAA",
        "$apr1$x",
        "$apr1$toolongasalt$eIMz/iKDkbtys/uU7LEK00",
    ] {
        assert!(PasswordHash::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_file_is_read() {
    let hash = bcrypt(4, "a");
    let file = format!("# users\n\nalice:{hash}\r\nbob:{{SHA}}F2GPAaOiG5EcklvLUlodIavTBnM=:more\n");
    let users = Htpasswd::from_file(file.as_bytes()).unwrap();
    assert_eq!(users.len(), 2);
    let (own, known) = users.hash_for("alice");
    assert!(known && own.verify(b"a"));
    assert!(users.hash_for("bob").0.verify(b"opensesame"));
    // Nobody is told from a user that exists by the time that it takes.
    let (decoy, known) = users.hash_for("mallory");
    assert!(!known && !decoy.is_quick());

    for (file, says) in [
        (String::new(), "no user"),
        ("alice".to_owned(), "line 1"),
        (format!("alice:{hash}\nalice:{hash}"), "twice"),
        (format!("\nalice:{hash}\nbob:secret"), "line 3"),
        (format!(":{hash}"), "empty"),
    ] {
        let reason = Htpasswd::from_file(file.as_bytes()).unwrap_err();
        assert!(reason.contains(says), "{reason}");
        assert!(!reason.contains("secret"), "{reason}");
    }
}

#[test]
fn right_credentials_are_known_for_a_while() {
    let verified = Verified::new().unwrap();
    let now = Instant::now();
    let one = PasswordHash::parse(&bcrypt(4, "a")).unwrap();
    let other = PasswordHash::parse(&bcrypt(4, "a")).unwrap();
    let credentials_of = |user: &str, password: &str, hash: &PasswordHash| {
        verified.credentials(&PasswordCheck {
            user: user.to_owned(),
            ..PasswordCheck::alone(hash.clone(), password)
        })
    };
    let credentials = credentials_of("alice", "a", &one);
    assert!(!verified.knows(&credentials, now));
    verified.keep(credentials, now);
    assert!(verified.knows(&credentials, now + KEPT_FOR - Duration::from_secs(1)));
    for different in [
        credentials_of("alice", "b", &one),
        credentials_of("alicea", "", &one),
        credentials_of("alice", "a", &other),
    ] {
        assert!(!verified.knows(&different, now));
    }
    assert!(!verified.knows(&credentials, now + KEPT_FOR));
    assert!(
        !verified.knows(&credentials, now),
        "what is over is forgotten"
    );
}
