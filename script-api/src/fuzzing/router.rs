//! Patterns, what they capture, and what templates make of it.

use std::ops::ControlFlow;

use super::path::KEEP_ALL;
use crate::{
    path::normalize,
    router::{Captures, PathRouter, Pattern, PatternError, Segment, Template},
};

/// The most patterns of one input.
const PATTERNS: usize = 32;

/// The input is patterns, one a line, an empty line, the path as sent, and in the last line a template.
pub fn router(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (patterns, rest) = text.split_once("\n\n").unwrap_or((text, "/"));
    let (path, template) = rest.split_once('\n').unwrap_or((rest, ""));
    let patterns: Vec<Pattern> = patterns
        .lines()
        .take(PATTERNS)
        .filter_map(|text| read(text, Pattern::parse(text)))
        .collect();
    let Ok(path) = normalize(path.as_bytes(), &KEEP_ALL) else {
        return;
    };
    let mut found = Vec::new();
    let router = PathRouter::build(&patterns);
    router.visit(&path, |routes, captures| {
        for &route in routes {
            found.push((route, texts(captures, &path)));
        }
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(found, one_by_one(&patterns, &path), "{path}");

    let Some((route, _)) = found.first() else {
        return;
    };
    router.visit(&path, |routes, captures| {
        if routes.contains(route) {
            render(&patterns[*route as usize], captures, &path, template);
        }
        ControlFlow::Break(())
    });
}

fn texts(captures: &Captures, path: &str) -> Vec<String> {
    let texts = (0..captures.len()).map(|index| captures.get(path, index));
    texts
        .map(|text| text.expect("a capture lies in the path").to_owned())
        .collect()
}

/// What was read writes itself as it was; what is wrong lies in the text.
fn read<T: ToString>(text: &str, outcome: Result<T, PatternError>) -> Option<T> {
    match outcome {
        Ok(value) => {
            assert_eq!(value.to_string(), text);
            Some(value)
        }
        Err(error) => {
            let place = text.get(error.offset..error.offset + error.length);
            assert!(place.is_some(), "{error:?} does not lie in {text:?}");
            None
        }
    }
}

/// All patterns that fit, compared one after the other, the most specific first.
fn one_by_one(patterns: &[Pattern], path: &str) -> Vec<(u32, Vec<String>)> {
    let segments: Vec<&str> = path[1..].split('/').collect();
    let mut fitting: Vec<(u32, &Pattern, Vec<String>)> = (0..)
        .zip(patterns)
        .filter_map(|(route, pattern)| {
            let captured = captured(pattern.segments(), &segments)?;
            assert_eq!(captured.len(), pattern.names().count());
            Some((route, pattern, captured))
        })
        .collect();
    fitting.sort_by(|a, b| a.1.cmp_specificity(b.1));
    let fitting = fitting.into_iter();
    fitting
        .map(|(route, _, captured)| (route, captured))
        .collect()
}

fn captured(pattern: &[Segment], path: &[&str]) -> Option<Vec<String>> {
    let Some((segment, pattern)) = pattern.split_first() else {
        return path.is_empty().then(Vec::new);
    };
    let (first, behind) = match segment {
        Segment::Rest(_) => return Some(vec![path.join("/")]),
        Segment::Literal(text) => {
            let behind = path.strip_prefix(&[&**text])?;
            return captured(pattern, behind);
        }
        Segment::Param(_) => path.split_first()?,
    };
    let mut all = vec![(!first.is_empty()).then(|| (*first).to_owned())?];
    all.extend(captured(pattern, behind)?);
    Some(all)
}

/// What a client brings adds no query, no parameter and no line.
fn render(pattern: &Pattern, captures: &Captures, path: &str, text: &str) {
    let names: Vec<&str> = pattern.names().collect();
    let Some(template) = read(text, Template::parse(text, &names)) else {
        return;
    };
    let mut target = String::new();
    template.render(path, captures, &mut target);
    assert!(
        target.bytes().all(|byte| byte.is_ascii_graphic()),
        "{target}"
    );
    let count = |text: &str, wanted: char| text.matches(wanted).count();
    for mark in ['?', '#'] {
        assert_eq!(count(&target, mark), count(text, mark), "{target}");
    }
    assert_eq!(template.has_query(), text.contains('?'));
    if let (Some((_, made)), Some((_, written))) = (target.split_once('?'), text.split_once('?')) {
        for mark in ['&', '+', ';', '='] {
            assert_eq!(count(made, mark), count(written, mark), "{target}");
        }
    }
}
