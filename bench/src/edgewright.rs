//! edgewright: the folder that `edgewright run` serves.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::load::{self, BLUE, GREEN};
use crate::nginx::BackendAddresses;

/// What an edgewright is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Where it sends requests.
    pub(crate) backend: BackendAddresses,
    /// Worker threads.
    pub(crate) threads: usize,
    /// Idle upstream connections of the process.
    pub(crate) pool: usize,
    /// Whether it adds the X-Forwarded headers.
    pub(crate) forwarded_headers: bool,
    /// A hook looks the API key up.
    pub(crate) auth_hook: bool,
    /// A hook chooses the pool.
    pub(crate) routing_hook: bool,
}

/// Writes the files to `dir` and gives the command that serves them.
pub(crate) fn command(binary: &Path, dir: &Path, settings: &Settings) -> Result<Command> {
    let routes = routes(settings.auth_hook, settings.routing_hook);
    let files = [("routes.rhai", routes), (KEYS_FILE, keys_json()?)];
    serving(binary, dir, settings, &files)
}

/// The same with another program, which these files are.
pub(crate) fn serving(
    binary: &Path,
    dir: &Path,
    settings: &Settings,
    files: &[(&str, String)],
) -> Result<Command> {
    write(dir, &[("edgewright.toml", config(settings))])?;
    write(dir, files)?;
    let mut command = Command::new(binary);
    command.arg("run").arg(dir);
    Ok(command)
}

/// Writes files by their names to a folder.
pub(crate) fn write(dir: &Path, files: &[(&str, String)]) -> Result<()> {
    for (name, text) in files {
        let file = dir.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn config(settings: &Settings) -> String {
    let Settings {
        listen,
        backend,
        threads,
        pool,
        forwarded_headers,
        ..
    } = settings;
    format!(
        "[server]\nthreads = {threads}\nupstream_keepalive = {pool}\n\
         forwarded_headers = {forwarded_headers}\n\n\
         [[listeners]]\naddress = \"{listen}\"\n\n\
         [pools.{BLUE}]\ntargets = [\"{}\"]\n\n[pools.{GREEN}]\ntargets = [\"{}\"]\n\n\
         [admin]\naddress = \"off\"\n\n[health]\naddress = \"off\"\n\n[log]\nlevel = \"warn\"\n",
        backend.blue, backend.green
    )
}

/// All API keys with their clients, as the auth hook reads them.
pub(crate) fn keys_json() -> Result<String> {
    let keys: serde_json::Map<_, _> = load::keys()
        .map(|(key, client)| (key, client.into()))
        .collect();
    serde_json::to_string(&keys).context("cannot write the keys as JSON")
}

/// The program: one route for everything, with these hooks.
pub(crate) fn routes(auth_hook: bool, routing_hook: bool) -> String {
    let mut text = String::new();
    if auth_hook {
        text += AUTH_HOOK;
    }
    text += "route(\"/{*rest}\")";
    if auth_hook {
        text += ".on_request(require_key)";
    }
    text += if routing_hook {
        ROUTING_HOOK
    } else {
        ".to(\"blue\");\n"
    };
    text
}

/// The file that the auth hook reads.
pub(crate) const KEYS_FILE: &str = "keys.json";

const AUTH_HOOK: &str = r#"const KEYS = table("keys.json");

fn require_key(req) {
    let client = KEYS.get(req.header("x-api-key"));
    if client == () { return respond(401, "unknown API key\n"); }
    req.set_header("x-client", client);
}

"#;

const ROUTING_HOOK: &str =
    ".to(|req| if req.header(\"x-variant\") == \"green\" { \"green\" } else { \"blue\" });\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Settings {
            listen: address(1),
            backend: BackendAddresses {
                blue: address(2),
                green: address(3),
                status: address(4),
            },
            threads: 1,
            pool: 1000,
            forwarded_headers: true,
            auth_hook: false,
            routing_hook: false,
        }
    }

    #[test]
    fn without_hooks_there_is_no_script_in_the_routes() {
        assert_eq!(routes(false, false), "route(\"/{*rest}\").to(\"blue\");\n");
    }

    #[test]
    fn hooks_are_on_the_route() {
        let text = routes(true, true);
        assert!(
            text.contains("route(\"/{*rest}\").on_request(require_key).to(|req|"),
            "{text}"
        );
        assert!(!routes(false, true).contains("require_key"));
    }

    #[test]
    fn the_configuration_names_pools_and_sizes() {
        let text = config(&settings());
        assert!(text.contains("upstream_keepalive = 1000\n"), "{text}");
        assert!(
            text.contains("[pools.green]\ntargets = [\"127.0.0.1:3\"]"),
            "{text}"
        );
    }
}
