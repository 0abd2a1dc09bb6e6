//! The shape of the reference.

use std::collections::BTreeSet;

use crate::program::Need;

/// Things that belong together: what one type has, or the functions for one purpose.
#[derive(Debug)]
pub struct Group {
    /// The heading in `docs/reference.md`.
    pub title: &'static str,
    /// The type whose methods and properties these are; `None` for functions.
    pub of: Option<&'static str>,
    /// What holds for all of it, in Markdown; may be empty.
    pub about: &'static str,
    /// In the order in which they are shown.
    pub entries: &'static [Entry],
}

/// A function, method or property.
#[derive(Debug)]
pub struct Entry {
    /// The ways to write it; all have the same name. See [`Signature`].
    pub signatures: &'static [&'static str],
    /// What the place must have in which it stands; of a property, in which it is read.
    pub need: Need,
    /// The same for an assignment; `None` when the property can't be assigned to, and for functions.
    pub assigned: Option<Need>,
    /// What it gives, in Markdown: units, bounds, errors, what is absent.
    pub docs: &'static str,
}

impl Entry {
    /// A function, method or property that is only read.
    pub(super) const fn new(
        need: Need,
        signatures: &'static [&'static str],
        docs: &'static str,
    ) -> Self {
        Self {
            signatures,
            need,
            assigned: None,
            docs,
        }
    }

    /// A property that can also be assigned to, where the place has `assigned`.
    pub(super) const fn assignable(self, assigned: Need) -> Self {
        Self {
            assigned: Some(assigned),
            ..self
        }
    }

    /// As scripts call it.
    pub fn name(&self) -> &'static str {
        let first = self.signatures.first().copied().unwrap_or_default();
        first.split(['(', ':']).next().unwrap_or_default()
    }

    /// The numbers of arguments that it takes, a receiver not counted.
    pub fn arities(&self) -> BTreeSet<usize> {
        self.parsed()
            .filter_map(|signature| Some(signature.parameters?.len()))
            .collect()
    }

    /// Its signatures, taken apart.
    ///
    /// # Panics
    /// When one is not written as [`Signature::parse`] wants it; a test reads them all.
    pub fn parsed(&self) -> impl Iterator<Item = Signature> {
        self.signatures.iter().map(|text| {
            Signature::parse(text)
                .unwrap_or_else(|| panic!("bad signature `{text}` in the reference"))
        })
    }
}

/// One way to write something: `name(a: text | int, b: any) -> text | ()`, without an arrow when
/// it gives nothing, or `name: text` for a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// What is called or read.
    pub name: &'static str,
    /// Name and types of each parameter; `None` for a property.
    pub parameters: Option<Vec<(&'static str, Vec<&'static str>)>>,
    /// The types of what it gives; `["()"]` when that is nothing.
    pub gives: Vec<&'static str>,
}

impl Signature {
    /// Takes a signature apart; `None` when it is none.
    pub fn parse(text: &'static str) -> Option<Self> {
        let Some((name, rest)) = text.split_once('(').filter(|(name, _)| !name.contains(':'))
        else {
            let (name, gives) = text.split_once(": ")?;
            return Some(Self {
                name: word(name)?,
                parameters: None,
                gives: types(gives)?,
            });
        };
        // The last `)` before the arrow: `()` is a type too.
        let (parameters, gives) = match rest.split_once(" -> ") {
            Some((parameters, gives)) => (parameters, types(gives)?),
            None => (rest, vec!["()"]),
        };
        let parameters = parameters.strip_suffix(')')?;
        let parameters = parameters
            .split(", ")
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| {
                let (name, kinds) = parameter.split_once(": ")?;
                Some((word(name)?, types(kinds)?))
            })
            .collect::<Option<_>>()?;
        Some(Self {
            name: word(name)?,
            parameters: Some(parameters),
            gives,
        })
    }
}

fn word(text: &'static str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!text.is_empty() && text.chars().all(fits)).then_some(text)
}

fn types(text: &'static str) -> Option<Vec<&'static str>> {
    text.split(" | ")
        .map(|one| if one == "()" { Some(one) } else { word(one) })
        .collect()
}
