//! `jwt_verify(token, options)` and `jwt_sign(claims, options)`: signed JSON Web Tokens (RFC 7519,
//! RFC 7515, with the advice of RFC 8725).

mod keys;
mod options;
#[cfg(test)]
mod tests;

use jsonwebtoken::{AlgorithmFamily, encode, errors::ErrorKind};
use rhai::{Dynamic, Engine, ImmutableString, Map, NativeCallContext};

use super::{
    budget, clock,
    current::{NativeResult, error, too_long},
    json,
    limits::Limits,
    log_api,
};
use crate::jwt::{Claim, Refused, VERIFY, Verification};
use options::Signing;

pub(crate) use options::verification;

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let (string, items) = (limits.string, limits.items);
    engine
        .register_fn(
            "jwt_verify",
            move |ctx: NativeCallContext,
                  token: ImmutableString,
                  options: Map|
                  -> NativeResult<Dynamic> {
                let how = verification(&VERIFY, &options)?;
                let verified = verify(&token, &how, string, items);
                Ok(verified.unwrap_or_else(|refused| {
                    log_api::remark(&ctx, || format!("`jwt_verify` refuses a token: {refused}"));
                    Dynamic::UNIT
                }))
            },
        )
        // Options that can't be used are told of by the first call, with a token or without one.
        .register_fn("jwt_verify", |_: (), options: Map| -> NativeResult<()> {
            verification(&VERIFY, &options).map(|_| ())
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
fn verify(
    token: &str,
    how: &Verification,
    string: usize,
    items: usize,
) -> Result<Dynamic, Refused> {
    if how.takes_long() {
        budget::look_at_clocks();
    }
    let claims = json::decode(&how.signed(token)?, string, items)?;
    let Some(map) = claims.read_lock::<Map>() else {
        return Err("its claims are no object".into());
    };
    how.check(clock::since_epoch().as_secs_f64(), |name| {
        match map.get(name).filter(|value| !value.is_unit()) {
            None => Claim::Absent,
            Some(value) => number(value).map_or(Claim::Other, Claim::Number),
        }
    })?;
    drop(map);
    Ok(claims)
}

fn number(value: &Dynamic) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)]
    let whole = value.as_int().ok().map(|whole| whole as f64);
    whole.or_else(|| value.as_float().ok())
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
