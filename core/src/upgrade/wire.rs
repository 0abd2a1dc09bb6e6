//! Messages between the two processes: lines of text, with sockets beside them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    sockopt,
};

use super::{Handed, Purpose};

/// The first line of the first message. Another form of the messages gets another number.
pub(super) const HELLO: &str = "edgewright upgrade 1";
/// Behind the last socket.
pub(super) const END: &str = "end";
/// Everything is there to accept connections.
pub(super) const READY: &str = "ready";
/// The old process accepts nothing any more.
pub(super) const GO: &str = "go";

/// Sockets in one message; the kernel takes 253.
const SOCKETS: usize = 64;

/// Bytes of one message: so many names, each with the longest address.
const BYTES: usize = SOCKETS * 80;

/// Sockets in all: threads times listeners of the largest configuration that makes sense, and a bound on what another
/// process can make this one keep.
const MOST: usize = 16_384;

/// A connection that keeps messages apart (SOCK_SEQPACKET).
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// How long each message may take.
    limit: Duration,
}

/// A socket of this kind.
pub(super) fn socket() -> rustix::io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
}

impl Connection {
    /// Connects; each message may take `limit`, and so may this.
    ///
    /// # Errors
    /// When nobody listens at `path`: `NOENT` or `CONNREFUSED`; `AGAIN` when nobody takes the connection in time; else
    /// what the kernel says.
    pub(super) fn to(path: &Path, limit: Duration) -> rustix::io::Result<Self> {
        let connection = Self::accepted(socket()?, limit);
        let address = SocketAddrUnix::new(path)?;
        connection.in_time(sockopt::Timeout::Send, || {
            rustix::net::connect(&connection.socket, &address)
        })?;
        Ok(connection)
    }

    /// One that was accepted; each message may take `limit`.
    pub(super) fn accepted(socket: OwnedFd, limit: Duration) -> Self {
        Self { socket, limit }
    }

    /// The same, with another limit for each message.
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Looks who is on the other side.
    ///
    /// # Errors
    /// When that is another user.
    pub(super) fn trusted(self) -> anyhow::Result<Self> {
        let peer =
            sockopt::socket_peercred(&self.socket).context("can't ask who the other side is")?;
        let own = rustix::process::geteuid();
        ensure!(
            peer.uid == own,
            "the other side is user {}, not {}",
            peer.uid.as_raw(),
            own.as_raw()
        );
        Ok(self)
    }

    /// Does what waits for the other side, again after each signal, until the time is over.
    fn in_time<T>(
        &self,
        direction: sockopt::Timeout,
        mut call: impl FnMut() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        let deadline = Instant::now() + self.limit;
        loop {
            // None at all would be no limit.
            let left = deadline.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            sockopt::set_socket_timeout(&self.socket, direction, Some(left))?;
            match call() {
                // A call with a time limit is not begun again by the system (signal(7)).
                Err(Errno::INTR) if Instant::now() < deadline => {}
                done => return done,
            }
        }
    }

    pub(super) fn say(&self, text: &str) -> anyhow::Result<()> {
        self.send(text, &[])
    }

    fn send(&self, text: &str, sockets: &[BorrowedFd<'_>]) -> anyhow::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() {
            let fits = beside.push(SendAncillaryMessage::ScmRights(sockets));
            ensure!(fits, "too many sockets in one message");
        }
        let bytes = [IoSlice::new(text.as_bytes())];
        // A side that has gone is an error and not a signal.
        let flags = SendFlags::NOSIGNAL;
        let sent = self.in_time(sockopt::Timeout::Send, || {
            rustix::net::sendmsg(&self.socket, &bytes, &mut beside, flags)
        })?;
        ensure!(sent == text.len(), "a message was cut");
        Ok(())
    }

    /// The next message; an error when there comes none.
    pub(super) fn hear(&self) -> anyhow::Result<(String, Vec<OwnedFd>)> {
        let mut bytes = vec![0; BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let mut into = [IoSliceMut::new(&mut bytes)];
        let got = self.in_time(sockopt::Timeout::Recv, || {
            rustix::net::recvmsg(&self.socket, &mut into, &mut beside, flags)
        });
        let got = got.context("the other side says nothing")?;
        let sockets = beside
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
                _ => None,
            })
            .flatten()
            .collect();
        let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
        ensure!(!got.flags.intersects(cut), "a message was cut");
        ensure!(got.bytes > 0, "the other side has gone");
        bytes.truncate(got.bytes);
        let text = String::from_utf8(bytes).context("a message is not text")?;
        Ok((text, sockets))
    }

    /// # Errors
    /// When it says anything else, or nothing in time.
    pub(super) fn expect(&self, word: &str) -> anyhow::Result<()> {
        let (text, _) = self.hear()?;
        ensure!(
            text == word,
            "the other side says {text:?} instead of {word:?}"
        );
        Ok(())
    }

    pub(super) fn send_sockets(&self, sockets: &[Handed<&TcpListener>]) -> anyhow::Result<()> {
        self.say(HELLO)?;
        for some in sockets.chunks(SOCKETS) {
            let names: Vec<_> = some
                .iter()
                .map(|handed| format!("{} {}", handed.purpose.name(), handed.address))
                .collect();
            let sockets: Vec<_> = some.iter().map(|handed| handed.socket.as_fd()).collect();
            self.send(&names.join("\n"), &sockets)?;
        }
        self.say(END)
    }

    /// What comes behind the first message.
    pub(super) fn take_sockets(&self) -> anyhow::Result<Vec<Handed>> {
        let mut all = Vec::new();
        loop {
            let (text, sockets) = self.hear()?;
            if text == END && sockets.is_empty() {
                return Ok(all);
            }
            let names: Vec<_> = text.lines().collect();
            ensure!(names.len() == sockets.len(), "sockets got lost on the way");
            ensure!(all.len() + names.len() <= MOST, "more than {MOST} sockets");
            for (name, socket) in names.into_iter().zip(sockets) {
                all.push(handed(name, socket).with_context(|| format!("socket {name:?}"))?);
            }
        }
    }
}

/// A socket that is what its name says.
fn handed(name: &str, socket: OwnedFd) -> anyhow::Result<Handed> {
    let (word, address) = name.split_once(' ').context("no purpose")?;
    let purpose = Purpose::ALL.into_iter().find(|known| known.name() == word);
    let purpose = purpose.context("unknown purpose")?;
    let address: SocketAddr = address.parse()?;
    if !sockopt::socket_acceptconn(&socket)? {
        bail!("it does not listen");
    }
    let socket = TcpListener::from(socket);
    let listens = socket.local_addr()?;
    ensure!(listens == address, "it listens on {listens}");
    // A flag of the socket and not of the descriptor, so it came along, but everything hangs on it.
    socket.set_nonblocking(true)?;
    Ok(Handed {
        purpose,
        address,
        socket,
    })
}
