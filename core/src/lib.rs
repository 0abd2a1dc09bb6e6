//! edgewright: a reverse proxy on Pingora whose routing, auth and rewriting are one checked,
//! hot-reloaded Rhai program, `routes.rhai`.
//!
//! `docs/architecture.md` shows the way of a request and of a reload through these modules.

pub mod admin;
mod background;
pub mod certificates;
pub mod commands;
pub mod config;
mod discard;
pub mod dns;
pub mod files;
#[doc(hidden)]
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod generation;
pub mod health;
pub mod in_force;
pub mod jwks;
pub mod last_good;
pub mod lifecycle;
pub mod live;
mod logging;
pub mod memory;
pub mod metrics;
pub mod outbound;
pub mod parcel;
pub mod pools;
pub mod proxy;
mod proxy_protocol;
pub mod reload;
pub mod resources;
pub mod server;
pub mod shutdown;
pub mod source;
pub mod tls;
pub mod upgrade;
pub mod worker;
