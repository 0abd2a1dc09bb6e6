//! Who is called, found in the generation.

use std::fmt;
use std::net::IpAddr;

use edgewright_script::outbound::Recipient;

use crate::{generation::Generation, metrics::PoolMetrics, pools::Pool};

/// Who is called. `Display` names it for messages: the pool, or host and port.
#[derive(Debug, Clone, Copy)]
pub(super) enum Callee<'a> {
    Pool {
        pool: &'a Pool,
        metrics: &'a PoolMetrics,
    },
    Server {
        tls: bool,
        host: &'a str,
        port: u16,
    },
}

impl<'a> Callee<'a> {
    pub(super) fn find(recipient: &'a Recipient, generation: &'a Generation) -> Self {
        match recipient {
            Recipient::Pool(id) => {
                let (pool, metrics) = generation.pool(*id);
                Callee::Pool { pool, metrics }
            }
            Recipient::Server { tls, host, port } => Callee::Server {
                tls: *tls,
                host,
                port: *port,
            },
        }
    }

    /// What `Host` says unless the program gives its own: the authority of the URL without a port
    /// that its scheme implies (RFC 9110 section 7.2), or the pool's first target as it is
    /// configured (see [`Target::authority`]).
    pub(super) fn authority(&self) -> String {
        match *self {
            Callee::Pool { pool, .. } => {
                let first = pool.config().targets.first();
                first.map_or_else(|| "localhost".to_owned(), |first| first.target.authority())
            }
            Callee::Server { tls, host, port } => {
                let implied = if tls { 443 } else { 80 };
                if port == implied {
                    Bracketed(host).to_string()
                } else {
                    format!("{}:{port}", Bracketed(host))
                }
            }
        }
    }
}

impl fmt::Display for Callee<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Callee::Pool { pool, .. } => write!(f, "pool {}", pool.name()),
            Callee::Server { host, port, .. } => write!(f, "{}:{port}", Bracketed(host)),
        }
    }
}

/// A host as a URL has it: IPv6 addresses in brackets.
struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.parse() {
            Ok(IpAddr::V6(_)) => write!(f, "[{}]", self.0),
            _ => f.write_str(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_of_a_url_has_no_implied_port() {
        for (tls, host, port, authority, name) in [
            (false, "api.test", 80, "api.test", "api.test:80"),
            (true, "api.test", 443, "api.test", "api.test:443"),
            (true, "api.test", 80, "api.test:80", "api.test:80"),
            (false, "::1", 8080, "[::1]:8080", "[::1]:8080"),
            (true, "::1", 443, "[::1]", "[::1]:443"),
        ] {
            let callee = Callee::Server { tls, host, port };
            assert_eq!(callee.authority(), authority);
            assert_eq!(callee.to_string(), name);
        }
    }
}
