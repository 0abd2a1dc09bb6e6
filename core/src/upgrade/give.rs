//! The side that serves.

use std::net::TcpListener;
use std::path::Path;

use rustix::io::Errno;

use super::wire::{Connection, GO, READY};
use super::{ANSWER_LIMIT, Handed};

/// Why the sockets were not handed over; the process has them as before.
#[derive(Debug)]
pub enum NotGiven {
    /// Nobody waits for them.
    Nobody,
    /// The one that waits could not take over.
    Failed(anyhow::Error),
}

/// Hands `sockets` over to the process that waits at `path`. When this returns `Ok`, that one accepts
/// connections. Each message may take a minute.
///
/// # Errors
/// When that process can't take over; then it doesn't.
pub fn give(path: &Path, sockets: &[Handed<&TcpListener>]) -> Result<(), NotGiven> {
    let connection = match Connection::to(path, ANSWER_LIMIT) {
        Ok(connection) => connection,
        Err(Errno::NOENT) => return Err(NotGiven::Nobody),
        // It has been there: whoever asks for an upgrade doesn't mean an end.
        Err(Errno::CONNREFUSED) => {
            return Err(NotGiven::Failed(anyhow::anyhow!(
                "the process that has waited at {} is gone",
                path.display()
            )));
        }
        Err(error) => return Err(NotGiven::Failed(error.into())),
    };
    let give = || {
        let connection = connection.trusted()?;
        connection.send_sockets(sockets)?;
        connection.expect(READY)?;
        connection.say(GO)
    };
    give().map_err(NotGiven::Failed)
}
