#![allow(clippy::unwrap_used)]

use std::time::Duration;

use edgewright_script::{path::Handling, program::HashOn};
use proptest::prelude::*;

use super::parse;
use crate::config::*;

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(parse("").unwrap(), Config::default());
    let tables = "[server]\n[server.shutdown]\n[pools]\n[dns]\n[limits]\n[script]\n[path]\n\
                  [admin]\n[health]\n[files]\n[log]\n[trusted_proxies]\n";
    assert_eq!(parse(tables).unwrap(), Config::default());
}

const EVERY_KEY: &str = r#"
routes = "edge.rhai"

[server]
threads = 3
upstream_keepalive = 500
forwarded_headers = false
zone = "eu-1b"
upgrade_socket = "/run/edge/upgrade.sock"
[server.shutdown]
delay = "5s"
drain = "0s"

[[listeners]]
address = "0.0.0.0:80"
[[listeners]]
address = "[::]:80"
http2 = true
proxy_protocol = true

[pools.web]
targets = ["web.default.svc:8080", { target = "10.0.0.1:81", weight = 3, backup = true, zone = "eu-1a" }, "unix:/run/web.sock"]
balance = "round_robin"
slow_start = "30s"
protocol = "http2"
proxy_protocol = "v2"
[pools.web.connections]
max_age = "5m"
max_requests = 1000
streams = 50
[pools.web.timeouts]
connect = "200ms"
read = "1m"
write = "2s"
idle = "3s"
tunnel = "2h"
[pools."api-2.x_y"]
targets = ["api:1"]
balance = "ring_hash"
hash_on = "header x-tenant"
load_bound = 1.25

[dns]
servers = ["127.0.0.1:5353"]
timeout = "1s"
attempts = 3
min_ttl = "500ms"
max_ttl = "1m"
hold_empty = "0s"
startup_timeout = "0s"
allow = ["169.254.1.0/24", "fd00:ec2::1"]

[limits]
request_header = "16KiB"
request_headers = 50
uri = "4KiB"
request_body = "1MiB"
keepalive_requests = 7
connections = 77
keepalive_timeout = "1m 1s"
request_read_timeout = "4s"
response_write_timeout = "5s"
tls_handshake_timeout = "6s"
password_checks = 7
mirrors = 9

[script]
operations = 1000
time = "5ms"
memory = "1MiB"
call_depth = 8
string = "1KiB"
items = 10
body = "2KiB"
bodies = "3MiB"
fetches = 3
fetch_timeout = "700ms"
fetch_body = "4KiB"
waiting = 20
waiting_memory = "8MiB"
compile = false

[path]
empty_segment = "keep"
encoded_slash = "keep"
encoded_backslash = "keep"
encoded_nul = "keep"
backslash = "keep"
double_encoding = "keep"
semicolon = "keep"

[admin]
address = "off"
[health]
address = "0.0.0.0:0"

[files]
allow = ["/var/run/secrets/edge"]

[log]
level = "debug"
format = "json"

[trusted_proxies]
cidrs = ["10.0.0.0/8", "fd00::/8", "192.0.2.1"]
"#;

#[test]
fn every_key_reaches_the_model() {
    let seconds = Duration::from_secs;
    let millis = Duration::from_millis;
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let target = |text: &str| text.parse::<Target>().unwrap();
    let web = PoolConfig {
        targets: vec![
            target("web.default.svc:8080").into(),
            PoolTarget {
                target: target("10.0.0.1:81"),
                traits: TargetTraits {
                    weight: 3,
                    backup: true,
                    zone: Some("eu-1a".into()),
                },
            },
            target("unix:/run/web.sock").into(),
        ],
        balance: Balance::RoundRobin,
        slow_start: Some(seconds(30)),
        own_zone: Some("eu-1b".into()),
        timeouts: Timeouts {
            connect: millis(200),
            read: seconds(60),
            write: seconds(2),
            idle: seconds(3),
            tunnel: seconds(7200),
            ..Timeouts::default()
        },
        protocol: Protocol::Http2,
        proxy_protocol: Some(ProxyProtocol::V2),
        connections: Connections {
            max_age: Some(seconds(300)),
            max_requests: Some(1000),
            streams: 50,
        },
        tls: None,
        ..PoolConfig::new(Vec::new())
    };
    let api = PoolConfig {
        balance: Balance::RingHash,
        hash_on: Some(HashOn::Header("x-tenant".to_owned())),
        load_bound: Some(LoadBound::from_hundredths(125)),
        own_zone: Some("eu-1b".into()),
        ..PoolConfig::new(vec![target("api:1")])
    };
    let expected = Config {
        file: None,
        routes: "edge.rhai".to_string(),
        server: Server {
            threads: Threads::Count(3),
            shutdown: Shutdown {
                delay: seconds(5),
                drain: Duration::ZERO,
            },
            upstream_keepalive: Some(500),
            forwarded_headers: false,
            zone: Some("eu-1b".to_owned()),
            upgrade_socket: Some("/run/edge/upgrade.sock".into()),
        },
        listeners: ["0.0.0.0:80", "[::]:80"]
            .map(|text| Listener {
                http2: text.starts_with('['),
                proxy_protocol: text.starts_with('['),
                ..Listener::plain(address(text))
            })
            .to_vec(),
        pools: BTreeMap::from([("web".to_string(), web), ("api-2.x_y".to_string(), api)]),
        dns: Dns {
            servers: vec![address("127.0.0.1:5353")],
            timeout: seconds(1),
            attempts: 3,
            min_ttl: millis(500),
            max_ttl: seconds(60),
            hold_empty: Duration::ZERO,
            startup_timeout: Duration::ZERO,
            allow: vec![
                "169.254.1.0/24".parse().unwrap(),
                "fd00:ec2::1/128".parse().unwrap(),
            ],
        },
        limits: Limits {
            request_header: 16 * 1024,
            request_headers: 50,
            uri: 4096,
            request_body: Some(1 << 20),
            keepalive_requests: 7,
            connections: Some(77),
            keepalive_timeout: seconds(61),
            request_read_timeout: seconds(4),
            response_write_timeout: seconds(5),
            tls_handshake_timeout: seconds(6),
            password_checks: 7,
            mirrors: 9,
        },
        script: ScriptLimits {
            operations: 1000,
            time: millis(5),
            memory: 1024 * 1024,
            call_depth: 8,
            string: 1024,
            items: 10,
            body: 2048,
            bodies: 3 * 1024 * 1024,
            fetches: 3,
            fetch_timeout: millis(700),
            fetch_body: 4096,
            waiting: 20,
            waiting_memory: 8 * 1024 * 1024,
            compile: false,
        },
        path: PathPolicy {
            empty_segment: Handling::Keep,
            encoded_slash: Handling::Keep,
            encoded_backslash: Handling::Keep,
            encoded_nul: Handling::Keep,
            backslash: Handling::Keep,
            double_encoding: Handling::Keep,
            semicolon: Handling::Keep,
        },
        admin: None,
        health: Some(address("0.0.0.0:0")),
        files: FilesConfig {
            allow: vec!["/var/run/secrets/edge".into()],
        },
        log: Log {
            level: Level::Debug,
            format: Format::Json,
        },
        trusted_proxies: ["10.0.0.0/8", "fd00::/8", "192.0.2.1/32"]
            .map(|text| text.parse().unwrap())
            .to_vec(),
    };
    assert_eq!(parse(EVERY_KEY).unwrap(), expected);
}

#[test]
fn words_for_the_default_give_the_default() {
    let text = "[server]\nthreads = \"auto\"\nupstream_keepalive = \"auto\"\n\
                [limits]\nrequest_body = \"none\"\n[path]\nsemicolon = \"reject\"\n\
                [log]\nlevel = \"info\"\nformat = \"text\"\n";
    assert_eq!(parse(text).unwrap(), Config::default());
}

#[test]
fn one_key_of_a_path_policy_changes_only_itself() {
    for (key, kept) in [
        (
            "empty_segment",
            (|p| p.empty_segment) as fn(PathPolicy) -> Handling,
        ),
        ("encoded_slash", |p| p.encoded_slash),
        ("encoded_backslash", |p| p.encoded_backslash),
        ("encoded_nul", |p| p.encoded_nul),
        ("backslash", |p| p.backslash),
        ("double_encoding", |p| p.double_encoding),
        ("semicolon", |p| p.semicolon),
    ] {
        let policy = parse(&format!("[path]\n{key} = \"keep\"")).unwrap().path;
        assert_eq!(kept(policy), Handling::Keep, "{key}");
        let debug = format!("{policy:?}");
        assert_eq!(debug.matches("Keep").count(), 1, "{debug}");
    }
}

proptest! {
    #[test]
    fn any_text_gives_a_configuration_or_places(text in "[a-z.=\"\\[\\]0-9 \n#é{}:']{0,80}") {
        if let Err(errors) = parse(&text) {
            prop_assert!(!errors.is_empty());
        }
    }

    #[test]
    fn any_value_at_any_key_is_taken_or_refused(
        key in prop::sample::select(
            EVERY_KEY.lines().filter(|line| line.contains(" = ")).collect::<Vec<_>>()
        ),
        value in prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            "[0-9]{1,20}(s|ms|B|KiB|EiB|days|years)?".prop_map(|text| format!("{text:?}")),
            "[a-z0-9:./-]{0,20}".prop_map(|text| format!("{text:?}")),
        ],
    ) {
        let (name, _) = key.split_once(" = ").unwrap();
        let text = EVERY_KEY.replacen(key, &format!("{name} = {value}"), 1);
        if let Err(errors) = parse(&text) {
            prop_assert!(errors.contains("edgewright.toml:"), "{errors}");
        }
    }
}
