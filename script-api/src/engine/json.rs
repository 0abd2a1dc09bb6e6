//! JSON to and from the interpreter's values, bounded while it is read and written.

use std::{fmt, io};

use rhai::{Array, Dynamic, ImmutableString, Map};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::budget;
use crate::frozen::Frozen;

/// Bytes of text that a native makes at most in one call.
const LONGEST: usize = 1024 * 1024;

/// Reads JSON. `string` bounds the bytes of each text, `items` the elements of each array and object;
/// the whole is bounded by what the hook may hold.
///
/// # Errors
/// When it is no JSON, or larger than allowed.
pub(super) fn decode(text: &[u8], string: usize, items: usize) -> Result<Dynamic, String> {
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
pub(super) fn encode(value: &Dynamic) -> Result<Vec<u8>, String> {
    let value = Frozen::freeze(value).map_err(|what| format!("JSON can't hold {what}"))?;
    let value = plain(&value)?;
    let mut text = Bounded(Vec::new());
    serde_json::to_writer(&mut text, &value).map_err(|error| error.to_string())?;
    Ok(text.0)
}

fn plain(value: &Frozen) -> Result<serde_json::Value, String> {
    Ok(match value {
        Frozen::Unit => serde_json::Value::Null,
        Frozen::Bool(value) => (*value).into(),
        Frozen::Int(value) => (*value).into(),
        Frozen::Float(value) => serde_json::Number::from_f64(*value)
            .map(Into::into)
            .ok_or("JSON has no infinite number")?,
        Frozen::Char(value) => value.to_string().into(),
        Frozen::Text(value) => (&**value).into(),
        Frozen::Array(items) => items.iter().map(plain).collect::<Result<_, _>>()?,
        Frozen::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| Ok((key.clone(), plain(value)?)));
            serde_json::Value::Object(entries.collect::<Result<_, String>>()?)
        }
        Frozen::Bytes(_)
        | Frozen::Table(_)
        | Frozen::Cidr(_)
        | Frozen::Regex(_)
        | Frozen::Answer(_)
        | Frozen::State(_)
        | Frozen::Function(_) => return Err("JSON holds plain data only".to_owned()),
    })
}

struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::Error::other("it would be longer than 1 MiB"));
        }
        self.0.extend_from_slice(bytes);
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
        if value.len() > self.string {
            return Err(E::custom(format_args!(
                "a text of more than {} bytes",
                self.string
            )));
        }
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
        let deep = "[".repeat(1000);
        assert!(read(&deep).unwrap_err().contains("recursion"));
    }

    #[test]
    fn writes_plain_data_only() {
        let value = decode(br#"{"b":[1,null,"x"],"a":0.5}"#, 8, 8).unwrap();
        let text = String::from_utf8(encode(&value).unwrap()).unwrap();
        assert_eq!(text, r#"{"a":0.5,"b":[1,null,"x"]}"#);
        assert!(encode(&f64::NAN.into()).is_err());
        let long: Array = vec![Dynamic::from("x".repeat(LONGEST / 2)); 3];
        assert!(encode(&long.into()).unwrap_err().contains("1 MiB"));
    }
}
