//! `edgewright demo`: each command that it prints works as printed.

use std::process::{Child, Command, Stdio};

use crate::support::client::{Request, get};
use crate::support::command::BINARY;
use crate::support::lock;
use crate::support::log::Log;
use crate::support::ports;
use crate::support::proxy::signal;
use crate::support::skip::not_run;
use crate::support::wait::{SOON, eventually};

/// Killed when dropped.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The request that a printed `curl` line makes, and where to.
fn request_of(line: &str) -> (std::net::SocketAddr, Request) {
    let line = line.split(" #").next().unwrap().trim();
    let mut headers = Vec::new();
    let mut rest = line.strip_prefix("curl ").unwrap().trim();
    loop {
        if let Some(after) = rest.strip_prefix("-H '") {
            let (header, after) = after.split_once('\'').unwrap();
            let (name, value) = header.split_once(':').unwrap();
            headers.push((name.to_owned(), value.trim().to_owned()));
            rest = after.trim();
        } else if let Some(after) = rest.strip_prefix("--cookie ") {
            let (cookie, after) = after.split_once(' ').unwrap();
            headers.push(("Cookie".to_owned(), cookie.to_owned()));
            rest = after.trim();
        } else {
            break;
        }
    }
    let url = rest
        .strip_prefix("http://")
        .unwrap_or_else(|| panic!("{line}"));
    let (host, path) = url.split_once('/').unwrap();
    let request = headers
        .iter()
        .fold(get(&format!("/{path}")), |r, (name, value)| {
            r.header(name, value)
        });
    (host.parse().unwrap(), request.host(host))
}

#[test]
fn what_it_prints_works() {
    let _turn = lock::turn();
    // It has the default admin and health addresses, which the user of a machine expects there.
    for address in ["127.0.0.1:9180", "127.0.0.1:9181"] {
        if let Err(error) = std::net::TcpListener::bind(address) {
            return not_run("demo", &format!("{address}: {error}"));
        }
    }
    let listen = ports::free([127, 0, 0, 1].into(), 1)[0];
    let mut child = Command::new(BINARY)
        .args(["demo", "--listen", &listen.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (printed, _) = Log::follow(child.stdout.take().unwrap());
    let (log, _) = Log::follow(child.stderr.take().unwrap());
    let mut demo = Demo(child);
    log.wait(&format!("listening on {listen}"), 2 * SOON);
    printed.wait("edit", SOON);

    let lines = printed.matching("curl ");
    assert!(lines.len() >= 4, "{}", printed.text());
    for line in &lines {
        let (address, request) = request_of(line);
        let response = request.send(address);
        let expected = if line.contains("# 401") { 401 } else { 200 };
        assert_eq!(response.status, expected, "{line}: {}", response.text());
        assert!(!response.text().is_empty(), "{line}");
    }

    // The file that it names is live.
    let text = printed.wait("routes.rhai", SOON);
    let path = text
        .split_whitespace()
        .find(|word| word.ends_with("routes.rhai"))
        .unwrap();
    let mut routes = std::fs::read_to_string(path).unwrap();
    routes.push_str("\nroute(\"/added\").respond(200, \"live\");\n");
    std::fs::write(path, routes).unwrap();
    eventually("the edit to be live", SOON, || {
        (get("/added").send(listen).text() == "live").then_some(())
    });

    signal(demo.0.id(), "INT");
    let status = eventually("the demo to end", SOON, || demo.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(0), "{}", log.text());
    assert!(
        !std::path::Path::new(path).exists(),
        "the demo left its folder behind"
    );
}
