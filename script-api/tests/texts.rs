//! Text functions, numbers as text, stable hashes, dates.

#![allow(clippy::unwrap_used)]

mod support;

use edgewright_script::memory::MemoryRequest;
use support::{End, errors, program};

fn value(expression: &str) -> String {
    let source = format!(
        "const RE = regex(\"[,;] *\");
         route(\"/\").respond(|req| {{ let none = (); respond(200, `${{{expression}}}`) }});"
    );
    match program(&source).get("/") {
        End::Answer(200, text) => text,
        other => panic!("{expression}: {other:?}"),
    }
}

fn failure(expression: &str) -> String {
    let source = format!("route(\"/\").respond(|req| respond(200, `${{{expression}}}`));");
    let mut runner = program(&source);
    let failed = runner.run(&mut MemoryRequest::new("GET", "a", "/"));
    failed.unwrap_err().message
}

#[test]
fn texts_are_taken_apart() {
    for (expression, text) in [
        ("\" a \".trimmed()", "a"),
        ("\"//a/b//\".trimmed(\"/\")", "a/b"),
        ("\"00120\".trimmed_start(\"0\")", "120"),
        ("\"a.,\".trimmed_end(\",.\")", "a"),
        ("\"Bearer x y\".without_prefix(\"Bearer \")", "x y"),
        ("\"Basic x\".without_prefix(\"Bearer \") == ()", "true"),
        ("\"a.json\".without_suffix(\".json\")", "a"),
        ("\"a=b=c\".split_once(\"=\")", "[\"a\", \"b=c\"]"),
        ("\"a=b=c\".split_once_rev(\"=\")", "[\"a=b\", \"c\"]"),
        ("\"a\".split_once(\"=\") == ()", "true"),
        ("\"aXbXc\".count(\"X\")", "2"),
        ("RE.split(\"a, b;c\")", "[\"a\", \"b\", \"c\"]"),
        ("RE.split(none)", "[]"),
        ("RE.find_all(\"a, b;c\")", "[\", \", \";\"]"),
    ] {
        assert_eq!(value(expression), text, "{expression}");
    }
    assert!(failure("\"a\".count(\"\")").contains("something to count"));
}

#[test]
fn texts_are_made() {
    for (expression, text) in [
        ("\"ab\".repeat(3)", "ababab"),
        ("\"7\".padded_start(3, \"0\")", "007"),
        (
            "html_escape(`<a href=\"x\">'&'</a>`)",
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;",
        ),
        ("fixed(1.0 / 3.0, 3)", "0.333"),
        ("fixed(2, 2)", "2.00"),
        ("fixed(9223372036854775807, 0)", "9223372036854775807"),
        (
            "is_ip(\"10.0.0.1\") && is_ip(\"fe80::1\") && !is_ip(\"10.0.0\") && !is_ip(none)",
            "true",
        ),
    ] {
        assert_eq!(value(expression), text, "{expression}");
    }
    assert!(failure("\"ab\".repeat(1000000)").contains("string"));
    assert!(failure("\"ab\".padded_start(1000000, \"x\")").contains("string"));
}

#[test]
fn what_is_absent_stays_absent() {
    for expression in [
        "trimmed(none)",
        "none.trimmed(\"/\")",
        "none.without_prefix(\"x\")",
        "none.split_once(\"=\")",
        "none.repeat(2)",
        "none.padded_start(2, \"0\")",
        "html_escape(none)",
        "fixed(none, 2)",
        "md5(none)",
        "crc32(none)",
        "bucket(none, 10)",
        "iso_date(none)",
        "parse_iso_date(none)",
    ] {
        assert_eq!(
            value(&format!("({expression}) == ()")),
            "true",
            "{expression}"
        );
    }
}

#[test]
fn hashes_are_those_of_others() {
    for (expression, text) in [
        (
            "md5(\"message digest\").hex()",
            "f96b697d7cb7938d525a2f31aaf161d0",
        ),
        // nginx's documentation of secure_link.
        (
            "base64url(md5(\"2147483647/s/link127.0.0.1 secret\"))",
            "_e4Nc3iduzkWRm01TBBNYw",
        ),
        ("crc32(\"123456789\")", "3421780262"),
        ("bucket(\"alice\", 100)", "7"),
        ("bucket(7, 1000) == bucket(\"7\", 1000)", "true"),
    ] {
        assert_eq!(value(expression), text, "{expression}");
    }
    assert!(failure("bucket(\"a\", 0)").contains("1 to 1000000 parts"));
    assert!(failure("random_int(2, 1)").contains("2 is above 1"));
    let die: i64 = value("random_int(1, 6)").parse().unwrap();
    assert!((1..=6).contains(&die));
}

#[test]
fn dates_of_rfc_3339_go_both_ways() {
    assert_eq!(value("iso_date(784111777)"), "1994-11-06T08:49:37.000Z");
    assert_eq!(
        value("parse_iso_date(\"1994-11-06T10:19:37+01:30\")"),
        "784111777.0"
    );
    assert_eq!(value("parse_iso_date(\"yesterday\") == ()"), "true");
}

#[test]
fn a_value_that_is_thrown_away_is_found_at_load() {
    for call in ["\"a\".trimmed()", "bucket(\"a\", 2)", "html_escape(\"a\")"] {
        let found = errors(&format!(
            "route(\"/\").on_request(|req| {{ {call}; let x = 1; }}).to(\"web\");"
        ));
        assert!(found.contains("thrown away"), "{call}: {found}");
    }
}
