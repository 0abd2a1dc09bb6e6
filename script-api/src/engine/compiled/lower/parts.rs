//! What chains are made of.

use rhai::{Dynamic, ImmutableString, Position};
use smallvec::SmallVec;

use super::detour::Detour;
use crate::engine::compiled::{direct::Direct, lent::Lent, machine::Code, native::Native};

/// One step of a chain.
pub(super) struct Link {
    pub(super) kind: Kind,
    /// With `?.` or `?[`: what is absent ends the chain.
    pub(super) ends_when_absent: bool,
}

pub(super) enum Kind {
    Property {
        name: ImmutableString,
        get: Native,
        /// The same, for the types that it is known for.
        direct: Option<Direct>,
        set: Native,
        /// Where the dot is.
        operator_place: Position,
    },
    Method {
        native: Native,
        /// The same, for the types that it is known for.
        direct: Option<Direct>,
        /// Which of the values of the chain are its arguments.
        arguments: std::ops::Range<usize>,
    },
    Index {
        /// Which of the values of the chain it is.
        value: usize,
        place: Position,
        rare: Detour,
        /// To put a changed value back.
        back: Detour,
        /// The end of an assignment that isn't usual.
        assign: Option<Detour>,
    },
}

impl Link {
    /// Takes the native for known types away, with its place.
    pub(super) fn take_direct(&mut self) -> Option<(Direct, Position)> {
        match &mut self.kind {
            Kind::Property { get, direct, .. } => Some((direct.take()?, get.place())),
            Kind::Method { native, direct, .. } => Some((direct.take()?, native.place())),
            Kind::Index { .. } => None,
        }
    }
}

/// What a chain begins with.
pub(super) enum Root {
    Local { number: usize, place: Position },
    Global { value: Lent, place: Position },
    Value(Code),
}

/// A value of a chain, and what is counted before it is made.
pub(super) struct Argument {
    pub(super) counted: Counted,
    pub(super) value: Code,
    pub(super) origin: Origin,
}

/// Where a value of a chain comes from. What is written out, or in a variable, counts once, at its place.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    Written(Position),
    Local { number: usize, place: Position },
    Made,
}

/// Operations, by their places.
pub(super) type Counted = SmallVec<[Position; 2]>;

/// What a chain gives.
pub(super) struct Walked {
    pub(super) value: Dynamic,
    /// Whether what it was asked of may have changed.
    pub(super) changes: bool,
}
