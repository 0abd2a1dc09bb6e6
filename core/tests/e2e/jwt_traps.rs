//! Case jwt-traps: tokens that a lax verifier takes, against `.jwt` and `jwt_verify`.

use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;

use crate::support::client::{Request, get};
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;

const PROGRAM: &str = r#"
    const SECRET = secret("hs.key");
    const PUBLIC = secret("rsa.pub.pem");
    const PRIVATE = secret("rsa.pem");
    const KEYS = jwks("set.json");
    const CLAIMS = #{ sub: "x-user", roles: "x-roles" };

    route("/hs").jwt(#{ algorithm: "HS256", secret: SECRET, claims: CLAIMS }).to("web");
    route("/lax").jwt(#{ algorithm: "HS256", secret: SECRET, leeway: "60s" }).to("web");
    route("/rs").jwt(#{ algorithm: "RS256", public_key: PUBLIC, claims: CLAIMS }).to("web");
    route("/set").jwt(#{ algorithms: ["RS256", "ES256"], jwks: KEYS, claims: CLAIMS }).to("web");
    route("/aud").jwt(#{ algorithm: "HS256", secret: SECRET, issuer: "me", audience: ["a", "b"], realm: "api" }).to("web");
    route("/cookie").jwt(#{ algorithm: "HS256", secret: SECRET, from: "cookie:session" }).to("web");
    route("/query").jwt(#{ algorithm: "HS256", secret: SECRET, from: "query:token" }).to("web");
    route("/field").jwt(#{ algorithm: "HS256", secret: SECRET, from: "header:x-token", forward: false }).to("web");
    route("/script").on_request(|req| {
        let claims = jwt_verify(bearer(req), #{ algorithms: ["RS256", "ES256"], jwks: KEYS });
        if claims == () { return respond(401); }
        req.set_header("x-user", claims.sub);
    }).to("web");

    fn bearer(req) {
        let value = req.header("authorization");
        if value.starts_with("Bearer ") { value.sub_string(7) }
    }

    // Makes tokens for the test: signed well, or with whatever key.
    route("/sign").respond(|req| {
        let how = #{ algorithm: "RS256", private_key: PRIVATE, kid: req.query("kid") };
        respond(200, jwt_sign(json_parse(req.query("claims")), how))
    });
    route("/code").respond(|req| {
        let key = if req.query("key") == "public" { PUBLIC.text() + "\n" } else { SECRET.text() };
        respond(200, base64url(hmac_sha256(key, req.query("message"))))
    });
"#;

macro_rules! key {
    ($name:literal) => {
        include_str!(concat!("../../../script-api/tests/keys/", $name))
    };
}

fn start(web: &Upstream) -> Proxy {
    serving(PROGRAM)
        .file("hs.key", "a secret of thirty-two bytes....\n")
        .file("rsa.pub.pem", key!("rsa.pub.pem"))
        .file("rsa.pem", key!("rsa.pem"))
        .file("set.json", key!("set.json"))
        .pool("web", web.address())
        .start()
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn encoded(text: &str) -> String {
    BASE64URL_NOPAD.encode(text.as_bytes())
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A token with a code of SHA-256 under the secret, or under the public key.
fn forged(proxy: &Proxy, key: &str, header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let code = proxy.text(&format!("/code?key={key}&message={message}"));
    format!("{message}.{code}")
}

fn hs256(proxy: &Proxy, claims: &str) -> String {
    forged(proxy, "secret", r#"{"alg":"HS256","typ":"JWT"}"#, claims)
}

fn rs256(proxy: &Proxy, kid: &str, claims: &str) -> String {
    proxy.text(&format!("/sign?kid={kid}&claims={}", escaped(claims)))
}

fn with(target: &str, token: &str) -> Request {
    get(target).header("authorization", &format!("Bearer {token}"))
}

/// Later than any test.
fn good(claims: &str) -> String {
    format!("{{\"exp\":{},\"sub\":\"alice\"{claims}}}", now() + 3600)
}

#[test]
fn all_are_refused_but_the_one_within_its_leeway() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    let claims = good("");
    let right = hs256(&proxy, &claims);
    let of_rsa = rs256(&proxy, "rsa", &claims);
    for (target, token) in [
        ("/hs", &right),
        ("/lax", &right),
        ("/rs", &of_rsa),
        ("/set", &of_rsa),
        ("/script", &of_rsa),
    ] {
        assert_eq!(proxy.send(&with(target, token)).status, 200, "{target}");
    }
    let expired = hs256(&proxy, &format!("{{\"exp\":{}}}", now() - 1));
    assert_eq!(
        proxy.send(&with("/lax", &expired)).status,
        200,
        "within its leeway"
    );
    let hits = web.hits();

    let header_of = |alg: &str| format!("{{\"alg\":\"{alg}\",\"kid\":\"rsa\"}}");
    let none = format!("{}.{}.", encoded(&header_of("none")), encoded(&claims));
    let signed_none = forged(&proxy, "secret", &header_of("none"), &claims);
    let confused = forged(&proxy, "public", &header_of("HS256"), &claims);
    let crit = r#"{"alg":"HS256","crit":["exp"]}"#;
    let (head, rest) = right.split_once('.').unwrap();
    let (_, code) = rest.split_once('.').unwrap();
    let other_claims = format!("{head}.{}.{code}", encoded(&good(",\"admin\":true")));
    let traps = [
        ("alg none", none),
        ("alg none, signed", signed_none),
        ("HS256 with the public key", confused),
        ("unknown kid", rs256(&proxy, "nobody", &claims)),
        ("expired by 1 s", expired),
        ("crit", forged(&proxy, "secret", crit, &claims)),
        ("claims changed", other_claims),
        ("no expiry", hs256(&proxy, "{\"sub\":\"alice\"}")),
        (
            "not valid yet",
            hs256(&proxy, &good(&format!(",\"nbf\":{}", now() + 600))),
        ),
        (
            "expiry that is no number",
            hs256(&proxy, "{\"exp\":\"2099\"}"),
        ),
        ("no object", hs256(&proxy, "[1]")),
        ("no token", "abc".to_owned()),
        ("four parts", format!("{right}.x")),
    ];
    for (what, token) in &traps {
        for target in ["/hs", "/rs", "/set", "/script"] {
            // Against the key set the name of the key decides, elsewhere it does not matter.
            if *what == "unknown kid" && target == "/rs" {
                continue;
            }
            let answer = proxy.send(&with(target, token));
            assert_eq!(answer.status, 401, "{what} at {target}");
            if target != "/script" {
                let challenge = answer.header("www-authenticate").unwrap();
                assert_eq!(
                    challenge, "Bearer error=\"invalid_token\"",
                    "{what} at {target}"
                );
            }
        }
    }
    for target in ["/hs", "/rs", "/set"] {
        let answer = proxy.send(&get(target));
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        for token in [&right, &of_rsa] {
            let twice = with(target, token).header("Authorization", &format!("Bearer {token}"));
            assert_eq!(proxy.send(&twice).status, 401, "two fields at {target}");
        }
    }
    // A gate of a script would see the first only.
    let twice = with("/script", &of_rsa).header("authorization", "Bearer x");
    assert_eq!(proxy.send(&twice).status, 400);
    assert_eq!(web.hits(), hits, "nothing of it reaches the upstream");
    assert!(!proxy.log.text().contains(code), "tokens are not logged");
}

#[test]
fn claims_become_fields_that_no_client_can_send() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    let token = hs256(&proxy, &good(",\"roles\":[\"a\",\"b\"]"));
    let request = with("/hs", &token)
        .header("x-user", "root")
        .header("X_Roles", "root");
    assert_eq!(proxy.send(&request).status, 200);
    let seen = web.last_request();
    assert_eq!(seen.headers("x-user"), ["alice"]);
    assert_eq!(seen.headers("x-roles"), ["a,b"]);
    assert!(seen.headers("x_roles").is_empty());
    assert_eq!(
        seen.headers("authorization").len(),
        1,
        "the token goes along"
    );

    // A claim that is not there leaves nothing of what the client said.
    let token = hs256(&proxy, &format!("{{\"exp\":{}}}", now() + 600));
    assert_eq!(
        proxy
            .send(&with("/hs", &token).header("x-user", "root"))
            .status,
        200
    );
    assert!(web.last_request().headers("x-user").is_empty());

    let hits = web.hits();
    for sub in ["\"a\\r\\nx-admin: 1\"", "{}", "[\"a,b\"]"] {
        let token = hs256(
            &proxy,
            &format!("{{\"exp\":{},\"sub\":{sub}}}", now() + 600),
        );
        assert_eq!(proxy.send(&with("/hs", &token)).status, 401, "{sub}");
    }
    assert_eq!(web.hits(), hits);
}

#[test]
fn issuer_and_audience_are_asked_for() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    for (claims, status) in [
        (",\"iss\":\"me\",\"aud\":\"a\"", 200),
        (",\"iss\":\"me\",\"aud\":[\"x\",\"b\"]", 200),
        (",\"iss\":\"me\",\"aud\":\"x\"", 401),
        (",\"iss\":\"you\",\"aud\":\"a\"", 401),
        (",\"aud\":\"a\"", 401),
        (",\"iss\":\"me\"", 401),
    ] {
        let token = hs256(&proxy, &good(claims));
        let answer = proxy.send(&with("/aud", &token));
        assert_eq!(answer.status, status, "{claims}");
        if status == 401 {
            let challenge = "Bearer realm=\"api\", error=\"invalid_token\"";
            assert_eq!(answer.header("www-authenticate"), Some(challenge));
        }
    }
}

#[test]
fn a_token_may_stand_elsewhere() {
    let web = Upstream::fixed("web");
    let proxy = start(&web);
    let token = hs256(&proxy, &good(""));
    let cookie = |value: &str| get("/cookie").header("cookie", value);
    let field = |name: &str| get("/field").header(name, &token);
    for (request, status) in [
        (cookie(&format!("a=1; session={token}")), 200),
        (cookie(&format!("session={token}; session={token}")), 401),
        (cookie("a=1"), 401),
        (with("/cookie", &token), 401),
        (get(&format!("/query?a=1&token={token}")), 200),
        (get(&format!("/query?token={token}&token={token}")), 401),
        (get("/query?token="), 401),
        (field("x-token"), 200),
        (field("x-token").header("x-token", &token), 401),
        (field("authorization"), 401),
    ] {
        let what = String::from_utf8(request.bytes()).unwrap();
        assert_eq!(proxy.send(&request).status, status, "{what}");
    }
    let seen = web.last_request();
    assert_eq!(seen.target(), "/field");
    assert!(seen.headers("x-token").is_empty(), "`forward: false`");
}
