//! Where answers come from: configuration, resolv.conf, the hosts file, and names that need none.

use super::*;

#[test]
fn a_missing_resolv_conf_stops_nothing_and_is_read_when_it_appears() {
    let server = DnsServer::start();
    server.set_a("web.test", 300, &["10.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let resolver = with_files(&settings(&server), folder.path(), server.addr().port());
    let web = resolver.watch("web.test");
    wait_until("the error is reported", || {
        status(&resolver, "web.test").last_error.is_some()
    });
    assert_eq!(web.state(), State::Unresolved);
    assert!(resolver.snapshot().error.unwrap().contains("resolv.conf"));

    std::fs::write(folder.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
    wait_for(&web, &["10.0.0.1"]);
    let snapshot = resolver.snapshot();
    assert_eq!(snapshot.servers, [server.addr()]);
    assert_eq!(snapshot.error, None);
}

#[test]
fn a_changed_resolv_conf_is_followed_and_a_broken_one_is_not() {
    let server = DnsServer::start();
    server.set_a("web.a.test", 300, &["10.0.0.1"]);
    server.set_a("web.b.test", 300, &["10.0.0.2"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resolv.conf");
    std::fs::write(&file, "nameserver 127.0.0.1\nsearch a.test\n").unwrap();
    let resolver = with_files(&settings(&server), folder.path(), server.addr().port());
    let web = resolver.watch("web");
    wait_for(&web, &["10.0.0.1"]);

    // The TTL of 300 s isn't waited for.
    std::fs::write(&file, "nameserver 127.0.0.1\nsearch b.test\n").unwrap();
    wait_for(&web, &["10.0.0.2"]);

    // While it is being rewritten: the old servers and the old list stay.
    std::fs::write(&file, "").unwrap();
    std::fs::write(folder.path().join("hosts"), "10.0.0.9 marker\n").unwrap();
    let marker = resolver.watch("marker");
    wait_for(&marker, &["10.0.0.9"]);
    assert_eq!(resolver.snapshot().servers, [server.addr()]);
    server.set_a("other.b.test", 300, &["10.0.0.3"]);
    let other = resolver.watch("other");
    wait_for(&other, &["10.0.0.3"]);
}

#[test]
fn new_settings_are_followed() {
    let first = DnsServer::start();
    let second = DnsServer::start();
    first.set_a("web.test", 300, &["10.0.0.1"]);
    second.set_a("web.test", 300, &["10.0.0.2"]);
    let resolver = resolver(&first);
    let web = resolver.watch("web.test");
    wait_for(&web, &["10.0.0.1"]);
    resolver.configure(&settings(&second));
    wait_for(&web, &["10.0.0.2"]);
    assert_eq!(resolver.snapshot().servers, [second.addr()]);
}

#[test]
fn the_hosts_file_comes_before_dns_and_is_read_again() {
    let server = DnsServer::start();
    server.set_a("db.test", 300, &["10.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(folder.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
    std::fs::write(&hosts, "# docker writes this\n172.17.0.5\tmy_db DB.test\n").unwrap();
    let resolver = with_files(&settings(&server), folder.path(), server.addr().port());
    let by_alias = resolver.watch("my_db");
    wait_for(&by_alias, &["172.17.0.5"]);
    let db = resolver.watch("db.test");
    wait_for(&db, &["172.17.0.5"]);
    assert!(server.queries().is_empty());

    std::fs::write(&hosts, "172.17.0.6 db.test\nfd00::6 db.test\n").unwrap();
    wait_for(&db, &["172.17.0.6", "fd00::6"]);
    std::fs::write(&hosts, "").unwrap();
    wait_for(&db, &["10.0.0.1"]);
}

#[test]
fn localhost_never_reaches_dns() {
    let server = DnsServer::start();
    server.set_a("localhost", 300, &["10.0.0.1"]);
    let resolver = dual_stack(&settings(&server));
    for name in ["localhost", "LOCALHOST.", "app.localhost"] {
        let watched = resolver.watch(name);
        wait_for(&watched, &["127.0.0.1"]);
    }
    assert!(server.queries().is_empty());
}

#[test]
fn localhost_of_both_families_means_ipv4() {
    let server = DnsServer::start();
    let folder = tempfile::tempdir().unwrap();
    let hosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n";
    std::fs::write(folder.path().join("hosts"), hosts).unwrap();
    let resolver = with_files(&settings(&server), folder.path(), server.addr().port());
    let localhost = resolver.watch("localhost");
    wait_for(&localhost, &["127.0.0.1"]);
    let six = resolver.watch("ip6-localhost");
    wait_for(&six, &["::1"]);
}

#[test]
fn addresses_never_reach_dns() {
    let server = DnsServer::start();
    let resolver = dual_stack(&settings(&server));
    let four = resolver.watch("10.1.2.3");
    let six = resolver.watch("fd00::3");
    assert_eq!(four.state(), State::Resolved);
    assert_eq!(four.answer().addresses[..], ips(&["10.1.2.3"])[..]);
    assert_eq!(six.answer().addresses[..], ips(&["fd00::3"])[..]);
    assert_eq!(resolver.watch("0.0.0.0").state(), State::Empty);
    assert!(server.queries().is_empty());
}

#[test]
fn what_cannot_be_a_name_is_reported() {
    let server = DnsServer::start();
    let resolver = resolver(&server);
    let _bad = resolver.watch("a..b");
    wait_until("an error is reported", || {
        let error = status(&resolver, "a..b").last_error;
        error.is_some_and(|error| error.contains("can't be a domain name"))
    });
    assert!(server.queries().is_empty());
}
