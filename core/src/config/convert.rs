//! From the shape of the file to the model: defaults filled in, everything checked.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use edgewright_script::diagnostic::Diagnostics;
use edgewright_script::path::{Handling, PathPolicy};
use toml::Spanned;

use super::check::{Checks, OR_ZERO, POSITIVE};
use super::endpoints::endpoints;
use super::error::Source;
use super::units::{AutoOrCount, Count, NoneOrSize};
use super::{
    Config, Dns, Limits, Log, Overrides, ScriptLimits, Server, Threads, check_zone, file,
    listener_tls, pools,
};

const KIB: u64 = 1024;

/// A configuration, as far as the text alone makes it.
#[derive(Debug)]
pub(super) struct Parsed {
    pub config: Config,
    /// Where in the file its `routes` stands.
    pub routes_at: Option<Range<usize>>,
    /// The files that the TLS of listeners is made of, by their address.
    pub listeners_tls: Vec<(SocketAddr, listener_tls::Unread)>,
    /// The files that the TLS of pools is made of, by the name of the pool.
    pub tls: Vec<(String, pools::tls::Unread)>,
}

/// Reads the text of a configuration file, with what stands in place of parts of it.
pub(super) fn parse(source: Source<'_>, overrides: &Overrides) -> Result<Parsed, Diagnostics> {
    let file: file::File =
        toml::from_str(source.text).map_err(|error| source.parse_error(&error))?;
    let mut checks = Checks::new(source);
    let default = Config::default();

    let routes_at = file.routes.as_ref().map(Spanned::span);
    let routes = file.routes.map_or(default.routes, Spanned::into_inner);
    if let Some(span) = &routes_at
        && routes.is_empty()
    {
        checks.error(span, "`routes` can't be empty");
    }
    let endpoints = endpoints(
        &mut checks,
        file.listeners,
        overrides,
        file.admin,
        file.health,
        !file.trusted_proxies.cidrs.is_empty(),
    );
    let server = server(&mut checks, file.server, overrides);
    let mut tls = Vec::new();
    let pools = file
        .pools
        .into_iter()
        .map(|(name, table)| {
            let mut taken = pools::take(&mut checks, &name, table);
            taken.pool.own_zone = server.zone.as_deref().map(Into::into);
            let name = name.into_inner();
            tls.extend(taken.tls.map(|unread| (name.clone(), unread)));
            (name, taken.pool)
        })
        .collect();
    let config = Config {
        file: None,
        routes,
        server,
        listeners: endpoints.listeners,
        pools,
        dns: dns(&mut checks, file.dns),
        limits: limits(&mut checks, file.limits),
        script: script(&mut checks, file.script),
        path: path(&file.path),
        admin: endpoints.admin,
        health: endpoints.health,
        files: super::FilesConfig {
            allow: each(&file.files.allow, |folder| checks.folder(folder)),
        },
        log: Log {
            level: file.log.level.unwrap_or_default(),
            format: file.log.format.unwrap_or_default(),
        },
        trusted_proxies: each(&file.trusted_proxies.cidrs, |cidr| checks.network(cidr)),
    };
    checks.into_result()?;
    Ok(Parsed {
        config,
        routes_at,
        listeners_tls: endpoints.tls,
        tls,
    })
}

/// The values of a list that are right; what is wrong has been noted.
fn each<T>(given: &[Spanned<String>], check: impl FnMut(&Spanned<String>) -> Option<T>) -> Vec<T> {
    given.iter().filter_map(check).collect()
}

/// A number of 1 and more; `None` for "auto", and for what was not given or is wrong.
fn auto_or_count(
    checks: &mut Checks<'_>,
    key: &str,
    given: Option<Spanned<AutoOrCount>>,
    most: u64,
) -> Option<usize> {
    let given = given?;
    let AutoOrCount::Count(number) = *given.get_ref() else {
        return None;
    };
    let mut count = 1;
    let given = Spanned::new(given.span(), Count(number));
    checks.count::<usize>(&mut count, key, Some(given), 1..=most);
    Some(count)
}

/// Bytes of the path of a Unix socket (unix(7)).
const LONGEST_SOCKET: usize = 107;

fn server(checks: &mut Checks<'_>, table: file::Server, overrides: &Overrides) -> Server {
    let mut server = Server::default();
    if let Some(threads) = auto_or_count(checks, "server.threads", table.threads, 1024) {
        server.threads = Threads::Count(threads);
    }
    server.upstream_keepalive = auto_or_count(
        checks,
        "server.upstream_keepalive",
        table.upstream_keepalive,
        1_000_000,
    );
    if let Some(forwarded) = table.forwarded_headers {
        server.forwarded_headers = forwarded;
    }
    server.zone = overrides.default_zone.clone();
    if let Some(zone) = table.zone {
        match check_zone(zone.get_ref()) {
            Ok(()) => server.zone = Some(zone.into_inner()),
            Err(message) => checks.error(&zone.span(), message),
        }
    }
    if let Some(given) = table.upgrade_socket {
        let path = given.get_ref();
        if path.starts_with('/') && path.len() <= LONGEST_SOCKET {
            server.upgrade_socket = Some(path.into());
        } else {
            let message = format!(
                "`server.upgrade_socket` must be an absolute path of at most {LONGEST_SOCKET} bytes"
            );
            checks.error(&given.span(), message);
        }
    }
    let (shutdown, given) = (&mut server.shutdown, table.shutdown);
    checks.time(
        &mut shutdown.delay,
        "server.shutdown.delay",
        given.delay,
        OR_ZERO,
    );
    checks.time(
        &mut shutdown.drain,
        "server.shutdown.drain",
        given.drain,
        OR_ZERO,
    );
    server
}

fn dns(checks: &mut Checks<'_>, table: file::Dns) -> Dns {
    let mut dns = Dns {
        servers: each(&table.servers, |server| checks.fixed_address(server, 53)),
        allow: each(&table.allow, |network| checks.network(network)),
        ..Dns::default()
    };
    let least = Duration::from_millis(100);
    let longest = *POSITIVE.end();
    checks.time(&mut dns.timeout, "dns.timeout", table.timeout, POSITIVE);
    checks.count(&mut dns.attempts, "dns.attempts", table.attempts, 1..=10);
    checks.time(
        &mut dns.min_ttl,
        "dns.min_ttl",
        table.min_ttl.clone(),
        least..=longest,
    );
    // A `min_ttl` above the default `max_ttl` raises that too, unless both were written.
    if table.max_ttl.is_none() {
        dns.max_ttl = dns.max_ttl.max(dns.min_ttl);
    }
    checks.time(
        &mut dns.max_ttl,
        "dns.max_ttl",
        table.max_ttl,
        dns.min_ttl..=longest,
    );
    checks.time(
        &mut dns.hold_empty,
        "dns.hold_empty",
        table.hold_empty,
        OR_ZERO,
    );
    checks.time(
        &mut dns.startup_timeout,
        "dns.startup_timeout",
        table.startup_timeout,
        OR_ZERO,
    );
    dns
}

fn limits(checks: &mut Checks<'_>, table: file::Limits) -> Limits {
    let mut limits = Limits::default();
    checks.size(
        &mut limits.request_header,
        "limits.request_header",
        table.request_header,
        256..=1023 * KIB,
    );
    checks.count(
        &mut limits.request_headers,
        "limits.request_headers",
        table.request_headers,
        1..=256,
    );
    checks.size(&mut limits.uri, "limits.uri", table.uri, 16..=63 * KIB);
    limits.request_body = match table.request_body {
        Some(NoneOrSize::Size(bytes)) => Some(bytes),
        Some(NoneOrSize::None) | None => None,
    };
    checks.count(
        &mut limits.keepalive_requests,
        "limits.keepalive_requests",
        table.keepalive_requests,
        1..=u32::MAX.into(),
    );
    let keepalive = table.keepalive_timeout;
    if let Some(given) = &keepalive
        && given.get_ref().0.subsec_nanos() != 0
    {
        checks.error(
            &given.span(),
            "`limits.keepalive_timeout` must be whole seconds",
        );
    } else {
        checks.time(
            &mut limits.keepalive_timeout,
            "limits.keepalive_timeout",
            keepalive,
            Duration::from_secs(1)..=*POSITIVE.end(),
        );
    }
    checks.time(
        &mut limits.request_read_timeout,
        "limits.request_read_timeout",
        table.request_read_timeout,
        POSITIVE,
    );
    checks.time(
        &mut limits.response_write_timeout,
        "limits.response_write_timeout",
        table.response_write_timeout,
        POSITIVE,
    );
    limits.connections = auto_or_count(checks, "limits.connections", table.connections, 10_000_000);
    checks.time(
        &mut limits.tls_handshake_timeout,
        "limits.tls_handshake_timeout",
        table.tls_handshake_timeout,
        POSITIVE,
    );
    checks.count(
        &mut limits.password_checks,
        "limits.password_checks",
        table.password_checks,
        1..=10_000,
    );
    checks.count(
        &mut limits.mirrors,
        "limits.mirrors",
        table.mirrors,
        0..=10_000,
    );
    limits
}

fn script(checks: &mut Checks<'_>, table: file::Script) -> ScriptLimits {
    let mut script = ScriptLimits::default();
    checks.count(
        &mut script.operations,
        "script.operations",
        table.operations,
        1..=1_000_000,
    );
    checks.time(
        &mut script.time,
        "script.time",
        table.time,
        *POSITIVE.start()..=Duration::from_secs(10),
    );
    checks.size(
        &mut script.memory,
        "script.memory",
        table.memory,
        64 * KIB..=1024 * 1024 * KIB,
    );
    checks.count(
        &mut script.call_depth,
        "script.call_depth",
        table.call_depth,
        1..=32,
    );
    checks.size(
        &mut script.string,
        "script.string",
        table.string,
        1..=1024 * KIB,
    );
    checks.count(
        &mut script.items,
        "script.items",
        table.items,
        1..=1_000_000,
    );
    checks.size(
        &mut script.body,
        "script.body",
        table.body,
        1..=64 * 1024 * KIB,
    );
    checks.size(
        &mut script.bodies,
        "script.bodies",
        table.bodies,
        1024 * KIB..=64 * 1024 * 1024 * KIB,
    );
    checks.count(
        &mut script.fetches,
        "script.fetches",
        table.fetches,
        1..=1000,
    );
    checks.time(
        &mut script.fetch_timeout,
        "script.fetch_timeout",
        table.fetch_timeout,
        *POSITIVE.start()..=Duration::from_secs(600),
    );
    checks.size(
        &mut script.fetch_body,
        "script.fetch_body",
        table.fetch_body,
        1..=16 * 1024 * KIB,
    );
    checks.count(
        &mut script.waiting,
        "script.waiting",
        table.waiting,
        1..=100_000,
    );
    checks.size(
        &mut script.waiting_memory,
        "script.waiting_memory",
        table.waiting_memory,
        1024 * KIB..=64 * 1024 * 1024 * KIB,
    );
    script.compile = table.compile.unwrap_or(script.compile);
    script
}

fn path(table: &file::Path) -> PathPolicy {
    let handling = |given: Option<file::Handling>| match given {
        Some(file::Handling::Keep) => Handling::Keep,
        Some(file::Handling::Reject) | None => Handling::Reject,
    };
    PathPolicy {
        empty_segment: handling(table.empty_segment),
        encoded_slash: handling(table.encoded_slash),
        encoded_backslash: handling(table.encoded_backslash),
        encoded_nul: handling(table.encoded_nul),
        backslash: handling(table.backslash),
        double_encoding: handling(table.double_encoding),
        semicolon: handling(table.semicolon),
    }
}
