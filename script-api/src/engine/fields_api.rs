//! The header fields of `req` and `res`, which are the same to a script.

use http::{HeaderName, HeaderValue};
use rhai::{Array, Dynamic, Engine, ImmutableString, Variant};

use super::current::{NativeResult, change_request, change_response, error, request, response};
use crate::{
    answer::{header_name, header_value},
    request::header_text,
};

/// Whose header fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fields {
    Request,
    Response,
}

/// Registers the methods of the type `H`, whose header fields these are.
pub(super) fn register<H: Variant + Clone>(engine: &mut Engine, of: Fields) {
    engine
        .register_fn(
            "header",
            move |_: &mut H, name: ImmutableString| -> NativeResult<Dynamic> {
                match of {
                    Fields::Request => request(|req| value_of(req.header(&name))),
                    Fields::Response => response(|res| value_of(res.header(&name))),
                }
            },
        )
        .register_fn(
            "headers",
            move |_: &mut H, name: ImmutableString| -> NativeResult<Array> {
                match of {
                    Fields::Request => request(|req| values_of(req.headers(&name))),
                    Fields::Response => response(|res| values_of(res.headers(&name))),
                }
            },
        )
        .register_fn(
            "set_header",
            move |_: &mut H, name: ImmutableString, value: Dynamic| {
                of.set_value(header_name(&name).map_err(error)?, &value)
            },
        )
        .register_fn(
            "add_header",
            move |_: &mut H, name: ImmutableString, value: Dynamic| {
                of.add_value(header_name(&name).map_err(error)?, &value)
            },
        )
        .register_fn("remove_header", move |_: &mut H, name: ImmutableString| {
            of.remove(&header_name(&name).map_err(error)?)
        });
}

impl Fields {
    /// The first value of a field, or `()`.
    pub(super) fn first(self, name: &HeaderName) -> NativeResult<Dynamic> {
        match self {
            Self::Request => request(|req| value_of(req.field(name))),
            Self::Response => response(|res| value_of(res.field(name))),
        }
    }

    /// Replaces all values of a field by one that a script gives; with `()` there is none.
    pub(super) fn set_value(self, name: HeaderName, value: &Dynamic) -> NativeResult<()> {
        if let Ok(text) = value.as_immutable_string_ref() {
            return self.set(name, header_value(&text).map_err(error)?);
        }
        match value_text(value)? {
            None => self.remove(&name),
            Some(value) => self.set(name, header_value(&value).map_err(error)?),
        }
    }

    /// Adds a value that a script gives; `()` is none.
    pub(super) fn add_value(self, name: HeaderName, value: &Dynamic) -> NativeResult<()> {
        match value_text(value)? {
            None => Ok(()),
            Some(value) => self.add(name, header_value(&value).map_err(error)?),
        }
    }

    /// Replaces all values of a field.
    pub(super) fn set(self, name: HeaderName, value: HeaderValue) -> NativeResult<()> {
        match self {
            Self::Request => change_request(|req| req.set_header(name, value)),
            Self::Response => change_response(|res| res.set_header(name, value)),
        }
    }

    /// Adds a value to a field.
    pub(super) fn add(self, name: HeaderName, value: HeaderValue) -> NativeResult<()> {
        match self {
            Self::Request => change_request(|req| req.add_header(name, value)),
            Self::Response => change_response(|res| res.add_header(name, value)),
        }
    }

    /// Removes a field.
    pub(super) fn remove(self, name: &HeaderName) -> NativeResult<()> {
        match self {
            Self::Request => change_request(|req| req.remove_header(name)),
            Self::Response => change_response(|res| res.remove_header(name)),
        }
    }
}

fn value_of(value: Option<&[u8]>) -> Dynamic {
    value.map_or(Dynamic::UNIT, header_value_of)
}

fn values_of(values: Vec<&[u8]>) -> Array {
    values.into_iter().map(header_value_of).collect()
}

/// A header's value for a script.
fn header_value_of(value: &[u8]) -> Dynamic {
    ImmutableString::from(&*header_text(value)).into()
}

/// The text of a header value that a script gives: text, a number or a bool; `()` is none.
pub(super) fn value_text(value: &Dynamic) -> NativeResult<Option<ImmutableString>> {
    if value.is_unit() {
        return Ok(None);
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(Some(text.clone()));
    }
    if value.is_int() || value.is_float() || value.is_bool() || value.is_char() {
        return Ok(Some(value.to_string().into()));
    }
    Err(error(format!(
        "a header value is text, not a value of type `{}`",
        value.type_name()
    )))
}
