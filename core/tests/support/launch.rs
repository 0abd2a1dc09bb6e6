//! Starting a proxy: its files, its ports, and the room that it runs in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::command::BINARY;
use super::ports;
use super::proxy::{Proxy, Started, Words};

/// Puts the files of a configuration into the folder: plainly, or as the kubelet does.
type Publish = dyn FnMut(&Path, &[(&str, &str)]);

/// A proxy to be started.
pub struct Builder {
    files: Vec<(String, String)>,
    settings: String,
    listener: String,
    prefix: Vec<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    ip: IpAddr,
    started: Started,
    publish: Box<Publish>,
}

/// A proxy that serves this `routes.rhai`.
pub fn serving(routes: &str) -> Builder {
    Builder {
        files: vec![("routes.rhai".to_owned(), routes.to_owned())],
        settings: String::new(),
        listener: String::new(),
        prefix: Vec::new(),
        arguments: Vec::new(),
        environment: Vec::new(),
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        started: Started::Ready,
        publish: Box::new(|folder, files| {
            for (name, text) in files {
                std::fs::write(folder.join(name), text).unwrap();
            }
        }),
    }
}

impl Builder {
    /// One more file beside `routes.rhai`.
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Text for `edgewright.toml`; listeners, admin and health addresses are added to it.
    pub fn settings(mut self, toml: &str) -> Self {
        self.settings += toml;
        self.settings += "\n";
        self
    }

    /// More keys of the listener.
    pub fn listener(mut self, toml: &str) -> Self {
        self.listener = toml.to_owned();
        self
    }

    /// A pool with one target.
    pub fn pool(self, name: &str, target: impl ToString) -> Self {
        let target = target.to_string();
        self.settings(&format!("[pools.{name}]\ntargets = [\"{target}\"]"))
    }

    /// An environment variable of the proxy.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// More words of its command line.
    pub fn arguments<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(words.into_iter().map(str::to_owned));
        self
    }

    /// Runs the proxy through these words: the last one must `exec` what follows.
    pub fn through(mut self, prefix: impl IntoIterator<Item = String>) -> Self {
        self.prefix.extend(prefix);
        self
    }

    /// Runs the proxy through a shell that has done `script` first.
    pub fn after_shell(self, script: &str) -> Self {
        let script = format!("{script} && exec \"$0\" \"$@\"");
        self.through(["sh".to_owned(), "-c".to_owned(), script])
    }

    /// Listens on this address instead of 127.0.0.1.
    pub fn at(mut self, ip: IpAddr) -> Self {
        self.ip = ip;
        self
    }

    /// Does not wait for readiness: the proxy is expected to be up and not ready.
    pub fn not_ready_at_first(mut self) -> Self {
        self.started = Started::Listening;
        self
    }

    /// Another way of putting the files into the folder.
    pub fn published_by(mut self, publish: impl FnMut(&Path, &[(&str, &str)]) + 'static) -> Self {
        self.publish = Box::new(publish);
        self
    }

    /// Starts it, with other ports when one of the chosen was taken meanwhile.
    pub fn start(mut self) -> Proxy {
        for _ in 0..5 {
            let folder = TempDir::new().unwrap();
            if let Some(proxy) = self.attempt(folder) {
                return proxy;
            }
        }
        panic!("no free ports in five attempts");
    }

    /// `None`: a port was taken.
    fn attempt(&mut self, folder: TempDir) -> Option<Proxy> {
        // The address may exist in another network namespace only; ports are asked for here.
        let free = ports::free(IpAddr::V4(Ipv4Addr::LOCALHOST), 3);
        let [listener, admin, health] = [0, 1, 2].map(|i| SocketAddr::new(self.ip, free[i].port()));
        let settings = format!(
            "{}[[listeners]]\naddress = \"{listener}\"\n{}\n\
             [admin]\naddress = \"{admin}\"\n[health]\naddress = \"{health}\"\n",
            self.settings, self.listener
        );
        let mut files: Vec<(&str, &str)> = self
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        files.push(("edgewright.toml", &settings));
        (self.publish)(folder.path(), &files);

        let command = self.prefix.iter().cloned();
        let words = Words {
            command: command
                .chain([BINARY.to_owned(), "run".to_owned()])
                .chain(self.arguments.iter().cloned())
                .collect(),
            environment: self.environment.clone(),
        };
        let addresses = [listener, admin, health];
        let mut proxy = Proxy::spawn(words, Arc::new(folder), settings, addresses);
        proxy.wait_started(self.started).then_some(proxy)
    }
}
