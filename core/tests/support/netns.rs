//! A network namespace with one link to the one that the tests run in.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// A namespace; it and its link go when dropped.
pub struct Namespace {
    name: String,
    inside: Ipv4Addr,
    outside: Ipv4Addr,
}

impl Namespace {
    /// Makes one, whose clients have `ports` as their port range. An error says what is missing.
    pub fn create(ports: (u16, u16)) -> Result<Self, String> {
        let id = std::process::id();
        let name = format!("edgewright{id}");
        // Two addresses out of 10.213.0.0/16, different for each process.
        let [high, low] = ((id as u16) << 2).to_be_bytes();
        let inside = Ipv4Addr::new(10, 213, high, low | 1);
        let outside = Ipv4Addr::new(10, 213, high, low | 2);
        let (link, peer) = (format!("ew{id}a"), format!("ew{id}b"));
        run(&["ip", "netns", "add", &name])?;
        let namespace = Self {
            name: name.clone(),
            inside,
            outside,
        };
        run(&[
            "ip", "link", "add", &link, "type", "veth", "peer", "name", &peer, "netns", &name,
        ])?;
        run(&["ip", "addr", "add", &format!("{outside}/30"), "dev", &link])?;
        run(&["ip", "link", "set", &link, "up"])?;
        namespace.run(&["ip", "addr", "add", &format!("{inside}/30"), "dev", &peer])?;
        namespace.run(&["ip", "link", "set", &peer, "up"])?;
        namespace.run(&["ip", "link", "set", "lo", "up"])?;
        let range = format!(
            "echo {} {} > /proc/sys/net/ipv4/ip_local_port_range",
            ports.0, ports.1
        );
        namespace.run(&["sh", "-c", &range])?;
        Ok(namespace)
    }

    /// The address inside, seen from the tests too.
    pub fn inside(&self) -> IpAddr {
        self.inside.into()
    }

    /// The address of the tests' side of the link.
    pub fn outside(&self) -> IpAddr {
        self.outside.into()
    }

    /// The words that run a command inside; they end in an `exec`.
    pub fn prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name]
            .map(str::to_owned)
            .to_vec()
    }

    fn run(&self, words: &[&str]) -> Result<(), String> {
        let prefix = self.prefix();
        let all: Vec<&str> = prefix
            .iter()
            .map(String::as_str)
            .chain(words.iter().copied())
            .collect();
        run(&all)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = run(&["ip", "netns", "del", &self.name]);
    }
}

/// How many TCP connections were opened (`ActiveOpens`) in the namespace of a process.
pub fn connections_opened(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/net/snmp");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut rows = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    names
        .split(' ')
        .zip(values.split(' '))
        .find(|(name, _)| *name == "ActiveOpens")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or_else(|| panic!("{path} has no ActiveOpens"))
}

fn run(words: &[&str]) -> Result<(), String> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .map_err(|e| format!("{}: {e}", words[0]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}
