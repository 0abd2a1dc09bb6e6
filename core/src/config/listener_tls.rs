//! `[listeners.tls]`: TLS towards clients. The table is there, or the listener is plain.
//!
//! As with pools it is taken in two steps: [`take`] checks what is written, and [`Unread::read`] reads the files. A
//! certificate that can't be used is no error of the configuration as a whole: the place for it says why it is empty.
//! A start refuses that; a reload goes on with the certificate that stood there before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use edgewright_script::diagnostic::Diagnostic;
use edgewright_script::values::{FileError, Files as _};
use serde::Deserialize;
use toml::Spanned;

use super::check::Checks;
use super::error::Source;
use super::file;
use crate::certificates::{self, ServerCertificate};
use crate::files::Folder;

/// `[listeners.tls]`: what TLS is spoken with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerTls {
    /// `min_version`: the oldest version that is spoken. Default 1.2: RFC 8996 forbids what is older.
    pub min_version: TlsVersion,
    /// `certificates`: at least one, in the order written. The first is for clients that ask for no name that any is
    /// for.
    pub certificates: Vec<Slot>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V1_3,
}

/// The place of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// `cert`: the PEM file of the certificate and its chain, as it is written. By it an entry is known over reloads.
    pub cert: String,
    /// `key`: the PEM file of its key, as it is written.
    pub key: String,
    /// The certificate, or why the files can't be used.
    pub found: Result<Arc<ServerCertificate>, Diagnostic>,
}

/// What is written, before the files are read.
#[derive(Debug)]
pub(super) struct Unread {
    min_version: TlsVersion,
    /// Certificate and key.
    files: Vec<(Spanned<String>, Spanned<String>)>,
}

/// Takes the table of a listener.
pub(super) fn take(checks: &mut Checks<'_>, table: Spanned<file::ListenerTls>) -> Option<Unread> {
    let at = table.span();
    let table = table.into_inner();
    if table.certificates.is_empty() {
        checks.error_with_help(
            &at,
            "`listeners.tls.certificates` is missing: TLS needs at least one",
            "write certificates = [{ cert = \"tls/tls.crt\", key = \"tls/tls.key\" }]",
        );
        return None;
    }
    let mut known = BTreeSet::new();
    let mut files = Vec::new();
    for entry in table.certificates {
        let at = entry.span();
        let file::CertificateFiles { cert, key } = entry.into_inner();
        let (Some(cert), Some(key)) = (cert, key) else {
            checks.error_with_help(
                &at,
                "a certificate needs both of its files",
                "write { cert = \"tls/tls.crt\", key = \"tls/tls.key\" }",
            );
            continue;
        };
        if !known.insert(cert.get_ref().clone()) {
            let message = format!("`{}` is there already", cert.get_ref());
            checks.error(&cert.span(), message);
        }
        files.push((cert, key));
    }
    Some(Unread {
        min_version: table.min_version.unwrap_or_default(),
        files,
    })
}

impl Unread {
    /// Reads the files. What should be known of those that can be used goes to `warnings`.
    ///
    /// # Errors
    /// [`FileError::Changed`]: the folder was swapped meanwhile, and all of it is to be read again.
    pub(super) fn read(
        self,
        folder: &Folder,
        source: Source<'_>,
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<ListenerTls, FileError> {
        let mut reading = Reading {
            folder,
            source,
            warnings,
            shown_by: BTreeMap::new(),
        };
        let slots = self.files.into_iter().map(|(cert, key)| {
            let found = reading.certificate(&cert, &key)?.map(Arc::new);
            if let Ok(certificate) = &found {
                reading.look_at(&cert, certificate);
            }
            Ok(Slot {
                cert: cert.into_inner(),
                key: key.into_inner(),
                found,
            })
        });
        Ok(ListenerTls {
            min_version: self.min_version,
            certificates: slots.collect::<Result<_, _>>()?,
        })
    }
}

struct Reading<'r> {
    folder: &'r Folder,
    source: Source<'r>,
    warnings: &'r mut Vec<Diagnostic>,
    /// Which file has a certificate for a name, with that kind of key.
    shown_by: BTreeMap<(String, &'static str), String>,
}

impl Reading<'_> {
    fn error(&self, at: &Range<usize>, message: &str) -> Diagnostic {
        let message = format!("`listeners.tls.certificates`: {message}");
        self.source.error(at, message)
    }

    /// What a file holds; `Err` inside says why it can't be used.
    fn file<T>(
        &self,
        name: &Spanned<String>,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Result<T, Diagnostic>, FileError> {
        let content = match self.folder.read(name.get_ref()) {
            Err(FileError::Changed) => return Err(FileError::Changed),
            Err(error) => Err(error.to_string()),
            Ok(content) => {
                parse(&content).map_err(|error| format!("`{}`: {error}", name.get_ref()))
            }
        };
        Ok(content.map_err(|message| self.error(&name.span(), &message)))
    }

    /// A certificate that has not expired, with its own key.
    fn certificate(
        &self,
        cert: &Spanned<String>,
        key: &Spanned<String>,
    ) -> Result<Result<ServerCertificate, Diagnostic>, FileError> {
        // Both are read in any case: a change of either is to be noticed.
        let chain = self.file(cert, certificates::chain)?;
        let secret = self.file(key, certificates::key)?;
        let (chain, secret) = match (chain, secret) {
            (Ok(chain), Ok(secret)) => (chain, secret),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        let at = cert.span();
        Ok(match ServerCertificate::new(chain, secret) {
            Err(error) => {
                let (key, cert) = (key.get_ref(), cert.get_ref());
                Err(self.error(&at, &format!("`{cert}` with `{key}`: {error}")))
            }
            Ok(certificate) if SystemTime::now() > certificate.validity().until => {
                let until = httpdate::fmt_http_date(certificate.validity().until);
                let message = format!("`{}` has expired on {until}", cert.get_ref());
                Err(self.error(&at, &message))
            }
            Ok(certificate) => Ok(certificate),
        })
    }

    /// Warns of what will be noticed later, when it hurts.
    fn look_at(&mut self, cert: &Spanned<String>, certificate: &ServerCertificate) {
        let (at, name) = (cert.span(), cert.get_ref());
        let (validity, now) = (certificate.validity(), SystemTime::now());
        let mut warn = |message: String, help: &str| {
            let warning = self.source.warning(&at, message);
            self.warnings.push(warning.help(help));
        };
        if now < validity.from {
            let from = httpdate::fmt_http_date(validity.from);
            warn(
                format!("`{name}` counts from {from} on only"),
                "clients refuse it until then; is the clock right?",
            );
        }
        if validity.ends_soon(now) {
            let until = httpdate::fmt_http_date(validity.until);
            warn(
                format!("`{name}` expires on {until}"),
                "put a new one in its place: it is read when it changes",
            );
        }
        if certificate.names().is_empty() && certificate.addresses().is_empty() {
            warn(
                format!("`{name}` is for no name: it has no subjectAltName"),
                "clients don't look at the common name (RFC 9525)",
            );
        }
        for host in certificate.names() {
            let known = (host.to_string(), certificate.kind());
            if let Some(other) = self.shown_by.get(&known) {
                warn(
                    format!("`{name}` is not shown for {host}: `{other}` comes first"),
                    "take one of the two out",
                );
            } else {
                self.shown_by.insert(known, name.clone());
            }
        }
    }
}
