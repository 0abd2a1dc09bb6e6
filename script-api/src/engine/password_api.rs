//! Passwords in hooks. The hook waits while others verify: it takes up to a quarter of a second of
//! CPU time on purpose.

use rhai::{Dynamic, Engine, NativeCallContext};

use super::{
    budget::{self, Exhausted},
    coroutine::{Pause, Refused, Wake, suspend},
    current::{self, NativeResult, error},
    fetch_api::ended,
    local::Local,
    log_api,
    secret_api::secret_of,
};
use crate::{
    password::{Htpasswd, PasswordCheck, PasswordHash},
    program::{HookKind, Need},
};

/// The functions, and what the hashes that they take begin with.
const FUNCTIONS: [(&str, &[&str]); 3] = [
    ("password_verify", &[""]),
    ("bcrypt_verify", &["$2y$", "$2b$", "$2a$"]),
    ("argon2_verify", &["$argon2"]),
];

/// All that wait until a password is verified.
pub(super) const WAITING: [&str; 4] = [FUNCTIONS[0].0, FUNCTIONS[1].0, FUNCTIONS[2].0, "verify"];

pub(super) fn register(engine: &mut Engine) {
    for (name, kinds) in FUNCTIONS {
        engine
            .register_fn(
                name,
                move |ctx: NativeCallContext,
                      password: &str,
                      hash: Dynamic|
                      -> NativeResult<bool> {
                    match read(&hash, kinds)? {
                        Ok(hash) => wait(PasswordCheck::alone(hash, password)),
                        Err(reason) => {
                            log_api::remark(&ctx, || {
                                format!("`{name}` takes no such hash: {reason}")
                            });
                            Ok(false)
                        }
                    }
                },
            )
            .register_fn(name, |_: (), _: Dynamic| false);
    }
    engine
        .register_type_with_name::<Local<Htpasswd>>("Htpasswd")
        .register_fn(
            "verify",
            |users: &mut Local<Htpasswd>, user: &str, password: &str| -> NativeResult<bool> {
                wait(PasswordCheck::of(users, user, password.as_bytes()))
            },
        )
        .register_fn("verify", |_: &mut Local<Htpasswd>, _: (), _: Dynamic| false)
        .register_fn("verify", |_: &mut Local<Htpasswd>, _: &str, _: ()| false)
        .register_fn("len", |users: &mut Local<Htpasswd>| {
            rhai::INT::try_from(users.len()).unwrap_or(rhai::INT::MAX)
        });
}

/// The hash of a password: text or a secret; a user that has none has `()`.
///
/// # Errors
/// When it is nothing that can hold one. A text that holds none is no error of the program.
fn read(hash: &Dynamic, kinds: &[&str]) -> NativeResult<Result<PasswordHash, String>> {
    let parse = |text: &str| {
        if kinds.iter().any(|kind| text.starts_with(kind)) {
            PasswordHash::parse(text)
        } else {
            Err("it is of another kind".to_owned())
        }
    };
    if hash.is_unit() {
        return Ok(Err("it is absent".to_owned()));
    }
    if let Some(secret) = secret_of(hash) {
        let text = std::str::from_utf8(secret.bytes());
        return Ok(text.map_or_else(|_| Err("it is not UTF-8".to_owned()), parse));
    }
    let text = hash.as_immutable_string_ref().map_err(|found| {
        error(format!(
            "a hash is text or `secret(..)`, not a value of type `{found}`"
        ))
    })?;
    Ok(parse(&text))
}

/// Suspends the hook until the password is verified.
fn wait(check: PasswordCheck) -> NativeResult<bool> {
    if check.hash.is_quick() {
        return Ok(check.run());
    }
    if !current::kind().is_some_and(HookKind::may_wait) {
        return Err(error(format!(
            "a password can only be verified {}: it waits",
            Need::Waiting.places()
        )));
    }
    // Each takes about as much as a call to another service, and more of this machine.
    if !budget::take_fetches(1) {
        return Err(ended(Exhausted::Fetches));
    }
    match suspend(Pause::Password(check)) {
        Ok(Wake::Verified(Some(right))) => Ok(right),
        Ok(_) => Err(error(
            "so many passwords are being verified that this one can't be: [limits] password_checks",
        )),
        Err(Refused::TooMany) => Err(ended(Exhausted::Waiting)),
        Err(Refused::NoHook) => Err(error("a password can only be verified while a hook runs")),
    }
}
