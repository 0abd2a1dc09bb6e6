//! Pools that the program names and that don't exist.

use rhai::Position;

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
        unknown_at(name, named.at, named.length, pools, findings);
    }
}

/// Reports the literal `name` at this place, of which there is no pool.
pub(super) fn unknown(name: &str, at: Position, pools: &[&str], findings: &mut Findings) {
    // With its quotes.
    unknown_at(name, at, name.chars().count() + 2, pools, findings);
}

fn unknown_at(name: &str, at: Position, length: usize, pools: &[&str], findings: &mut Findings) {
    let help = match nearest(name, pools.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "declare it: pool(\"{name}\", [\"127.0.0.1:9000\"]), or [pools.{name}] in edgewright.toml"
        ),
    };
    let message = format!("there is no pool `{name}`");
    findings.error(at, length, message, Some(help));
}
