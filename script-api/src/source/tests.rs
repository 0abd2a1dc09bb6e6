#![allow(clippy::unwrap_used)]

use super::*;

/// `routes.rhai` imports `lib/auth.rhai` as `auth`, which imports `keys.rhai` as `k`.
fn source() -> Source {
    let file = |name: &str, first_line, aliases: &[(&str, usize)], declared: &[(&str, bool)]| {
        let aliases = aliases.iter();
        let declared = declared.iter();
        SourceFile {
            name: name.to_owned(),
            first_line,
            aliases: aliases.map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            declared: declared.map(|(name, p)| ((*name).to_owned(), *p)).collect(),
        }
    };
    let mut stems = Stems::default();
    stems.add("keys.rhai", |_| false);
    stems.add("lib/auth.rhai", |_| false);
    let mut renames = Renames::default();
    let rename = |name: &str, written| Rename {
        name: name.to_owned(),
        written,
    };
    renames.insert(Position::new(4, 3), rename("lib_auth__gate", 4));
    renames.insert(Position::new(7, 1), rename("lib_auth__gate", 10));
    Source::linked(
        "keys\n;\n\nauth\n;\nmain\nmain".to_owned(),
        vec![
            file("keys.rhai", 1, &[], &[("K", true)]),
            file(
                "lib/auth.rhai",
                3,
                &[("k", 0)],
                &[("gate", true), ("own", false)],
            ),
            file("routes.rhai", 6, &[("auth", 1)], &[("main", false)]),
        ],
        stems,
        renames,
    )
}

#[test]
fn lines_belong_to_files() {
    let place = |line, column, length| source().place(Position::new(line, column), length);
    let shown = |line| place(line, 2, 1).unwrap().to_string();
    let all: Vec<_> = (1..=8).map(shown).collect();
    assert_eq!(
        all,
        [
            "keys.rhai:1:2",
            "keys.rhai:2:2",
            "lib/auth.rhai:1:2",
            "lib/auth.rhai:2:2",
            "lib/auth.rhai:3:2",
            "routes.rhai:1:2",
            "routes.rhai:2:2",
            "routes.rhai:3:2"
        ]
    );
    assert_eq!(source().place(Position::NONE, 1), None);
    let start = source().place_or_start(Position::NONE);
    assert_eq!(start.to_string(), "routes.rhai:1:1");
}

#[test]
fn what_is_underlined_is_as_long_as_it_is_written() {
    let length = |line, column, length| {
        let place = source().place(Position::new(line, column), length);
        place.unwrap().length
    };
    let renamed = "lib_auth__gate".len();
    assert_eq!(length(4, 3, renamed), 4);
    assert_eq!(length(7, 1, renamed), 10);
    assert_eq!(length(4, 3, renamed + 2), 6, "in quotes");
    assert_eq!(length(4, 3, 3), 3);
    assert_eq!(length(4, 4, renamed), renamed);
    assert_eq!(length(4, 4, 0), 1);
}

#[test]
fn names_are_shown_as_the_reader_writes_them() {
    let source = source();
    let text = "`lib_auth__gate` needs `keys__K` and `main`";
    for (reader, expected) in [
        ("routes.rhai", "`auth::gate` needs `keys::K` and `main`"),
        ("lib/auth.rhai", "`gate` needs `k::K` and `main`"),
        ("keys.rhai", "`lib_auth::gate` needs `K` and `main`"),
        ("", "`lib_auth::gate` needs `keys::K` and `main`"),
    ] {
        assert_eq!(source.readable(text, reader), expected, "{reader}");
    }
    let mut finding = Diagnostic::error("`lib_auth__gate`").help("see keys__K");
    source.make_readable(&mut finding);
    assert_eq!(finding.summary(), "error: `auth::gate` (see keys::K)");
    let one_file = Source::one_file("routes.rhai", "");
    assert_eq!(one_file.readable(text, "routes.rhai"), text);
}

#[test]
fn names_that_can_be_used_at_a_place() {
    let source = source();
    let (in_keys, in_auth, in_main) = (1, 3, 6);
    for (name, line, expected) in [
        ("keys__K", in_keys, Some("K")),
        ("keys__K", in_auth, Some("k::K")),
        ("keys__K", in_main, None),
        ("lib_auth__gate", in_main, Some("auth::gate")),
        ("lib_auth__own", in_main, None),
        ("lib_auth__own", in_auth, Some("own")),
        ("main", in_main, Some("main")),
        ("main", in_auth, None),
        ("native", in_auth, Some("native")),
    ] {
        let found = source.name_at(name, Position::new(line, 1));
        assert_eq!(found.as_deref(), expected, "{name} in line {line}");
    }
    assert_eq!(source.own_name("lib_auth__own"), "own");
    assert_eq!(source.own_name("other__own"), "other__own");
}

#[test]
fn a_word_that_is_not_where_it_should_be_is_an_error() {
    let mut renames = Renames::default();
    let rename = Rename {
        name: "lib__f".to_owned(),
        written: 1,
    };
    renames.insert(Position::new(1, 4), rename.clone());
    let compile = |text: &str, renames: Renames| {
        let source = Source::linked(text.to_owned(), Vec::new(), Stems::default(), renames);
        source.compile(&mut Engine::new_raw())
    };
    let ast = compile("fn f() { }", renames).unwrap();
    let names: Vec<_> = ast
        .iter_functions()
        .map(|one| one.name.to_owned())
        .collect();
    assert_eq!(names, ["lib__f"]);
    let mut renames = Renames::default();
    renames.insert(Position::new(1, 3), rename);
    assert!(compile("fn f() { }", renames).is_err());
}
