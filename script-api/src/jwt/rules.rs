//! What the options of `jwt_verify` and `jwt_sign` may be: for the calls themselves, and for the
//! checks at load.

/// Algorithms by their names (RFC 7518 section 3.1, RFC 8037 section 3.1). `none` is none.
pub(crate) const ALGORITHMS: [&str; 12] = [
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "EdDSA",
];

/// One of the functions, or the filter.
pub(crate) struct Rules {
    /// As a program calls it.
    pub(crate) function: &'static str,
    /// Its options.
    pub(crate) options: &'static [&'static str],
    /// The option that holds a key that is no shared secret.
    key: &'static str,
    /// Whether there may be a key set in its place.
    has_sets: bool,
}

/// Of `jwt_verify`.
pub(crate) const VERIFY: Rules = Rules {
    function: "jwt_verify",
    options: &[
        "algorithm",
        "algorithms",
        "secret",
        "public_key",
        "jwks",
        "issuer",
        "audience",
        "leeway",
        "required",
    ],
    key: "public_key",
    has_sets: true,
};

/// Of `.jwt`.
pub(crate) const FILTER: Rules = Rules {
    function: ".jwt",
    options: &[
        "algorithm",
        "algorithms",
        "secret",
        "public_key",
        "jwks",
        "issuer",
        "audience",
        "leeway",
        "required",
        "from",
        "claims",
        "realm",
        "forward",
    ],
    key: "public_key",
    has_sets: true,
};

/// Of `jwt_sign`.
pub(crate) const SIGN: Rules = Rules {
    function: "jwt_sign",
    options: &["algorithm", "secret", "private_key", "kid"],
    key: "private_key",
    has_sets: false,
};

impl Rules {
    /// What is wrong with a set of options, by their names alone.
    pub(crate) fn lacks(&self, has: impl Fn(&str) -> bool) -> Option<String> {
        let function = self.function;
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
        let quoted = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(" or ")
        };
        let all: Vec<&str> = self.key_options().collect();
        let given: Vec<&str> = self.key_options().filter(|name| has(name)).collect();
        match given.len() {
            0 => Some(format!("`{function}` needs {}", quoted(&all))),
            1 => None,
            _ => Some(format!("`{function}` takes {}, not both", quoted(&given))),
        }
    }

    /// Why an algorithm does not go with the key that is given.
    pub(crate) fn misfit(&self, algorithm: &str, has: impl Fn(&str) -> bool) -> Option<String> {
        let given = self.key_options().find(|name| has(name))?;
        let wanted = if algorithm.starts_with("HS") {
            "secret"
        } else if given == "jwks" {
            "jwks"
        } else {
            self.key
        };
        (wanted != given).then(|| format!("{algorithm} goes with `{wanted}`, not `{given}`"))
    }

    /// The options of which one holds the key.
    pub(crate) fn key_options(&self) -> impl Iterator<Item = &'static str> {
        let sets = self.has_sets.then_some("jwks");
        ["secret", self.key].into_iter().chain(sets)
    }
}
