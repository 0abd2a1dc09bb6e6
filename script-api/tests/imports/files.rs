//! Which files are read, and in which order they run.

use edgewright_script::load::{LoadError, load};

use super::*;

#[test]
fn files_run_once_and_before_those_that_import_them() {
    let main = r#"
        pool("main", ["127.0.0.1:1"]);
        import "b" as b;
        import "a" as a;
        import "./a.rhai" as again;
        import ".//link" as linked;
        route("/{*r}").respond(200, a::K + again::K + linked::K + b::K);
    "#;
    let program = &mut program(
        main,
        &[
            ("a.rhai", "pool(\"a\", [\"127.0.0.1:1\"]); const K = \"a\""),
            (
                "b.rhai",
                "import \"link\" as a;\npool(\"b\", [\"127.0.0.1:1\"]);\nconst K = `b${a::K}`;",
            ),
            ("link.rhai", "->a.rhai"),
        ],
    );
    assert_eq!(program.get("/a"), End::Answer(200, "aaaba".into()));
    let declared = program.program.pools.iter();
    let declared = declared.filter(|pool| pool.targets.is_some());
    let names: Vec<_> = declared.map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "main"]);
}

#[test]
fn files_of_every_shape_end_where_they_end() {
    for library in [
        "",
        "\n",
        "// only a comment",
        "/* a comment */",
        "const K = 1",
        "const K = 1;",
        "fn f() { }",
        "\u{feff}const K = 1;\r\n\r\nfn f() {}\r\n",
        "let x = `text\n over lines`",
        "if true { let x = 1; }",
    ] {
        answers(
            "import \"lib\"; route(\"/{*r}\").respond(200, \"main\");",
            &[("lib.rhai", library)],
            "main",
        );
    }
    // The program's own file may end in the import.
    let mut program = program(
        "import \"lib\" as lib",
        &[("lib.rhai", "route(\"/{*r}\").respond(200, \"lib\")")],
    );
    assert_eq!(program.get("/a"), End::Answer(200, "lib".into()));
}

#[test]
fn circles_of_imports() {
    let circle = "(put what both need into a file of its own, which both import)";
    refused(
        "import \"a\" as a;",
        &[
            ("a.rhai", "import \"b\" as b;"),
            ("b.rhai", "\n  import \"./c\" as c;"),
            ("c.rhai", "import \"b\" as b;"),
        ],
        &format!(
            "c.rhai:1:8: error: the imports go in a circle: `b.rhai` imports `c.rhai` imports `b.rhai` {circle}"
        ),
    );
    refused(
        "import \"a\" as a;",
        &[
            ("a.rhai", "import \"link\" as me;"),
            ("link.rhai", "->a.rhai"),
        ],
        &format!(
            "a.rhai:1:8: error: the imports go in a circle: `a.rhai` imports `a.rhai` {circle}"
        ),
    );
    refused(
        "import \"a\" as a;",
        &[("a.rhai", "import \"routes\" as main;")],
        &format!(
            "a.rhai:1:8: error: the imports go in a circle: `routes.rhai` imports `a.rhai` imports `routes.rhai` {circle}"
        ),
    );
}

#[test]
fn bounds_of_imports() {
    let chain = |files: usize| -> Vec<(String, String)> {
        let import = |next: usize| {
            if next < files {
                format!("import \"f{next}\" as f;")
            } else {
                String::new()
            }
        };
        (0..files)
            .map(|n| (format!("f{n}.rhai"), import(n + 1)))
            .collect()
    };
    let of = |files: &[(String, String)]| {
        let files: Vec<_> = files
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect();
        try_load_from(&with_files("import \"f0\" as f;", &files)).map_err(|e| e.to_string())
    };
    assert!(of(&chain(64)).is_ok());
    assert_eq!(
        of(&chain(65)).unwrap_err(),
        "f63.rhai:1:8: error: a program imports 64 files at most"
    );

    let large = " ".repeat(1024 * 1024 + 1);
    refused(
        "import \"large\" as large;",
        &[("large.rhai", &large)],
        "routes.rhai:1:8: error: `large.rhai` is larger than 1 MiB",
    );
    let long = format!("const K = 1; // {}", "é".repeat(65_000));
    refused(
        "import \"long\" as long;",
        &[("long.rhai", &long)],
        "long.rhai:1:1: error: a line of a program with imports has 65000 characters at most",
    );
    // Each file ends with a line of its own.
    let lines = |count: usize| "\n".repeat(count);
    let main = format!("import \"lines\" as lines;{}fn f() {{ oops }}", lines(1));
    refused(
        &main,
        &[("lines.rhai", &lines(64_996))],
        "routes.rhai:2:10: error: undefined variable `oops`",
    );
    refused(
        &main,
        &[("lines.rhai", &lines(64_997))],
        "routes.rhai:1:1: error: the program and all files it imports have more than 65000 lines",
    );
}

#[test]
fn files_that_cannot_be_read() {
    refused(
        "import \"away\" as away;",
        &[("away.rhai", "elsewhere")],
        "routes.rhai:1:8: error: `away.rhai` lies outside the configuration's folder",
    );
    let swapped = load(&with_files("import \"a\";", &[("a.rhai", "swapped")]));
    assert!(matches!(swapped, Err(LoadError::Changed)));
    refused(
        "import \"lib/a\";",
        &[("lib/a.rhai", "import \"b\";"), ("lib/b.rhai", "")],
        "lib/a.rhai:1:8: error: there is no file `b.rhai` in the configuration's folder (paths begin at the configuration's folder)",
    );
    struct Binary;
    impl Files for Binary {
        fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
            self.read_program(name).map(|file| file.content)
        }
        fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
            Ok(ProgramFile {
                content: b"const K = 1;\n\nlet x = \"\xff\";".to_vec(),
                path: name.into(),
            })
        }
    }
    let inputs = Inputs {
        files: Rc::new(Binary),
        ..support::inputs("import \"binary\" as b;")
    };
    assert_eq!(
        try_load_from(&inputs).unwrap_err().to_string(),
        "binary.rhai:3:1: error: the file is not UTF-8"
    );
}
