//! End-to-end tests: the built binary, driven through real sockets, against scripted upstreams and
//! a real nginx.
//!
//! One test binary with a module per topic, so that there is one link step. The situations that
//! come from other products' bug reports have a module each, named after the case.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod basic_auth;
mod broken_program;
mod budgets;
mod commands;
mod conditions;
mod configmap_swap;
mod control_in_path;
mod demo;
mod endings;
mod failing_upstream;
mod fd_limit;
mod fetch;
mod filters;
mod forward_auth;
mod forwarding;
mod gate_error;
mod hooks;
mod hostile_responses;
mod hygiene;
mod imports;
mod instances;
mod jwt_traps;
mod keepalive_churn;
mod key_sets;
mod limits;
mod load_time_values;
mod moved_backend;
mod no_admin;
mod no_root_certificates;
mod nominated;
mod observability;
mod odd_hosts;
mod path_tricks;
mod quota;
mod reload;
mod response_hooks;
mod routing;
mod runaway;
mod shared_state;
mod shutdown;
mod sites;
mod support_itself;
mod syscalls;
mod targets;
