//! Changes of the request where it can't be changed.

use super::{check_hook, lint_hook};
use crate::program::HookKind;

/// Programs that change the request, and where.
const CHANGES: [(&str, &str); 8] = [
    ("fn hook(REQ) { REQ.set_header(\"a\", \"b\"); END }", "1:20"),
    ("fn hook(REQ) { REQ.add_header(\"a\", \"b\"); END }", "1:20"),
    ("fn hook(REQ) { REQ.remove_header(\"a\"); END }", "1:20"),
    ("fn hook(REQ) { REQ.path = \"/x\"; END }", "1:20"),
    ("fn hook(REQ) { REQ.path += \"x\"; END }", "1:20"),
    ("const hook = |REQ| { REQ.path = \"/x\"; END };", "1:26"),
    (
        "fn hook(REQ) { if REQ.path == \"/\" { REQ.remove_header(\"a\"); } END }",
        "1:41",
    ),
    (
        "fn hook(REQ) { [1].map(|x| REQ.set_header(\"a\", x)); END }",
        "1:32",
    ),
];

/// `req` becomes the parameters, the first of which has three characters.
fn source(template: &str, parameters: &str, end: &str) -> (String, usize) {
    let (before, after) = template.split_once("REQ").unwrap();
    let after = after.replace("REQ", "req").replace("END", end);
    let longer = parameters.len() - "REQ".len();
    (format!("{before}{parameters}{after}"), longer)
}

fn moved(place: &str, by: usize) -> String {
    let (line, column) = place.split_once(':').unwrap();
    format!("{line}:{}", column.parse::<usize>().unwrap() + by)
}

#[test]
fn after_it_was_sent() {
    let message = "error: the request was sent already: it can't be changed once the response is there \
                   (change it in `on_request`, or change `res`)";
    for (template, place) in CHANGES {
        let (source, longer) = source(template, "req, res", "()");
        let expected = format!("{}: {message}", moved(place, longer));
        check_hook(HookKind::OnResponse, &[(&source, &expected)]);
    }
}

#[test]
fn while_a_route_is_looked_for() {
    let message = "error: a `.when` only looks at the request (change it in `on_request`)";
    for (template, place) in CHANGES {
        let (source, _) = source(template, "req", "true");
        check_hook(HookKind::When, &[(&source, &format!("{place}: {message}"))]);
    }
}

#[test]
fn everywhere_else_it_can_be_changed() {
    for (template, _) in CHANGES {
        for (kind, end) in [
            (HookKind::OnRequest, "()"),
            (HookKind::To, "\"web\""),
            (HookKind::Respond, "respond(200)"),
        ] {
            let (source, _) = source(template, "req", end);
            let findings = lint_hook(&source, "hook", kind);
            assert!(findings.is_empty(), "{findings:?} in {source}");
        }
    }
}
