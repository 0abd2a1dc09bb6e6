#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn hosts_are_read_and_written_in_lower_case() {
    for (text, shown) in [
        ("admin.example.com", "admin.example.com"),
        ("Admin.Example.COM.", "admin.example.com"),
        ("*.Example.com", "*.example.com"),
        ("*", "*"),
        ("localhost", "localhost"),
        ("my_app.example.com", "my_app.example.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("[FD00:0:0::1]", "[fd00::1]"),
    ] {
        assert_eq!(
            HostPattern::parse(text).unwrap().to_string(),
            shown,
            "{text}"
        );
    }
}

#[test]
fn each_mistake_is_named_and_marked() {
    let long_label = "a".repeat(64);
    let long_name = "a.".repeat(126) + "aa";
    for (text, message, help, marked) in [
        ("", "empty host", "`*`", ""),
        ("https://a.test", "no scheme", "write `a.test`", "https://"),
        ("a.test/x", "no path", "write `a.test`", "/x"),
        ("a.test:8080", "no port", "write `a.test`", ":8080"),
        ("*:80", "no port", "write `*`", ":80"),
        ("[::1]:80", "no port", "write `[::1]`", ":80"),
        ("::1", "in brackets", "write `[::1]`", "::1"),
        ("[::g]", "not an IPv6 address", "", "[::g]"),
        ("[::1", "not an IPv6 address", "", "[::1"),
        ("[::1]x", "not an IPv6 address", "", "[::1]x"),
        ("a..test", "no empty label", "", "a..test"),
        (".", "no empty label", "", ""),
        ("*.", "no empty label", "", ""),
        ("*.*.test", "`*` stands alone", "`*.example.com`", "*"),
        ("a*.test", "`*` stands alone", "`*.example.com`", "a*"),
        ("a.*", "`*` stands alone", "`*.example.com`", "*"),
        ("caf\u{e9}.test", "not ASCII", "Punycode", "caf\u{e9}"),
        ("a.b c", "' ' may not stand", "", "b c"),
        ("-a.test", "begins nor ends", "", "-a"),
        ("a.b-", "begins nor ends", "", "b-"),
        (&long_label, "at most 63 bytes", "", &long_label),
        (&long_name, "at most 253 bytes", "", &long_name),
    ] {
        let error = HostPattern::parse(text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert!(
            error.help.clone().unwrap_or_default().contains(help),
            "{text}: {error:?}"
        );
        assert_eq!(error.help.is_none(), help.is_empty(), "{text}: {error:?}");
        assert_eq!(
            &text[error.offset..error.offset + error.length],
            marked,
            "{text}"
        );
    }
}

fn router(hosts: &[&str]) -> HostRouter {
    let parsed = hosts.iter().map(|host| HostPattern::parse(host).unwrap());
    HostRouter::build(parsed.zip(0..)).unwrap()
}

#[test]
fn exact_then_longest_wildcard_then_any() {
    let router = router(&[
        "*",
        "*.example.com",
        "*.eu.example.com",
        "admin.example.com",
        "[fd00::1]",
        "127.0.0.1",
        "*.eu",
    ]);
    for (host, site) in [
        ("admin.example.com", 3),
        ("ADMIN.example.Com", 3),
        ("admin.example.com.", 3),
        ("Admin.example.com.:443", 3),
        ("admin.example.com:", 3),
        ("x.admin.example.com", 1),
        ("a.example.com:8080", 1),
        ("a.b.c.example.com", 1),
        ("A.EU.example.com", 2),
        ("a.b.eu.example.com", 2),
        ("eu.example.com", 1),
        ("example.com", 0),
        ("a.eu", 6),
        (".example.com", 0),
        ("a..example.com", 0),
        ("aexample.com", 0),
        ("[fd00::1]", 4),
        ("[FD00:0::1]:8443", 4),
        ("[fd00::2]", 0),
        ("[fd00::1", 0),
        ("[fd00::1]x", 0),
        ("127.0.0.1:80", 5),
        ("admin.example.com:80:80", 0),
        ("admin.example.com:x", 0),
        ("admin.example.com..", 0),
        ("", 0),
        (":80", 0),
    ] {
        assert_eq!(router.find(host), Some(site), "{host}");
    }
    let long = "a.".repeat(100_000) + "example.com";
    assert_eq!(router.find(&long), Some(0));
    assert_eq!(router.find(b"\xff.example.com\xff"), Some(0));
}

#[test]
fn an_unknown_host_has_no_site_without_an_any_site() {
    let router = router(&["a.test"]);
    assert_eq!(router.find(b"a.test"), Some(0));
    assert_eq!(router.find(b"b.a.test"), None);
    assert_eq!(router.find(b""), None);
    assert_eq!(HostRouter::default().find(b"a.test"), None);
}

#[test]
fn a_host_belongs_to_one_site() {
    for host in ["a.test", "*.a.test", "*", "[::1]"] {
        let parsed = HostPattern::parse(host).unwrap();
        let again = HostPattern::parse(&host.to_ascii_uppercase()).unwrap();
        assert!(HostRouter::build([(parsed.clone(), 4), (again.clone(), 4)]).is_ok());
        let error = HostRouter::build([(parsed.clone(), 1), (again, 2)]).unwrap_err();
        assert_eq!(
            error,
            DuplicateHost {
                host: parsed,
                first: 1,
                second: 2
            }
        );
        assert_eq!(
            error.to_string(),
            format!("two sites have the host `{host}`")
        );
    }
}
