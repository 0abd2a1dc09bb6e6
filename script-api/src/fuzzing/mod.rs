//! What takes text from programs and clients, fed with whatever a fuzzer thinks of.
//!
//! A target takes any bytes and panics when what the code makes of them is wrong: each checks
//! properties, most against a second and simpler way to the same result. The crate `fuzz` gives them
//! to libFuzzer; a test runs each over the inputs that are kept in `fuzz/corpus`.

mod cookies;
mod cors_origin;
mod forms_and_json;
mod host;
mod jwt;
mod loader;
mod path;
mod query;
mod router;

pub use cookies::cookies;
pub use cors_origin::cors_origin;
pub use forms_and_json::forms_and_json;
pub use host::host;
pub use jwt::jwt;
pub use loader::loader;
pub use path::path;
pub use query::query;
pub use router::router;

/// The first `N` lines of an input and what is behind them; what it hasn't got is empty.
fn lines<const N: usize>(mut text: &str) -> ([&str; N], &str) {
    let lines = [(); N].map(|()| {
        let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
        text = rest;
        line
    });
    (lines, text)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The name of its folder, and what it does with an input.
    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 9] = [
        ("cookies", super::cookies),
        ("cors_origin", super::cors_origin),
        ("forms_and_json", super::forms_and_json),
        ("host", super::host),
        ("jwt", super::jwt),
        ("loader", super::loader),
        ("path", super::path),
        ("query", super::query),
        ("router", super::router),
    ];

    #[test]
    fn the_kept_inputs_show_nothing_wrong() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        for (name, target) in TARGETS {
            let inputs = fs::read_dir(corpus.join(name)).expect("each target has a folder");
            let mut count = 0;
            for input in inputs {
                let input = input.expect("a folder can be listed").path();
                target(&fs::read(&input).expect("an input can be read"));
                count += 1;
            }
            assert!(count > 1, "{name} has only {count} inputs");
        }
    }
}
