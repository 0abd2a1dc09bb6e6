//! Case webhook: the signature of a webhook is taken over the raw bytes (windmill 8596).

use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;

use crate::support::client::{Request, post};
use crate::support::launch::serving;
use crate::support::upstream::Upstream;

const PRETTY: &str = "{\n  \"event\": \"paid\",\n  \"amount\": 10\n}";
const COMPACT: &str = "{\"event\":\"paid\",\"amount\":10}";

fn signature(secret: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, text.as_bytes());
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn signed(body: &str, age: u64) -> Request {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let sent = now.as_secs() - age;
    let signature = signature("hush", &format!("{sent}.{body}"));
    post("/hook", body).header("X-Signature", &format!("t={sent},v1={signature}"))
}

#[test]
fn only_what_was_signed_as_it_stands_comes_through() {
    let web = Upstream::fixed("taken");
    let proxy = serving(include_str!("../../../examples/webhook-hmac/routes.rhai"))
        .file("secrets.json", "{ \"webhook\": \"hush\" }")
        .pool("web", web.address())
        .start();
    for body in [PRETTY, COMPACT] {
        assert_eq!(proxy.send(&signed(body, 0)).status, 200, "{body}");
    }
    let good = signature("hush", "1.x");
    let refused = [
        (
            "altered",
            signed(PRETTY, 0).body(PRETTY.replace("10", "11")),
        ),
        ("stale", signed(PRETTY, 3600)),
        ("missing", post("/hook", PRETTY)),
        (
            "upper case",
            post("/hook", "x").header("X-Signature", &format!("t=1,v1={}", good.to_uppercase())),
        ),
        (
            "wrong length",
            post("/hook", "x").header("X-Signature", &format!("t=1,v1={}", &good[..60])),
        ),
        ("empty", post("/hook", "").header("X-Signature", "t=,v1=")),
    ];
    for (what, request) in refused {
        assert_eq!(proxy.send(&request).status, 401, "{what}");
    }
    let seen = web.requests();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body, PRETTY.as_bytes());
    assert_eq!(seen[1].body, COMPACT.as_bytes());
}
