//! `[pools.NAME.tls]`: TLS towards the targets. The table is there, or they are called in plain.
//!
//! It is taken in two steps: [`take`] checks what is written, and [`Unread::read`] reads the files that it
//! names, once the folders that may be read are known. The files belong to the generation's revision as
//! every other file does: one that changes makes a new generation, with new connections.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use edgewright_script::diagnostic::Diagnostic;
use edgewright_script::values::{FileError, Files as _};
use pingora_core::tls::ServerName;
use pingora_core::utils::tls::CertKey;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use toml::Spanned;

use super::{PoolTarget, Target};
use crate::certificates::{self, Authorities, Validity};
use crate::config::check::Checks;
use crate::config::error::Source;
use crate::files::Folder;

/// How the targets of a pool are called over TLS, with all that it takes. Two are equal when their
/// settings and the contents of their files are.
pub struct Tls {
    server_name: String,
    verify: bool,
    authorities: Authorities,
    identity: Option<Arc<CertKey>>,
    /// Over all of it.
    digest: [u8; 32],
}

impl Tls {
    /// The name that is sent (SNI), and that the server's certificate must be valid for. Never empty:
    /// Pingora takes that for "don't verify".
    #[must_use]
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Whether the server's certificate is looked at.
    #[must_use]
    pub fn verify(&self) -> bool {
        self.verify
    }

    /// Who may have signed the server's certificate. Never empty.
    #[must_use]
    pub fn authorities(&self) -> &Authorities {
        &self.authorities
    }

    /// Certificate and key of the proxy itself.
    #[must_use]
    pub fn identity(&self) -> Option<&Arc<CertKey>> {
        self.identity.as_ref()
    }

    /// When the certificate of the proxy itself ends to count.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        let identity = self.identity.as_ref()?;
        Some(Validity::of(identity.leaf()).until)
    }

    /// A number that differs where anything in it does. Connections that were made with other settings,
    /// or with files that have changed since, must not be used for these.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.digest[..8]);
        u64::from_be_bytes(first)
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Tls {}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .field("verify", &self.verify)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct Table {
    server_name: Option<Spanned<String>>,
    verify: Option<Spanned<bool>>,
    ca: Option<Spanned<String>>,
    certificate: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
}

/// What is written, before the files are read.
#[derive(Debug, Clone)]
pub(in crate::config) struct Unread {
    /// As in `pools.web.tls`.
    prefix: String,
    at: Range<usize>,
    server_name: String,
    /// Where `verify = false` stands.
    unverified: Option<Range<usize>>,
    ca: Option<Spanned<String>>,
    pair: Option<(Spanned<String>, Spanned<String>)>,
}

/// Takes the table of the pool whose keys begin with `prefix`.
pub(super) fn take(
    checks: &mut Checks<'_>,
    prefix: &str,
    table: Spanned<Table>,
    targets: &[PoolTarget],
) -> Option<Unread> {
    let at = table.span();
    let table = table.into_inner();
    let prefix = format!("{prefix}.tls");
    let server_name = server_name(checks, &prefix, &at, table.server_name, targets);
    let unverified = table.verify.filter(|verify| !verify.get_ref());
    if let (Some(_), Some(ca)) = (&unverified, &table.ca) {
        checks.error_with_help(
            &ca.span(),
            format!("`{prefix}.ca` does nothing with `verify = false`"),
            "take one of the two out",
        );
    }
    let pair = match (table.certificate, table.key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(one), None) => {
            checks.error(
                &one.span(),
                format!("`{prefix}.key` is missing: where its key is"),
            );
            None
        }
        (None, Some(one)) => {
            let message = format!("`{prefix}.certificate` is missing: what the key is for");
            checks.error(&one.span(), message);
            None
        }
    };
    Some(Unread {
        prefix,
        at,
        server_name: server_name?,
        unverified: unverified.map(|verify| verify.span()),
        ca: table.ca,
        pair,
    })
}

/// The name that is written, or that of the targets.
fn server_name(
    checks: &mut Checks<'_>,
    prefix: &str,
    at: &Range<usize>,
    given: Option<Spanned<String>>,
    targets: &[PoolTarget],
) -> Option<String> {
    if let Some(given) = given {
        let name = given.get_ref();
        if ServerName::try_from(name.as_str()).is_ok() {
            return Some(name.clone());
        }
        checks.error_with_help(
            &given.span(),
            format!("{name:?} is no name that a certificate can be for"),
            "write a host name, without a port, or an IP address",
        );
        return None;
    }
    let names: BTreeSet<Option<String>> = targets.iter().map(|one| host(&one.target)).collect();
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(Some(name)), None) if ServerName::try_from(name.as_str()).is_ok() => Some(name),
        // That there are no targets has been said.
        (None, _) => None,
        _ => {
            checks.error_with_help(
                at,
                format!("`{prefix}.server_name` is missing: the targets don't all have one name"),
                "write the name that the certificates of all targets are for",
            );
            None
        }
    }
}

/// The host of a target that is a name, as certificates have it.
fn host(target: &Target) -> Option<String> {
    match target {
        Target::Name { host, .. } => Some(host.trim_end_matches('.').to_ascii_lowercase()),
        _ => None,
    }
}

impl Unread {
    /// Reads the files. What is wrong, and what should be known, goes to `found`; `None` with at least one
    /// error there.
    ///
    /// # Errors
    /// [`FileError::Changed`]: the folder was swapped meanwhile, and all of it is to be read again.
    pub(in crate::config) fn read(
        self,
        folder: &Folder,
        source: Source<'_>,
        found: &mut Vec<Diagnostic>,
    ) -> Result<Option<Tls>, FileError> {
        let mut reading = Reading {
            folder,
            source,
            prefix: &self.prefix,
            found,
        };
        if let Some(at) = &self.unverified {
            reading.warn(
                at,
                "`verify = false`: whoever stands between here and the targets can read and change everything".to_owned(),
                "name the authority of their certificates with `ca`",
            );
        }
        let authorities = match (&self.unverified, &self.ca) {
            (Some(_), _) => reading.noted(&self.at, "verify", certificates::nobody()),
            (None, Some(ca)) => reading.file("ca", ca, certificates::authorities)?,
            (None, None) => {
                let system = certificates::system();
                reading.noted(
                    &self.at,
                    "ca",
                    system.map_err(|error| {
                        format!("{error}; install `ca-certificates`, or name a file with `ca`")
                    }),
                )
            }
        };
        let (identity, complete) = match &self.pair {
            None => (None, true),
            Some((certificate, key)) => {
                let identity = reading.identity(certificate, key)?;
                let complete = identity.is_some();
                (identity, complete)
            }
        };
        Ok(authorities.filter(|_| complete).map(|authorities| {
            let mut tls = Tls {
                server_name: self.server_name,
                verify: self.unverified.is_none(),
                authorities,
                identity,
                digest: [0; 32],
            };
            tls.digest = digest(&tls);
            tls
        }))
    }
}

fn digest(tls: &Tls) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(tls.server_name.as_bytes());
    part(&[u8::from(tls.verify)]);
    for authority in &*tls.authorities {
        part(authority.borrow_raw_cert());
    }
    // An authority more, or a certificate less, must not come out the same.
    part(b"identity");
    if let Some(identity) = &tls.identity {
        part(identity.leaf().borrow_raw_cert());
        for certificate in identity.intermediates() {
            part(certificate.borrow_raw_cert());
        }
        part(identity.key());
    }
    hash.finalize().into()
}

struct Reading<'r> {
    folder: &'r Folder,
    source: Source<'r>,
    prefix: &'r str,
    found: &'r mut Vec<Diagnostic>,
}

impl Reading<'_> {
    fn warn(&mut self, at: &Range<usize>, message: String, help: &str) {
        self.found.push(self.source.warning(at, message).help(help));
    }

    /// A value, or why there is none, noted.
    fn noted<T>(&mut self, at: &Range<usize>, key: &str, value: Result<T, String>) -> Option<T> {
        value
            .map_err(|error| {
                let message = format!("`{}.{key}`: {error}", self.prefix);
                self.found.push(self.source.error(at, message));
            })
            .ok()
    }

    /// What a file holds.
    fn file<T>(
        &mut self,
        key: &str,
        name: &Spanned<String>,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>, FileError> {
        let content = match self.folder.read(name.get_ref()) {
            Err(FileError::Changed) => return Err(FileError::Changed),
            Err(error) => Err(error.to_string()),
            Ok(content) => {
                parse(&content).map_err(|error| format!("`{}`: {error}", name.get_ref()))
            }
        };
        Ok(self.noted(&name.span(), key, content))
    }

    /// A certificate that counts now, with its own key.
    fn identity(
        &mut self,
        certificate: &Spanned<String>,
        key: &Spanned<String>,
    ) -> Result<Option<Arc<CertKey>>, FileError> {
        let chain = self.file("certificate", certificate, certificates::chain)?;
        let secret = self.file("key", key, certificates::key)?;
        let (Some(chain), Some(secret)) = (chain, secret) else {
            return Ok(None);
        };
        let pair = certificates::pair(chain, secret).map_err(|error| {
            format!(
                "`{}` does not fit `{}`: {error}",
                key.get_ref(),
                certificate.get_ref()
            )
        });
        let at = certificate.span();
        let Some(pair) = self.noted(&at, "certificate", pair) else {
            return Ok(None);
        };
        let (validity, now) = (Validity::of(pair.leaf()), SystemTime::now());
        let until = httpdate::fmt_http_date(validity.until);
        if now > validity.until {
            let expired = format!("`{}` has expired on {until}", certificate.get_ref());
            return Ok(self.noted(&at, "certificate", Err(expired)));
        }
        if validity.ends_soon(now) {
            let message = format!("`{}` expires on {until}", certificate.get_ref());
            self.warn(
                &at,
                message,
                "put a new one in its place: it is read when it changes",
            );
        }
        Ok(Some(pair))
    }
}
