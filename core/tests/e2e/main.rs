//! End-to-end tests: the built binary, driven through real sockets, against scripted upstreams and
//! a real nginx.
//!
//! One test binary with a module per topic, so that there is one link step. The situations that
//! come from other products' bug reports have a module each, named after the case.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod attempts;
mod background;
mod balancing;
mod basic_auth;
mod big_body;
mod body_length;
mod broken_program;
mod budgets;
mod canary_sticky;
mod coded_body;
mod commands;
mod compress;
mod concurrency;
mod conditions;
mod configmap_swap;
mod connection_age;
mod connections;
mod control_in_path;
mod demo;
mod deny_then_response;
mod draining;
mod early_answers;
mod editor_saves;
mod endings;
mod failing_upstream;
mod fd_limit;
mod fetch;
mod filters;
mod first_hits;
mod forward_auth;
mod forwarding;
mod gate_error;
mod gates;
mod generations;
mod grpc;
mod health;
mod hooks;
mod hostile_responses;
mod hostile_upstreams;
mod http2_clients;
mod hygiene;
mod imports;
mod instances;
mod jwt_traps;
mod keepalive_churn;
mod key_sets;
mod kubernetes;
mod last_good;
mod limits;
mod load_time_values;
mod long_lived;
mod many_args;
mod mirror;
mod mistakes;
mod moved_backend;
mod names;
mod no_admin;
mod no_root_certificates;
mod nominated;
mod observability;
mod odd_hosts;
mod on_log;
mod path_tricks;
mod pool_limits;
mod preflight;
mod proxy_protocol;
mod quota;
mod reload;
mod reload_storm;
mod reload_watch;
mod request_changes;
mod response_hooks;
mod retries;
mod rewrite_regex;
mod routing;
mod runaway;
mod script_metrics;
mod shared_state;
mod shutdown;
mod sites;
mod split_chunk;
mod spoofed_ip;
mod sticky;
mod support_itself;
mod syscalls;
mod targets;
mod tls_clients;
mod tls_hostile;
mod tls_reload;
mod two_hooks;
mod upgrade;
mod upstream_http2;
mod upstream_times;
mod upstream_tls;
mod webhook;
mod websocket_storm;
mod websockets;
mod wrong_phase;
