//! Does a proxy do its job? A fast wrong answer is no result.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::cases::{self, CLIENT, COUNT_HOST, Case, HOOKED_HOST, is_green};
use super::job::{Job, Said};
use crate::client::Client;
use crate::load::{self, BLUE, GREEN, PREFIXES};

const TIMEOUT: Duration = Duration::from_secs(10);

/// The request as it goes to the host with the hook.
pub(super) fn hooked(request: &load::Request) -> load::Request {
    load::Request {
        host: HOOKED_HOST,
        ..request.clone()
    }
}

/// An error unless the proxy at `address` does the job for one host, and passes everything at the other.
/// Gives the bytes of an answer.
pub(super) fn check(job: Job, address: SocketAddr) -> Result<usize> {
    let before = counted(job, address)?;
    let mut passed = 0;
    for case in cases::measured(job).iter().chain(&cases::others(job)) {
        let plain = ask(address, &case.request)?;
        ensure!(plain.status == 200, "without a hook: {}", plain.status);
        let seen = ask(address, &hooked(&case.request))?;
        let Case { request, said } = case;
        let expected = match said {
            Said::Answer(status) => *status,
            Said::Continue | Said::Green => 200,
        };
        ensure!(
            seen.status == expected && (expected != 200 || seen.body_is_right),
            "{}: {} instead of {expected}, or another body",
            request.path,
            seen.status
        );
        passed += 1;
    }
    let after = counted(job, address)?;
    ensure!(
        job != Job::Counter || after == before + passed,
        "the counter went from {before} to {after} in {passed} requests"
    );
    effects(job, address)?;
    Ok(ask(address, &cases::on_the_wire(job).request)?.length)
}

/// What the backend sees.
fn effects(job: Job, address: SocketAddr) -> Result<()> {
    let shown = cases::shown();
    let client = (job == Job::HeaderSet).then_some(CLIENT);
    let mut expected = vec![(shown.clone(), BLUE, None)];
    match job {
        Job::HeaderSet => expected.push((hooked(&shown), BLUE, client)),
        Job::Prefixes => {
            for (number, prefix) in PREFIXES.iter().enumerate() {
                let request = load::Request {
                    path: format!("/{prefix}/check"),
                    ..hooked(&shown)
                };
                let pool = if is_green(number) { GREEN } else { BLUE };
                expected.push((request, pool, None));
            }
        }
        _ => {}
    }
    for (request, pool, client) in expected {
        let seen = ask(address, &request)?;
        ensure!(
            seen.backend.as_deref() == Some(pool) && seen.client.as_deref() == client,
            "{} at {}: it went to {:?} and told of {:?}, not to {pool} and of {client:?}",
            request.path,
            request.host,
            seen.backend,
            seen.client
        );
    }
    Ok(())
}

/// What the shared counter stands at.
fn counted(job: Job, address: SocketAddr) -> Result<i64> {
    if job != Job::Counter {
        return Ok(0);
    }
    let request = load::Request {
        host: COUNT_HOST,
        path: "/".to_owned(),
        ..cases::shown()
    };
    let mut client = Client::connect(address, TIMEOUT)?;
    let answer = client.exchange(&request.bytes())?;
    let text = std::str::from_utf8(answer.body).context("the count is no text")?;
    text.parse().with_context(|| format!("no count: `{text}`"))
}

struct Seen {
    status: u16,
    body_is_right: bool,
    length: usize,
    backend: Option<String>,
    client: Option<String>,
}

fn ask(address: SocketAddr, request: &load::Request) -> Result<Seen> {
    // A connection of its own: a refusal may close it.
    let mut client = Client::connect(address, TIMEOUT)?;
    let answer = client.exchange(&request.bytes())?;
    Ok(Seen {
        status: answer.status,
        body_is_right: answer.body == load::body().as_bytes(),
        length: answer.length(),
        backend: answer.header("x-backend"),
        client: answer.header("x-seen-client"),
    })
}
