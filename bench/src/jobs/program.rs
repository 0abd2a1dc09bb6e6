//! The jobs as hooks of edgewright.

use anyhow::{Context, Result};

use super::cases::{COUNT_HOST, HOOKED_HOST, ISSUER, REFUSED_VARIANT, SECRET, is_green};
use super::job::Job;
use crate::load::{self, CLIENT_HEADER, HOST, KEY_HEADER, PREFIXES, VARIANT_HEADER};

/// The file with the API keys.
pub(super) const KEYS_FILE: &str = "keys.json";
/// The file with the secret.
pub(super) const SECRET_FILE: &str = "secret.txt";

/// The name of the file and its content, for each file beside the program.
pub(super) fn files(job: Job) -> Result<Vec<(&'static str, String)>> {
    Ok(match job {
        Job::Table100 | Job::Table100k => vec![(KEYS_FILE, keys_json(job.keys())?)],
        Job::Hmac | Job::Jwt => vec![(SECRET_FILE, SECRET.to_owned())],
        _ => Vec::new(),
    })
}

fn keys_json(count: usize) -> Result<String> {
    let keys: serde_json::Map<_, _> = (0..count)
        .map(|number| (load::key(number), load::client(number).into()))
        .collect();
    serde_json::to_string(&keys).context("cannot write the keys as JSON")
}

/// The program: a site without a hook, and one with the job in a hook.
pub(super) fn routes(job: Job) -> String {
    let Hook { above, chain } = hook(job);
    format!(
        "{above}\nsite(\"{HOST}\").route(\"/{{*rest}}\").to(\"blue\");\n\
         site(\"{HOOKED_HOST}\").route(\"/{{*rest}}\"){chain};\n"
    )
}

/// What stands above the routes, and what the route has.
struct Hook {
    above: String,
    chain: &'static str,
}

fn hook(job: Job) -> Hook {
    let gate = |above: String| Hook {
        above,
        chain: ".on_request(hook).to(\"blue\")",
    };
    match job {
        Job::Empty => gate("fn hook(req) {}\n".to_owned()),
        Job::HeaderGet => gate(format!(
            "fn hook(req) {{
    if req.header(\"{VARIANT_HEADER}\") == \"{REFUSED_VARIANT}\" {{ return respond(403); }}
}}
"
        )),
        Job::HeaderSet => gate(format!(
            "fn hook(req) {{
    req.set_header(\"{CLIENT_HEADER}\", \"{}\");
}}
",
            super::cases::CLIENT
        )),
        Job::Prefixes => Hook {
            above: prefixes(),
            chain: ".to(hook)",
        },
        Job::Table100 | Job::Table100k => gate(format!(
            "const KEYS = table(\"{KEYS_FILE}\");
fn hook(req) {{
    if KEYS.get(req.header(\"{KEY_HEADER}\")) == () {{ return respond(401); }}
}}
"
        )),
        Job::Counter => gate(format!(
            "const HITS = counter();
fn hook(req) {{
    HITS.add(\"all\", 1);
}}
site(\"{COUNT_HOST}\").route(\"/\").respond(|req| respond(200, HITS.get(\"all\").to_string()));
"
        )),
        Job::Regex => gate(
            "const ITEM = regex(`^/items/([0-9]+)$`);
fn hook(req) {
    let found = ITEM.captures(req.path);
    if found == () { return respond(404); }
    if found[1] == \"13\" { return respond(403); }
}
"
            .to_owned(),
        ),
        Job::Hmac => gate(format!(
            "const SECRET = secret(\"{SECRET_FILE}\");
fn hook(req) {{
    let made = hmac_sha256(SECRET, req.path).hex();
    if !constant_time_eq(made, req.header(\"x-signature\")) {{ return respond(401); }}
}}
"
        )),
        Job::Jwt => gate(format!(
            "const HOW = #{{ algorithm: \"HS256\", secret: secret(\"{SECRET_FILE}\"), issuer: \"{ISSUER}\" }};
fn hook(req) {{
    let token = without_prefix(req.header(\"authorization\"), \"Bearer \");
    if jwt_verify(token, HOW) == () {{ return respond(401); }}
}}
"
        )),
        Job::JsonBody => Hook {
            above: "fn hook(req) {
    if req.json()?.currency != \"EUR\" { return respond(400); }
}
"
            .to_owned(),
            chain: ".on_request_body(hook).to(\"blue\")",
        },
        Job::Loop => gate(
            "fn hook(req) {
    let sum = 0;
    for n in 0..1000 { sum += n; }
    if sum != 499500 { return respond(500); }
}
"
            .to_owned(),
        ),
    }
}

/// One branch after the other.
fn prefixes() -> String {
    let mut text = "fn hook(req) {\n    let path = req.path;\n".to_owned();
    for (number, prefix) in PREFIXES.iter().enumerate() {
        let pool = if is_green(number) { "green" } else { "blue" };
        let lead = if number == 0 { "    if" } else { " else if" };
        text += &format!("{lead} path.starts_with(\"/{prefix}/\") {{ \"{pool}\" }}");
    }
    text + " else { \"blue\" }\n}\n"
}
