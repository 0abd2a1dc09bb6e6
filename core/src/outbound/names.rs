//! The names that URLs have given a worker.
//!
//! A name is watched by the resolver from its first call on, so that later calls find its addresses
//! ready. A program may make names of what clients send, so there is a bound to them: the ones used
//! last stay, and what is not used for a while goes.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::dns::{Answer, Listener, Resolver, State, Watched};

/// The most names of one worker that are kept up to date.
const MOST: usize = 64;

/// How long a name is kept that nobody calls.
const UNUSED: Duration = Duration::from_secs(600);

/// How often it is looked for such names.
const SWEEP: Duration = Duration::from_secs(60);

/// The longest name (RFC 1035 section 3.1), with a dot at its end.
const LONGEST: usize = 254;

/// A worker's names.
pub(super) struct Names {
    resolver: Arc<Resolver>,
    /// Only this worker's: nobody ever waits for the lock.
    recent: Arc<Mutex<Recent>>,
}

#[derive(Default)]
struct Recent {
    names: Vec<(Arc<Name>, Instant)>,
    /// A task looks for names that are not used any more.
    swept: bool,
}

/// A name in use.
struct Name {
    watched: Arc<Watched>,
    signal: Arc<Signal>,
}

/// Wakes the calls that wait for a first answer.
#[derive(Default)]
struct Signal(Notify);

impl Listener for Signal {
    fn answer_changed(&self) {
        self.0.notify_waiters();
    }

    fn lookup_failed(&self) {
        self.0.notify_waiters();
    }
}

impl Names {
    pub(super) fn new(resolver: Arc<Resolver>) -> Self {
        Self {
            resolver,
            recent: Arc::default(),
        }
    }

    /// What `read` makes of the addresses of `host`, which may wait for the first answer, for ever
    /// when there is none.
    ///
    /// # Errors
    /// When the name has no address, or looking it up fails.
    pub(super) async fn resolve<R>(
        &self,
        host: &str,
        read: impl Fn(&[IpAddr]) -> R,
    ) -> Result<R, String> {
        if !can_be_name(host) {
            return Err("this can't be the name of a host".to_owned());
        }
        let name = self.get(host, Instant::now());
        loop {
            let told = name.signal.0.notified();
            tokio::pin!(told);
            // From here on nothing is missed.
            told.as_mut().enable();
            if let Some(addresses) = name.look(&read) {
                return addresses;
            }
            told.await;
        }
    }

    fn get(&self, host: &str, now: Instant) -> Arc<Name> {
        let mut recent = lock(&self.recent);
        let known = recent.names.iter_mut();
        if let Some((name, used)) = known
            .into_iter()
            .find(|(name, _)| name.watched.host() == host)
        {
            *used = now;
            return name.clone();
        }
        let name = Arc::new(Name::watch(&self.resolver, host));
        if recent.names.len() >= MOST {
            let ages = recent.names.iter().enumerate();
            if let Some((oldest, _)) = ages.min_by_key(|(_, (_, used))| *used) {
                recent.names.swap_remove(oldest);
            }
        }
        recent.names.push((name.clone(), now));
        if !std::mem::replace(&mut recent.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.recent)));
        }
        name
    }
}

impl Name {
    fn watch(resolver: &Resolver, host: &str) -> Self {
        let watched = resolver.watch_unlisted(host);
        let signal = Arc::new(Signal::default());
        let listener: Arc<dyn Listener> = signal.clone();
        watched.subscribe(Arc::downgrade(&listener));
        Self { watched, signal }
    }

    /// `None` while the first lookup is under way.
    fn look<R>(&self, read: impl Fn(&[IpAddr]) -> R) -> Option<Result<R, String>> {
        let known = self.watched.read(|answer: &Answer| match answer.state {
            State::Resolved => Some(Ok(read(&answer.addresses))),
            State::Empty => Some(Err("there is no such name, or it has no address".to_owned())),
            State::Unresolved => None,
        });
        if let Some(Ok(_)) = known {
            return known;
        }
        // They say better than "no address" why there is none.
        let refused = self.watched.refused();
        if !refused.is_empty() {
            return Some(Ok(read(&refused)));
        }
        known.or_else(|| {
            let failure = self.watched.failure()?;
            Some(Err(format!("the name can't be resolved: {failure}")))
        })
    }
}

impl Recent {
    /// Drops what was not used for long; false when nothing is left.
    fn forget_unused(&mut self, now: Instant) -> bool {
        let unused = |used: &Instant| now.saturating_duration_since(*used) >= UNUSED;
        self.names.retain(|(_, used)| !unused(used));
        self.swept = !self.names.is_empty();
        self.swept
    }
}

/// Ends with the last name or with the worker's client.
async fn sweep(recent: Weak<Mutex<Recent>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(recent) = recent.upgrade() else {
            return;
        };
        if !lock(&recent).forget_unused(Instant::now()) {
            return;
        }
    }
}

/// Letters, digits, `-`, `_` and dots: what the resolver would have to look up for nothing doesn't
/// get that far.
fn can_be_name(host: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    host.len() <= LONGEST
        && host.bytes().all(fits)
        && labels
            .into_iter()
            .all(|label| (1..=63).contains(&label.len()))
}

/// What it guards is consistent at every moment, so a panic elsewhere spoils nothing.
fn lock(recent: &Mutex<Recent>) -> MutexGuard<'_, Recent> {
    recent.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::dns::tests::dns_server::DnsServer;
    use crate::dns::tests::{resolver, wait_until};

    fn hosts(names: &Names) -> Vec<String> {
        let recent = lock(&names.recent);
        let names = recent.names.iter();
        names
            .map(|(name, _)| name.watched.host().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn what_is_not_used_for_long_goes() {
        let server = DnsServer::start();
        let resolver = Arc::new(resolver(&server));
        let names = Names::new(resolver.clone());
        let start = Instant::now();
        names.get("old.test", start);
        names.get("new.test", start);
        names.get("new.test", start + SWEEP);
        assert!(lock(&names.recent).forget_unused(start + UNUSED));
        assert_eq!(hosts(&names), ["new.test"]);
        assert!(!lock(&names.recent).forget_unused(start + SWEEP + UNUSED));
        wait_until("the resolver forgets them", || {
            resolver.snapshot().names.is_empty()
        });
        // The task that looks for them has ended; the next name starts another.
        assert!(!lock(&names.recent).swept);
        names.get("next.test", start);
        assert!(lock(&names.recent).swept);
    }

    #[tokio::test]
    async fn the_one_used_longest_ago_makes_room() {
        let server = DnsServer::start();
        let names = Names::new(Arc::new(resolver(&server)));
        let start = Instant::now();
        let at = |number: usize| start + Duration::from_secs(number as u64);
        for number in 0..MOST {
            names.get(&format!("n{number}.test"), at(number));
        }
        names.get("n0.test", at(MOST));
        names.get("another.test", at(MOST + 1));
        let hosts = hosts(&names);
        assert_eq!(hosts.len(), MOST);
        assert!(!hosts.contains(&"n1.test".to_owned()));
        for kept in ["n0.test", "n2.test", "another.test"] {
            assert!(hosts.contains(&kept.to_owned()), "{kept}");
        }
    }
}
