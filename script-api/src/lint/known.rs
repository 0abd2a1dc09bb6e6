//! What a program may use besides its own names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rhai::{Engine, is_valid_identifier};

use crate::source::Source;

/// A native function: a method counts its receiver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Methods of routes and sites, which only exist while the top level runs.
    passing: BTreeSet<NativeSignature>,
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

    /// Says which natives hooks have too, and which names belong to the top level anyway. What is left are
    /// methods of routes and sites: a function of the program may have their names.
    pub(crate) fn outlast(&mut self, lasting: &Self, at_load: &[&str]) {
        let all = self.functions.iter().flat_map(|(name, arities)| {
            let signature = |&arity| NativeSignature {
                name: name.clone(),
                arity,
            };
            arities.iter().map(signature)
        });
        let passes = |one: &NativeSignature| {
            let lasts = lasting.arities(&one.name);
            !at_load.contains(&one.name.as_str())
                && lasts.is_none_or(|all| !all.contains(&one.arity))
        };
        self.passing = all.filter(passes).collect();
    }

    /// The number of parameters of the native that a function of the program would replace for good, if it
    /// is called `name` and takes so many.
    pub(crate) fn hidden_by(&self, name: &str, parameters: usize) -> Option<usize> {
        self.met_by(name, parameters)
            .find(|&arity| !self.passes(name, arity))
    }

    /// Whether a function of the program only has the name of a method of routes or sites.
    pub(crate) fn hides_for_a_while(&self, name: &str, parameters: usize) -> bool {
        self.met_by(name, parameters)
            .any(|arity| self.passes(name, arity))
    }

    /// As a method, a function of the program has its receiver in `this`, a native in a parameter.
    fn met_by<'n>(
        &'n self,
        name: &str,
        parameters: usize,
    ) -> impl Iterator<Item = usize> + use<'n> {
        let arities = self.functions.get(name);
        let met = move |arity: &usize| arities.is_some_and(|all| all.contains(arity));
        [parameters, parameters + 1].into_iter().filter(met)
    }

    fn passes(&self, name: &str, arity: usize) -> bool {
        self.passing.contains(&NativeSignature {
            name: name.to_owned(),
            arity,
        })
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
