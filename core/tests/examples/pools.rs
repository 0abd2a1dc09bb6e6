//! The upstreams of an example, as its `requests.toml` describes them. `examples/upstreams.py` does the
//! same for who tries the example by hand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::scenario::Script;
use crate::support::ports;
use crate::support::upstream::{Action, Seen, Upstream, answer};
use crate::support::wait::SOON;

/// By the names of the pools; the second target of a pool `web` is `web-2`, and so on.
pub struct Pools(BTreeMap<String, Pool>);

struct Pool {
    address: SocketAddr,
    /// `None`: it is down.
    upstream: Option<Upstream>,
}

impl Pools {
    /// One for each of `names`.
    pub fn start(
        names: impl IntoIterator<Item = String>,
        scripts: &BTreeMap<String, Script>,
    ) -> Self {
        let started = names.into_iter().map(|name| {
            let script = scripts.get(&name).cloned().unwrap_or_default();
            let pool = if script.down {
                let free = ports::free(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
                Pool {
                    address: free[0],
                    upstream: None,
                }
            } else {
                let called = name.clone();
                let upstream = Upstream::start(move |seen| given(&called, &script, seen));
                Pool {
                    address: upstream.address(),
                    upstream: Some(upstream),
                }
            };
            (name, pool)
        });
        Self(started.collect())
    }

    /// Where each is.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.0
            .iter()
            .map(|(name, pool)| (name.as_str(), pool.address))
    }

    /// Waits until so many requests have reached a pool since [`Pools::take`].
    pub fn wait(&self, name: &str, count: usize) {
        let upstream = self.0[name].upstream.as_ref();
        upstream
            .expect("a pool that is not down")
            .wait_hits(count, SOON);
    }

    /// What has reached each since this was asked last.
    pub fn take(&self) -> BTreeMap<&str, Vec<Seen>> {
        let pools = self.0.iter();
        pools
            .map(|(name, pool)| {
                let upstream = pool.upstream.as_ref();
                (
                    name.as_str(),
                    upstream.map(Upstream::take_requests).unwrap_or_default(),
                )
            })
            .collect()
    }
}

fn given(pool: &str, script: &Script, seen: &Seen) -> Action {
    let body = String::from_utf8_lossy(&seen.body);
    let fits = script.answers.iter().find(|answer| {
        let target = answer.target.as_deref();
        target.is_none_or(|target| seen.target().starts_with(target))
            && answer
                .holds
                .as_deref()
                .is_none_or(|part| body.contains(part))
            && answer
                .sent
                .iter()
                .all(|(name, value)| seen.headers(name).contains(value))
    });
    match fits {
        Some(found) => {
            let fields: Vec<(&str, &str)> = found
                .headers
                .iter()
                .flat_map(|(name, values)| {
                    values
                        .all()
                        .iter()
                        .map(|value| (name.as_str(), value.as_str()))
                })
                .collect();
            answer(found.status, &fields, &found.body)
        }
        None => answer(200, &[], echo(pool, seen)),
    }
}

/// What an upstream without a script says: what it got.
fn echo(pool: &str, seen: &Seen) -> String {
    format!("{pool} got {} {}\n", seen.method(), seen.target())
}
