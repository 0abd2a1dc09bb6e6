//! `[[listeners]]`, `[admin]` and `[health]`: every address that the process listens on, none of
//! which may be in another's way.

use std::net::SocketAddr;

use edgewright_script::diagnostic::Diagnostic;
use toml::Spanned;

use super::check::Checks;
use super::{Config, Listener, Overrides, file, listener_tls};

/// Where the process listens.
pub(super) struct Endpoints {
    pub listeners: Vec<Listener>,
    /// The files of those with TLS, by their address.
    pub tls: Vec<(SocketAddr, listener_tls::Unread)>,
    pub admin: Option<SocketAddr>,
    pub health: Option<SocketAddr>,
}

/// Takes the addresses of the file; those of the command line, if any, stand in place of its
/// listeners.
pub(super) fn endpoints(
    checks: &mut Checks<'_>,
    tables: Vec<Spanned<file::Listener>>,
    overrides: &Overrides,
    admin: file::Endpoint,
    health: file::Endpoint,
    has_trusted_proxies: bool,
) -> Endpoints {
    let default = Config::default();
    let listen = &overrides.listen;
    let mut taken = Taken::default();
    let mut listeners = written_listeners(checks, tables, has_trusted_proxies);
    if listen.is_empty() {
        for Written { listener, at, .. } in &listeners {
            if let Err(message) = taken.take(listener.address, "a listener") {
                checks.error(&at.span(), message);
            }
        }
    } else {
        listeners.clear();
        for address in listen {
            if let Err(message) = taken.take_listen(*address) {
                checks.error_without_place(Diagnostic::error(format!("`--listen`: {message}")));
            }
        }
    }
    let mut tls = Vec::new();
    let written = listeners.into_iter().map(|written| {
        let address = written.listener.address;
        tls.extend(written.tls.map(|unread| (address, unread)));
        written.listener
    });
    let mut listeners: Vec<_> = written
        .chain(listen.iter().copied().map(Listener::plain))
        .collect();
    if listeners.is_empty() {
        listeners = match overrides.default_listen {
            Some(address) => vec![Listener::plain(address)],
            None => default.listeners,
        };
    }
    let default_health = overrides.default_health.or(default.health);
    Endpoints {
        listeners,
        tls,
        admin: endpoint(checks, &mut taken, "[admin]", admin, default.admin),
        health: endpoint(checks, &mut taken, "[health]", health, default_health),
    }
}

/// A listener as the file has it.
struct Written {
    listener: Listener,
    at: Spanned<String>,
    tls: Option<listener_tls::Unread>,
}

/// The listeners of the file whose address is right.
fn written_listeners(
    checks: &mut Checks<'_>,
    tables: Vec<Spanned<file::Listener>>,
    has_trusted_proxies: bool,
) -> Vec<Written> {
    let mut listeners = Vec::new();
    for table in tables {
        let span = table.span();
        let table = table.into_inner();
        let proxy_protocol = table.proxy_protocol.filter(|given| *given.get_ref());
        if let Some(given) = &proxy_protocol
            && !has_trusted_proxies
        {
            checks.error_with_help(
                &given.span(),
                "`proxy_protocol` without `[trusted_proxies]`: nobody's header would be believed",
                "name the proxies in front in `cidrs` of `[trusted_proxies]`",
            );
        }
        let has_tls = table.tls.is_some();
        let tls = table.tls.and_then(|tls| listener_tls::take(checks, tls));
        let Some(given) = table.address else {
            checks.error(&span, "the listener has no `address`");
            continue;
        };
        if let Some(address) = checks.fixed_address(&given, 8080) {
            let listener = Listener {
                address,
                http2: table.http2.unwrap_or(has_tls),
                proxy_protocol: proxy_protocol.is_some(),
                // Until its files are read.
                tls: None,
            };
            listeners.push(Written {
                listener,
                at: given,
                tls,
            });
        }
    }
    listeners
}

/// The address of `[admin]` or `[health]`; `None` is "off".
fn endpoint(
    checks: &mut Checks<'_>,
    taken: &mut Taken,
    name: &str,
    table: file::Endpoint,
    default: Option<SocketAddr>,
) -> Option<SocketAddr> {
    let Some(given) = table.address else {
        let address = default?;
        if let Err(message) = taken.take(address, name) {
            checks.error_without_place(Diagnostic::error(format!("{name}: {message}")).help(
                format!("{address} is the default: give {name} another `address`, or \"off\""),
            ));
        }
        return Some(address);
    };
    if given.get_ref() == "off" {
        return None;
    }
    let address = checks.address(&given, 9180)?;
    if let Err(message) = taken.take(address, name) {
        checks.error(&given.span(), message);
    }
    Some(address)
}

/// Every address so far, with what listens there.
#[derive(Default)]
struct Taken(Vec<(SocketAddr, String)>);

impl Taken {
    /// Takes an address for `owner`. `Err` says who is in the way.
    fn take(&mut self, address: SocketAddr, owner: &str) -> Result<(), String> {
        // Port 0 is another port each time. An unspecified address is every one of its family;
        // whether [::] takes IPv4 as well is the system's setting.
        let clash = |other: SocketAddr| {
            let (a, b) = (address.ip(), other.ip());
            address.port() == other.port()
                && address.port() != 0
                && a.is_ipv4() == b.is_ipv4()
                && (a == b || a.is_unspecified() || b.is_unspecified())
        };
        if let Some((other, owner)) = self.0.iter().find(|(other, _)| clash(*other)) {
            return Err(format!("{address} is taken: {owner} has {other}"));
        }
        self.0.push((address, owner.to_string()));
        Ok(())
    }

    /// Takes an address of the command line.
    fn take_listen(&mut self, address: SocketAddr) -> Result<(), String> {
        if address.port() == 0 {
            return Err("the port can't be 0: nobody would know it".to_string());
        }
        self.take(address, "`--listen`")
    }
}
