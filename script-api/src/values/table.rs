//! `table(..)`: a look-up table.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::frozen::Frozen;

/// An immutable map from text to plain data. Cloning shares it, so a table of any size costs a
/// hook no more than one look-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Table(Arc<HashMap<String, Frozen>>);

impl Table {
    /// A table of these entries; of two with the same key the later one counts.
    pub fn new(entries: impl IntoIterator<Item = (String, Frozen)>) -> Self {
        Self(Arc::new(entries.into_iter().collect()))
    }

    /// Reads the JSON object in `text`.
    ///
    /// # Errors
    /// When `text` is no JSON or its top level is no object.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        // Some editors begin a file with a byte order mark, which is no JSON.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        match serde_json::from_slice(text) {
            Ok(serde_json::Value::Object(entries)) => Ok(Self::new(
                entries
                    .into_iter()
                    .map(|(key, value)| (key, Frozen::from(value))),
            )),
            Ok(_) => Err("the top level must be an object, { \"key\": value, .. }".to_owned()),
            Err(error) => Err(format!("no valid JSON: {error}")),
        }
    }

    /// The value stored for `key`.
    pub fn get(&self, key: &str) -> Option<&Frozen> {
        self.0.get(key)
    }

    /// Whether there is a value for `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_object() {
        let table =
            Table::from_json(br#"{"k1": "alice", "k2": {"plan": "gold", "n": 3}}"#).unwrap();
        assert_eq!(table.get("k1"), Some(&Frozen::Text("alice".into())));
        assert!(table.contains("k2") && !table.contains("alice"));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn refuses_what_is_no_object() {
        assert!(Table::from_json(b"[1]").unwrap_err().contains("object"));
        assert!(Table::from_json(b"{").unwrap_err().contains("line 1"));
    }
}
