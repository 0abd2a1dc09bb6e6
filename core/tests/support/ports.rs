//! Ports from the system.

use std::collections::HashSet;
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
