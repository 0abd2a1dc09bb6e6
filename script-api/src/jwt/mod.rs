//! Signed JSON Web Tokens (RFC 7519, RFC 7515, with the advice of RFC 8725): how they are verified,
//! for scripts and for the filter `.jwt` alike.

mod key_set;
mod keys;
pub(crate) mod provider;
mod rules;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, errors::ErrorKind};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use thiserror::Error;

pub use key_set::{KeySet, MOST_KEYS};
pub(crate) use keys::fits;
pub(crate) use rules::{ALGORITHMS, FILTER, Rules, SIGN, VERIFY};
pub use source::{Jwks, JwksFrom, JwksSource, MOST_JWKS, Slot};

/// The longest token that the filter looks at, in bytes. Field and target are bounded anyway.
const LONGEST: usize = 64 * 1024;

/// How a token is verified. Only a program's options make one.
#[derive(Debug, Clone)]
pub struct Verification {
    pub(crate) keys: Keys,
    /// All but the times, which are looked at with the clock of programs.
    pub(crate) validation: Validation,
    /// In seconds.
    pub(crate) leeway: f64,
    /// Claims that must be there.
    pub(crate) required: Vec<String>,
}

/// What tokens are verified with.
#[derive(Clone)]
pub(crate) enum Keys {
    One(Arc<DecodingKey>),
    Set(Jwks),
}

/// Says nothing of a secret.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(_) => f.write_str("One(..)"),
            Self::Set(set) => set.fmt(f),
        }
    }
}

/// Why a token is not taken. In words that hold nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// There are no keys yet: nothing can be said of any token.
    #[error("there is no key set yet")]
    NoKeys,
    /// It is not right.
    #[error("{0}")]
    Token(String),
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self::Token(reason)
    }
}

impl From<&str> for Refused {
    fn from(reason: &str) -> Self {
        Self::Token(reason.to_owned())
    }
}

/// A claim, as far as the checks need it.
pub(crate) enum Claim {
    Absent,
    Number(f64),
    Other,
}

impl Verification {
    /// The claims of a token; `now` is the time in seconds since 1970.
    ///
    /// # Errors
    /// When it is not to be taken, for whatever reason.
    pub fn verify(&self, token: &str, now: f64) -> Result<Map<String, Value>, Refused> {
        if token.len() > LONGEST {
            return Err("it is too long".into());
        }
        let claims = self.signed(token)?;
        let claims: Value = serde_json::from_slice(&claims).map_err(|error| error.to_string())?;
        let Value::Object(claims) = claims else {
            return Err("its claims are no object".into());
        };
        self.check(now, |name| match claims.get(name) {
            None | Some(Value::Null) => Claim::Absent,
            Some(Value::Number(number)) => number.as_f64().map_or(Claim::Other, Claim::Number),
            Some(_) => Claim::Other,
        })?;
        Ok(claims)
    }

    /// The text of the claims of a token whose signature, issuer and audience are right.
    pub(crate) fn signed(&self, token: &str) -> Result<Vec<u8>, Refused> {
        let decoded = match &self.keys {
            Keys::One(key) => decode::<IgnoredAny>(token, key, &self.validation),
            Keys::Set(set) => {
                let (key, algorithm) = self.key_of(set, token)?;
                // `decode` wants all algorithms to fit the key.
                let mut validation = self.validation.clone();
                validation.algorithms = vec![algorithm];
                decode::<IgnoredAny>(token, &key, &validation)
            }
        };
        let decoded = decoded.map_err(|error| reason(error.kind()))?;
        if decoded.header.crit.is_some() {
            return Err("it has `crit`, and no extension is known here".into());
        }
        let claims = token.split('.').nth(1).unwrap_or_default();
        data_encoding::BASE64URL_NOPAD
            .decode(claims.as_bytes())
            .map_err(|error| error.to_string().into())
    }

    /// Times, and what must be there. The rest was looked at with the signature.
    pub(crate) fn check(&self, now: f64, claim: impl Fn(&str) -> Claim) -> Result<(), Refused> {
        let missing = |name: &&String| matches!(claim(name), Claim::Absent);
        if let Some(missing) = self.required.iter().find(missing) {
            return Err(format!("it has no `{missing}`").into());
        }
        // A NumericDate (RFC 7519 section 2): seconds, also with a fraction.
        let date = |name: &str| match claim(name) {
            Claim::Absent => Ok(None),
            Claim::Number(seconds) => Ok(Some(seconds)),
            Claim::Other => Err(format!("its `{name}` is no number")),
        };
        if date("exp")?.is_some_and(|expires| now >= expires + self.leeway) {
            return Err("it has expired".into());
        }
        if date("nbf")?.is_some_and(|begins| now + self.leeway < begins) {
            return Err("it is not valid yet".into());
        }
        Ok(())
    }

    /// The key that the token's header names, out of a set, and the algorithm. The header is not to
    /// be trusted: the algorithm must be one of those that are asked for, and fit the key.
    fn key_of(&self, set: &Jwks, token: &str) -> Result<(Arc<DecodingKey>, Algorithm), Refused> {
        let header = decode_header(token).map_err(|error| reason(error.kind()))?;
        if !self.validation.algorithms.contains(&header.alg) {
            return Err(reason(&ErrorKind::InvalidAlgorithm).into());
        }
        let keys = set.keys().ok_or(Refused::NoKeys)?;
        let keys = keys.set().ok_or(Refused::NoKeys)?;
        let key = keys.find(header.kid.as_deref(), header.alg);
        let key = key.ok_or_else(|| {
            if header.kid.is_some() {
                // The issuer may have begun to sign with a new one.
                set.want_newer();
            }
            Refused::from("no key of the set is the one that it names")
        })?;
        Ok((key, header.alg))
    }

    /// Whether verifying takes the time of a public key: some 20 to 100 µs.
    pub(crate) fn takes_long(&self) -> bool {
        let hmac = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
        let mut algorithms = self.validation.algorithms.iter();
        algorithms.any(|algorithm| !hmac.contains(algorithm))
    }
}

/// In words that hold nothing of the token.
fn reason(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::InvalidSignature => "its signature is not that of the key".to_owned(),
        ErrorKind::InvalidAlgorithm => "its algorithm is not the one that is asked for".to_owned(),
        ErrorKind::InvalidIssuer => "its `iss` is not the issuer".to_owned(),
        ErrorKind::InvalidAudience => {
            "its `aud` is not the audience, or no `audience` is given".to_owned()
        }
        ErrorKind::InvalidClaimFormat(name) => format!("its `{name}` has the wrong type"),
        _ => "it is no token".to_owned(),
    }
}
