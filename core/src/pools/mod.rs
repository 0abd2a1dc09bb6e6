//! Pools of upstreams: which endpoints there are, and which one a request gets.
//!
//! A [`Pool`] turns its targets (addresses, names, Unix sockets) into [`Endpoint`]s whose peers are
//! ready-made with all timeouts, off the request path: when it is built, and whenever the resolver
//! announces another answer. A request picks one with [`Pool::select`], without a lock, an await or
//! an allocation, and gives it back by dropping the [`Picked`].
//!
//! - An address that goes away gets no new request. Requests under way keep their endpoint, and
//!   idle connections to it, which Pingora's own pool holds, end after the pool's `idle` time.
//! - A pool whose configuration is the same after a reload is the same `Arc<Pool>`.
//! - An endpoint that is ejected or unhealthy gets no new request either ([`usable`] has the rules). What is known
//!   of an address ([`standing`]) outlives reloads.
//! - A target that is given twice, or that several names lead to, is one endpoint.

mod balance;
mod breaker;
mod budget;
mod connect;
mod endpoint;
mod introduction;
mod latency;
mod outlier;
mod peer;
mod pool;
mod set;
mod source;
mod standing;
mod status;
#[cfg(test)]
mod tests;
mod tiers;
mod usable;
mod wear;
mod wish;

pub use breaker::{Admitted, Breaker, Busy, Place};
pub use budget::{Budget, Retry};
pub use connect::classify_connect_error;
pub(crate) use connect::system_error;
pub use endpoint::{Endpoint, EndpointId, Picked};
pub(crate) use introduction::introduce;
pub(crate) use outlier::Event;
pub use pool::{Pool, Readiness, Unavailable};
pub use set::Pools;
pub(crate) use standing::Standing;
pub use standing::{Fault, Outcome};
pub use status::{EndpointStatus, PoolStatus};
pub(crate) use wish::OF_ADDRESS;
pub use wish::{Wanted, Wish};
