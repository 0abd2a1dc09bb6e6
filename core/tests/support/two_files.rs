//! A program of two files, which tells when it is served half.

use std::time::Duration;

use super::proxy::Proxy;
use super::wait::{SOON, timed, until};

/// How soon a change must be live. The case says 2 s; the rest is for a machine that is busy with
/// other tests.
pub const LIVE: Duration = Duration::from_millis(3000);

/// A program of two files that answers with the version in each: `one+one`.
pub fn program(version: &str) -> (String, String) {
    let routes = format!(
        "const DATA = table(\"data.json\");\n\
         route(\"/\").respond(|req| respond(200, \"{version}+\" + DATA.get(\"version\")));\n"
    );
    (routes, format!("{{\"version\": \"{version}\"}}\n"))
}

/// One that is refused, for its second line.
pub const BROKEN: &str = "const DATA = table(\"data.json\");\nroute(\"/\").to(\"nowhere\");\n";

/// Waits until the proxy answers with `version`, and says how soon that was.
pub fn live(proxy: &Proxy, version: &str) {
    let expected = format!("{version}+{version}");
    let (_, took) = timed(&format!("version {version}"), SOON, || {
        (proxy.text("/") == expected).then_some(())
    });
    assert!(took <= LIVE, "{version} was live after {took:?}");
}

pub fn refused(proxy: &Proxy, nth: usize, place: &str) {
    let line = proxy.log.wait_nth("reload refused", nth, SOON);
    assert!(line.contains(place), "{line}");
    until("the refusal in metrics and status", SOON, || {
        proxy.metric("config_reloads_total", &[("result", "failed")]) >= nth as f64
            && proxy.metric("config_last_reload_successful", &[]) == 0.0
            && proxy.status()["last_error"].to_string().contains(place)
    });
}
