//! Who the client is: secrets, users, key sets, and the filters that ask.

#![allow(clippy::unwrap_used)]

mod support;

use std::{collections::HashMap, rc::Rc};

use edgewright_script::{
    load::Inputs,
    program::{Program, TokenFrom},
};
use support::{End, MemoryFiles, inputs, program_from, try_load_from};

const KEY_SET: &str = r#"{"keys": [
    {"kty": "EC", "crv": "P-256", "kid": "1",
     "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},
    {"kty": "oct", "k": "AAAA"}
]}"#;

const USERS: &str = "alice:{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\n";

fn with_files(source: &str) -> Inputs {
    let files = HashMap::from([
        ("token", "s3cret\n"),
        ("empty", "\n"),
        ("users.htpasswd", USERS),
        ("bad.htpasswd", "alice:s3cret\n"),
        ("keys.json", KEY_SET),
        ("no-keys.json", r#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#),
        ("public.pem", include_str!("keys/rsa.pub.pem")),
    ]);
    Inputs {
        files: Rc::new(MemoryFiles(files)),
        ..inputs(source)
    }
}

fn answer(body: &str) -> String {
    let source =
        format!("const S = secret(\"token\");\nroute(\"/\").respond(|req| respond(200, {body}));");
    match program_from(&with_files(&source)).get("/") {
        End::Answer(200, text) => text,
        other => panic!("{body}: {other:?}"),
    }
}

fn errors(source: &str) -> String {
    match try_load_from(&with_files(source)) {
        Ok(_) => panic!("the program loads: {source}"),
        Err(found) => found.to_string(),
    }
}

fn loads(source: &str) -> Program {
    let loaded = try_load_from(&with_files(source));
    loaded.unwrap_or_else(|found| panic!("{found}")).program
}

#[test]
fn a_secret_is_a_key_and_no_text() {
    for (body, expected) in [
        ("S.text()", "s3cret"),
        (
            "`${constant_time_eq(S, \"s3cret\")} ${constant_time_eq(\"s3cret\", S)} ${constant_time_eq(S, S)}`",
            "true true true",
        ),
        (
            "`${constant_time_eq(S, \"s3cre\")} ${constant_time_eq(S, ())} ${constant_time_eq((), S)}`",
            "false false false",
        ),
        ("`${S}`", "secret(..)"),
        ("`${[S]} ${#{ a: S }}`", "[secret(..)] #{\"a\": secret(..)}"),
        (
            "jwt_verify(jwt_sign(#{ exp: now() + 60.0, sub: \"a\" }, #{ algorithm: \"HS256\", secret: S }), #{ algorithm: \"HS256\", secret: \"s3cret\" }).sub",
            "a",
        ),
    ] {
        assert_eq!(answer(body), expected, "{body}");
    }
    assert_eq!(
        answer("hex(hmac_sha256(S, \"x\"))"),
        answer("hex(hmac_sha256(\"s3cret\", \"x\"))")
    );
}

#[test]
fn a_secret_is_written_nowhere_by_mistake() {
    for body in [
        "\"a\" + S",
        "S + \"a\"",
        "json_encode(S)",
        "json_encode(#{ a: S })",
        "S.to_upper()",
        "base64(S)",
    ] {
        let source = format!(
            "const S = secret(\"token\");\nroute(\"/\").respond(|req| respond(200, {body}));"
        );
        let failed = match try_load_from(&with_files(&source)) {
            Err(found) => found.to_string(),
            Ok(_) => {
                let mut runner = program_from(&with_files(&source));
                let mut request = edgewright_script::memory::MemoryRequest::new("GET", "a", "/");
                match runner.run(&mut request) {
                    Err(failure) => failure.to_string(),
                    Ok(end) => format!("{end:?}"),
                }
            }
        };
        assert!(!failed.contains("s3cret"), "{body}: {failed}");
    }
}

#[test]
fn files_that_are_none_are_errors_with_a_place() {
    for (source, says) in [
        (
            "\nconst S = secret(\"nowhere\");",
            "routes.rhai:2:11: error: there is no file `nowhere`",
        ),
        ("const S = secret(\"empty\");", "`empty` is no secret"),
        ("const U = htpasswd(\"nowhere\");", "there is no file"),
        (
            "const U = htpasswd(\"bad.htpasswd\");",
            "`bad.htpasswd`: line 1: the password of `alice`",
        ),
        ("const K = jwks(\"no-keys.json\");", "no key that verifies"),
        (
            "const K = jwks(\"keys.json\", #{ refresh: \"5m\" });",
            "is a file",
        ),
        (
            "const K = jwks(\"https://a.example/keys\", #{ refresh: \"1s\" });",
            "10s at the least",
        ),
        (
            "const K = jwks(\"https://a.example/keys\", #{ path: \"/x\" });",
            "path already",
        ),
        (
            "const K = jwks(\"https://user@a.example/keys\");",
            "can't be called",
        ),
        (
            "const K = jwks(\"web\", #{ path: \"keys\" });",
            "begins with `/`",
        ),
        (
            "const K = jwks(\"web\", #{ pth: \"/keys\" });",
            "did you mean `path`?",
        ),
        (
            "const K = [jwks(\"https://a.example/k\"), jwks(\"https://a.example/k\", #{ refresh: \"10m\" })];",
            "another `refresh`",
        ),
    ] {
        let found = errors(source);
        assert!(found.contains(says), "{source}: {found}");
        assert!(!found.contains("s3cret"), "{found}");
    }
}

#[test]
fn one_source_is_one_key_set() {
    let program = loads(
        "const A = jwks(\"https://a.example/keys\");
         const B = jwks(\"https://a.example/keys\");
         const C = jwks(\"web\", #{ path: \"/keys\", refresh: \"1m\" });
         const D = jwks(\"keys.json\");
         route(\"/\").respond(200);",
    );
    let names: Vec<&str> = program
        .jwks
        .iter()
        .map(|set| set.source().unwrap().name.as_str())
        .collect();
    assert_eq!(names, ["https://a.example/keys", "pool web /keys"]);
}

#[test]
fn filters_are_read() {
    let program = loads(
        "const USERS = htpasswd(\"users.htpasswd\");
         route(\"/a\").basic_auth(USERS).to(\"web\");
         route(\"/b\").basic_auth(#{ bob: \"{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\" }, #{ realm: \"b\", user_header: \"x-user\" }).to(\"web\");
         route(\"/c\").jwt(#{ algorithm: \"HS256\", secret: secret(\"token\"), from: \"cookie:session\", claims: #{ sub: \"x-user\" } }).to(\"web\");
         route(\"/d\").forward_auth(\"api\", #{ path: \"/check\", cache: \"30s\" }).to(\"web\");
         route(\"/e\").to(\"web\");",
    );
    let route = |path: &str| {
        let route = program.routes.iter().find(|route| route.label == path);
        route.unwrap().auth.as_deref()
    };
    let basic = route("/a").unwrap().basic.as_ref().unwrap();
    assert_eq!(
        basic.challenge,
        "Basic realm=\"restricted\", charset=\"UTF-8\""
    );
    let basic = route("/b").unwrap().basic.as_ref().unwrap();
    assert_eq!(basic.challenge, "Basic realm=\"b\", charset=\"UTF-8\"");
    assert!(basic.users.hash_for("bob").1 && !basic.users.hash_for("alice").1);
    let jwt = route("/c").unwrap().jwt.as_ref().unwrap();
    assert_eq!(jwt.from, TokenFrom::Cookie("session".to_owned()));
    assert_eq!(jwt.invalid, "Bearer error=\"invalid_token\"");
    let forward = route("/d").unwrap().forward.as_ref().unwrap();
    let cache = forward.rules.cache.as_ref().unwrap();
    assert_eq!(cache.key, forward.rules.headers);
    assert!(!cache.whole_route);
    assert!(route("/e").is_none());
}

#[test]
fn wrong_filters_are_errors_with_a_place() {
    for (filter, says) in [
        ("basic_auth(\"users\")", "users are given as"),
        ("basic_auth(#{})", "there is no user"),
        ("basic_auth(#{ a: \"plain\" })", "the password of `a`"),
        (
            "basic_auth(#{ a: \"{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\" }, #{ relm: \"x\" })",
            "did you mean `realm`?",
        ),
        (
            "basic_auth(#{ a: \"{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\" }, #{ realm: \"x\\\"y\" })",
            "without quotes",
        ),
        (
            "basic_auth(#{ a: \"{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\" }, #{ user_header: \"cookie\" })",
            "can't hold who the client is",
        ),
        (
            "jwt(#{ algorithm: \"HS256\" })",
            "`.jwt` needs `secret` or `public_key` or `jwks`",
        ),
        ("jwt(#{ secret: \"x\" })", "a token must not choose its own"),
        (
            "jwt(#{ algorithm: \"none\", secret: \"x\" })",
            "there is no algorithm `none`",
        ),
        ("jwt(#{ algorithm: \"HS256\", secret: PEM })", "PEM"),
        (
            "jwt(#{ algorithm: \"RS256\", secret: \"x\" })",
            "goes with `public_key`",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", jwks: KEYS })",
            "HS256 goes with `secret`, not `jwks`",
        ),
        (
            "jwt(#{ algorithm: \"ES256\", jwks: \"keys.json\" })",
            "jwks(..)",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", secret: \"x\", from: \"body\" })",
            "can't be taken from `body`",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", secret: \"x\", from: \"query:t\", forward: false })",
            "about a header field",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", secret: \"x\", claims: #{ sub: \"authorization\" } })",
            "can't hold who",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", secret: \"x\", claims: \"sub\" })",
            "a map of texts",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", secret: \"x\" }).basic_auth(#{ a: \"{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\" })",
            "can't both read",
        ),
        (
            "jwt(#{ algorithm: \"HS256\", secret: \"x\" }).jwt(#{ algorithm: \"HS256\", secret: \"x\" })",
            "already",
        ),
        ("forward_auth(\"authz\")", "there is no pool `authz`"),
        (
            "forward_auth(\"api\", #{ path: \"check\" })",
            "begins with `/`",
        ),
        (
            "forward_auth(\"api\", #{ method: \"PUT\" })",
            "is GET, HEAD or POST",
        ),
        ("forward_auth(\"api\", #{ timeout: \"0s\" })", "above 0"),
        (
            "forward_auth(\"api\", #{ cache_key: [\"cookie\"] })",
            "need `cache",
        ),
        (
            "forward_auth(\"api\", #{ cache: \"30s\", cache_key: [], cache_scope: \"route\" })",
            "that of all",
        ),
        (
            "forward_auth(\"api\", #{ copy: [\"host\"] })",
            "can't hold who",
        ),
        (
            "forward_auth(\"api\", #{ headers: [\"x-forwarded-for\"] })",
            "the proxy sets it",
        ),
        (
            "forward_auth(\"api\", #{ copy: [\"content-length\"] })",
            "belongs to the connection",
        ),
    ] {
        let source = format!(
            "const KEYS = jwks(\"keys.json\");\nconst PEM = secret(\"public.pem\");\nroute(\"/\")\n    .{filter}\n    .to(\"web\");"
        );
        let found = errors(&source);
        assert!(found.contains(says), "{filter}: {found}");
        assert!(found.contains("routes.rhai:4:"), "{filter}: {found}");
    }
}

#[test]
fn hooks_verify_passwords() {
    // `opensesame` with a cost of 5.
    const BCRYPT: &str = "$2y$05$abcdefghijklmnopqrstuuQbLfdQZSxZ9gjhA5V9o8Tyc6aQRO0Qi";
    const SHA: &str = "{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=";
    for (body, expected) in [
        (
            format!("password_verify(\"opensesame\", \"{BCRYPT}\")"),
            true,
        ),
        (format!("password_verify(\"opensesame\", \"{SHA}\")"), true),
        (format!("bcrypt_verify(\"opensesame\", \"{BCRYPT}\")"), true),
        (format!("bcrypt_verify(\"opensesam\", \"{BCRYPT}\")"), false),
        (format!("bcrypt_verify(\"opensesame\", \"{SHA}\")"), false),
        (
            format!("argon2_verify(\"opensesame\", \"{BCRYPT}\")"),
            false,
        ),
        (format!("password_verify((), \"{BCRYPT}\")"), false),
        ("password_verify(\"opensesame\", ())".to_owned(), false),
        (
            "password_verify(\"opensesame\", \"opensesame\")".to_owned(),
            false,
        ),
        (
            format!(
                "password_verify(\"opensesame\", \"{}\")",
                BCRYPT.replace("$05$", "$13$")
            ),
            false,
        ),
        ("USERS.verify(\"alice\", \"opensesame\")".to_owned(), true),
        ("USERS.verify(\"bob\", \"opensesame\")".to_owned(), false),
        (
            "USERS.verify(req.header(\"x-user\"), \"opensesame\")".to_owned(),
            false,
        ),
        ("USERS.verify(\"alice\", ())".to_owned(), false),
    ] {
        let source = format!(
            "const USERS = htpasswd(\"users.htpasswd\");\nroute(\"/\").on_request(|req| if {body} {{ respond(200, \"right\") }} else {{ respond(200, \"wrong\") }}).to(\"web\");"
        );
        let answer = program_from(&with_files(&source)).get("/");
        let word = if expected { "right" } else { "wrong" };
        assert_eq!(answer, End::Answer(200, word.to_owned()), "{body}");
    }
    let found = errors(&format!(
        "route(\"/\").when(|req| bcrypt_verify(\"a\", \"{BCRYPT}\")).to(\"web\");"
    ));
    assert!(found.contains("`bcrypt_verify` can't stand in"), "{found}");
    let found = errors(&format!(
        "const A = bcrypt_verify(\"a\", \"{BCRYPT}\");\nroute(\"/\").respond(200);"
    ));
    assert!(found.contains("while a hook runs"), "{found}");
}
