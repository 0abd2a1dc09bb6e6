//! A set of public keys, as issuers publish it (RFC 7517).

use std::{str::FromStr as _, sync::Arc};

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;

use super::fits;

/// The most keys of one set. Issuers have two to ten.
pub const MOST_KEYS: usize = 100;

/// The largest RSA modulus that ring takes, in bytes.
const MOST_RSA: usize = 8192 / 8;

/// The keys of a set that verify signatures.
pub struct KeySet {
    keys: Vec<Known>,
}

struct Known {
    kid: Option<String>,
    /// The only algorithm that the issuer uses it with.
    alg: Option<Algorithm>,
    key: Arc<DecodingKey>,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

/// The members of RFC 7517 section 4 and RFC 7518 section 6 that matter here.
#[derive(Deserialize)]
struct Written {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads the JSON of a set. Keys that can't verify signatures here are passed over, as RFC 7517
    /// section 5 asks for; so are shared secrets, which nobody publishes on purpose.
    ///
    /// # Errors
    /// When it is no set, has more than [`MOST_KEYS`] keys, or none that is of use.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let document: Document =
            serde_json::from_slice(text).map_err(|error| format!("it is no key set: {error}"))?;
        if document.keys.len() > MOST_KEYS {
            return Err(format!("it has more than {MOST_KEYS} keys"));
        }
        let keys: Vec<Known> = document.keys.into_iter().filter_map(known).collect();
        if keys.is_empty() {
            return Err("it has no key that verifies signatures".to_owned());
        }
        Ok(Self { keys })
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Never: a set without keys is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key called `kid` for `algorithm`. A token that names none is taken when there is no
    /// doubt which key is meant.
    pub(super) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
        let mut fitting = self.keys.iter().filter(|known| {
            kid.is_none_or(|kid| known.kid.as_deref() == Some(kid))
                && known.alg.is_none_or(|alg| alg == algorithm)
                && fits(algorithm, &known.key).is_ok()
        });
        let first = fitting.next()?;
        fitting.next().is_none().then(|| first.key.clone())
    }
}

fn known(value: serde_json::Value) -> Option<Known> {
    let written: Written = serde_json::from_value(value).ok()?;
    let verifies = written.used_for.as_deref().is_none_or(|used| used == "sig")
        && written
            .key_ops
            .as_ref()
            .is_none_or(|ops| ops.iter().any(|op| op == "verify"));
    if !verifies {
        return None;
    }
    let part = |text: &Option<String>| {
        let text = text.as_deref()?.trim_end_matches('=');
        BASE64URL_NOPAD.decode(text.as_bytes()).ok()
    };
    let key = match (written.kty.as_str(), written.crv.as_deref()) {
        ("RSA", _) => rsa(&part(&written.n)?, &part(&written.e)?)?,
        ("EC", Some("P-256")) => point(&part(&written.x)?, &part(&written.y)?, 32)?,
        ("EC", Some("P-384")) => point(&part(&written.x)?, &part(&written.y)?, 48)?,
        ("OKP", Some("Ed25519")) => {
            let x = part(&written.x)?;
            (x.len() == 32).then(|| DecodingKey::from_ed_der(&x))?
        }
        _ => return None,
    };
    let alg = match written.alg {
        None => None,
        // One that is not known here is not the one of any token that is taken.
        Some(name) => Some(Algorithm::from_str(&name).ok()?),
    };
    if alg.is_some_and(|alg| alg.family() == AlgorithmFamily::Hmac) {
        return None;
    }
    Some(Known {
        kid: written.kid,
        alg,
        key: Arc::new(key),
    })
}

/// A point that is not compressed (SEC 1 section 2.3.3).
fn point(x: &[u8], y: &[u8], len: usize) -> Option<DecodingKey> {
    let fits = x.len() == len && y.len() == len;
    fits.then(|| DecodingKey::from_ec_der(&[&[4], x, y].concat()))
}

/// `RSAPublicKey` in DER (RFC 8017 appendix A.1.1), which is how keys from PEM are kept too.
fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<DecodingKey> {
    let modulus = without_zeros(modulus);
    let exponent = without_zeros(exponent);
    let fits = (2048 / 8..=MOST_RSA).contains(&modulus.len()) && (1..=4).contains(&exponent.len());
    fits.then(|| {
        let body = [integer(modulus), integer(exponent)].concat();
        DecodingKey::from_rsa_der(&element(0x30, &body))
    })
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    &number[zeros..]
}

/// An unsigned number: a zero in front keeps the highest bit from being a sign.
fn integer(number: &[u8]) -> Vec<u8> {
    let signed = number.first().is_some_and(|byte| byte & 0x80 != 0);
    let content = if signed {
        [&[0], number].concat()
    } else {
        number.to_vec()
    };
    element(2, &content)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len().to_be_bytes();
    let len = without_zeros(&len);
    let mut element = vec![tag];
    match len {
        [] => element.push(0),
        [short @ 0..=0x7f] => element.push(*short),
        long => {
            // At most MOST_RSA and a few bytes, so two bytes at the most.
            element.push(0x80 | u8::try_from(long.len()).unwrap_or_default());
            element.extend_from_slice(long);
        }
    }
    element.extend_from_slice(content);
    element
}
