//! Ports from the system.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{LazyLock, Mutex};

/// Ports already given out in this process: the system may offer a released one again.
static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);

/// `count` different free TCP addresses at `ip`.
///
/// They are free when asked for; another process can take one before it is bound, so whoever
/// starts something on them must be ready to ask again.
pub fn free(ip: IpAddr, count: usize) -> Vec<SocketAddr> {
    // All are held until the last is found, so that no two are the same.
    let mut held = Vec::new();
    let mut addresses = Vec::new();
    while addresses.len() < count {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        if GIVEN.lock().unwrap().insert(address.port()) {
            addresses.push(address);
        }
        held.push(listener);
    }
    addresses
}

/// A free port below those that the kernel gives to outgoing connections (32768 and up,
/// ip(7) `ip_local_port_range`): for what can't be started again on another one when a connection
/// of somebody else has taken it meanwhile.
pub fn steady(ip: IpAddr) -> SocketAddr {
    std::iter::repeat_with(|| SocketAddr::new(ip, fastrand::u16(20_000..32_000)))
        .find(|address| TcpListener::bind(("0.0.0.0", address.port())).is_ok())
        .unwrap()
}

/// Whether a socket of this process listens on `address`. Another process may have taken the port,
/// and then it is the one that answers.
pub fn listens(pid: u32, address: SocketAddr) -> bool {
    // Of the network namespace that the process is in. `local_address` is `IP:PORT` in hex, 0A the
    // state of a listening socket (proc_pid_net(5)).
    let port = format!(":{:04X}", address.port());
    let sockets: Vec<String> = ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok())
        .flat_map(|table| {
            table
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>())
                .filter(|fields| {
                    fields.len() > 9 && fields[1].ends_with(&port) && fields[3] == "0A"
                })
                .map(|fields| format!("socket:[{}]", fields[9]))
                .collect::<Vec<_>>()
        })
        .collect();
    fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|target| {
            sockets
                .iter()
                .any(|socket| target.as_os_str() == socket.as_str())
        })
}
