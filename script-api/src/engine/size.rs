//! The size of a value with everything in it, by which Rhai's limits go.

use rhai::{Array, Blob, Dynamic, ImmutableString, Map};

use super::limits::Limits;

/// Sums that stop at the largest number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Items of arrays, and bytes of blobs.
    pub(super) items: usize,
    /// Entries of maps.
    pub(super) entries: usize,
    /// Bytes of texts.
    pub(super) text: usize,
}

impl Size {
    /// The size of what an array holds.
    pub(super) fn of_items(array: &Array) -> Self {
        let sizes = array.iter().map(Self::of_item);
        sizes.fold(Self::default(), Self::and)
    }

    /// The size of what a map holds.
    pub(super) fn of_entries(map: &Map) -> Self {
        let entries = Self {
            entries: map.len(),
            ..Self::default()
        };
        map.values().map(Self::of_inside).fold(entries, Self::and)
    }

    /// Whether a value of this size may be.
    pub(super) fn is_within(self, limits: &Limits) -> bool {
        self.items <= limits.items && self.entries <= limits.items && self.text <= limits.string
    }

    /// The size of one item of an array: one, and what is in it.
    pub(super) fn of_item(value: &Dynamic) -> Self {
        let one = Self {
            items: 1,
            ..Self::default()
        };
        one.and(Self::of_inside(value))
    }

    fn of_inside(value: &Dynamic) -> Self {
        let none = Self::default();
        if let Some(array) = value.read_lock::<Array>() {
            Self::of_items(&array)
        } else if let Some(map) = value.read_lock::<Map>() {
            Self::of_entries(&map)
        } else if let Some(text) = value.read_lock::<ImmutableString>() {
            Self {
                text: text.len(),
                ..none
            }
        } else if let Some(blob) = value.read_lock::<Blob>() {
            Self {
                items: blob.len(),
                ..none
            }
        } else {
            none
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            items: self.items.saturating_add(other.items),
            entries: self.entries.saturating_add(other.entries),
            text: self.text.saturating_add(other.text),
        }
    }

    pub(super) fn times(self, number: usize) -> Self {
        Self {
            items: self.items.saturating_mul(number),
            entries: self.entries.saturating_mul(number),
            text: self.text.saturating_mul(number),
        }
    }
}
