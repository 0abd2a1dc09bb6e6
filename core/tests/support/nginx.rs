//! A real nginx: as upstream, or with a configuration of one's own.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ports;
use super::wait::SOON;

/// A running nginx; it is killed when dropped.
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    prefix: TempDir,
}

impl Nginx {
    /// Serves `locations` (the inside of a `server` block) at `ip`, on a port from the system.
    ///
    /// Panics when there is no nginx: tests that need it are meant to fail then.
    pub fn start(ip: IpAddr, locations: &str) -> Self {
        Self::configured(ip, |address, folder| {
            // No connection is closed by nginx: what the tests count are the proxy's own closes.
            format!(
                "{}error_log stderr warn;\n\
                 worker_rlimit_nofile 8192;\nevents {{ worker_connections 4096; }}\n\
                 http {{\n{}\
                 keepalive_requests 100000000;\nkeepalive_timeout 600s;\n\
                 server {{ listen {address} backlog=4096;\n{locations}\n}}\n}}\n",
                process_settings(folder),
                http_settings(folder),
            )
        })
    }

    /// Serves the `nginx.conf` that `configuration` makes for an address and for the folder that
    /// is nginx's prefix, where it may put further files.
    pub fn configured(ip: IpAddr, configuration: impl Fn(SocketAddr, &Path) -> String) -> Self {
        for _ in 0..5 {
            let address = ports::free(ip, 1)[0];
            if let Some(nginx) = Self::attempt(address, &configuration) {
                return nginx;
            }
        }
        panic!("no free port for nginx in five attempts");
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The prefix.
    pub fn folder(&self) -> &Path {
        self.prefix.path()
    }

    /// `None`: the port was taken.
    fn attempt(
        address: SocketAddr,
        configuration: &impl Fn(SocketAddr, &Path) -> String,
    ) -> Option<Self> {
        let prefix = TempDir::new().unwrap();
        let text = configuration(address, prefix.path());
        let configuration = prefix.path().join("nginx.conf");
        std::fs::write(&configuration, text).unwrap();
        let mut child = Command::new("nginx")
            .arg("-p")
            .arg(prefix.path())
            .arg("-c")
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| {
                panic!("nginx can't be started ({e}): install it (Debian package nginx-light)")
            });
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                let mut text = String::new();
                let _ = child.stderr.take().unwrap().read_to_string(&mut text);
                assert!(
                    text.contains("Address already in use"),
                    "nginx ended with {status}: {text}"
                );
                return None;
            }
            if TcpStream::connect_timeout(&address, SOON).is_ok() {
                return Some(Self {
                    child,
                    address,
                    prefix,
                });
            }
            assert!(Instant::now() < deadline, "nginx does not accept");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// One process, so that killing it leaves nothing behind.
pub(super) fn process_settings(folder: &Path) -> String {
    let folder = folder.display();
    format!("daemon off;\nmaster_process off;\npid {folder}/pid;\n")
}

/// Nothing is written but into the folder: the compiled-in places are those of another user.
pub(super) fn http_settings(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "access_log off;\n\
         client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi;\nuwsgi_temp_path {folder}/uwsgi;\n\
         scgi_temp_path {folder}/scgi;\n"
    )
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
