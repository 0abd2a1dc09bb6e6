//! Places and names as those who read them know them.

use super::*;

#[test]
fn a_place_is_shown_in_its_own_file() {
    let main = "// one\n// two\nimport \"lib/auth\" as auth;\n";
    let library =
        "const A = 1;\nfn gate(req) {\n    let total = A; total + KEYZ }\nconst KEYS = 2;\n";
    let found = try_load_from(&with_files(main, &[("lib/auth.rhai", library)])).unwrap_err();
    let source = |name: &str| (name == "lib/auth.rhai").then(|| library.to_owned());
    assert_eq!(
        found.render(&source, false),
        "\
error: undefined variable `KEYZ`
 --> lib/auth.rhai:3:28
  |
3 |     let total = A; total + KEYZ }
  |                            ^^^^
  |
  = help: did you mean `KEYS`?"
    );
    // A name of the file is underlined as long as it is written.
    let library = "fn gate(req) { req }\nconst R = [1].map(|x| gate());\n";
    let found = try_load_from(&with_files(main, &[("lib/auth.rhai", library)])).unwrap_err();
    let place = found.0[0].place.clone().unwrap();
    assert_eq!((place.line, place.column, place.length), (2, 23, 4));
    let main = format!("{main}let x = auth::gate();");
    let library = "fn gate(req) { req }\n";
    let found = try_load_from(&with_files(&main, &[("lib/auth.rhai", library)])).unwrap_err();
    let place = found.0[0].place.clone().unwrap();
    assert_eq!(place.to_string(), "routes.rhai:4:9");
    assert_eq!(place.length, "auth::gate".len());
}

#[test]
fn failures_name_the_file() {
    let library = "// first line\nfn gate(req) {\n    deeper(req)\n}\nfn deeper(req) { req.header(\"n\") + missing(req) }\nfn missing(req) { throw \"no \" + req.path }\n\nfn calls(f) { f.call() }\nfn types(req) { other(#{}) }\nfn other(x) { x - 1 }\nconst AT_ONCE = |req| { throw \"in a constant\" };\nfn int.typed(req) { req }";
    let main = "import \"lib/auth\" as auth;\n";
    let files: &[(&str, &str)] = &[("lib/auth.rhai", library)];
    for (route, expected) in [
        (
            ".on_request(auth::gate).to(\"web\")",
            "lib/auth.rhai:6:19: no /a",
        ),
        (
            ".on_request(auth::AT_ONCE).to(\"web\")",
            "lib/auth.rhai:11:25: in a constant",
        ),
        (
            ".on_request(|req| auth::calls(|| { throw \"in main\" })).to(\"web\")",
            "routes.rhai:2:50: in main",
        ),
        (
            ".on_request(|req| auth::types(req)).to(\"web\")",
            "lib/auth.rhai:10:17: `-` can't be called with (a map, a number)",
        ),
        (
            ".respond(|req| auth::calls(1))",
            "lib/auth.rhai:8:17: expected a function, got a number",
        ),
        // An answer that is no verdict is the hook's, which is handed over in the main file.
        (".when(auth::gate).to(\"web\")", "lib/auth.rhai:6:19: no /a"),
    ] {
        let main = format!("{main}route(\"/{{*r}}\"){route};");
        assert_eq!(failure(&main, files), expected, "{route}");
    }
}

#[test]
fn a_route_of_an_imported_file_has_its_place() {
    let main = "import \"more\";\n\n\n\n\nroute(\"/a\").to(\"web\");\n";
    let more = "\nroute(\"/a\").to(\"api\");";
    let loaded = try_load_from(&with_files(main, &[("more.rhai", more)])).unwrap();
    let places = loaded.program.routes.iter();
    let places: Vec<_> = places.map(|route| route.place.to_string()).collect();
    assert_eq!(places, ["more.rhai:2:1", "routes.rhai:6:1"]);
    let warnings: Vec<_> = loaded.warnings.iter().map(|one| one.summary()).collect();
    assert_eq!(
        warnings,
        [
            "routes.rhai:6:1: warning: this route can never match: the one in line 2 of more.rhai takes the same requests first"
        ]
    );
}

#[test]
fn what_a_function_is_called() {
    let main = "import \"lib/auth\" as auth;\nimport \"other\";\nroute(\"/a\").on_request(auth::gate).respond(own);\nfn own(req) { respond(200) }";
    let files = &[
        ("lib/auth.rhai", "fn gate(req) { }"),
        ("other.rhai", "on_request(gate);\nfn gate(req) { }"),
    ];
    let program = program(main, files).program;
    let names: Vec<_> = program
        .hooks
        .iter()
        .map(|hook| program.name_of(&hook.function))
        .collect();
    assert_eq!(names, ["other::gate", "auth::gate", "own"]);
}
