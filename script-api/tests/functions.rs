//! The functions that programs call: coding, digests, time, tokens, log.

#![allow(clippy::unwrap_used)]

mod support;

use std::{cell::RefCell, time::Duration};

use bytes::Bytes;
use edgewright_script::{
    engine::{FailureKind, Limits, ScriptLimit, Verdict, set_clock},
    log::{Level, Line, Sink, log_to},
    memory::MemoryRequest,
    outbound::Incoming,
};
use http::{HeaderMap, StatusCode};

use support::{End, errors, inputs, program, program_of};

/// Runs `body` as a hook and gives the text that it answers with, or its failure.
fn run(body: &str) -> Result<String, String> {
    run_at_load("", body)
}

/// The same behind statements of the top level; the hook may `fetch("api")`, which answers with
/// `{"a":[1,"x"]}`.
fn run_at_load(top: &str, body: &str) -> Result<String, String> {
    let source =
        format!("{top}\nroute(\"/\").on_request(gate).to(\"web\");\nfn gate(req) {{\n{body}\n}}");
    let mut runner = program(&source);
    let hook = runner.program.routes[0].on_request[0];
    let mut request = MemoryRequest::new("GET", "example.com", "/");
    let said = runner.interpreter.finish(hook, &mut request, |calls| {
        let answer = || Incoming {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::from_static(br#"{"a":[1,"x"]}"#),
            ..Incoming::default()
        };
        calls.iter().map(|_| Ok(answer())).collect()
    });
    match said.map_err(|failure| failure.to_string())? {
        Verdict::Answer(answer) => Ok(String::from_utf8(answer.body.to_vec()).unwrap()),
        Verdict::Continue => panic!("no answer: {body}"),
    }
}

/// The value of an expression, as a program shows it.
fn value(expression: &str) -> String {
    run(&format!("let v = {expression}; respond(200, `${{v}}`)")).unwrap()
}

fn failure(expression: &str) -> String {
    run(&format!("let v = {expression}; respond(200)")).unwrap_err()
}

fn refused(body: &str) -> String {
    errors(&format!(
        "route(\"/\").on_request(gate).to(\"web\");\nfn gate(req) {{\n{body}\n}}"
    ))
}

#[test]
fn codings() {
    for (expression, expected) in [
        ("base64(\"foob\")", "Zm9vYg=="),
        ("base64url(from_hex(\"fbff\"))", "-_8"),
        ("from_base64(\"Zm9vYg==\").text()", "foob"),
        ("from_base64url(\"Zm9vYg\").text()", "foob"),
        ("from_base64url(\"Zm9vYg==\").text()", "foob"),
        ("hex(\"\u{e9}\")", "c3a9"),
        ("hex(from_hex(\"C3A9\"))", "c3a9"),
        (
            "url_encode(\"a b/\u{e9}?&=+~\")",
            "a%20b%2F%C3%A9%3F%26%3D%2B~",
        ),
        ("url_decode(\"a%20b+%C3%A9\")", "a b+\u{e9}"),
        (
            "form_encode(#{ b: [1, \"x&y z\"], a: true, c: () })",
            "a=true&b=1&b=x%26y+z",
        ),
        (
            "json_encode(form_parse(\"a=1&b=x+y%21&a=2&c&a=3\"))",
            r#"{"a":["1","2","3"],"b":"x y!","c":""}"#,
        ),
        (
            "json_encode(#{ b: [1, 2.5, (), \"x\\n\"], a: false })",
            r#"{"a":false,"b":[1,2.5,null,"x\n"]}"#,
        ),
        ("json_parse(`{\"a\": [1, {\"b\": \"c\"}]}`).a[1].b", "c"),
        ("json_parse(from_hex(\"5b315d\"))[0]", "1"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
    for coded in [
        "from_base64(\"Zg\")",
        "from_base64(\"es0=es0=\")",
        "from_hex(\"0g\")",
        "url_decode(\"%f\")",
        "form_parse(from_hex(\"ff\"))",
    ] {
        assert_eq!(value(&format!("{coded} == ()")), "true", "{coded}");
    }
    let told = failure("json_parse(`{\"a\": `)");
    assert!(
        told.contains("routes.rhai:4:9")
            && told.contains("no usable JSON")
            && told.contains("line 1 column"),
        "{told}"
    );
    assert!(failure("json_encode(#{ a: |x| x })").contains("JSON can't hold"));
    assert!(failure("form_encode(#{ a: #{} })").contains("the field `a`"));
}

#[test]
fn a_body_is_data_too() {
    let told = |expression: &str| {
        run(&format!(
            "let b = fetch(\"api\").body(); let v = {expression}; respond(200, `${{v}}`)"
        ))
        .unwrap()
    };
    assert_eq!(told("json_parse(b).a[1]"), "x");
    assert_eq!(told("base64(b)"), "eyJhIjpbMSwieCJdfQ==");
    assert_eq!(told("hex(sha256(b)) == hex(sha256(b.bytes()))"), "true");
    assert_eq!(
        told("hmac_sha256(\"k\", b) == hmac_sha256(\"k\", b.text())"),
        "true"
    );
    assert_eq!(told("constant_time_eq(b, b.text())"), "true");
}

#[test]
fn bytes_can_be_looked_at() {
    for (expression, expected) in [
        ("from_hex(\"0aff\").len()", "2"),
        ("from_hex(\"0aff\").len", "2"),
        ("from_hex(\"\").is_empty()", "true"),
        ("from_hex(\"0aff\")[1]", "255"),
        ("from_hex(\"0aff\")[-2]", "10"),
        ("from_hex(\"0aff\") == from_hex(\"0AFF\")", "true"),
        ("from_hex(\"0aff\") != from_hex(\"0aff00\")", "true"),
        ("hex(from_hex(\"0a\") + from_hex(\"ff\"))", "0aff"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
    assert!(failure("from_hex(\"ff\").text()").contains("not UTF-8"));
    // They may stand in constants.
    let top = "const KEY = from_hex(\"0b0b\"); const KEYS = #{ a: KEY };";
    let told = run_at_load(top, "respond(200, hex(KEY) + hex(KEYS.a))").unwrap();
    assert_eq!(told, "0b0b0b0b");
}

#[test]
fn digests() {
    for (expression, expected) in [
        // FIPS 180-2 appendices A to D.
        ("sha1(\"abc\")", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "sha256(\"abc\")",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            "sha384(\"abc\")",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "sha512(\"abc\")",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        // RFC 2202 section 3, case 2.
        (
            "hmac_sha1(\"Jefe\", \"what do ya want for nothing?\")",
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        ),
        // RFC 4231 sections 4.3 and 4.4.
        (
            "hmac_sha256(\"Jefe\", \"what do ya want for nothing?\")",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "hmac_sha384(\"Jefe\", \"what do ya want for nothing?\")",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            "hmac_sha512(\"Jefe\", \"what do ya want for nothing?\")",
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
        (
            "hmac_sha256(from_hex(\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"), from_hex(\"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd\"))",
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
    ] {
        assert_eq!(
            value(&format!("hex({expression})")),
            expected,
            "{expression}"
        );
    }
    for (expression, expected) in [
        ("constant_time_eq(\"abc\", \"abc\")", "true"),
        ("constant_time_eq(\"abc\", \"abd\")", "false"),
        ("constant_time_eq(\"abc\", \"ab\")", "false"),
        ("constant_time_eq(from_hex(\"6162\"), \"ab\")", "true"),
        ("constant_time_eq(\"\", \"\")", "true"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn what_nobody_can_guess() {
    assert_eq!(value("random_bytes(1024).len()"), "1024");
    assert_eq!(value("random_bytes(16) == random_bytes(16)"), "false");
    assert_eq!(value("uuid_v4() == uuid_v4()"), "false");
    let shape =
        "regex(\"^[0-9a-f]{8}-[0-9a-f]{4}-([47])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$\")";
    for version in ["4", "7"] {
        let told = run_at_load(
            &format!("const SHAPE = {shape};"),
            &format!("respond(200, SHAPE.captures(uuid_v{version}())[1])"),
        );
        assert_eq!(told.unwrap(), version);
    }
    let told = failure("{ let n = 1025; random_bytes(n) }");
    assert!(told.contains("0 to 1024 bytes, not 1025"), "{told}");
}

#[test]
fn the_clock_can_be_set() {
    set_clock(Some(Duration::from_millis(784_111_777_250)));
    assert_eq!(value("now()"), "784111777.25");
    assert_eq!(value("now_ms()"), "784111777250");
    assert_eq!(value("http_date(now())"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(value("uuid_v7().sub_string(0, 13)"), "00b690b4-35e2");
    let token = "jwt_sign(#{ exp: 784111778 }, #{ algorithm: \"HS256\", secret: \"s\" })";
    let verified = format!("jwt_verify({token}, #{{ algorithm: \"HS256\", secret: \"s\" }}) != ()");
    assert_eq!(value(&verified), "true");
    set_clock(Some(Duration::from_secs(784_111_778)));
    assert_eq!(value(&verified), "false");
    set_clock(None);
    assert_eq!(
        value("now() > 1700000000.0 && now_ms() > 1700000000000"),
        "true"
    );
    assert_eq!(
        value("parse_http_date(\"Sun, 06 Nov 1994 08:49:37 GMT\")"),
        "784111777"
    );
    assert!(failure("http_date(-1)").contains("1970 to 9999"));
    assert!(failure("http_date(1e300)").contains("1970 to 9999"));
}

#[test]
fn what_is_absent_stays_absent() {
    for expression in [
        "json_parse(())",
        "base64(())",
        "from_base64(())",
        "base64url(())",
        "from_base64url(())",
        "hex(())",
        "from_hex(())",
        "url_encode(())",
        "url_decode(())",
        "form_encode(())",
        "form_parse(())",
        "sha1(())",
        "sha256(())",
        "sha384(())",
        "sha512(())",
        "hmac_sha1((), \"x\")",
        "hmac_sha256(\"k\", ())",
        "hmac_sha384(from_hex(\"00\"), ())",
        "hmac_sha512((), ())",
        "http_date(())",
        "parse_http_date(())",
        "jwt_verify((), #{ algorithm: \"HS256\", secret: \"s\" })",
        "jwt_sign((), #{ algorithm: \"HS256\", secret: \"s\" })",
        "from_base64(\"!\").text()",
    ] {
        assert_eq!(
            value(&format!("{expression} == ()")),
            "true",
            "{expression}"
        );
    }
    for (a, b) in [
        ("()", "()"),
        ("\"\"", "()"),
        ("()", "\"\""),
        ("from_hex(\"\")", "()"),
        ("()", "from_hex(\"\")"),
    ] {
        let expression = format!("constant_time_eq({a}, {b})");
        assert_eq!(value(&expression), "false", "{expression}");
    }
    // In JSON it is a value like others.
    assert_eq!(value("json_encode(())"), "null");
}

#[test]
fn a_gate_of_tokens() {
    let gate = r#"
        let claims = jwt_verify(req.header("authorization").sub_string(7), HOW);
        if claims == () { return respond(401); }
        respond(200, claims.sub)"#;
    let source = format!(
        "const HOW = #{{ algorithm: \"HS256\", secret: \"s3cret\", audience: \"api\" }};
         route(\"/\").on_request(|req| {{ {gate} }}).to(\"web\");"
    );
    let mut runner = program(&source);
    let hook = runner.program.routes[0].on_request[0];
    let mut said = |authorization: Option<String>| {
        let mut request = MemoryRequest::new("GET", "example.com", "/");
        if let Some(value) = authorization {
            request
                .headers
                .insert("authorization", value.parse().unwrap());
        }
        match runner.interpreter.on_request(hook, &mut request).unwrap() {
            Verdict::Answer(answer) => answer.status.as_u16(),
            Verdict::Continue => panic!("the gate is open"),
        }
    };
    let sign = |claims: &str, secret: &str| {
        let token = value(&format!(
            "jwt_sign({claims}, #{{ algorithm: \"HS256\", secret: \"{secret}\" }})"
        ));
        Some(format!("Bearer {token}"))
    };
    let claims = "#{ sub: \"alice\", aud: \"api\", exp: now() + 60 }";
    assert_eq!(said(sign(claims, "s3cret")), 200);
    assert_eq!(said(sign(claims, "other")), 401);
    assert_eq!(
        said(sign("#{ sub: \"alice\", exp: now() + 60 }", "s3cret")),
        401
    );
    for authorization in ["", "Bearer", "Bearer ", "Bearer x", "x"] {
        assert_eq!(said(Some(authorization.to_owned())), 401, "{authorization}");
    }
    assert_eq!(said(None), 401);
}

#[test]
fn a_gate_of_signed_links() {
    let source = r#"
        const KEY = "k";
        route("/{*rest}").on_request(signed).to("web");
        fn signed(req) {
            let expires = num(req.query("expires"));
            if expires == () || expires < now() { return respond(403); }
            let made = hmac_sha256(KEY, `${req.path} ${expires}`);
            if !constant_time_eq(made, from_hex(req.query("signature"))) { return respond(403); }
        }"#;
    let mut edge = program(source);
    set_clock(Some(Duration::from_secs(1000)));
    let signature = |text: &str| value(&format!("hex(hmac_sha256(\"k\", \"{text}\"))"));
    let open = signature("/a 1001");
    let late = signature("/a 999");
    let (lower, upper) = (open.clone(), open.to_uppercase());
    for signature in [&lower, &upper] {
        let target = format!("/a?expires=1001&signature={signature}");
        assert_eq!(edge.get(&target), End::Pool("web".to_owned()));
    }
    for target in [
        format!("/b?expires=1001&signature={open}"),
        format!("/a?expires=1002&signature={open}"),
        format!("/a?expires=999&signature={late}"),
        format!("/a?expires=1001&signature={}", &open[2..]),
        format!("/a?expires=1001&signature=0{}", &open[1..]),
        "/a?expires=1001&signature=".to_owned(),
        "/a?expires=1001&signature=x".to_owned(),
        "/a?expires=1001".to_owned(),
        "/a".to_owned(),
    ] {
        let refused = End::Answer(403, String::new());
        assert_eq!(edge.get(&target), refused, "{target}");
    }
    set_clock(None);
}

#[test]
fn options_of_tokens_are_checked_at_run_time_too() {
    let told = failure(
        "{ let o = #{ algorithm: \"HS256\", secret: \"s\" }; o.leway = 5; jwt_verify(\"x\", o) }",
    );
    assert!(told.contains("did you mean `leeway`?"), "{told}");
    // Also while nobody sends a token.
    let told = failure("{ let o = #{ algorithm: \"HS256\" }; o.secret = (); jwt_verify((), o) }");
    assert!(
        told.contains("the `secret` of `jwt_verify` is text, bytes or `secret(..)`"),
        "{told}"
    );
}

#[test]
fn wrong_literals_are_found_at_load() {
    for (body, place, reason) in [
        (
            "log(\"wran\", \"x\"); respond(200)",
            "3:5",
            "did you mean `warn`?",
        ),
        (
            "log(\"fatal\", \"x\"); respond(200)",
            "3:5",
            "there are debug, info, warn, error",
        ),
        (
            "let x = random_bytes(4096); respond(200)",
            "3:22",
            "0 to 1024 bytes",
        ),
        (
            "let c = jwt_verify(\"t\", #{ algorithm: \"RS265\", public_key: \"k\" }); respond(200)",
            "3:39",
            "did you mean `RS256`?",
        ),
        (
            "let c = jwt_verify(\"t\", #{ algorithms: [\"HS256\", \"none\"], secret: \"k\" }); respond(200)",
            "3:50",
            "there is no algorithm `none`",
        ),
        (
            "let c = jwt_verify(\"t\", #{ algorithm: \"HS256\", public_key: \"k\" }); respond(200)",
            "3:39",
            "HS256 goes with `secret`, not `public_key`",
        ),
        (
            "let t = \"t\"; let c = t.jwt_verify(#{ algorithm: \"HS256\", secret: \"k\", isuer: \"x\" }); respond(200)",
            "3:71",
            "did you mean `issuer`?",
        ),
        (
            "let c = jwt_verify(\"t\", #{ secret: \"k\" }); respond(200)",
            "3:9",
            "a token must not choose",
        ),
        (
            "let t = jwt_sign(#{}, #{ algorithm: \"ES256\", public_key: \"k\" }); respond(200)",
            "3:46",
            "no option `public_key`",
        ),
        (
            "jwt_verify(\"t\", req.get); respond(200)",
            "3:1",
            "`jwt_verify` does nothing but give a value",
        ),
        (
            "constant_time_eq(\"a\", req.path); respond(200)",
            "3:1",
            "if !constant_time_eq(..)",
        ),
        (
            "req.path.sha256(); respond(200)",
            "3:10",
            "which is thrown away",
        ),
        (
            "if hmac_sha256(\"k\", req.path) == req.header(\"x\") { return respond(200); }",
            "3:31",
            "bytes are compared with text",
        ),
        (
            "if sha256(req.path) { return respond(200); }",
            "3:4",
            "this is bytes",
        ),
        (
            "jwt_verify(req.header(\"t\"), #{ algorithm: \"HS256\", secret: \"k\" })",
            "3:1",
            "can't end with a map or `()`",
        ),
    ] {
        let told = refused(body);
        assert!(
            told.contains(&format!("routes.rhai:{place}:")) && told.contains(reason),
            "{body}: {told}"
        );
    }
}

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Sends lines to `LINES` of the thread that logs them.
fn log_here() {
    log_to(Sink {
        wants: |level| level > Level::Debug,
        write: |line| LINES.with_borrow_mut(|lines| lines.push(line.clone())),
    });
    LINES.take();
}

/// Runs a hook and gives its lines.
fn logged(body: &str) -> Vec<Line> {
    log_here();
    run(&format!("{body}\nrespond(200)")).unwrap();
    LINES.take()
}

#[test]
fn lines_have_their_place_and_fields() {
    let lines = logged(
        "log(\"info\", \"hello\");\nlog(\"warn\", 5, #{ user: \"al ice\", n: 2.5, ok: true, none: (), list: [1, \"x\"] });\nlog(\"debug\", \"no\");",
    );
    let shown: Vec<_> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            r#"hook=on_request at=routes.rhai:4:1 message="hello""#,
            r#"hook=on_request at=routes.rhai:5:1 message="5" list="[1,\"x\"]" n=2.5 none=() ok=true user="al ice""#,
        ]
    );
    assert_eq!(
        lines.iter().map(|line| line.level).collect::<Vec<_>>(),
        [Level::Info, Level::Warn]
    );
}

#[test]
fn a_line_can_t_forge_another() {
    let lines = logged(
        "log(\"info\", \"a\\nERROR at=x message=\\\"y\\\"\\u001b[0m\\u2028\", #{ \"at\": \"x\\r\\ny\", \"a=b c\": \"\\\" at=1\" });",
    );
    assert_eq!(
        lines[0].to_string(),
        r#"hook=on_request at=routes.rhai:4:1 message="a\nERROR at=x message=\"y\"\u{1b}[0m\u{2028}" a_b_c="\" at=1" at_="x\r\ny""#
    );
}

#[test]
fn lines_are_bounded() {
    let lines = logged("for n in 0..500 { log(\"info\", n); }");
    assert_eq!(lines.len(), 101);
    assert_eq!(
        (lines[99].message.as_str(), lines[100].level),
        ("99", Level::Warn)
    );
    assert!(lines[100].message.contains("more than 100 lines"));

    let lines = logged(
        "let long = \"x\"; long.pad(20000, \"y\"); let m = #{}; for n in 0..100 { m[`f${n}`] = long; } log(\"info\", long, m);",
    );
    assert_eq!(lines[0].message.len(), 4096);
    assert_eq!(lines[0].fields.len(), 32);
    assert!(
        lines[0]
            .fields
            .iter()
            .all(|field| field.value.len() == 1024)
    );
}

#[test]
fn the_top_level_logs_too() {
    log_here();
    program("log(\"info\", \"loading\");\nroute(\"/\").to(\"web\");");
    let shown: Vec<_> = LINES.take().iter().map(ToString::to_string).collect();
    assert_eq!(shown, [r#"at=routes.rhai:1:1 message="loading""#]);
}

#[test]
fn a_level_that_does_not_exist_is_an_error() {
    let told = failure("{ let l = \"inof\"; log(l, \"x\"); 1 }");
    assert!(
        told.contains("there is no level `inof` (did you mean `info`?)"),
        "{told}"
    );
}

#[test]
fn results_are_bounded() {
    let source = "route(\"/\").on_request(|req| { let s = \"x\"; s.pad(1000, \"y\"); let v = base64(s); respond(200) }).to(\"web\");";
    for (limits, limit) in [
        (
            Limits {
                string: 1335,
                ..Limits::default()
            },
            Some(ScriptLimit::String),
        ),
        (
            Limits {
                string: 1336,
                ..Limits::default()
            },
            None,
        ),
    ] {
        let mut inputs = inputs(source);
        inputs.limits = limits;
        let mut runner = program_of(&inputs);
        let hook = runner.program.routes[0].on_request[0];
        let said = runner
            .interpreter
            .on_request(hook, &mut MemoryRequest::new("GET", "a", "/"));
        assert_eq!(said.err().and_then(|failure| failure.limit), limit);
    }
    let told =
        failure("{ let s = \"x\"; s.pad(8192, \"y\"); from_hex(s.sub_string(0, 0) + base64(s)) }");
    assert!(told.contains("BLOB"), "{told}");
}

/// What takes long counts at once, and not only when the clocks are read the next time.
#[test]
fn long_natives_end_with_their_time() {
    let source = "route(\"/\").on_request(|req| { let s = \"x\"; s.pad(65536, \"y\"); loop { let v = sha512(s); log(\"info\", 1); } }).to(\"web\");";
    log_here();
    let mut inputs = inputs(source);
    inputs.limits = Limits {
        operations: 1_000_000_000,
        time: Duration::from_micros(1),
        ..Limits::default()
    };
    let mut runner = program_of(&inputs);
    let hook = runner.program.routes[0].on_request[0];
    let said = runner
        .interpreter
        .on_request(hook, &mut MemoryRequest::new("GET", "a", "/"));
    let failure = said.unwrap_err();
    assert_eq!(
        (failure.kind, failure.limit),
        (FailureKind::Time, Some(ScriptLimit::Time))
    );
    // The first begins the time, the second is too much. Read at every 256th operation, the clocks
    // would let some fifty pass.
    assert_eq!(LINES.take().len(), 1);
}
