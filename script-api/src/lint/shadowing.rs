//! Functions of the program that hide a native. Rhai lets them win in every
//! call, of methods too, and even in `in`, which calls `contains`. Methods of routes and sites can't be
//! hidden: the loader takes care of that, so a gate may be called `limit`.

use super::findings::Findings;
use super::names::Names;

pub(super) fn check(names: Names<'_>, findings: &mut Findings) {
    for function in names.program.named_functions() {
        let name = names.known.source.own_name(&function.name);
        let natives = names.known.functions;
        let Some(hidden) = natives.hidden_by(name, function.params.len()) else {
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
