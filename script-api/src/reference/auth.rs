//! Who the client is.

use super::entry::{Entry, Group};
use crate::program::Need::{LoadTime, Nothing, Waiting};

pub(super) const FILTERS: Group = Group {
    title: "A route: who the client is",
    of: Some("Route"),
    about: "Native, without script, before any hook. See [authentication.md](authentication.md).",
    entries: &[
        Entry::new(
            LoadTime,
            &[
                "basic_auth(users: Htpasswd | map) -> Route",
                "basic_auth(users: Htpasswd | map, options: map) -> Route",
            ],
            "Asks for a name and a password (RFC 7617): 401 without the right ones. A map is `#{ name: hash }`. Options: `realm`, `user_header`, `forward`.",
        ),
        Entry::new(
            LoadTime,
            &["jwt(options: map) -> Route"],
            "Asks for a token: 401 without a right one. Options: those of `jwt_verify`, and `from`, `claims`, `realm`, `forward`.",
        ),
        Entry::new(
            LoadTime,
            &[
                "forward_auth(pool: text) -> Route",
                "forward_auth(pool: text, options: map) -> Route",
            ],
            "Asks another service about each request. Options: `path`, `method`, `headers`, `copy`, `response_headers`, `timeout`, `cache`, `cache_key`, `cache_scope`.",
        ),
    ],
};

pub(super) const MAKING: Group = Group {
    title: "Secrets, users and key sets",
    of: None,
    about: "Made at the top level from files of the configuration's folder, or of one that `[files] allow` names. A changed file causes a reload.",
    entries: &[
        Entry::new(
            LoadTime,
            &["secret(file: text) -> Secret"],
            "What the file holds, without a line end at its end; 64 KiB at the most. A missing or empty one is an error.",
        ),
        Entry::new(
            LoadTime,
            &["htpasswd(file: text) -> Htpasswd"],
            "Users and hashes, `user:hash` on each line: bcrypt, Argon2, `$apr1$`, `{SHA}`. Any other hash, and plain text, is an error.",
        ),
        Entry::new(
            LoadTime,
            &[
                "jwks(from: text) -> Jwks",
                "jwks(from: text, options: map) -> Jwks",
            ],
            "A key set for `jwt` and `jwt_verify`: a URL, or a pool with the option `path`, fetched in the background every `refresh` (`\"5m\"` unless given); or a file.",
        ),
    ],
};

pub(super) const SECRET: Group = Group {
    title: "A secret",
    of: Some("Secret"),
    about: "It is no text, so that it can't end up in a header or in the log by mistake: it is written as `secret(..)`.",
    entries: &[
        Entry::new(
            Nothing,
            &["text() -> text"],
            "Its text, where text is needed; an error when it is no UTF-8.",
        ),
        Entry::new(Nothing, &["to_string() -> text"], "`secret(..)`, always."),
    ],
};

pub(super) const USERS: Group = Group {
    title: "Users",
    of: Some("Htpasswd"),
    about: "",
    entries: &[
        Entry::new(
            Waiting,
            &["verify(user: text, password: text) -> bool"],
            "Whether the user has this password; `false` for `()`. One who does not exist takes as long as a wrong password.",
        ),
        Entry::new(Nothing, &["len() -> int"], "The number of users."),
    ],
};

pub(super) const KEY_SET: Group = Group {
    title: "A key set",
    of: Some("Jwks"),
    about: "It has no methods: it is an option of `jwt` and `jwt_verify`.",
    entries: &[],
};

pub(super) const PASSWORDS: Group = Group {
    title: "Passwords",
    of: None,
    about: "The hook waits while others verify: it takes up to a quarter of a second of CPU time on purpose, and counts as a `fetch`. \
            `false` for `()`, and for a hash of another kind.",
    entries: &[
        Entry::new(
            Waiting,
            &["password_verify(password: text, hash: text | Secret) -> bool"],
            "Whether the hash, of any kind that `htpasswd` knows, is that of the password.",
        ),
        Entry::new(
            Waiting,
            &["bcrypt_verify(password: text, hash: text | Secret) -> bool"],
            "The same for bcrypt only.",
        ),
        Entry::new(
            Waiting,
            &["argon2_verify(password: text, hash: text | Secret) -> bool"],
            "The same for Argon2 only.",
        ),
    ],
};
