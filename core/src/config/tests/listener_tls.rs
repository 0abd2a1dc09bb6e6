//! `[listeners.tls]`: what is found when it is loaded.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use edgewright_script::diagnostic::Diagnostic;
use rcgen::{CertificateParams, KeyPair};

use super::{errors, parse};
use crate::config::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A certificate for these names that counts from and until these moments, with its key.
fn between(names: &[&str], from: SystemTime, until: SystemTime) -> (String, String) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = from.into();
    params.not_after = until.into();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn good(names: &[&str]) -> (String, String) {
    let now = SystemTime::now();
    between(names, now - 100 * DAY, now + 265 * DAY)
}

/// A folder whose listener has these certificates, `0.crt`, `1.crt` and so on.
fn folder(certificates: &[(String, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = String::from(
        "[[listeners]]\naddress = \"127.0.0.1:8443\"\n[listeners.tls]\ncertificates = [\n",
    );
    for (number, (chain, key)) in certificates.iter().enumerate() {
        settings += &format!("{{ cert = \"{number}.crt\", key = \"{number}.key\" }},\n");
        fs::write(dir.path().join(format!("{number}.crt")), chain).unwrap();
        fs::write(dir.path().join(format!("{number}.key")), key).unwrap();
    }
    settings += "]\n";
    fs::write(dir.path().join(CONFIG_FILE), settings).unwrap();
    fs::write(dir.path().join("routes.rhai"), "").unwrap();
    dir
}

fn read(dir: &Path) -> (ListenerTls, Vec<Diagnostic>) {
    let mut loaded = load(dir, &Overrides::default()).unwrap();
    let tls = loaded.config.listeners.remove(0).tls.unwrap();
    (tls, loaded.warnings)
}

fn problem(dir: &Path) -> String {
    let (tls, _) = read(dir);
    tls.certificates[0].found.clone().unwrap_err().summary()
}

#[test]
fn the_names_come_from_the_certificate() {
    let dir = folder(&[good(&["a.test", "*.A.test", "192.0.2.1", "2001:db8::1"])]);
    let (tls, warnings) = read(dir.path());
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(tls.min_version, TlsVersion::V1_2);
    let found = tls.certificates[0].found.clone().unwrap();
    let names: Vec<_> = found.names().iter().map(|name| &**name).collect();
    assert_eq!(names, ["a.test", "*.a.test"]);
    let addresses: Vec<_> = found.addresses().iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["192.0.2.1", "2001:db8::1"]);
    assert_eq!(found.kind(), "ECDSA");
}

#[test]
fn both_files_belong_to_the_revision_also_when_they_can_t_be_used() {
    let dir = folder(&[good(&["a.test"])]);
    fs::write(dir.path().join("0.crt"), "nothing").unwrap();
    let loaded = load(dir.path(), &Overrides::default()).unwrap();
    for name in ["0.crt", "0.key"] {
        let path = dir.path().join(name);
        let old = fs::read(&path).unwrap();
        assert!(loaded.folder.fingerprint().is_current(dir.path()));
        fs::write(&path, "other").unwrap();
        assert!(
            !loaded.folder.fingerprint().is_current(dir.path()),
            "{name}"
        );
        fs::write(&path, old).unwrap();
    }
}

#[test]
fn what_can_t_be_used_is_told_with_its_place_and_stops_no_other() {
    let (own, other) = (good(&["a.test"]), good(&["b.test"]));
    let now = SystemTime::now();
    let expired = between(&["a.test"], now - 30 * DAY, now - DAY);
    let broken = own.0.replace("-----END", "AAAA\n-----END");
    for (file, content, expected) in [
        (
            "0.crt",
            "hello",
            "5:10: error: `listeners.tls.certificates`: `0.crt`: there is no certificate in it",
        ),
        (
            "0.key",
            "hello",
            "5:25: error: `listeners.tls.certificates`: `0.key`: there is no private key",
        ),
        (
            "0.key",
            &other.1,
            "5:10: error: `listeners.tls.certificates`: `0.crt` with `0.key`: the key is not that of the first certificate",
        ),
        (
            "0.crt",
            &broken,
            "5:10: error: `listeners.tls.certificates`: `0.crt`",
        ),
        // The chain in the wrong order.
        (
            "0.crt",
            &[&other.0[..], &own.0].concat(),
            "the key is not that of the first certificate",
        ),
    ] {
        let dir = folder(&[own.clone(), other.clone()]);
        fs::write(dir.path().join(file), content).unwrap();
        let found = problem(dir.path());
        assert!(
            found.contains(expected),
            "{found}\n  instead of\n{expected}"
        );
        assert!(read(dir.path()).0.certificates[1].found.is_ok());
    }
    assert!(problem(folder(&[expired]).path()).contains("`0.crt` has expired on"));
    let dir = folder(&[own]);
    fs::remove_file(dir.path().join("0.key")).unwrap();
    assert!(problem(dir.path()).contains("0.key"));
}

#[test]
fn what_will_hurt_later_is_a_warning() {
    let now = SystemTime::now();
    let warnings = |certificates: &[(String, String)]| {
        let (_, warnings) = read(folder(certificates).path());
        let all: Vec<_> = warnings.iter().map(Diagnostic::summary).collect();
        all.join("\n")
    };
    for (certificates, expected) in [
        (
            vec![between(&["a.test"], now + DAY, now + 100 * DAY)],
            "5:10: warning: `0.crt` counts from",
        ),
        (
            vec![between(&["a.test"], now - 80 * DAY, now + 5 * DAY)],
            "`0.crt` expires on",
        ),
        (vec![good(&[])], "`0.crt` is for no name"),
        (
            vec![good(&["a.test"]), good(&["b.test", "A.test"])],
            "6:10: warning: `1.crt` is not shown for a.test: `0.crt` comes first",
        ),
    ] {
        let found = warnings(&certificates);
        assert!(
            found.contains(expected),
            "{found:?}\n  instead of\n{expected}"
        );
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

#[test]
fn a_swap_in_between_starts_again() {
    let dir = folder(&[good(&["a.test"])]);
    let certificate = dir.path().join("0.crt");
    let mut opened = 0;
    let loaded = super::super::load::attempt_with(dir.path(), &Overrides::default(), |path| {
        opened += 1;
        let folder = crate::files::Folder::open(path, &[])?;
        if opened == 1 {
            // What was read first is no longer what stands there.
            let _ = edgewright_script::values::Files::read(&folder, "0.crt");
            fs::write(&certificate, good(&["b.test"]).0)?;
        }
        Ok(folder)
    });
    assert!(loaded.is_ok());
    assert_eq!(opened, 2);
}

#[test]
fn the_table_is_checked() {
    let of = |tls: &str| {
        errors(&format!(
            "[[listeners]]\naddress = \"127.0.0.1:8443\"\n[listeners.tls]\n{tls}"
        ))
    };
    for (tls, expected) in [
        ("", "3:1: `listeners.tls.certificates` is missing"),
        (
            "certificates = []",
            "3:1: `listeners.tls.certificates` is missing",
        ),
        (
            "certificates = [{ cert = \"a\" }]",
            "4:17: a certificate needs both of its files",
        ),
        (
            "certificates = [{ key = \"a\" }]",
            "4:17: a certificate needs both of its files",
        ),
        (
            "certificates = [{ cert = \"a\", keys = \"b\" }]",
            "unknown key `keys` (did you mean `key`?)",
        ),
        (
            "certificates = [{ cert = \"a\", key = \"b\" }, { cert = \"a\", key = \"c\" }]",
            "4:53: `a` is there already",
        ),
        ("min_version = \"1.1\"", "unknown value `1.1`"),
        (
            "min_versoin = \"1.3\"",
            "unknown key `min_versoin` (did you mean `min_version`?)",
        ),
    ] {
        let found = of(tls);
        assert!(
            found.contains(expected),
            "{found}\n  instead of\n{expected}"
        );
    }
}

#[test]
fn http2_is_offered_with_tls_unless_it_is_turned_off() {
    for (http2, expected) in [
        ("", true),
        ("http2 = true\n", true),
        ("http2 = false\n", false),
    ] {
        let text = format!(
            "[[listeners]]\naddress = \"127.0.0.1:8443\"\n{http2}\
             [listeners.tls]\ncertificates = [{{ cert = \"a\", key = \"b\" }}]\n"
        );
        assert_eq!(parse(&text).unwrap().listeners[0].http2, expected);
    }
    let plain = parse("[[listeners]]\naddress = \"127.0.0.1:8080\"\n").unwrap();
    assert!(!plain.listeners[0].http2);
}

#[test]
fn a_listener_of_the_command_line_is_plain() {
    let dir = folder(&[good(&["a.test"])]);
    fs::remove_file(dir.path().join("0.crt")).unwrap();
    let overrides = Overrides {
        listen: vec!["127.0.0.1:7001".parse().unwrap()],
        ..Overrides::default()
    };
    let loaded = load(dir.path(), &overrides).unwrap();
    assert_eq!(loaded.config.listeners.len(), 1);
    assert!(loaded.config.listeners[0].tls.is_none());
}
