#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread;

use rustix::net::SocketAddrUnix;
use tempfile::TempDir;

use super::*;

struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("upgrade.sock")
    }
}

fn listening() -> (SocketAddr, TcpListener) {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    (socket.local_addr().unwrap(), socket)
}

#[test]
fn sockets_change_hands_with_what_waits_in_them() {
    let room = Room::new();
    // More than go into one message.
    let sockets: Vec<_> = (0..150).map(|_| listening()).collect();
    let mut early = TcpStream::connect(sockets[149].0).unwrap();
    let waiting = Waiting::at(&room.path()).unwrap();
    let mode = fs::metadata(room.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let heir = thread::spawn(move || {
        let mut heir = waiting.heir(|| false).unwrap().unwrap();
        let sockets = std::mem::take(&mut heir.sockets);
        heir.take_over().unwrap();
        sockets
    });
    let handed: Vec<_> = sockets
        .iter()
        .map(|(address, socket)| Handed {
            purpose: Purpose::Listener,
            address: *address,
            socket,
        })
        .collect();
    give(&room.path(), &handed).unwrap();
    let taken = heir.join().unwrap();
    let addresses = |taken: &[Handed]| taken.iter().map(|h| h.address).collect::<Vec<_>>();
    let expected: Vec<_> = sockets.iter().map(|(address, _)| *address).collect();
    assert_eq!(addresses(&taken), expected);
    drop(sockets);
    drop(taken[149].socket.accept().unwrap());
    assert_eq!(early.read(&mut [0]).unwrap(), 0, "closed, not reset");
    assert!(!room.path().exists());
}

#[test]
fn nobody_waits() {
    let room = Room::new();
    assert!(matches!(give(&room.path(), &[]), Err(NotGiven::Nobody)));
    // What a process has left that was killed.
    let left = wire::socket().unwrap();
    rustix::net::bind(&left, &SocketAddrUnix::new(room.path()).unwrap()).unwrap();
    drop(left);
    assert!(room.path().exists());
    let Err(NotGiven::Failed(error)) = give(&room.path(), &[]) else {
        panic!("who waited is gone");
    };
    assert!(error.to_string().contains("is gone"), "{error}");
    // The next one makes room of it, and is the only one then.
    let waiting = Waiting::at(&room.path()).unwrap();
    let second = Waiting::at(&room.path()).unwrap_err().to_string();
    assert!(second.contains("waits at"), "{second}");
    drop(waiting);
}

#[test]
fn one_that_fails_leaves_the_sockets_where_they_are() {
    let room = Room::new();
    let (address, socket) = listening();
    let waiting = Waiting::at(&room.path()).unwrap();
    let failing = thread::spawn(move || drop(waiting.heir(|| false).unwrap().unwrap()));
    let handed = [Handed {
        purpose: Purpose::Admin,
        address,
        socket: &socket,
    }];
    let given = give(&room.path(), &handed);
    assert!(matches!(given, Err(NotGiven::Failed(_))), "{given:?}");
    failing.join().unwrap();
    let _client = TcpStream::connect(address).unwrap();
    assert!(socket.accept().is_ok());
}

#[test]
fn what_is_no_socket_of_that_name_is_refused() {
    let room = Room::new();
    let (_, socket) = listening();
    let waiting = Waiting::at(&room.path()).unwrap();
    let path = room.path();
    let lying = thread::spawn(move || {
        let handed = [Handed {
            purpose: Purpose::Listener,
            address: "127.0.0.1:1".parse().unwrap(),
            socket: &socket,
        }];
        give(&path, &handed)
    });
    // It goes on to wait, until it is told to end.
    let told = || lying.is_finished();
    assert!(waiting.heir(told).unwrap().is_none());
    assert!(matches!(lying.join().unwrap(), Err(NotGiven::Failed(_))));
}

#[test]
fn a_file_in_the_way_is_left_alone() {
    let room = Room::new();
    fs::write(room.path(), "precious").unwrap();
    let error = Waiting::at(&room.path()).unwrap_err().to_string();
    assert!(error.contains("is no socket"), "{error}");
    assert_eq!(fs::read_to_string(room.path()).unwrap(), "precious");
}
