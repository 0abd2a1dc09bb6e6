//! Another binary takes over without a connection that is refused or reset.
//!
//! `edgewright run --upgrade` loads everything, waits at a Unix socket (`[server] upgrade_socket`) and is given the
//! listening sockets themselves (SCM_RIGHTS, unix(7)) by the process that serves, when that gets SIGQUIT. Both
//! processes then hold the same sockets with the same connections waiting in them, so it doesn't matter which
//! of the two accepts, and nothing is lost when the old one closes its side.
//!
//! | | who serves | who takes over |
//! | --- | --- | --- |
//! | 1 | | has loaded, waits |
//! | 2 | SIGQUIT: connects, sends all sockets | takes them, binds what is missing, starts its workers |
//! | 3 | | `ready` |
//! | 4 | `go`, then stops accepting and drains | accepts |
//!
//! Until `go` is sent either side may fail, and the old process goes on as if nothing had been. Each looks at who the
//! other one is: both must be the same user.

mod give;
mod take;
#[cfg(test)]
mod tests;
mod wire;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

pub use give::{NotGiven, give};
pub use take::{Heir, Waiting};

use crate::admin::Role;

/// How long one side waits for the other's next message. Binding and starting threads takes milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Requests.
    Listener,
    /// `[admin]`.
    Admin,
    /// `[health]`.
    Health,
}

impl From<Role> for Purpose {
    fn from(role: Role) -> Self {
        match role {
            Role::Admin => Self::Admin,
            Role::Health => Self::Health,
        }
    }
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Listener, Self::Admin, Self::Health];

    fn name(self) -> &'static str {
        match self {
            Self::Listener => "listener",
            Self::Admin => "admin",
            Self::Health => "health",
        }
    }
}

/// A socket that changes hands.
#[derive(Debug)]
pub struct Handed<S = TcpListener> {
    /// What it is for.
    pub purpose: Purpose,
    /// Where it listens.
    pub address: SocketAddr,
    /// The socket.
    pub socket: S,
}
