//! Calls of native functions: looked up once for the types that come, and not in each call.

use std::{any::TypeId, cell::RefCell, rc::Rc};

use rhai::{
    Caches, Dynamic, Engine, EvalAltResult, EvalContext, Expr, FnArgsVec, FnCallExpr, FnCallHashes,
    ImmutableString, Namespace, NativeCallContext, Position, RhaiFunc, Scope, Token,
};
use smallvec::SmallVec;

use super::machine::{Host, count, placed};
use crate::engine::budget;

type Failed = Box<EvalAltResult>;

/// Kinds of arguments that one place keeps the function for. A place that is called with more kinds
/// looks up those that it has seen last.
const KEPT: usize = 4;

/// A place that calls a native function, which depends on the types of the arguments.
pub(super) struct Native {
    name: ImmutableString,
    /// Rhai's hash of the name and the number of arguments.
    hash: u64,
    /// Of an operator.
    token: Option<Token>,
    place: Position,
    kept: RefCell<SmallVec<[Rc<Kept>; 1]>>,
    /// Types for which Rhai has no operator of its own.
    not_builtin: RefCell<SmallVec<[Types; 1]>>,
}

/// Types of arguments.
type Types = SmallVec<[TypeId; 3]>;

/// A native function, and for what arguments it is.
struct Kept {
    types: Types,
    function: RhaiFunc,
    source: Option<ImmutableString>,
    has_context: bool,
    is_method: bool,
    is_pure: bool,
    /// Rhai's own operator, which it neither counts nor measures.
    is_builtin: bool,
}

/// What a native function gave.
pub(super) struct Called {
    pub(super) value: Dynamic,
    /// Whether it may have changed its first argument.
    pub(super) changes: bool,
}

impl Native {
    /// `hash` is that of the syntax tree.
    pub(super) fn new(name: impl Into<ImmutableString>, hash: u64, place: Position) -> Self {
        Self {
            name: name.into(),
            hash,
            token: None,
            place,
            kept: RefCell::default(),
            not_builtin: RefCell::default(),
        }
    }

    /// For a call as it stands in the program.
    pub(super) fn of(call: &FnCallExpr, place: Position) -> Self {
        Self {
            token: call.op_token.clone(),
            ..Self::new(call.name.clone(), call.hashes.native(), place)
        }
    }

    /// It is this operator.
    pub(super) fn with_token(mut self, token: Option<&Token>) -> Self {
        self.token = token.cloned();
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn place(&self) -> Position {
        self.place
    }

    /// Calls it as the interpreter does: counted, measured, and not with a constant that it may
    /// change. `by_reference`: the first argument is a variable, and not its copy.
    ///
    /// # Errors
    /// Those of the function; when there is none for these types; when the hook may do no more.
    pub(super) fn call(
        &self,
        host: &mut Host<'_>,
        arguments: &mut [&mut Dynamic],
        by_reference: bool,
    ) -> Result<Called, Failed> {
        let Some(kept) = self.kept(arguments) else {
            return self.look_up_and_call(host, arguments, by_reference);
        };
        count(self.place)?;
        self.run(host, &kept, arguments, by_reference)
    }

    /// Calls Rhai's own operator for two values, if there is one for them: not counted and not measured.
    ///
    /// # Errors
    /// Those of the operator, with the place.
    pub(super) fn call_builtin(
        &self,
        host: &mut Host<'_>,
        builtins: &Engine,
        arguments: &mut [&mut Dynamic; 2],
    ) -> Result<Option<Dynamic>, Failed> {
        let kept = match self.kept(arguments) {
            Some(kept) => kept,
            None if self.is_not_builtin(arguments) => return Ok(None),
            None => match self.look_up_builtin(host, builtins, arguments) {
                Some(kept) => kept,
                None => return Ok(None),
            },
        };
        if !kept.is_builtin {
            return Ok(None);
        }
        let context = kept.has_context.then(|| {
            NativeCallContext::new_with_all_fields(
                host.engine,
                &self.name,
                None,
                host.global,
                self.place,
            )
        });
        let value = invoke(&kept.function, context, arguments);
        value.map(Some).map_err(|error| placed(error, self.place))
    }

    fn kept(&self, arguments: &[&mut Dynamic]) -> Option<Rc<Kept>> {
        let kept = self.kept.borrow();
        kept.iter()
            .find(|kept| are_of(arguments, &kept.types))
            .cloned()
    }

    fn is_not_builtin(&self, arguments: &[&mut Dynamic]) -> bool {
        let known = self.not_builtin.borrow();
        known.iter().any(|types| are_of(arguments, types))
    }

    fn keep(&self, kept: Kept) -> Rc<Kept> {
        let kept = Rc::new(kept);
        let mut all = self.kept.borrow_mut();
        if all.len() >= KEPT {
            all.remove(0);
        }
        all.push(kept.clone());
        kept
    }

    fn run(
        &self,
        host: &mut Host<'_>,
        kept: &Kept,
        arguments: &mut [&mut Dynamic],
        by_reference: bool,
    ) -> Result<Called, Failed> {
        let value = if by_reference && !kept.is_method {
            // It takes its arguments by value: the variable keeps its own.
            let mut own = arguments[0].clone();
            std::mem::swap(arguments[0], &mut own);
            let value = self.invoke(host, kept, arguments);
            std::mem::swap(arguments[0], &mut own);
            value?
        } else {
            self.invoke(host, kept, arguments)?
        };
        host.fits(&value, self.place)?;
        if by_reference && let Some(first) = arguments.first() {
            host.fits(first, self.place)?;
        }
        Ok(Called {
            value,
            changes: kept.is_method,
        })
    }

    fn invoke(
        &self,
        host: &mut Host<'_>,
        kept: &Kept,
        arguments: &mut [&mut Dynamic],
    ) -> Result<Dynamic, Failed> {
        if !kept.is_pure && arguments.first().is_some_and(|first| first.is_read_only()) {
            let name = self.name.to_string();
            return Err(EvalAltResult::ErrorNonPureMethodCallOnConstant(name, self.place).into());
        }
        let result = if kept.has_context {
            let level = host.global.level;
            host.global.level += 1;
            let context = NativeCallContext::new_with_all_fields(
                host.engine,
                &self.name,
                kept.source.as_deref(),
                host.global,
                self.place,
            );
            let result = invoke(&kept.function, Some(context), arguments);
            host.global.level = level;
            result
        } else {
            invoke(&kept.function, None, arguments)
        };
        result.map_err(|error| placed(error, self.place))
    }

    /// The first call for these types goes through the interpreter, which looks the function up.
    #[cold]
    fn look_up_and_call(
        &self,
        host: &mut Host<'_>,
        arguments: &mut [&mut Dynamic],
        by_reference: bool,
    ) -> Result<Called, Failed> {
        let types = types(arguments);
        let mut caches = caches_that_keep_at_once();
        let mut scope = Scope::new();
        let is_constant = arguments.first().is_some_and(|first| first.is_read_only());
        let called = if is_constant {
            EvalContext::new(host.engine, host.global, &mut caches, &mut scope, None)
                .call_native_fn_raw(&self.name, by_reference, arguments)
        } else {
            self.interpret(host, &mut caches, arguments, by_reference)
        };
        let kept = found(&mut caches, types, false).map(|found| self.keep(found));
        let value = called.map_err(|error| placed(error, self.place))?;
        Ok(Called {
            value,
            changes: kept.is_some_and(|kept| kept.is_method),
        })
    }

    /// Has the interpreter run the call, as an expression over variables of a scope of its own.
    fn interpret(
        &self,
        host: &mut Host<'_>,
        caches: &mut Caches,
        arguments: &mut [&mut Dynamic],
        by_reference: bool,
    ) -> Result<Dynamic, Failed> {
        let name = |index| format!("argument {index}");
        let mut scope = Scope::new();
        let mut expressions: FnArgsVec<Expr> = FnArgsVec::new();
        for (index, argument) in arguments.iter_mut().enumerate() {
            if index == 0 && !by_reference {
                let value = Box::new(argument.take());
                expressions.push(Expr::DynamicConstant(value, self.place));
                continue;
            }
            let name = ImmutableString::from(name(index));
            scope.push_dynamic(name.clone(), argument.take());
            let details = (None, name, Namespace::NONE, 0);
            expressions.push(Expr::Variable(Box::new(details), None, self.place));
        }
        let call = FnCallExpr {
            namespace: Namespace::NONE,
            name: self.name.clone(),
            hashes: FnCallHashes::from_native_only(self.hash),
            args: expressions,
            capture_parent_scope: false,
            op_token: self.token.clone(),
        };
        let call = Expr::FnCall(Box::new(call), self.place);
        // The expression and its variables count; those of the program have counted already.
        let counted = 1 + arguments.len() as u64;
        let called = budget::without(counted, || {
            EvalContext::new(host.engine, host.global, caches, &mut scope, None)
                .eval_expression_tree(&(&call).into())
        });
        // The first one may have changed; the others are wanted when there is no such function.
        for (index, argument) in arguments.iter_mut().enumerate() {
            if let Some(value) = scope.get_mut(&name(index)) {
                **argument = value.take();
            }
        }
        called
    }

    /// Tries the operator, which has no effect, with copies of the values in an engine that has nothing
    /// but Rhai's own operators.
    #[cold]
    fn look_up_builtin(
        &self,
        host: &mut Host<'_>,
        builtins: &Engine,
        arguments: &[&mut Dynamic; 2],
    ) -> Option<Rc<Kept>> {
        let types = types(arguments);
        let mut copies = [arguments[0].clone(), arguments[1].clone()];
        let [first, second] = &mut copies;
        let mut caches = caches_that_keep_at_once();
        let mut scope = Scope::new();
        let _tried = EvalContext::new(builtins, host.global, &mut caches, &mut scope, None)
            .call_native_fn_raw(&self.name, true, &mut [first, second]);
        let Some(found) = found(&mut caches, types.clone(), true) else {
            let mut known = self.not_builtin.borrow_mut();
            if known.len() >= KEPT {
                known.remove(0);
            }
            known.push(types);
            return None;
        };
        Some(self.keep(found))
    }
}

fn are_of(arguments: &[&mut Dynamic], types: &[TypeId]) -> bool {
    types
        .iter()
        .zip(arguments)
        .all(|(known, argument)| *known == argument.type_id())
}

fn types(arguments: &[&mut Dynamic]) -> Types {
    arguments
        .iter()
        .map(|argument| argument.type_id())
        .collect()
}

/// Caches of the interpreter that keep a function when it is first looked up. Usually it keeps what is
/// looked up a second time.
fn caches_that_keep_at_once() -> Caches {
    let mut caches = Caches::new();
    let cache = caches.fn_resolution_cache_mut();
    // All bits of its filter.
    for hash in 0..512 {
        cache.bloom_filter.mark(hash);
    }
    caches
}

/// The one function that was looked up.
fn found(caches: &mut Caches, types: Types, is_builtin: bool) -> Option<Kept> {
    let cache = caches.fn_resolution_cache_mut();
    let entry = cache.dict.values().flatten().next()?;
    if !entry.func.is_native() {
        return None;
    }
    Some(Kept {
        types,
        has_context: entry.func.has_context(),
        is_method: entry.func.is_method(),
        is_pure: entry.func.is_pure(),
        function: entry.func.clone(),
        source: entry.source.clone(),
        is_builtin,
    })
}

#[inline]
fn invoke(
    function: &RhaiFunc,
    context: Option<NativeCallContext<'_>>,
    arguments: &mut [&mut Dynamic],
) -> Result<Dynamic, Failed> {
    match function {
        RhaiFunc::Pure { func, .. } | RhaiFunc::Method { func, .. } => func(context, arguments),
        RhaiFunc::Plugin { func } => func.call(context, arguments),
        RhaiFunc::StaticPlugin { func } => func.call(context, arguments),
        _ => Err("this is no native function".into()),
    }
}
