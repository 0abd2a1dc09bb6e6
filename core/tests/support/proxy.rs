//! `edgewright run DIR` as a child process.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::{self, Request, Response};
use super::log::Log;
use super::wait::{self, SOON};
use super::{metrics, ports};

/// When a started proxy counts as started.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Started {
    /// `/readyz` says 200.
    Ready,
    /// It accepts connections, ready or not.
    Listening,
}

/// How a proxy is started.
#[derive(Clone)]
pub(super) struct Words {
    /// The command, without the folder.
    pub(super) command: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

impl Words {
    pub(super) fn spawn(&self, folder: &Path) -> Child {
        let words = &self.command;
        Command::new(&words[0])
            .args(&words[1..])
            .arg(folder)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }
}

/// A running proxy; it is killed when dropped.
pub struct Proxy {
    child: Child,
    words: Words,
    folder: Arc<TempDir>,
    settings: String,
    listener: SocketAddr,
    admin: SocketAddr,
    health: SocketAddr,
    /// What it wrote to stderr.
    pub log: Log,
    reader: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a process; `addresses` are those of the listener, of admin and of health.
    pub(super) fn spawn(
        words: Words,
        folder: Arc<TempDir>,
        settings: String,
        addresses: [SocketAddr; 3],
    ) -> Self {
        let mut child = words.spawn(folder.path());
        let (log, reader) = Log::follow(child.stderr.take().unwrap());
        let [listener, admin, health] = addresses;
        Self {
            child,
            words,
            folder,
            settings,
            listener,
            admin,
            health,
            log,
            reader: Some(reader),
        }
    }

    /// Another process with the same files and addresses, and more words on its command line.
    pub fn beside(&self, more: &[&str]) -> Self {
        let mut words = self.words.clone();
        words
            .command
            .extend(more.iter().map(|&word| word.to_owned()));
        let addresses = [self.listener, self.admin, self.health];
        let mut other = Self::spawn(words, self.folder.clone(), self.settings.clone(), addresses);
        // What is started beside that one gets only its own.
        other.words = self.words.clone();
        other
    }

    /// Kills it, and starts it again with what its folder holds now.
    pub fn start_again(&mut self) {
        let mut again = {
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.beside(&[])
        };
        assert!(again.wait_started(Started::Ready), "{}", again.log.text());
        // What is dropped has ended already.
        std::mem::swap(self, &mut again);
    }

    /// False: an address was in use.
    pub(super) fn wait_started(&mut self, started: Started) -> bool {
        let deadline = Instant::now() + 2 * SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.join_log();
                let text = self.log.text();
                let taken = text.to_lowercase().contains("address already in use")
                    || text.contains("AddrInUse");
                assert!(taken, "the proxy ended at start with {status}:\n{text}");
                return false;
            }
            let up = TcpStream::connect_timeout(&self.listener, SOON).is_ok();
            if up && (started == Started::Listening || self.readyz() == Some(200)) {
                // Ready may also be what a stranger says who took the port meanwhile.
                return ports::listens(self.pid(), self.listener);
            }
            assert!(
                Instant::now() < deadline,
                "the proxy did not start:\n{}",
                self.log.text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn readyz(&self) -> Option<u16> {
        let request = client::get("/readyz").host(&self.admin.to_string());
        Some(request.try_send(self.admin).ok()?.status)
    }

    pub fn address(&self) -> SocketAddr {
        self.listener
    }

    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// `GET target` at the admin listener, which looks at the Host that it is called by.
    pub fn ask_admin(&self, target: &str) -> Response {
        client::get(target)
            .host(&self.admin.to_string())
            .send(self.admin)
    }

    pub fn health(&self) -> SocketAddr {
        self.health
    }

    /// `GET target` at the health listener.
    pub fn ask_health(&self, target: &str) -> Response {
        client::get(target)
            .host(&self.health.to_string())
            .send(self.health)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder of its configuration.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The text of its `edgewright.toml`.
    pub fn settings(&self) -> &str {
        &self.settings
    }

    /// Sends a request on a connection of its own.
    pub fn send(&self, request: &Request) -> Response {
        request.send(self.listener)
    }

    /// `GET target` on a connection of its own.
    pub fn get(&self, target: &str) -> Response {
        self.send(&client::get(target))
    }

    /// The body of `GET target`.
    pub fn text(&self, target: &str) -> String {
        self.get(target).text()
    }

    /// A metric of the admin listener: the sum over the samples with these labels. The prefix
    /// `edgewright_` is added to `name`.
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.ask_admin("/metrics").text();
        metrics::value(&text, &format!("edgewright_{name}"), labels)
    }

    /// The JSON of `/status`.
    pub fn status(&self) -> serde_json::Value {
        let response = self.ask_admin("/status");
        assert_eq!(response.status, 200, "/status: {}", response.text());
        serde_json::from_slice(&response.body).unwrap()
    }

    /// `POST /reload`: the status and the JSON.
    pub fn reload(&self) -> (u16, serde_json::Value) {
        let request = client::post("/reload", "").host(&self.admin.to_string());
        let response = request.send(self.admin);
        let json = serde_json::from_slice(&response.body)
            .unwrap_or_else(|e| panic!("/reload: {e}: {}", response.text()));
        (response.status, json)
    }

    /// Sends a signal by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub fn running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has ended; panics with its log when `limit` passes first.
    pub fn wait_exit(&mut self, limit: Duration) -> (ExitStatus, Duration) {
        let child = &mut self.child;
        let log = self.log.clone();
        let ended = wait::timed("the proxy to end", limit + SOON, || {
            child.try_wait().unwrap()
        });
        self.join_log();
        assert!(
            ended.1 <= limit,
            "the proxy took {:?} to end, more than {limit:?}:\n{}",
            ended.1,
            log.text()
        );
        ended
    }

    fn join_log(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.join_log();
        if std::thread::panicking() {
            eprintln!("--- log of the proxy\n{}\n---", self.log.text());
        }
    }
}

/// Sends a signal to a process. Through the shell, whose `kill` every machine has.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status()
        .unwrap();
    assert!(status.success(), "kill -{name} {pid}: {status}");
}
