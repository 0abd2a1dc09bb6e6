//! Certificates that a test makes for itself: an authority and what it signs.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An authority of a test's own.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Issued {
    pub chain: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Its own certificate, as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these host names and IP addresses.
    pub fn issue(&self, names: &[&str]) -> Issued {
        self.issue_until(
            names,
            SystemTime::now() + Duration::from_secs(365 * 24 * 3600),
        )
    }

    /// The same, which counts from a year before that moment until then.
    pub fn issue_until(&self, names: &[&str], until: SystemTime) -> Issued {
        self.sign(names, until, &KeyPair::generate().unwrap())
    }

    /// The same with a key of RSA, always the same one: making one takes seconds.
    pub fn issue_rsa(&self, names: &[&str]) -> Issued {
        let key = KeyPair::from_pem(include_str!("rsa.key")).unwrap();
        let until = SystemTime::now() + Duration::from_secs(365 * 24 * 3600);
        self.sign(names, until, &key)
    }

    fn sign(&self, names: &[&str], until: SystemTime, key: &KeyPair) -> Issued {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = until.into();
        params.not_before = (until - Duration::from_secs(365 * 24 * 3600)).into();
        let certificate = params.signed_by(key, &self.0).unwrap();
        Issued {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}
