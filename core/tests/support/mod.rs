//! What the black-box tests share: the proxy as a child process, scripted and real upstreams,
//! a raw client, and the rooms (network namespace, cgroup) that some tests put the proxy in.
//!
//! Nothing here waits by sleeping: a wait is a condition that can be observed, with a deadline.

// Every test binary that includes this module uses a part of it.
#![allow(dead_code)]
#![allow(clippy::unwrap_used)]

pub mod atomic_writer;
pub mod certificates;
pub mod cgroup;
pub mod client;
pub mod command;
pub mod dns_server;
pub mod grpc;
pub mod http2;
pub mod http2_call;
pub mod launch;
pub mod load;
pub mod lock;
pub mod log;
pub mod metrics;
pub mod netns;
pub mod nginx;
pub mod nginx_lua;
pub mod ports;
pub mod proxy;
pub mod service;
pub mod skip;
pub mod tls_server;
pub mod two_files;
pub mod upstream;
pub mod versions;
pub mod wait;
pub mod websocket;
pub mod wire;
