//! While 10,000 requests run, a trace of the system calls shows that no worker opens a file, asks
//! for a name or reads what `getaddrinfo` reads.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use hickory_proto::rr::RecordType;
use tempfile::NamedTempFile;

use crate::support::dns_server::{Answer, DnsServer};
use crate::support::launch::serving;
use crate::support::load::{Until, load};
use crate::support::lock;
use crate::support::log::Log;
use crate::support::nginx::Nginx;
use crate::support::proxy::signal;
use crate::support::skip::{measured, not_run};
use crate::support::wait::SOON;

const CONNECTIONS: usize = 16;
const REQUESTS: usize = 10_000;

/// Calls that name a file.
const FILES: [&str; 13] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "stat",
    "newfstatat",
    "statx",
    "lstat",
    "readlink",
    "readlinkat",
    "access",
    "faccessat",
    "faccessat2",
];

/// Calls that carry traffic; they also tell which threads are the workers.
const TRAFFIC: [&str; 8] = [
    "sendto", "sendmsg", "sendmmsg", "write", "writev", "connect", "bind", "socket",
];

/// The program does what hooks do: lookups, a pattern, headers.
const ROUTES: &str = r#"
    const KEYS = table("keys.json");
    const SAFE = regex("^[a-z0-9/]*$");
    const NEAR = cidr(["127.0.0.0/8"]);
    fn gate(req) {
        if !NEAR.contains(req.client_ip) || !SAFE.is_match(req.path) { return respond(403); }
        req.set_header("x-client", KEYS.get("k1"));
    }
    route("/{*rest}").on_request(gate).on_response(|req, res| res.set_header("x-a", "1")).to("web");
"#;

#[test]
fn no_worker_opens_a_file_or_asks_for_a_name() {
    let _turn = lock::turn();
    let nginx = Nginx::start([127, 0, 0, 1].into(), "location / { return 200 \"ok\"; }");
    let server = DnsServer::start();
    server.set_a("backend.test.", 3600, &["127.0.0.1"]);
    let none = Answer::NxDomain {
        negative_ttl: Some(3600),
    };
    server.set("backend.test.", RecordType::AAAA, none);
    let proxy = serving(ROUTES)
        .file("keys.json", r#"{"k1": "alice"}"#)
        .pool("web", format!("backend.test:{}", nginx.address().port()))
        .settings(&format!("[dns]\nservers = [\"{}\"]", server.addr()))
        .start();
    // That there is no such address is asked for twice before it is believed.
    assert!(server.wait_for("backend.test.", RecordType::AAAA, 2, SOON));
    // Each worker has served, and the connections of the pool are open.
    load(proxy.address(), "/x", CONNECTIONS, Until::Requests(2_000)).assert_all_ok();
    let asked = server.queries();

    let trace = match Trace::attach(proxy.pid()) {
        Ok(trace) => trace,
        Err(why) => return not_run("syscalls", &why),
    };
    let report = load(
        proxy.address(),
        "/x",
        CONNECTIONS,
        Until::Requests(REQUESTS),
    );
    let calls = trace.finish();
    report.assert_all_ok();
    assert_eq!(report.answered(), REQUESTS as u64);

    let mut traffic: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls
        .iter()
        .filter(|call| TRAFFIC.contains(&call.name.as_str()))
    {
        *traffic.entry(&call.thread).or_default() += 1;
    }
    // Each request is written to nginx and each response to the client: the trace saw them.
    let sent: usize = traffic.values().sum();
    assert!(sent >= 2 * REQUESTS, "only {sent} calls were traced");
    let workers: Vec<&str> = traffic
        .iter()
        .filter(|(_, calls)| **calls * 50 > sent)
        .map(|(thread, _)| *thread)
        .collect();
    measured(
        "syscalls",
        &format!(
            "{sent} calls with traffic by {} workers in {REQUESTS} requests",
            workers.len()
        ),
    );
    let port = server.addr().port();
    let wrong: Vec<&Call> = calls
        .iter()
        .filter(|call| {
            let worker = workers.contains(&call.thread.as_str());
            call.asks_a_resolver(port) || worker && (call.names_a_file() || call.looks_up())
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} calls that must not be, the first: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
    assert_eq!(
        server.queries(),
        asked,
        "a name was asked for while requests ran"
    );
}

/// One line of a trace.
#[derive(Debug)]
struct Call {
    thread: String,
    name: String,
    arguments: String,
}

impl Call {
    /// `1234 connect(5, {..}) = 0`; the second half of a call that was interrupted gives nothing.
    fn parse(line: &str) -> Option<Call> {
        let (thread, rest) = line.trim_start().split_once(' ')?;
        let (name, arguments) = rest.trim_start().split_once('(')?;
        let known = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        known.then(|| Call {
            thread: thread.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    fn names_a_file(&self) -> bool {
        FILES.contains(&self.name.as_str())
    }

    /// A datagram socket, or a name service on a local socket (nscd, systemd-resolved).
    fn looks_up(&self) -> bool {
        match self.name.as_str() {
            "socket" => self.arguments.contains("SOCK_DGRAM"),
            "connect" => self.arguments.contains("AF_UNIX"),
            _ => false,
        }
    }

    fn asks_a_resolver(&self, port: u16) -> bool {
        TRAFFIC.contains(&self.name.as_str())
            && [53, port]
                .iter()
                .any(|port| self.arguments.contains(&format!("htons({port})")))
    }
}

/// strace on all threads of a process.
struct Trace {
    strace: Child,
    output: NamedTempFile,
    reader: JoinHandle<()>,
}

impl Trace {
    /// Returns when all threads are attached; an error says why that can't be.
    fn attach(pid: u32) -> Result<Self, String> {
        let output = NamedTempFile::new().unwrap();
        let calls = format!("trace={},{}", FILES.join(","), TRAFFIC.join(","));
        let mut strace = Command::new("strace")
            .args(["-f", "-e", &calls, "-e", "signal=none", "-o"])
            .arg(output.path())
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("strace: {e} (Debian package strace)"))?;
        let (said, reader) = Log::follow(strace.stderr.take().unwrap());
        // It speaks when all are attached, or when it may not.
        let first = said.wait("strace", SOON);
        if !first.contains("attached") {
            let _ = strace.wait();
            return Err(first);
        }
        Ok(Self {
            strace,
            output,
            reader,
        })
    }

    fn finish(mut self) -> Vec<Call> {
        signal(self.strace.id(), "INT");
        self.strace.wait().unwrap();
        self.reader.join().unwrap();
        let text = fs::read_to_string(self.output.path()).unwrap();
        text.lines().filter_map(Call::parse).collect()
    }
}
