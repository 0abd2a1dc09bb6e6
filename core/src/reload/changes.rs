//! What a reload has changed, for the log line and `/status`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// How many files are named; the counts hold all.
const NAMED: usize = 8;

/// The longest name that is written out, in characters.
const LONGEST: usize = 100;

/// What differs between two generations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Routes. One whose functions do something else counts as the same: its file has changed.
    pub routes: Counted,
    /// Pools: what they are, and which targets they have.
    pub pools: Counted,
    /// Files that were read.
    pub files: Counted,
    /// The first of these files in the order of their names, with `+`, `-` or `~` in front: at most 8, each cut
    /// to 100 characters.
    pub named: Vec<String>,
    /// What was not taken although the rest was: certificates of listeners that can't be used, each with what is shown
    /// in its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// How many things of a kind came, went, or are something else now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// New ones.
    pub added: usize,
    /// Those that are gone.
    pub removed: usize,
    /// Those that are different.
    pub changed: usize,
}

impl Counted {
    /// Compares two lists of names and contents. Of things with one name those with equal contents are the same, and
    /// of the others as many are different as there are on both sides.
    pub fn between<N: Ord, C: Ord>(
        old: impl IntoIterator<Item = (N, C)>,
        new: impl IntoIterator<Item = (N, C)>,
    ) -> Self {
        let mut all = BTreeMap::<N, BTreeMap<C, isize>>::new();
        for (name, content) in old {
            *all.entry(name).or_default().entry(content).or_default() -= 1;
        }
        for (name, content) in new {
            *all.entry(name).or_default().entry(content).or_default() += 1;
        }
        let mut counted = Self::default();
        for contents in all.values() {
            let came: usize = contents.values().map(|n| n.max(&0).unsigned_abs()).sum();
            let went: usize = contents.values().map(|n| n.min(&0).unsigned_abs()).sum();
            let changed = came.min(went);
            counted.changed += changed;
            counted.added += came - changed;
            counted.removed += went - changed;
        }
        counted
    }
}

/// `+1 -0 ~2`
impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{} -{} ~{}", self.added, self.removed, self.changed)
    }
}

impl Changes {
    /// Takes in the files of two generations, by name, each with what tells whether its content is the same.
    pub fn with_files<'f, C: PartialEq>(
        mut self,
        old: &BTreeMap<&'f str, C>,
        new: &BTreeMap<&'f str, C>,
    ) -> Self {
        let mut differing = BTreeMap::new();
        for (name, content) in new {
            match old.get(name) {
                None => differing.insert(*name, '+'),
                Some(before) if before != content => differing.insert(*name, '~'),
                Some(_) => None,
            };
        }
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        differing.extend(gone.map(|name| (*name, '-')));
        let count = |sign| differing.values().filter(|known| **known == sign).count();
        self.files = Counted {
            added: count('+'),
            removed: count('-'),
            changed: count('~'),
        };
        let first = differing.iter().take(NAMED);
        self.named = first
            .map(|(name, sign)| {
                // A name may hold what would end the line.
                let name = name.chars().flat_map(char::escape_debug);
                std::iter::once(*sign).chain(name.take(LONGEST)).collect()
            })
            .collect();
        self
    }
}

/// `files ~routes.rhai +keys.json and 3 more; certificate not used: tls.crt: the one before goes on`
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("files")?;
        for name in &self.named {
            write!(f, " {name}")?;
        }
        let Counted {
            added,
            removed,
            changed,
        } = self.files;
        match (added + removed + changed) - self.named.len() {
            0 if self.named.is_empty() => f.write_str(" the same")?,
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        for unused in &self.unused {
            write!(f, "; certificate not used: {unused}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_compared_by_name_and_content() {
        let old = [("a", 1), ("b", 1), ("c", 1), ("c", 2)];
        let new = [("a", 1), ("b", 2), ("c", 2), ("c", 3), ("d", 1)];
        let counted = Counted::between(old, new);
        assert_eq!(counted.to_string(), "+1 -0 ~2");
        assert_eq!(Counted::between(new, old).to_string(), "+0 -1 ~2");
        assert_eq!(Counted::between(old, old), Counted::default());
        // Two of one name with one content are not one.
        let counted = Counted::between([("a", 1)], [("a", 1), ("a", 1)]);
        assert_eq!(counted.to_string(), "+1 -0 ~0");
    }

    fn files<'f>(names: &[(&'f str, u8)]) -> BTreeMap<&'f str, u8> {
        names.iter().copied().collect()
    }

    #[test]
    fn files_are_named() {
        let old = files(&[("edgewright.toml", 1), ("gone.json", 1), ("routes.rhai", 1)]);
        let new = files(&[("edgewright.toml", 1), ("keys.json", 1), ("routes.rhai", 2)]);
        let changes = Changes::default().with_files(&old, &new);
        assert_eq!(
            changes.to_string(),
            "files -gone.json +keys.json ~routes.rhai"
        );
        assert_eq!(changes.files.to_string(), "+1 -1 ~1");
        let same = Changes::default().with_files(&old, &old);
        assert_eq!(same.to_string(), "files the same");
    }

    #[test]
    fn the_line_is_bounded_and_stays_one() {
        let names: Vec<String> = (0..30)
            .map(|n| format!("{n:02}\n{}", "x".repeat(500)))
            .collect();
        let new = names.iter().map(|name| (name.as_str(), 1)).collect();
        let line = Changes::default()
            .with_files(&BTreeMap::new(), &new)
            .to_string();
        assert!(line.starts_with("files +00\\nxxx"), "{line}");
        assert!(line.ends_with("xxx and 22 more"), "{line}");
        assert!(line.len() < 1000 && !line.contains('\n'), "{line}");
    }
}
