//! `edgewright run`: from the command line and files to a serving process.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::SystemTime};

use edgewright_script::{diagnostic::Diagnostic, state::StateStore};

use super::{
    WRONG, WRONG_USE, report,
    start::{self, Loaded, Start},
};
use crate::{
    config::{Overrides, check_zone},
    last_good::{Kept, LastGood},
    logging,
    reload::failure_text,
    server::Workers,
    source::{self, Compiled, LastRead, Refused},
};

/// The variable that names the zone of the replica, which the files that all replicas share can't know.
const ZONE: &str = "EDGEWRIGHT_ZONE";

/// The variable that stands for `--last-good`.
const LAST_GOOD: &str = "EDGEWRIGHT_LAST_GOOD";

pub(super) fn run(
    path: PathBuf,
    listen: Vec<SocketAddr>,
    last_good: Option<PathBuf>,
    upgrade: bool,
) -> ExitCode {
    match prepare(path, listen, last_good, upgrade) {
        Ok(start) => serve(start, |_| Ok(())),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(WRONG_USE)
        }
    }
}

/// What the command line and the environment say.
fn prepare(
    path: PathBuf,
    listen: Vec<SocketAddr>,
    last_good: Option<PathBuf>,
    upgrade: bool,
) -> Result<Start, String> {
    let address = |name: &str| {
        let Some(text) = std::env::var_os(name) else {
            return Ok(None);
        };
        let address = text.to_str().and_then(|text| text.parse().ok());
        let address: Option<SocketAddr> = address;
        let wrong = || format!("{name} is no address: write it as 0.0.0.0:8080");
        address.map(Some).ok_or_else(wrong)
    };
    let from_environment = || std::env::var_os(LAST_GOOD).filter(|folder| !folder.is_empty());
    let last_good = last_good.or_else(|| from_environment().map(PathBuf::from));
    let last_good = last_good
        .map(|folder| LastGood::open(&folder))
        .transpose()
        .map_err(|error| format!("the last good files can't be kept (--last-good): {error:#}"))?;
    if let Some(place) = last_good.as_ref().and_then(LastGood::was_emptied) {
        eprintln!(
            "warning: others could write to {}: what was in it is not believed, and removed",
            place.display()
        );
    }
    let overrides = Overrides {
        listen,
        default_listen: address("EDGEWRIGHT_LISTEN")?,
        default_health: address("EDGEWRIGHT_HEALTH")?,
        default_zone: zone().map_err(|message| format!("{ZONE}: {message}"))?,
        keep_contents: last_good.is_some(),
    };
    Ok(Start {
        path,
        overrides,
        last_good: last_good.map(Arc::new),
        upgrade,
    })
}

/// An empty one is none: a label that a node doesn't have comes out so.
fn zone() -> Result<Option<String>, String> {
    let Some(zone) = std::env::var_os(ZONE).filter(|zone| !zone.is_empty()) else {
        return Ok(None);
    };
    let zone = zone.to_string_lossy().into_owned();
    check_zone(&zone).map(|()| Some(zone))
}

/// Serves until the process is told to end. `add` may start workers of its own.
pub(super) fn serve(start: Start, add: impl FnOnce(&Workers) -> anyhow::Result<()>) -> ExitCode {
    let state = StateStore::default();
    let (loaded, kept) = match load(&start, &state) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let config = &loaded.compiled.config;
    if start.upgrade && config.server.upgrade_socket.is_none() {
        eprintln!("error: --upgrade needs `[server] upgrade_socket` in edgewright.toml");
        return ExitCode::from(WRONG_USE);
    }
    logging::start(&config.log);
    if let (Some(kept), Some(last_good)) = (kept, &start.last_good) {
        last_good.set_degraded(true);
        let age = SystemTime::now().duration_since(kept.kept_at);
        tracing::error!(
            "the files are refused, serving the last good copy: revision {}, kept {} s ago: {}",
            kept.revision,
            age.map_or(0, |age| age.as_secs()),
            failure_text(&loaded.refused)
        );
    }
    let ended = start::start(start, loaded, state, add);
    if let Err(error) = &ended {
        tracing::error!("{error:#}");
    }
    logging::finish();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(WRONG),
    }
}

/// The files, or when they are refused the copy of the last good ones.
fn load(start: &Start, state: &StateStore) -> Result<(Loaded, Option<Kept>), ExitCode> {
    let compiled = source::compile_with(&start.path, &start.overrides, state);
    let refused = match compiled.and_then(Compiled::whole) {
        Ok(compiled) => {
            let loaded = Loaded {
                last: Some(LastRead::of(&compiled.folder)),
                compiled,
                refused: Vec::new(),
            };
            return Ok((loaded, None));
        }
        Err(refused) => refused,
    };
    let Some(last_good) = &start.last_good else {
        report::refused(&refused);
        return Err(ExitCode::from(WRONG));
    };
    let wrong = |why: &str| {
        report::refused(&refused);
        eprintln!("error: the last good copy can't serve either: {why}");
        ExitCode::from(WRONG)
    };
    let kept = last_good.newest(&start.path);
    let kept = kept.map_err(|error| wrong(&format!("{error:#}")))?;
    let overrides = Overrides {
        keep_contents: false,
        ..start.overrides.clone()
    };
    let compiled = source::compile_with(&kept.path, &overrides, state);
    let compiled = compiled.and_then(Compiled::whole);
    let compiled = compiled.map_err(|again| wrong(&reason(&again)))?;
    let confirmed = kept.confirm(&compiled.folder);
    confirmed.map_err(|error| wrong(&format!("{error:#}")))?;
    let Refused { diagnostics, last } = refused;
    let loaded = Loaded {
        compiled,
        last,
        refused: diagnostics.0,
    };
    Ok((loaded, Some(kept)))
}

fn reason(refused: &Refused) -> String {
    let findings: &[Diagnostic] = &refused.diagnostics.0;
    failure_text(findings)
}
