//! What a program may use besides its own names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rhai::{Engine, is_valid_identifier};

use crate::source::Source;

/// A native function: a method counts its receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeSignature {
    /// As a script calls it.
    pub name: String,
    /// Number of parameters, the receiver of a method included.
    pub arity: usize,
}

/// The native functions and modules of an engine.
#[derive(Debug, Clone, Default)]
pub struct Natives {
    functions: BTreeMap<String, BTreeSet<usize>>,
    modules: BTreeSet<String>,
}

impl Natives {
    /// Everything registered with `engine`, packages and static modules included.
    #[must_use]
    pub fn from_engine(engine: &Engine) -> Self {
        let all = engine.collect_fn_metadata(
            None,
            |function| {
                Some((
                    function.namespace.to_string(),
                    function.metadata.name.to_string(),
                    function.metadata.num_params,
                ))
            },
            true,
        );
        let mut natives = Self::default();
        for (module, name, arity) in all {
            if module.is_empty() {
                natives.extend([NativeSignature { name, arity }]);
            } else {
                let root = module.split("::").next().unwrap_or(&module);
                natives.modules.insert(root.to_string());
            }
        }
        natives
    }

    /// The numbers of parameters that `name` takes, or `None` when there is no such function.
    pub(crate) fn arities(&self, name: &str) -> Option<&BTreeSet<usize>> {
        self.functions.get(name)
    }

    /// Names that a script can call (no operators, getters or setters).
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    pub(crate) fn has_module(&self, name: &str) -> bool {
        self.modules.contains(name)
    }
}

impl Extend<NativeSignature> for Natives {
    fn extend<T: IntoIterator<Item = NativeSignature>>(&mut self, signatures: T) {
        for NativeSignature { name, arity } in signatures {
            if is_valid_identifier(&name) {
                self.functions.entry(name).or_default().insert(arity);
            }
        }
    }
}

impl FromIterator<NativeSignature> for Natives {
    fn from_iter<T: IntoIterator<Item = NativeSignature>>(signatures: T) -> Self {
        let mut natives = Self::default();
        natives.extend(signatures);
        natives
    }
}

/// What the checks know about the world around the program.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The program's text and files; every place is in one of them.
    pub source: &'a Arc<Source>,
    /// The native functions.
    pub functions: &'a Natives,
    /// What can be read from or assigned to a request (`path` in `req.path`).
    pub request_properties: &'a [&'a str],
    /// The same for a response.
    pub response_properties: &'a [&'a str],
    /// Names that are visible everywhere although the program doesn't declare them.
    pub constants: &'a [&'a str],
    /// The pools that exist; `None` while that isn't known, and nothing is said about their names.
    pub pools: Option<&'a [&'a str]>,
}
