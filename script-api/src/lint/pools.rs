//! Pools that a `.to` function names and that don't exist.

use super::findings::Findings;
use super::program::{Function, Program};
use super::results::results;
use crate::suggest::nearest;

pub(super) fn check(
    program: &Program<'_>,
    function: &Function,
    pools: &[&str],
    findings: &mut Findings,
) {
    for named in results(program, function)
        .iter()
        .flat_map(|result| &result.names)
    {
        let name = named.name.as_str();
        if pools.contains(&name) {
            continue;
        }
        let help = match nearest(name, pools.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "declare it: pool(\"{name}\", [\"127.0.0.1:9000\"]), or [pools.{name}] in edgewright.toml"
            ),
        };
        findings.error(
            named.at,
            named.length,
            format!("there is no pool `{name}`"),
            Some(help),
        );
    }
}
