//! `edgewright demo`: a complete thing to try on one machine.

mod echo;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use pingora_core::services::{Service as _, listening::Service};

use self::echo::Echo;
use super::{WRONG, run, start::Start};
use crate::{config::Overrides, server::Workers};

const ROUTES: &str = include_str!("demo/routes.rhai");

pub(super) fn run(listen: SocketAddr) -> ExitCode {
    match prepare(listen) {
        Ok(demo) => {
            let folder = demo.folder.path().to_owned();
            let overrides = Overrides {
                listen: vec![listen],
                ..Overrides::default()
            };
            let start = Start {
                path: folder,
                overrides,
                last_good: None,
                upgrade: false,
            };
            run::serve(start, |workers| start_echoes(workers, &demo.echoes))
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(WRONG)
        }
    }
}

struct Demo {
    /// Removed when the demo ends.
    folder: tempfile::TempDir,
    echoes: [(&'static str, SocketAddr); 2],
}

fn prepare(listen: SocketAddr) -> anyhow::Result<Demo> {
    let folder = tempfile::Builder::new()
        .prefix("edgewright-demo-")
        .tempdir()
        .context("can't make a folder for the demo")?;
    let echoes = [("blue", free_address()?), ("green", free_address()?)];
    let mut settings = String::from("# Process-level settings; the routes are in routes.rhai.\n");
    for (name, address) in echoes {
        settings.push_str(&format!("[pools.{name}]\ntargets = [\"{address}\"]\n"));
    }
    std::fs::write(folder.path().join("edgewright.toml"), settings)
        .and_then(|()| std::fs::write(folder.path().join("routes.rhai"), ROUTES))
        .context("can't write the demo's files")?;
    explain(listen, folder.path());
    Ok(Demo { folder, echoes })
}

/// An address that is free now.
fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.context("can't find a free port")
}

fn start_echoes(workers: &Workers, echoes: &[(&'static str, SocketAddr)]) -> anyhow::Result<()> {
    for &(name, address) in echoes {
        let mut service = Service::new(name.to_owned(), Echo::server(name));
        service.add_tcp(&address.to_string());
        workers.start(name, |closing| async move {
            service.start_service(None, closing, 1).await;
        })?;
    }
    Ok(())
}

fn explain(listen: SocketAddr, folder: &Path) {
    let routes = folder.join("routes.rhai");
    println!(
        "\
edgewright demo on http://{listen}, with two upstreams that say what they got: blue and green.

Try
  curl http://{listen}/hello
  curl http://{listen}/split/1                               # one in five is green
  curl --cookie beta=1 http://{listen}/beta/                 # a cookie decides
  curl http://{listen}/api/v1/orders                         # 401: the gate is closed
  curl -H 'x-api-key: secret-1' http://{listen}/api/v1/orders   # and open for alice
  curl http://127.0.0.1:9180/status                             # what is live, and since when

Then edit {routes}
and save: the change is live at once, a mistake is refused with its place. Ctrl-C ends the demo.
",
        routes = routes.display(),
    );
}
