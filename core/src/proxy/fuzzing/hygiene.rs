//! Heads of requests: whatever is accepted has one length, one host, and no field that one parser
//! sees and another one doesn't.

use edgewright_script::router::{HostPattern, HostRouter};
use http::{HeaderValue, Method, header::HOST};
use pingora_http::RequestHeader;

use crate::{
    config::Limits,
    proxy::{
        client,
        hygiene::{Head, Seen, check},
    },
};

/// Pingora's bound on fields.
const FIELDS: usize = 256;

/// The input is what a client sends. It is parsed as Pingora does it.
pub fn hygiene(input: &[u8]) {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(length)) = parsed.parse(input) else {
        return;
    };
    let name = parsed.method.unwrap_or_default();
    let Ok(method) = Method::from_bytes(name.as_bytes()) else {
        return;
    };
    let head = Head {
        raw: &input[..length],
        method: &method,
        http_1_1: parsed.version == Some(1),
    };
    match check(head, &Limits::default()) {
        Ok(seen) => accepted(head, &parsed, seen),
        Err(refusal) => {
            assert!((400..=501).contains(&refusal.status), "{refusal:?}");
            assert!(!refusal.reason.is_empty());
        }
    }
}

fn accepted(head: Head<'_>, parsed: &httparse::Request<'_, '_>, seen: Seen) {
    let values = |name: &str| -> Vec<&[u8]> {
        let fields = parsed.headers.iter();
        let named = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value).collect()
    };
    let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
    assert!(lengths.len() + codings.len() <= 1, "two lengths");
    for length in lengths {
        assert!(!length.is_empty() && length.iter().all(u8::is_ascii_digit));
    }
    for coding in codings {
        assert!(coding.eq_ignore_ascii_case(b"chunked"));
    }

    let target = parsed.path.unwrap_or_default();
    assert!(!target.contains([' ', '#', '\t', '\r', '\n']), "{target}");
    let is_path = target.starts_with('/') || target == "*";
    let scheme = target
        .split("://")
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    assert!(is_path || scheme == "http" || scheme == "https", "{target}");

    let hosts = values("host");
    let may_lack_host = is_path && !head.http_1_1;
    assert!(hosts.len() == 1 || (hosts.is_empty() && may_lack_host));
    for host in hosts {
        has_one_form(host, seen.odd_host);
    }

    let any = |test: &dyn Fn(&str) -> bool| {
        let mut names = parsed
            .headers
            .iter()
            .map(|field| field.name.to_ascii_lowercase());
        names.any(|name| test(&name))
    };
    assert_eq!(
        seen.claims,
        any(&|name| {
            name == "forwarded" || name.starts_with("x-forwarded-") || name.starts_with("x-real-ip")
        })
    );
    let odd = any(&|name| {
        let dashed = name.replace('_', "-");
        let told = [
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-proto",
        ];
        name.contains('_') && (told.contains(&&*dashed) || dashed == "x-real-ip")
    });
    assert!(
        seen.odd_claims || !odd,
        "a claim with underscores is not seen"
    );
    assert_eq!(
        seen.repeated_authorization,
        values("authorization").len() > 1
    );
    assert_eq!(lenient(head.raw), parsed.headers.len(), "a field is hidden");
}

/// How many fields somebody sees who takes any line end for one; none of the lines goes on the one
/// before, holds what ends a text, or has a space before its colon.
fn lenient(raw: &[u8]) -> usize {
    let lines = raw.split(|&byte| matches!(byte, b'\r' | b'\n'));
    let mut lines = lines.filter(|line| !line.is_empty());
    let _request_line = lines.next();
    let mut count = 0;
    for line in lines {
        assert!(!line[0].is_ascii_whitespace() && !line.contains(&0));
        let colon = line.iter().position(|&byte| byte == b':');
        let name = &line[..colon.expect("a field has a colon")];
        assert!(!name.is_empty() && name.iter().all(u8::is_ascii_graphic));
        count += 1;
    }
    count
}

/// Who matches the host as it was sent finds what is found in its normal form.
fn has_one_form(sent: &[u8], is_odd: bool) {
    let value = HeaderValue::from_bytes(sent).expect("a host is a value");
    let with = |value: &HeaderValue| {
        let mut header = RequestHeader::build("GET", b"/", None).expect("this is a request");
        let _ = header.insert_header(HOST, value.clone());
        client::normalize_host(&mut header);
        header
    };
    let header = with(&value);
    let normal = &header.headers[HOST];
    assert!(
        is_odd || *normal == value,
        "{value:?} is not in its normal form"
    );
    assert_eq!(with(normal).headers[HOST], *normal, "{value:?}");
    // A client can send names that no site can have.
    if let Ok(pattern) = HostPattern::parse(client::host(&header)) {
        let router = HostRouter::build([(pattern, 7)]).expect("there is one host");
        assert_eq!(router.find(sent), Some(7), "{value:?}");
        assert_eq!(router.find(normal), Some(7), "{value:?}");
    }
}
