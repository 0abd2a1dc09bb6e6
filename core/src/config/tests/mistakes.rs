//! What is said about values that can't be.

use super::errors;

/// Each wrong text with its whole error.
#[test]
fn mistakes_have_a_place_and_a_way_out() {
    for (text, expected) in [
        (
            "[server]\nthread = 2",
            "2:1: unknown key `thread` (did you mean `threads`?)",
        ),
        (
            "[server.shutdwon]\ndelay = \"1s\"",
            "1:9: unknown key `shutdwon` (did you mean `shutdown`?)",
        ),
        (
            "[listener]\n",
            "1:2: unknown key `listener` (did you mean `listeners`?)",
        ),
        (
            "[[listeners]]\naddress = \"0.0.0.0:1\"\n[listeners.ssl]\n",
            "3:12: unknown key `ssl` (the keys here are `address`, `http2`, `proxy_protocol`, `tls`)",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\n[pools.web.helth]\npath = \"/\"",
            "3:12: unknown key `helth` (did you mean `health`?)",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nbalance = \"any\"",
            "3:11: unknown value `any` (it can be `least_requests`, `peak_ewma`, `round_robin`, `random`, `hash`, `ring_hash`)",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nbalance = \"least_request\"",
            "3:11: unknown value `least_request` (did you mean `least_requests`?)",
        ),
        (
            "[pools.web]\ntargets = [{ target = \"a:1\", weight = 1001 }]",
            "2:39: `weight` must be between 0 and 1000, not 1001",
        ),
        (
            "[pools.web]\ntargets = [{ target = \"a:1\", wieght = 1 }]",
            "2:30: unknown key `wieght` (did you mean `weight`?)",
        ),
        (
            "[pools.web]\ntargets = [{ target = \"a:1\", zone = \"a b\" }]",
            "2:37: `a b` is no name of a zone: it has 1 to 63 letters, digits, `-`, `_` and `.`",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\", { target = \"a:1\" }]",
            "2:30: `a:1` is listed twice",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nbalance = \"hash\"",
            "1:8: the pool `web` balances by a hash, and `hash_on` doesn't say of what",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nbalance = \"hash\"\nhash_on = \"heder a\"",
            "4:11: `heder a` can't be hashed on (did you mean `header`?); write \"client_ip\", \"header NAME\", \"cookie NAME\", \"query NAME\" or \"path\", or \"script\"",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nhash_on = \"path\"",
            "3:11: `hash_on` does nothing: `balance` is neither \"hash\" nor \"ring_hash\"",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nload_bound = 2",
            "3:14: `load_bound` does nothing: `balance` is neither \"hash\" nor \"ring_hash\"",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nbalance = \"hash\"\nhash_on = \"script\"\nload_bound = 0.9",
            "5:14: `load_bound` must be between 1 and 100, not 0.9",
        ),
        (
            "[pools.web]\ntargets = [\"a:1\"]\nbalance = \"hash\"\nhash_on = \"script\"\nslow_start = \"1s\"",
            "5:14: `slow_start` has no place beside a hash: keys would go there and back until its end",
        ),
        (
            "[server]\nupgrade_socket = \"upgrade.sock\"",
            "2:18: `server.upgrade_socket` must be an absolute path of at most 107 bytes",
        ),
        (
            "[server]\nzone = \"\"",
            "2:8: `` is no name of a zone: it has 1 to 63 letters, digits, `-`, `_` and `.`",
        ),
        (
            "[path]\nsemicolon = \"allow\"",
            "2:13: unknown value `allow` (it can be `reject`, `keep`)",
        ),
        (
            "[log]\nlevel = \"warning\"",
            "2:9: unknown value `warning` (did you mean `warn`?)",
        ),
        (
            "server = 5",
            "1:10: invalid type: integer `5`, expected a table",
        ),
        (
            "[server]\nforwarded_headers = \"yes\"",
            "2:21: invalid type: string \"yes\", expected a boolean",
        ),
        (
            "[server]\nthreads = true",
            "2:11: invalid type: boolean `true`, expected \"auto\" or a number",
        ),
        (
            "[server]\nthreads = \"4\"",
            "2:11: a number stands without quotes: write 4, or \"auto\"",
        ),
        (
            "[server]\nthreads = 0",
            "2:11: `server.threads` must be between 1 and 1024, not 0",
        ),
        (
            "[server]\nthreads = -1",
            "2:11: -1 can't be: the number is 0 or more",
        ),
        (
            "[server]\nupstream_keepalive = 0",
            "2:22: `server.upstream_keepalive` must be between 1 and 1000000, not 0",
        ),
        (
            "[server.shutdown]\ndrain = 25",
            "2:9: a time needs a unit: write \"25s\" or \"25ms\"",
        ),
        (
            "[server.shutdown]\ndrain = \"1week 1s\"",
            "2:9: `server.shutdown.drain` must be between 0s and 7days, not 7days 1s",
        ),
        (
            "[limits]\nuri = 8192",
            "2:7: a size needs a unit: write \"8192B\" or \"8192KiB\"",
        ),
        (
            "[limits]\nuri = \"8 potatoes\"",
            "2:7: \"8 potatoes\" is no size: write \"512B\", \"64KiB\" or \"1MiB\"",
        ),
        (
            "[limits]\nuri = \"64KiB\"",
            "2:7: `limits.uri` must be between 16B and 63KiB, not 64KiB",
        ),
        (
            "[limits]\nrequest_headers = 257",
            "2:19: `limits.request_headers` must be between 1 and 256, not 257",
        ),
        (
            "[limits]\nkeepalive_requests = 4294967296",
            "2:22: `limits.keepalive_requests` must be between 1 and 4294967295, not 4294967296",
        ),
        (
            "[limits]\nkeepalive_timeout = \"1500ms\"",
            "2:21: `limits.keepalive_timeout` must be whole seconds",
        ),
        (
            "[limits]\nkeepalive_timeout = \"0s\"",
            "2:21: `limits.keepalive_timeout` must be between 1s and 7days, not 0s",
        ),
        (
            "[script]\ntime = \"11s\"",
            "2:8: `script.time` must be between 1ms and 10s, not 11s",
        ),
        (
            "[script]\noperations = 0",
            "2:14: `script.operations` must be between 1 and 1000000, not 0",
        ),
        (
            "[dns]\nmin_ttl = \"2s\"\nmax_ttl = \"1s\"",
            "3:11: `dns.max_ttl` must be between 2s and 7days, not 1s",
        ),
        (
            "[dns]\nservers = [\"10.0.0.10\"]",
            "2:12: \"10.0.0.10\" is no address (write IP:port, such as \"10.0.0.10:53\")",
        ),
        (
            "[dns]\nallow = [\"169.254.1.1/24\"]",
            "2:10: \"169.254.1.1/24\" has bits outside its prefix (write \"169.254.1.0/24\" for the \
             network or \"169.254.1.1\" for the address)",
        ),
        (
            "[files]\nallow = [\"secrets\"]",
            "2:10: \"secrets\" is no absolute path",
        ),
        (
            "[trusted_proxies]\ncidrs = [\"10.1.2.3/8\"]",
            "2:10: \"10.1.2.3/8\" has bits outside its prefix (write \"10.0.0.0/8\" for the \
             network or \"10.1.2.3\" for the address)",
        ),
        (
            "[trusted_proxies]\ncidrs = [\"ten\"]",
            "2:10: \"ten\" is no network (write \"10.0.0.0/8\", \"fd00::/8\" or one address)",
        ),
        ("routes = \"\"", "1:10: `routes` can't be empty"),
        ("routes = 'a'\nroutes = 'b'", "2:1: duplicate key"),
        ("[server\n", "1:8: "),
    ] {
        let errors = errors(text);
        assert!(
            errors.starts_with(expected),
            "{text}\n gives {errors}\n   not {expected}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}
