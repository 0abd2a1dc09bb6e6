//! `table(..)`: a look-up table.

mod columns;
mod json;
mod lines;

use std::{fmt, sync::Arc};

use hashbrown::HashMap;

use crate::frozen::Frozen;

pub use columns::Columns;

/// An immutable map from text to plain data. Cloning shares it, so a table of any size costs a
/// hook no more than one look-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Table(Arc<HashMap<String, Frozen>>);

/// Why a file is no table, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Counted from 1.
    line: Option<u64>,
    message: String,
}

impl Wrong {
    fn new(line: impl Into<Option<u64>>, message: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            message: message.into(),
        }
    }

    /// A key that stands in the file a second time.
    fn twice(line: u64, key: &str, first: u64) -> Self {
        let key = key.escape_debug();
        Self::new(
            line,
            format!("the key `{key}` stands in line {first} already"),
        )
    }

    /// With the name of the file.
    pub fn of<'w>(&'w self, file: &'w str) -> impl fmt::Display + 'w {
        struct InFile<'w>(&'w Wrong, &'w str);
        impl fmt::Display for InFile<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Self(wrong, file) = self;
                match wrong.line {
                    Some(line) => write!(f, "{file}:{line}: {}", wrong.message),
                    None => write!(f, "{file}: {}", wrong.message),
                }
            }
        }
        InFile(self, file)
    }
}

impl Table {
    /// A table of these entries; of two with the same key the later one counts.
    pub fn new(entries: impl IntoIterator<Item = (String, Frozen)>) -> Self {
        Self(Arc::new(entries.into_iter().collect()))
    }

    /// Reads the JSON object in `text`.
    ///
    /// # Errors
    /// When `text` is no JSON, its top level is no object, or that has a key twice.
    pub fn from_json(text: &[u8]) -> Result<Self, Wrong> {
        json::read(without_mark(text)).map(Self::new)
    }

    /// Reads rows of columns (RFC 4180), without the spaces around what stands in them.
    ///
    /// # Errors
    /// When a row has more or fewer columns than it must, no key, or one that another row has.
    pub fn from_csv(text: &[u8], columns: &Columns) -> Result<Self, Wrong> {
        columns::read(without_mark(text), columns).map(Self::new)
    }

    /// Reads a set of lines: each is a key, whose value is `true`. Empty lines and those that begin
    /// with `#` are left out, and so are the spaces around a line. A line may be there twice.
    ///
    /// # Errors
    /// When a line is no UTF-8.
    pub fn from_lines(text: &[u8]) -> Result<Self, Wrong> {
        lines::read(without_mark(text)).map(Self::new)
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

/// Some editors, and spreadsheets, begin a file with a byte order mark, which belongs to no format.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
