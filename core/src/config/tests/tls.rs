//! `[pools.NAME.tls]`: what is found when it is loaded.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};

use super::errors;
use crate::config::*;

const AUTHORITY: &str = include_str!("../../outbound/tests/certificates/authority.pem");
const CERTIFICATE: &str = include_str!("../../outbound/tests/certificates/server.pem");
const KEY: &str = include_str!("../../outbound/tests/certificates/server.key");

/// A folder whose pool has this table.
fn folder(tls: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let settings = format!(
        "[pools.web]\ntargets = [\"web.test:443\"]\n[pools.web.tls]\nca = \"ca.pem\"\n{tls}\n"
    );
    for (name, content) in [
        (CONFIG_FILE, settings.as_str()),
        ("routes.rhai", ""),
        ("ca.pem", AUTHORITY),
        ("edge.pem", CERTIFICATE),
        ("edge.key", KEY),
    ] {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

const OWN: &str = "certificate = \"edge.pem\"\nkey = \"edge.key\"";

fn tls(dir: &Path) -> std::sync::Arc<Tls> {
    let mut loaded = load(dir, &Overrides::default()).unwrap();
    loaded.config.pools.remove("web").unwrap().tls.unwrap()
}

fn refused(dir: &Path) -> String {
    load(dir, &Overrides::default()).unwrap_err().to_string()
}

/// A certificate of its own authority that ends then, with its key.
fn until(moment: SystemTime) -> (String, String) {
    let mut params = CertificateParams::new(vec!["edge.test".to_owned()]).unwrap();
    params.not_before = (moment - Duration::from_secs(365 * 24 * 3600)).into();
    params.not_after = moment.into();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[test]
fn the_files_are_read_and_belong_to_the_revision() {
    let dir = folder(OWN);
    let before = tls(dir.path());
    assert_eq!(before.server_name(), "web.test");
    assert!(before.verify() && before.identity().is_some());
    assert_eq!(before.authorities().len(), 1);
    assert_eq!(before, tls(dir.path()), "nothing has changed");

    let fingerprint = load(dir.path(), &Overrides::default()).unwrap();
    let fingerprint = fingerprint.folder.fingerprint();
    for (name, content) in [
        ("ca.pem", AUTHORITY.repeat(2)),
        ("edge.pem", CERTIFICATE.repeat(2)),
    ] {
        let path = dir.path().join(name);
        let old = fs::read(&path).unwrap();
        fs::write(&path, content).unwrap();
        assert!(!fingerprint.is_current(dir.path()), "{name}");
        let after = tls(dir.path());
        assert_ne!(before, after, "{name}");
        assert_ne!(
            before.key(),
            after.key(),
            "{name}: connections are not shared"
        );
        fs::write(&path, old).unwrap();
    }
}

#[test]
fn what_is_wrong_with_the_files_is_told_with_its_place() {
    let (_, other) = until(SystemTime::now() + Duration::from_secs(3600));
    for (file, content, expected) in [
        (
            "ca.pem",
            "hello",
            "4:6: error: `pools.web.tls.ca`: `ca.pem`: there is no certificate in it",
        ),
        (
            "edge.key",
            CERTIFICATE,
            "6:7: error: `pools.web.tls.key`: `edge.key`: there is no private key",
        ),
        (
            "edge.key",
            &other,
            "5:15: error: `pools.web.tls.certificate`: `edge.key` does not fit `edge.pem`",
        ),
    ] {
        let dir = folder(OWN);
        fs::write(dir.path().join(file), content).unwrap();
        let found = refused(dir.path());
        assert!(
            found.contains(expected),
            "{found}\n  instead of\n{expected}"
        );
    }
    let dir = folder(OWN);
    fs::remove_file(dir.path().join("edge.pem")).unwrap();
    fs::remove_file(dir.path().join("ca.pem")).unwrap();
    let found = refused(dir.path());
    assert!(
        found.contains("tls.ca`") && found.contains("tls.certificate`"),
        "both: {found}"
    );

    let outside = folder("certificate = \"/etc/edge.pem\"\nkey = \"../edge.key\"");
    let found = refused(outside.path());
    assert!(
        found.contains("/etc/edge.pem") && found.contains("../edge.key"),
        "{found}"
    );
}

#[test]
fn an_end_in_the_past_is_an_error_and_a_near_one_a_warning() {
    let day = Duration::from_secs(24 * 3600);
    let now = SystemTime::now();
    let with = |moment| {
        let dir = folder(OWN);
        let (certificate, key) = until(moment);
        fs::write(dir.path().join("edge.pem"), certificate).unwrap();
        fs::write(dir.path().join("edge.key"), key).unwrap();
        dir
    };
    assert!(refused(with(now - day).path()).contains("`edge.pem` has expired on "));
    let soon = load(with(now + 2 * day).path(), &Overrides::default()).unwrap();
    assert!(
        soon.warnings[0]
            .summary()
            .contains("`edge.pem` expires on ")
    );
    let later = load(with(now + 30 * day).path(), &Overrides::default()).unwrap();
    assert!(later.warnings.is_empty());
}

#[test]
fn verify_false_is_warned_about() {
    let dir = folder("");
    let settings = "[pools.web]\ntargets = [\"web.test:443\"]\n[pools.web.tls]\nverify = false\n";
    fs::write(dir.path().join(CONFIG_FILE), settings).unwrap();
    let loaded = load(dir.path(), &Overrides::default()).unwrap();
    let warning = loaded.warnings[0].summary();
    assert!(
        warning.starts_with("edgewright.toml:4:10: warning: `verify = false`"),
        "{warning}"
    );
    assert!(!loaded.config.pools["web"].tls.as_ref().unwrap().verify());
}

#[test]
fn what_does_not_go_together_is_told() {
    let with = |targets: &str, tls: &str| {
        errors(&format!(
            "[pools.web]\ntargets = [{targets}]\n[pools.web.tls]\n{tls}"
        ))
    };
    let name = "\"web.test:443\"";
    for (targets, tls, expected) in [
        (
            "\"10.0.0.1:443\"",
            "",
            "3:1: `pools.web.tls.server_name` is missing",
        ),
        (
            "\"unix:/run/a\"",
            "",
            "3:1: `pools.web.tls.server_name` is missing",
        ),
        (
            "\"a.test:1\", \"b.test:1\"",
            "",
            "3:1: `pools.web.tls.server_name` is missing",
        ),
        (
            name,
            "server_name = \"\"",
            "4:15: \"\" is no name that a certificate can be for",
        ),
        (
            name,
            "server_name = \"a:443\"",
            "4:15: \"a:443\" is no name",
        ),
        (
            name,
            "verify = false\nca = \"ca.pem\"",
            "5:6: `pools.web.tls.ca` does nothing with `verify = false`",
        ),
        (
            name,
            "certificate = \"a.pem\"",
            "4:15: `pools.web.tls.key` is missing",
        ),
        (
            name,
            "key = \"a.key\"",
            "4:7: `pools.web.tls.certificate` is missing",
        ),
        (
            name,
            "cert = \"a.pem\"",
            "4:1: unknown key `cert` (did you mean `certificate`?)",
        ),
    ] {
        let found = with(targets, tls);
        assert!(
            found.starts_with(expected),
            "{found}\n  instead of\n{expected}"
        );
    }
    let auto = errors("[pools.web]\ntargets = [\"a:1\"]\nprotocol = \"auto\"");
    assert!(
        auto.starts_with("3:12: `pools.web.protocol` can't be \"auto\" without TLS"),
        "{auto}"
    );
}

#[test]
fn names_in_several_spellings_are_one() {
    let dir = folder("");
    let settings = "[pools.web]\ntargets = [\"Web.test:1\", \"web.test.:2\"]\n[pools.web.tls]\nca = \"ca.pem\"";
    fs::write(dir.path().join(CONFIG_FILE), settings).unwrap();
    assert_eq!(tls(dir.path()).server_name(), "web.test");
}
