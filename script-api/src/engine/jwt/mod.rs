//! `jwt_verify(token, options)` and `jwt_sign(claims, options)`: signed JSON Web Tokens (RFC 7519,
//! RFC 7515, with the advice of RFC 8725).

mod keys;
mod options;
mod provider;
mod rules;
#[cfg(test)]
mod tests;

use jsonwebtoken::{AlgorithmFamily, decode, encode, errors::ErrorKind};
use rhai::{Dynamic, Engine, ImmutableString, Map, NativeCallContext};
use serde::de::IgnoredAny;

use super::{
    budget, clock,
    current::{NativeResult, error, too_long},
    json,
    limits::Limits,
    log_api,
};
use options::{Signing, Verification};

pub(crate) use rules::{ALGORITHMS, Rules, SIGN, VERIFY};

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let (string, items) = (limits.string, limits.items);
    engine
        .register_fn(
            "jwt_verify",
            move |ctx: NativeCallContext,
                  token: ImmutableString,
                  options: Map|
                  -> NativeResult<Dynamic> {
                let how = Verification::read(&options)?;
                let verified = verify(&token, &how, string, items);
                Ok(verified.unwrap_or_else(|refused| {
                    log_api::remark(&ctx, || format!("`jwt_verify` refuses a token: {refused}"));
                    Dynamic::UNIT
                }))
            },
        )
        // Options that can't be used are told of by the first call, with a token or without one.
        .register_fn("jwt_verify", |_: (), options: Map| -> NativeResult<()> {
            Verification::read(&options).map(|_| ())
        })
        .register_fn(
            "jwt_sign",
            move |claims: Map, options: Map| -> NativeResult<ImmutableString> {
                sign(claims, &Signing::read(&options)?, string).map(Into::into)
            },
        )
        .register_fn("jwt_sign", |_: (), options: Map| -> NativeResult<()> {
            Signing::read(&options).map(|_| ())
        });
}

/// The claims of a token, or why it is refused.
fn verify(token: &str, how: &Verification, string: usize, items: usize) -> Result<Dynamic, String> {
    if how.key.family() != AlgorithmFamily::Hmac {
        // Some 20 to 100 µs.
        budget::look_at_clocks();
    }
    let decoded = decode::<IgnoredAny>(token, &how.key, &how.validation)
        .map_err(|error| reason(error.kind()))?;
    if decoded.header.crit.is_some() {
        return Err("it has `crit`, and no extension is known here".to_owned());
    }
    let claims = token.split('.').nth(1).unwrap_or_default();
    let claims = data_encoding::BASE64URL_NOPAD
        .decode(claims.as_bytes())
        .map_err(|error| error.to_string())?;
    let claims = json::decode(&claims, string, items)?;
    if let Some(claims) = claims.read_lock::<Map>() {
        check_claims(&claims, how)?;
    } else {
        return Err("its claims are no object".to_owned());
    }
    Ok(claims)
}

/// Times, and what must be there. The rest was looked at with the signature.
fn check_claims(claims: &Map, how: &Verification) -> Result<(), String> {
    let claim = |name: &str| claims.get(name).filter(|value| !value.is_unit());
    if let Some(missing) = how.required.iter().find(|name| claim(name).is_none()) {
        return Err(format!("it has no `{missing}`"));
    }
    let now = clock::since_epoch().as_secs_f64();
    if let Some(expires) = claim("exp")
        && now >= date(expires, "exp")? + how.leeway
    {
        return Err("it has expired".to_owned());
    }
    if let Some(begins) = claim("nbf")
        && now + how.leeway < date(begins, "nbf")?
    {
        return Err("it is not valid yet".to_owned());
    }
    Ok(())
}

/// A NumericDate (RFC 7519 section 2): seconds, also with a fraction.
fn date(value: &Dynamic, name: &str) -> Result<f64, String> {
    #[allow(clippy::cast_precision_loss)]
    let whole = value.as_int().map(|seconds| seconds as f64);
    whole
        .or_else(|_| value.as_float())
        .map_err(|_| format!("its `{name}` is no number"))
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

fn sign(claims: Map, how: &Signing, longest: usize) -> NativeResult<String> {
    let claims = Dynamic::from(claims);
    // Three bytes become four; so the token is not made when it would be too long.
    let len = json::encode(&claims).map_err(error)?.len();
    if len / 3 * 4 > longest {
        return Err(too_long());
    }
    if how.header.alg.family() != AlgorithmFamily::Hmac {
        // RSA takes about 0.7 ms.
        budget::look_at_clocks();
    }
    let token = encode(&how.header, &json::Plain::new(&claims), &how.key).map_err(|failed| {
        let algorithm = how.header.alg;
        error(match failed.kind() {
            ErrorKind::InvalidKeyFormat => format!("{algorithm:?} can't sign with this key"),
            _ => format!("the token can't be signed: {failed}"),
        })
    })?;
    if token.len() > longest {
        return Err(too_long());
    }
    Ok(token)
}
