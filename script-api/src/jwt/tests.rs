#![allow(clippy::unwrap_used)]

use std::str::FromStr;

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;

use super::*;

macro_rules! key {
    ($name:literal) => {
        include_str!(concat!("../../tests/keys/", $name))
    };
}

fn signing(algorithm: Algorithm) -> EncodingKey {
    match algorithm.family() {
        jsonwebtoken::AlgorithmFamily::Rsa => EncodingKey::from_rsa_pem(key!("rsa.pem").as_bytes()),
        jsonwebtoken::AlgorithmFamily::Ed => {
            EncodingKey::from_ed_pem(key!("ed25519.pem").as_bytes())
        }
        _ if algorithm == Algorithm::ES384 => {
            EncodingKey::from_ec_pem(key!("ec384.pem").as_bytes())
        }
        _ => EncodingKey::from_ec_pem(key!("ec256.pem").as_bytes()),
    }
    .unwrap()
}

fn token(algorithm: &str, kid: Option<&str>) -> String {
    provider::install();
    let algorithm = Algorithm::from_str(algorithm).unwrap();
    let mut header = Header::new(algorithm);
    header.kid = kid.map(str::to_owned);
    encode(&header, &json!({ "exp": 100 }), &signing(algorithm)).unwrap()
}

fn with(set: Jwks, algorithms: &[&str]) -> Verification {
    provider::install();
    let algorithms = algorithms
        .iter()
        .map(|name| Algorithm::from_str(name).unwrap());
    let mut validation = Validation {
        algorithms: algorithms.collect(),
        ..Validation::default()
    };
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    Verification {
        keys: Keys::Set(set),
        validation,
        leeway: 0.0,
        required: vec!["exp".to_owned()],
    }
}

fn set() -> Jwks {
    Jwks::fixed(KeySet::parse(key!("set.json").as_bytes()).unwrap())
}

#[test]
fn keys_of_a_set_verify_what_their_issuer_signs() {
    let how = with(set(), &["RS256", "PS384", "ES256", "ES384", "EdDSA"]);
    for (algorithm, kid) in [
        ("RS256", "rsa"),
        ("PS384", "rsa"),
        ("ES256", "ec256"),
        ("ES384", "ec384"),
        ("EdDSA", "ed"),
    ] {
        let named = token(algorithm, Some(kid));
        assert!(how.verify(&named, 99.0).is_ok(), "{algorithm}");
        // One key fits, so there is no doubt.
        assert!(
            how.verify(&token(algorithm, None), 99.0).is_ok(),
            "{algorithm}"
        );
        for other in ["rsa", "ec256", "ec384", "ed", "nobody", ""] {
            if other != kid {
                let named = token(algorithm, Some(other));
                assert!(how.verify(&named, 99.0).is_err(), "{algorithm} {other}");
            }
        }
        assert!(how.verify(&named, 100.0).is_err(), "expired");
    }
    let pinned = with(set(), &["ES256"]);
    assert!(pinned.verify(&token("RS256", Some("rsa")), 99.0).is_err());
}

#[test]
fn what_verifies_nothing_is_no_key() {
    let ec = r#""kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0""#;
    assert!(KeySet::parse(format!("{{\"keys\":[{{{ec}}}]}}").as_bytes()).is_ok());
    for keys in [
        r#"{"kty":"oct","k":"AAAA"}"#.to_owned(),
        format!("{{{ec},\"use\":\"enc\"}}"),
        format!("{{{ec},\"key_ops\":[\"sign\"]}}"),
        format!("{{{ec},\"alg\":\"HS256\"}}"),
        format!("{{{ec},\"alg\":\"ECDH-ES\"}}"),
        format!("{{{}}}", ec.replace("P-256", "P-384")),
        format!("{{{}}}", ec.replace("EC\"", "RSA\"")),
        // 1,024 bits.
        format!(
            "{{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"{}\"}}",
            "q".repeat(171)
        ),
        String::new(),
        "1".to_owned(),
    ] {
        let text = format!("{{\"keys\":[{keys}]}}");
        assert!(KeySet::parse(text.as_bytes()).is_err(), "{text}");
    }
    let many = vec![format!("{{{ec}}}"); MOST_KEYS + 1].join(",");
    assert!(KeySet::parse(format!("{{\"keys\":[{many}]}}").as_bytes()).is_err());
    assert!(KeySet::parse(b"[]").is_err());
}

#[test]
fn without_a_set_no_token_is_taken() {
    let set = Jwks::fetched(JwksSource {
        name: "https://a.example/keys".to_owned(),
        from: JwksFrom::Pool("a".to_owned()),
        target: "/keys".to_owned(),
        refresh: std::time::Duration::from_secs(300),
    });
    let how = with(set.clone(), &["RS256"]);
    let right = token("RS256", Some("rsa"));
    assert_eq!(how.verify(&right, 99.0), Err(Refused::NoKeys));

    let woken = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = woken.clone();
    let slot = Arc::new(Slot::new(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }));
    set.bind(slot.clone());
    assert_eq!(how.verify(&right, 99.0), Err(Refused::NoKeys));
    slot.put(KeySet::parse(key!("set.json").as_bytes()).unwrap());
    assert!(how.verify(&right, 99.0).is_ok());

    // A name that is not there wakes whoever fetches, once, whatever clients send.
    for _ in 0..3 {
        assert!(how.verify(&token("RS256", Some("new")), 99.0).is_err());
    }
    assert_eq!(woken.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(slot.take_wanted() && !slot.take_wanted());
}
