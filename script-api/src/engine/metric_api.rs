//! `metric(name, labels)` with `.inc()`, `.add(n)`, `.set(x)` and `.observe(x)`.

use std::rc::Rc;

use hashbrown::HashMap;
use rhai::{Dynamic, Engine, EvalAltResult, FLOAT, INT, Map};

use super::current::{NativeResult, error};
use crate::{
    frozen::described,
    state::{
        NotBound,
        metric::{LabelValues, Metric},
    },
};

/// A metric with the values of its labels, in the hands of a script.
#[derive(Debug, Clone)]
pub(super) struct Labelled {
    metric: Rc<Metric>,
    values: LabelValues,
}

/// What is done with a metric. Which of these it has was checked when the program was loaded.
pub(super) fn register_methods(engine: &mut Engine) {
    engine
        .register_type_with_name::<Labelled>("Metric")
        .register_fn("inc", |metric: &mut Labelled| metric.add(1.0))
        .register_fn("add", |metric: &mut Labelled, n: INT| {
            metric.add(n as FLOAT)
        })
        .register_fn("add", |metric: &mut Labelled, n: FLOAT| metric.add(n))
        .register_fn("set", |metric: &mut Labelled, x: INT| {
            metric.set(x as FLOAT)
        })
        .register_fn("set", |metric: &mut Labelled, x: FLOAT| metric.set(x))
        .register_fn("observe", |metric: &mut Labelled, x: INT| {
            metric.observe(x as FLOAT)
        })
        .register_fn("observe", |metric: &mut Labelled, x: FLOAT| {
            metric.observe(x)
        });
}

impl Labelled {
    /// One without labels.
    #[cfg(test)]
    pub(super) fn of(metric: Metric) -> Self {
        Self {
            metric: Rc::new(metric),
            values: LabelValues::default(),
        }
    }

    fn add(&self, amount: FLOAT) -> NativeResult<()> {
        if amount < 0.0 {
            return Err(error(format!(
                "`{}` is a counter, which only grows: it can't have {amount} added",
                self.metric.rule().name
            )));
        }
        let amount = self.finite(amount)?;
        self.metric.add(&self.values, amount).map_err(refused)
    }

    fn set(&self, value: FLOAT) -> NativeResult<()> {
        let value = self.finite(value)?;
        self.metric.set(&self.values, value).map_err(refused)
    }

    fn observe(&self, value: FLOAT) -> NativeResult<()> {
        let value = self.finite(value)?;
        self.metric.observe(&self.values, value).map_err(refused)
    }

    /// What is no number would stay in a sum for ever.
    fn finite(&self, value: FLOAT) -> NativeResult<FLOAT> {
        if value.is_finite() {
            return Ok(value);
        }
        Err(error(format!(
            "`{}` can't take {value}",
            self.metric.rule().name
        )))
    }
}

fn refused(not_bound: NotBound) -> Box<EvalAltResult> {
    error(not_bound.to_string())
}

/// `metric(..)` in hooks, for the metrics of a program.
pub(super) fn register(engine: &mut Engine, metrics: &[Metric]) {
    let by_name = metrics.iter().cloned();
    let by_name: HashMap<String, Rc<Metric>> = by_name
        .map(|metric| (metric.rule().name.clone(), Rc::new(metric)))
        .collect();
    let by_name = Rc::new(by_name);
    let known = by_name.clone();
    engine
        .register_fn("metric", move |name: &str| {
            labelled(&known, name, &Map::new())
        })
        .register_fn("metric", move |name: &str, labels: Map| {
            labelled(&by_name, name, &labels)
        });
}

/// For the top level, where there is nothing to count yet.
pub(crate) fn refuse_metrics_while_loading(engine: &mut Engine) {
    fn refused<T>() -> NativeResult<T> {
        Err(error(
            "a metric can only be used in a hook: the top level runs once, before there is anything to count",
        ))
    }
    engine.register_fn("metric", |_: &str| refused::<Labelled>());
    engine.register_fn("metric", |_: &str, _: Map| refused::<Labelled>());
}

fn labelled(
    known: &HashMap<String, Rc<Metric>>,
    name: &str,
    labels: &Map,
) -> NativeResult<Labelled> {
    // Unless it is called in a way that shows nowhere.
    let metric = known
        .get(name)
        .ok_or_else(|| error(format!("the program names no metric `{name}`")))?;
    let rule = metric.rule();
    if labels.len() != rule.labels.len() {
        return Err(error(format!(
            "the labels of the metric `{name}` are {}",
            rule.labels.join(", ")
        )));
    }
    let mut values = LabelValues::default();
    for label in &rule.labels {
        let value = labels
            .get(label.as_str())
            .ok_or_else(|| error(format!("the metric `{name}` has the label `{label}`")))?;
        push(&mut values, name, label, value)?;
    }
    Ok(Labelled {
        metric: metric.clone(),
        values,
    })
}

/// Text, a number or a bool; `()` is a label that says nothing, which is the same as none.
fn push(values: &mut LabelValues, name: &str, label: &str, value: &Dynamic) -> NativeResult<()> {
    if let Ok(text) = value.as_immutable_string_ref() {
        values.push(&text);
    } else if value.is_unit() {
        values.push("");
    } else if value.is_int() || value.is_float() || value.is_bool() || value.is_char() {
        values.push(&value.to_string());
    } else {
        return Err(error(format!(
            "the label `{label}` of the metric `{name}` is text, a number or a bool, not {}",
            described(value)
        )));
    }
    Ok(())
}
