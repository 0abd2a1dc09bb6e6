//! Which words of a file are renamed.

#![allow(clippy::unwrap_used)]

use std::rc::Rc;

use rhai::OptimizationLevel;

use super::*;
use crate::{
    engine::{Limits, sandbox},
    path::PathPolicy,
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

struct Library(&'static str);

impl Files for Library {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        self.read_program(name).map(|file| file.content)
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        let content = match name {
            "lib.rhai" => self.0.as_bytes().to_vec(),
            "other.rhai" => b"const K = 1; fn f(x) { x }".to_vec(),
            _ => return Err(FileError::NotFound(name.to_owned())),
        };
        let path = name.into();
        Ok(ProgramFile { content, path })
    }
}

/// `library` with what is renamed in it between `«` and `»`, when `main` imports it.
fn renamed_beside(library: &'static str, main: &str) -> String {
    let limits = Limits::default().for_loading();
    let mut engine = sandbox::engine(&limits, &PathPolicy::default());
    engine.set_optimization_level(OptimizationLevel::None);
    let natives = Natives::from_engine(&engine);
    let inputs = Inputs {
        file: "routes.rhai".to_owned(),
        source: format!("import \"lib\" as lib;\n{main}"),
        files: Rc::new(Library(library)),
        environment: Rc::new(|_| None),
        pools: Vec::new(),
        limits: Limits::default(),
        path_policy: PathPolicy::default(),
        state: StateStore::default(),
    };
    let files = match collect::collect(&mut engine, &inputs) {
        Ok(files) => files,
        Err(error) => panic!("{error:?} in {library}"),
    };
    let stems = stems(&files, &natives);
    let program = Program {
        files: &files,
        stems: &stems,
        natives: &natives,
        members: files.iter().flat_map(|one| one.file.members()).collect(),
    };
    let number = files.iter().position(|one| one.file.name == "lib.rhai");
    let mut words = Words::default();
    unqualified::find(&program, number.unwrap(), &mut words);
    qualified::find(&program, number.unwrap(), &mut words);
    assert!(words.findings.is_empty(), "{:?}", words.findings);
    marked(library, words)
}

fn marked(library: &str, words: Words) -> String {
    let mut lines: Vec<Vec<char>> = library.lines().map(|line| line.chars().collect()).collect();
    let mut renames = words.renames;
    renames.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, rename) in renames {
        let line = &mut lines[at.line().unwrap() - 1];
        let begin = at.position().unwrap() - 1;
        // A text is renamed between its quotes.
        let begin = begin + usize::from(line[begin] == '"');
        line.insert(begin + rename.written, '»');
        line.insert(begin, '«');
    }
    let lines: Vec<String> = lines.iter().map(|line| line.iter().collect()).collect();
    lines.join("\n")
}

/// Each text has marks around what is renamed.
fn renamed(texts: &[&'static str]) {
    for marked in texts {
        let library: String = marked.replace(['«', '»'], "");
        assert_eq!(renamed_beside(library.leak(), ""), **marked);
    }
}

#[test]
fn declarations_and_uses() {
    renamed(&[
        "const «K» = 1; let «v» = «K» + 1; fn «f»() { «K» + «f»() } «f»(); «v» = 2;",
        "fn «f»(x) { x } let «g» = «f»; «g».call(1); [1].map(«f»); [«K».call()]; const «K» = 1;",
        "private fn «f»() { 1 } fn «g»() { «f»() }",
        "fn «f»() { 1 } fn «g»() { let caller = 1; «f»!() }",
        "const «K» = 1; fn «f»() { global::«K» }",
        "// K\nconst «K» = 1; /* K */ let «s» = \"K\" + 'K' + `K` + #\"K\"#;",
    ]);
}

#[test]
fn variables_of_the_same_name() {
    renamed(&[
        "const «x» = 1; fn «f»(«x», y) { let z = «x»; z + y }",
        "const «x» = 1; let «f» = |«x», y| «x» + y;",
        "const «x» = 1; fn «f»() { let «x» = 2; { let «x» = 3; «x» = 4; } «x» }",
        "const «x» = 1; for («x», i) in [1] { i + «x»; } for (a, «x») in [«x»] { }",
        "const «x» = 1; try { } catch («x») { «x»; }",
        "let «x» = [1]; «x»[0] = 2; «x».push(«x»[«x».len() - 1]); switch «x» { 1 => «x», _ => () }",
    ]);
}

#[test]
fn properties_and_keys() {
    renamed(&[
        "const «x» = #{ x: 1, \"y\": «x» }; «x».x; «x»?.x; «x».x.x[«x»]; this_is.x = «x»;",
        "const «x» = #{ x : #{ x: |«x»| «x» } };",
        "fn «f»() { 1 } let «m» = #{ f: 1, g: «f» }; «m».f; «m».f = 2; «m».g();",
    ]);
}

#[test]
fn calls_and_natives() {
    renamed(&[
        // `len` takes one argument, and `contains` two, with their receiver.
        "fn «len»(a, b, c) { a.len() + len(b) + «len»(c, c, c) } fn «g»(x) { x.len() + «len»(1, 2, 3) }",
        "let «len» = len(\"text\"); let «m» = «len»; fn «f»(«len») { len(«len») }",
        "fn «twice»() { this * 2 } fn «g»(x) { x.«twice»() + x?.«twice»() }",
        "fn int.«twice»() { this * 2 } fn \"Map\".«more»(x) { x } fn «g»(x) { x.«twice»() }",
        "const «int» = 1; fn int.«twice»() { this + «int» }",
        // Not a native, and not with that many arguments: the message is about the function.
        "fn «f»(x) { «f»() + x.«f»(1, 2) }",
        // A key that a map may hold a function under.
        "fn «f»(x) { x } const «M» = #{ g: 1 }; fn «g»(a) { a.f() } fn «h»(m) { m.f = |x| x; m.f(); }",
    ]);
}

#[test]
fn interpolations() {
    renamed(&[
        "const «K» = 1; let «s» = `K ${«K»} K ${ `K ${«K» + 1} K` } K`;",
        "const «K» = 1;\nlet «s» = `\nK ${\n«K»\n} K`; «K»",
        "const «K» = 1; let «s» = `}${#{ K: «K» }.K}{K`;",
    ]);
}

#[test]
fn names_in_texts() {
    renamed(&[
        "fn «f»(x) { x } let «g» = Fn(\"«f»\"); let «h» = Fn(\"len\"); let «i» = \"f\";",
        "fn «f»(x) { is_def_fn(\"«f»\", 1) && is_def_var(\"«K»\") && is_def_var(\"x\") } const «K» = 1;",
        "fn «f»(x) { is_def_fn(\"int\", \"«f»\", 1) }",
    ]);
}

#[test]
fn names_of_other_files() {
    let imports = "import \"other\" as other; ";
    for marked in [
        "const «K» = 1; «K» + «other::K»; [«other::f»]; «other::f»(«K»);",
        "let «other» = 1; fn «f»(«other») { «other» + «other::f»(«other») }",
        "let «x» = `${«other::K»}`; «other :: f»(1); Fn(\"«other::f»\");",
    ] {
        let library = format!("{imports}{}", marked.replace(['«', '»'], ""));
        let expected = format!("{imports}{marked}");
        assert_eq!(renamed_beside(library.leak(), ""), expected);
    }
}

#[test]
fn names_of_the_program_itself_are_not_seen() {
    let main = "const M = 1; let v = 2; fn g(x) { x } fn len(a, b, c) { 1 }";
    for marked in [
        "fn «f»() { «M» + «v» + «g»(1) + len(«f»()) }",
        "fn «f»(«M») { «M».g + «M».«g»(1) }",
        // A key of a map makes `.g(1)` a call of what the map holds.
        "fn «f»(x) { x.g(1) + #{ g: «g» }.g }",
        "let «x» = Fn(\"«g»\");",
    ] {
        let library = marked.replace(['«', '»'], "");
        assert_eq!(renamed_beside(library.leak(), main), marked);
    }
}
