//! `[pools.NAME.health]`: asking each target again and again whether it is well.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderValue, Method, uri::Authority};
use serde::Deserialize;
use toml::Spanned;

use crate::config::check::Checks;
use crate::config::units::{Count, Time};

/// `[pools.NAME.health]`. A pool without the table asks nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// `interval`: from the end of a check to the next, give or take a tenth; 100 ms to 1 h.
    /// Default 5 s.
    pub interval: Duration,
    /// `timeout`: for one check as a whole; 10 ms to 60 s. Default 1 s.
    pub timeout: Duration,
    /// `healthy`: so many checks in a row must succeed before an unhealthy target is used again; 1 to
    /// 100. Default 2.
    pub healthy: u32,
    /// `unhealthy`: so many checks in a row must fail before a healthy target is left out; 1 to 100.
    /// Default 3.
    pub unhealthy: u32,
    /// `port`: asked there instead of the target's own port. `None`, the default: there. Unix sockets
    /// have none, and are asked themselves.
    pub port: Option<u16>,
    /// `initial`: what counts for a target before its first check has ended. Default healthy: a
    /// start doesn't wait.
    pub initial: Initial,
}

/// What is asked of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// `type = "tcp"`: whether it accepts a connection (with TLS, where the pool uses it).
    Tcp,
    /// `type = "http"`: whether it answers a request with one of these statuses.
    Http {
        /// `method`. Default GET.
        method: Method,
        /// `path`: with a query, if need be.
        path: String,
        /// `host`: the `Host`. Without one the pool's first name, or the target's address.
        host: Option<String>,
        /// `status`: what counts as well. Default 200 to 299. Redirects aren't followed.
        status: Box<[RangeInclusive<u16>]>,
    },
    /// `type = "grpc"`: whether `grpc.health.v1.Health/Check` says SERVING.
    Grpc {
        /// `service`: which one is asked for. Empty, the default: the server as a whole.
        service: String,
        /// `host`: the `:authority`; without one as above.
        host: Option<String>,
    },
}

/// What counts for a target before its first check has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// It gets requests.
    #[default]
    Healthy,
    /// It gets none.
    Unhealthy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Http,
    Tcp,
    Grpc,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Grpc => "grpc",
        }
    }
}

/// `200` or `"200-299"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "a status such as 204, or some such as \"200-299\""
)]
pub(super) enum Statuses {
    One(u16),
    Text(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Table {
    pub r#type: Option<Kind>,
    pub path: Option<Spanned<String>>,
    pub host: Option<Spanned<String>>,
    pub method: Option<Spanned<String>>,
    pub status: Option<Spanned<Vec<Statuses>>>,
    pub service: Option<Spanned<String>>,
    pub interval: Option<Spanned<Time>>,
    pub timeout: Option<Spanned<Time>>,
    pub healthy: Option<Spanned<Count>>,
    pub unhealthy: Option<Spanned<Count>>,
    pub port: Option<Spanned<Count>>,
    pub initial: Option<Initial>,
}

/// Bytes of a path, a host or a service.
const MOST_TEXT: usize = 1024;

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(checks: &mut Checks<'_>, prefix: &str, mut table: Table) -> HealthCheck {
    let probe = probe(checks, prefix, &mut table);
    let mut check = HealthCheck {
        probe,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        healthy: 2,
        unhealthy: 3,
        port: None,
        initial: table.initial.unwrap_or_default(),
    };
    let key = |name: &str| format!("{prefix}.health.{name}");
    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
    checks.time(&mut check.interval, &key("interval"), table.interval, range);
    let range = Duration::from_millis(10)..=Duration::from_secs(60);
    checks.time(&mut check.timeout, &key("timeout"), table.timeout, range);
    checks.count(&mut check.healthy, &key("healthy"), table.healthy, 1..=100);
    let given = table.unhealthy;
    checks.count(&mut check.unhealthy, &key("unhealthy"), given, 1..=100);
    if table.port.is_some() {
        let mut port = 0;
        checks.count(&mut port, &key("port"), table.port, 1..=65535);
        check.port = Some(port);
    }
    check
}

/// What the keys ask for together; one that says nothing to this kind of check is an error.
fn probe(checks: &mut Checks<'_>, prefix: &str, table: &mut Table) -> Probe {
    let kind = table.r#type.unwrap_or(match (&table.path, &table.service) {
        (Some(_), _) => Kind::Http,
        (None, Some(_)) => Kind::Grpc,
        (None, None) => Kind::Tcp,
    });
    let places = [
        (
            "path",
            table.path.as_ref().map(Spanned::span),
            &[Kind::Http][..],
        ),
        (
            "method",
            table.method.as_ref().map(Spanned::span),
            &[Kind::Http],
        ),
        (
            "status",
            table.status.as_ref().map(Spanned::span),
            &[Kind::Http],
        ),
        (
            "service",
            table.service.as_ref().map(Spanned::span),
            &[Kind::Grpc],
        ),
        (
            "host",
            table.host.as_ref().map(Spanned::span),
            &[Kind::Http, Kind::Grpc],
        ),
    ];
    for (name, span, kinds) in places {
        if let Some(span) = span
            && !kinds.contains(&kind)
        {
            let names: Vec<_> = kinds
                .iter()
                .map(|kind| format!("\"{}\"", kind.name()))
                .collect();
            checks.error_with_help(
                &span,
                format!(
                    "`{prefix}.health.{name}` says nothing to a check of type \"{}\"",
                    kind.name()
                ),
                format!("write type = {}, or leave it out", names.join(" or ")),
            );
        }
    }
    let host = table.host.take().and_then(|host| authority(checks, &host));
    match kind {
        Kind::Tcp => Probe::Tcp,
        Kind::Grpc => Probe::Grpc {
            service: table.service.take().map_or_else(String::new, |service| {
                text(checks, &service, "service", |_| true)
            }),
            host,
        },
        Kind::Http => Probe::Http {
            method: table
                .method
                .take()
                .map_or(Method::GET, |given| method(checks, &given)),
            path: table.path.take().map_or_else(
                || "/".to_owned(),
                |given| text(checks, &given, "path", |path| path.starts_with('/')),
            ),
            host,
            status: statuses(checks, table.status.take()),
        },
    }
}

/// A text that goes into a request as it is: visible ASCII without `#`.
fn text(
    checks: &mut Checks<'_>,
    given: &Spanned<String>,
    what: &str,
    fits: impl Fn(&str) -> bool,
) -> String {
    let text = given.get_ref();
    let visible = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if text.len() > MOST_TEXT || !visible || !fits(text) {
        checks.error_with_help(
            &given.span(),
            format!("{text:?} is no {what} of a check"),
            match what {
                "path" => "write \"/healthz\": it begins with `/` and is made of visible ASCII",
                _ => "it is made of visible ASCII",
            },
        );
    }
    text.clone()
}

fn authority(checks: &mut Checks<'_>, given: &Spanned<String>) -> Option<String> {
    let text = given.get_ref();
    let parsed = text.parse::<Authority>().ok();
    let plain = parsed.filter(|host| !host.as_str().contains('@'));
    if text.len() > MOST_TEXT || plain.is_none() || HeaderValue::from_str(text).is_err() {
        checks.error_with_help(
            &given.span(),
            format!("{text:?} is no host"),
            "write \"example.com\" or \"example.com:8080\"",
        );
    }
    Some(text.clone())
}

/// Only methods that a check may repeat for ever without changing anything (RFC 9110 section 9.2.1),
/// and POST, which some health endpoints want.
fn method(checks: &mut Checks<'_>, given: &Spanned<String>) -> Method {
    match given.get_ref().as_str() {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        "OPTIONS" => Method::OPTIONS,
        "POST" => Method::POST,
        other => {
            checks.error_with_help(
                &given.span(),
                format!("{other:?} is no method of a check"),
                "write \"GET\", \"HEAD\", \"OPTIONS\" or \"POST\"",
            );
            Method::GET
        }
    }
}

fn statuses(
    checks: &mut Checks<'_>,
    given: Option<Spanned<Vec<Statuses>>>,
) -> Box<[RangeInclusive<u16>]> {
    let Some(given) = given else {
        return Box::new([200..=299]);
    };
    let span = given.span();
    if given.get_ref().is_empty() || given.get_ref().len() > 100 {
        checks.error_with_help(
            &span,
            "`status` is a list of 1 to 100 statuses",
            "write status = [\"200-299\"]",
        );
    }
    let mut ranges = Vec::new();
    for one in given.get_ref() {
        let range = match one {
            Statuses::One(status) => Some(*status..=*status),
            Statuses::Text(text) => range(text),
        };
        match range {
            // What is below 200 is no final answer (RFC 9110 section 15.2).
            Some(range)
                if 200 <= *range.start() && range.start() <= range.end() && *range.end() <= 599 =>
            {
                ranges.push(range);
            }
            _ => {
                let shown = match one {
                    Statuses::One(status) => status.to_string(),
                    Statuses::Text(text) => format!("{text:?}"),
                };
                checks.error_with_help(
                    &span,
                    format!("{shown} is no status of an answer"),
                    "write 204, \"200-299\" or the like: statuses are 200 to 599",
                );
            }
        }
    }
    ranges.into()
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
}
