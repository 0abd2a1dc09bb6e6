//! Messages between the two processes: lines of text, with sockets beside them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
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
pub(super) struct Connection(OwnedFd);

/// A socket of this kind.
pub(super) fn socket() -> rustix::io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
}

impl Connection {
    /// # Errors
    /// When nobody listens at `path`: `NOENT` or `CONNREFUSED`; else what the kernel says.
    pub(super) fn to(path: &Path) -> rustix::io::Result<Self> {
        let socket = socket()?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self(socket))
    }

    pub(super) fn accepted(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sets how long each message may take, and looks who is on the other side.
    ///
    /// # Errors
    /// When that is another user.
    pub(super) fn trusted(self, limit: Duration) -> anyhow::Result<Self> {
        let peer = sockopt::socket_peercred(&self.0).context("can't ask who the other side is")?;
        let own = rustix::process::geteuid();
        ensure!(
            peer.uid == own,
            "the other side is user {}, not {}",
            peer.uid.as_raw(),
            own.as_raw()
        );
        for direction in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&self.0, direction, Some(limit))?;
        }
        Ok(self)
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
        let sent = rustix::net::sendmsg(&self.0, &bytes, &mut beside, SendFlags::NOSIGNAL)?;
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
        let got = rustix::net::recvmsg(&self.0, &mut into, &mut beside, flags)
            .context("the other side says nothing")?;
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

    pub(super) fn take_sockets(&self) -> anyhow::Result<Vec<Handed>> {
        self.expect(HELLO)?;
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
