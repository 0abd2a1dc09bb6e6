//! Natives that are called as what they are.
//!
//! Rhai calls each native behind a pointer, with all arguments as values of its own. The usual natives of
//! requests, responses, tables and texts are called here without that, and with what is written out in
//! the program read once: the name of a header field, its value, the beginning of a path. They share the
//! code of those that are registered, and are counted and measured like these. A place that calls one
//! keeps a [`Native`](super::native::Native) for all other types.

use http::{HeaderName, HeaderValue};
use rhai::{Dynamic, ImmutableString, Position};

use super::machine::{Flow, Host, count, placed};
use crate::{
    answer::{header_name, header_value},
    engine::{
        current::NativeResult,
        fields_api::Fields,
        local::Local,
        request_api::RequestHandle,
        request_text::RequestText,
        response_api::{self, ResponseHandle},
        value_api,
    },
    values::Table,
};

/// A native at a place of the program, as far as that is known without the types.
pub(super) struct Direct {
    work: Work,
    /// The arguments that are written out; one that isn't stands behind them.
    pub(super) written: Vec<Dynamic>,
}

/// What it does. `None` stands for the argument that isn't written out.
enum Work {
    Header(HeaderName),
    SetHeader(HeaderName, Option<HeaderValue>),
    AddHeader(HeaderName, Option<HeaderValue>),
    RemoveHeader(HeaderName),
    Text(RequestText),
    Status,
    /// An entry of a table, or whether there is one.
    Get,
    Contains,
    StartsWith(Option<ImmutableString>),
    EndsWith(Option<ImmutableString>),
}

/// What it is called on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    Exchange(Fields),
    Table,
    Text,
}

/// The request or response that a value is.
#[inline]
fn exchange(value: &Dynamic) -> Option<Receiver> {
    if value.is::<RequestHandle>() {
        Some(Receiver::Exchange(Fields::Request))
    } else if value.is::<ResponseHandle>() {
        Some(Receiver::Exchange(Fields::Response))
    } else {
        None
    }
}

impl Direct {
    /// The method with this name and these arguments, of which those that are written out have a value.
    pub(super) fn method(name: &str, arguments: &[Option<Dynamic>]) -> Option<Self> {
        let written: Vec<Dynamic> = arguments.iter().map_while(Clone::clone).collect();
        let is_open = match arguments.len() - written.len() {
            0 => false,
            1 => true,
            _ => return None,
        };
        let text = |number: usize| {
            let value: &Dynamic = written.get(number)?;
            value
                .as_immutable_string_ref()
                .ok()
                .map(|text| text.clone())
        };
        let field = || header_name(&text(0)?).ok();
        // A value that can't be one fails as ever, when it is used.
        let value = || header_value(&text(1)?).ok();
        let work = match (name, written.len(), is_open) {
            ("header", 1, false) => Work::Header(HeaderName::from_bytes(text(0)?.as_bytes()).ok()?),
            ("set_header", 1, true) => Work::SetHeader(field()?, None),
            ("set_header", 2, false) => Work::SetHeader(field()?, Some(value()?)),
            ("add_header", 1, true) => Work::AddHeader(field()?, None),
            ("add_header", 2, false) => Work::AddHeader(field()?, Some(value()?)),
            ("remove_header", 1, false) => Work::RemoveHeader(field()?),
            ("get", 0, true) => Work::Get,
            ("contains", 0, true) => Work::Contains,
            ("starts_with", 0, true) => Work::StartsWith(None),
            ("starts_with", 1, false) => Work::StartsWith(Some(text(0)?)),
            ("ends_with", 0, true) => Work::EndsWith(None),
            ("ends_with", 1, false) => Work::EndsWith(Some(text(0)?)),
            _ => return None,
        };
        Some(Self { work, written })
    }

    /// The property with this name.
    pub(super) fn property(name: &str) -> Option<Self> {
        let work = match name {
            "status" => Work::Status,
            _ => Work::Text(RequestText::named(name)?),
        };
        Some(Self {
            work,
            written: Vec::new(),
        })
    }

    /// Calls it as the interpreter calls the native; `None`: it isn't for these types. `argument` is the
    /// one that isn't written out, or anything.
    #[inline]
    pub(super) fn call(
        &self,
        host: &Host<'_>,
        place: Position,
        receiver: &Dynamic,
        argument: &Dynamic,
    ) -> Option<Flow> {
        let of = self.work.receiver(receiver, argument)?;
        Some(self.run(host, place, of, receiver, argument))
    }

    /// Whether Rhai holds that it may have changed what it was called on: what is registered with a
    /// reference to it does.
    pub(super) fn changes(&self) -> bool {
        !matches!(self.work, Work::StartsWith(_) | Work::EndsWith(_))
    }

    fn run(
        &self,
        host: &Host<'_>,
        place: Position,
        of: Receiver,
        receiver: &Dynamic,
        argument: &Dynamic,
    ) -> Flow {
        count(place)?;
        let value = self.work.run(of, receiver, argument);
        let value = value.map_err(|error| placed(error, place))?;
        host.fits(&value, place)?;
        Ok(value)
    }
}

impl Work {
    /// What `receiver` is, if this is for it and for the argument.
    #[inline]
    fn receiver(&self, receiver: &Dynamic, argument: &Dynamic) -> Option<Receiver> {
        let fits = match self {
            Self::Header(_)
            | Self::SetHeader(_, Some(_))
            | Self::AddHeader(_, Some(_))
            | Self::RemoveHeader(_) => return exchange(receiver),
            Self::SetHeader(_, None) | Self::AddHeader(_, None) => {
                return exchange(receiver).filter(|_| !argument.is_shared());
            }
            Self::Text(_) => {
                let request = Receiver::Exchange(Fields::Request);
                return receiver.is::<RequestHandle>().then_some(request);
            }
            Self::Status => {
                let response = Receiver::Exchange(Fields::Response);
                return receiver.is::<ResponseHandle>().then_some(response);
            }
            Self::Get | Self::Contains => {
                let is_table = argument.is_string() && receiver.is::<Local<Table>>();
                return is_table.then_some(Receiver::Table);
            }
            Self::StartsWith(with) | Self::EndsWith(with) => {
                receiver.is_string() && (with.is_some() || argument.is_string())
            }
        };
        fits.then_some(Receiver::Text)
    }

    fn run(&self, of: Receiver, receiver: &Dynamic, argument: &Dynamic) -> NativeResult<Dynamic> {
        match (self, of) {
            (Self::Text(text), _) => text.value(),
            (Self::Status, _) => response_api::status().map(Dynamic::from_int),
            (Self::StartsWith(with), _) => {
                let with = with.as_ref();
                Ok(compare(receiver, with, argument, |text, with| {
                    text.starts_with(with)
                }))
            }
            (Self::EndsWith(with), _) => {
                let with = with.as_ref();
                Ok(compare(receiver, with, argument, |text, with| {
                    text.ends_with(with)
                }))
            }
            (Self::Get, _) => Ok(entry(receiver, argument, value_api::table_entry)),
            (Self::Contains, _) => Ok(entry(receiver, argument, |table, key| {
                Dynamic::from_bool(table.contains(key))
            })),
            (Self::Header(name), Receiver::Exchange(fields)) => fields.first(name),
            (changes, Receiver::Exchange(fields)) => {
                changes.change(fields, argument)?;
                Ok(Dynamic::UNIT)
            }
            _ => Ok(Dynamic::UNIT),
        }
    }

    fn change(&self, fields: Fields, argument: &Dynamic) -> NativeResult<()> {
        match self {
            Self::SetHeader(name, Some(value)) => fields.set(name.clone(), value.clone()),
            Self::SetHeader(name, None) => fields.set_value(name.clone(), argument),
            Self::AddHeader(name, Some(value)) => fields.add(name.clone(), value.clone()),
            Self::AddHeader(name, None) => fields.add_value(name.clone(), argument),
            Self::RemoveHeader(name) => fields.remove(name),
            _ => Ok(()),
        }
    }
}

/// Compares two texts.
#[inline]
fn compare(
    text: &Dynamic,
    written: Option<&ImmutableString>,
    argument: &Dynamic,
    holds: impl Fn(&str, &str) -> bool,
) -> Dynamic {
    let Ok(text) = text.as_immutable_string_ref() else {
        return Dynamic::FALSE;
    };
    Dynamic::from_bool(match written {
        Some(with) => holds(&text, with),
        None => argument
            .as_immutable_string_ref()
            .is_ok_and(|with| holds(&text, &with)),
    })
}

/// Asks a table for a key.
#[inline]
fn entry(table: &Dynamic, key: &Dynamic, ask: impl Fn(&Table, &str) -> Dynamic) -> Dynamic {
    match (
        table.read_lock::<Local<Table>>(),
        key.as_immutable_string_ref(),
    ) {
        (Some(table), Ok(key)) => ask(&table, &key),
        _ => Dynamic::UNIT,
    }
}
