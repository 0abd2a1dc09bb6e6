//! Arguments of natives that are written out and wrong: levels, algorithms, options, numbers.

use rhai::{Expr, FnCallExpr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;
use crate::answer::{redirect_status, status_code};
use crate::engine::MOST_RANDOM;
use crate::jwt::{ALGORITHMS, Rules, SIGN, VERIFY};
use crate::log::Level;
use crate::suggest;

pub(super) struct Literals<'a> {
    pub(super) program: &'a Program<'a>,
}

impl Literals<'_> {
    /// A call as a function, or as a method with `before` arguments in front of the dot.
    fn called(&self, call: &FnCallExpr, at: Position, before: usize, findings: &mut Findings) {
        let name = call.name.as_str();
        if call.is_qualified() || self.program.has_function(name) {
            return;
        }
        let argument = |index: usize| call.args.get(index.checked_sub(before)?);
        match name {
            "log" => {
                if let Some(Expr::StringConstant(level, at)) = argument(0)
                    && Level::named(level).is_none()
                {
                    let known = Level::ALL.map(Level::name);
                    unknown("level", level, *at, &known, findings);
                }
            }
            "random_bytes" => {
                if let Some(Expr::IntegerConstant(count, at)) = argument(0)
                    && !(0..=MOST_RANDOM).contains(count)
                {
                    let message = format!("`random_bytes` gives 0 to {MOST_RANDOM} bytes");
                    findings.error(*at, count.to_string().len(), message, None);
                }
            }
            "respond" => status(argument(0), status_code, findings),
            "redirect" => status(argument(0), redirect_status, findings),
            "jwt_verify" => token_options(argument(1), at, &VERIFY, findings),
            "jwt_sign" => token_options(argument(1), at, &SIGN, findings),
            _ => {}
        }
    }
}

impl<'a> Check<'a> for Literals<'a> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        _scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        self.called(call, at, 0, findings);
    }

    fn chain(&mut self, chain: &Chain<'a>, _scope: &Scope<'a>, findings: &mut Findings) {
        for link in &chain.links {
            if let Link::Method(call, at) = link {
                self.called(call, *at, 1, findings);
            }
        }
    }
}

/// A status that is written out.
fn status<T>(given: Option<&Expr>, check: fn(i64) -> Result<T, String>, findings: &mut Findings) {
    if let Some(Expr::IntegerConstant(status, at)) = given
        && let Err(reason) = check(*status)
    {
        findings.error(*at, status.to_string().len(), reason, None);
    }
}

fn token_options(options: Option<&Expr>, at: Position, rules: &Rules, findings: &mut Findings) {
    let Some(Expr::Map(map, _)) = options else {
        return;
    };
    for (key, _) in &map.0 {
        if !rules.options.contains(&key.name.as_str()) {
            let message = format!("`{}` has no option `{}`", rules.function, key.name);
            let help = suggest::hint(&key.name, rules.options.iter().copied());
            findings.error(key.pos, key.name.chars().count(), message, Some(help));
        }
    }
    let has = |name: &str| map.0.iter().any(|(key, _)| key.name == name);
    if let Some(lack) = rules.lacks(has) {
        findings.error(at, rules.function.len(), lack, None);
    }
    let named = map.0.iter().flat_map(|(key, value)| match value {
        Expr::StringConstant(..) if key.name == "algorithm" => std::slice::from_ref(value),
        Expr::Array(names, _) if key.name == "algorithms" => names.as_slice(),
        _ => &[],
    });
    for name in named {
        let Expr::StringConstant(name, at) = name else {
            continue;
        };
        if !ALGORITHMS.contains(&name.as_str()) {
            unknown("algorithm", name, *at, &ALGORITHMS, findings);
        } else if let Some(misfit) = rules.misfit(name, has) {
            // With its quotes.
            findings.error(*at, name.len() + 2, misfit, None);
        }
    }
}

fn unknown(what: &str, name: &str, at: Position, known: &[&str], findings: &mut Findings) {
    let message = format!("there is no {what} `{name}`");
    let help = suggest::hint(name, known.iter().copied());
    // With its quotes.
    findings.error(at, name.chars().count() + 2, message, Some(help));
}
