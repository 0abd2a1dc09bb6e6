//! `table(..)` from files: JSON, columns and lines.

#![allow(clippy::unwrap_used)]

mod support;

use std::{collections::HashMap, rc::Rc};

use support::{End, MemoryFiles, inputs, program_from, try_load_from};

const FILES: [(&str, &str); 7] = [
    ("keys.json", r#"{"k-alice": {"name": "alice", "n": 1}}"#),
    ("twice.json", "{\"a\": 1,\n \"a\": 2}"),
    (
        "tenants.csv",
        "host,pool,plan\nacme.example,web,gold\nglobe.example,canary,free\n",
    ),
    ("pairs.CSV", "/old,/new\n/o,/n\n"),
    ("semi.csv", "key;value\na;1,5\n"),
    ("bad.csv", "a,1\nb\n"),
    ("agents.txt", "# blocked\nBadBot\n\n  EvilBot/2 \n"),
];

/// The answer of the last hook of a program with these files.
fn answer(source: &str) -> String {
    let mut inputs = inputs(source);
    inputs.files = Rc::new(MemoryFiles(HashMap::from(FILES)));
    match program_from(&inputs).get("/") {
        End::Answer(200, text) => text,
        other => panic!("{other:?}"),
    }
}

fn asked(table: &str, answer_of: &str) -> String {
    answer(&format!(
        "const T = {table}; route(\"/\").respond(|req| respond(200, `${{{answer_of}}}`));"
    ))
}

#[test]
fn tables_come_from_files_by_their_extension() {
    for (table, answer_of, answer) in [
        (
            "table(\"keys.json\")",
            "T.get(\"k-alice\").name + T.len()",
            "alice1",
        ),
        (
            "table(\"pairs.CSV\")",
            "T.get(\"/old\") + T.get(\"/o\") + T.len()",
            "/new/n2",
        ),
        (
            "table(\"tenants.csv\", #{ key: \"host\" })",
            "T.get(\"acme.example\").plan + T.get(\"globe.example\").pool",
            "goldcanary",
        ),
        (
            "table(\"tenants.csv\", #{ key: \"host\", value: \"pool\" })",
            "T.get(\"acme.example\") + (T.get(\"none\") == ())",
            "webtrue",
        ),
        (
            "table(\"semi.csv\", #{ key: \"key\", value: \"value\", separator: \";\" })",
            "T.get(\"a\")",
            "1,5",
        ),
        (
            "table(\"agents.txt\")",
            "T.contains(\"EvilBot/2\") && !T.contains(\"# blocked\") && T.len() == 2 && T.get(\"BadBot\")",
            "true",
        ),
    ] {
        assert_eq!(asked(table, answer_of), answer, "{table}");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_shown_with_its_line() {
    for (table, says) in [
        (
            "table(\"twice.json\")",
            "twice.json:2: no table in JSON: the key `a` stands there twice",
        ),
        (
            "table(\"bad.csv\")",
            "bad.csv:2: the row has 1 columns, and must have 2",
        ),
        (
            "table(\"tenants.csv\")",
            "tenants.csv:1: a table of two columns",
        ),
        (
            "table(\"tenants.csv\", #{ key: \"hots\" })",
            "there is no column `hots` (did you mean `host`?)",
        ),
        (
            "table(\"tenants.csv\", #{ kye: \"host\" })",
            "did you mean `key`?",
        ),
        (
            "table(\"tenants.csv\", #{ value: \"pool\" })",
            "say which one has the keys",
        ),
        (
            "table(\"tenants.csv\", #{ key: 1 })",
            "`key` of `table` is text",
        ),
        (
            "table(\"semi.csv\", #{ key: \"a\", separator: \"--\" })",
            "is one character",
        ),
        (
            "table(\"keys.json\", #{ key: \"a\" })",
            "`keys.json` is no .csv file",
        ),
        ("table(\"none.csv\")", "there is no file `none.csv`"),
    ] {
        let mut inputs = inputs(&format!("const T = {table}; route(\"/\").respond(200);"));
        inputs.files = Rc::new(MemoryFiles(HashMap::from(FILES)));
        let found = try_load_from(&inputs).unwrap_err().to_string();
        assert!(found.contains(says), "{table}: {found}");
        assert!(found.contains("routes.rhai:1:"), "{table}: {found}");
    }
}

#[test]
fn tables_are_made_at_load_only() {
    let mut inputs = inputs(
        "route(\"/\").respond(|req| respond(200, table(\"tenants.csv\", #{ key: \"host\" }).len()));",
    );
    inputs.files = Rc::new(MemoryFiles(HashMap::from(FILES)));
    let found = try_load_from(&inputs).unwrap_err().to_string();
    assert!(found.contains("it belongs to the top level"), "{found}");
}

#[test]
fn a_quote_that_is_not_closed_is_a_mistake() {
    let mut inputs = inputs("const T = table(\"open.csv\");\nroute(\"/\").to(\"web\");");
    inputs.files = Rc::new(MemoryFiles(HashMap::from([("open.csv", "a,\"b\nc,d\n")])));
    let found = try_load_from(&inputs).unwrap_err().to_string();
    assert!(found.contains("is not closed"), "{found}");
}
