//! Arrays and maps that are written out, with the bound of their size.

use rhai::{
    Dynamic, Engine, EvalAltResult, Expr, Ident, Identifier, Map, Position, StaticVec, ThinVec,
};
use std::collections::BTreeMap;

use super::{Lowered, Lowering};
use crate::engine::compiled::machine::{Code, Machine, Stop, count};

/// How much a value holds, with all that is in it: items of arrays and bytes of blobs, entries of maps,
/// bytes of texts.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    items: usize,
    entries: usize,
    text: usize,
}

impl Sizes {
    fn of(value: &Dynamic) -> Self {
        let mut sizes = Self::default();
        if let Ok(text) = value.as_immutable_string_ref() {
            sizes.text = text.len();
        } else if let Ok(array) = value.as_array_ref() {
            for item in array.iter() {
                sizes.items += 1 + usize::from(item.is_blob());
                sizes.add(Self::of(item));
            }
        } else if let Ok(map) = value.as_map_ref() {
            for item in map.values() {
                sizes.entries += 1;
                sizes.items += usize::from(item.is_blob());
                sizes.add(Self::of(item));
            }
        } else if let Ok(blob) = value.as_blob_ref() {
            sizes.items = blob.len();
        }
        sizes
    }

    fn add(&mut self, other: Self) {
        self.items += other.items;
        self.entries += other.entries;
        self.text += other.text;
    }

    fn check(self, engine: &Engine, place: Position) -> Result<(), Stop> {
        let is_over = |size: usize, most: usize| most > 0 && size > most;
        let what = if is_over(self.text, engine.max_string_size()) {
            return Err(too_long(place));
        } else if is_over(self.items, engine.max_array_size()) {
            "Size of array/BLOB"
        } else if is_over(self.entries, engine.max_map_size()) {
            "Size of object map"
        } else {
            return Ok(());
        };
        Err(EvalAltResult::ErrorDataTooLarge(what.to_owned(), place).into())
    }
}

/// The error of a text that is longer than it may be.
#[cold]
pub(super) fn too_long(place: Position) -> Stop {
    EvalAltResult::ErrorDataTooLarge("Length of string".to_owned(), place).into()
}

impl Lowering<'_> {
    pub(super) fn array(&mut self, items: &ThinVec<Expr>, place: Position) -> Lowered<Code> {
        let items = items
            .iter()
            .map(|item| Ok((self.expression(item)?, item.position())))
            .collect::<Lowered<Vec<_>>>()?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let mut array = rhai::Array::with_capacity(items.len());
            let mut sizes = Sizes::default();
            for (item, place) in &items {
                let value = item(machine)?.flatten();
                sizes.items += 1;
                sizes.add(Sizes::of(&value));
                sizes.check(machine.host.engine, *place)?;
                array.push(value);
            }
            Ok(Dynamic::from_array(array))
        }))
    }

    pub(super) fn map(
        &mut self,
        entries: &(StaticVec<(Ident, Expr)>, BTreeMap<Identifier, Dynamic>),
        place: Position,
    ) -> Lowered<Code> {
        let template: Map = entries.1.clone();
        let entries = entries
            .0
            .iter()
            .map(|(name, value)| {
                let name = name.name.clone();
                Ok((name, self.expression(value)?, value.position()))
            })
            .collect::<Lowered<Vec<_>>>()?;
        Ok(Box::new(move |machine: &mut Machine<'_>| {
            count(place)?;
            let mut map = template.clone();
            let mut sizes = Sizes::default();
            for (name, value, place) in &entries {
                let value = value(machine)?.flatten();
                sizes.entries += 1;
                sizes.add(Sizes::of(&value));
                sizes.check(machine.host.engine, *place)?;
                map.insert(name.as_str().into(), value);
            }
            Ok(Dynamic::from_map(map))
        }))
    }
}
