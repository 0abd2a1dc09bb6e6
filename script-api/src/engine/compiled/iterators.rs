//! What `for` can go over.

use rhai::{
    Dynamic, Engine, EvalAltResult, GlobalRuntimeState, Module,
    packages::{BasicIteratorPackage, Package},
};

/// Gives the items of a value.
type Items = dyn Fn(Dynamic) -> Box<dyn Iterator<Item = Result<Dynamic, Box<EvalAltResult>>>>;

/// Rhai's iterators by the types that they are for. An engine keeps its own to itself; those that are
/// imported can be asked for.
pub(super) struct Iterators(GlobalRuntimeState);

impl Iterators {
    pub(super) fn new(engine: &Engine) -> Self {
        let mut module = Module::new();
        BasicIteratorPackage::init(&mut module);
        module.build_index();
        let mut global = engine.new_global_runtime_state();
        global.push_import("iterators", module);
        Self(global)
    }

    /// What gives the items of this value, if it has some.
    pub(super) fn over(&self, value: &Dynamic) -> Option<&Items> {
        self.0.get_iter(value.type_id())
    }
}
