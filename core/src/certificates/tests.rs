#![allow(clippy::unwrap_used)]

use super::*;

const AUTHORITY: &[u8] = include_bytes!("../outbound/tests/certificates/authority.pem");
const SERVER: &[u8] = include_bytes!("../outbound/tests/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../outbound/tests/certificates/server.key");

fn other_key() -> Vec<u8> {
    let key = rcgen::KeyPair::generate().unwrap();
    key.serialize_pem().into_bytes()
}

#[test]
fn a_pair_belongs_together() {
    let pair = pair(chain(SERVER).unwrap(), key(KEY).unwrap()).unwrap();
    assert!(pair.intermediates().is_empty());
    assert!(super::pair(chain(SERVER).unwrap(), key(&other_key()).unwrap()).is_err());
}

#[test]
fn what_is_no_certificate_or_key_is_told_so() {
    for text in [&b""[..], b"hello", KEY] {
        assert_eq!(chain(text).unwrap_err(), "there is no certificate in it");
    }
    assert!(key(SERVER).is_err());
    let cut = &AUTHORITY[..AUTHORITY.len() / 2];
    assert!(chain(cut).is_err());
    let text = String::from_utf8(AUTHORITY.to_vec()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    // Base64 of what is no certificate.
    lines.splice(1..lines.len() - 1, ["aGVsbG8="]);
    let broken = lines.join("\n");
    let error = authorities(broken.as_bytes()).unwrap_err();
    assert!(
        error.starts_with("its certificate 1 can't be used"),
        "{error}"
    );
}

#[test]
fn a_key_tells_nothing_of_itself() {
    let text = String::from_utf8(KEY.to_vec()).unwrap();
    let secret = text.lines().nth(1).unwrap();
    let broken = text.replace("PRIVATE KEY", "SECRET KEY");
    assert!(!key(broken.as_bytes()).unwrap_err().contains(secret));
}

#[test]
fn several_authorities_are_several() {
    let twice = [AUTHORITY, AUTHORITY].concat();
    assert_eq!(authorities(&twice).unwrap().len(), 2);
    assert_eq!(nobody().unwrap().len(), 1);
}

#[test]
fn an_end_is_near_within_a_fifth_of_a_life_and_two_weeks() {
    let day = |days: u64| UNIX_EPOCH + Duration::from_secs(days * 24 * 3600);
    let year = Validity {
        from: day(0),
        until: day(365),
    };
    assert!(!year.ends_soon(day(350)));
    assert!(year.ends_soon(day(352)));
    let ten_days = Validity {
        from: day(0),
        until: day(10),
    };
    assert!(!ten_days.ends_soon(day(7)));
    assert!(ten_days.ends_soon(day(9)));
}
