//! Does a contestant do its job? A fast wrong answer is no result.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::client::Client;
use crate::load::{self, BLUE, CHECK_PATH, GREEN, PATH};
use crate::peers::Peer;

const TIMEOUT: Duration = Duration::from_secs(5);
const SAMPLE: usize = 100;
const WRONG_KEY: &str = "key-that-nobody-has";

/// Checks auth, routing and what reaches the backend.
pub(crate) fn job(peer: &Peer, address: SocketAddr) -> Result<()> {
    let ask = |path, key: &str, variant| ask(address, path, key, variant);
    let key = load::good_key();

    let seen = ask(CHECK_PATH, &key, BLUE)?;
    ensure!(seen.status == 200, "a good key gives {}", seen.status);
    ensure!(seen.body_is_right, "the body arrives changed");
    ensure!(
        seen.backend.as_deref() == Some(BLUE),
        "the request went to {:?}",
        seen.backend
    );
    let client = peer.checks_keys().then(load::good_client);
    ensure!(
        seen.client == client,
        "the backend saw {:?} as client, not {client:?}",
        seen.client
    );

    let expected = if peer.routes_by_header() { GREEN } else { BLUE };
    let seen = ask(CHECK_PATH, &key, GREEN)?;
    ensure!(
        seen.backend.as_deref() == Some(expected),
        "a request for the green pool went to {:?}",
        seen.backend
    );

    let expected = if peer.checks_keys() { 401 } else { 200 };
    for path in [PATH, CHECK_PATH] {
        let status = ask(path, WRONG_KEY, BLUE)?.status;
        ensure!(
            status == expected,
            "a wrong key gives {status}, not {expected}"
        );
    }
    Ok(())
}

/// Sends the measured request a hundred times over one connection, compares each answer with the
/// expected one, and gives the bytes of an answer, header included.
pub(crate) fn sample(address: SocketAddr) -> Result<usize> {
    let request = load::measured_request();
    let body = load::body();
    let mut client = Client::connect(address, TIMEOUT)?;
    let mut length = 0;
    for number in 0..SAMPLE {
        let answer = client
            .exchange(&request)
            .with_context(|| format!("request {number} of the sample"))?;
        ensure!(
            answer.status == 200,
            "status {} in the sample",
            answer.status
        );
        ensure!(
            answer.body == body.as_bytes(),
            "a changed body in the sample"
        );
        length = answer.length();
    }
    Ok(length)
}

struct Seen {
    status: u16,
    body_is_right: bool,
    backend: Option<String>,
    client: Option<String>,
}

fn ask(address: SocketAddr, path: &str, key: &str, variant: &str) -> Result<Seen> {
    // A connection of its own: a refusal may close it.
    let mut client = Client::connect(address, TIMEOUT)?;
    let answer = client.exchange(&load::request(path, key, variant))?;
    Ok(Seen {
        status: answer.status,
        body_is_right: answer.body == load::body().as_bytes(),
        backend: answer.header("x-backend"),
        client: answer.header("x-seen-client"),
    })
}
