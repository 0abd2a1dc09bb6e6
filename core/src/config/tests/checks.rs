#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::{errors, parse};

#[test]
fn addresses_are_checked() {
    for (text, expected) in [
        ("[[listeners]]\n", "1:1: the listener has no `address`"),
        (
            "[[listeners]]\naddress = \"localhost:80\"",
            "2:11: \"localhost:80\" is no address (write IP:port, such as \"127.0.0.1:8080\")",
        ),
        (
            "[[listeners]]\naddress = \"::1\"",
            "2:11: \"::1\" is no address (write IP:port, such as \"[::1]:8080\")",
        ),
        (
            "[[listeners]]\naddress = \"127.0.0.1:0\"",
            "2:11: the port can't be 0: nobody would know it",
        ),
        (
            "[[listeners]]\naddress = \"127.0.0.1:80\"\n[[listeners]]\naddress = \"127.0.0.1:80\"",
            "4:11: 127.0.0.1:80 is taken: a listener has 127.0.0.1:80",
        ),
        (
            "[[listeners]]\naddress = \"0.0.0.0:80\"\n[[listeners]]\naddress = \"127.0.0.1:80\"",
            "4:11: 127.0.0.1:80 is taken: a listener has 0.0.0.0:80",
        ),
        (
            "[admin]\naddress = \"127.0.0.1:8080\"\n[[listeners]]\naddress = \"0.0.0.0:8080\"",
            "2:11: 127.0.0.1:8080 is taken: a listener has 0.0.0.0:8080",
        ),
        (
            "[health]\naddress = \"127.0.0.1:9180\"",
            "2:11: 127.0.0.1:9180 is taken: [admin] has 127.0.0.1:9180",
        ),
        (
            "[admin]\naddress = \"none\"",
            "2:11: \"none\" is no address",
        ),
    ] {
        assert!(errors(text).starts_with(expected), "{}", errors(text));
    }
    assert_eq!(
        errors("[[listeners]]\naddress = \"127.0.0.1:9181\""),
        "[health]: 127.0.0.1:9181 is taken: a listener has 127.0.0.1:9181 \
         (127.0.0.1:9181 is the default: give [health] another `address`, or \"off\")"
    );
    for fine in [
        "[[listeners]]\naddress = \"127.0.0.1:80\"\n[[listeners]]\naddress = \"127.0.0.2:80\"",
        "[[listeners]]\naddress = \"0.0.0.0:80\"\n[[listeners]]\naddress = \"[::]:80\"",
        "[admin]\naddress = \"127.0.0.1:0\"\n[health]\naddress = \"127.0.0.1:0\"",
        "[admin]\naddress = \"off\"\n[[listeners]]\naddress = \"127.0.0.1:9180\"",
    ] {
        parse(fine).unwrap();
    }
}

#[test]
fn pools_are_checked() {
    for (text, expected) in [
        (
            "[pools.web]\n",
            "1:8: pool `web` has no targets (write targets = [\"host:port\"])",
        ),
        (
            "[pools.web]\ntargets = []",
            "2:11: pool `web` has no targets",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\", \"b\"]",
            "2:19: `b` has no port: write \"b:8080\"",
        ),
        (
            "[pools.web]\ntargets = [\"srv:a:80\"]",
            "2:12: `srv:a:80` is no service: write \"srv:NAME\"",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\", \"a:1\"]",
            "2:19: `a:1` is listed twice",
        ),
        (
            "[pools.web]\ntargets = \"a:1\"",
            "2:11: invalid type: string \"a:1\", expected a sequence",
        ),
        (
            "[pools.\"\"]\ntargets = [\"a:1\"]",
            "1:8: a pool's name can't be empty",
        ),
        (
            "[pools.\"a b\"]\ntargets = [\"a:1\"]",
            "1:8: ' ' can't stand in a pool's name",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\ntimeouts.connect = \"0s\"",
            "3:20: `pools.web.timeouts.connect` must be between 1ms and 7days, not 0s",
        ),
    ] {
        assert!(errors(text).starts_with(expected), "{}", errors(text));
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text =
        "[server]\nthreads = 0\n[pools.web]\ntargets = [\"a\", \"b\"]\n[limits]\nuri = \"1B\"";
    let errors = errors(text);
    let starts: Vec<_> = errors
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(starts, ["2:11", "4:12", "4:17", "6:7"]);
}

#[test]
fn a_long_min_ttl_raises_the_default_max_ttl() {
    let dns = parse("[dns]\nmin_ttl = \"10m\"").unwrap().dns;
    assert_eq!(dns.max_ttl, Duration::from_secs(600));
}
