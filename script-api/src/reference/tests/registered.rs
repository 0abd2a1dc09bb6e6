//! What is registered with the engine is what the reference says, and the other way round.

use std::{any::TypeId, collections::BTreeSet, rc::Rc};

use rhai::{
    Array, Blob, Dynamic, Engine, FLOAT, FnPtr, INT, ImmutableString, Map, is_valid_identifier,
};

use crate::{
    engine::{self, Limits, sandbox},
    load::{self, Inputs},
    path::PathPolicy,
    reference::{GROUPS, Group, Signature},
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

/// Registered, but not for use: the native only says what to write instead, or belongs to a test.
const NOT_FOR_USE: [(Option<&str>, &str); 4] = [
    (Some("Route"), "header"),
    (None, "print"),
    (None, "debug"),
    (None, "panic_on_purpose"),
];

/// A native as the engine has it. A property has the name `get$..` or `set$..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Native {
    name: String,
    parameters: Vec<TypeId>,
}

fn natives(engine: &Engine) -> BTreeSet<Native> {
    let all = engine.collect_fn_metadata(
        None,
        |function| {
            Some(Native {
                name: function.metadata.name.to_string(),
                parameters: function.metadata.param_types.to_vec(),
            })
        },
        true,
    );
    all.into_iter().collect()
}

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        Err(FileError::NotFound(name.to_owned()))
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        Err(FileError::NotFound(name.to_owned()))
    }
}

/// What the top level and the hooks have, without what Rhai has by itself and without what only says
/// what absent values give, which the reference says once for all.
fn registered() -> Vec<Native> {
    let inputs = Inputs {
        file: "routes.rhai".to_owned(),
        source: String::new(),
        files: Rc::new(NoFiles),
        environment: Rc::new(|_| None),
        pools: Vec::new(),
        limits: Limits::default(),
        path_policy: PathPolicy::default(),
        state: StateStore::default(),
    };
    let loading = load::bare_engine(&inputs);
    let mut all = natives(&loading);
    all.extend(natives(&sandbox::engine(
        &inputs.limits,
        &inputs.path_policy,
    )));
    let of_rhai = natives(&sandbox::of_rhai());
    let own = all.difference(&of_rhai).filter(|native| {
        let name = bare(&native.name).0;
        is_valid_identifier(name)
            && !name.starts_with("to_debug")
            && !native.parameters.contains(&TypeId::of::<()>())
    });
    own.cloned().collect()
}

/// The name without what marks a property, and the mark.
fn bare(name: &str) -> (&str, &str) {
    match name.split_once('$') {
        Some((mark @ ("get" | "set"), bare)) => (bare, mark),
        _ => (name, ""),
    }
}

/// The types that a name in the reference stands for.
fn types_of(name: &str) -> Vec<TypeId> {
    let text = TypeId::of::<ImmutableString>();
    let (int, float) = (TypeId::of::<INT>(), TypeId::of::<FLOAT>());
    let own = |name: &str| {
        let mut types = own_types().into_iter();
        types.find(|(_, known)| *known == name).map(|(id, _)| id)
    };
    match name {
        "text" => vec![text],
        "int" => vec![int],
        "float" => vec![float],
        "number" => vec![int, float],
        "bool" => vec![TypeId::of::<bool>()],
        "bytes" => vec![TypeId::of::<Blob>()],
        "array" => vec![TypeId::of::<Array>()],
        "map" => vec![TypeId::of::<Map>()],
        "function" => vec![TypeId::of::<FnPtr>()],
        "data" => vec![text, TypeId::of::<Blob>(), own("Body").unwrap()],
        "key" => vec![text, int],
        "value" | "any" => vec![TypeId::of::<Dynamic>()],
        "()" => vec![],
        name => vec![own(name).unwrap_or_else(|| panic!("no type `{name}` in `own_types`"))],
    }
}

fn own_types() -> Vec<(TypeId, &'static str)> {
    let mut types = engine::own_types();
    types.extend(load::own_types());
    types
}

/// The natives that make up one signature: their name, and the types that each parameter may have.
fn wanted(group: &Group, signature: &Signature, mark: &str) -> (String, Vec<Vec<TypeId>>) {
    let mut parameters: Vec<Vec<TypeId>> = group.of.into_iter().map(types_of).collect();
    let given = signature.parameters.iter().flatten();
    parameters
        .extend(given.map(|(_, names)| names.iter().flat_map(|name| types_of(name)).collect()));
    let name = match mark {
        "" => signature.name.to_owned(),
        mark => format!("{mark}${}", signature.name),
    };
    if mark == "set" {
        parameters.push(
            signature
                .gives
                .iter()
                .flat_map(|name| types_of(name))
                .collect(),
        );
    }
    (name, parameters)
}

/// All that the reference speaks of.
fn documented() -> Vec<(String, Vec<Vec<TypeId>>, &'static str)> {
    let mut all = Vec::new();
    for group in GROUPS {
        for entry in group.entries {
            for signature in entry.parsed() {
                let mark = if signature.parameters.is_some() {
                    ""
                } else {
                    "get"
                };
                let (name, parameters) = wanted(group, &signature, mark);
                all.push((name, parameters, group.title));
                if entry.assigned.is_some() {
                    let (name, parameters) = wanted(group, &signature, "set");
                    all.push((name, parameters, group.title));
                }
            }
        }
    }
    all
}

fn takes(native: TypeId, documented: TypeId) -> bool {
    native == documented || native == TypeId::of::<Dynamic>()
}

fn is_covered(native: &Native, name: &str, parameters: &[Vec<TypeId>]) -> bool {
    let mut pairs = native.parameters.iter().zip(parameters);
    native.name == name
        && native.parameters.len() == parameters.len()
        && pairs.all(|(native, documented)| documented.iter().any(|one| takes(*native, *one)))
}

/// How a reader would write the native: `Request.header(text)`.
fn shown(native: &Native) -> String {
    let type_name = |id: &TypeId| {
        let plain = [
            "text", "int", "float", "bool", "bytes", "array", "map", "function", "any",
        ];
        let known = plain.into_iter().find(|name| types_of(name) == [*id]);
        let own = || {
            own_types()
                .into_iter()
                .find(|(own, _)| own == id)
                .map(|(_, name)| name)
        };
        known
            .or_else(own)
            .unwrap_or("a type that is not in `own_types` (engine/types.rs, load/mod.rs)")
    };
    let (name, mark) = bare(&native.name);
    let names: Vec<&str> = native.parameters.iter().map(type_name).collect();
    match (mark, names.split_first()) {
        ("get", Some((of, _))) => format!("the property {of}.{name}"),
        ("set", Some((of, to))) => format!("the assignment {of}.{name} = {}", to.join("")),
        (_, Some((of, rest))) => format!(
            "{of}.{name}({}), or {name}({})",
            rest.join(", "),
            names.join(", ")
        ),
        (_, None) => format!("{name}()"),
    }
}

fn receiver(native: &Native) -> Option<&'static str> {
    let first = native.parameters.first()?;
    own_types()
        .into_iter()
        .find(|(id, _)| id == first)
        .map(|(_, name)| name)
}

#[test]
fn everything_registered_is_in_the_reference() {
    let documented = documented();
    let missing: Vec<String> = registered()
        .iter()
        .filter(|native| !NOT_FOR_USE.contains(&(receiver(native), bare(&native.name).0)))
        .filter(|native| {
            !documented
                .iter()
                .any(|(name, parameters, _)| is_covered(native, name, parameters))
        })
        .map(|native| format!("  {}", shown(native)))
        .collect();
    assert!(
        missing.is_empty(),
        "registered, but not in the reference:\n{}\nAdd a row for each to the group that it belongs to, in a file of \
         script-api/src/reference/ (`Entry::new(need, &[signatures], docs)`; a new group goes into GROUPS in mod.rs), \
         then run EDGEWRIGHT_UPDATE_DOCS=1 cargo nextest run -p edgewright-script --test reference",
        missing.join("\n")
    );
}

#[test]
fn everything_in_the_reference_is_registered() {
    let registered = registered();
    let mut missing = Vec::new();
    for (name, parameters, group) in documented() {
        let fits: Vec<&Native> = registered
            .iter()
            .filter(|native| is_covered(native, &name, &parameters))
            .collect();
        // Each type that a parameter is said to take is taken by one of them.
        let all_taken = parameters.iter().enumerate().all(|(index, types)| {
            types.iter().all(|one| {
                fits.iter()
                    .any(|native| takes(native.parameters[index], *one))
            })
        });
        if fits.is_empty() || !all_taken {
            let (name, _) = bare(&name);
            missing.push(format!(
                "  `{name}` with {} parameters, of \"{group}\"",
                parameters.len()
            ));
        }
    }
    assert!(
        missing.is_empty(),
        "in the reference (script-api/src/reference/), but not registered with such parameters:\n{}",
        missing.join("\n")
    );
}
