//! The log lines of one pipeline among many.

use std::io;
use std::sync::OnceLock;

use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::fmt::MakeWriter;

use super::super::trigger::Triggers;
use super::super::watch::Factory;
use super::super::{start, worker::Worker};
use super::*;

/// Collects the lines of one pipeline.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        self.clone()
    }
}

/// Starts the pipeline and waits until it is at rest; its lines go to the log returned.
pub(super) fn start_logged(
    site: &Site,
    options: Options,
    factory: impl FnOnce(Arc<Triggers>) -> Factory,
) -> (ReloadHandle, Log) {
    // While there is only one subscriber, a thread without one (that of another test) that comes first to
    // a log statement turns it off for all threads. A second one prevents that.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .finish();
    let run = move |worker: Worker<Target>| {
        tracing::subscriber::with_default(subscriber, || worker.run());
    };
    let (target, initial) = site.target();
    let reload = start(target, initial, options, factory, run).unwrap();
    site.at_rest();
    // For statements that another thread reached for the first time while the subscriber was made.
    tracing::callsite::rebuild_interest_cache();
    (reload, log)
}
