//! Services: SRV records, and the names that they lead to.

use super::*;
use crate::dns::{Service, ServiceSnapshot};
use crate::metrics::DnsSample;

const NAME: &str = "_http._tcp.web.test";

/// Priority, weight and address of each server with an address.
fn servers(service: &Service) -> Vec<(u16, u16, String)> {
    let servers = service.servers();
    let servers = servers.list.iter().flat_map(|server| {
        let (priority, weight) = (server.record.priority, server.record.weight);
        let addresses = server.addresses().into_iter();
        addresses.map(move |address| (priority, weight, address.to_string()))
    });
    servers.collect()
}

#[track_caller]
fn wait_for_servers(service: &Service, wanted: &[(u16, u16, &str)]) {
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(priority, weight, address)| (*priority, *weight, (*address).to_owned()))
        .collect();
    wait_until(&format!("{wanted:?}"), || servers(service) == wanted);
}

fn snapshot(resolver: &Resolver) -> ServiceSnapshot {
    resolver.snapshot().services.swap_remove(0)
}

#[test]
fn servers_have_ports_and_addresses_of_their_own() {
    let server = DnsServer::start();
    server.set_srv(
        NAME,
        300,
        &[(1, 20, 8082, "b.test."), (0, 10, 8081, "A.test.")],
    );
    server.set_a("a.test", 0, &["10.0.0.1", "10.0.0.2"]);
    server.set_a("b.test", 300, &["10.0.0.3"]);
    let resolver = resolver(&server);
    let service = resolver.watch_service(NAME);
    wait_for_servers(
        &service,
        &[
            (0, 10, "10.0.0.1:8081"),
            (0, 10, "10.0.0.2:8081"),
            (1, 20, "10.0.0.3:8082"),
        ],
    );
    // Each name keeps to its own time to live.
    server.set_a("a.test", 0, &["10.0.0.9"]);
    wait_for_servers(
        &service,
        &[(0, 10, "10.0.0.9:8081"), (1, 20, "10.0.0.3:8082")],
    );
    assert_eq!(server.count(NAME, RecordType::SRV), 1);
    assert_eq!(server.count("b.test", RecordType::A), 1);

    let known = snapshot(&resolver);
    assert_eq!((known.state, known.stale), (State::Resolved, false));
    assert_eq!(known.ttl_seconds, Some(300));
    assert!(known.next_refresh_seconds.unwrap() > 100.0);
    assert!(known.last_success.is_some());
    assert_eq!(known.records[0].target, "a.test.");
    // The servers' names are shown, and have no series of their own.
    let names = resolver.snapshot().names;
    let names: Vec<_> = names.iter().map(|name| &*name.name).collect();
    assert_eq!(names, ["a.test.", "b.test."]);
    let sample = DnsSample::from(resolver.snapshot());
    assert_eq!(sample.hosts.len(), 1);
    assert_eq!(sample.hosts[0].name, format!("srv:{NAME}"));
    assert_eq!(sample.hosts[0].addresses, 2);
    let lookups: Vec<_> = sample
        .lookups
        .iter()
        .map(|l| (l.record_type, l.result, l.total))
        .collect();
    assert_eq!(lookups, [("SRV", "records", 1)]);
}

#[test]
fn the_same_service_is_asked_once_and_forgotten_when_unused() {
    let server = DnsServer::start();
    server.set_srv(NAME, 300, &[(0, 0, 80, "a.test.")]);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let one = resolver.watch_service(NAME);
    let two = resolver.watch_service(&NAME.to_uppercase());
    assert!(Arc::ptr_eq(&one, &two));
    wait_for_servers(&one, &[(0, 0, "10.0.0.1:80")]);
    drop((one, two));
    wait_until("nothing is left", || {
        let snapshot = resolver.snapshot();
        snapshot.services.is_empty() && snapshot.names.is_empty()
    });
}

#[test]
fn records_change_without_a_moment_of_nobody() {
    let server = DnsServer::start();
    server.set_srv(NAME, 0, &[(0, 0, 80, "a.test.")]);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let service = resolver.watch_service(NAME);
    wait_for_servers(&service, &[(0, 0, "10.0.0.1:80")]);

    /// Looks at each change whether there is somebody.
    struct Watch(Arc<Service>, AtomicUsize);
    impl Listener for Watch {
        fn answer_changed(&self) {
            if servers(&self.0).is_empty() {
                self.1.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let watch = Arc::new(Watch(service.clone(), AtomicUsize::new(0)));
    let listener: Arc<dyn Listener> = watch.clone();
    service.subscribe(Arc::downgrade(&listener));
    for number in 2..6 {
        let (name, address) = (format!("n{number}.test."), format!("10.0.0.{number}"));
        server.set_a(&name, 300, &[&address]);
        server.set_srv(NAME, 0, &[(0, 0, 80, &name)]);
        wait_for_servers(&service, &[(0, 0, &format!("{address}:80"))]);
    }
    assert_eq!(watch.1.load(Ordering::SeqCst), 0);
}

#[test]
fn servers_stay_while_nothing_is_known_of_the_new_ones() {
    let server = DnsServer::start();
    server.set_srv(NAME, 0, &[(0, 0, 80, "a.test.")]);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let service = resolver.watch_service(NAME);
    wait_for_servers(&service, &[(0, 0, "10.0.0.1:80")]);
    server.set("b.test", RecordType::A, Scripted::ServFail);
    server.set_srv(NAME, 0, &[(0, 0, 80, "b.test.")]);
    wait_until("stale", || snapshot(&resolver).stale);
    assert_eq!(servers(&service), [(0, 0, "10.0.0.1:80".to_owned())]);
    server.set_a("b.test", 300, &["10.0.0.2"]);
    wait_for_servers(&service, &[(0, 0, "10.0.0.2:80")]);
    wait_until("fresh", || !snapshot(&resolver).stale);
}

#[test]
fn failures_keep_the_servers_and_nothing_empties_them_after_a_while() {
    let server = DnsServer::start();
    server.set_srv(NAME, 0, &[(0, 0, 80, "a.test.")]);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let service = resolver.watch_service(NAME);
    wait_for_servers(&service, &[(0, 0, "10.0.0.1:80")]);
    for failure in [Scripted::ServFail, Scripted::Refused, Scripted::Silence] {
        server.set(NAME, RecordType::SRV, failure);
        let since = Instant::now();
        wait_for_queries(&server, NAME, RecordType::SRV, 3);
        let hold = settings(&server).hold_empty;
        wait_until("longer than the hold", || since.elapsed() > 2 * hold);
        assert_eq!(servers(&service).len(), 1);
    }
    assert!(snapshot(&resolver).stale);
    assert!(snapshot(&resolver).last_error.unwrap().contains("SRV"));

    for (gone, back) in [
        (Scripted::NxDomain { negative_ttl: None }, "10.0.0.2"),
        (Scripted::NoData, "10.0.0.3"),
        // "Decidedly not available" (RFC 2782).
        (
            Scripted::Servers {
                list: vec![(0, 0, 0, ".".to_owned())],
                ttl: 0,
            },
            "10.0.0.4",
        ),
    ] {
        let since = Instant::now();
        server.set(NAME, RecordType::SRV, gone);
        wait_until("empty", || service.servers().state == State::Empty);
        assert!(since.elapsed() >= settings(&server).hold_empty);
        assert!(servers(&service).is_empty());
        let name = format!("n{back}.test.");
        server.set_a(&name, 300, &[back]);
        server.set_srv(NAME, 0, &[(0, 0, 80, &name)]);
        wait_for_servers(&service, &[(0, 0, &format!("{back}:80"))]);
    }
}

#[test]
fn a_server_cannot_be_an_address_and_its_name_is_guarded() {
    let server = DnsServer::start();
    server.set_srv(
        NAME,
        300,
        &[
            (0, 0, 80, "169.254.169.254."),
            (0, 0, 80, "metadata.test."),
            (0, 0, 80, "a.test."),
        ],
    );
    server.set_a("metadata.test", 300, &["169.254.169.254"]);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let service = resolver.watch_service(NAME);
    wait_for_servers(&service, &[(0, 0, "10.0.0.1:80")]);
    wait_until("the other one is refused", || {
        resolver.snapshot().refused_total > 0
    });
    assert_eq!(servers(&service).len(), 1);
}

#[test]
fn the_search_list_holds_for_services() {
    let server = DnsServer::start();
    let found = "_http._tcp.web.shop.svc.cluster.local";
    server.set_srv(found, 300, &[(0, 0, 80, "a.test.")]);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let text = "nameserver 127.0.0.1\nsearch shop.svc.cluster.local\noptions ndots:5\n";
    std::fs::write(folder.path().join("resolv.conf"), text).unwrap();
    let resolver = with_files(&settings(&server), folder.path(), server.addr().port());
    let service = resolver.watch_service("_http._tcp.web");
    wait_for_servers(&service, &[(0, 0, "10.0.0.1:80")]);
    // The server's name is absolute.
    assert_eq!(server.queries().len(), 2);
}

#[test]
fn a_large_service_is_bounded() {
    let server = DnsServer::start();
    let list = (0..600).map(|n| (0, 0, 1000 + n, "a.test.".to_owned()));
    let answer = Scripted::Servers {
        list: list.collect(),
        ttl: 300,
    };
    server.set(NAME, RecordType::SRV, answer);
    server.set_a("a.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let service = resolver.watch_service(NAME);
    wait_until("as many as may be", || servers(&service).len() == 512);
    assert_eq!(server.count("a.test", RecordType::A), 1);
}
