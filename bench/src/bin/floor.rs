//! `edgewright-floor`: the smallest reverse proxy that Pingora allows.
//!
//! What a proxy on Pingora can't go below: one callback, which clones a peer that was built once.
//! Allocator, profile, thread count, pool size and scheduler are those of `edgewright`, so that a
//! difference between the two is the work that `edgewright` does itself, or spares Pingora.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use async_trait::async_trait;
use clap::Parser;
use pingora_core::Result;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

// Allocator and settings are those of `edgewright`'s main.rs, but for the buffers that its workers keep at hand.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

// SAFETY: the symbol is the one that jemalloc reads (jemalloc(3), TUNING), a pointer to a text that
// ends with NUL; nothing else defines it.
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: &[u8; 60] = b"background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0\0";

/// The smallest reverse proxy that Pingora allows: everything to one upstream, HTTP/1.1 only.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address of the upstream.
    #[arg(long)]
    upstream: SocketAddr,
    /// Worker threads.
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,
    /// Idle upstream connections that the whole process keeps.
    #[arg(long, default_value = "1000")]
    keepalive: NonZeroUsize,
    /// Let the workers take tasks from each other (Pingora's own default); off as in `edgewright`.
    #[arg(long)]
    work_stealing: bool,
    /// Set the timeouts that `edgewright` gives a pool: connect 1 s, read, write and idle 60 s.
    #[arg(long)]
    timeouts: bool,
}

struct Floor {
    peer: HttpPeer,
}

#[async_trait]
impl ProxyHttp for Floor {
    type CTX = ();

    fn new_ctx(&self) -> Self::CTX {}

    async fn upstream_peer(&self, _: &mut Session, _: &mut Self::CTX) -> Result<Box<HttpPeer>> {
        Ok(Box::new(self.peer.clone()))
    }
}

fn peer(args: &Args) -> HttpPeer {
    let mut peer = HttpPeer::new(args.upstream, false, String::new());
    if args.timeouts {
        peer.options.connection_timeout = Some(Duration::from_secs(1));
        peer.options.total_connection_timeout = Some(Duration::from_secs(1));
        peer.options.read_timeout = Some(Duration::from_secs(60));
        peer.options.write_timeout = Some(Duration::from_secs(60));
        peer.options.idle_timeout = Some(Duration::from_secs(60));
    }
    peer
}

fn main() {
    let args = Args::parse();
    let conf = ServerConf {
        threads: args.threads.get(),
        work_stealing: args.work_stealing,
        // Pingora multiplies this setting by the threads; the flag is for the whole process.
        upstream_keepalive_pool_size: args.keepalive.get().div_ceil(args.threads.get()),
        // SIGTERM ends at once. Pingora's own defaults are 300 s, then 5 s.
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Floor { peer: peer(&args) });
    service.add_tcp(&args.listen.to_string());
    server.add_service(service);
    server.run_forever();
}
