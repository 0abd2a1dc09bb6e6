//! Names of upstreams, resolved off the request path.
//!
//! [`Resolver`] owns one thread, "dns", and on it one task for each name that somebody uses. A task
//! asks for A and AAAA on two independent schedules that follow the records' time to live, keeps
//! the last good addresses through every failure, and announces changes to its listeners. A service
//! (`srv:` of a pool) has one more task, for its SRV records, and each of its servers is a name like
//! any other. Nothing here ever runs on a proxy worker; a worker only reads what a pool made of the
//! answer.
//!
//! How an outcome of a lookup is treated:
//!
//! | outcome | addresses | next lookup |
//! | --- | --- | --- |
//! | records | replaced, compared as a set | the smallest TTL within `min_ttl..=max_ttl`, less up to 10 % |
//! | SERVFAIL, REFUSED, timeout, network error | kept for ever | 0.5 s, doubling to 30 s (to 5 s while there is none to keep) |
//! | no such name, or no address | kept for `hold_empty` and at least two such answers in a row, then removed | the negative TTL, 30 s at most (`max_ttl` while the other record type has addresses) |
//!
//! Decisions worth knowing:
//!
//! - Order of sources as in nsswitch's `files dns`: a name in `/etc/hosts` has the addresses given
//!   there and is not asked for. `localhost` and names under it never reach DNS (RFC 6761, section
//!   6.3); of their loopback addresses the IPv4 ones are used, because most services that are
//!   reached by that name listen on 127.0.0.1 only.
//! - The search list is ours, not the library's: hickory turns a failure of the right candidate
//!   into a false "no such name" when a later one doesn't exist. `[dns] servers` switches it off:
//!   names are then absolute, and `/etc/resolv.conf` isn't read.
//! - Addresses that lead to the machine's own metadata are not used, whoever says so (`guard`), unless
//!   `[dns] allow` has them. What stands in a file of this machine, `/etc/hosts` or the
//!   configuration, is not an answer and isn't asked about.
//! - Schedules know the monotonic clock only: a jump of the other one changes nothing.
//! - AAAA isn't asked while the host has no global IPv6 address (RFC 3493's `AI_ADDRCONFIG`); that
//!   halves the load in IPv4 clusters. Unique local addresses (fd00::/8) count as global.
//! - Servers are tried in their order, as the C library does, but one that didn't answer goes to
//!   the end of the order for 30 s.

mod addresses;
mod context;
mod family;
mod guard;
mod kind;
mod known;
mod listeners;
mod lookup;
mod name;
mod outcome;
mod resolver;
mod schedule;
mod search;
mod service;
mod service_task;
mod snapshot;
mod statistics;
mod system;
#[cfg(test)]
pub(crate) mod tests;
mod watched;

pub(crate) use guard::Danger;
pub use listeners::Listener;
pub use resolver::Resolver;
pub use service::{Server, Servers, Service, SrvRecord};
pub use snapshot::{LookupCount, NameSnapshot, ServiceSnapshot, Snapshot};
pub use watched::{Answer, Origin, State, Watched};
