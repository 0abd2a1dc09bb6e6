//! One task for each name, however many use it.

use super::*;
use crate::metrics::DnsSample;

#[test]
fn the_same_name_is_asked_once() {
    let server = DnsServer::start();
    server.set_a("web.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let one = resolver.watch("web.test");
    let two = resolver.clone().watch("WEB.test");
    assert!(Arc::ptr_eq(&one, &two));
    wait_for(&one, &["10.0.0.1"]);
    assert_eq!(server.queries().len(), 1);
}

#[test]
fn a_name_without_users_is_forgotten() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    server.set_a("other.test", 0, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let one = resolver.watch("web.test");
    let two = resolver.watch("web.test");
    let _other = resolver.watch("other.test");
    wait_for_queries(&server, "web.test", RecordType::A, 2);
    drop(one);
    wait_for_queries(&server, "web.test", RecordType::A, 2);
    drop(two);
    let names: Vec<_> = resolver
        .snapshot()
        .names
        .into_iter()
        .map(|n| n.name)
        .collect();
    assert_eq!(names, ["other.test"]);
    // At most the lookup under way when it was dropped still arrives.
    let last = server.count("web.test", RecordType::A);
    wait_for_queries(&server, "other.test", RecordType::A, 10);
    assert!(server.count("web.test", RecordType::A) <= last + 1);

    // And it can be used anew.
    let again = resolver.watch("web.test");
    wait_for(&again, &["10.0.0.1"]);
}

#[test]
fn many_names_at_once_are_all_resolved() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let names: Vec<_> = (0..2000).map(|n| format!("n{n}.test")).collect();
    for name in &names {
        server.set_a(name, 300, &["10.0.0.1"]);
    }
    let watched: Vec<_> = names.iter().map(|name| resolver.watch(name)).collect();
    wait_until("all are resolved", || {
        watched.iter().all(|name| name.state() == State::Resolved)
    });
}

#[test]
fn the_snapshot_tells_what_happened() {
    let server = DnsServer::start();
    server.set_a("web.test", 7, &["10.0.0.2", "10.0.0.1"]);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1", "10.0.0.2"]);
    let snapshot = resolver.snapshot();
    let json = serde_json::to_value(&snapshot).unwrap();
    let name = &json["names"][0];
    assert_eq!(name["name"], "web.test");
    assert_eq!(name["state"], "resolved");
    assert_eq!(
        name["addresses"],
        serde_json::json!(["10.0.0.1", "10.0.0.2"])
    );
    assert_eq!(name["stale"], false);
    assert_eq!(name["ttl_seconds"], 7);
    assert!(name["last_success"].as_f64().unwrap() > 1.6e9);
    let lookups = serde_json::json!([{"record_type": "A", "result": "records", "count": 1}]);
    assert_eq!(name["lookups"], lookups);

    let sample = DnsSample::from(snapshot);
    assert_eq!(sample.hosts[0].addresses, 2);
    assert_eq!(sample.lookups[0].result, "records");
    assert_eq!(sample.lookups[0].total, 1);
    assert_eq!(sample.duration.unwrap().count, 1);
}

#[test]
fn everything_ends_with_the_last_handle() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["10.0.0.1"]);
    server.set_a("other.test", 0, &["10.0.0.1"]);
    let ending = resolver(&server);
    let web = ending.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    drop(ending);
    let last = server.count("web.test", RecordType::A);

    let other = resolver(&server);
    let _other = other.watch("other.test");
    wait_for_queries(&server, "other.test", RecordType::A, 10);
    // At most the lookup under way when the resolver ended still arrives.
    assert!(server.count("web.test", RecordType::A) <= last + 1);
    // The answer stays readable, and dropping it is fine.
    assert_eq!(web.state(), State::Resolved);
    drop(web);
}
