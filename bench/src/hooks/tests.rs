//! Every way must do a job alike: only then are their costs comparable.

use edgewright_script::memory::MemoryRequest;

use super::interpreted::{Hooked, Interpreted};
use super::job::{Hooks, Job, Outcome, Pool};
use super::native::Native;
use super::plain::Plain;
use super::requests;
use crate::load;

fn all_ways(requests: &[MemoryRequest]) -> Vec<(&'static str, Box<dyn Hooks>)> {
    let requests = || requests.to_vec();
    let hooked = Hooked::load(Job::Auth).unwrap();
    vec![
        ("native", Box::new(Native::new(requests()))),
        (
            "edgewright",
            Box::new(Interpreted::new(hooked, requests()).unwrap()),
        ),
        ("call_fn", Box::new(Plain::new(true, requests()).unwrap())),
        ("bare", Box::new(Plain::new(false, requests()).unwrap())),
    ]
}

/// Good, unknown, missing, doubled and unreadable keys; all kinds of variants.
fn all_kinds_of_requests() -> Vec<MemoryRequest> {
    let key = load::good_key();
    let keys = [
        Some(key.as_bytes()),
        Some(&b"key-that-nobody-has"[..]),
        Some(b""),
        Some(b"caf\xe9"),
        Some("schl\u{fc}ssel".as_bytes()),
        None,
    ];
    let variants = [
        Some(&b"green"[..]),
        Some(b"blue"),
        Some(b"GREEN"),
        Some(b"gr\xe9en"),
        Some(b""),
        None,
    ];
    let mut requests = Vec::new();
    for key in keys {
        for variant in variants {
            requests.push(requests::request(key, variant));
        }
    }
    let mut spoofed = requests::request(None, None);
    spoofed.headers.insert("x-client", "root".parse().unwrap());
    requests.push(spoofed);
    let mut doubled = requests::request(Some(key.as_bytes()), Some(b"green"));
    doubled
        .headers
        .append("x-api-key", "other".parse().unwrap());
    doubled.headers.append("x-variant", "blue".parse().unwrap());
    doubled.headers.insert("x-client", "root".parse().unwrap());
    requests.push(doubled);
    requests.extend(requests::measured());
    requests
}

#[test]
fn all_ways_say_the_same_and_tell_the_upstream_the_same() {
    let requests = all_kinds_of_requests();
    let mut ways = all_ways(&requests);
    for number in 0..requests.len() {
        for job in [Job::Routing, Job::Auth] {
            // Twice: the second call finds what the first has kept and set.
            for _ in 0..2 {
                let said: Vec<_> = ways
                    .iter_mut()
                    .map(|(way, hooks)| {
                        let outcome = hooks.call(job, number);
                        let outcome = outcome.unwrap_or_else(|error| panic!("{way}: {error:#}"));
                        (outcome, hooks.client(number))
                    })
                    .collect();
                for (one, (way, _)) in said.iter().zip(&ways) {
                    assert_eq!(*one, said[0], "{way}, {job:?}, request {number}");
                }
            }
        }
    }
}

#[test]
fn the_jobs_are_really_done() {
    let good = load::good_key();
    let requests = [
        requests::request(Some(good.as_bytes()), Some(b"green")),
        requests::request(Some(b"unknown"), Some(b"blue")),
    ];
    for (way, mut hooks) in all_ways(&requests) {
        let mut call = |job, number| hooks.call(job, number).unwrap();
        assert_eq!(call(Job::Routing, 0), Outcome::Pool(Pool::Green), "{way}");
        assert_eq!(call(Job::Routing, 1), Outcome::Pool(Pool::Blue), "{way}");
        assert_eq!(call(Job::Auth, 0), Outcome::Continue, "{way}");
        let Outcome::Answer(answer) = call(Job::Auth, 1) else {
            panic!("{way}: an unknown key was let in");
        };
        assert_eq!(answer.status, 401, "{way}");
        assert_eq!(&answer.body[..], b"unknown API key\n", "{way}");
        assert_eq!(hooks.client(0), Some(load::good_client()), "{way}");
        assert_eq!(hooks.client(1), None, "{way}");
    }
}

#[test]
fn the_measured_requests_pass_every_gate() {
    for job in [Job::Auth, Job::Networks, Job::Pattern] {
        let hooked = Hooked::load(job).unwrap();
        let mut hooks = Interpreted::new(hooked, requests::measured()).unwrap();
        for number in 0..requests::COUNT {
            assert_eq!(hooks.call(job, number).unwrap(), Outcome::Continue);
        }
    }
}

#[test]
fn the_other_gates_can_refuse() {
    let mut request = requests::request(None, None);
    request.client_ip = "192.0.2.1".parse().unwrap();
    request.path = "/api/items/7".to_owned();
    for (job, status) in [(Job::Networks, 403), (Job::Pattern, 404)] {
        let hooked = Hooked::load(job).unwrap();
        let mut hooks = Interpreted::new(hooked, vec![request.clone()]).unwrap();
        let Outcome::Answer(answer) = hooks.call(job, 0).unwrap() else {
            panic!("{job:?} let the request in");
        };
        assert_eq!(answer.status, status);
    }
}
