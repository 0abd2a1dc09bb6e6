//! Calls of functions and methods that exist nowhere, or not with that many arguments.

use std::collections::BTreeSet;

use rhai::{FnCallExpr, Position, is_valid_identifier};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::names::{Meaning, Names, did_you_mean};
use super::scope::Scope;
use super::walk::Check;
use crate::reference;
use crate::suggest::nearest;

/// Functions that the interpreter provides itself, with the numbers of
/// arguments; the receiver of a method counts. `call` takes any number behind the
/// function (`usize::MAX`), and so does `curry`, about which [`super::currying`] has its say.
const BUILT_IN: &[(&str, usize, usize)] = &[
    ("Fn", 1, 1),
    ("call", 1, usize::MAX),
    ("curry", 0, usize::MAX),
    ("debug", 1, 2),
    ("eval", 1, 1),
    ("is_def_fn", 2, 3),
    ("is_def_var", 1, 1),
    ("is_shared", 1, 1),
    ("print", 0, 1),
    ("type_of", 1, 1),
];

/// `contains` with two arguments is also what `in` becomes in the tree.
const IN: (&str, usize) = ("contains", 2);

pub(super) struct Calls<'a> {
    pub(super) names: Names<'a>,
}

impl<'a> Calls<'a> {
    /// The numbers of arguments that a function takes; empty when there is none.
    fn function(&self, name: &str) -> BTreeSet<usize> {
        // What the engine has by this name may also be a method, with its receiver: `respond` of a route
        // takes what no answer takes.
        let function = reference::find(None, self.names.known.source.own_name(name));
        let mut arities = function.map_or_else(|| self.natives(name), reference::Entry::arities);
        arities.extend(self.script(name));
        arities
    }

    /// The same for a method, without its receiver: a native has it before the
    /// arguments, a function of the script has it in `this`.
    fn method(&self, name: &str) -> BTreeSet<usize> {
        let natives = self.natives(name).into_iter();
        let mut arities: BTreeSet<_> = natives.filter_map(|n| n.checked_sub(1)).collect();
        arities.extend(self.script(name));
        arities
    }

    /// Those of the natives of this name, which a function of the program may add to.
    fn natives(&self, name: &str) -> BTreeSet<usize> {
        let known = self.names.known;
        let name = known.source.own_name(name);
        known.functions.arities(name).cloned().unwrap_or_default()
    }

    fn script(&self, name: &str) -> impl Iterator<Item = usize> {
        let functions = self.names.program.functions(name).iter();
        functions.map(|function| function.params.len())
    }

    fn method_help(&self, name: &str, arguments: usize, receiver: Option<&str>) -> Option<String> {
        if self.script(name).any(|params| params == arguments + 1) {
            let receiver = receiver.unwrap_or("..");
            let more = if arguments > 0 { ", .." } else { "" };
            return Some(format!(
                "`{name}` is a function of this program: call it as `{name}({receiver}{more})`"
            ));
        }
        let known = self.names.known;
        let name = known.source.own_name(name);
        let properties = || {
            known
                .request_properties
                .iter()
                .chain(known.response_properties)
        };
        if arguments == 0 && properties().any(|property| *property == name) {
            return Some(format!("`{name}` is a property: write it without `()`"));
        }
        let near = nearest(name, known.functions.names().chain(properties().copied()));
        did_you_mean(near.map(String::from))
    }
}

impl<'a> Check<'a> for Calls<'a> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let name = call.name.as_str();
        let arguments = call.args.len();
        if call.is_operator_call()
            || !is_valid_identifier(name)
            || (name, arguments) == IN
            || is_built_in(name, arguments)
        {
            return;
        }
        let arities = self.function(name);
        if arities.contains(&arguments) {
            return;
        }
        let length = name.chars().count();
        if !arities.is_empty() {
            let usage = reference::usage(None, self.names.known.source.own_name(name));
            let usage = usage.filter(|_| self.script(name).next().is_none());
            findings.error(at, length, wrong_number(name, &arities, arguments), usage);
        } else if let Some((least, most)) = built_in(name) {
            let takes = if most == usize::MAX {
                let plural = if least == 1 { "" } else { "s" };
                format!("`{name}` takes at least {least} argument{plural}, not {arguments}")
            } else {
                wrong_number(name, &(least..=most).collect(), arguments)
            };
            findings.error(at, length, takes, None);
        } else if let Meaning::Local(_) | Meaning::Constant = self.names.meaning(name, scope) {
            findings.error(
                at,
                length,
                format!("`{name}` is a variable, not a function"),
                Some(format!(
                    "a function held by a variable is called as `{name}.call(..)`"
                )),
            );
        } else {
            findings.error(
                at,
                length,
                format!("unknown function `{name}`"),
                did_you_mean(self.names.near_function(name, at)),
            );
        }
    }

    fn chain(&mut self, chain: &Chain<'a>, _: &Scope<'a>, findings: &mut Findings) {
        let variable = chain.variable().map(|(name, _)| name);
        for (index, link) in chain.links.iter().enumerate() {
            let Link::Method(call, at) = link else {
                continue;
            };
            let name = call.name.as_str();
            let arguments = call.args.len();
            let length = name.chars().count();
            if is_built_in(name, arguments + 1) || self.names.program.members.contains(name) {
                continue;
            }
            let arities = self.method(name);
            if arities.contains(&arguments) {
                continue;
            }
            let as_function = self.script(name).any(|params| params == arguments + 1);
            if arities.is_empty() || as_function {
                let receiver = variable.filter(|_| index == 0);
                let help = self.method_help(name, arguments, receiver);
                findings.error(*at, length, format!("unknown method `{name}`"), help);
            } else {
                let message = wrong_number(name, &arities, arguments);
                let usage = reference::usage_of_method(self.names.known.source.own_name(name));
                findings.error(*at, length, message, usage);
            }
        }
    }
}

fn built_in(name: &str) -> Option<(usize, usize)> {
    let found = BUILT_IN.iter().find(|(built_in, ..)| *built_in == name);
    found.map(|(_, least, most)| (*least, *most))
}

fn is_built_in(name: &str, arguments: usize) -> bool {
    built_in(name).is_some_and(|(least, most)| (least..=most).contains(&arguments))
}

/// "`respond` takes 1 or 2 arguments, not 3".
fn wrong_number(name: &str, arities: &BTreeSet<usize>, given: usize) -> String {
    let mut numbers: Vec<_> = arities.iter().map(usize::to_string).collect();
    let plural = if arities.iter().eq([&1]) { "" } else { "s" };
    let takes = match (numbers.pop(), numbers.is_empty()) {
        (Some(only), true) if only == "0" => "no".to_string(),
        (Some(only), true) => only,
        (Some(last), false) => format!("{} or {last}", numbers.join(", ")),
        (None, _) => "no".to_string(),
    };
    format!("`{name}` takes {takes} argument{plural}, not {given}")
}
