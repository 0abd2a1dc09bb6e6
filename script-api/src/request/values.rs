//! What hooks of one request leave for its later hooks: `req.set(key, value)`.

use thiserror::Error;

use crate::frozen::Frozen;

/// The most values of one request.
pub const MOST_VALUES: usize = 64;

/// Bytes that all values of one request take together with their keys. They are held until its last hook
/// has run, while other requests are served.
pub const MOST_BYTES: usize = 256 * 1024;

/// Why a value is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoRoom {
    /// There are too many.
    #[error("a request keeps {MOST_VALUES} values at the most: keep a map under one key")]
    Values,
    /// They are too large.
    #[error("the values of a request take {MOST_BYTES} bytes at the most, with this one {0}")]
    Bytes(usize),
}

/// Plain data by key. Empty, it takes no memory of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// Few, so that looking at each one costs less than a map does.
    entries: Vec<(Box<str>, Frozen)>,
    bytes: usize,
}

impl Values {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Frozen> {
        let mut entries = self.entries.iter();
        entries.find_map(|(known, value)| (**known == *key).then_some(value))
    }

    /// Keeps a value in place of the one that `key` had; `()` removes that.
    ///
    /// # Errors
    /// When there is no room for it; then all stays as it was.
    pub fn set(&mut self, key: &str, value: Frozen) -> Result<(), NoRoom> {
        let known = self.entries.iter().position(|(known, _)| **known == *key);
        let before = known.map_or(0, |index| size(&self.entries[index]));
        if value == Frozen::Unit {
            if let Some(index) = known {
                self.entries.swap_remove(index);
                self.bytes -= before;
            }
            return Ok(());
        }
        if known.is_none() && self.entries.len() >= MOST_VALUES {
            return Err(NoRoom::Values);
        }
        let entry = (Box::from(key), value);
        let bytes = self.bytes - before + size(&entry);
        if bytes > MOST_BYTES {
            return Err(NoRoom::Bytes(bytes));
        }
        self.bytes = bytes;
        match known {
            Some(index) => self.entries[index] = entry,
            None => self.entries.push(entry),
        }
        Ok(())
    }
}

fn size((key, value): &(Box<str>, Frozen)) -> usize {
    key.len() + value.size()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_removes() {
        let mut values = Values::default();
        values.set("a", Frozen::Int(1)).unwrap();
        values.set("b", Frozen::Text("x".into())).unwrap();
        values.set("a", Frozen::Int(2)).unwrap();
        assert_eq!(values.get("a"), Some(&Frozen::Int(2)));
        values.set("a", Frozen::Unit).unwrap();
        values.set("a", Frozen::Unit).unwrap();
        assert_eq!(values.get("a"), None);
        assert_eq!(values.get("b"), Some(&Frozen::Text("x".into())));
        values.set("b", Frozen::Unit).unwrap();
        assert_eq!(values, Values::default(), "nothing is counted any more");
    }

    #[test]
    fn their_number_and_bytes_are_bounded() {
        let mut values = Values::default();
        for index in 0..MOST_VALUES {
            values.set(&format!("k{index}"), Frozen::Int(1)).unwrap();
        }
        let one_more = values.set("one more", Frozen::Int(1));
        assert_eq!(one_more, Err(NoRoom::Values));
        values.set("k0", Frozen::Int(2)).unwrap();

        let large = Frozen::Text("x".repeat(MOST_BYTES).into());
        assert!(matches!(values.set("k0", large), Err(NoRoom::Bytes(_))));
        assert_eq!(values.get("k0"), Some(&Frozen::Int(2)));
        let fits = Frozen::Text("x".repeat(MOST_BYTES / 2).into());
        values.set("k0", fits.clone()).unwrap();
        values.set("k0", fits.clone()).unwrap();
        assert!(matches!(values.set("k1", fits), Err(NoRoom::Bytes(_))));
    }
}
