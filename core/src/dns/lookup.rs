//! Asking the servers about one absolute name, and about a host with its search list.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;
use tokio::sync::Semaphore;

use super::kind::{FromRecord, Kind};
use super::outcome::{Failure, LookupResult, Outcome, Reply};
use super::search::SearchList;
use super::watched::lock;

/// Lookups of one record type that may be under way at once, for configured names and for others
/// each: bounds the sockets that thousands of names need when they all start together.
pub(super) const MAX_CONCURRENT: usize = 128;

/// How long a server that didn't answer stays at the end of the order.
const SILENT_SERVER_PENALTY: Duration = Duration::from_secs(30);

/// The servers to ask, in their order.
pub(super) struct Servers {
    servers: Vec<Server>,
    timeout: Duration,
    attempts: u32,
}

/// Each server has a hickory resolver of its own: with several in one, a first server that is down
/// uses up the library's whole deadline, and its statistics may prefer the second server although
/// the order is meant.
struct Server {
    address: SocketAddr,
    resolver: TokioResolver,
    silent_since: Mutex<Option<Instant>>,
}

impl Servers {
    /// `timeout` is for one question to one server, `attempts` how often each server is asked.
    pub(super) fn new(
        addresses: &[SocketAddr],
        timeout: Duration,
        attempts: u32,
    ) -> Result<Self, NetError> {
        let servers = addresses
            .iter()
            .map(|address| Server::new(*address, timeout))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            servers,
            timeout,
            attempts: attempts.max(1),
        })
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| server.address).collect()
    }

    /// Looks up one record type of `host`: the first candidate that has such records wins.
    ///
    /// A candidate that doesn't exist, or has no such record, makes way for the next; a candidate
    /// that could not be asked ends the search, because it might have been the right one.
    /// `other_family_at` tells where the other record type was found: the name exists there, so
    /// the search doesn't go beyond it.
    pub(super) async fn search<R: FromRecord>(
        &self,
        host: &str,
        list: &SearchList,
        kind: Kind,
        other_family_at: Option<usize>,
        permits: &Semaphore,
    ) -> Outcome<R> {
        let candidates = match list.candidates(host) {
            Ok(candidates) => candidates,
            Err(error) => {
                let detail = format!("`{host}` can't be a domain name: {error}");
                return Outcome::Failed(Failure {
                    result: LookupResult::Error,
                    detail,
                });
            }
        };
        let mut no_such_name = true;
        let mut shortest: Option<Duration> = None;
        for (candidate, name) in candidates.into_iter().enumerate() {
            let (exists, negative_ttl) = match self.ask(name, kind, permits).await {
                Reply::Records { records, ttl } => {
                    return Outcome::Records {
                        records,
                        left_out: 0,
                        ttl,
                        candidate,
                    };
                }
                Reply::Failed(failure) => return Outcome::Failed(failure),
                Reply::NoSuchName { negative_ttl } => (false, negative_ttl),
                Reply::NoData { negative_ttl } => (true, negative_ttl),
            };
            no_such_name &= !exists;
            shortest = shortest.into_iter().chain(negative_ttl).min();
            if other_family_at.is_some_and(|found| found <= candidate) {
                break;
            }
        }
        Outcome::Empty {
            no_such_name,
            negative_ttl: shortest,
        }
    }

    /// Asks the servers in turn until one gives an answer about the name. Another round follows
    /// only when a server was silent: asking again doesn't mend a SERVFAIL.
    async fn ask<R: FromRecord>(&self, name: Name, kind: Kind, permits: &Semaphore) -> Reply<R> {
        // The semaphore is never closed.
        let _permit = permits.acquire().await.ok();
        let mut last = None;
        for _ in 0..self.attempts {
            let mut silence = false;
            for server in self.order() {
                let reply = server.ask(name.clone(), kind, self.timeout).await;
                match reply {
                    Reply::Failed(failure) => {
                        silence |= failure.result == LookupResult::Timeout;
                        last = Some(failure);
                    }
                    answer => return answer,
                }
            }
            if !silence {
                break;
            }
        }
        Reply::Failed(last.unwrap_or_else(|| Failure {
            result: LookupResult::Error,
            detail: "no DNS server is configured".to_owned(),
        }))
    }

    /// Those that answer first.
    fn order(&self) -> impl Iterator<Item = &Server> {
        let now = Instant::now();
        let silent: Vec<bool> = self
            .servers
            .iter()
            .map(|server| server.is_silent(now))
            .collect();
        let mut order: Vec<usize> = (0..self.servers.len()).collect();
        order.sort_by_key(|index| silent[*index]);
        order.into_iter().map(|index| &self.servers[index])
    }
}

impl Server {
    fn new(address: SocketAddr, timeout: Duration) -> Result<Self, NetError> {
        let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
        udp.port = address.port();
        tcp.port = address.port();
        let server = NameServerConfig::new(address.ip(), true, vec![udp, tcp]);
        let mut options = ResolverOpts::default();
        // The schedule is ours: an answer from a cache would come late and with the wrong TTL.
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        // EDNS(0) with 1,232 bytes: a headless service with 30 pods doesn't fit into 512.
        options.edns0 = true;
        // The smallest TTL counts, that of an alias too.
        options.preserve_intermediates = true;
        options.timeout = timeout;
        options.attempts = 0;
        options.num_concurrent_reqs = 1;
        // Each record type, of names that are configured and of others.
        options.max_active_requests = 2 * Kind::ALL.len() * MAX_CONCURRENT;
        let config = ResolverConfig::from_name_servers(vec![server]);
        let provider = TokioRuntimeProvider::default();
        let resolver = TokioResolver::builder_with_config(config, provider)
            .with_options(options)
            .build()?;
        Ok(Self {
            address,
            resolver,
            silent_since: Mutex::new(None),
        })
    }

    fn is_silent(&self, now: Instant) -> bool {
        let since = *lock(&self.silent_since);
        since.is_some_and(|since| now.saturating_duration_since(since) < SILENT_SERVER_PENALTY)
    }

    async fn ask<R: FromRecord>(&self, name: Name, kind: Kind, timeout: Duration) -> Reply<R> {
        let question = name.to_ascii();
        let lookup = self.resolver.lookup(name, kind.record_type());
        // The library's own deadline is per message; a chain of aliases has several.
        let result = tokio::time::timeout(timeout, lookup)
            .await
            .unwrap_or(Err(NetError::Timeout));
        let reply = match result {
            Ok(lookup) => records(&lookup),
            Err(error) => negative(&error).unwrap_or_else(|| {
                let (result, what) = classify(&error);
                let (server, record_type) = (self.address, kind.label());
                let detail = format!("{what} from {server} for {question} {record_type}");
                Reply::Failed(Failure { result, detail })
            }),
        };
        let silent =
            matches!(&reply, Reply::Failed(failure) if failure.result == LookupResult::Timeout);
        *lock(&self.silent_since) = silent.then(Instant::now);
        reply
    }
}

fn records<R: FromRecord>(lookup: &Lookup) -> Reply<R> {
    let answers = lookup.answers();
    let records: Vec<R> = answers
        .iter()
        .filter_map(|record| R::from_record(&record.data))
        .collect();
    let ttl = answers.iter().map(|record| record.ttl).min().unwrap_or(0);
    let ttl = Duration::from_secs(ttl.into());
    if records.is_empty() {
        return Reply::NoData {
            negative_ttl: Some(ttl),
        };
    }
    Reply::Records { records, ttl }
}

/// The authoritative "nothing there", if the error is one.
fn negative<R>(error: &NetError) -> Option<Reply<R>> {
    let NetError::Dns(DnsError::NoRecordsFound(none)) = error else {
        return None;
    };
    let negative_ttl = none.negative_ttl.map(|ttl| Duration::from_secs(ttl.into()));
    match none.response_code {
        ResponseCode::NXDomain => Some(Reply::NoSuchName { negative_ttl }),
        // Name servers without a start of authority are a referral (RFC 2308, section 2.2): a
        // server that doesn't resolve for us, not a name without addresses.
        ResponseCode::NoError if none.ns.is_some() && none.soa.is_none() => None,
        ResponseCode::NoError => Some(Reply::NoData { negative_ttl }),
        _ => None,
    }
}

fn classify(error: &NetError) -> (LookupResult, String) {
    let code = match error {
        NetError::Timeout => return (LookupResult::Timeout, "no answer".to_owned()),
        NetError::Dns(DnsError::ResponseCode(code)) => *code,
        NetError::Dns(DnsError::NoRecordsFound(none)) => none.response_code,
        other => return (LookupResult::Error, other.to_string()),
    };
    match code {
        ResponseCode::ServFail => (LookupResult::ServFail, "SERVFAIL".to_owned()),
        ResponseCode::Refused => (LookupResult::Refused, "REFUSED".to_owned()),
        ResponseCode::NoError => (LookupResult::Error, "a referral".to_owned()),
        other => (LookupResult::Error, format!("`{other}`")),
    }
}
