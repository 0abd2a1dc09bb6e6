//! The authorities that the system trusts.

use pingora_core::tls::{RootCertStore, load_native_certs};

use super::{Authorities, wrap};

/// The system's root certificates, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name. Reads files: not for
/// workers.
///
/// # Errors
/// When they can't be read, or there are none.
pub fn system() -> Result<Authorities, String> {
    let found = load_native_certs()
        .map_err(|error| format!("the system's root certificates can't be read: {error}"))?;
    let mut store = RootCertStore::empty();
    let usable = found.into_iter().filter_map(|der| {
        // Some systems have a few that can't be used; the others count.
        store.add(der.clone()).ok()?;
        wrap(der.to_vec()).ok()
    });
    let authorities: Authorities = usable.collect();
    if authorities.is_empty() {
        return Err("the system has no root certificates".to_owned());
    }
    Ok(authorities)
}
