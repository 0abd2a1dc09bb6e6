//! A file means the same wherever it stands.

use std::sync::Arc;

use edgewright_script::{engine::Interpreter, load::Loaded};
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// Pieces of programs, with `0`, `1` and `2` for names.
const PIECES: [&str; 22] = [
    "const @0 = 1;",
    "const @0 = |@1| @1 + 1;",
    "const @0 = @1;",
    "let @0 = [1, 2];",
    "let @0 = `@1 ${@1} \\${@2} ${ #{ @1: @2 }.@1 }`;",
    "fn @0() { @1 }",
    "private fn @0(@1) { @1 + @2 }",
    "fn @0(@1) { let @2 = @1; @2 += 1; @2 }",
    "fn @0() { this + 1 }",
    "fn int.@0(@1) { this + @1 }",
    "fn @0(@1, @2) { @1.@2 + `${@1} @2` }",
    "fn @0(@1) { let @2 = @1; [@2].map(|@0| `${@0}${@2}`)[0] }",
    "fn @0(@1) { try { throw @1; } catch (@2) { return @2 + @0(@2, 1); } }",
    "const @0 = #{ @1: 1, @2: |@0| @0 };",
    "let @0 = @1.@2(@1);",
    "let @0 = @1(@2);",
    "let @0 = @1.@2() + @1.len();",
    "for @0 in [@1] { @2.@0 = @0; }",
    "if is_def_var(\"@0\") { let @1 = Fn(\"@2\"); }",
    "let @0 = switch @1 { 1 => @2, _ => @0 };",
    "route(\"/@0\").respond(|req| respond(200, `${@1}${@2(req)}`));",
    "route(\"/@0\").on_request(@1).respond(@2);",
];

/// Names of the program, natives and properties among them.
const NAMES: [&str; 7] = ["a", "b", "K", "len", "header", "path", "keys"];

/// A program that declares all of them.
const DECLARED: &str = "
    const a = 1;
    fn b(x) { x }
    const K = |x| x;
    fn len(a, b, c) { a }
    let header = 3;
    fn path(x) { this }
    fn keys(a, b, c) { a }
";

fn piece() -> impl Strategy<Value = String> {
    let name = || select(&NAMES[..]);
    (select(&PIECES[..]), name(), name(), name()).prop_map(|(piece, a, b, c)| {
        let named = piece.replace("@0", a).replace("@1", b);
        named.replace("@2", c)
    })
}

/// What becomes of a program: why it is refused, or what each of its routes answers.
fn outcome(inputs: &Inputs) -> Vec<String> {
    let found = match try_load_from(inputs) {
        Err(found) => found.0,
        Ok(Loaded { program, warnings }) if warnings.is_empty() => {
            let program = Arc::new(program);
            let mut runner = Runner {
                interpreter: Interpreter::new(program.clone()).unwrap(),
                program,
            };
            let ask = |name: &&str| {
                let mut request = MemoryRequest::new("GET", "h", &format!("/{name}"));
                format!("{:?}", runner.run(&mut request))
            };
            return NAMES.iter().map(ask).collect();
        }
        Ok(Loaded { warnings, .. }) => warnings,
    };
    found.iter().map(|one| format!("{one:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A file does the same, and has the same mistakes in the same places, whether it is the
    /// program itself or imported.
    #[test]
    fn a_file_is_the_same_when_it_is_imported(pieces in vec(piece(), 1..6)) {
        // The value of the last statement of a program may be anything.
        let text = format!("{}\nlet last = 0;", pieces.join("\n"));
        let alone = outcome(&with_files(&text, &[]));
        let imported = outcome(&with_files("import \"lib\";", &[("lib.rhai", &text)]));
        let is_ambiguous = imported.iter().any(|one| one.contains("which one is called"));
        prop_assume!(!is_ambiguous);
        // Nor does it matter what the program itself declares, except where a text may name that
        // or a native: it names neither then.
        let is_unclear = text.contains("Fn(\"len") || text.contains("Fn(\"keys");
        let main = format!("import \"lib\";\n{}", DECLARED);
        let beside = outcome(&with_files(&main, &[("lib.rhai", &text)]));
        prop_assert!(is_unclear || beside == imported, "{:?} {:?} {}", beside, imported, text);
        let imported: Vec<_> = imported
            .iter()
            // A function that is shown as text shows its name in the program.
            .map(|one| one.replace("lib.rhai", "routes.rhai").replace("lib__", ""))
            .collect();
        prop_assert_eq!(imported, alone, "{}", text);
    }
}
