//! The search list of resolv.conf.

use super::*;

/// A resolver in a folder with this resolv.conf, with `server` behind 127.0.0.1.
fn searching(server: &DnsServer, lines: &str) -> (tempfile::TempDir, Resolver) {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("nameserver 127.0.0.1\n{lines}\n");
    std::fs::write(folder.path().join("resolv.conf"), text).unwrap();
    let resolver = with_files(&settings(server), folder.path(), server.addr().port());
    (folder, resolver)
}

const POD: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5";

#[test]
fn a_short_name_is_found_through_the_list() {
    let server = DnsServer::start();
    server.set_a("web.other.svc.cluster.local", 300, &["10.0.0.1"]);
    let (_folder, resolver) = searching(&server, POD);
    let web = resolver.watch("web.other");
    wait_for(&web, &["10.0.0.1"]);
    let asked: Vec<String> = server.queries().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        asked,
        [
            "web.other.shop.svc.cluster.local",
            "web.other.svc.cluster.local"
        ]
    );
}

#[test]
fn a_complete_name_costs_one_query() {
    let server = DnsServer::start();
    server.set_a("web.shop.svc.cluster.local", 300, &["10.0.0.1"]);
    server.set_a("api.example.com", 300, &["10.0.0.2"]);
    let (_folder, resolver) = searching(&server, POD);
    let web = resolver.watch("web.shop.svc.cluster.local");
    wait_for(&web, &["10.0.0.1"]);
    let api = resolver.watch("api.example.com.");
    wait_for(&api, &["10.0.0.2"]);
    assert_eq!(server.queries().len(), 2);
}

#[test]
fn a_failing_candidate_followed_by_a_missing_one_is_no_false_nxdomain() {
    let server = DnsServer::start();
    let right = "web.shop.svc.cluster.local";
    server.set_a(right, 0, &["10.0.0.1"]);
    let (_folder, resolver) = searching(&server, POD);
    let web = resolver.watch("web");
    wait_for(&web, &["10.0.0.1"]);
    let changes = Changes::of(&web);

    for failure in [Scripted::ServFail, Scripted::Silence] {
        server.set(right, RecordType::A, failure);
        let start = Instant::now();
        let hold = settings(&server).hold_empty;
        wait_until("long after hold_empty", || start.elapsed() > 2 * hold);
        wait_for_queries(&server, right, RecordType::A, 2);
        assert_eq!(changes.count(), 0);
    }
    // The candidates behind it were never asked.
    let others = server.queries();
    assert!(others.iter().all(|(name, _)| name == right), "{others:?}");
}

#[test]
fn families_of_different_candidates_are_not_mixed() {
    let server = DnsServer::start();
    server.set_a("web.shop.svc.cluster.local", 0, &["10.0.0.1"]);
    // What a wildcard record of an outer domain would give.
    server.set(
        "web.cluster.local",
        RecordType::AAAA,
        records(&["fd00::bad"], 0),
    );
    let folder = tempfile::tempdir().unwrap();
    let text = format!("nameserver 127.0.0.1\n{POD}\n");
    std::fs::write(folder.path().join("resolv.conf"), text).unwrap();
    let environment = Environment {
        resolv_conf: folder.path().join("resolv.conf"),
        port: server.addr().port(),
        has_ipv6: || true,
        ..environment()
    };
    let config = Dns {
        servers: Vec::new(),
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment).unwrap();
    let web = resolver.watch("web");
    wait_for_queries(&server, "web.shop.svc.cluster.local", RecordType::AAAA, 4);
    wait_for(&web, &["10.0.0.1"]);
    // Once A is known to be at the first candidate, AAAA isn't looked for behind it.
    let beyond = server.count("web.cluster.local", RecordType::AAAA);
    wait_for_queries(&server, "web.shop.svc.cluster.local", RecordType::AAAA, 4);
    assert!(server.count("web.cluster.local", RecordType::AAAA) <= beyond + 1);
}
