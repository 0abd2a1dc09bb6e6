//! A real nginx as upstream.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ports;
use super::wait::SOON;

/// A running nginx; it is killed when dropped.
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    _prefix: TempDir,
}

impl Nginx {
    /// Serves `locations` (the inside of a `server` block) at `ip`, on a port from the system.
    ///
    /// Panics when there is no nginx: tests that need it are meant to fail then.
    pub fn start(ip: IpAddr, locations: &str) -> Self {
        for _ in 0..5 {
            let address = ports::free(ip, 1)[0];
            if let Some(nginx) = Self::attempt(address, locations) {
                return nginx;
            }
        }
        panic!("no free port for nginx in five attempts");
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `None`: the port was taken.
    fn attempt(address: SocketAddr, locations: &str) -> Option<Self> {
        let prefix = TempDir::new().unwrap();
        let folder = prefix.path().display();
        // One process, so that killing it leaves nothing behind. No connection is closed by
        // nginx: what the tests count are the proxy's own closes.
        let text = format!(
            "daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr warn;\n\
             worker_rlimit_nofile 8192;\nevents {{ worker_connections 4096; }}\n\
             http {{\n\
             access_log off;\nkeepalive_requests 100000000;\nkeepalive_timeout 600s;\n\
             client_body_temp_path {folder}/body;\nproxy_temp_path {folder}/proxy;\n\
             fastcgi_temp_path {folder}/fastcgi;\nuwsgi_temp_path {folder}/uwsgi;\n\
             scgi_temp_path {folder}/scgi;\n\
             server {{ listen {address} backlog=4096;\n{locations}\n}}\n}}\n"
        );
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
                    _prefix: prefix,
                });
            }
            assert!(Instant::now() < deadline, "nginx does not accept");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
