//! What the options of `jwt_verify` and `jwt_sign` may be: for the calls themselves, and for the
//! checks at load.

/// Algorithms by their names (RFC 7518 section 3.1, RFC 8037 section 3.1). `none` is none.
pub(crate) const ALGORITHMS: [&str; 12] = [
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "EdDSA",
];

/// One of the two functions.
pub(crate) struct Rules {
    /// As a program calls it.
    pub(crate) function: &'static str,
    /// Its options.
    pub(crate) options: &'static [&'static str],
    /// The option that holds a key that is no shared secret.
    key: &'static str,
}

/// Of `jwt_verify`.
pub(crate) const VERIFY: Rules = Rules {
    function: "jwt_verify",
    options: &[
        "algorithm",
        "algorithms",
        "secret",
        "public_key",
        "issuer",
        "audience",
        "leeway",
        "required",
    ],
    key: "public_key",
};

/// Of `jwt_sign`.
pub(crate) const SIGN: Rules = Rules {
    function: "jwt_sign",
    options: &["algorithm", "secret", "private_key", "kid"],
    key: "private_key",
};

impl Rules {
    /// What is wrong with a set of options, by their names alone.
    pub(crate) fn lacks(&self, has: impl Fn(&str) -> bool) -> Option<String> {
        let Self { function, key, .. } = self;
        match (has("algorithm"), has("algorithms")) {
            (false, false) => {
                return Some(format!(
                    "`{function}` needs `algorithm`: a token must not choose its own"
                ));
            }
            (true, true) => {
                return Some(format!(
                    "`{function}` takes `algorithm` or `algorithms`, not both"
                ));
            }
            _ => {}
        }
        match (has("secret"), has(key)) {
            (false, false) => Some(format!("`{function}` needs `secret` or `{key}`")),
            (true, true) => Some(format!("`{function}` takes `secret` or `{key}`, not both")),
            _ => None,
        }
    }

    /// Why an algorithm does not go with the key that is given.
    pub(crate) fn misfit(&self, algorithm: &str, has: impl Fn(&str) -> bool) -> Option<String> {
        let wanted = if algorithm.starts_with("HS") {
            "secret"
        } else {
            self.key
        };
        let given = if has("secret") { "secret" } else { self.key };
        (wanted != given).then(|| format!("{algorithm} goes with `{wanted}`, not `{given}`"))
    }
}
