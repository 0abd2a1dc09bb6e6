//! `log(level, message)`, `log(level, message, fields)`.

use rhai::{Dynamic, Engine, ImmutableString, Map, NativeCallContext};

use super::{
    budget::{self, LOG_LINES, LogRoom},
    current::{self, NativeResult, error},
    json,
};
use crate::{
    diagnostic::Place,
    frozen::described,
    log::{Field, Level, Line, sink_for},
    suggest,
};

/// Bytes of a message, of the name of a field and of its value, and fields of one line.
const MESSAGE: usize = 4096;
const NAME: usize = 64;
const VALUE: usize = 1024;
const FIELDS: usize = 32;

/// Names that every line has.
const OWN_NAMES: [&str; 4] = ["level", "hook", "at", "message"];

pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn(
            "log",
            |ctx: NativeCallContext, level: ImmutableString, message: Dynamic| {
                log(&ctx, &level, &message, &Map::new())
            },
        )
        .register_fn(
            "log",
            |ctx: NativeCallContext, level: ImmutableString, message: Dynamic, fields: Map| {
                log(&ctx, &level, &message, &fields)
            },
        );
}

/// Logs a line. Nothing but a level that doesn't exist makes it fail.
fn log(ctx: &NativeCallContext, level: &str, message: &Dynamic, fields: &Map) -> NativeResult<()> {
    let level = Level::named(level).ok_or_else(|| {
        let hint = suggest::hint(level, Level::ALL.map(Level::name));
        error(format!("there is no level `{}` ({hint})", cut(level, NAME)))
    })?;
    write(ctx, level, |line| {
        line.message = value_text(message, MESSAGE).0;
        let kept = fields.iter().take(FIELDS);
        line.fields = kept.map(|(name, value)| field(name, value)).collect();
    });
    Ok(())
}

/// What a native has to say that scripts are not told.
pub(super) fn remark(ctx: &NativeCallContext, remark: impl FnOnce() -> String) {
    write(ctx, Level::Debug, |line| line.message = remark());
}

/// Writes a line, if such lines are wanted and the call may write one more.
fn write(ctx: &NativeCallContext, level: Level, fill: impl FnOnce(&mut Line)) {
    let Some(sink) = sink_for(level) else {
        return;
    };
    let room = budget::take_log_line();
    if room == LogRoom::Over {
        return;
    }
    let at = ctx.call_position();
    let mut line = Line {
        level,
        hook: current::kind(),
        place: Place {
            file: ctx.call_source().unwrap_or_default().to_owned(),
            line: at.line().unwrap_or(1),
            column: at.position().unwrap_or(1),
            length: 1,
        },
        message: String::new(),
        fields: Vec::new(),
    };
    if room == LogRoom::Full {
        line.level = level.max(Level::Warn);
        line.message = format!("more than {LOG_LINES} lines in one call: the others are dropped");
    } else {
        fill(&mut line);
    }
    (sink.write)(&line);
}

fn field(name: &str, value: &Dynamic) -> Field {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let mut name: String = name
        .chars()
        .take(NAME)
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    if name.is_empty() || OWN_NAMES.contains(&name.as_str()) {
        name.push('_');
    }
    let (value, is_plain) = value_text(value, VALUE);
    Field {
        name,
        value,
        is_plain,
    }
}

/// A value as text, and whether it is a number, a bool or `()`.
fn value_text(value: &Dynamic, longest: usize) -> (String, bool) {
    if let Ok(text) = value.as_immutable_string_ref() {
        return (cut(&text, longest), false);
    }
    if value.is_unit() {
        return ("()".to_owned(), true);
    }
    if value.is_int() || value.is_float() || value.is_bool() {
        return (value.to_string(), true);
    }
    if value.is_char() {
        return (value.to_string(), false);
    }
    let json = json::encode_within(value, longest);
    let json = json.ok().and_then(|json| String::from_utf8(json).ok());
    (
        json.unwrap_or_else(|| format!("({})", described(value))),
        false,
    )
}

/// The beginning of a text, with a mark where it was cut.
fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest - "…".len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut kept = text[..end].to_owned();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_and_never_fail() {
        let text = |value: Dynamic| value_text(&value, 10).0;
        assert_eq!(text("short".into()), "short");
        assert_eq!(text("0123456789".into()), "0123456789");
        assert_eq!(text("0123456789a".into()), "0123456…");
        assert_eq!(text("ééééééé".into()), "ééé…");
        assert_eq!(text(vec![Dynamic::from(1_i64)].into()), "[1]");
        assert!(text(vec![Dynamic::from(12_345_i64); 3].into()).contains("array"));
        assert!(text(Dynamic::from_blob(vec![1])).contains("blob"));
    }

    #[test]
    fn names_of_fields_are_safe() {
        let name = |name: &str| field(name, &Dynamic::UNIT).name;
        assert_eq!(name("user.id"), "user.id");
        assert_eq!(name("a b=c\n"), "a_b_c_");
        assert_eq!(name("at"), "at_");
        assert_eq!(name(""), "_");
        assert_eq!(name(&"x".repeat(100)).len(), NAME);
    }
}
