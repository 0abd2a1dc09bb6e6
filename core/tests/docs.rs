//! What the documentation says about keys, defaults, bounds and programs is what the code does.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use edgewright::config::{self, Config, Overrides, PoolConfig};
use edgewright::source;
use tempfile::TempDir;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &str) -> String {
    let path = repository(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of code in `language`, without their fences and without indentation.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut current: Option<String> = None;
    for line in markdown.lines().map(str::trim_start) {
        match &mut current {
            None if line.trim_end() == format!("```{language}") => current = Some(String::new()),
            None => {}
            Some(_) if line.starts_with("```") => blocks.extend(current.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    blocks
}

fn example() -> String {
    blocks(&read("docs/configuration.md"), "toml").swap_remove(0)
}

fn load(settings: &str) -> Result<Config, String> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("edgewright.toml"), settings).unwrap();
    fs::write(folder.path().join("routes.rhai"), "").unwrap();
    match config::load(folder.path(), &Overrides::default()) {
        Ok(loaded) => Ok(loaded.config),
        Err(errors) => Err(errors.to_string()),
    }
}

/// Every key below `table` as a path with dots; lists of tables count as one table, and the names
/// of pools are `NAME`.
fn keys_of(table: &toml::Table, prefix: &str, keys: &mut BTreeSet<String>) {
    for (name, value) in table {
        let name = if prefix == "pools." { "NAME" } else { name };
        let path = format!("{prefix}{name}");
        match value {
            toml::Value::Table(inner) => keys_of(inner, &format!("{path}."), keys),
            toml::Value::Array(list) if list.first().is_some_and(toml::Value::is_table) => {
                for inner in list.iter().filter_map(toml::Value::as_table) {
                    keys_of(inner, &format!("{path}."), keys);
                }
            }
            _ => {
                keys.insert(path);
            }
        }
    }
}

/// Keys that have no default, or whose table changes something by being there, stand in comments of the example.
fn example_keys() -> BTreeSet<String> {
    let example = example();
    let lines: Vec<&str> = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
            _ => line,
        })
        .collect();
    let mut keys = BTreeSet::new();
    keys_of(&lines.join("\n").parse().unwrap(), "", &mut keys);
    keys
}

/// The structs that serde fills: of the file as a whole, and of the tables of a pool, each of which is the
/// `Table` of a module of its own.
fn structs() -> BTreeMap<String, Vec<(String, String)>> {
    let folder = repository("core/src/config/pools");
    let mut sources = vec![("file".to_owned(), read("core/src/config/file.rs"))];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let module = if stem == "mod" { "pools" } else { stem };
        sources.push((module.to_owned(), fs::read_to_string(&path).unwrap()));
    }
    let mut structs: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (module, source) in sources {
        let mut current = None;
        for line in source.lines() {
            if let Some(rest) = line.strip_prefix("pub(super) struct ") {
                let name = rest.split([' ', '(', '<']).next().unwrap();
                current = match (module.as_str(), name) {
                    ("file", name) => Some(name.to_owned()),
                    (module, "Table") => Some(format!("{module}::Table")),
                    _ => None,
                };
            } else if line.starts_with('}') {
                current = None;
            } else if let (Some(current), Some((name, kind))) = (
                &current,
                line.trim_end_matches(',')
                    .strip_prefix("    ")
                    .and_then(|field| field.split_once(": ")),
            ) && !name.starts_with(['/', '#', ' '])
            {
                let name = name.strip_prefix("pub ").unwrap_or(name);
                let name = name.strip_prefix("r#").unwrap_or(name).to_owned();
                structs
                    .entry(current.clone())
                    .or_default()
                    .push((name, kind.to_owned()));
            }
        }
    }
    structs
}

/// Every key of the configuration, from the structs that serde fills.
fn known_keys() -> BTreeSet<String> {
    let structs = structs();
    let mut keys = BTreeSet::new();
    let mut todo = vec![("File".to_owned(), String::new())];
    while let Some((name, prefix)) = todo.pop() {
        for (key, kind) in &structs[&name] {
            let last = kind
                .rsplit(['<', ' '])
                .next()
                .unwrap()
                .trim_end_matches('>');
            match structs.get_key_value(last) {
                Some((inner, _)) if kind.starts_with("BTreeMap") => {
                    todo.push((inner.clone(), format!("{prefix}{key}.NAME.")));
                }
                Some((inner, _)) => todo.push((inner.clone(), format!("{prefix}{key}."))),
                None => {
                    keys.insert(format!("{prefix}{key}"));
                }
            }
        }
    }
    assert!(keys.len() > 40, "{keys:?}");
    keys
}

/// The rows of the tables of keys: path, type, bounds.
fn documented() -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let mut tables: Vec<String> = Vec::new();
    for line in read("docs/configuration.md").lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            tables = heading
                .split('`')
                .filter(|part| part.starts_with('['))
                .map(|part| format!("{}.", part.trim_matches(['[', ']'])))
                .collect();
            if heading == "Top level" {
                tables = vec![String::new()];
            }
        } else if line.starts_with("| `") {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            for table in &tables {
                rows.push((
                    format!("{table}{}", cells[1].trim_matches('`')),
                    cells[2].to_owned(),
                    cells[3].to_owned(),
                ));
            }
        }
    }
    rows
}

#[test]
fn the_example_shows_every_key() {
    assert_eq!(example_keys(), known_keys());
}

#[test]
fn every_key_is_explained_once() {
    let rows = documented();
    let paths: BTreeSet<String> = rows.iter().map(|(path, ..)| path.clone()).collect();
    assert_eq!(paths.len(), rows.len(), "a key is explained twice");
    assert_eq!(paths, known_keys());
}

#[test]
fn the_defaults_are_the_defaults() {
    let mut loaded = load(&example()).unwrap();
    let pool = loaded.pools.remove("web").unwrap();
    let targets = pool.targets.iter().map(|target| target.target.clone());
    assert_eq!(pool, PoolConfig::new(targets.collect()));
    assert!(loaded.pools.is_empty());
    loaded.file = None;
    assert_eq!(loaded, Config::default());
}

#[test]
fn the_bounds_are_the_bounds() {
    let mut tried = 0;
    for (path, kind, bounds) in documented() {
        // One bound is another key, whose default stands in the message.
        let bounds = bounds.replace("`min_ttl`", "1s");
        let bounds = bounds.replace("`base_time`", "10s");
        let Some((least, most)) = bounds.split_once(" to ") else {
            continue;
        };
        let beyond = match kind.split([' ', ',']).next().unwrap() {
            "time" => "\"1000days\"",
            "size" => "\"100GiB\"",
            "number" => "100000000000",
            "share" => "1.5",
            other => panic!("{path}: {other} has no bounds"),
        };
        let path = path.replace("NAME", "web");
        let (table, key) = path.rsplit_once('.').unwrap();
        let pool = match table {
            "pools.web" => "targets = [\"a:1\"]\n",
            _ => "[pools.web]\ntargets = [\"a:1\"]\n",
        };
        let settings = format!("[{table}]\n{key} = {beyond}\n{pool}");
        let error = load(&settings).expect_err(&path);
        let expected = format!("`{path}` must be between {least} and {most}, not ");
        assert!(error.contains(&expected), "{error} instead of {expected}");
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

/// Every program that the documentation shows loads without a warning, with the pools and tables
/// that it speaks of.
#[test]
fn programs_in_the_documentation_load() {
    let mut tried = 0;
    for document in [
        "README.md",
        "docs/from-nginx-lua.md",
        "docs/routes.md",
        "docs/authentication.md",
        "docs/bodies.md",
        "docs/limits-and-access.md",
        "docs/state-and-background.md",
        "docs/tls.md",
        "docs/upstreams.md",
    ] {
        // A block that begins with the name of a file is that file, for the blocks behind it.
        let mut files: Vec<(String, String)> = Vec::new();
        for program in blocks(&read(document), "rhai") {
            let folder = TempDir::new().unwrap();
            for (name, text) in &files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            let first = program.lines().next().unwrap_or_default();
            let name = first
                .strip_prefix("// ")
                .filter(|name| name.ends_with(".rhai"));
            files.extend(name.map(|name| (name.to_owned(), program.clone())));
            let mut settings = String::new();
            for pool in ["web", "canary", "api", "admin", "authz", "shadow"] {
                // The program may declare it by itself.
                if !program.contains(&format!("pool(\"{pool}\"")) {
                    settings += &format!("[pools.{pool}]\ntargets = [\"127.0.0.1:9001\"]\n");
                }
            }
            for (name, text) in [
                ("edgewright.toml", settings.as_str()),
                ("keys.json", "{\"secret-1\": \"alice\"}"),
                ("tenants.csv", "host,pool\nacme.example,api\n"),
                ("agents.txt", "BadBot\n"),
                (
                    "users.htpasswd",
                    "alice:{SHA}F2GPAaOiG5EcklvLUlodIavTBnM=\n",
                ),
                ("routes.rhai", &program),
            ] {
                fs::write(folder.path().join(name), text).unwrap();
            }
            match source::compile(folder.path(), &Overrides::default()) {
                Ok(compiled) => assert!(
                    compiled.warnings.is_empty(),
                    "{document}: {:?}\n{program}",
                    compiled.warnings
                ),
                Err(refused) => panic!("{document}: {}\n{program}", refused.diagnostics),
            }
            tried += 1;
        }
    }
    assert!(tried >= 5, "{tried}");
}

#[test]
fn settings_for_containers_load_and_listen_outside_of_loopback() {
    let shipped = read("deploy/image/edgewright.toml");
    let documents = ["docs/operations.md", "docs/kubernetes.md"]
        .map(read)
        .concat();
    let shown = blocks(&documents, "toml");
    assert!(!shown.is_empty());
    for settings in &shown {
        load(settings).unwrap();
    }
    let config = load(&shipped).unwrap();
    assert_eq!(config.listeners[0].address.to_string(), "0.0.0.0:8080");
    assert_eq!(config.health.unwrap().to_string(), "0.0.0.0:9181");
    assert!(config.admin.unwrap().ip().is_loopback());
    // A mounted folder hides these settings; what the image sets then counts.
    let image = read("Dockerfile");
    assert!(image.contains("EDGEWRIGHT_LISTEN=0.0.0.0:8080 EDGEWRIGHT_HEALTH=0.0.0.0:9181"));
    let image = source::compile(&repository("deploy/image"), &Overrides::default())
        .unwrap_or_else(|refused| panic!("the image's own program: {}", refused.diagnostics));
    assert!(image.warnings.is_empty(), "{:?}", image.warnings);
}

/// Words that begin with `edgewright_` between `quote` marks.
fn metrics_in(text: &str, quote: char) -> BTreeSet<String> {
    let words = text
        .split(quote)
        .filter(|word| word.starts_with("edgewright_"));
    words
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_metric_is_listed() {
    let folder = repository("core/src/metrics/exposition");
    let files = std::fs::read_dir(folder).unwrap();
    let code = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let others =
        ["exposition.rs", "health.rs"].map(|file| read(&format!("core/src/metrics/{file}")));
    let code = code.chain(others).collect::<String>();
    let code = metrics_in(&code, '"');
    assert!(code.len() > 50, "{code:?}");
    let operations = read("docs/operations.md");
    let table = operations.split("## Metrics").nth(1).unwrap();
    assert_eq!(metrics_in(table, '`'), code);
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let text = heading.trim_start_matches('#').trim().to_lowercase();
            text.replace(' ', "-")
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect()
        })
        .collect()
}

#[test]
fn links_inside_the_documentation_lead_somewhere() {
    let mut tried = 0;
    for document in [
        "README.md",
        "docs/architecture.md",
        "docs/authentication.md",
        "docs/configuration.md",
        "docs/from-nginx-lua.md",
        "docs/limits-and-access.md",
        "docs/examples.md",
        "docs/kubernetes.md",
        "docs/operations.md",
        "docs/reference.md",
        "docs/routes.md",
        "docs/bodies.md",
        "docs/state-and-background.md",
        "docs/upstreams.md",
        "examples/retries/README.md",
        "core/tests/oracle/jobs/README.md",
        "examples/cidr-gate/README.md",
        "examples/cors/README.md",
        "examples/health-checks/README.md",
        "examples/grpc/README.md",
        "examples/modules/README.md",
        "examples/pod/README.md",
        "examples/upstream-tls/README.md",
        "examples/websockets/README.md",
        "examples/quickstart/README.md",
        "examples/rate-limit/README.md",
        "examples/basic-auth/README.md",
        "examples/external-auth/README.md",
        "examples/jwt/README.md",
    ] {
        let text = read(document);
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                repository(document)
            } else {
                repository(document).parent().unwrap().join(file)
            };
            assert!(target.exists(), "{document}: there is no {file}");
            let known = || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
            assert!(anchor.is_empty() || known(), "{document}: no #{anchor}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}
