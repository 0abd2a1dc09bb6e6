//! One target of a pool: where to connect to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// Bytes of a Unix socket's path: `sun_path` holds 108 with the closing NUL (unix(7)).
const MAX_SOCKET_PATH: usize = 107;

/// Where to connect to. [`FromStr`] reads what a user writes and `Display` gives it back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// `10.0.0.1:8080` or `[fd00::1]:8080`.
    Address(SocketAddr),
    /// `web.default.svc:8080`: a name to resolve, all of whose addresses are used.
    Name {
        /// As written; a trailing dot means that no search domain is tried.
        host: String,
        /// Not 0.
        port: u16,
    },
    /// `srv:_http._tcp.web.default.svc`: the servers that the SRV records of this name say, each
    /// with its own port (RFC 2782).
    Srv {
        /// As written; a trailing dot means that no search domain is tried.
        name: String,
    },
    /// `unix:/run/app.sock`: an absolute path.
    Unix(PathBuf),
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Nothing there.
    #[error("a target can't be empty: write \"host:port\"")]
    Empty,
    /// `http://host`.
    #[error("a target has no scheme and no path: write \"host:port\" instead of `{0}`")]
    Url(String),
    /// `srv:_http._tcp.web:80`, `srv:`.
    #[error(
        "`{0}` is no service: write \"srv:NAME\", such as \"srv:_http._tcp.web.default.svc\", without a \
         port, which its records say"
    )]
    Srv(String),
    /// `host`.
    #[error("`{0}` has no port: write \"{0}:8080\"")]
    NoPort(String),
    /// `host:0`, `host:http`.
    #[error("`{port}` in `{text}` is no port: a port is a number from 1 to 65535")]
    Port {
        /// The whole target.
        text: String,
        /// What stands where the port should.
        port: String,
    },
    /// `fd00::1:8080`.
    #[error("an IPv6 address needs brackets: write \"[{0}]:8080\"")]
    Brackets(String),
    /// `my host:80`, `10.0.0:80`.
    #[error("`{0}` is neither an IP address nor a host name")]
    Host(String),
    /// `unix:app.sock`.
    #[error(
        "the path of a Unix socket is absolute, and at most {MAX_SOCKET_PATH} bytes long: `{0}` is not"
    )]
    Socket(String),
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        if let Some(path) = text.strip_prefix("unix:") {
            let fits = Path::new(path).is_absolute() && path.len() <= MAX_SOCKET_PATH;
            if !fits || path.contains('\0') {
                return Err(TargetError::Socket(path.to_string()));
            }
            return Ok(Self::Unix(path.into()));
        }
        if let Some(name) = text.strip_prefix("srv:") {
            return is_host_name(name)
                .then(|| Self::Srv {
                    name: name.to_string(),
                })
                .ok_or_else(|| TargetError::Srv(text.to_string()));
        }
        if text.contains('/') {
            return Err(TargetError::Url(text.to_string()));
        }
        if let Ok(address) = text.parse::<SocketAddr>()
            && address.port() != 0
        {
            return Ok(Self::Address(address));
        }
        named(text)
    }
}

/// A target that is no IP address with a port: `host:port`, or the error that fits best.
fn named(text: &str) -> Result<Target, TargetError> {
    if text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) {
        return Err(TargetError::Brackets(text.to_string()));
    }
    let (host, port) = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'))
        .ok_or_else(|| TargetError::NoPort(text.to_string()))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let ip = bare.parse::<IpAddr>();
    if ip.is_err() && !is_host_name(host) {
        return Err(TargetError::Host(host.to_string()));
    }
    // `parse` alone would take "+80" as well.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port @ 1..) if digits => match ip {
            Err(_) => Ok(Target::Name {
                host: host.to_string(),
                port,
            }),
            Ok(IpAddr::V6(ip)) => Err(TargetError::Brackets(ip.to_string())),
            Ok(IpAddr::V4(_)) => Err(TargetError::Host(host.to_string())),
        },
        _ => Err(TargetError::Port {
            text: text.to_string(),
            port: port.to_string(),
        }),
    }
}

/// Whether `host` can be a name: labels of letters, digits, `-` and `_` (which service discovery
/// uses), at most 63 bytes each and 253 together (RFC 1035 section 2.3.4). The last one is not a
/// number, or `10.0.0` and `256.1.1.1` would be names (RFC 3696 section 2).
fn is_host_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    name.len() <= 253 && name.split('.').all(label) && !name.rsplit('.').next().is_none_or(numeric)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Srv { name } => write!(f, "srv:{name}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Target {
    /// What `Host` says in a request that is made for this target: host and port; for a service, its
    /// name without the labels that say which service it is (`_http._tcp`), since they are no part of
    /// a host's name.
    #[must_use]
    pub fn authority(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Srv { name } => {
                let labels = name.trim_end_matches('.').split('.');
                let host: Vec<&str> = labels.skip_while(|label| label.starts_with('_')).collect();
                if host.is_empty() {
                    "localhost".to_owned()
                } else {
                    host.join(".")
                }
            }
            Self::Address(_) | Self::Name { .. } => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn reads_each_kind_and_gives_it_back() {
        for text in [
            "10.0.0.1:8080",
            "[fd00::1]:8080",
            "web:80",
            "Web.default.svc.cluster.local:65535",
            "web.example.com.:1",
            "_http.web-1.internal:80",
            "unix:/run/app.sock",
            "srv:_http._tcp.web.default.svc.cluster.local",
            "srv:web.service.consul.",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        assert_eq!(
            "10.0.0.1:80".parse(),
            Ok(Target::Address(([10, 0, 0, 1], 80).into()))
        );
        assert_eq!(
            "localhost:80".parse(),
            Ok(Target::Name {
                host: "localhost".to_string(),
                port: 80
            })
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let long = format!("{}:80", "a".repeat(64));
        let deep = format!("{}a:80", "a.".repeat(127));
        for (text, expected) in [
            ("", "a target can't be empty"),
            ("http://web:80", "no scheme and no path"),
            ("web:80/api", "no scheme and no path"),
            (
                "srv:_http._tcp.web:80",
                "`srv:_http._tcp.web:80` is no service",
            ),
            ("srv:", "`srv:` is no service: write \"srv:NAME\""),
            ("srv:a b", "`srv:a b` is no service"),
            ("web", "`web` has no port: write \"web:8080\""),
            ("10.0.0.1", "`10.0.0.1` has no port"),
            ("[fd00::1]", "`[fd00::1]` has no port"),
            ("web:", "`` in `web:` is no port"),
            ("web:http", "`http` in `web:http` is no port"),
            ("web:+80", "`+80` in `web:+80` is no port"),
            ("web:0", "a number from 1 to 65535"),
            ("10.0.0.1:0", "a number from 1 to 65535"),
            ("[fd00::1]:0", "a number from 1 to 65535"),
            ("web:65536", "a number from 1 to 65535"),
            ("fd00::1", "write \"[fd00::1]:8080\""),
            ("fd00:0:0:0:0:0:0:1:80", "write \"[fd00::1]:8080\""),
            ("[10.0.0.1]:80", "`[10.0.0.1]` is neither an IP address"),
            ("[web]:80", "neither an IP address nor a host name"),
            ("256.0.0.1:80", "neither an IP address nor a host name"),
            ("10.0.0:80", "neither an IP address nor a host name"),
            (":80", "neither an IP address nor a host name"),
            ("a b:80", "neither an IP address nor a host name"),
            ("-a:80", "neither an IP address nor a host name"),
            ("a..b:80", "neither an IP address nor a host name"),
            ("bücher.de:80", "neither an IP address nor a host name"),
            (&long, "neither an IP address nor a host name"),
            (&deep, "neither an IP address nor a host name"),
            ("unix:app.sock", "the path of a Unix socket is absolute"),
            ("unix:", "the path of a Unix socket is absolute"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_authority_of_a_service_is_a_host() {
        for (text, authority) in [
            ("web:80", "web:80"),
            ("[fd00::1]:8080", "[fd00::1]:8080"),
            ("srv:_http._tcp.web.svc.", "web.svc"),
            ("srv:web.service.consul", "web.service.consul"),
            ("srv:_http._tcp", "localhost"),
            ("unix:/run/app.sock", "localhost"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().authority(), authority);
        }
    }

    #[test]
    fn socket_paths_are_bounded() {
        let path = |length: usize| format!("unix:/{}", "a".repeat(length - 1));
        assert!(path(MAX_SOCKET_PATH).parse::<Target>().is_ok());
        assert!(path(MAX_SOCKET_PATH + 1).parse::<Target>().is_err());
    }
}
