//! Variables and modules that exist nowhere.

use rhai::Namespace;

use super::findings::Findings;
use super::names::{Meaning, Names, did_you_mean};
use super::scope::{Scope, Use};
use super::walk::Check;

/// The module that Rhai provides by itself: the constants of the top level.
const GLOBAL: &str = "global";

pub(super) struct Variables<'a> {
    pub(super) names: Names<'a>,
}

impl<'a> Variables<'a> {
    /// What to do about an undefined variable, by the most probable mistake.
    fn help(&self, used: Use<'a>, scope: &Scope<'a>) -> Option<String> {
        let name = used.name;
        let program = self.names.program;
        if program.constants.contains(name) {
            return Some(format!(
                "`{name}` is declared further below: a constant stands above its use"
            ));
        }
        if program.variables.contains(name) && !scope.is_plain_top_level() {
            return Some(format!(
                "`{name}` is a `let` of the top level, which functions don't see: make it a `const`"
            ));
        }
        let own = self.names.known.source.own_name(name);
        if self.names.known.functions.arities(own).is_some() {
            return Some(format!(
                "`{name}` is built in and can't be handed over by its name: wrap it in a closure, `|x| {name}(x)`"
            ));
        }
        did_you_mean(self.names.near_variable(name, used.at, scope))
    }
}

impl<'a> Check<'a> for Variables<'a> {
    fn variable(&mut self, used: Use<'a>, scope: &Scope<'a>, findings: &mut Findings) {
        if let Meaning::Nothing = self.names.meaning(used.name, scope) {
            findings.error(
                used.at,
                used.name.chars().count(),
                format!("undefined variable `{}`", used.name),
                self.help(used, scope),
            );
        }
    }

    fn qualified(
        &mut self,
        namespace: &'a Namespace,
        variable: Option<Use<'a>>,
        scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        let Some(root) = namespace.path.first() else {
            return;
        };
        if root.name == GLOBAL {
            let constants = &self.names.program.constants;
            if let Some(used) = variable
                && !constants.contains(used.name)
                && !self.names.known.constants.contains(&used.name)
            {
                findings.error(
                    used.at,
                    used.name.chars().count(),
                    format!("there is no constant `{}` at the top level", used.name),
                    did_you_mean(self.names.near_variable(used.name, used.at, scope)),
                );
            }
            return;
        }
        if !self.names.is_module(&root.name, scope) {
            findings.error(
                root.pos,
                root.name.chars().count(),
                format!("unknown module `{}`", root.name),
                Some(format!(
                    "import it at the top level: `import \"{0}\" as {0};`",
                    root.name
                )),
            );
        }
    }
}
