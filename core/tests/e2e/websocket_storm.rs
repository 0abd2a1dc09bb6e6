//! Case websocket-storm: every WebSocket is cut by reloads (nginx-gateway-fabric 5524), or old workers pile up
//! until the last one is closed.

use crate::support::launch::serving;
use crate::support::versions::{put_in_force, resident, soak, version, wait_generations};
use crate::support::websocket::{echo, echoes, open};

/// A text frame of a client.
const FRAME: &[u8] = b"\x81\x82abcdgo";

/// How much the proxy may grow, in KiB: what the allocator holds back, and nothing for each reload.
const GROWTH: u64 = 16 * 1024;

#[test]
fn no_socket_closes_memory_is_flat_and_old_generations_go_with_their_sockets() {
    let (sockets, reloads) = if soak() { (100, 136) } else { (20, 34) };
    let upstream = echo();
    let proxy = serving(&version("v0"))
        .pool("web", upstream.address())
        .start();
    // All but four are of the first generation.
    let mut first: Vec<_> = (0..sockets - 4).map(|_| open(proxy.address())).collect();
    let mut later = Vec::new();
    let mut before = 0;
    for number in 1..=reloads {
        put_in_force(&proxy, &format!("v{number}"));
        if number % (reloads / 4) == 1 && later.len() < 4 {
            later.push(open(proxy.address()));
        }
        if number == reloads / 4 {
            before = resident(&proxy);
        }
        for socket in first.iter_mut().chain(&mut later) {
            echoes(socket, FRAME);
        }
    }
    let grown = resident(&proxy).saturating_sub(before);
    assert!(grown < GROWTH, "{grown} KiB more are resident");
    assert_eq!(upstream.hits(), sockets, "nobody had to connect again");

    // The first one, the four with a socket, and the one in force.
    wait_generations(&proxy, 6);
    for left in (0..4).rev() {
        later.pop();
        wait_generations(&proxy, 2 + left);
    }
    first.truncate(1);
    echoes(&mut first[0], FRAME);
    wait_generations(&proxy, 2);
    drop(first);
    wait_generations(&proxy, 1);
}
