//! The metrics of a program, as its calls of `metric` say them: `metric("logins", #{ plan: p }).inc()`.
//! Names, kinds and labels are written out, so all of them are known at load.

use std::collections::{BTreeMap, HashSet};

use rhai::{Expr, FnCallExpr, ImmutableString, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;
use crate::state::metric::{MOST_LABELS, MOST_METRICS, MetricKind, MetricRule};

const METRIC: &str = "metric";

/// Characters of the longest name, of a metric or of a label.
const LONGEST_NAME: usize = 64;

/// What a histogram adds to its name.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

pub(super) struct Metrics<'a> {
    program: &'a Program<'a>,
    /// By their names.
    declared: BTreeMap<ImmutableString, Declared>,
    /// Where the calls stand on which a method is called.
    chained: HashSet<Position>,
}

struct Declared {
    rule: MetricRule,
    /// The first call.
    at: Position,
}

impl<'a> Metrics<'a> {
    pub(super) fn new(program: &'a Program<'a>) -> Self {
        Self {
            program,
            declared: BTreeMap::new(),
            chained: HashSet::new(),
        }
    }

    /// What the walk has found.
    pub(super) fn finish(self, findings: &mut Findings) -> Vec<MetricRule> {
        let histograms = self.declared.values();
        let histograms = histograms.filter(|one| one.rule.kind == MetricKind::Histogram);
        for histogram in histograms {
            for suffix in SUFFIXES {
                let name = format!("{}{suffix}", histogram.rule.name);
                if let Some(other) = self.declared.get(name.as_str()) {
                    let message = format!(
                        "the histogram `{}` has `{name}` of its own: call this metric otherwise",
                        histogram.rule.name
                    );
                    findings.error(other.at, METRIC.len(), message, None);
                }
            }
        }
        let rules = self.declared.into_values().map(|declared| declared.rule);
        rules.collect()
    }

    fn is_metric(&self, call: &FnCallExpr) -> bool {
        call.name == METRIC && !call.is_qualified() && !self.program.has_function(METRIC)
    }

    /// `metric(..)` with the method that is called on it.
    fn used(
        &mut self,
        call: &FnCallExpr,
        at: Position,
        method: (&str, Position),
        findings: &mut Findings,
    ) {
        self.chained.insert(at);
        let (method, method_at) = method;
        let methods = MetricKind::METHODS.iter();
        let Some((_, kind)) = methods.clone().find(|(name, _)| *name == method) else {
            let known: Vec<_> = methods.map(|(name, _)| format!("`.{name}(..)`")).collect();
            let message = format!("a metric has no method `{method}`");
            let help = format!("it has {}", known.join(", "));
            findings.error(method_at, method.chars().count(), message, Some(help));
            return;
        };
        let (name, labels) = match call.args.as_slice() {
            [name] => (name, None),
            [name, labels] => (name, Some(labels)),
            // How many there may be is checked elsewhere.
            _ => return,
        };
        let Some(name) = written_name(name, findings) else {
            return;
        };
        let Some(labels) = written_labels(labels, at, findings) else {
            return;
        };
        self.declare(name, *kind, labels, at, findings);
    }

    fn declare(
        &mut self,
        name: ImmutableString,
        kind: MetricKind,
        labels: Vec<String>,
        at: Position,
        findings: &mut Findings,
    ) {
        if let Some(known) = self.declared.get(&name) {
            let rule = &known.rule;
            let line = known.at.line().unwrap_or_default();
            if rule.kind != kind {
                let message = format!(
                    "the metric `{name}` is a {} in line {line} and can't be a {} here",
                    rule.kind.name(),
                    kind.name(),
                );
                findings.error(at, METRIC.len(), message, None);
            } else if rule.labels != labels {
                let message = format!(
                    "the metric `{name}` has {} in line {line}, and {} here",
                    listed(&rule.labels),
                    listed(&labels),
                );
                let help =
                    "each use of a metric gives the same labels; one that says nothing is `()`";
                findings.error(at, METRIC.len(), message, Some(help.to_owned()));
            }
            return;
        }
        if self.declared.len() >= MOST_METRICS {
            let message = format!("a program has {MOST_METRICS} metrics at the most");
            let help = "tell them apart by a label";
            findings.error(at, METRIC.len(), message, Some(help.to_owned()));
            return;
        }
        let rule = MetricRule {
            name: name.to_string(),
            kind,
            labels,
        };
        self.declared.insert(name, Declared { rule, at });
    }
}

impl<'a> Check<'a> for Metrics<'a> {
    fn call(
        &mut self,
        call: &'a FnCallExpr,
        at: Position,
        _scope: &Scope<'a>,
        findings: &mut Findings,
    ) {
        if self.is_metric(call) && !self.chained.contains(&at) {
            let help = "`metric(\"logins\", #{ plan: plan }).inc()`: so it is known at load what it counts";
            let message = "a metric is used where it is named";
            findings.error(at, METRIC.len(), message, Some(help.to_owned()));
        }
    }

    fn chain(&mut self, chain: &Chain<'a>, _scope: &Scope<'a>, findings: &mut Findings) {
        if let Expr::FnCall(call, at) = chain.root
            && self.is_metric(call)
            && let Some(Link::Method(method, method_at)) = chain.links.first()
        {
            self.used(call, *at, (&method.name, *method_at), findings);
        }
        for link in &chain.links {
            if let Link::Method(call, at) = link
                && self.is_metric(call)
            {
                let message = "`metric` is a function: write `metric(\"name\", #{ .. })`";
                findings.error(*at, METRIC.len(), message, None);
            }
        }
    }
}

fn written_name(name: &Expr, findings: &mut Findings) -> Option<ImmutableString> {
    let Expr::StringConstant(name, at) = name else {
        let message = "the name of a metric is a text in quotes";
        let help = "what differs from call to call is a label: `metric(\"hits\", #{ kind: kind })`";
        findings.error(name.start_position(), 1, message, Some(help.to_owned()));
        return None;
    };
    if !is_name(name) {
        let message = format!("`{name}` can't be the name of a metric");
        let help = format!(
            "a name has a-z, 0-9 and _, begins with none of 0-9, and has {LONGEST_NAME} characters at the most"
        );
        findings.error(*at, name.chars().count() + 2, message, Some(help));
        return None;
    }
    Some(name.clone())
}

/// The names of the labels, in order.
fn written_labels(
    labels: Option<&Expr>,
    at: Position,
    findings: &mut Findings,
) -> Option<Vec<String>> {
    let map = match labels {
        None => return Some(Vec::new()),
        Some(Expr::Map(map, _)) => map,
        // A map of constants may be one itself.
        Some(other) => {
            let message = "the labels of a metric are written out where it is used";
            let help = "`#{ plan: plan, status: res.status }`: so their names are known at load";
            findings.error(other.start_position(), 1, message, Some(help.to_owned()));
            return None;
        }
    };
    let mut names = Vec::new();
    for (key, _) in &map.0 {
        if !is_name(&key.name) || key.name.starts_with("__") || key.name == "le" {
            let message = format!("`{}` can't be the name of a label", key.name);
            let help = "a name has a-z, 0-9 and _; `le` and what begins with `__` are taken";
            let length = key.name.chars().count();
            findings.error(key.pos, length, message, Some(help.to_owned()));
            return None;
        }
        names.push(key.name.to_string());
    }
    if names.len() > MOST_LABELS {
        let message = format!("a metric has {MOST_LABELS} labels at the most");
        findings.error(at, METRIC.len(), message, None);
        return None;
    }
    names.sort();
    Some(names)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next();
    first.is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.len() <= LONGEST_NAME
}

fn listed(labels: &[String]) -> String {
    if labels.is_empty() {
        "no labels".to_owned()
    } else {
        format!("the labels {}", labels.join(", "))
    }
}
