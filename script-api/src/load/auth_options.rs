//! The options of the filters that say who a client is.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rhai::Map;

use super::options::check_names;
use crate::answer::header_name;

/// The most names in one option.
const MOST_NAMES: usize = 64;

/// Options that stand behind the other arguments of a filter.
pub(super) struct AuthOptions {
    of: &'static str,
    given: Map,
}

impl AuthOptions {
    /// # Errors
    /// Names an option that the filter doesn't have.
    pub(super) fn new(of: &'static str, given: Map, known: &[&str]) -> Result<Self, String> {
        check_names(of, &given, known)?;
        Ok(Self { of, given })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.given.remove(name) else {
            return Ok(None);
        };
        let text = value.into_immutable_string();
        text.map(|text| Some(text.to_string()))
            .map_err(|found| self.wrong(name, "text", found))
    }

    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool, String> {
        let Some(value) = self.given.remove(name) else {
            return Ok(default);
        };
        value
            .as_bool()
            .map_err(|found| self.wrong(name, "true or false", found))
    }

    /// A time above zero.
    pub(super) fn time(&mut self, name: &str, most: Duration) -> Result<Option<Duration>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let time = humantime::parse_duration(&text)
            .map_err(|_| format!("`{name}`: `{text}` is no time; write \"1500ms\" or \"2s\""))?;
        if time.is_zero() || time > most {
            let most = humantime::format_duration(most);
            return Err(format!(
                "`{name}` of `{}` is above 0 and {most} at the most",
                self.of
            ));
        }
        Ok(Some(time))
    }

    /// The name of a header field.
    pub(super) fn header(&mut self, name: &str) -> Result<Option<HeaderName>, String> {
        self.text(name)?.map(|text| own_field(&text)).transpose()
    }

    /// Names of header fields, which may be looked at.
    pub(super) fn headers(&mut self, name: &str) -> Result<Option<Vec<HeaderName>>, String> {
        let Some(value) = self.given.remove(name) else {
            return Ok(None);
        };
        let found = value.type_name();
        let Some(items) = value.try_cast::<rhai::Array>() else {
            return Err(self.wrong(name, "an array of header names", found));
        };
        if items.len() > MOST_NAMES {
            return Err(format!("`{name}` has {MOST_NAMES} names at the most"));
        }
        let names = items.into_iter().map(|item| {
            let text = item.into_immutable_string();
            header_name(&text.map_err(|found| self.wrong(name, "an array of header names", found))?)
        });
        names.collect::<Result<_, _>>().map(Some)
    }

    /// A map of texts, in the order of its keys.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<(String, String)>, String> {
        let Some(value) = self.given.remove(name) else {
            return Ok(Vec::new());
        };
        let what = "a map of texts, #{ sub: \"x-user\" }";
        let found = value.type_name();
        let Some(entries) = value.try_cast::<Map>() else {
            return Err(self.wrong(name, what, found));
        };
        if entries.len() > MOST_NAMES {
            return Err(format!("`{name}` has {MOST_NAMES} entries at the most"));
        }
        let entries = entries.into_iter().map(|(key, value)| {
            let text = value.into_immutable_string();
            let text = text.map_err(|found| self.wrong(name, what, found))?;
            Ok((key.to_string(), text.to_string()))
        });
        entries.collect()
    }

    /// Everything that was not taken.
    pub(super) fn rest(self) -> Map {
        self.given
    }

    fn wrong(&self, name: &str, wanted: &str, found: &str) -> String {
        format!(
            "`{name}` of `{}` is {wanted}, not a value of type `{found}`",
            self.of
        )
    }
}

/// A field that says who the client is. What a client sends in it is removed, so it can't be one
/// that the request needs.
pub(super) fn own_field(name: &str) -> Result<HeaderName, String> {
    let name = header_name(name)?;
    let needed = [
        http::header::HOST,
        http::header::AUTHORIZATION,
        http::header::COOKIE,
        http::header::UPGRADE,
        http::header::TE,
        http::header::EXPECT,
    ];
    if needed.contains(&name) {
        return Err(format!(
            "`{name}` can't hold who the client is: use a field of your own, such as `x-user`"
        ));
    }
    Ok(name)
}

/// A challenge: `Basic realm="..", charset="UTF-8"`. `parameters` stand behind the realm.
pub(super) fn challenge(
    scheme: &str,
    realm: Option<&str>,
    parameters: &[&str],
) -> Result<HeaderValue, String> {
    let mut all = Vec::new();
    if let Some(realm) = realm {
        let printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if !realm.bytes().all(printable) || realm.contains(['"', '\\']) {
            return Err(format!(
                "the realm `{}` is plain ASCII text without quotes",
                realm.escape_debug()
            ));
        }
        all.push(format!("realm=\"{realm}\""));
    }
    all.extend(parameters.iter().map(ToString::to_string));
    let text = format!("{scheme} {}", all.join(", "));
    HeaderValue::from_str(text.trim_end()).map_err(|_| "the realm can't be sent".to_owned())
}
