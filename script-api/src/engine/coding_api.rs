//! JSON, base64, hexadecimal, percent-encoding and forms.

use data_encoding::Encoding;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use rhai::{Array, Dynamic, Engine, ImmutableString, Map};

use super::{
    current::{NativeResult, error, too_long, too_many_bytes, too_many_items},
    data::of_data,
    json,
    limits::Limits,
};
use crate::request::form_decode;

// The crate has them as constants; these are not copied at each use.
static BASE64: Encoding = data_encoding::BASE64;
static BASE64URL: Encoding = data_encoding::BASE64URL;
static BASE64URL_NOPAD: Encoding = data_encoding::BASE64URL_NOPAD;
static HEXLOWER: Encoding = data_encoding::HEXLOWER;
static HEXLOWER_PERMISSIVE: Encoding = data_encoding::HEXLOWER_PERMISSIVE;

/// Everything but the unreserved characters of RFC 3986 section 2.3.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What `application/x-www-form-urlencoded` escapes (URL standard section 1.3); a space, which
/// becomes a `+`, apart.
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'*')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b' ');

pub(super) fn register(engine: &mut Engine, limits: &Limits) {
    let (string, items) = (limits.string, limits.items);
    register_json(engine, string, items);

    for (name, coding) in [
        ("base64", &BASE64),
        ("base64url", &BASE64URL_NOPAD),
        ("hex", &HEXLOWER),
    ] {
        of_data(engine, name, move |data| encode(coding, data, string));
    }
    of_data(engine, "from_base64", move |data| {
        decode(&BASE64, data, items)
    });
    of_data(engine, "from_base64url", move |data| {
        let padded = data.ends_with(b"=");
        let coding = if padded { &BASE64URL } else { &BASE64URL_NOPAD };
        decode(coding, data, items)
    });
    of_data(engine, "from_hex", move |data| {
        decode(&HEXLOWER_PERMISSIVE, data, items)
    });

    of_data(engine, "url_encode", move |data| {
        let mut text = String::new();
        escape(data, COMPONENT, &mut text, string)?;
        Ok(text.into())
    });
    of_data(engine, "url_decode", move |data| url_decode(data, string));

    engine
        .register_fn(
            "form_encode",
            move |fields: Map| -> NativeResult<ImmutableString> {
                form_encode(&fields, string).map(Into::into)
            },
        )
        .register_fn("form_encode", |_: ()| ());
    of_data(engine, "form_parse", move |data| {
        form_parse(data, string, items)
    });
}

fn register_json(engine: &mut Engine, string: usize, items: usize) {
    of_data(engine, "json_parse", move |data| {
        json::decode(data, string, items)
            .map_err(|reason| error(format!("this is no usable JSON: {reason}")))
    });
    engine.register_fn(
        "json_encode",
        move |value: Dynamic| -> NativeResult<ImmutableString> {
            let text = json::encode_within(&value, string).map_err(error)?;
            String::from_utf8(text)
                .map(Into::into)
                .map_err(|_| error("JSON is UTF-8"))
        },
    );
}

fn encode(coding: &Encoding, data: &[u8], longest: usize) -> NativeResult<Dynamic> {
    if coding.encode_len(data.len()) > longest {
        return Err(too_long());
    }
    Ok(coding.encode(data).into())
}

/// `()` when `data` is not in the coding. Strict, so that no two texts are the same bytes: no spaces,
/// and no bits beyond the end (RFC 4648 sections 3.3 and 3.5).
pub(crate) fn decode(coding: &Encoding, data: &[u8], most: usize) -> NativeResult<Dynamic> {
    // The library also takes several texts behind each other, each with its padding.
    let unpadded = data
        .iter()
        .rposition(|&byte| byte != b'=')
        .map_or(0, |last| last + 1);
    if data[..unpadded].contains(&b'=') {
        return Ok(Dynamic::UNIT);
    }
    let Ok(len) = coding.decode_len(data.len()) else {
        return Ok(Dynamic::UNIT);
    };
    // Up to two of them are padding.
    if len.saturating_sub(2) > most {
        return Err(too_many_bytes());
    }
    match coding.decode(data) {
        Ok(bytes) if bytes.len() > most => Err(too_many_bytes()),
        Ok(bytes) => Ok(Dynamic::from_blob(bytes)),
        Err(_) => Ok(Dynamic::UNIT),
    }
}

/// Appends `data`, percent-encoded.
fn escape(
    data: &[u8],
    set: &'static AsciiSet,
    to: &mut String,
    longest: usize,
) -> NativeResult<()> {
    for piece in percent_encode(data, set) {
        if to.len() + piece.len() > longest {
            return Err(too_long());
        }
        to.push_str(piece);
    }
    Ok(())
}

/// `()` when a `%` is not followed by two digits, or the bytes are not UTF-8.
pub(crate) fn url_decode(data: &[u8], longest: usize) -> NativeResult<Dynamic> {
    // Three bytes become one at the most.
    if data.len() / 3 > longest {
        return Err(too_long());
    }
    let mut escapes = data.split(|&byte| byte == b'%').skip(1);
    let whole = |escape: &[u8]| {
        let digits = escape.get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !escapes.all(whole) {
        return Ok(Dynamic::UNIT);
    }
    match percent_decode(data).decode_utf8() {
        Ok(text) if text.len() > longest => Err(too_long()),
        Ok(text) => Ok(ImmutableString::from(&*text).into()),
        Err(_) => Ok(Dynamic::UNIT),
    }
}

/// A form of text, numbers and bools; an array is a name several times, and `()` is left out.
fn form_encode(fields: &Map, longest: usize) -> NativeResult<String> {
    let mut text = String::new();
    for (name, value) in fields {
        match value.as_array_ref() {
            Ok(values) => {
                for value in values.iter() {
                    form_field(name, value, &mut text, longest)?;
                }
            }
            Err(_) => form_field(name, value, &mut text, longest)?,
        }
    }
    Ok(text)
}

fn form_field(name: &str, value: &Dynamic, to: &mut String, longest: usize) -> NativeResult<()> {
    let value = if value.is_unit() {
        return Ok(());
    } else if value.is_string() || value.is_int() || value.is_float() || value.is_bool() {
        ImmutableString::from(value.to_string())
    } else {
        return Err(error(format!(
            "the field `{name}` of a form is text, not a value of type `{}`",
            value.type_name()
        )));
    };
    if !to.is_empty() {
        to.push('&');
    }
    let start = to.len();
    escape(name.as_bytes(), FORM, to, longest)?;
    to.push('=');
    escape(value.as_bytes(), FORM, to, longest)?;
    if to[start..].contains(' ') {
        let spaced = to.split_off(start).replace(' ', "+");
        to.push_str(&spaced);
    }
    Ok(())
}

/// The fields of a form; a name that stands there several times has an array. `()` when it is not UTF-8.
pub(crate) fn form_parse(data: &[u8], longest: usize, most: usize) -> NativeResult<Dynamic> {
    let Ok(text) = std::str::from_utf8(data) else {
        return Ok(Dynamic::UNIT);
    };
    let mut fields = Map::new();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    for (count, pair) in pairs.enumerate() {
        if count >= most {
            return Err(too_many_items());
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (form_decode(name), form_decode(value));
        if name.len() > longest || value.len() > longest {
            return Err(too_long());
        }
        let value = Dynamic::from(ImmutableString::from(&*value));
        match fields.get_mut(&*name) {
            None => {
                fields.insert((&*name).into(), value);
            }
            Some(before) if before.is_array() => {
                if let Ok(mut values) = before.as_array_mut() {
                    values.push(value);
                }
            }
            Some(before) => {
                let first = before.take();
                *before = Array::from([first, value]).into();
            }
        }
    }
    Ok(fields.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn bytes(coding: &Encoding, text: &str) -> Option<Vec<u8>> {
        let value = decode(coding, text.as_bytes(), 100).unwrap();
        value.into_blob().ok()
    }

    /// RFC 4648 section 10.
    #[test]
    fn the_vectors_of_the_rfc() {
        for (data, base64, base64url, hex) in [
            ("", "", "", ""),
            ("f", "Zg==", "Zg", "66"),
            ("fo", "Zm8=", "Zm8", "666f"),
            ("foo", "Zm9v", "Zm9v", "666f6f"),
            ("foob", "Zm9vYg==", "Zm9vYg", "666f6f62"),
            ("fooba", "Zm9vYmE=", "Zm9vYmE", "666f6f6261"),
            ("foobar", "Zm9vYmFy", "Zm9vYmFy", "666f6f626172"),
        ] {
            for (coding, coded) in [
                (&BASE64, base64),
                (&BASE64URL_NOPAD, base64url),
                (&HEXLOWER, hex),
            ] {
                let made = encode(coding, data.as_bytes(), 100).unwrap();
                assert_eq!(made.into_string().unwrap(), coded);
                assert_eq!(bytes(coding, coded).unwrap(), data.as_bytes());
            }
        }
        assert_eq!(
            bytes(&HEXLOWER_PERMISSIVE, "00FFfe"),
            Some(vec![0, 255, 254])
        );
    }

    #[test]
    fn what_is_not_in_the_coding_is_absent() {
        for (coding, text) in [
            // Not padded, padded twice, a space, bits beyond the end, the other alphabet.
            (&BASE64, "Zg"),
            (&BASE64, "Zg===="),
            (&BASE64, "Zm 9v"),
            (&BASE64, "Zh=="),
            (&BASE64, "-_-_"),
            (&BASE64URL_NOPAD, "+/+/"),
            (&HEXLOWER_PERMISSIVE, "0"),
            (&HEXLOWER_PERMISSIVE, "0g"),
        ] {
            assert_eq!(bytes(coding, text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_bounded_before_anything_is_made() {
        assert!(encode(&BASE64, &[0; 75], 100).is_ok());
        assert!(encode(&BASE64, &[0; 76], 100).is_err());
        let coded = BASE64.encode(&[0; 100]);
        assert!(decode(&BASE64, coded.as_bytes(), 100).is_ok());
        assert!(decode(&BASE64, coded.as_bytes(), 99).is_err());
        let mut text = String::new();
        assert!(escape(&[b'/'; 34], COMPONENT, &mut text, 100).is_err());
        assert!(url_decode(&[b'a'; 101], 100).is_err());
    }

    #[test]
    fn decodes_percent_encoding_strictly() {
        let decoded = |text: &str| {
            let value = url_decode(text.as_bytes(), 100).unwrap();
            value.into_string().ok()
        };
        assert_eq!(decoded("a%20b+c%E2%82%ac").unwrap(), "a b+c\u{20ac}");
        for text in ["%", "a%2", "%zz", "%%20", "%ff"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
