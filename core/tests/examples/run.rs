//! Runs an example: its own program, data and settings; pools and addresses are the test's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use edgewright_script::values::Regex;

use crate::pools::Pools;
use crate::scenario::{Exchange, Expected, Scenario, Upstream};
use crate::support::certificates::Authority;
use crate::support::client::{Response, request};
use crate::support::launch::{Builder, serving};
use crate::support::proxy::Proxy;
use crate::support::tls_client::{Tunnel, asking_for};
use crate::support::tls_server::{Demands, TlsServer};
use crate::support::upstream::Seen;

/// Files of an example that don't belong to the configuration.
const BESIDE: [&str; 5] = [
    "README.md",
    "make.sh",
    "requests.toml",
    "routes.rhai",
    "edgewright.toml",
];

/// Sends all requests of the example; everything that was not as it must be.
pub fn run(folder: &Path) -> Vec<String> {
    let scenario: Scenario = toml::from_str(&read(folder, "requests.toml"))
        .unwrap_or_else(|error| panic!("{}/requests.toml: {error}", folder.display()));
    let settings = settings(folder);
    let pools = Pools::start(names(&settings), &scenario.upstreams);
    let secured = Secured::start(&settings, &pools);
    let tls = listener_tls(&settings);
    let proxy = start(
        folder,
        settings,
        tls.as_deref(),
        &pools,
        &secured,
        &scenario,
    );
    let mut wrong = Vec::new();
    let mut kept = BTreeMap::new();
    for exchange in &scenario.requests {
        let found = try_one(&proxy, tls.is_some(), &pools, exchange, &mut kept);
        wrong.extend(
            found
                .into_iter()
                .map(|what| format!("{}: \"{}\": {what}", folder.display(), exchange.what)),
        );
    }
    wrong
}

/// Servers of TLS in front of the pools that are called over it. Their certificates, and those that the proxy
/// shows, are the test's: its files stand in the place of the example's.
#[derive(Default)]
struct Secured {
    servers: BTreeMap<String, TlsServer>,
    files: Vec<(String, String)>,
}

impl Secured {
    fn start(settings: &toml::Table, pools: &Pools) -> Self {
        let mut secured = Self::default();
        for (name, address) in pools.addresses() {
            let tls = |key: &str| {
                let value = settings["pools"].get(name)?.get("tls")?.get(key)?;
                value.as_str().map(str::to_owned)
            };
            let Some(server_name) = tls("server_name") else {
                continue;
            };
            let authority = Authority::new("of the test");
            let mut file =
                |key: &str, text: String| secured.files.extend(tls(key).map(|name| (name, text)));
            file("ca", authority.pem());
            let edge = authority.issue(&["edge.internal"]);
            file("certificate", edge.chain);
            file("key", edge.key);
            let demands = Demands {
                client_authority: tls("certificate").map(|_| authority.pem()),
                ..Demands::default()
            };
            let own = authority.issue(&[&server_name]);
            let server = TlsServer::start(&own, address, &demands);
            secured.servers.insert(name.to_owned(), server);
        }
        secured
    }
}

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn settings(folder: &Path) -> toml::Table {
    if !folder.join("edgewright.toml").exists() {
        return toml::Table::new();
    }
    let text = read(folder, "edgewright.toml");
    text.parse()
        .unwrap_or_else(|error| panic!("{}/edgewright.toml: {error}", folder.display()))
}

/// The TLS of the last listener, as keys of a listener: then the test speaks TLS, and asks for the host as name.
fn listener_tls(settings: &toml::Table) -> Option<String> {
    let last = settings.get("listeners")?.as_array()?.last()?;
    let tls = last.get("tls")?.clone();
    Some(toml::Table::from_iter([("tls".to_owned(), tls)]).to_string())
        // Below [[listeners]] a table has its name in front.
        .map(|text| {
            text.replace("[tls]", "[listeners.tls]")
                .replace("[[tls.", "[[listeners.tls.")
        })
}

/// The upstreams of the settings, one for each target: `web` and, for more targets, `web-2` and so on. An example
/// declares its pools there, where their targets can be replaced.
fn names(settings: &toml::Table) -> BTreeSet<String> {
    let pools = settings.get("pools").and_then(toml::Value::as_table);
    let names = pools.into_iter().flatten().flat_map(|(pool, settings)| {
        let targets = settings["targets"].as_array().unwrap();
        (0..targets.len()).map(move |index| upstream_name(pool, index))
    });
    names.collect()
}

fn upstream_name(pool: &str, index: usize) -> String {
    match index {
        0 => pool.to_owned(),
        index => format!("{pool}-{}", index + 1),
    }
}

fn start(
    folder: &Path,
    mut settings: toml::Table,
    tls: Option<&str>,
    pools: &Pools,
    secured: &Secured,
    scenario: &Scenario,
) -> Proxy {
    for own in ["listeners", "admin", "health"] {
        settings.remove(own);
    }
    let addresses: BTreeMap<&str, String> = pools
        .addresses()
        .map(|(name, address)| {
            let secured = secured.servers.get(name);
            let address = secured.map_or(address, TlsServer::address);
            (name, address.to_string())
        })
        .collect();
    let declared = settings
        .get_mut("pools")
        .and_then(toml::Value::as_table_mut);
    for (pool, settings) in declared.into_iter().flatten() {
        let targets = settings["targets"].as_array_mut().unwrap();
        for (index, target) in targets.iter_mut().enumerate() {
            let address = addresses[&*upstream_name(pool, index)].clone();
            match target {
                toml::Value::Table(target) => target["target"] = address.into(),
                target => *target = address.into(),
            }
        }
    }
    let mut builder = serving(&read(folder, "routes.rhai")).settings(&settings.to_string());
    if let Some(tls) = tls {
        builder = builder.listener(tls);
    }
    for (name, value) in &scenario.environment {
        builder = builder.environment(name, value);
    }
    builder = with_files(builder, folder);
    for (name, text) in &secured.files {
        builder = builder.file(name, text);
    }
    builder.start()
}

fn with_files(mut builder: Builder, folder: &Path) -> Builder {
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !BESIDE.contains(&name.as_str()) {
            builder = builder.file(&name, &read(folder, &name));
        }
    }
    builder
}

fn try_one(
    proxy: &Proxy,
    tls: bool,
    pools: &Pools,
    exchange: &Exchange,
    kept: &mut BTreeMap<String, String>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let (method, target) = exchange
        .send
        .split_once(' ')
        .expect("`send` is \"METHOD /target\"");
    let mut sent = request(method, target);
    if let Some(host) = &exchange.host {
        sent = sent.host(host);
    }
    for (name, values) in &exchange.headers {
        for value in values.all() {
            let known = kept.iter();
            let value = known.fold(value.clone(), |value, (name, text)| {
                value.replace(&format!("${{{name}}}"), text)
            });
            sent = sent.header(name, &value);
        }
    }
    if let Some(body) = &exchange.body {
        sent = sent.body(body.as_bytes());
    }
    let name = exchange.host.as_deref().unwrap_or("edge.test");
    let tunnel = tls.then(|| asking_for(name).to(proxy.address()));
    let address = tunnel.as_ref().map_or(proxy.address(), Tunnel::address);
    pools.take();
    for _ in 0..exchange.times {
        let answer = sent.send(address);
        check_answer(exchange, &answer, &mut wrong);
        if !wrong.is_empty() {
            return wrong;
        }
        if let Some(name) = &exchange.keep {
            kept.insert(name.clone(), answer.text());
        }
    }
    for (name, count) in &exchange.copies {
        pools.wait(name, *count);
    }
    let seen = pools.take();
    check_shares(exchange, &seen, &mut wrong);
    check_upstream(exchange, &seen, &mut wrong);
    wrong
}

fn check_answer(exchange: &Exchange, answer: &Response, wrong: &mut Vec<String>) {
    let text = answer.text();
    if answer.status != exchange.status {
        wrong.push(format!(
            "status {} and not {}: {text}",
            answer.status, exchange.status
        ));
    }
    for (name, expected) in &exchange.answer {
        let values: Vec<String> = answer
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
            .collect();
        check_field("the answer", name, expected, &values, wrong);
    }
    if exchange
        .text
        .as_ref()
        .is_some_and(|expected| *expected != text)
    {
        wrong.push(format!("the body is {text:?}"));
    }
    if exchange
        .has
        .as_ref()
        .is_some_and(|part| !text.contains(part))
    {
        wrong.push(format!("the body is {text:?}"));
    }
}

fn check_field(
    of: &str,
    name: &str,
    expected: &Expected,
    values: &[String],
    wrong: &mut Vec<String>,
) {
    let fits = match expected {
        Expected::There(there) => *there != values.is_empty(),
        Expected::Values(all) => all.all() == values,
        Expected::Like { like } => {
            let pattern = Regex::compile(like).unwrap_or_else(|error| panic!("{like}: {error}"));
            matches!(values, [one] if pattern.is_match(one))
        }
    };
    if !fits {
        wrong.push(format!("{of} has `{name}` {values:?} and not {expected:?}"));
    }
}

fn check_shares(exchange: &Exchange, seen: &BTreeMap<&str, Vec<Seen>>, wrong: &mut Vec<String>) {
    for (pool, (least, most)) in &exchange.shares {
        let hits = seen.get(pool.as_str()).map_or(0, Vec::len);
        if !(*least..=*most).contains(&hits) {
            wrong.push(format!(
                "`{pool}` got {hits} requests and not {least} to {most}"
            ));
        }
    }
}

fn check_upstream(exchange: &Exchange, seen: &BTreeMap<&str, Vec<Seen>>, wrong: &mut Vec<String>) {
    let asked: Vec<&str> = seen
        .iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(name, _)| *name)
        .collect();
    let line = match &exchange.upstream {
        None if exchange.pool.is_none()
            && exchange.seen.is_empty()
            && exchange.seen_text.is_none() =>
        {
            return;
        }
        Some(Upstream::Any(false)) => {
            if !asked.is_empty() {
                wrong.push(format!("{asked:?} got a request"));
            }
            return;
        }
        Some(Upstream::Any(true)) | None => None,
        Some(Upstream::Line(line)) => Some(line),
    };
    let pool = match (&exchange.pool, asked.as_slice()) {
        (Some(pool), _) => pool.as_str(),
        (None, [only]) => *only,
        (None, _) => {
            wrong.push(format!(
                "{asked:?} got a request, where one pool was expected to"
            ));
            return;
        }
    };
    let Some(got) = seen.get(pool).and_then(|all| all.last()) else {
        wrong.push(format!("`{pool}` got nothing"));
        return;
    };
    let shown = format!("{} {}", got.method(), got.target());
    if line.is_some_and(|line| *line != shown) {
        wrong.push(format!("`{pool}` got {shown}"));
    }
    for (name, expected) in &exchange.seen {
        let values = got.headers(name);
        check_field(
            &format!("what `{pool}` got"),
            name,
            expected,
            &values,
            wrong,
        );
    }
    let body = String::from_utf8_lossy(&got.body);
    if exchange
        .seen_text
        .as_ref()
        .is_some_and(|expected| *expected != body)
    {
        wrong.push(format!("`{pool}` got the body {body:?}"));
    }
}
