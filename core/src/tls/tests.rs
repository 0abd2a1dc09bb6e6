#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use rustls::SignatureScheme as Scheme;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::*;
use crate::config::{CONFIG_FILE, Overrides, load};

/// Certificate and key, as PEM.
fn pair(names: &[&str], key: &KeyPair) -> (String, String) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let params = CertificateParams::new(names).unwrap();
    (params.self_signed(key).unwrap().pem(), key.serialize_pem())
}

fn ecdsa(names: &[&str]) -> (String, String) {
    pair(names, &KeyPair::generate().unwrap())
}

fn rsa(names: &[&str]) -> (String, String) {
    let key = include_str!("../../tests/support/rsa.key");
    pair(names, &KeyPair::from_pem(key).unwrap())
}

fn certificate((chain, key): &(String, String)) -> Arc<ServerCertificate> {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    Arc::new(ServerCertificate::new(chain.map(Result::unwrap).collect(), key).unwrap())
}

/// Which of the certificates a client gets.
fn found(all: &[Arc<ServerCertificate>], name: &str, schemes: &[Scheme]) -> usize {
    let names = Names::new(all.to_vec());
    let name = Some(name).filter(|name| !name.is_empty());
    let found = names.find(name, schemes).unwrap();
    all.iter().position(|one| one == found).unwrap()
}

const BOTH: [Scheme; 2] = [Scheme::RSA_PSS_SHA256, Scheme::ECDSA_NISTP256_SHA256];

#[test]
fn exact_names_come_before_wildcards_and_those_before_the_first() {
    let all = [
        certificate(&ecdsa(&["First.test"])),
        certificate(&ecdsa(&["*.b.test", "*.deep.b.test"])),
        certificate(&ecdsa(&["x.b.test", "b.test"])),
    ];
    for (name, expected) in [
        ("first.test", 0),
        ("x.b.test", 2),
        ("b.test", 2),
        ("y.b.test", 1),
        ("Y.B.Test", 1),
        ("y.b.test.", 1),
        ("z.y.b.test", 0),
        ("z.deep.b.test", 1),
        // The label of a wildcard is no label.
        ("*.b.test", 1),
        (".b.test", 1),
        ("test", 0),
        ("", 0),
    ] {
        assert_eq!(found(&all, name, &BOTH), expected, "{name:?}");
    }
}

#[test]
fn what_a_client_can_check_comes_first_and_rsa_last() {
    let names = ["a.test", "*.a.test"];
    let all = [
        certificate(&rsa(&names)),
        certificate(&ecdsa(&names)),
        certificate(&ecdsa(&["*.b.test"])),
        certificate(&rsa(&["x.b.test"])),
    ];
    for name in ["a.test", "w.a.test", "unknown.test", ""] {
        assert_eq!(found(&all, name, &BOTH), 1, "{name}");
        assert_eq!(found(&all, name, &BOTH[..1]), 0, "{name}");
        assert_eq!(found(&all, name, &BOTH[1..]), 1, "{name}");
    }
    // The more exact one, where the client can check it.
    assert_eq!(found(&all, "x.b.test", &BOTH), 3);
    assert_eq!(found(&all, "x.b.test", &BOTH[1..]), 2);
    // Nothing fits: the handshake has to say so.
    assert_eq!(found(&all, "x.b.test", &[Scheme::ED448]), 3);
    assert!(Names::new(Vec::new()).find(None, &BOTH).is_none());
}

const SETTINGS: &str = "[[listeners]]\naddress = \"127.0.0.1:8443\"\n[listeners.tls]\n\
    certificates = [{ cert = \"a.crt\", key = \"a.key\" }, { cert = \"b.crt\", key = \"b.key\" }]\n";

fn put(dir: &Path, name: &str, (chain, key): &(String, String)) {
    fs::write(dir.join(format!("{name}.crt")), chain).unwrap();
    fs::write(dir.join(format!("{name}.key")), key).unwrap();
}

fn folder(a: &(String, String), b: &(String, String)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(CONFIG_FILE), SETTINGS).unwrap();
    fs::write(dir.path().join("routes.rhai"), "").unwrap();
    put(dir.path(), "a", a);
    put(dir.path(), "b", b);
    dir
}

fn build(dir: &Path, previous: Option<&TlsListeners>) -> Result<TlsListeners, Diagnostics> {
    let loaded = load(dir, &Overrides::default()).unwrap();
    TlsListeners::build(&loaded.config, previous)
}

fn server(listeners: &TlsListeners) -> &Arc<ServerConfig> {
    let address = "127.0.0.1:8443".parse().unwrap();
    listeners.server(address).unwrap()
}

#[test]
fn what_did_not_change_is_carried_over_with_its_tickets() {
    let (a, b) = (ecdsa(&["a.test"]), ecdsa(&["b.test"]));
    let dir = folder(&a, &b);
    let first = build(dir.path(), None).unwrap();
    let second = build(dir.path(), Some(&first)).unwrap();
    assert!(Arc::ptr_eq(server(&first), server(&second)));
    put(dir.path(), "b", &ecdsa(&["b.test"]));
    let third = build(dir.path(), Some(&second)).unwrap();
    assert!(!Arc::ptr_eq(server(&second), server(&third)));
    assert!(third.problems().is_empty());
}

#[test]
fn a_place_keeps_what_it_had_over_any_number_of_generations() {
    let (a, b) = (ecdsa(&["a.test"]), ecdsa(&["b.test"]));
    let dir = folder(&a, &b);
    let first = build(dir.path(), None).unwrap();
    fs::write(dir.path().join("b.key"), &a.1).unwrap();
    let second = build(dir.path(), Some(&first)).unwrap();
    fs::remove_file(dir.path().join("b.crt")).unwrap();
    let third = build(dir.path(), Some(&second)).unwrap();
    assert!(Arc::ptr_eq(server(&first), server(&third)));
    let samples = third.samples();
    assert!(!samples[0].failed && samples[1].failed, "{samples:?}");
    assert!(samples[1].not_after.is_some());
    let problems = third.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with(
            "certificate not used listener=127.0.0.1:8443 file=b.crt: the one before goes on: \
             edgewright.toml:4:"
        ),
        "{problems:?}"
    );
    // At a start there is nothing that could be kept.
    let found = build(dir.path(), None).unwrap_err().to_string();
    assert!(found.contains("`b.crt`"), "{found}");
}

#[test]
fn a_listener_without_any_certificate_is_refused() {
    let (a, b) = (ecdsa(&["a.test"]), ecdsa(&["b.test"]));
    let dir = folder(&a, &b);
    let first = build(dir.path(), None).unwrap();
    let others = SETTINGS.replace("a.crt", "c.crt").replace("b.crt", "d.crt");
    fs::write(dir.path().join(CONFIG_FILE), others).unwrap();
    let found = build(dir.path(), Some(&first)).unwrap_err().to_string();
    assert!(
        found.contains("`c.crt`") && found.contains("`d.crt`"),
        "{found}"
    );
    // One of them is enough.
    put(dir.path(), "d", &b);
    fs::write(dir.path().join("b.key"), &b.1).unwrap();
    let second = build(dir.path(), Some(&first)).unwrap();
    assert_eq!(second.status()[0].names.len(), 0);
    assert!(second.problems()[0].contains("it is left out"));
}

#[test]
fn a_listener_that_is_open_goes_on_and_one_that_never_was_does_not() {
    let (a, b) = (ecdsa(&["a.test"]), ecdsa(&["b.test"]));
    let dir = folder(&a, &b);
    let first = build(dir.path(), None).unwrap();
    let settings = |port: &str| {
        let text = SETTINGS.replace("8443", port);
        fs::write(dir.path().join(CONFIG_FILE), text).unwrap();
    };
    settings("9443");
    let second = build(dir.path(), Some(&first)).unwrap();
    assert!(Arc::ptr_eq(server(&first), server(&second)));
    settings("10443");
    let third = build(dir.path(), Some(&second)).unwrap();
    let never = "127.0.0.1:9443".parse().unwrap();
    assert!(second.server(never).is_some() && third.server(never).is_none());
    assert!(Arc::ptr_eq(server(&first), server(&third)));
}
