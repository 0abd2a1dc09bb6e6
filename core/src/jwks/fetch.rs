//! One fetch of a key set.

use std::time::Duration;

use bytes::Bytes;
use edgewright_script::{
    jwt::{JwksFrom, JwksSource, KeySet},
    outbound::{Outgoing, Recipient},
};
use http::{HeaderValue, Method, StatusCode, header};

use super::ForTasks;

/// Time until the whole answer is there.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a set. Ten keys with certificates have some 30 KiB.
const MOST_BYTES: usize = 256 * 1024;

/// Fetches a set once.
///
/// # Errors
/// Says in one line why there is none.
pub(super) async fn fetch(source: &JwksSource, shared: &ForTasks) -> Result<KeySet, String> {
    let generation = shared.generation.load_full();
    let generation = generation.ok_or("no program needs it any more")?;
    let recipient = match &source.from {
        JwksFrom::Server(server) => server.clone(),
        JwksFrom::Pool(name) => {
            let id = generation.program.pool_id(name);
            Recipient::Pool(id.ok_or_else(|| format!("there is no pool `{name}`"))?)
        }
    };
    let call = Outgoing {
        recipient,
        method: Method::GET,
        target: source.target.clone(),
        headers: vec![(header::ACCEPT, HeaderValue::from_static("application/json"))],
        body: Bytes::new(),
        timeout: TIMEOUT,
        retries: 0,
    };
    let answer = shared.client.call(&call, &generation, MOST_BYTES).await;
    let answer = answer.map_err(|failure| failure.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!("status {}", answer.status.as_u16()));
    }
    KeySet::parse(&answer.body)
}
