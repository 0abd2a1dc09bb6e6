//! `edgewright check`.

use std::{path::Path, process::ExitCode};

use edgewright_script::{
    diagnostic::{Diagnostic, Severity},
    engine::{Interpreter, Way},
};
use serde_json::json;

use super::{Format, WRONG, report};
use crate::{
    config::Overrides,
    source::{self, Compiled},
};

pub(super) fn run(path: &Path, format: Format, verbose: bool) -> ExitCode {
    let compiled = source::compile(path, &Overrides::default());
    match format {
        Format::Json => {
            let findings = match &compiled {
                Ok(compiled) => &compiled.warnings,
                Err(refused) => &refused.diagnostics.0,
            };
            println!("{}", as_json(findings, compiled.as_ref().ok()));
        }
        Format::Text => match &compiled {
            Ok(compiled) => {
                report::findings(&compiled.warnings, compiled.folder.root());
                println!(
                    "{}: {}, {}, {}",
                    compiled.config.routes,
                    count(compiled.program.routes.len(), "route"),
                    count(compiled.pools.len(), "pool"),
                    count(compiled.program.hooks.len(), "hook"),
                );
                if verbose {
                    for hook in ways(compiled) {
                        println!("{hook}");
                    }
                }
            }
            Err(refused) => {
                report::refused(refused);
                let errors = refused.diagnostics.iter();
                let errors = errors.filter(|one| one.severity == Severity::Error).count();
                eprintln!("{}", count(errors, "error"));
            }
        },
    }
    match compiled {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(WRONG),
    }
}

/// How each hook runs, in the order in which the program hands them over.
fn ways(compiled: &Compiled) -> Vec<String> {
    let program = &compiled.program;
    let interpreter = match Interpreter::new(program.clone()) {
        Ok(interpreter) => interpreter,
        Err(error) => return vec![error.summary()],
    };
    let hooks = program.hooks.iter().zip(interpreter.ways());
    let told = hooks.map(|(hook, way)| {
        let way = match way {
            Way::Compiled => "compiled".to_owned(),
            Way::Interpreted => "interpreted (`[script] compile` is false)".to_owned(),
            Way::Unknown { construct, place } => {
                format!("interpreted: {construct}, at {place}, can't be compiled")
            }
        };
        format!("  {} {}: {way}", hook.place, hook.kind.name())
    });
    told.collect()
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn as_json(findings: &[Diagnostic], compiled: Option<&Compiled>) -> serde_json::Value {
    let findings: Vec<_> = findings
        .iter()
        .map(|finding| {
            let place = finding.place.as_ref();
            json!({
                "severity": finding.severity.to_string(),
                "message": finding.message,
                "file": place.map(|place| &place.file),
                "line": place.map(|place| place.line),
                "column": place.map(|place| place.column),
                "length": place.map(|place| place.length),
                "help": finding.help,
            })
        })
        .collect();
    json!({
        "ok": compiled.is_some(),
        "findings": findings,
        "routes": compiled.map(|compiled| compiled.program.routes.len()),
        "pools": compiled.map(|compiled| compiled.pools.len()),
    })
}
