//! The commands that end by themselves: `check`, `routes`, and wrong use.

use crate::support::command::{Folder, edgewright};

const ROUTES: &str = r#"
route("/{*rest}").to("web");
route("/").respond(200, "root");
route("/api/{version}/{*rest}").methods(["GET", "POST"]).rewrite("/{rest}").to("api");
route("/api/status").respond(200, "fine");
site("admin.example.com").route("/{*rest}").to("web");
"#;

const SETTINGS: &str = "[pools.web]\ntargets = [\"web.default.svc:8080\"]\n\
                        [pools.api]\ntargets = [\"127.0.0.1:9\"]\n";

fn folder() -> Folder {
    Folder::with(&[("routes.rhai", ROUTES), ("edgewright.toml", SETTINGS)])
}

#[test]
fn check_says_nothing_bad_about_a_good_program() {
    let folder = folder();
    let ended = edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.text().contains("error"), "{ended:?}");
}

#[test]
fn check_takes_a_folder_a_toml_a_rhai_and_the_current_folder() {
    let folder = folder();
    let single = Folder::with(&[("edge.rhai", "route(\"/\").respond(200, \"ok\");\n")]);
    for path in [
        folder.path().to_owned(),
        folder.file("edgewright.toml"),
        single.file("edge.rhai"),
    ] {
        let ended = edgewright(["check".as_ref(), path.as_path()]);
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", path.display());
    }
    let here = std::process::Command::new(crate::support::command::BINARY)
        .arg("check")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(here.status.success(), "{here:?}");
}

#[test]
fn check_says_how_each_hook_runs() {
    let routes = "route(\"/\").respond(|req| respond(200, req.host));\n\
                  route(\"/tries\").on_request(|req| {\n    \
                  try { throw \"x\"; } catch { return respond(500); }\n}).respond(200, \"ok\");\n";
    let verbose = |settings: &str| {
        let folder = Folder::with(&[("routes.rhai", routes), ("edgewright.toml", settings)]);
        let ended = edgewright(["check".as_ref(), "--verbose".as_ref(), folder.path()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    let told = verbose("");
    assert!(
        told.contains("routes.rhai:1:12 respond: compiled\n"),
        "{told}"
    );
    assert!(
        told.contains("on_request: interpreted: `try`, at routes.rhai:3:5, can't be compiled\n"),
        "{told}"
    );
    let told = verbose("[script]\ncompile = false\n");
    let off = "interpreted (`[script] compile` is false)\n";
    assert_eq!(told.matches(off).count(), 2, "{told}");
}

#[test]
fn check_can_answer_in_json() {
    let folder = Folder::with(&[(
        "routes.rhai",
        "let ok = 1;\nroute(\"/\").to(\"nowhere\");\n",
    )]);
    let ended = edgewright([
        "check".as_ref(),
        folder.path(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json: serde_json::Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {}", ended.stdout));
    let text = json.to_string();
    assert!(
        text.contains("nowhere") && text.contains("routes.rhai"),
        "{text}"
    );
    let line = |value: &serde_json::Value| value["line"] == 2 || value["place"]["line"] == 2;
    let found = json
        .as_array()
        .or_else(|| {
            json.as_object()?
                .values()
                .find_map(|value| value.as_array())
        })
        .is_some_and(|list| list.iter().any(line));
    assert!(found, "no finding with line 2: {text}");
}

#[test]
fn a_route_that_can_never_match_is_a_warning_and_not_an_error() {
    let folder = Folder::with(&[(
        "routes.rhai",
        "route(\"/x\").respond(200, \"one\");\nroute(\"/x\").respond(200, \"two\");\n",
    )]);
    let ended = edgewright(["check".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = ended.text();
    assert!(
        said.contains("warning") && said.contains("routes.rhai:2:"),
        "{said}"
    );
}

#[test]
fn routes_prints_the_table_in_the_order_of_matching() {
    let folder = folder();
    let ended = edgewright(["routes".as_ref(), folder.path()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let table = ended.stdout;
    let at = |text: &str| {
        table
            .lines()
            .position(|line| line.split_whitespace().any(|word| word.ends_with(text)))
            .unwrap_or_else(|| panic!("no {text} in\n{table}"))
    };
    assert!(at("/api/status") < at("/api/{version}/{*rest}"), "{table}");
    // The catch-all of each site is its last.
    let catch_alls: Vec<usize> = table
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            line.split_whitespace()
                .any(|word| word.ends_with("/{*rest}") && !word.contains("version"))
        })
        .map(|(number, _)| number)
        .collect();
    assert_eq!(catch_alls.len(), 2, "{table}");
    assert!(
        catch_alls
            .iter()
            .any(|&line| line > at("/api/{version}/{*rest}")),
        "{table}"
    );
    let admin = table
        .find("admin.example.com")
        .unwrap_or_else(|| panic!("no site in\n{table}"));
    // The exact host is looked at before the site of any host.
    assert!(admin < table.find("/api/status").unwrap(), "{table}");
    for word in ["GET", "POST", "web", "api"] {
        assert!(table.contains(word), "no {word} in\n{table}");
    }
}

#[test]
fn wrong_use_is_2() {
    for words in [
        vec!["serve"],
        vec!["run", "--nonsense"],
        vec!["check", "a", "b"],
    ] {
        let ended = edgewright(&words);
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(!ended.stderr.is_empty());
    }
    let help = edgewright(["--help"]);
    assert_eq!(help.code, Some(0));
    for command in ["run", "demo", "check", "routes"] {
        assert!(help.stdout.contains(command), "{}", help.stdout);
    }
    assert_eq!(edgewright(["--version"]).code, Some(0));
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let folder = Folder::with(&[]);
    for command in ["check", "run", "routes"] {
        let missing = folder.file("missing");
        let ended = edgewright([command.as_ref(), missing.as_path()]);
        assert!(matches!(ended.code, Some(1 | 2)), "{command}: {ended:?}");
        assert!(ended.text().contains("missing"), "{command}: {ended:?}");
        // A folder without a program.
        let ended = edgewright([command.as_ref(), folder.path()]);
        assert_eq!(ended.code, Some(1), "{command}: {ended:?}");
        assert!(ended.text().contains("routes.rhai"), "{command}: {ended:?}");
    }
}
