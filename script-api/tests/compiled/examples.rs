//! The hooks of all examples, with requests made by chance.

use std::{fs, path::PathBuf, rc::Rc};

use edgewright_script::{
    load::Inputs,
    memory::{MemoryRequest, MemoryResponse},
    values::{FileError, Files, ProgramFile},
};
use fastrand::Rng;
use http::StatusCode;

use crate::{
    both::{Both, response},
    support,
};

/// The folder of an example.
struct Folder(PathBuf);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        fs::read(self.0.join(name)).map_err(|_| FileError::NotFound(name.to_owned()))
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        let content = self.read(name)?;
        let path = name.into();
        Ok(ProgramFile { content, path })
    }
}

/// All examples, with their names.
pub fn all() -> Vec<(String, Inputs)> {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let folders = fs::read_dir(examples)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = folders
        .filter(|folder| folder.join("routes.rhai").exists())
        .collect();
    folders.sort();
    let inputs = |folder: PathBuf| {
        let source = fs::read_to_string(folder.join("routes.rhai")).unwrap();
        let config = fs::read_to_string(folder.join("edgewright.toml")).unwrap_or_default();
        let pools = config.lines().filter_map(|line| {
            let name = line.trim().strip_prefix("[pools.")?.strip_suffix(']')?;
            (!name.contains('.')).then(|| name.to_owned())
        });
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let inputs = Inputs {
            source,
            pools: pools.collect(),
            files: Rc::new(Folder(folder)),
            ..support::inputs("")
        };
        (name, inputs)
    };
    folders.into_iter().map(inputs).collect()
}

fn request(random: &mut Rng) -> MemoryRequest {
    let mut one = |texts: &[&'static str]| texts[random.usize(..texts.len())];
    let target = one(&[
        "/",
        "/api/v1/x?key=1",
        "/admin/x",
        "/hook",
        "/t/acme/x",
        "/users/7/a?utm_source=x&page=b",
        "/checkout/a",
        "/blog/2024/05/x",
        "/orders",
        "/private/a?expires=99999999999&signature=00ff",
        "/.git/config",
        "/where",
        "/quota",
    ]);
    let host = one(&["any.example", "acme.example.com", "www.example.com"]);
    let method = one(&["GET", "POST", "HEAD"]);
    let mut request = MemoryRequest::new(method, host, target);
    for (name, values) in [
        (
            "x-api-key",
            &["k-alice", "secret-1", "good-key-123", ""][..],
        ),
        ("x-user", &["alice", "bob", ""]),
        (
            "authorization",
            &["Bearer secret", "Basic YWxpY2U6YQ==", ""],
        ),
        ("accept-language", &["de", "en", ""]),
        ("x-tenant", &["acme", "globex", "suspended", ""]),
        (
            "origin",
            &["https://chat.example.com", "https://evil.example", ""],
        ),
        ("upgrade", &["websocket", ""]),
        ("user-agent", &["sqlmap/1.0", "curl", ""]),
        ("cookie", &["visitor=v1; theme=dark", ""]),
        ("x-request-id", &["0123456789", "bad id", ""]),
        ("x-signature", &["t=1,v1=00", ""]),
        ("x-plan", &["gold", "other", ""]),
        ("x-customer", &["c1", ""]),
    ] {
        let value = one(values);
        if !value.is_empty() {
            request = request.with_header(name, value);
        }
    }
    request
}

fn any_response(random: &mut Rng) -> MemoryResponse {
    let mut response = response();
    let statuses = [200, 404, 500, 503];
    response.status = StatusCode::from_u16(statuses[random.usize(..statuses.len())]).unwrap();
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-type", "image/png"),
        ("set-cookie", "a=b; Secure"),
        ("set-cookie", "theme=dark"),
        ("server", "nginx"),
    ] {
        if random.bool() {
            let value = http::HeaderValue::from_static(value);
            response.headers.append(name, value);
        }
    }
    response
}

/// Examples whose hooks answer with the time, chance or a number of their own.
const CHANGING: [&str; 4] = ["ab-test", "structured-log-and-metrics", "jwt", "request-id"];

#[test]
fn hooks_of_examples_mean_the_same() {
    let rounds = if std::env::var_os("EDGEWRIGHT_SOAK").is_some() {
        400
    } else {
        20
    };
    let mut compared = 0;
    for (name, inputs) in all() {
        if CHANGING.contains(&name.as_str()) {
            continue;
        }
        let mut both = Both::load(&inputs).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut random = Rng::with_seed(7);
        for _ in 0..rounds {
            let (request, response) = (request(&mut random), any_response(&mut random));
            compared += both.compare(&request, &response, &name).len();
        }
    }
    assert!(compared > 1_000, "{compared}");
}
