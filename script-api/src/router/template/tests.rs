#![allow(clippy::unwrap_used)]

use super::*;
use crate::router::{PathRouter, Pattern};
use std::ops::ControlFlow;

/// What `template` makes of `path`, which `pattern` fits.
fn render(pattern: &str, template: &str, path: &str) -> String {
    let pattern = Pattern::parse(pattern).unwrap();
    let names: Vec<&str> = pattern.names().collect();
    let template = Template::parse(template, &names).unwrap();
    PathRouter::build([&pattern])
        .visit(path, |_, captures| {
            let mut out = String::from(">");
            template.render(path, captures, &mut out);
            ControlFlow::Break(out)
        })
        .unwrap()
}

#[test]
fn captures_are_pasted_as_they_stand() {
    let pattern = "/api/{version}/{*rest}";
    let path = "/api/v%201/a/b%25";
    assert_eq!(render(pattern, "/{rest}", path), ">/a/b%25");
    assert_eq!(
        render(pattern, "/{version}/x/{rest}/{version}", path),
        ">/v%201/x/a/b%25/v%201"
    );
    assert_eq!(render(pattern, "/x", path), ">/x");
    assert_eq!(render(pattern, "/{rest}", "/api/v1"), ">/");
    assert_eq!(render(pattern, "{rest}{version}", "/api/v1/"), ">v1");
    assert_eq!(render("/{a}", "/{{{a}}}{{a}}", "/x"), ">/{x}{a}");
}

#[test]
fn a_capture_adds_no_parameters_to_a_query() {
    assert_eq!(
        render("/{*rest}", "/x/{rest}?q={rest}&b=1", "/1+1=2&role=a;b/c"),
        ">/x/1+1=2&role=a;b/c?q=1%2B1%3D2%26role%3Da%3Bb/c&b=1"
    );
}

#[test]
fn captures_of_another_path_give_nothing() {
    let template = Template::parse("/{a}", &["a"]).unwrap();
    let mut out = String::new();
    template.render("/a", &Captures::default(), &mut out);
    assert_eq!(out, "/");
}

#[test]
fn constant_and_query() {
    for (text, constant, query) in [
        ("/x", true, false),
        ("/x?a=1", true, true),
        ("/{{a}}", true, false),
        ("/{a}", false, false),
        ("https://x.test/{a}?", false, true),
    ] {
        let template = Template::parse(text, &["a"]).unwrap();
        assert_eq!(template.is_constant(), constant, "{text}");
        assert_eq!(template.has_query(), query, "{text}");
        assert_eq!(template.to_string(), text);
    }
}

#[test]
fn each_mistake_is_named_and_marked() {
    let names = ["version", "rest"];
    for (text, message, help, marked) in [
        (
            "/{vesion}",
            "`vesion`: the pattern has `version`, `rest`",
            "did you mean `{version}`?",
            "{vesion}",
        ),
        (
            "/x{*rest}",
            "unknown capture `*rest`",
            "did you mean `{rest}`?",
            "{*rest}",
        ),
        ("/{q}", "unknown capture `q`", "", "{q}"),
        ("/{}", "unknown capture ``", "", "{}"),
        ("/a{rest", "unclosed `{`", "write `{{`", "{rest"),
        ("/a}b", "`}` without a `{`", "write `}}`", "}"),
        ("/a b", "' ' may not stand in a URI", "write `%20`", " "),
        (
            "/a\r\nb",
            "'\\r' may not stand in a URI",
            "write `%0D`",
            "\r",
        ),
        (
            "/caf\u{e9}",
            "may not stand in a URI",
            "write `%C3%A9`",
            "\u{e9}",
        ),
    ] {
        let error = Template::parse(text, &names).unwrap_err();
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
    let error = Template::parse::<&str>("/{a}", &[]).unwrap_err();
    assert_eq!(error.message, "unknown capture `a`: the pattern has none");
}
