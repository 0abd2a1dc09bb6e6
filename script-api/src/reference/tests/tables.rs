//! The tables are well made.

use std::collections::BTreeSet;

use crate::reference::{GROUPS, Signature, TYPES};

#[test]
fn signatures_are_read() {
    let read = Signature::parse("get(key: text | int, f: function) -> any | ()").unwrap();
    assert_eq!(read.name, "get");
    assert_eq!(
        read.parameters.unwrap(),
        [("key", vec!["text", "int"]), ("f", vec!["function"])]
    );
    assert_eq!(read.gives, ["any", "()"]);
    let read = Signature::parse("clear(key: text | ())").unwrap();
    assert_eq!(read.parameters.unwrap(), [("key", vec!["text", "()"])]);
    assert_eq!(read.gives, ["()"]);
    assert_eq!(Signature::parse("now()").unwrap().parameters.unwrap(), []);
    assert_eq!(
        Signature::parse("error: text | ()").unwrap().gives,
        ["text", "()"]
    );
    for bad in [
        "",
        "now",
        "now(",
        "f(a)",
        "f(a: text) ->",
        "f(a : text)",
        "f(a: te xt)",
        "a b: text",
    ] {
        assert_eq!(Signature::parse(bad), None, "{bad}");
    }
}

#[test]
fn every_entry_has_one_name_known_types_and_docs() {
    let own = GROUPS.iter().filter_map(|group| group.of);
    let known: BTreeSet<&str> = TYPES.iter().map(|(name, _)| *name).chain(own).collect();
    for group in GROUPS {
        for entry in group.entries {
            let name = entry.name();
            assert!(
                entry.docs.ends_with(['.', '!']),
                "{}: docs of `{name}` are no sentence",
                group.title
            );
            for signature in entry.parsed() {
                assert_eq!(signature.name, name, "{}", group.title);
                let types = signature
                    .parameters
                    .iter()
                    .flatten()
                    .flat_map(|(_, types)| types);
                for one in types.chain(&signature.gives) {
                    assert!(
                        known.contains(one),
                        "{}: `{name}` speaks of the type `{one}`, which TYPES doesn't explain",
                        group.title
                    );
                }
            }
        }
    }
}

#[test]
fn nothing_is_said_twice() {
    let mut seen = BTreeSet::new();
    for group in GROUPS {
        for entry in group.entries {
            for signature in entry.signatures {
                assert!(
                    seen.insert((group.of, *signature)),
                    "{}: {signature} stands twice",
                    group.title
                );
            }
        }
    }
}
