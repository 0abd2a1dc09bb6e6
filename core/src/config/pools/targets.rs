//! `targets` of a pool: where its requests go, and which share each target gets.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use edgewright_script::program::MOST_WEIGHT;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::target::Target;
use crate::config::check::Checks;

/// Bytes of a zone's name: labels of Kubernetes have no more.
const LONGEST_ZONE: usize = 63;

/// A target of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTarget {
    /// Where it is.
    pub target: Target,
    /// What it is to the pool. A name's addresses are all the same.
    pub traits: TargetTraits,
}

/// What a target is to its pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetTraits {
    /// `weight`: its share beside the others, 0 to 1000. 0 gets nothing new: only what a sticky cookie or a script
    /// sends there. Default 1.
    pub weight: u16,
    /// `backup`: whether it is only used when no other target is usable.
    pub backup: bool,
    /// `zone`: where it stands, for those who would rather not leave their own.
    pub zone: Option<Arc<str>>,
}

impl Default for TargetTraits {
    fn default() -> Self {
        Self {
            weight: 1,
            backup: false,
            zone: None,
        }
    }
}

impl From<Target> for PoolTarget {
    fn from(target: Target) -> Self {
        Self {
            target,
            traits: TargetTraits::default(),
        }
    }
}

/// Checks the name of a zone.
///
/// # Errors
/// Says what it must be like.
pub fn check_zone(zone: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !zone.is_empty() && zone.len() <= LONGEST_ZONE && zone.bytes().all(fits) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no name of a zone: it has 1 to {LONGEST_ZONE} letters, digits, `-`, `_` and `.`",
        zone.escape_debug()
    ))
}

/// An element of `targets`: `"host:port"`, or a table with more.
#[derive(Debug)]
pub(super) enum Entry {
    Text(String),
    Table(Table),
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "\"host:port\" or a table with a target"
)]
pub(super) struct Table {
    target: Spanned<String>,
    weight: Option<Spanned<i64>>,
    #[serde(default)]
    backup: bool,
    zone: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"host:port\" or a table with a target")
            }

            fn visit_str<E>(self, text: &str) -> Result<Entry, E> {
                Ok(Entry::Text(text.to_owned()))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Entry, M::Error> {
                Table::deserialize(MapAccessDeserializer::new(map)).map(Entry::Table)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Takes the targets of the pool `name`.
pub(super) fn take(
    checks: &mut Checks<'_>,
    name: &Spanned<String>,
    given: Option<Spanned<Vec<Spanned<Entry>>>>,
) -> Vec<PoolTarget> {
    let (span, given) = match given {
        Some(given) => (given.span(), given.into_inner()),
        None => (name.span(), Vec::new()),
    };
    if given.is_empty() {
        checks.error_with_help(
            &span,
            format!("pool `{}` has no targets", name.get_ref()),
            "write targets = [\"host:port\"]",
        );
    }
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for entry in given {
        let span = entry.span();
        let (text, traits) = match entry.into_inner() {
            Entry::Text(text) => (Spanned::new(span, text), TargetTraits::default()),
            Entry::Table(table) => {
                let traits = traits(checks, &table);
                (table.target, traits)
            }
        };
        match text.get_ref().parse::<Target>() {
            Err(error) => checks.error(&text.span(), error.to_string()),
            Ok(target) if !seen.insert(target.clone()) => {
                checks.error(&text.span(), format!("`{target}` is listed twice"));
            }
            Ok(target) => targets.push(PoolTarget { target, traits }),
        }
    }
    targets
}

fn traits(checks: &mut Checks<'_>, table: &Table) -> TargetTraits {
    let mut traits = TargetTraits {
        backup: table.backup,
        ..TargetTraits::default()
    };
    if let Some(given) = &table.weight {
        match u16::try_from(*given.get_ref()) {
            Ok(weight) if weight <= MOST_WEIGHT => traits.weight = weight,
            _ => checks.error(
                &given.span(),
                format!(
                    "`weight` must be between 0 and {MOST_WEIGHT}, not {}",
                    given.get_ref()
                ),
            ),
        }
    }
    if let Some(zone) = &table.zone {
        match check_zone(zone.get_ref()) {
            Ok(()) => traits.zone = Some(zone.get_ref().as_str().into()),
            Err(message) => checks.error(&zone.span(), message),
        }
    }
    traits
}
