//! Failures while running.

use rhai::{Dynamic, EvalAltResult, Position};

use super::shown::{cut, shown};
use super::types::{plain_arguments, plain_type};
use super::{parse, plain};
use crate::diagnostic::{Diagnostic, Severity};
use crate::reference;
use crate::source::Source;
use crate::suggest::nearest;

/// Calls shown in the help; a recursion would fill the screen.
const CALLS_SHOWN: usize = 6;

/// `error` in plain words, with the nearest of `names` where one is unknown.
pub(super) fn convert(
    error: &EvalAltResult,
    source: &Source,
    names: &mut dyn Iterator<Item = &str>,
) -> Diagnostic {
    let mut calls = Vec::new();
    let mut position = Position::NONE;
    let mut cause = error;
    loop {
        position = cause.position().or_else(position);
        match cause {
            EvalAltResult::ErrorInFunctionCall(name, _, inner, at) => {
                calls.push((call_name(name), *at));
                cause = inner;
            }
            EvalAltResult::ErrorInModule(name, inner, at) => {
                calls.push((format!("in module `{name}`"), *at));
                cause = inner;
            }
            _ => break,
        }
    }
    let mut finding = describe(cause, source, names);
    finding.message = cut(finding.message);
    if finding.place.is_none() {
        let length = named(cause).map_or(1, |name| name.chars().count());
        finding = finding.at_position(source, position, length);
    }
    finding = add_calls(finding, &calls, source);
    // Without a place it isn't known yet who reads it.
    if finding.place.is_some() {
        source.make_readable(&mut finding);
    }
    finding
}

/// Whether `name` is Rhai's own name of a closure, which says nothing.
fn is_closure(name: &str) -> bool {
    name.starts_with("anon$")
}

/// How a call is named in the help.
fn call_name(name: &str) -> String {
    if is_closure(name) {
        "in a closure".to_string()
    } else {
        format!("in `{name}`")
    }
}

/// Says how the program came to the failure, innermost call first.
fn add_calls(mut finding: Diagnostic, calls: &[(String, Position)], source: &Source) -> Diagnostic {
    let file = finding.place.as_ref().map(|place| place.file.clone());
    for (call, position) in calls.iter().rev().take(CALLS_SHOWN) {
        finding = match source.place(*position, 1) {
            Some(at) if file.as_ref() == Some(&at.file) => {
                finding.help(format!("{call}, called at {}:{}", at.line, at.column))
            }
            Some(at) => finding.help(format!("{call}, called at {at}")),
            None => finding.help(call.clone()),
        };
    }
    match calls.len().checked_sub(CALLS_SHOWN) {
        Some(more) if more > 0 => finding.help(format!("and {more} more calls")),
        _ => finding,
    }
}

/// The name in the source at the place of the failure, for the underline.
fn named(error: &EvalAltResult) -> Option<&str> {
    use EvalAltResult as E;
    match error {
        E::ErrorVariableNotFound(name, _)
        | E::ErrorForbiddenVariable(name, _)
        | E::ErrorAssignmentToConstant(name, _)
        | E::ErrorPropertyNotFound(name, _) => Some(name),
        E::ErrorFunctionNotFound(signature, _) => {
            let (name, _) = plain_arguments(signature)?;
            (!is_closure(name)).then_some(name)
        }
        E::ErrorDotExpr(text, _) => unknown_property(text),
        _ => None,
    }
}

/// The name in Rhai's `Unknown property 'x' - a getter is not registered for type 'T'`.
fn unknown_property(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Unknown property '")?;
    rest.split('\'').next()
}

fn describe<'a>(
    error: &EvalAltResult,
    source: &Source,
    names: &mut dyn Iterator<Item = &'a str>,
) -> Diagnostic {
    use EvalAltResult as E;
    let unknown = |message: String, name: &str, names: &mut dyn Iterator<Item = &'a str>| {
        let finding = Diagnostic::error(message);
        match nearest(name, names) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding,
        }
    };
    let message = match error {
        E::ErrorRuntime(thrown, _) => return describe_thrown(thrown),
        E::ErrorParsing(error, position) => return parse::convert(error, *position, source),
        E::ErrorVariableNotFound(name, _) => {
            return unknown(format!("undefined variable `{name}`"), name, names);
        }
        E::ErrorPropertyNotFound(name, _) => {
            return unknown(format!("there is no property `{name}`"), name, names);
        }
        E::ErrorDotExpr(text, _) => match unknown_property(text) {
            Some(name) => return unknown(format!("unknown property `{name}`"), name, names),
            None => plain(text),
        },
        E::ErrorFunctionNotFound(signature, _) => match plain_arguments(signature) {
            Some((name, types)) => {
                let called = match name {
                    closure if is_closure(closure) => "this closure".to_owned(),
                    name => format!("`{name}`"),
                };
                let message = match types.as_slice() {
                    [] => format!("{called} can't be called without arguments"),
                    types => format!("{called} can't be called with ({})", types.join(", ")),
                };
                if types.contains(&"a character") {
                    return Diagnostic::error(message)
                        .help("single quotes make a character: text stands in \"double quotes\"");
                }
                let method = types
                    .first()
                    .and_then(|of| reference::usage(Some(of), name));
                return match method.or_else(|| reference::usage(None, name)) {
                    Some(usage) => Diagnostic::error(message).help(usage),
                    None => unknown(message, name, names),
                };
            }
            None => format!("unknown function `{signature}`"),
        },
        E::ErrorModuleNotFound(name, _) => format!("unknown module `{name}`"),
        E::ErrorIndexNotFound(index, _) => format!("there is no entry `{index}`"),
        E::ErrorIndexingType(name, _) => format!("{} can't be indexed", indexed_type(name)),
        E::ErrorArrayBounds(items, index, _) => {
            let items = counted(*items, "item");
            format!("index {index} is outside of the array, which has {items}")
        }
        E::ErrorStringBounds(characters, index, _) => {
            let characters = counted(*characters, "character");
            format!("index {index} is outside of the text, which has {characters}")
        }
        E::ErrorMismatchDataType(wanted, got, _) | E::ErrorMismatchOutputType(wanted, got, _) => {
            match (plain_type(wanted), plain_type(got)) {
                (wanted, "") => format!("expected {wanted}"),
                ("", got) => format!("{got} is of the wrong type"),
                (wanted, got) => format!("expected {wanted}, got {got}"),
            }
        }
        E::ErrorFor(_) => "`for` needs an array, a range or text to walk over".into(),
        E::ErrorUnboundThis(_) => "`this` has no value here".into(),
        E::ErrorAssignmentToConstant(name, _) => {
            format!("`{name}` is a constant and can't be changed")
        }
        E::ErrorTooManyOperations(_) => "the script needs too many operations".into(),
        E::ErrorTooManyVariables(_) => "the script has too many variables at a time".into(),
        E::ErrorStackOverflow(_) => "calls are nested too deeply".into(),
        E::ErrorDataTooLarge(what, _) => plain(&format!("{what} is too large")),
        E::ErrorTerminated(reason, _) if reason.is_unit() => "the script was stopped".into(),
        E::ErrorTerminated(reason, _) => format!("the script was stopped: {}", shown(reason)),
        other => plain(&other.to_string()),
    };
    Diagnostic::error(message)
}

/// `1 item`, `2 items`.
fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The type in Rhai's `Type [Index]`.
fn indexed_type(name: &str) -> &str {
    plain_type(name.split(" [").next().unwrap_or(name))
}

/// What `throw` was given, or what a native returned as its error.
fn describe_thrown(thrown: &Dynamic) -> Diagnostic {
    if let Some(finding) = thrown.read_lock::<Diagnostic>() {
        let mut finding = finding.clone();
        finding.severity = Severity::Error;
        return finding;
    }
    if let Some(map) = thrown.read_lock::<rhai::Map>()
        && let Some(message) = map.get("message")
    {
        return Diagnostic::error(shown(message));
    }
    let text = shown(thrown);
    if text.is_empty() {
        return Diagnostic::error("the script threw an error without a message");
    }
    Diagnostic::error(text)
}

#[cfg(test)]
mod tests;
