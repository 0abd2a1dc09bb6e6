#![allow(clippy::unwrap_used)]

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use rhai::{Blob, Dynamic, Map};
use ring::hmac;

use super::{
    options::{Signing, verification},
    sign, verify,
};
use crate::{
    engine::clock::set_clock,
    jwt::{VERIFY, Verification},
};

/// The keys of RFC 7515 A.2 (RSA) and A.3 (P-256), RFC 8037 A.1 (Ed25519), and others.
macro_rules! key {
    ($name:literal) => {
        include_str!(concat!("../../../tests/keys/", $name, ".pem"))
    };
}

/// The claims of RFC 7515 A.1 to A.3, and when they expire.
const CLAIMS: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
const EXPIRES: f64 = 1_300_819_380.0;
/// The secret of A.1.
const SECRET: &str =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";

fn secret() -> Blob {
    BASE64URL_NOPAD.decode(SECRET.as_bytes()).unwrap()
}

fn map<const N: usize>(entries: [(&str, Dynamic); N]) -> Map {
    let entries = entries.into_iter();
    entries.map(|(key, value)| (key.into(), value)).collect()
}

fn read(options: &Map) -> crate::engine::NativeResult<Verification> {
    verification(&VERIFY, options)
}

fn verified(token: &str, options: &Map) -> Result<Map, String> {
    let how = read(options).map_err(|error| error.to_string())?;
    let verified = verify(token, &how, 65536, 4096);
    verified
        .map(Dynamic::cast::<Map>)
        .map_err(|refused| refused.to_string())
}

fn refused(token: &str, options: &Map) -> String {
    verified(token, options).unwrap_err()
}

fn wrong(options: &Map) -> String {
    match read(options) {
        Ok(_) => panic!("these options are taken: {options:?}"),
        Err(error) => error.to_string(),
    }
}

fn encoded(part: &str) -> String {
    BASE64URL_NOPAD.encode(part.as_bytes())
}

/// A token signed with the bytes of a secret, whatever its header says.
fn forged(header: &str, claims: &str, secret: &[u8]) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let signed = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        message.as_bytes(),
    );
    format!("{message}.{}", BASE64URL_NOPAD.encode(signed.as_ref()))
}

fn hs256(more: Vec<(&str, Dynamic)>) -> Map {
    let mut options = map([("algorithm", "HS256".into()), ("secret", "s3cret".into())]);
    options.extend(more.into_iter().map(|(key, value)| (key.into(), value)));
    options
}

/// A token that `hs256` takes, with these claims.
fn token(claims: &str) -> String {
    forged(r#"{"alg":"HS256"}"#, claims, b"s3cret")
}

fn at(seconds: f64) {
    set_clock(Some(Duration::from_secs_f64(seconds)));
}

#[test]
fn the_tokens_of_the_rfcs() {
    at(EXPIRES - 1.0);
    let a1 = format!(
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{CLAIMS}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    );
    let a2 = format!(
        "eyJhbGciOiJSUzI1NiJ9.{CLAIMS}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    );
    let a3 = format!(
        "eyJhbGciOiJFUzI1NiJ9.{CLAIMS}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    );
    for (token, options) in [
        (
            &a1,
            map([
                ("algorithm", "HS256".into()),
                ("secret", Dynamic::from_blob(secret())),
            ]),
        ),
        (
            &a2,
            map([
                ("algorithm", "RS256".into()),
                ("public_key", key!("rsa.pub").into()),
            ]),
        ),
        (
            &a3,
            map([
                ("algorithm", "ES256".into()),
                ("public_key", key!("ec256.pub").into()),
            ]),
        ),
    ] {
        let claims = verified(token, &options).unwrap();
        assert_eq!(claims["iss"].to_string(), "joe");
        assert_eq!(claims["http://example.com/is_root"].as_bool(), Ok(true));

        // Each part matters.
        let altered = token.replacen(CLAIMS, &encoded(r#"{"iss":"eve","exp":1300819380}"#), 1);
        assert!(refused(&altered, &options).contains("signature"));
        let cut = &token[..token.len() - 4];
        assert!(verified(cut, &options).is_err());
    }
}

/// Made with other libraries (Python's `cryptography`, which uses OpenSSL).
#[test]
fn tokens_of_other_makers() {
    at(1_700_000_000.0);
    for (token, algorithm, key) in [
        (
            "eyJhbGciOiAiUFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDEwMjQ0NDgwMH0.LybQq84tn0fY7gh4_-ENk2PTi0S1vuBMHavuVFR3X5ssKmqFU-HMmUt_oBzDFm4c6m6_SgWaZS3dXOa6oRTZjbZkJQkag1j_E7TsafXCxw1bdVZibDEbxVigdn8dJLMqWoaSB7MyyafQx5uuuPApBT5vISKbiCow0xHQScc4yXaO1pwO4q-ZoUVm13znfckyXtt4iPnGuIMfIJZxnIV5JDwJ92F9k-YQPoNfbfG5rArF8GFyAb4PkCKlhV82Hr68rEA5i3t6Z_S9p7Z990YRqn8RMO3fQ-OVCMjnByBEad3-HSbAh0fw89Rr3VtY-v7rhY3A94S44mUD5Uf049DUsw",
            "PS256",
            key!("rsa.pub"),
        ),
        (
            "eyJhbGciOiAiUlM1MTIiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDEwMjQ0NDgwMH0.T7gqy4dtdDlW37L2VrldNFj2TZa0o201enHi0cUEEgWMf0HLml80QQumokGbCCzB8sXJDitAeyR6EVDp0GFlc8vx0Ew_vIgrtT6dPzIRs5gj48RxlsmD3NKOaT_5I-a-WaoBe9C6jscraHn1Ifs3j37eIR7xRDRGLvKIu4k-QyEcJsez4QMFgGf9KjpJraK4iqUxQYBXYJbH5EioVeRbA_6GGZJWIjE4PRlxQIqt3Rku57di2-JBmmm6u9ZWHWlMXVtjLgDtTGZgpwPcldZZXLeXbQzL9sdC8ugkHIpcm4Wu_UOPrUzozNgJJBXlSLvsN9vMTmfFN7v4F8U0SXtu_A",
            "RS512",
            key!("rsa.pub"),
        ),
        (
            "eyJhbGciOiAiRVMzODQiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDEwMjQ0NDgwMH0.ljVj-BgT19-gAxXLBKROLdfcmv7FtzmEkSW1BOY7Kka8RgMzrcxBC4hpRNX6Ut006-J9rgdzY8_ZfrrK08ONH6IVQSJPdt-f3b5BNVObe8jXYwOrlnVNz5ZiIGzW9c-F",
            "ES384",
            key!("ec384.pub"),
        ),
        (
            "eyJhbGciOiAiRWREU0EiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiAiYWxpY2UiLCAiZXhwIjogNDEwMjQ0NDgwMH0.OrW8WYDBbhEJ8wIAQzaSyt2hWS4XB153Vk993BIpWQG5rLwzyGXdr2SMRS80_H3-UAgegMWMGvnCR31HkYHzCA",
            "EdDSA",
            key!("ed25519.pub"),
        ),
    ] {
        let options = map([("algorithm", algorithm.into()), ("public_key", key.into())]);
        let claims = verified(token, &options).unwrap();
        assert_eq!(claims["sub"].to_string(), "alice", "{algorithm}");
    }
}

#[test]
fn what_is_signed_is_verified() {
    at(1_700_000_000.0);
    for (algorithm, private, public) in [
        ("HS256", "s3cret", "s3cret"),
        ("HS384", "s3cret", "s3cret"),
        ("HS512", "s3cret", "s3cret"),
        ("RS256", key!("rsa"), key!("rsa.pub")),
        ("RS384", key!("rsa.pkcs1"), key!("rsa.pub")),
        ("RS512", key!("rsa"), key!("rsa.pub")),
        ("PS256", key!("rsa"), key!("rsa.pub")),
        ("PS384", key!("rsa"), key!("rsa.pub")),
        ("PS512", key!("rsa.pkcs1"), key!("rsa.pub")),
        ("ES256", key!("ec256"), key!("ec256.pub")),
        ("ES384", key!("ec384"), key!("ec384.pub")),
        ("EdDSA", key!("ed25519"), key!("ed25519.pub")),
    ] {
        let (private_name, public_name) = if algorithm.starts_with("HS") {
            ("secret", "secret")
        } else {
            ("private_key", "public_key")
        };
        let how = map([
            ("algorithm", algorithm.into()),
            (private_name, private.into()),
            ("kid", "k1".into()),
        ]);
        let claims = map([("sub", "alice".into()), ("exp", 1_700_000_001_i64.into())]);
        let token = sign(claims, &Signing::read(&how).unwrap(), 4096).unwrap();
        let header = BASE64URL_NOPAD
            .decode(token.split('.').next().unwrap().as_bytes())
            .unwrap();
        let header = String::from_utf8(header).unwrap();
        assert_eq!(
            header,
            format!(r#"{{"typ":"JWT","alg":"{algorithm}","kid":"k1"}}"#)
        );
        let options = map([
            ("algorithm", algorithm.into()),
            (public_name, public.into()),
        ]);
        assert_eq!(
            verified(&token, &options).unwrap()["sub"].to_string(),
            "alice"
        );
    }
}

#[test]
fn a_token_does_not_choose_its_algorithm() {
    at(1.0);
    let claims = r#"{"exp":100}"#;
    let none = format!("{}.{}.", encoded(r#"{"alg":"none"}"#), encoded(claims));
    let rsa = map([
        ("algorithm", "RS256".into()),
        ("public_key", key!("rsa.pub").into()),
    ]);
    for options in [&rsa, &hs256(vec![])] {
        assert_eq!(refused(&none, options), "it is no token");
    }

    // Signed with the public key, which everybody knows, as if it were a secret.
    let lines = key!("rsa.pub")
        .lines()
        .filter(|line| !line.starts_with('-'));
    let der = data_encoding::BASE64
        .decode(lines.collect::<String>().as_bytes())
        .unwrap();
    for secret in [key!("rsa.pub").as_bytes(), &der] {
        let confused = forged(r#"{"alg":"HS256"}"#, claims, secret);
        assert!(refused(&confused, &rsa).contains("algorithm"));
    }
    let pem = key!("rsa.pub");
    let told = wrong(&map([
        ("algorithm", "HS256".into()),
        ("secret", pem.into()),
    ]));
    assert!(told.contains("`secret` holds a PEM text"), "{told}");

    // The same secret, another digest.
    let other = forged(r#"{"alg":"HS384"}"#, claims, b"s3cret");
    assert!(refused(&other, &hs256(vec![])).contains("algorithm"));
    assert!(verified(&token(claims), &hs256(vec![])).is_ok());
}

#[test]
fn an_unknown_key_is_no_key() {
    at(1.0);
    let other = forged(r#"{"alg":"HS256","kid":"new"}"#, r#"{"exp":100}"#, b"other");
    assert!(refused(&other, &hs256(vec![])).contains("signature"));
    // A key in the token, or a place to fetch one from, is not asked.
    let own = r#"{"alg":"HS256","jku":"https://evil.example/","jwk":{"kty":"oct","k":"b3RoZXI"}}"#;
    let own = forged(own, r#"{"exp":100}"#, b"other");
    assert!(verified(&own, &hs256(vec![])).is_err());
}

#[test]
fn extensions_are_refused() {
    at(1.0);
    for header in [
        r#"{"alg":"HS256","crit":["exp"],"exp":1}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":true}"#,
        r#"{"alg":"HS256","crit":[]}"#,
        r#"{"alg":"HS256","b64":false}"#,
    ] {
        let token = forged(header, r#"{"exp":100}"#, b"s3cret");
        assert!(verified(&token, &hs256(vec![])).is_err(), "{header}");
    }
}

#[test]
fn times_are_checked_with_leeway() {
    let expired = token(r#"{"exp":100}"#);
    at(99.9);
    assert!(verified(&expired, &hs256(vec![])).is_ok());
    at(100.0);
    assert_eq!(refused(&expired, &hs256(vec![])), "it has expired");
    at(101.0);
    assert_eq!(refused(&expired, &hs256(vec![])), "it has expired");
    for leeway in [Dynamic::from(2_i64), Dynamic::from(1.5), "2s".into()] {
        assert!(verified(&expired, &hs256(vec![("leeway", leeway)])).is_ok());
    }
    let short = hs256(vec![("leeway", 1_i64.into())]);
    assert_eq!(refused(&expired, &short), "it has expired");

    let early = token(r#"{"nbf":102.5,"exp":200}"#);
    assert_eq!(refused(&early, &hs256(vec![])), "it is not valid yet");
    assert!(verified(&early, &hs256(vec![("leeway", 2_i64.into())])).is_ok());
    at(102.5);
    assert!(verified(&early, &hs256(vec![])).is_ok());
}

#[test]
fn claims_of_the_wrong_type_are_refused() {
    at(1.0);
    for claims in [
        r#"{"exp":"100"}"#,
        r#"{"exp":[100]}"#,
        r#"{"exp":100,"nbf":"0"}"#,
        r#"{"exp":100,"exp":200}"#,
        r#"{"exp":null}"#,
        "{}",
        "[]",
        "5",
        "{",
    ] {
        assert!(
            verified(&token(claims), &hs256(vec![])).is_err(),
            "{claims}"
        );
    }
    for token in ["", ".", "..", "a.b", "a.b.c", "a.b.c.d"] {
        assert!(verified(token, &hs256(vec![])).is_err(), "{token}");
    }
}

#[test]
fn required_claims_are_the_programs_choice() {
    at(1.0);
    let eternal = token(r#"{"sub":"alice"}"#);
    assert_eq!(refused(&eternal, &hs256(vec![])), "it has no `exp`");
    let none = hs256(vec![("required", rhai::Array::new().into())]);
    assert!(verified(&eternal, &none).is_ok());
    let subject = hs256(vec![("required", "sub".into())]);
    assert!(verified(&eternal, &subject).is_ok());
    assert!(refused(&token(r#"{"exp":100}"#), &subject).contains("`sub`"));
    // What is there is looked at all the same.
    assert_eq!(
        refused(&token(r#"{"sub":"a","exp":0}"#), &none),
        "it has expired"
    );
}

#[test]
fn issuer_and_audience() {
    at(1.0);
    let of = |claims: &str| token(&format!(r#"{{"exp":100,{claims}}}"#));
    let issuer = hs256(vec![("issuer", "joe".into())]);
    assert!(verified(&of(r#""iss":"joe""#), &issuer).is_ok());
    assert!(refused(&of(r#""iss":"eve""#), &issuer).contains("`iss`"));
    assert!(refused(&token(r#"{"exp":100}"#), &issuer).contains("`iss`"));

    let names: rhai::Array = vec!["a".into(), "b".into()];
    let audience = hs256(vec![("audience", names.into())]);
    for aud in [r#""aud":"a""#, r#""aud":["x","b"]"#] {
        assert!(verified(&of(aud), &audience).is_ok(), "{aud}");
        // RFC 7519 section 4.1.3: whoever is not named there refuses it.
        assert!(refused(&of(aud), &hs256(vec![])).contains("`aud`"), "{aud}");
    }
    for aud in [
        r#""aud":"c""#,
        r#""aud":[]"#,
        r#""aud":5"#,
        r#""aud":null"#,
        r#""x":1"#,
    ] {
        assert!(verified(&of(aud), &audience).is_err(), "{aud}");
    }
}

#[test]
fn options_that_verify_nothing_are_errors() {
    let secret = || ("secret", Dynamic::from("s"));
    let rs256 = || ("algorithm", Dynamic::from("RS256"));
    for (options, reason) in [
        (map([secret()]), "needs `algorithm`"),
        (map([rs256()]), "needs `secret` or `public_key`"),
        (map([rs256(), secret()]), "RS256 goes with `public_key`"),
        (
            map([
                ("algorithm", "HS256".into()),
                ("public_key", key!("rsa.pub").into()),
            ]),
            "HS256 goes with `secret`",
        ),
        (
            map([("algorithm", "none".into()), secret()]),
            "no algorithm `none`",
        ),
        (
            map([("algorithm", "HS265".into()), secret()]),
            "did you mean `HS256`?",
        ),
        (
            map([("algorithms", rhai::Array::new().into()), secret()]),
            "is empty",
        ),
        (
            map([
                (
                    "algorithms",
                    vec!["RS256".into(), Dynamic::from("ES256")].into(),
                ),
                ("public_key", key!("rsa.pub").into()),
            ]),
            "the one key",
        ),
        (hs256(vec![("algorithms", "HS256".into())]), "not both"),
        (hs256(vec![("public_key", "x".into())]), "not both"),
        (hs256(vec![("isuer", "x".into())]), "did you mean `issuer`?"),
        (hs256(vec![("issuer", Dynamic::UNIT)]), "`issuer` is text"),
        (
            hs256(vec![("audience", rhai::Array::new().into())]),
            "`audience` is empty",
        ),
        (hs256(vec![("leeway", "long".into())]), "`leeway`"),
        (hs256(vec![("leeway", (-1_i64).into())]), "`leeway`"),
        (
            hs256(vec![("secret", Dynamic::UNIT)]),
            "not a value of type `()`",
        ),
        (hs256(vec![("secret", "".into())]), "`secret` is empty"),
        (
            map([rs256(), ("public_key", key!("rsa").into())]),
            "no PEM text that begins",
        ),
        (
            map([rs256(), ("public_key", key!("ec256.pub").into())]),
            "no RSA public key",
        ),
        (
            map([rs256(), ("public_key", key!("rsa1024.pub").into())]),
            "2048 bits",
        ),
        (
            map([
                ("algorithm", "ES384".into()),
                ("public_key", key!("ec256.pub").into()),
            ]),
            "P-384",
        ),
        (
            map([
                ("algorithm", "EdDSA".into()),
                ("public_key", key!("rsa.pub").into()),
            ]),
            "Ed25519",
        ),
    ] {
        let told = wrong(&options);
        assert!(told.contains(reason), "{options:?}: {told}");
    }
}

#[test]
fn a_key_that_can_t_sign_is_an_error() {
    let told = |algorithm: &str, key: &str| {
        let options = map([("algorithm", algorithm.into()), ("private_key", key.into())]);
        let how = match Signing::read(&options) {
            Ok(how) => how,
            Err(error) => return error.to_string(),
        };
        sign(Map::new(), &how, 4096).unwrap_err().to_string()
    };
    assert!(told("RS256", key!("rsa.pub")).contains("BEGIN PRIVATE KEY"));
    assert!(told("ES256", "-----BEGIN EC PRIVATE KEY-----").contains("PKCS#8"));
    assert!(told("ES256", key!("ec384")).contains("can't sign with this key"));
    assert!(told("EdDSA", key!("ec256")).contains("no Ed25519 private key"));
    let long = map([("a", "x".repeat(4096).into())]);
    let how = hs256(vec![]);
    assert!(sign(long, &Signing::read(&how).unwrap(), 4096).is_err());
}
