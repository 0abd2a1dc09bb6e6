//! The listening sockets of the proxy.
//!
//! Each worker has a socket of its own for each address, and the kernel spreads new connections over them
//! (SO_REUSEPORT, socket(7)). The workers get copies of their descriptors: a socket closes when the last copy does, and
//! who hands sockets over must have them at hand.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait for one socket to accept them; the system has a lower limit (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// The sockets by address, in the order of the workers.
#[derive(Debug, Default)]
pub struct Sockets(BTreeMap<SocketAddr, Vec<TcpListener>>);

impl Sockets {
    /// Takes over sockets that listen already, as another process has handed them over.
    #[must_use]
    pub fn inherited(sockets: Vec<(SocketAddr, TcpListener)>) -> Self {
        let mut all = Self::default();
        for (address, socket) in sockets {
            all.0.entry(address).or_default().push(socket);
        }
        all
    }

    /// Whether somebody listens on this address already.
    #[must_use]
    pub fn has(&self, address: SocketAddr) -> bool {
        self.0.contains_key(&address)
    }

    /// Makes it so that there are sockets for exactly these addresses, at least one for each of `workers`. Those for
    /// other addresses are closed. What waits in a socket that was there before goes on to wait.
    ///
    /// # Errors
    /// With the address that can't be listened on, and why.
    pub fn open(
        &mut self,
        addresses: impl IntoIterator<Item = SocketAddr>,
        workers: usize,
    ) -> Result<(), (SocketAddr, io::Error)> {
        let mut wanted = BTreeMap::new();
        for address in addresses {
            let mut sockets = self.0.remove(&address).unwrap_or_default();
            while sockets.len() < workers {
                sockets.push(listen(address).map_err(|error| (address, error))?);
            }
            wanted.insert(address, sockets);
        }
        self.0 = wanted;
        Ok(())
    }

    /// The sockets that the worker `number` of `workers` accepts from: every one is some worker's, also when there
    /// are more of them than workers, because nobody would answer who waits in another.
    ///
    /// # Errors
    /// When the files run out.
    pub(super) fn of_worker(
        &self,
        number: usize,
        workers: usize,
    ) -> io::Result<Vec<(SocketAddr, TcpListener)>> {
        let mut own = Vec::new();
        for (address, sockets) in &self.0 {
            for socket in sockets.iter().skip(number).step_by(workers.max(1)) {
                own.push((*address, socket.try_clone()?));
            }
        }
        Ok(own)
    }

    /// All of them, for handing them over.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &TcpListener)> {
        let each = |(address, sockets): (&SocketAddr, _)| (*address, sockets);
        self.0
            .iter()
            .map(each)
            .flat_map(|(address, sockets): (_, &Vec<TcpListener>)| {
                sockets.iter().map(move |socket| (address, socket))
            })
    }
}

/// A socket that listens on `address`, beside others of the same user.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    // Connections of an earlier process that are not quite over don't stand in the way.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read as _;
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    fn free() -> SocketAddr {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.local_addr().unwrap()
    }

    #[test]
    fn every_socket_belongs_to_one_worker() {
        let address = free();
        let mut sockets = Sockets::default();
        sockets.open([address], 5).unwrap();
        // Five were handed over, two workers take them, each with several.
        let sizes: Vec<_> = (0..2)
            .map(|worker| sockets.of_worker(worker, 2).unwrap().len())
            .collect();
        assert_eq!(sizes, [3, 2]);
        // More workers than sockets: some more are made.
        sockets.open([address], 7).unwrap();
        for worker in 0..7 {
            assert_eq!(sockets.of_worker(worker, 7).unwrap().len(), 1);
        }
        assert_eq!(sockets.iter().count(), 7);
    }

    #[test]
    fn a_socket_that_is_not_wanted_any_more_is_closed() {
        let (kept, gone) = (free(), free());
        let mut sockets = Sockets::default();
        sockets.open([kept, gone], 1).unwrap();
        assert!(sockets.has(gone));
        sockets.open([kept], 1).unwrap();
        assert!(!sockets.has(gone));
        assert!(TcpStream::connect(gone).is_err());
        assert!(TcpStream::connect(kept).is_ok());
    }

    #[test]
    fn what_waits_is_not_lost_when_sockets_change_hands() {
        let address = free();
        let mut old = Sockets::default();
        old.open([address], 1).unwrap();
        let mut waiting = TcpStream::connect(address).unwrap();
        let handed = old.of_worker(0, 1).unwrap();
        drop(old);
        let mut new = Sockets::inherited(handed);
        new.open([address], 2).unwrap();
        let all = new.of_worker(0, 2).unwrap();
        let (accepted, _) = all[0].1.accept().unwrap();
        drop(accepted);
        let mut nothing = [0];
        assert_eq!(waiting.read(&mut nothing).unwrap(), 0, "closed, not reset");
    }

    #[test]
    fn an_address_of_another_process_is_an_error() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = other.local_addr().unwrap();
        let (named, error) = Sockets::default().open([address], 1).unwrap_err();
        assert_eq!(named, address);
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
