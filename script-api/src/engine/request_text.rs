//! The properties of `req` whose values are texts that the request has at hand.

use rhai::{Dynamic, Engine, ImmutableString};

use super::{
    current::{NativeResult, request},
    request_api::RequestHandle,
};
use crate::request::Request;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestText {
    Method,
    Scheme,
    Host,
    Path,
    RawPath,
    Query,
    Protocol,
}

const ALL: [(&str, RequestText); 7] = [
    ("method", RequestText::Method),
    ("scheme", RequestText::Scheme),
    ("host", RequestText::Host),
    ("path", RequestText::Path),
    ("raw_path", RequestText::RawPath),
    ("query_string", RequestText::Query),
    ("protocol", RequestText::Protocol),
];

pub(super) fn register(engine: &mut Engine) {
    for (name, text) in ALL {
        engine.register_get(name, move |_: &mut RequestHandle| text.read());
    }
}

impl RequestText {
    /// The one with this name in scripts.
    pub(super) fn named(name: &str) -> Option<Self> {
        let found = ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| *text)
    }

    /// What it is in `request`.
    #[inline]
    pub(super) fn of(self, request: &dyn Request) -> &str {
        match self {
            Self::Method => request.method(),
            Self::Scheme => request.scheme(),
            Self::Host => request.host(),
            Self::Path => request.path(),
            Self::RawPath => request.raw_path(),
            Self::Query => request.query_string(),
            Self::Protocol => request.protocol(),
        }
    }

    /// What it is in the request of the hook that runs.
    pub(super) fn read(self) -> NativeResult<ImmutableString> {
        request(|request| self.of(request).into())
    }

    /// The same, as a value of a script.
    pub(super) fn value(self) -> NativeResult<Dynamic> {
        self.read().map(Dynamic::from)
    }
}
