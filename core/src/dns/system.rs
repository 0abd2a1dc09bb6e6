//! Where answers come from: the configured servers, `/etc/resolv.conf` and `/etc/hosts`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::Hosts;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use tokio::sync::watch;
use tracing::{info, warn};

use super::addresses::{self, host_has_ipv6};
use super::guard::Guard;
use super::known::Timing;
use super::lookup::Servers;
use super::search::SearchList;
use crate::config::Dns;

/// The surroundings of the resolver; only tests have other ones than [`Environment::default`].
#[derive(Debug, Clone)]
pub(super) struct Environment {
    pub(super) resolv_conf: PathBuf,
    pub(super) hosts: PathBuf,
    /// The port of the servers in resolv.conf.
    pub(super) port: u16,
    /// How often the two files are looked at, and how often while no server is known.
    pub(super) poll: Duration,
    pub(super) poll_without_servers: Duration,
    pub(super) has_ipv6: fn() -> bool,
    /// The times that the configuration doesn't set.
    pub(super) backoff_min: Duration,
    pub(super) backoff_max: Duration,
    pub(super) backoff_max_unresolved: Duration,
    pub(super) empty_recheck: Duration,
    pub(super) empty_recheck_max: Duration,
    pub(super) empty_confirm: Duration,
    pub(super) new_server: Duration,
}

impl Default for Environment {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            port: 53,
            poll: seconds(30),
            poll_without_servers: seconds(1),
            has_ipv6: host_has_ipv6,
            backoff_min: Duration::from_millis(500),
            backoff_max: seconds(30),
            backoff_max_unresolved: seconds(5),
            empty_recheck: seconds(5),
            empty_recheck_max: seconds(30),
            empty_confirm: seconds(1),
            new_server: seconds(5),
        }
    }
}

/// What the two files and the configuration amount to.
pub(super) struct System {
    /// The error says why there is no server.
    pub(super) servers: Result<Servers, String>,
    pub(super) search: SearchList,
    pub(super) timing: Timing,
    /// What answers may lead to.
    pub(super) guard: Guard,
    hosts: Hosts,
}

/// The raw material of a [`System`]; equal inputs make equal systems.
#[derive(Debug, Clone, PartialEq)]
struct Inputs {
    settings: Dns,
    /// None when the settings name the servers.
    resolv_conf: Option<Result<Vec<u8>, String>>,
    hosts: Vec<u8>,
}

impl Inputs {
    fn read(settings: &Dns, environment: &Environment) -> Self {
        let read = || {
            std::fs::read(&environment.resolv_conf).map_err(|error: io::Error| {
                format!("cannot read {}: {error}", environment.resolv_conf.display())
            })
        };
        Self {
            settings: settings.clone(),
            resolv_conf: settings.servers.is_empty().then(read),
            // No hosts file is as good as an empty one.
            hosts: std::fs::read(&environment.hosts).unwrap_or_default(),
        }
    }

    /// The servers' addresses and the search list.
    fn servers(&self, environment: &Environment) -> Result<(Vec<SocketAddr>, SearchList), String> {
        let Some(resolv_conf) = &self.resolv_conf else {
            return Ok((self.settings.servers.clone(), SearchList::default()));
        };
        let text = resolv_conf.as_ref().map_err(Clone::clone)?;
        let (config, options) = parse_resolv_conf(text)
            .map_err(|error| format!("{}: {error}", environment.resolv_conf.display()))?;
        let addresses = config
            .name_servers()
            .iter()
            .map(|server| SocketAddr::new(server.ip, environment.port))
            .collect();
        let search = SearchList::new(config.search().iter().cloned(), options.ndots);
        Ok((addresses, search))
    }

    fn build(&self, environment: &Environment) -> System {
        let settings = &self.settings;
        let (servers, search) = match self.servers(environment) {
            Ok((addresses, search)) => {
                let servers = Servers::new(&addresses, settings.timeout, settings.attempts);
                (servers.map_err(|error| error.to_string()), search)
            }
            Err(error) => (Err(error), SearchList::default()),
        };
        let mut hosts = Hosts::default();
        if let Err(error) = hosts.read_hosts_conf(&self.hosts[..]) {
            warn!(%error, "dns: {} is not used any further", environment.hosts.display());
        }
        let timing = Timing {
            min_ttl: settings.min_ttl,
            max_ttl: settings.max_ttl,
            hold_empty: settings.hold_empty,
            backoff_min: environment.backoff_min,
            backoff_max: environment.backoff_max,
            backoff_max_unresolved: environment.backoff_max_unresolved,
            empty_recheck: environment.empty_recheck,
            empty_recheck_max: environment.empty_recheck_max,
            empty_confirm: environment.empty_confirm,
            new_server: environment.new_server,
        };
        System {
            servers,
            search,
            timing,
            guard: Guard::new(&settings.allow),
            hosts,
        }
    }
}

impl System {
    /// The addresses of a name that isn't asked in DNS; None for all others.
    pub(super) fn local(&self, host: &str) -> Option<Vec<IpAddr>> {
        let name: Name = host.parse().ok()?;
        let mut addresses = Vec::new();
        for record_type in [RecordType::A, RecordType::AAAA] {
            let query = Query::query(name.clone(), record_type);
            if let Some(lookup) = self.hosts.lookup_static_host(&query) {
                let records = lookup.answers().iter();
                addresses.extend(records.filter_map(|record| record.data.ip_addr()));
            }
        }
        if name.is_localhost() {
            if addresses.is_empty() {
                addresses.push(Ipv4Addr::LOCALHOST.into());
            }
            if addresses.iter().any(IpAddr::is_ipv4) {
                addresses.retain(IpAddr::is_ipv4);
            }
        }
        (!addresses.is_empty()).then(|| addresses::local(addresses))
    }
}

/// Keeps a [`System`] up to date with the files and with the configuration.
pub(super) struct SystemWatch {
    environment: Environment,
    settings: watch::Receiver<Dns>,
    inputs: Inputs,
    system: watch::Sender<Arc<System>>,
    /// It has been logged that resolv.conf became unusable.
    complained: bool,
}

impl SystemWatch {
    /// Reads the files once; later changes come with [`SystemWatch::run`].
    pub(super) fn new(environment: Environment, mut settings: watch::Receiver<Dns>) -> Self {
        let inputs = Inputs::read(&settings.borrow_and_update(), &environment);
        let system = inputs.build(&environment);
        match &system.servers {
            Ok(servers) => info!(servers = ?servers.addresses(), "dns: servers"),
            Err(error) => warn!(%error, "dns: no server to ask"),
        }
        Self {
            environment,
            settings,
            inputs,
            system: watch::Sender::new(Arc::new(system)),
            complained: false,
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<System>> {
        self.system.subscribe()
    }

    /// Runs until the resolver is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let poll = if self.system.borrow().servers.is_ok() {
                self.environment.poll
            } else {
                self.environment.poll_without_servers
            };
            tokio::select! {
                () = tokio::time::sleep(poll) => {}
                changed = self.settings.changed() => if changed.is_err() {
                    return;
                }
            }
            let settings = self.settings.borrow_and_update().clone();
            let inputs = Inputs::read(&settings, &self.environment);
            if inputs == self.inputs {
                self.complained = false;
            } else {
                self.replace(inputs);
            }
        }
    }

    fn replace(&mut self, mut inputs: Inputs) {
        let mut system = inputs.build(&self.environment);
        if let Err(error) = &system.servers
            && self.system.borrow().servers.is_ok()
            && self.inputs.resolv_conf.is_some()
        {
            // Perhaps it is being rewritten. Servers that worked are better than none.
            if !std::mem::replace(&mut self.complained, true) {
                warn!(%error, "dns: resolv.conf is unusable, the servers known so far stay in use");
            }
            inputs.resolv_conf.clone_from(&self.inputs.resolv_conf);
            system = inputs.build(&self.environment);
            if inputs == self.inputs {
                return;
            }
        } else {
            self.complained = false;
        }
        match &system.servers {
            Ok(servers) => info!(servers = ?servers.addresses(), "dns: configuration changed"),
            Err(error) => warn!(%error, "dns: no server to ask"),
        }
        self.inputs = inputs;
        self.system.send_replace(Arc::new(system));
    }
}
