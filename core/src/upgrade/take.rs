//! The side that takes over.

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags};

use super::wire::{Connection, GO, HELLO, READY, socket};
use super::{ANSWER_LIMIT, Handed};

/// How long a process waits for the sockets. One that was forgotten doesn't wait for ever.
const WAIT_LIMIT: Duration = Duration::from_secs(600);

/// How long a process that has connected may take to say what it wants: it says so at once, and nobody else is heard meanwhile.
const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// How often a process that waits looks whether it is told to end.
const LOOK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A process that waits for the sockets of another one. Its Unix socket goes when this is dropped.
#[derive(Debug)]
pub struct Waiting {
    socket: OwnedFd,
    path: PathBuf,
}

/// A process that has the sockets and does not use them yet.
#[derive(Debug)]
pub struct Heir {
    connection: Connection,
    /// The sockets.
    pub sockets: Vec<Handed>,
}

impl Waiting {
    /// Waits at `path`, where only this user can come.
    ///
    /// # Errors
    /// When the folder is missing or may not be written to, when something else is there, or another process waits
    /// there already.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        make_room(path)?;
        let socket = socket()?;
        let place = || format!("can't wait for the sockets at {}", path.display());
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).with_context(place)?)
            .with_context(place)?;
        let waiting = Self {
            socket,
            path: path.to_owned(),
        };
        // Before it listens nobody can connect.
        fs::set_permissions(path, Permissions::from_mode(0o600)).with_context(place)?;
        rustix::net::listen(&waiting.socket, 1).with_context(place)?;
        Ok(waiting)
    }

    /// Waits for the sockets; `None` when `ended` says that the process is to end.
    ///
    /// # Errors
    /// When nobody comes for ten minutes.
    pub fn heir(self, ended: impl Fn() -> bool) -> anyhow::Result<Option<Heir>> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if ended() {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                bail!(
                    "no process has handed its sockets over for {} s: send it SIGQUIT",
                    WAIT_LIMIT.as_secs()
                );
            }
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut polled, Some(&LOOK_INTERVAL)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.accept() {
                Ok(heir) => return Ok(Some(heir)),
                Err(error) => tracing::warn!("upgrade: not handed over: {error:#}"),
            }
        }
    }

    fn accept(&self) -> anyhow::Result<Heir> {
        let connection = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        let connection = Connection::accepted(connection, HELLO_LIMIT).trusted()?;
        connection.expect(HELLO)?;
        let connection = connection.within(ANSWER_LIMIT);
        let sockets = connection.take_sockets()?;
        Ok(Heir {
            connection,
            sockets,
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What is left is made room of by the next one.
        let _ = fs::remove_file(&self.path);
    }
}

impl Heir {
    /// Says that this process can accept connections, and waits until the other one does so no more.
    ///
    /// # Errors
    /// When the other one has given up: then it goes on, and this one must not accept anything.
    pub fn take_over(self) -> anyhow::Result<()> {
        let connection = self.connection;
        connection.say(READY).and_then(|()| connection.expect(GO))
    }
}

/// Removes the Unix socket of a process that is gone.
fn make_room(path: &Path) -> anyhow::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        bail!("{} is no socket: it stays", path.display());
    }
    match Connection::to(path, HELLO_LIMIT) {
        Err(Errno::CONNREFUSED) => {}
        Err(Errno::NOENT) => return Ok(()),
        // It may also be too busy to answer.
        Ok(_) | Err(Errno::AGAIN) => bail!("another process waits at {} already", path.display()),
        Err(error) => {
            return Err(error).with_context(|| format!("can't ask at {}", path.display()));
        }
    }
    fs::remove_file(path).with_context(|| format!("can't remove {}", path.display()))
}
