//! Functions of the program that hide natives.

use super::check;

#[test]
fn functions_that_hide_a_native() {
    for (source, place, name, arguments) in [
        (
            "fn contains(a, b) { a == b }",
            "1:19",
            "contains",
            "2 arguments",
        ),
        // Called as `list.contains(x)`.
        (
            "fn contains(x) { this == x }",
            "1:16",
            "contains",
            "2 arguments",
        ),
        ("fn respond(x) { x }", "1:15", "respond", "1 argument"),
        ("fn len() { 0 }", "1:10", "len", "1 argument"),
        (
            "route(\"/\").deny(\"10.0.0.0/8\");\n\nprivate fn deny(req)\n{\n    respond(403)\n}",
            "4:1",
            "deny",
            "2 arguments",
        ),
        ("fn map(f) { f }", "1:11", "map", "2 arguments"),
    ] {
        check(&[(
            source,
            &format!(
                "{place}: error: `{name}` is already a function with {arguments}: a function of \
                 the program would replace it everywhere (choose another name)"
            ),
        )]);
    }
}
