//! Log lines on standard error, written by a thread of their own.

use std::sync::{Mutex, PoisonError};

use edgewright_script::log::{Level, Line, Sink, log_to};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use crate::config::{Format, Log};

/// Lines that wait to be written. When standard error is not read, further lines are dropped
/// rather than holding up requests.
const WAITING_LINES: usize = 16_384;

/// What is written of what libraries say. Nobody outside may fill the log, so nothing that a client or a target can have
/// said at will: Pingora tells of each broken connection of a client, and of each kept one to an upstream that was closed meanwhile, at
/// the level of errors; the TLS and HTTP stacks warn of what is odd in a message. What of it matters has a line or a metric of our own.
const OTHERS: &str = "warn,pingora_proxy=off,pingora_core::apps=off,pingora_core::connectors=off,\
    pingora_core::protocols=error,rustls=error,h2=error";

static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Begins to log as the configuration says. Does nothing when the process logs already.
pub fn start(log: &Log) {
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .lossy(true)
        .thread_name("log")
        .finish(std::io::stderr());
    let filter = EnvFilter::new(format!(
        "{OTHERS},edgewright={level},edgewright_script={level}",
        level = log.level
    ));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false);
    let started = match log.format {
        Format::Text => subscriber.with_ansi(false).try_init(),
        Format::Json => subscriber.json().flatten_event(true).try_init(),
    };
    if started.is_ok() {
        *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    }
}

/// Takes the lines that programs log.
pub(crate) fn take_script_lines() {
    log_to(Sink {
        wants: |level| match level {
            Level::Debug => tracing::enabled!(tracing::Level::DEBUG),
            Level::Info => tracing::enabled!(tracing::Level::INFO),
            Level::Warn => tracing::enabled!(tracing::Level::WARN),
            Level::Error => tracing::enabled!(tracing::Level::ERROR),
        },
        write: write_script_line,
    });
}

fn write_script_line(line: &Line) {
    match line.level {
        Level::Debug => tracing::debug!("script log {line}"),
        Level::Info => tracing::info!("script log {line}"),
        Level::Warn => tracing::warn!("script log {line}"),
        Level::Error => tracing::error!("script log {line}"),
    }
}

/// Writes what still waits. For the end of the process.
pub fn finish() {
    drop(WRITER.lock().unwrap_or_else(PoisonError::into_inner).take());
}
