//! Names of upstreams: what the resolver does, and what of it requests feel.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::rr::RecordType;

use crate::support::client::{Connection, get};
use crate::support::dns_server::{Answer, DnsServer};
use crate::support::launch::serving;
use crate::support::load::{Load, Until};
use crate::support::proxy::Proxy;
use crate::support::upstream::{Upstream, ok};
use crate::support::wait::{SOON, until};

const ROUTES: &str = r#"route("/{*rest}").to("web");"#;
const NAME: &str = "backend.test";

fn dns(server: &DnsServer) -> String {
    format!(
        "[dns]\nservers = [\"{}\"]\ntimeout = \"300ms\"\nhold_empty = \"1s\"\n",
        server.addr()
    )
}

/// With `EDGEWRIGHT_SOAK=1` as long as resolvers are down in reality, else a short form that is longer than
/// the TTL and all times after which something could be forgotten.
fn outage() -> Duration {
    let soak = std::env::var_os("EDGEWRIGHT_SOAK").is_some_and(|value| value == "1");
    Duration::from_secs(if soak { 600 } else { 5 })
}

fn status_of(proxy: &Proxy, list: &str, name: &str) -> serde_json::Value {
    let status = proxy.status();
    let all = status["dns"][list].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {status}"))
        .clone()
}

#[test]
fn a_silent_resolver_is_not_felt() {
    let (first, second) = Upstream::pair("first", "second");
    let server = DnsServer::start();
    server.set_a(NAME, 1, &["127.0.0.1", "127.0.0.2"]);
    let proxy = serving(ROUTES)
        .pool("web", format!("{NAME}:{}", first.address().port()))
        .settings(&dns(&server))
        .start();
    let load = Load::start(proxy.address(), "/x", 8, Until::Elapsed(outage()));
    server.set(NAME, RecordType::A, Answer::Silence);
    server.set(NAME, RecordType::AAAA, Answer::Silence);
    until("the silence is noticed", SOON, || {
        proxy.metric("dns_stale", &[("name", NAME)]) == 1.0
    });
    load.finish().assert_all_ok();
    let name = status_of(&proxy, "names", NAME);
    assert_eq!(
        name["addresses"],
        serde_json::json!(["127.0.0.1", "127.0.0.2"])
    );
    assert_eq!(
        (&name["stale"], &name["state"]),
        (&true.into(), &"resolved".into())
    );
    let error = name["last_error"].as_str().unwrap();
    assert!(error.contains("no answer from"), "{error}");
    assert!(first.hits() > 0 && second.hits() > 0);

    server.set_a(NAME, 1, &["127.0.0.2"]);
    until("the answer is fresh", 2 * SOON, || {
        proxy.metric("dns_stale", &[("name", NAME)]) == 0.0
            && proxy.metric("dns_hosts", &[("name", NAME)]) == 1.0
    });
    assert_eq!(proxy.text("/x"), "second");
}

#[test]
fn a_removed_address_gets_nothing_new_and_its_connections_end() {
    let (first, second) = Upstream::pair("first", "second");
    let server = DnsServer::start();
    server.set_a(NAME, 1, &["127.0.0.1", "127.0.0.2"]);
    let port = first.address().port();
    let proxy = serving(ROUTES)
        .settings(&format!(
            "[pools.web]\ntargets = [\"{NAME}:{port}\"]\nbalance = \"round_robin\"\n\
             [pools.web.timeouts]\nidle = \"1s\"\n"
        ))
        .settings(&dns(&server))
        .start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    let mut ask = move || connection.send(&get("/x")).unwrap().text();
    until("both are asked", SOON, || {
        ask();
        first.hits() > 0 && second.hits() > 0
    });
    server.set_a(NAME, 1, &["127.0.0.2"]);
    until("one address is left", SOON, || {
        proxy.metric("upstream_endpoints", &[("pool", "web")]) == 1.0
    });
    let hits = first.hits();
    until("its idle connections have ended", SOON, || {
        assert_eq!(ask(), "second");
        first.open_connections() == 0
    });
    assert_eq!(first.hits(), hits);
    // The one in use is kept meanwhile.
    assert!(second.open_connections() > 0);
}

#[test]
fn a_service_leads_to_ports_and_moves() {
    let (first, second) = (Upstream::fixed("first"), Upstream::fixed("second"));
    let service = "_http._tcp.backend.test";
    let server = DnsServer::start();
    server.set_a("a.backend.test", 60, &["127.0.0.1"]);
    server.set_a("b.backend.test", 60, &["127.0.0.1"]);
    server.set_srv(
        service,
        1,
        &[(0, 10, first.address().port(), "a.backend.test")],
    );
    let proxy = serving(ROUTES)
        .pool("web", format!("srv:{service}"))
        .settings(&dns(&server))
        .start();
    assert_eq!(proxy.text("/x"), "first");
    let known = status_of(&proxy, "services", service);
    let record = &known["records"][0];
    assert_eq!(record["port"], first.address().port());
    assert_eq!(record["target"], "a.backend.test.");
    assert_eq!(
        (&known["state"], &known["stale"]),
        (&"resolved".into(), &false.into())
    );
    assert!(known["next_refresh_seconds"].as_f64().unwrap() <= 1.0);
    assert_eq!(
        status_of(&proxy, "names", "a.backend.test.")["origin"],
        "service"
    );
    let name = [("name", "srv:_http._tcp.backend.test")];
    assert_eq!(proxy.metric("dns_hosts", &name), 1.0);
    let lookups = [name[0], ("type", "SRV"), ("result", "records")];
    assert!(proxy.metric("dns_lookups_total", &lookups) >= 1.0);

    // From one to the other without an error in between.
    let load = Load::start(
        proxy.address(),
        "/x",
        4,
        Until::Elapsed(Duration::from_secs(4)),
    );
    server.set_srv(
        service,
        1,
        &[(0, 10, second.address().port(), "b.backend.test")],
    );
    until("the other one is asked", SOON, || second.hits() > 0);
    load.finish().assert_all_ok();
    let hits = first.hits();
    assert_eq!(proxy.text("/x"), "second");
    assert_eq!(first.hits(), hits);

    // "Decidedly not available" (RFC 2782), believed after the hold.
    server.set_srv(service, 1, &[(0, 0, 0, ".")]);
    until("there is no such service", SOON, || {
        proxy.get("/x").status == 503
    });
    server.set_srv(
        service,
        1,
        &[(0, 10, first.address().port(), "a.backend.test")],
    );
    until("it is there again", SOON, || proxy.get("/x").status == 200);
}

#[test]
fn a_name_that_leads_to_metadata_leads_nowhere() {
    let web = Upstream::fixed("served");
    let server = DnsServer::start();
    server.set_a(NAME, 1, &["169.254.169.254"]);
    let settings = dns(&server);
    let proxy = serving(ROUTES)
        .pool("web", format!("{NAME}:{}", web.address().port()))
        .settings(&settings)
        .not_ready_at_first()
        .start();
    until("the pool is empty", SOON, || {
        proxy.get("/x").text().contains("no addresses")
    });
    assert_eq!(proxy.get("/x").status, 503);
    assert!(proxy.metric("dns_refused_addresses_total", &[]) >= 1.0);
    assert_eq!(
        status_of(&proxy, "names", NAME)["refused"][0],
        "169.254.169.254"
    );
    assert_eq!(
        proxy.log.count("see `[dns] allow`"),
        1,
        "{}",
        proxy.log.text()
    );

    // What is allowed is used, after a reload too.
    let allowed = proxy
        .settings()
        .replace("[dns]", "[dns]\nallow = [\"169.254.0.0/16\"]");
    std::fs::write(proxy.file("edgewright.toml"), allowed).unwrap();
    until("the address is in use", SOON, || {
        proxy.reload();
        proxy.metric("dns_hosts", &[("name", NAME)]) == 1.0
    });
    // And what is right anyway never was refused.
    server.set_a(NAME, 1, &["169.254.169.254", "127.0.0.1"]);
    std::fs::write(proxy.file("edgewright.toml"), proxy.settings()).unwrap();
    until("only the other one is left", SOON, || {
        proxy.reload();
        proxy.get("/x").status == 200
    });
    assert_eq!(proxy.text("/x"), "served");
}

#[test]
fn five_hundred_addresses_are_five_hundred_endpoints() {
    let web = Upstream::start_at(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), |_| {
        ok("served")
    })
    .unwrap();
    let server = DnsServer::start();
    let all: Vec<String> = (0..500)
        .map(|n| format!("127.1.{}.{}", n / 250, n % 250 + 1))
        .collect();
    let mut list: Vec<&str> = all.iter().map(String::as_str).collect();
    server.set_a(NAME, 1, &list);
    let proxy = serving(ROUTES)
        .pool("web", format!("{NAME}:{}", web.address().port()))
        .settings(&dns(&server))
        .start();
    let endpoints = || proxy.metric("upstream_endpoints", &[("pool", "web")]);
    assert_eq!(endpoints(), 500.0);
    for _ in 0..20 {
        assert_eq!(proxy.text("/x"), "served");
    }
    assert!(server.tcp_queries() > 0);
    list.truncate(3);
    server.set_a(NAME, 1, &list);
    until("three are left", SOON, || endpoints() == 3.0);
    assert_eq!(proxy.text("/x"), "served");
}
