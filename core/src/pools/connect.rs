//! Why a connection to an upstream could not be made.

use std::error::Error as StdError;
use std::io;

use pingora_error::{Error, ErrorType};

use crate::metrics::ConnectFailure;

// The standard library has no name for these two; the numbers are the same on Linux, macOS and
// the BSDs.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// Sorts an error that Pingora's `fail_to_connect` gets by its reason.
///
/// Pingora reports a lack of local ports (`EADDRNOTAVAIL`) as `BindError` and a lack of file
/// descriptors as `SocketError`, both wrapped in an `InternalError`; the system's own error is at
/// the end of the chain of causes.
pub fn classify_connect_error(error: &Error) -> ConnectFailure {
    if let Some(cause) = system_error(error) {
        match (cause.kind(), cause.raw_os_error()) {
            (_, Some(EMFILE | ENFILE)) => return ConnectFailure::FdExhausted,
            (io::ErrorKind::AddrNotAvailable, _) => return ConnectFailure::PortExhausted,
            _ => {}
        }
    }
    match error.root_etype() {
        ErrorType::ConnectRefused => ConnectFailure::Refused,
        ErrorType::ConnectTimedout => ConnectFailure::Timeout,
        ErrorType::BindError => ConnectFailure::PortExhausted,
        ErrorType::TLSHandshakeFailure
        | ErrorType::TLSHandshakeTimedout
        | ErrorType::InvalidCert => ConnectFailure::Tls,
        _ => ConnectFailure::Other,
    }
}

/// The system's own error, at the end of the chain of causes.
pub(crate) fn system_error(error: &Error) -> Option<&io::Error> {
    let mut cause: &(dyn StdError + 'static) = error.root_cause();
    loop {
        if let Some(found) = cause.downcast_ref::<io::Error>() {
            return Some(found);
        }
        cause = cause.source()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora_error::{BError, ErrorType::*};

    fn caused(outer: Option<ErrorType>, inner: ErrorType, cause: io::Error) -> BError {
        let error = Error::because(inner, "connecting", cause);
        match outer {
            Some(outer) => Error::because(outer, "Fail to connect", error),
            None => error,
        }
    }

    #[test]
    fn reasons_are_told_apart() {
        let os = io::Error::from_raw_os_error;
        let kind = |kind| io::Error::from(kind);
        let no_port = caused(
            Some(InternalError),
            BindError,
            kind(io::ErrorKind::AddrNotAvailable),
        );
        let no_file = caused(Some(InternalError), SocketError, os(EMFILE));
        let no_file_for_unix = caused(None, ConnectError, os(ENFILE));
        let refused = caused(None, ConnectRefused, kind(io::ErrorKind::ConnectionRefused));
        for (error, expected) in [
            (no_port, ConnectFailure::PortExhausted),
            (no_file, ConnectFailure::FdExhausted),
            (no_file_for_unix, ConnectFailure::FdExhausted),
            (refused, ConnectFailure::Refused),
            (Error::new(ConnectTimedout), ConnectFailure::Timeout),
            (Error::new(TLSHandshakeFailure), ConnectFailure::Tls),
            (Error::new(ConnectNoRoute), ConnectFailure::Other),
        ] {
            assert_eq!(classify_connect_error(&error), expected, "{error}");
        }
    }
}
