//! What takes bytes from clients and from whoever configures the proxy, fed with whatever a fuzzer
//! thinks of: as `edgewright_script::fuzzing`, whose module says how.

use std::{cell::OnceCell, fs};

use tempfile::TempDir;

use crate::config::{CONFIG_FILE, Overrides, ROUTES_FILE, load};
pub use crate::proxy::fuzzing::{
    accept_encoding, coded_body, credentials, forwarded, hygiene, pieces,
};
use crate::proxy_protocol::{Beginning, read};

/// The input is what a connection begins with. What is said of its first bytes stays true when more come, and a header ends
/// where it says.
pub fn proxy_header(input: &[u8]) {
    let whole = read(input);
    // Each length is looked at; longer headers are those of version 2, which say how long they are.
    let input = &input[..input.len().min(512)];
    for end in 0..=input.len() {
        match read(&input[..end]) {
            Beginning::Part => {}
            said => {
                assert_eq!(said, whole, "of the first {end} bytes");
                if let Beginning::Header(length, _) = said {
                    assert!(length <= end, "{length} of {end} bytes");
                }
                return;
            }
        }
    }
}

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// The input is `edgewright.toml`.
pub fn settings(input: &[u8]) {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            let folder = TempDir::new().expect("there is room for a folder");
            fs::write(folder.path().join(ROUTES_FILE), "").expect("there is room for a program");
            folder
        });
        let path = folder.path();
        fs::write(path.join(CONFIG_FILE), input).expect("there is room for a file");
        match load(path, &Overrides::default()) {
            Ok(loaded) => {
                let config = loaded.config;
                assert!(!config.listeners.is_empty());
                for (name, pool) in &config.pools {
                    assert!(crate::config::check_pool_name(name).is_ok());
                    assert!(!pool.targets.is_empty());
                }
                // A bound of nothing would refuse everything, or nothing.
                assert!(config.limits.request_header > 0 && config.script.operations > 0);
            }
            Err(found) => {
                assert!(found.has_errors(), "refused without a reason");
                let text = |_: &str| String::from_utf8(input.to_vec()).ok();
                let _ = found.render(&text, true);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The name of its folder, and what it does with an input.
    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 8] = [
        ("accept_encoding", super::accept_encoding),
        ("coded_body", super::coded_body),
        ("credentials", super::credentials),
        ("forwarded", super::forwarded),
        ("hygiene", super::hygiene),
        ("pieces", super::pieces),
        ("proxy_header", super::proxy_header),
        ("settings", super::settings),
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
