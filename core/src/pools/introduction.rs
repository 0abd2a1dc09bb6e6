//! Connections that begin with a header of the PROXY protocol.
//!
//! The header speaks for all that follows on the connection, so only requests of the same client, from the
//! same port, may share one. Pingora tells connections apart by a key, into which the client goes.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use pingora_core::connectors::L4Connect;
use pingora_core::protocols::l4::{
    ext::{connect, connect_uds},
    socket::SocketAddr,
    stream::Stream,
};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{ErrorType, OkOrErr as _, OrErr as _, Result};
use tokio::io::AsyncWriteExt as _;

use crate::config::ProxyProtocol;
use crate::proxy_protocol::{self, Ends};

/// Connects, and says whose connection it is.
#[derive(Debug)]
pub(super) struct Introduction(Vec<u8>);

impl Introduction {
    /// For connections that no client stands behind.
    pub(super) fn own(version: ProxyProtocol) -> Self {
        Self(proxy_protocol::write(version, None))
    }
}

#[async_trait]
impl L4Connect for Introduction {
    async fn connect(&self, address: &SocketAddr) -> Result<Stream> {
        // The peer's time limit for connecting covers all of it.
        let mut stream = match address {
            SocketAddr::Inet(address) => Stream::from(connect(address, None).await?),
            SocketAddr::Unix(address) => {
                let path = address.as_pathname();
                let path = path.or_err(ErrorType::ConnectError, "a socket without a path")?;
                Stream::from(connect_uds(path).await?)
            }
        };
        let written = async {
            stream.write_all(&self.0).await?;
            stream.flush().await
        };
        written
            .await
            .or_err(ErrorType::ConnectError, "writing the PROXY header")?;
        Ok(stream)
    }
}

/// Makes of a pool's peer one that is told of this client, and shares no connection with others.
pub(crate) fn introduce(peer: &mut HttpPeer, version: ProxyProtocol, ends: Ends) {
    /// Nobody can look for two clients that get the same key.
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    peer.group_key ^= KEYS.hash_one((ends.source, ends.destination));
    let header = proxy_protocol::write(version, Some(ends));
    peer.options.custom_l4 = Some(Arc::new(Introduction(header)));
}
