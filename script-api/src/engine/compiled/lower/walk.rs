//! The way along a chain, from what it begins with to its end, and back where something changed.

use rhai::{Dynamic, EvalAltResult, FnPtr, ImmutableString, NativeCallContext, Position};

use super::{
    assignments::Assignment,
    calls::{self, Values},
    detour::Detour,
    parts::{Kind, Link, Walked},
};
use crate::engine::compiled::{
    direct::Direct,
    machine::{Flow, Host, Stop, count, placed},
    native::{Called, Native},
};

/// A chain that can be walked.
pub(super) struct Walk {
    pub(super) links: Vec<Link>,
    pub(super) root_name: String,
    pub(super) root_place: Position,
}

/// What is done at the end of a chain.
pub(super) type Change = Assignment;
type Pending<'c> = Option<(Dynamic, &'c Change)>;

impl Walk {
    /// Walks from `target`, which is `by_reference` when it is a variable.
    pub(super) fn from(
        &self,
        host: &mut Host<'_>,
        target: &mut Dynamic,
        by_reference: bool,
        values: &mut Values,
        change: &mut Pending<'_>,
    ) -> Flow<Walked> {
        self.go(host, &self.links, target, by_reference, values, change)
    }

    fn go(
        &self,
        host: &mut Host<'_>,
        links: &[Link],
        target: &mut Dynamic,
        by_reference: bool,
        values: &mut Values,
        change: &mut Pending<'_>,
    ) -> Flow<Walked> {
        let Some((link, rest)) = links.split_first() else {
            return Ok(unchanged(target.clone()));
        };
        if link.ends_when_absent && target.is_unit() {
            return Ok(unchanged(Dynamic::UNIT));
        }
        match &link.kind {
            Kind::Method {
                native,
                direct,
                arguments,
            } => {
                let arguments = &mut values[arguments.clone()];
                let called = match direct {
                    Some(direct) => directly(host, native, direct, target, arguments),
                    None => None,
                };
                let called = match called {
                    Some(called) => called?,
                    None => method(host, native, target, arguments, by_reference)?,
                };
                if rest.is_empty() {
                    return Ok(Walked {
                        value: called.value,
                        changes: called.changes,
                    });
                }
                let mut value = called.value;
                self.go(host, rest, &mut value, false, values, change)
            }
            Kind::Property { name, .. } if target.is_map() => {
                self.entry(host, name, rest, target, values, change)
            }
            Kind::Property {
                get,
                direct,
                set,
                operator_place,
                ..
            } => {
                let property = Property {
                    get,
                    direct: direct.as_ref(),
                    set,
                    operator_place: *operator_place,
                    by_reference,
                };
                self.property(host, &property, rest, target, values, change)
            }
            Kind::Index {
                value,
                place,
                rare,
                back,
                assign,
            } => {
                let index = values[*value].take();
                let step = Index {
                    place: *place,
                    rare,
                    back,
                    assign: assign.as_ref(),
                };
                self.index(host, &step, index, rest, target, values, change)
            }
        }
    }

    /// A property of a map.
    fn entry(
        &self,
        host: &mut Host<'_>,
        name: &ImmutableString,
        rest: &[Link],
        target: &mut Dynamic,
        values: &mut Values,
        change: &mut Pending<'_>,
    ) -> Flow<Walked> {
        count(Position::NONE)?;
        if rest.is_empty() {
            if let Some((value, assignment)) = change.take() {
                {
                    let mut map = write_map(host, target)?;
                    let entry = map.entry(name.as_str().into()).or_insert(Dynamic::UNIT);
                    self.assign(host, assignment, entry, value)?;
                }
                host.fits(target, assignment.place())?;
                return Ok(Walked {
                    value: Dynamic::UNIT,
                    changes: true,
                });
            }
            let value = target
                .as_map_ref()
                .ok()
                .and_then(|map| map.get(name.as_str()).cloned());
            return Ok(unchanged(value.unwrap_or_default()));
        }
        let mut map = write_map(host, target)?;
        match map.get_mut(name.as_str()) {
            Some(entry) => self.go(host, rest, entry, true, values, change),
            None => self.go(
                host,
                rest,
                &mut Dynamic::UNIT.clone(),
                false,
                values,
                change,
            ),
        }
    }

    /// A property of something else: a native gives it, and one takes it back when it was changed.
    fn property(
        &self,
        host: &mut Host<'_>,
        property: &Property<'_>,
        rest: &[Link],
        target: &mut Dynamic,
        values: &mut Values,
        change: &mut Pending<'_>,
    ) -> Flow<Walked> {
        if rest.is_empty() {
            if let Some((value, assignment)) = change.take() {
                let mut value = value;
                if assignment.is_combined() {
                    let mut before = property.get(host, target)?;
                    self.assign(host, assignment, &mut before, value)?;
                    value = before;
                }
                let set = property.set(host, target, &mut value)?;
                return Ok(Walked {
                    value: set.value,
                    changes: set.changes,
                });
            }
            return property.get(host, target).map(unchanged);
        }
        let mut value = property.get(host, target)?;
        let walked = self.go(host, rest, &mut value, true, values, change)?;
        if walked.changes {
            property.put_back(host, target, &mut value)?;
        }
        Ok(walked)
    }

    #[expect(clippy::too_many_arguments, reason = "what a step of a walk needs")]
    fn index(
        &self,
        host: &mut Host<'_>,
        step: &Index<'_>,
        index: Dynamic,
        rest: &[Link],
        target: &mut Dynamic,
        values: &mut Values,
        change: &mut Pending<'_>,
    ) -> Flow<Walked> {
        if rest.is_empty() {
            if let Some((value, assignment)) = change.take() {
                return self.assign_at(host, step, index, target, value, assignment);
            }
            if target.is_array() {
                count(Position::NONE)?;
                let position = array_index(host, target, &index, step.place)?;
                let item = target
                    .as_array_ref()
                    .ok()
                    .map(|array| array[position].clone());
                return Ok(unchanged(item.unwrap_or_default()));
            }
            if target.is_map() {
                count(Position::NONE)?;
                let key = map_key(host, &index, step.place)?;
                let item = target
                    .as_map_ref()
                    .ok()
                    .and_then(|map| map.get(&*key).cloned());
                return Ok(unchanged(item.unwrap_or_default()));
            }
            let value = step.rare.run(host, target, index, Dynamic::UNIT)?;
            return Ok(unchanged(value));
        }
        if target.is_array() {
            count(Position::NONE)?;
            let position = array_index(host, target, &index, step.place)?;
            let mut array = target
                .as_array_mut()
                .map_err(|found| host.mismatch("array", found, step.place))?;
            return self.go(host, rest, &mut array[position], true, values, change);
        }
        if target.is_map() {
            count(Position::NONE)?;
            let key = map_key(host, &index, step.place)?;
            let mut map = write_map(host, target)?;
            return match map.get_mut(key.as_str()) {
                Some(entry) => self.go(host, rest, entry, true, values, change),
                None => self.go(
                    host,
                    rest,
                    &mut Dynamic::UNIT.clone(),
                    false,
                    values,
                    change,
                ),
            };
        }
        let is_own_type = target.is_variant();
        let mut value = step.rare.run(host, target, index.clone(), Dynamic::UNIT)?;
        let walked = self.go(host, rest, &mut value, false, values, change)?;
        if walked.changes && is_own_type {
            match step.back.run(host, target, index, value) {
                Err(Stop::Failed(error))
                    if matches!(*error, EvalAltResult::ErrorIndexingType(..)) => {}
                Err(stop) => return Err(stop),
                Ok(_) => {}
            }
        }
        Ok(walked)
    }

    fn assign_at(
        &self,
        host: &mut Host<'_>,
        step: &Index<'_>,
        index: Dynamic,
        target: &mut Dynamic,
        value: Dynamic,
        assignment: &Assignment,
    ) -> Flow<Walked> {
        if target.is_array() {
            count(Position::NONE)?;
            let position = array_index(host, target, &index, step.place)?;
            let mut array = target
                .as_array_mut()
                .map_err(|found| host.mismatch("array", found, step.place))?;
            self.assign(host, assignment, &mut array[position], value)?;
            host.fits(&array[position], assignment.place())?;
        } else if target.is_map() {
            count(Position::NONE)?;
            let key = map_key(host, &index, step.place)?;
            let mut map = write_map(host, target)?;
            let entry = map.entry(key.as_str().into()).or_insert(Dynamic::UNIT);
            self.assign(host, assignment, entry, value)?;
            host.fits(entry, assignment.place())?;
        } else if let Some(detour) = step.assign {
            let _assigned = detour.run(host, target, index, value)?;
        }
        Ok(Walked {
            value: Dynamic::UNIT,
            changes: true,
        })
    }

    fn assign(
        &self,
        host: &mut Host<'_>,
        assignment: &Assignment,
        target: &mut Dynamic,
        value: Dynamic,
    ) -> Flow<()> {
        assignment.run(host, (&self.root_name, self.root_place), target, value)
    }
}

fn unchanged(value: Dynamic) -> Walked {
    Walked {
        value,
        changes: false,
    }
}

struct Index<'l> {
    place: Position,
    rare: &'l Detour,
    back: &'l Detour,
    assign: Option<&'l Detour>,
}

/// A property that natives give and take.
struct Property<'l> {
    get: &'l Native,
    direct: Option<&'l Direct>,
    set: &'l Native,
    operator_place: Position,
    by_reference: bool,
}

impl Property<'_> {
    fn get(&self, host: &mut Host<'_>, target: &mut Dynamic) -> Flow {
        let none = Dynamic::UNIT;
        if let Some(direct) = self.direct
            && let Some(got) = direct.call(host, self.get.place(), target, &none)
        {
            return got;
        }
        let called = self.get.call(host, &mut [target], self.by_reference);
        Ok(called.map_err(|error| self.asked_for_index(error))?.value)
    }

    fn set(&self, host: &mut Host<'_>, target: &mut Dynamic, value: &mut Dynamic) -> Flow<Called> {
        let called = self.set.call(host, &mut [target, value], self.by_reference);
        Ok(called.map_err(|error| self.asked_for_index(error))?)
    }

    /// What can't be set is read-only, and needs no word.
    fn put_back(&self, host: &mut Host<'_>, target: &mut Dynamic, value: &mut Dynamic) -> Flow<()> {
        match self.set.call(host, &mut [target, value], self.by_reference) {
            Ok(_) => Ok(()),
            Err(error) if matches!(*error, EvalAltResult::ErrorDotExpr(..)) => {
                count(self.operator_place)?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Where there is no property, Rhai asks for an index of this name. No type of ours has one, but
    /// asking counts.
    #[cold]
    fn asked_for_index(&self, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
        if matches!(*error, EvalAltResult::ErrorDotExpr(..))
            && let Err(exhausted) = count(self.operator_place)
        {
            return exhausted;
        }
        error
    }
}

/// A method that is called as what it is, if it is that for these types.
#[inline]
fn directly(
    host: &mut Host<'_>,
    native: &Native,
    direct: &Direct,
    target: &Dynamic,
    arguments: &[Dynamic],
) -> Option<Flow<Called>> {
    let none = Dynamic::UNIT;
    let argument = arguments.last().unwrap_or(&none);
    let ended = direct.call(host, native.place(), target, argument)?;
    Some(ended.map(|value| Called {
        value,
        changes: direct.changes(),
    }))
}

fn method(
    host: &mut Host<'_>,
    native: &Native,
    target: &mut Dynamic,
    arguments: &mut [Dynamic],
    by_reference: bool,
) -> Flow<Called> {
    if let Some(function) = function_in_map(target, native.name()) {
        count(native.place())?;
        let context = NativeCallContext::new_with_all_fields(
            host.engine,
            native.name(),
            None,
            host.global,
            native.place(),
        );
        let value = function
            .call_raw(&context, Some(target), arguments)
            .map_err(|error| placed(error, native.place()))?;
        return Ok(Called {
            value,
            changes: false,
        });
    }
    calls::called(host, native, target, arguments, by_reference)
}

/// A function that lies in a map under this name, which is called like a method.
fn function_in_map(target: &Dynamic, name: &str) -> Option<FnPtr> {
    if !target.is_map() {
        return None;
    }
    let map = target.as_map_ref().ok()?;
    map.get(name)
        .filter(|value| value.is_fnptr())?
        .clone()
        .try_cast()
}

fn array_index(host: &Host<'_>, array: &Dynamic, index: &Dynamic, place: Position) -> Flow<usize> {
    let index = index
        .as_int()
        .map_err(|found| host.mismatch(std::any::type_name::<rhai::INT>(), found, place))?;
    let length = array.as_array_ref().map_or(0, |array| array.len());
    let position = if index < 0 {
        let back = usize::try_from(index.unsigned_abs()).ok();
        back.and_then(|back| length.checked_sub(back))
    } else {
        usize::try_from(index)
            .ok()
            .filter(|position| *position < length)
    };
    position.ok_or_else(|| EvalAltResult::ErrorArrayBounds(length, index, place).into())
}

fn map_key(host: &Host<'_>, index: &Dynamic, place: Position) -> Flow<ImmutableString> {
    let key = index.as_immutable_string_ref().map(|key| key.clone());
    key.map_err(|found| host.mismatch(std::any::type_name::<ImmutableString>(), found, place))
}

fn write_map<'t>(
    host: &Host<'_>,
    target: &'t mut Dynamic,
) -> Flow<impl std::ops::DerefMut<Target = rhai::Map> + use<'t>> {
    let mismatch = |found| host.mismatch("map", found, Position::NONE);
    target.as_map_mut().map_err(mismatch)
}
