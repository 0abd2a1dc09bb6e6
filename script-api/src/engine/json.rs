//! JSON to and from the interpreter's values, bounded while it is read and written.

use std::{fmt, io};

use rhai::{Array, Dynamic, ImmutableString, Map};
use serde::{
    Serialize, Serializer,
    de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor},
    ser::Error as _,
};

use super::budget;
use crate::frozen::described;

/// Bytes of text that a native makes at most in one call.
const LONGEST: usize = 1024 * 1024;

/// How deep arrays and maps may be nested in a value that is written.
const MAX_DEPTH: usize = 64;

/// Reads JSON. `string` bounds the bytes of each text, names included, `items` the elements of each array and object;
/// the whole is bounded by what the hook may hold.
///
/// # Errors
/// When it is no JSON, or larger than allowed.
pub(crate) fn decode(text: &[u8], string: usize, items: usize) -> Result<Dynamic, String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Value { string, items }
        .deserialize(&mut reader)
        .map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Writes a value as JSON.
///
/// # Errors
/// When it holds what is no plain data, or would be longer than 1 MiB.
pub(crate) fn encode(value: &Dynamic) -> Result<Vec<u8>, String> {
    encode_within(value, LONGEST)
}

/// Writes a value as JSON of `longest` bytes at the most. Nothing else is made on the way: many
/// items may share one long text.
///
/// # Errors
/// As [`encode`].
pub(super) fn encode_within(value: &Dynamic, longest: usize) -> Result<Vec<u8>, String> {
    written(&Plain::new(value), longest)
}

/// [`encode_within`] for a map.
///
/// # Errors
/// As [`encode`].
pub(super) fn encode_map_within(map: &Map, longest: usize) -> Result<Vec<u8>, String> {
    written(&Entries { map, depth: 0 }, longest)
}

fn written(value: &impl Serialize, longest: usize) -> Result<Vec<u8>, String> {
    let mut text = Bounded {
        written: Vec::new(),
        longest,
    };
    serde_json::to_writer(&mut text, value).map_err(|error| error.to_string())?;
    Ok(text.written)
}

/// A value of the interpreter that is written out where it lies.
#[derive(Clone, Copy)]
pub(super) struct Plain<'v> {
    value: &'v Dynamic,
    depth: usize,
}

impl<'v> Plain<'v> {
    pub(super) fn new(value: &'v Dynamic) -> Self {
        Self { value, depth: 0 }
    }

    fn inside(self, value: &Dynamic) -> Plain<'_> {
        Plain {
            value,
            depth: self.depth + 1,
        }
    }
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let value = self.value;
        if self.depth > MAX_DEPTH {
            return Err(S::Error::custom("it is nested too deeply for JSON"));
        }
        if value.is_unit() {
            return writer.serialize_unit();
        }
        if let Ok(value) = value.as_bool() {
            return writer.serialize_bool(value);
        }
        if let Ok(value) = value.as_int() {
            return writer.serialize_i64(value);
        }
        if let Ok(value) = value.as_float() {
            if !value.is_finite() {
                return Err(S::Error::custom("JSON has no infinite number"));
            }
            return writer.serialize_f64(value);
        }
        if let Ok(value) = value.as_char() {
            return writer.serialize_char(value);
        }
        if let Ok(value) = value.as_immutable_string_ref() {
            return writer.serialize_str(&value);
        }
        if let Ok(items) = value.as_array_ref() {
            return writer.collect_seq(items.iter().map(|item| self.inside(item)));
        }
        if let Ok(map) = value.as_map_ref() {
            let entries = Entries {
                map: &map,
                depth: self.depth,
            };
            return entries.serialize(writer);
        }
        Err(S::Error::custom(format_args!(
            "JSON can't hold {}",
            described(value)
        )))
    }
}

/// A map of the interpreter that is written out where it lies.
struct Entries<'v> {
    map: &'v Map,
    depth: usize,
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let depth = self.depth + 1;
        let entries = self.map.iter();
        writer.collect_map(entries.map(|(key, value)| (&**key, Plain { value, depth })))
    }
}

struct Bounded {
    written: Vec<u8>,
    longest: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written.len() + bytes.len() > self.longest {
            return Err(io::Error::other(format!(
                "it would be longer than {} bytes",
                self.longest
            )));
        }
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads one value, and with it all that it holds.
#[derive(Clone, Copy)]
struct Value {
    string: usize,
    items: usize,
}

impl Value {
    fn fits<E: Error>(self, text: &str) -> Result<(), E> {
        if text.len() > self.string {
            return Err(E::custom(format_args!(
                "a text of more than {} bytes",
                self.string
            )));
        }
        Ok(())
    }

    fn room<E: Error>(self, items: usize) -> Result<(), E> {
        if items >= self.items {
            return Err(E::custom(format_args!(
                "more than {} items in one array or object",
                self.items
            )));
        }
        if budget::is_out_of_memory() {
            return Err(E::custom("more memory than `[script] memory` allows"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Dynamic;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Dynamic, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Dynamic;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Dynamic, E> {
        Ok(Dynamic::UNIT)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Dynamic, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Dynamic, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Dynamic, E> {
        // Larger than the interpreter's whole numbers: as near as a float comes.
        #[allow(clippy::cast_precision_loss)]
        Ok(i64::try_from(value).map_or_else(|_| Dynamic::from(value as f64), Into::into))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Dynamic, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Dynamic, E> {
        self.fits(value)?;
        Ok(ImmutableString::from(value).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Dynamic, A::Error> {
        let mut array = Array::new();
        while let Some(value) = seq.next_element_seed(self)? {
            self.room(array.len())?;
            array.push(value);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Dynamic, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.room(map.len())?;
            self.fits(&key)?;
            let value = entries.next_value_seed(self)?;
            map.insert(key.into(), value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        decode(text.as_bytes(), 8, 3).map(|value| format!("{value:?}"))
    }

    #[test]
    fn reads_what_json_has() {
        assert_eq!(read(" null ").unwrap(), "()");
        assert_eq!(read("[1, 2.5, true]").unwrap(), "[1, 2.5, true]");
        assert_eq!(
            read(r#"{"a": {"b": "c"}}"#).unwrap(),
            r##"#{"a": #{"b": "c"}}"##
        );
        assert_eq!(read("9223372036854775807").unwrap(), "9223372036854775807");
        assert_eq!(
            read("18446744073709551615").unwrap(),
            "1.8446744073709552e19"
        );
    }

    #[test]
    fn refuses_what_is_none_or_too_large() {
        assert!(read("{").unwrap_err().contains("line 1"));
        assert!(read("1 2").unwrap_err().contains("trailing"));
        assert!(read("[1,2,3,4]").unwrap_err().contains("more than 3 items"));
        let wide = r#"{"a":1,"b":2,"c":3,"d":4}"#;
        assert!(read(wide).unwrap_err().contains("more than 3 items"));
        assert!(read("\"123456789\"").unwrap_err().contains("8 bytes"));
        let name = r#"{"123456789": 1}"#;
        assert!(read(name).unwrap_err().contains("8 bytes"));
        let deep = "[".repeat(1000);
        assert!(read(&deep).unwrap_err().contains("recursion"));
    }

    #[test]
    fn writes_plain_data_only() {
        let value = decode(br#"{"b":[1,null,"x"],"a":0.5}"#, 8, 8).unwrap();
        let text = String::from_utf8(encode(&value).unwrap()).unwrap();
        assert_eq!(text, r#"{"a":0.5,"b":[1,null,"x"]}"#);
        assert!(encode(&f64::NAN.into()).is_err());
        // Many times the one text.
        let text = Dynamic::from(ImmutableString::from("x".repeat(LONGEST / 2)));
        let long: Array = vec![text; 1000];
        assert!(encode(&long.into()).unwrap_err().contains("1048576 bytes"));
        let mut deep = Dynamic::UNIT;
        for _ in 0..100 {
            deep = Array::from([deep]).into();
        }
        assert!(encode(&deep).unwrap_err().contains("too deeply"));
        let blob = encode(&Dynamic::from_blob(vec![1])).unwrap_err();
        assert!(blob.contains("a value of type `blob`"), "{blob}");
    }
}
