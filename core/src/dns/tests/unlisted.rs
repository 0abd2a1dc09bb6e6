//! Names that a program makes up while it runs.

use super::*;
use crate::metrics::DnsSample;
use std::sync::Mutex;

/// The failures that a listener was told of.
#[derive(Default)]
struct Failures(Mutex<usize>);

impl Listener for Failures {
    fn answer_changed(&self) {}

    fn lookup_failed(&self) {
        *self.0.lock().unwrap() += 1;
    }
}

#[test]
fn they_have_no_series_until_the_configuration_has_the_name() {
    let server = DnsServer::start();
    server.set_a("web.test", 300, &["10.0.0.1"]);
    let resolver = resolver(&server);
    let made_up = resolver.watch_unlisted("web.test");
    wait_for(&made_up, &["10.0.0.1"]);
    let sample = || DnsSample::from(resolver.snapshot());
    assert!(sample().hosts.is_empty() && sample().lookups.is_empty());
    assert_eq!(status(&resolver, "web.test").state, State::Resolved);

    let configured = resolver.watch("web.test");
    assert!(Arc::ptr_eq(&made_up, &configured));
    assert_eq!(sample().hosts.len(), 1);
    assert_eq!(server.queries().len(), 1);
}

#[test]
fn they_do_not_hold_up_configured_names() {
    let server = DnsServer::start();
    let config = Dns {
        timeout: 4 * LIMIT,
        ..settings(&server)
    };
    let resolver = Resolver::start_in(&config, environment()).unwrap();
    let names: Vec<_> = (0..200).map(|number| format!("n{number}.test")).collect();
    for name in &names {
        server.set(name, RecordType::A, Scripted::Silence);
    }
    let _made_up: Vec<_> = names
        .iter()
        .map(|name| resolver.watch_unlisted(name))
        .collect();
    wait_until("as many as may be are asked for", || {
        server.queries().len() == 128
    });
    server.set_a("web.test", 300, &["10.0.0.1"]);
    wait_for(&resolver.watch("web.test"), &["10.0.0.1"]);
    assert_eq!(server.queries().len(), 129);
}

#[test]
fn a_failure_is_told_once_both_record_types_were_tried() {
    let server = DnsServer::start();
    server.set("web.test", RecordType::A, Scripted::ServFail);
    server.set("web.test", RecordType::AAAA, Scripted::Silence);
    let config = Dns {
        timeout: 4 * LIMIT,
        ..settings(&server)
    };
    let resolver = dual_stack(&config);
    let web = resolver.watch_unlisted("web.test");
    let failures = Arc::new(Failures::default());
    let listener: Arc<dyn Listener> = failures.clone();
    web.subscribe(Arc::downgrade(&listener));
    wait_for_queries(&server, "web.test", RecordType::A, 3);
    // AAAA may still bring an address.
    assert_eq!(web.failure(), None);
    assert_eq!(*failures.0.lock().unwrap(), 0);

    server.set("other.test", RecordType::A, Scripted::ServFail);
    server.set("other.test", RecordType::AAAA, Scripted::Refused);
    let other = resolver.watch_unlisted("other.test");
    other.subscribe(Arc::downgrade(&listener));
    wait_until("the failure is told", || *failures.0.lock().unwrap() > 0);
    let reason = other.failure().unwrap();
    assert!(
        reason.contains("SERVFAIL") || reason.contains("REFUSED"),
        "{reason}"
    );

    server.set_a("other.test", 300, &["10.0.0.1"]);
    wait_for(&other, &["10.0.0.1"]);
    assert_eq!(other.failure(), None);
}
