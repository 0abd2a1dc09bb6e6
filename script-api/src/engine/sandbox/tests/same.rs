//! Where our functions stand in the place of Rhai's own, they say the same.

use rhai::{Dynamic, Engine, packages::*};

use super::super::engine;
use crate::{engine::Limits, path::PathPolicy};

/// Rhai's own functions.
fn rhai() -> Engine {
    let mut engine = Engine::new_raw();
    engine.register_global_module(StandardPackage::new().as_shared_module());
    engine
}

fn ours() -> Engine {
    engine(&Limits::default(), &PathPolicy::default())
}

/// What comes out, with the variables that it changed.
fn said(engine: &Engine, expression: &str) -> String {
    let value = engine.eval::<Dynamic>(expression);
    match value {
        Ok(value) => format!("{} {value:?}", value.type_name()),
        Err(error) => panic!("{expression}: {error}"),
    }
}

#[test]
fn of_texts() {
    let (rhai, ours) = (rhai(), ours());
    for text in ["", "a", "a,b", ",", "a, b,,c", "aXbXc", "ä,ö", "  x y  "] {
        for call in [
            "split()",
            "split(\",\")",
            "split(',')",
            "split(\"\")",
            "split(\", \")",
            "split(\",\", 2)",
            "split(',', 2)",
            "split(\",\", 0)",
            "split(',', -1)",
            "split(\",\", 99)",
            "split(1)",
            "split(-1)",
            "split_rev(\",\")",
            "split_rev(',')",
            "split_rev(\",\", 2)",
            "split_rev(',', 2)",
            "split_rev(\",\", -2)",
            "to_chars()",
        ] {
            let expression = format!("let s = \"{text}\"; s.{call}");
            assert_eq!(
                said(&ours, &expression),
                said(&rhai, &expression),
                "{expression}"
            );
        }
        for call in [
            "pad(5, 'x')",
            "pad(5, \"xy\")",
            "pad(-5, \"xy\")",
            "pad(1, \"ä\")",
            "pad(0, 'x')",
            "replace(\",\", \";;\")",
            "replace(',', ';')",
            "replace(\"\", \"-\")",
            "replace(\"a\", \"\")",
        ] {
            let expression = format!("let s = \"{text}\"; s.{call}; s");
            assert_eq!(
                said(&ours, &expression),
                said(&rhai, &expression),
                "{expression}"
            );
        }
    }
}

#[test]
fn of_arrays_and_maps() {
    let (rhai, ours) = (rhai(), ours());
    for expression in [
        "[1, [2, \"x\"], #{ a: 'c', \"b\\n\": () }].to_string()",
        "[1.5, 1e20, true, |x| x == 1].to_string().len()",
        "#{ a: [], b: #{} }.to_debug()",
        "`${[1, \"a\"]} ${#{ a: 1 }}`",
        "\"\" + [\"a\\u0001\"] + #{}",
        "[0..3, 0..=3].to_string()",
        "#{ a: [1, 2.5, true, ()], b: #{ c: \"x\" } }.to_json()",
        "[1, \"a\", [2]] == [1, \"a\", [2]]",
        "[1, \"a\"] == [1, 2]",
        "[1, 2] != [1, 2.0]",
        "[1] == []",
        "[[1], [2]] != [[1], [3]]",
        "#{ a: [1] } == #{ a: [1] }",
        "#{ a: 1, b: 2 } == #{ a: 1, c: 2 }",
        "#{ a: 1 } != #{ b: 1 }",
        "[1, 2, 3].contains(2)",
        "[1, 2, 3].contains(2.0)",
        "[1, \"a\"].contains('a')",
        "[1, (), [2]].contains([2])",
        "[1, \"a\"].contains(#{})",
        "2 in [1, 2]",
        "[1, 2, 1].index_of(1)",
        "[1, 2, 1].index_of(1, 1)",
        "[1, 2, 1].index_of(1, -1)",
        "[1, 2, 1].index_of(1, -99)",
        "[1, 2, 1].index_of(1, 99)",
        "[[1], [2]].index_of([2])",
        "[\"a\", \"b\"].index_of(\"b\")",
        "let a = [1]; a.pad(3, 0); a",
        "let a = [1]; a.pad(-3, 0); a",
        "let a = [1, 2]; a.pad(1, 0); a",
        "[3, 1, 2].order(|a, b| a - b)",
        "let a = [3, 1, 2]; a.sort(|a, b| b - a); a",
        "let a = [1, 1, 2]; a.dedup(|a, b| a == b); a",
    ] {
        assert_eq!(
            said(&ours, expression),
            said(&rhai, expression),
            "{expression}"
        );
    }
}
