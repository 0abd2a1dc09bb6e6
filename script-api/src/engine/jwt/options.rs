//! The options of one call.

use std::{str::FromStr, sync::Arc};

use jsonwebtoken::{Algorithm, AlgorithmFamily, EncodingKey, Header, Validation};
use rhai::{Dynamic, ImmutableString, Map};

use super::keys;
use crate::{
    engine::{
        current::{NativeResult, error},
        local::Local,
        secret_api::secret_of,
    },
    jwt::{ALGORITHMS, Jwks, Keys, Rules, SIGN, Verification, fits, provider},
    suggest,
};

/// Seconds that clocks may differ at the most.
const MOST_LEEWAY: f64 = 3600.0;

/// How a token is verified, by the options of `rules`.
///
/// # Errors
/// With what is wrong with them.
pub(crate) fn verification(rules: &Rules, options: &Map) -> NativeResult<Verification> {
    provider::install();
    check(rules, options)?;
    let algorithms = match options.get("algorithms") {
        Some(names) => texts(names, "algorithms")?,
        None => vec![text(&options["algorithm"], "algorithm")?],
    };
    let algorithms = algorithms.iter().map(|name| algorithm(name));
    let algorithms = algorithms.collect::<NativeResult<Vec<_>>>()?;
    let keys = match options.get("jwks") {
        Some(set) => Keys::Set(key_set(rules, &algorithms, set, options)?),
        None => {
            let family = one_family(rules, &algorithms, options)?;
            let key = keys::verifying(family, &key_text(rules, options)?).map_err(error)?;
            for algorithm in &algorithms {
                fits(*algorithm, &key).map_err(error)?;
            }
            Keys::One(key)
        }
    };

    let mut validation = Validation::new(algorithms[0]);
    validation.algorithms = algorithms;
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    let mut required = match options.get("required") {
        Some(names) => texts_or_none(names, "required")?,
        None => vec!["exp".into()],
    };
    if let Some(names) = options.get("issuer") {
        validation.set_issuer(&texts(names, "issuer")?);
        required.push("iss".into());
    }
    if let Some(names) = options.get("audience") {
        validation.set_audience(&texts(names, "audience")?);
        required.push("aud".into());
    }
    Ok(Verification {
        keys,
        validation,
        leeway: options.get("leeway").map_or(Ok(0.0), seconds)?,
        required: required.iter().map(ToString::to_string).collect(),
    })
}

/// A key set, whose keys may be of several families.
fn key_set(
    rules: &Rules,
    algorithms: &[Algorithm],
    set: &Dynamic,
    options: &Map,
) -> NativeResult<Jwks> {
    if algorithms.is_empty() {
        return Err(no_algorithm(rules));
    }
    for algorithm in algorithms {
        let misfit = rules.misfit(&format!("{algorithm:?}"), |name| options.contains_key(name));
        if let Some(misfit) = misfit {
            return Err(error(misfit));
        }
    }
    let set = set.read_lock::<Local<Jwks>>().map(|set| Jwks::clone(&set));
    set.ok_or_else(|| error("`jwks` is a constant that `jwks(..)` has made"))
}

/// How a token is signed.
pub(super) struct Signing {
    pub(super) key: Arc<EncodingKey>,
    pub(super) header: Header,
}

impl Signing {
    pub(super) fn read(options: &Map) -> NativeResult<Self> {
        provider::install();
        check(&SIGN, options)?;
        let algorithm = algorithm(&text(&options["algorithm"], "algorithm")?)?;
        let family = one_family(&SIGN, &[algorithm], options)?;
        let key = keys::signing(family, &key_text(&SIGN, options)?).map_err(error)?;
        let mut header = Header::new(algorithm);
        if let Some(kid) = options.get("kid").filter(|kid| !kid.is_unit()) {
            header.kid = Some(text(kid, "kid")?.to_string());
        }
        Ok(Self { key, header })
    }
}

/// Checks the names of the options.
fn check(rules: &Rules, options: &Map) -> NativeResult<()> {
    let mut names = options.keys();
    if let Some(unknown) = names.find(|name| !rules.options.contains(&name.as_str())) {
        let hint = suggest::hint(unknown, rules.options.iter().copied());
        let function = rules.function;
        return Err(error(format!(
            "`{function}` has no option `{unknown}` ({hint})"
        )));
    }
    rules
        .lacks(|name| options.contains_key(name))
        .map_or(Ok(()), |lack| Err(error(lack)))
}

fn algorithm(name: &str) -> NativeResult<Algorithm> {
    Algorithm::from_str(name).map_err(|_| {
        let hint = suggest::hint(name, ALGORITHMS);
        error(format!("there is no algorithm `{name}` ({hint})"))
    })
}

/// The family of all algorithms, which the key must be of.
fn one_family(
    rules: &Rules,
    algorithms: &[Algorithm],
    options: &Map,
) -> NativeResult<AlgorithmFamily> {
    let first = algorithms.first().ok_or_else(|| no_algorithm(rules))?;
    let family = first.family();
    if algorithms.iter().any(|other| other.family() != family) {
        return Err(error("`algorithms` must all go with the one key"));
    }
    rules
        .misfit(&format!("{first:?}"), |name| options.contains_key(name))
        .map_or(Ok(family), |misfit| Err(error(misfit)))
}

fn no_algorithm(rules: &Rules) -> Box<rhai::EvalAltResult> {
    error(format!(
        "`{}` needs an algorithm: a token must not choose its own",
        rules.function
    ))
}

/// The key, as text or bytes.
fn key_text(rules: &Rules, options: &Map) -> NativeResult<Vec<u8>> {
    let named = ["secret", "public_key", "private_key"];
    let named = named
        .iter()
        .find_map(|name| Some((*name, options.get(*name)?)));
    let (name, value) = named.unwrap_or((rules.function, &Dynamic::UNIT));
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(text.as_bytes().to_vec());
    }
    if let Ok(bytes) = value.as_blob_ref() {
        return Ok(bytes.clone());
    }
    if let Some(secret) = secret_of(value) {
        return Ok(secret.bytes().to_vec());
    }
    Err(error(format!(
        "the `{name}` of `{}` is text, bytes or `secret(..)`, not a value of type `{}`",
        rules.function,
        value.type_name()
    )))
}

fn text(value: &Dynamic, option: &str) -> NativeResult<ImmutableString> {
    let text = value.as_immutable_string_ref();
    text.map(|text| text.clone()).map_err(|found| {
        error(format!(
            "the option `{option}` is text, not a value of type `{found}`"
        ))
    })
}

/// A text, or several; never none, which would mean that anything will do.
fn texts(value: &Dynamic, option: &str) -> NativeResult<Vec<ImmutableString>> {
    let texts = texts_or_none(value, option)?;
    if texts.is_empty() {
        return Err(error(format!("the option `{option}` is empty")));
    }
    Ok(texts)
}

fn texts_or_none(value: &Dynamic, option: &str) -> NativeResult<Vec<ImmutableString>> {
    match value.as_array_ref() {
        Ok(values) => values.iter().map(|value| text(value, option)).collect(),
        Err(_) => Ok(vec![text(value, option)?]),
    }
}

/// A time in seconds, or as text with its unit.
fn seconds(value: &Dynamic) -> NativeResult<f64> {
    #[allow(clippy::cast_precision_loss)]
    let whole = value.as_int().ok().map(|seconds| seconds as f64);
    let given = whole.or_else(|| value.as_float().ok()).or_else(|| {
        let text = value.as_immutable_string_ref().ok()?;
        let time = humantime::parse_duration(&text).ok()?;
        Some(time.as_secs_f64())
    });
    given
        .filter(|seconds| (0.0..=MOST_LEEWAY).contains(seconds))
        .ok_or_else(|| {
            error(format!(
                "`leeway` is a number of seconds or a time like \"30s\", {MOST_LEEWAY} s at the most"
            ))
        })
}
