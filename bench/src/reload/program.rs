//! The programs that are loaded in turn.

use std::fmt::Write as _;

/// A program of about so many routes, of which no other number gives the same. The measured request passes a hook.
///
/// Even and odd ones differ in more than a number: in hooks, and in a fifth of their routes.
pub(super) fn program(number: u64, routes: usize) -> String {
    let mut text = format!("const VERSION = \"v{number}\";\n\n");
    text += "fn mark(req) { req.set_header(\"x-version\", VERSION); }\n\n";
    for route in 0..routes.saturating_sub(1) {
        let twist = if number.is_multiple_of(2) && route.is_multiple_of(5) {
            ".on_response(|req, res| res.set_header(\"x-even\", \"1\"))"
        } else {
            ""
        };
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "route(\"/service-{route}/{{id}}/{{*rest}}\").set_header(\"x-route\", \"{route}\"){twist}.to(\"web\");"
        );
    }
    text += "route(\"/{*rest}\").on_request(mark).to(\"web\");\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_so_many_routes_and_each_is_another() {
        for number in [0, 1] {
            let text = program(number, 10);
            assert_eq!(text.matches("route(").count(), 10, "{text}");
        }
        assert_eq!(program(0, 10).matches("on_response").count(), 2);
        assert_ne!(program(1, 10), program(3, 10));
    }
}
