//! The handle on the resolver's thread, and the register of the names in use.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use anyhow::Context as _;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::addresses;
use super::context::Context;
use super::service::{Service, ServiceState};
use super::snapshot::Snapshot;
use super::system::{Environment, SystemWatch};
use super::watched::{Answer, NameState, Origin, State, Watched, lock};
use super::{name, service_task};
use crate::config::Dns;
use crate::metrics::HistogramSample;

/// Resolves names on a thread of its own. Clones are handles on the same resolver; the thread ends
/// when the last one is gone.
#[derive(Clone)]
pub struct Resolver {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    runtime: Handle,
    context: Arc<Context>,
    registry: Arc<Registry>,
    settings: watch::Sender<Dns>,
    /// Dropping it ends the thread.
    _running: oneshot::Sender<()>,
}

/// The names in use.
#[derive(Default)]
pub(super) struct Registry {
    names: Mutex<HashMap<String, Weak<Watched>>>,
    services: Mutex<HashMap<String, Weak<Service>>>,
}

impl Registry {
    /// Takes out a name whose last user is gone, unless somebody has asked for it again since.
    pub(super) fn forget(&self, host: &str) {
        let mut names = lock(&self.names);
        if names.get(host).is_some_and(|name| name.strong_count() == 0) {
            names.remove(host);
        }
    }

    /// The same for a service.
    pub(super) fn forget_service(&self, name: &str) {
        let mut services = lock(&self.services);
        if services
            .get(name)
            .is_some_and(|known| known.strong_count() == 0)
        {
            services.remove(name);
        }
    }
}

impl Inner {
    /// The name `host`, made when nobody has it yet.
    pub(super) fn watch(&self, host: &str, origin: Origin) -> Arc<Watched> {
        let host = host.to_ascii_lowercase();
        let mut names = lock(&self.registry.names);
        if let Some(watched) = names.get(&host).and_then(Weak::upgrade) {
            watched.named_by(origin);
            return watched;
        }
        let registry = Arc::downgrade(&self.registry);
        let watched = match host.parse::<IpAddr>() {
            Ok(address) => {
                let name = Arc::new(literal(&host, address, origin));
                Watched::new(name, registry, None)
            }
            Err(_) => {
                let name = Arc::new(NameState::new(&host, Answer::unresolved(), origin));
                let task = name::keep(name.clone(), self.context.clone());
                let task = self.runtime.spawn(task).abort_handle();
                Watched::new(name, registry, Some(task))
            }
        };
        let watched = Arc::new(watched);
        names.insert(host, Arc::downgrade(&watched));
        watched
    }
}

impl Resolver {
    /// Starts the resolver's thread. A server that is down, or a resolv.conf that is missing, is
    /// not an error: names stay unresolved until that changes.
    ///
    /// # Errors
    /// When the system gives no thread or no event queue.
    pub fn start(config: &Dns) -> anyhow::Result<Resolver> {
        Self::start_in(config, Environment::default())
    }

    pub(super) fn start_in(config: &Dns, environment: Environment) -> anyhow::Result<Resolver> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the DNS resolver")?;
        let handle = runtime.handle().clone();
        let settings = watch::Sender::new(config.clone());
        let has_ipv6 = environment.has_ipv6;
        let system = SystemWatch::new(environment, settings.subscribe());
        let context = Arc::new(Context::new(system.subscribe(), has_ipv6));
        let (running, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("dns".to_owned())
            .spawn(move || {
                runtime.spawn(system.run());
                // Nothing is ever sent: it ends when the other half is dropped.
                let _ = runtime.block_on(stopped);
            })
            .context("cannot start the DNS resolver's thread")?;
        Ok(Resolver {
            inner: Arc::new(Inner {
                runtime: handle,
                context,
                registry: Arc::default(),
                settings,
                _running: running,
            }),
        })
    }

    /// Follows new settings from now on; all names are looked up again when they differ.
    pub fn configure(&self, config: &Dns) {
        self.inner.settings.send_if_modified(|settings| {
            let differs = settings != config;
            settings.clone_from(config);
            differs
        });
    }

    /// The name `host`, kept up to date for as long as somebody holds it. The same name is asked
    /// for once, whoever uses it; names compare without case. An IP address never reaches DNS.
    pub fn watch(&self, host: &str) -> Arc<Watched> {
        self.inner.watch(host, Origin::Configuration)
    }

    /// The same for a name that a program has made up while it ran, perhaps of what a client sent.
    /// Such names have no series in the metrics and no lines in the log, and their lookups don't
    /// wait in line with those of configured names. How many there are is for the caller to bound.
    pub fn watch_unlisted(&self, host: &str) -> Arc<Watched> {
        self.inner.watch(host, Origin::Program)
    }

    /// The service `name`, whose SRV records (RFC 2782) are kept up to date for as long as somebody
    /// holds it, and so are the names of its servers.
    pub fn watch_service(&self, name: &str) -> Arc<Service> {
        let name = name.to_ascii_lowercase();
        let inner = &self.inner;
        let mut services = lock(&inner.registry.services);
        if let Some(service) = services.get(&name).and_then(Weak::upgrade) {
            return service;
        }
        let state = Arc::new(ServiceState::new(&name));
        let (context, resolver) = (inner.context.clone(), Arc::downgrade(inner));
        let task = service_task::keep(state.clone(), context, resolver);
        let task = inner.runtime.spawn(task).abort_handle();
        let registry = Arc::downgrade(&inner.registry);
        let service = Arc::new(Service::new(state, registry, task));
        services.insert(name, Arc::downgrade(&service));
        service
    }

    /// Everything known at the moment, for `/status` and the metrics.
    pub fn snapshot(&self) -> Snapshot {
        // Out of the lock before any of them is dropped, which may need the lock.
        let names: Vec<Arc<Watched>> = {
            let names = lock(&self.inner.registry.names);
            names.values().filter_map(Weak::upgrade).collect()
        };
        let mut names: Vec<_> = names.iter().map(|name| name.snapshot()).collect();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        let services: Vec<Arc<Service>> = {
            let services = lock(&self.inner.registry.services);
            services.values().filter_map(Weak::upgrade).collect()
        };
        let services = services.iter().map(|service| service.state.snapshot());
        let mut services: Vec<_> = services.collect();
        services.sort_by(|a, b| a.name.cmp(&b.name));
        let system = self.inner.context.system.borrow().clone();
        let (servers, error) = match &system.servers {
            Ok(servers) => (servers.addresses(), None),
            Err(error) => (Vec::new(), Some(error.clone())),
        };
        Snapshot {
            servers,
            error,
            names,
            services,
            refused_total: self.inner.context.refused.load(Ordering::Relaxed),
            duration: HistogramSample::of(std::iter::once(&self.inner.context.duration)),
        }
    }
}

fn literal(host: &str, address: IpAddr, origin: Origin) -> NameState {
    let addresses = addresses::local([address]);
    let state = if addresses.is_empty() {
        State::Empty
    } else {
        State::Resolved
    };
    NameState::new(
        host,
        Answer {
            state,
            addresses: addresses.into(),
        },
        origin,
    )
}
