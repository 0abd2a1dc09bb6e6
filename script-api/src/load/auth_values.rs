//! Values of the load time that say who a client is: `secret`, `htpasswd`, `jwks`.

use std::time::Duration;

use rhai::{Dynamic, Engine, Map};

use super::{Inputs, auth_options::AuthOptions, draft::SharedDraft};
use crate::{
    engine::{Local, NativeResult, native_error, secret_of, url},
    jwt::{Jwks, JwksFrom, JwksSource, KeySet, MOST_JWKS},
    password::{Htpasswd, PasswordHash},
    values::{FileError, Secret},
};

/// The time between two fetches of a key set unless the program says something else, and its bounds:
/// more often would be an attack on the issuer.
const REFRESH: Duration = Duration::from_secs(300);
const LEAST_REFRESH: Duration = Duration::from_secs(10);
const MOST_REFRESH: Duration = Duration::from_secs(24 * 3600);

pub(super) fn register(engine: &mut Engine, inputs: &Inputs, draft: &SharedDraft) {
    let read = reader(inputs, draft);
    engine.register_fn("secret", move |name: &str| -> NativeResult<Local<Secret>> {
        let secret = Secret::from_file(&read(name)?);
        secret
            .map(Local::new)
            .map_err(|reason| native_error(format!("`{name}` is no secret: {reason}")))
    });
    let read = reader(inputs, draft);
    engine.register_fn(
        "htpasswd",
        move |name: &str| -> NativeResult<Local<Htpasswd>> {
            let users = Htpasswd::from_file(&read(name)?);
            users
                .map(Local::new)
                .map_err(|reason| native_error(format!("`{name}`: {reason}")))
        },
    );
    let read = reader(inputs, draft);
    let shared = draft.clone();
    engine.register_fn("jwks", move |from: &str| {
        jwks(from, Map::new(), &read, &shared)
    });
    let read = reader(inputs, draft);
    let shared = draft.clone();
    engine.register_fn("jwks", move |from: &str, options: Map| {
        jwks(from, options, &read, &shared)
    });
}

/// Reads files, and notes when the folder was swapped meanwhile.
fn reader(
    inputs: &Inputs,
    draft: &SharedDraft,
) -> impl Fn(&str) -> NativeResult<Vec<u8>> + 'static {
    let files = inputs.files.clone();
    let draft = draft.clone();
    move |name| {
        files.read(name).map_err(|error| {
            if error == FileError::Changed {
                draft.borrow_mut().files_changed = true;
            }
            native_error(error.to_string())
        })
    }
}

/// The hash of a password, as text or as a secret.
pub(super) fn hash_of(value: &Dynamic) -> Result<PasswordHash, String> {
    if let Some(secret) = secret_of(value) {
        let text = std::str::from_utf8(secret.bytes());
        return PasswordHash::parse(text.map_err(|_| "it is not UTF-8".to_owned())?);
    }
    let text = value
        .as_immutable_string_ref()
        .map_err(|found| format!("a hash is text, not a value of type `{found}`"))?;
    PasswordHash::parse(&text)
}

/// A key set: of a URL, of a pool with a `path`, or of a file.
fn jwks(
    from: &str,
    options: Map,
    read: &dyn Fn(&str) -> NativeResult<Vec<u8>>,
    draft: &SharedDraft,
) -> NativeResult<Local<Jwks>> {
    let mut options =
        AuthOptions::new("jwks", options, &["path", "refresh"]).map_err(native_error)?;
    let path = options.text("path").map_err(native_error)?;
    let refresh = options
        .time("refresh", MOST_REFRESH)
        .map_err(native_error)?;
    let is_url = from.contains("://");
    if !is_url && path.is_none() {
        if refresh.is_some() {
            return Err(native_error(format!(
                "`{from}` is a file, which is read again when it changes, without `refresh`; a pool \
                 needs a `path`"
            )));
        }
        let set = KeySet::parse(&read(from)?);
        let set = set.map_err(|reason| native_error(format!("`{from}`: {reason}")))?;
        return Ok(Local::new(Jwks::fixed(set)));
    }
    if refresh.is_some_and(|refresh| refresh < LEAST_REFRESH) {
        return Err(native_error("`refresh` of `jwks` is 10s at the least"));
    }
    let (name, from, target) = match (url(from)?, path) {
        (Some(_), Some(_)) => {
            return Err(native_error("the URL of `jwks` has its path already"));
        }
        (Some((server, target)), None) => (from.to_owned(), JwksFrom::Server(server), target),
        (None, path) => {
            let path = path.unwrap_or_default();
            let can_be_sent = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
            if !path.starts_with('/') || !path.bytes().all(can_be_sent) {
                return Err(native_error(
                    "the `path` of `jwks` begins with `/` and is percent-encoded",
                ));
            }
            let name = format!("pool {from} {path}");
            (name, JwksFrom::Pool(from.to_owned()), path)
        }
    };
    let source = JwksSource {
        name,
        from,
        target,
        refresh: refresh.unwrap_or(REFRESH),
    };
    let mut draft = draft.borrow_mut();
    let known = draft.jwks.iter().find_map(|set| {
        let same = set.source().filter(|known| known.name == source.name)?;
        Some((set.clone(), same.clone()))
    });
    if let Some((set, same)) = known {
        if same != source {
            return Err(native_error(format!(
                "`{}` is there already with another `refresh`: make one constant of it",
                source.name
            )));
        }
        return Ok(Local::new(set));
    }
    if draft.jwks.len() >= MOST_JWKS {
        return Err(native_error(format!(
            "a program fetches {MOST_JWKS} key sets at the most"
        )));
    }
    let set = Jwks::fetched(source);
    draft.jwks.push(set.clone());
    Ok(Local::new(set))
}
