//! Origins that a program lists, and whom they let in.

use http::{HeaderValue, Uri};

use crate::program::{Cors, Origin, Origins};

/// The input is an origin as a program lists it, and one as a client sends it, a line each.
pub fn cors_origin(input: &[u8]) {
    let mut lines = input.splitn(2, |&byte| byte == b'\n');
    let (listed, sent) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let (Ok(listed), Ok(sent)) = (std::str::from_utf8(listed), HeaderValue::from_bytes(sent))
    else {
        return;
    };
    let Ok(origin) = Origin::parse(listed) else {
        return;
    };
    let cors = Cors {
        origins: Origins::Listed(vec![origin]),
        credentials: true,
        methods: HeaderValue::from_static("GET"),
        headers: None,
        expose: None,
        max_age: None,
    };
    assert_eq!(cors.allowed(None), None);
    let allowed = cors.allowed(Some(&sent));
    let Some((scheme, below)) = listed.split_once("://*.") else {
        assert_eq!(allowed.is_some(), sent.as_bytes() == listed.as_bytes());
        return;
    };
    let Some(allowed) = allowed else {
        return;
    };
    assert_eq!(allowed, sent);
    // What another parser finds in it lies below the name. It knows no longer schemes.
    if scheme.len() > 64 {
        return;
    }
    let text = sent.to_str().expect("an origin is ASCII");
    let uri: Uri = text.parse().expect("an origin is a URI");
    assert_eq!(uri.scheme_str(), Some(scheme));
    assert!(matches!(uri.path(), "" | "/") && uri.query().is_none());
    let authority = uri.authority().expect("an origin has a host").as_str();
    assert!(!authority.contains('@'));
    let label = authority
        .strip_suffix(below)
        .and_then(|rest| rest.strip_suffix('.'));
    assert!(label.is_some_and(|label| !label.is_empty() && !label.contains(['.', ':'])));
}
