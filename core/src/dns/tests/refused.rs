//! Answers that lead where nobody should be led.

use super::*;

#[test]
fn metadata_and_link_local_addresses_are_not_used() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["169.254.169.254", "10.0.0.1", "0.0.0.0"]);
    let resolver = resolver(&server);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    let name = status(&resolver, "web.test");
    assert_eq!(name.refused, ips(&["0.0.0.0", "169.254.169.254"]));
    assert!(name.refused_total >= 2);
    assert!(resolver.snapshot().refused_total >= 2);

    // And what has led elsewhere before can't be turned round.
    server.set_a("web.test", 0, &["169.254.169.254"]);
    wait_until("empty", || web.state() == State::Empty);
    server.set_a("web.test", 0, &["10.0.0.2"]);
    wait_for(&web, &["10.0.0.2"]);
    assert!(status(&resolver, "web.test").refused.is_empty());
}

#[test]
fn they_are_used_where_they_are_allowed() {
    let server = DnsServer::start();
    server.set_a("web.test", 0, &["169.254.1.7", "169.254.169.254"]);
    let config = Dns {
        allow: vec!["169.254.1.0/24".parse().unwrap()],
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let web = resolver.watch("web.test");
    wait_for(&web, &["169.254.1.7"]);
    // As soon as it is said otherwise.
    resolver.configure(&settings(&server));
    wait_until("nothing is left", || web.state() == State::Empty);
}

#[test]
fn ipv6_forms_are_seen_through() {
    let server = DnsServer::start();
    let answer = records(
        &["fe80::1", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "fd00::1"],
        0,
    );
    server.set("web.test", RecordType::AAAA, answer);
    let resolver = dual_stack(&settings(&server));
    let web = resolver.watch("web.test");
    wait_for(&web, &["fd00::1"]);
    assert_eq!(status(&resolver, "web.test").refused.len(), 3);
}

#[test]
fn the_hosts_file_may_say_so() {
    let server = DnsServer::start();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("hosts"),
        "169.254.169.254 metadata.test\n",
    )
    .unwrap();
    let resolver = with_files(&settings(&server), folder.path(), server.addr().port());
    let name = resolver.watch("metadata.test");
    wait_for(&name, &["169.254.169.254"]);
}
