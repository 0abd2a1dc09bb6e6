//! Bodies that a program takes apart: JSON, forms, and the codings of bytes.

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use rhai::{Dynamic, Map};

use crate::{
    engine::{coding_api, json},
    request::query_values,
};

/// Bounds that inputs can go over.
const STRING: usize = 24;
const ITEMS: usize = 6;

/// The input is the body.
pub fn forms_and_json(body: &[u8]) {
    read_json(body);
    read_form(body);
    decode(body);
}

fn read_json(body: &[u8]) {
    let unbounded = json::decode(body, body.len() + 1, body.len() + 1);
    let other = serde_json::from_slice::<serde_json::Value>(body);
    assert_eq!(unbounded.is_ok(), other.is_ok(), "{unbounded:?} {other:?}");
    if let Ok(value) = json::decode(body, STRING, ITEMS) {
        is_bounded(&value);
    }
    let Ok(value) = unbounded else {
        return;
    };
    // What is nested too deeply can't be written.
    let Ok(text) = json::encode(&value) else {
        return;
    };
    let again = json::decode(&text, text.len(), text.len()).expect("it was written as JSON");
    // Floats are read to the nearest but one.
    if !has_floats(&value) {
        assert_eq!(json::encode(&again).as_ref(), Ok(&text));
    }
}

fn is_bounded(value: &Dynamic) {
    if let Ok(text) = value.as_immutable_string_ref() {
        assert!(text.len() <= STRING);
    } else if let Ok(items) = value.as_array_ref() {
        assert!(items.len() <= ITEMS);
        items.iter().for_each(is_bounded);
    } else if let Ok(map) = value.as_map_ref() {
        assert!(map.len() <= ITEMS);
        assert!(map.keys().all(|key| key.len() <= STRING));
        map.values().for_each(is_bounded);
    }
}

fn has_floats(value: &Dynamic) -> bool {
    if let Ok(items) = value.as_array_ref() {
        return items.iter().any(has_floats);
    }
    if let Ok(map) = value.as_map_ref() {
        return map.values().any(has_floats);
    }
    value.is_float()
}

fn read_form(body: &[u8]) {
    let form = coding_api::form_parse(body, STRING, ITEMS);
    let Some(fields) = form.ok().and_then(|form| form.try_cast::<Map>()) else {
        return;
    };
    let text = std::str::from_utf8(body).expect("a form is text");
    let mut count = 0;
    for (name, value) in &fields {
        is_bounded(value);
        assert!(name.len() <= STRING);
        let values: Vec<String> = match value.as_array_ref() {
            Ok(values) => values.iter().map(ToString::to_string).collect(),
            Err(_) => vec![value.to_string()],
        };
        count += values.len();
        if !name.is_empty() {
            assert_eq!(values, query_values(text, name).collect::<Vec<_>>());
        }
    }
    assert_eq!(
        count,
        text.split('&').filter(|pair| !pair.is_empty()).count()
    );
    assert!(count <= ITEMS);
}

/// No two texts are the same bytes, and nothing is longer than allowed.
fn decode(body: &[u8]) {
    for coding in [&BASE64, &BASE64URL_NOPAD, &HEXLOWER_PERMISSIVE] {
        let decoded = coding_api::decode(coding, body, STRING);
        let Some(bytes) = decoded.ok().and_then(|bytes| bytes.into_blob().ok()) else {
            continue;
        };
        assert!(bytes.len() <= STRING);
        if coding == &HEXLOWER_PERMISSIVE {
            assert_eq!(
                HEXLOWER.encode(&bytes).as_bytes(),
                body.to_ascii_lowercase()
            );
        } else {
            assert_eq!(coding.encode(&bytes).as_bytes(), body);
        }
    }
    let decoded = coding_api::url_decode(body, STRING);
    if let Some(text) = decoded.ok().and_then(|text| text.into_string().ok()) {
        assert!(text.len() <= STRING);
        let plain = percent_encoding::percent_decode(body).decode_utf8();
        assert_eq!(plain.expect("it was decoded"), text);
    }
}
