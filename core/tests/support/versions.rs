//! Programs that say which version they are, and putting one in the place of another.

use std::fs;

use super::proxy::Proxy;
use super::wait::{SOON, until};

/// A program that says which version it is: by its own answer, around an upstream's, and in the log when a
/// request has ended. Its pool is called `web`.
pub fn version(name: &str) -> String {
    format!(
        r#"
        const VERSION = "{name}";
        route("/version").respond(200, VERSION);
        route("/{{*rest}}")
            .on_response(|req, res| res.set_header("x-version", VERSION))
            .on_log(|req, res| log("info", req.path + " ended in " + VERSION))
            .to("web");
        "#
    )
}

/// Puts this text in the place of `routes.rhai` in one step, so that nothing can read half of it.
pub fn replace(proxy: &Proxy, text: &str) {
    let new = proxy.file(".routes.rhai.new");
    fs::write(&new, text).unwrap();
    fs::rename(new, proxy.file("routes.rhai")).unwrap();
}

/// Puts a version in force.
pub fn put_in_force(proxy: &Proxy, name: &str) {
    replace(proxy, &version(name));
    let (status, body) = proxy.reload();
    assert_eq!(status, 200, "{body}");
}

/// Generations that are alive.
pub fn generations(proxy: &Proxy) -> usize {
    proxy.metric("config_generations", &[]) as usize
}

/// Waits until so many generations are alive.
pub fn wait_generations(proxy: &Proxy, expected: usize) {
    until(&format!("{expected} generations"), SOON, || {
        generations(proxy) == expected
    });
}

/// Resident memory of the proxy, in KiB.
pub fn resident(proxy: &Proxy) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// Whether the long forms are to run.
pub fn soak() -> bool {
    std::env::var_os("EDGEWRIGHT_SOAK").is_some()
}
