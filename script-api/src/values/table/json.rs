//! A table from a JSON object.

use std::fmt;

use hashbrown::HashMap;
use serde::{
    Deserializer as _,
    de::{Error as _, MapAccess, Visitor},
};

use super::Wrong;
use crate::frozen::Frozen;

pub(super) fn read(text: &[u8]) -> Result<HashMap<String, Frozen>, Wrong> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = reader.deserialize_any(Object);
    read.and_then(|entries| reader.end().map(|()| entries))
        .map_err(|error| {
            let line = u64::try_from(error.line()).ok().filter(|&line| line > 0);
            // It ends with the place, which stands before it here.
            let text = error.to_string();
            let message = text
                .rsplit_once(" at line ")
                .map_or(&*text, |(text, _)| text);
            Wrong::new(line, format!("no table in JSON: {message}"))
        })
}

/// `{ "key": value, .. }`, each key once: of two of one name nobody knows which one is meant.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = HashMap<String, Frozen>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, { \"key\": value, .. }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = HashMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if entries.contains_key(&key) {
                let key = key.escape_debug();
                return Err(A::Error::custom(format!(
                    "the key `{key}` stands there twice"
                )));
            }
            let value: serde_json::Value = map.next_value()?;
            entries.insert(key, Frozen::from(value));
        }
        Ok(entries)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Table;
    use super::*;

    #[test]
    fn reads_an_object() {
        let text = br#"{"k1": "alice", "k2": {"plan": "gold", "n": 3}}"#;
        let table = Table::from_json(text).unwrap();
        assert_eq!(table.get("k1"), Some(&Frozen::Text("alice".into())));
        assert!(table.contains("k2") && !table.contains("alice"));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn says_where_it_is_wrong() {
        for (text, says) in [
            (
                "[1]",
                "k.json:1: no table in JSON: invalid type: sequence, expected an object",
            ),
            ("\n{", "k.json:2: no table in JSON: EOF"),
            ("{}\n\nx", "k.json:3: no table in JSON: trailing characters"),
            (
                "{\"a\": 1,\n\"a\": 2}",
                "k.json:2: no table in JSON: the key `a` stands there twice",
            ),
        ] {
            let wrong = Table::from_json(text.as_bytes()).unwrap_err();
            let wrong = wrong.of("k.json").to_string();
            assert!(wrong.starts_with(says), "{wrong}");
        }
    }
}
