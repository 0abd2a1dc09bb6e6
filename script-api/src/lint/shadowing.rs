//! Functions of the program that hide a native. Rhai lets them win in every
//! call, of methods too, and even in `in`, which calls `contains`.

use super::findings::Findings;
use super::names::Names;

pub(super) fn check(names: Names<'_>, findings: &mut Findings) {
    for function in names.program.named_functions() {
        let name = names.known.source.own_name(&function.name);
        let Some(arities) = names.known.functions.arities(name) else {
            continue;
        };
        let params = function.params.len();
        // As a method, a function of the program has its receiver in `this`, a native in a parameter.
        let Some(hidden) = [params, params + 1]
            .into_iter()
            .find(|arity| arities.contains(arity))
        else {
            continue;
        };
        let plural = if hidden == 1 { "" } else { "s" };
        findings.error(
            function.position,
            1,
            format!(
                "`{name}` is already a function with {hidden} argument{plural}: a function of the \
                 program would replace it everywhere"
            ),
            Some("choose another name".to_string()),
        );
    }
}
