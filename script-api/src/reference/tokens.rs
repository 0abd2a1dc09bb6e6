//! Tokens.

use super::entry::{Entry, Group};
use crate::program::Need::Nothing;

pub(super) const TOKENS: Group = Group {
    title: "Tokens",
    of: None,
    about: "JSON Web Tokens (RFC 7519). The algorithm is always named by the program, never chosen by the token.",
    entries: &[
        Entry::new(
            Nothing,
            &["jwt_verify(token: text, options: map) -> map | ()"],
            "The claims, or `()` when the token is absent or does not verify, for whatever reason. Options: `algorithm` or `algorithms`, `secret`, `public_key` or `jwks`, \
             `issuer`, `audience`, `leeway`, `required`. Options that can't verify anything are an error.",
        ),
        Entry::new(
            Nothing,
            &["jwt_sign(claims: map, options: map) -> text"],
            "A signed token. Options: `algorithm`, `secret` or `private_key`, `kid`. RSA takes some 0.7 ms.",
        ),
    ],
};
