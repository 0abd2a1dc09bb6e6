//! `edgewright routes`: the table, in the order in which it is matched.

use std::{cmp::Reverse, path::Path, process::ExitCode};

use edgewright_script::{
    diagnostic::Place,
    program::{Condition, Destination, HookId, Program, Route, Test},
    router::HostPattern,
};

use super::{WRONG, report};
use crate::{config::Overrides, source};

pub(super) fn run(path: &Path) -> ExitCode {
    match source::compile(path, &Overrides::default()) {
        Ok(compiled) => {
            print!("{}", table(&compiled.program));
            ExitCode::SUCCESS
        }
        Err(refused) => {
            report::refused(&refused);
            ExitCode::from(WRONG)
        }
    }
}

const HEADINGS: [&str; 7] = [
    "HOST",
    "METHODS",
    "PATH",
    "CONDITIONS",
    "GATES",
    "HOOKS",
    "DESTINATION",
];

/// The routes as a table with aligned columns, and the place of each at its end.
fn table(program: &Program) -> String {
    let mut routes: Vec<&Route> = program.routes.iter().collect();
    // Of one site they are in order already; of sites the most specific host is searched.
    routes.sort_by_key(|route| program.site(route.site).hosts.iter().map(breadth).min());
    let rows: Vec<[String; 7]> = routes.iter().map(|route| row(program, route)).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut table = line(&HEADINGS.map(str::to_owned), widths, "PLACE");
    for (row, route) in rows.iter().zip(&routes) {
        table.push_str(&line(row, widths, &place(&route.place)));
    }
    table
}

/// How much a host takes in: exact ones first, then the longest wildcard, then any.
fn breadth(host: &HostPattern) -> (u8, Reverse<usize>) {
    match host {
        HostPattern::Name(_) | HostPattern::Ipv6(_) => (0, Reverse(0)),
        HostPattern::Wildcard(name) => (1, Reverse(name.len())),
        HostPattern::Any => (2, Reverse(0)),
    }
}

fn line(cells: &[String; 7], widths: [usize; 7], last: &str) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(&format!("{cell:width$}  "));
    }
    line.push_str(last);
    line.push('\n');
    line
}

fn row(program: &Program, route: &Route) -> [String; 7] {
    let hosts = &program.site(route.site).hosts;
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let methods = if route.methods.is_empty() {
        "*".to_owned()
    } else {
        route.methods.join(",")
    };
    [
        hosts.join(","),
        methods,
        route.pattern.to_string(),
        conditions(program, route),
        gates(route),
        hooks(program, &[&route.on_request, &route.on_response]),
        destination(program, &route.destination),
    ]
}

fn place(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}

fn or_dash(parts: Vec<String>) -> String {
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join(" ")
    }
}

fn conditions(program: &Program, route: &Route) -> String {
    let named = |kind: &str, name: &str, test: &Test| match test {
        Test::Present => format!("{kind}:{name}"),
        Test::Is(text) => format!("{kind}:{name}={text}"),
        Test::Matches(regex) => format!("{kind}:{name}~{}", regex.pattern()),
    };
    let mut parts: Vec<String> = route
        .conditions
        .iter()
        .map(|condition| match condition {
            Condition::Header(name, test) => named("header", name, test),
            Condition::Query(name, test) => named("query", name, test),
            Condition::Cookie(name, test) => named("cookie", name, test),
            Condition::From(networks) => format!("from:{networks}"),
        })
        .collect();
    parts.extend(
        route
            .when
            .iter()
            .map(|&hook| format!("when:{}", function(program, hook))),
    );
    or_dash(parts)
}

/// The route's methods that can refuse a request before its hooks, in the order in which they are asked.
fn gates(route: &Route) -> String {
    let gates = route.gates.iter().flat_map(|gates| gates.asked());
    or_dash(gates.map(|gate| gate.name().to_owned()).collect())
}

fn hooks(program: &Program, hooks: &[&Vec<HookId>]) -> String {
    or_dash(
        hooks
            .iter()
            .flat_map(|hooks| hooks.iter())
            .map(|&hook| {
                format!(
                    "{}:{}",
                    program.hook(hook).kind.name(),
                    function(program, hook)
                )
            })
            .collect(),
    )
}

/// A function's name; of a closure, its place.
fn function(program: &Program, hook: HookId) -> String {
    let hook = program.hook(hook);
    if !hook.function.name.contains('$') {
        return program.name_of(&hook.function).into_owned();
    }
    if hook.place.file == program.file() {
        format!("|..|@{}", hook.place.line)
    } else {
        format!("|..|@{}", place(&hook.place))
    }
}

fn destination(program: &Program, destination: &Destination) -> String {
    let pool = |id: edgewright_script::program::PoolId| program.pools[id.index()].name.clone();
    match destination {
        Destination::Pool(id) => pool(*id),
        Destination::Split(split) => {
            let weights = split.weights();
            let weights: Vec<String> = weights
                .map(|(id, weight)| format!("{}:{weight}", pool(id)))
                .collect();
            let by = split.decided_by().map(|by| format!(" by {by}"));
            weights.join(",") + by.as_deref().unwrap_or_default()
        }
        Destination::Function(hook) => format!("to:{}", function(program, *hook)),
        Destination::Respond(answer) => format!("respond {}", answer.status.as_u16()),
        Destination::RespondFunction(hook) => format!("respond:{}", function(program, *hook)),
        Destination::Redirect(status, target) => format!("{} {target}", status.as_u16()),
    }
}
