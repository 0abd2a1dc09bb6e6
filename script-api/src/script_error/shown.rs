//! What a program says about a failure, as long as a person reads it: it stands in one line of the log,
//! and a program can throw values that nest without end.

use std::fmt::{self, Write as _};

use rhai::Dynamic;

/// Bytes of a message at most; what is longer ends with dots.
const LONGEST: usize = 1024;

/// A value as text. Writing ends where the text is long enough.
pub(super) fn shown(value: &Dynamic) -> String {
    let mut text = Cut(String::new());
    // The error says that it is full.
    let _ = write!(text, "{value}");
    cut(text.0)
}

/// `message` up to its longest.
pub(super) fn cut(mut message: String) -> String {
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or(0));
        message.push_str("..");
    }
    message
}

/// Takes a little more than [`LONGEST`] bytes, so that [`cut`] sees that something is missing.
struct Cut(String);

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = (LONGEST + 4).saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|at| text.is_char_boundary(*at));
        self.0.push_str(&text[..end.unwrap_or(0)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rhai::Array;

    use super::*;

    #[test]
    fn ends_where_it_is_long_enough() {
        assert_eq!(shown(&Dynamic::from("short")), "short");
        let exact = "x".repeat(LONGEST);
        assert_eq!(shown(&Dynamic::from(exact.clone())), exact);
        for long in [
            Dynamic::from("x".repeat(LONGEST + 1)),
            Dynamic::from("\u{10ffff}".repeat(LONGEST)),
            Dynamic::from_array((0..5000).map(Dynamic::from).collect::<Array>()),
        ] {
            let text = shown(&long);
            assert!(text.ends_with("..") && text.len() <= LONGEST + 2, "{text}");
        }
        // 2^40 items, if one wrote them all.
        let nested = (0..40).fold(Dynamic::from(1_i64), |inner, _| {
            let shared = inner.into_shared();
            Dynamic::from_array(vec![shared.clone(), shared])
        });
        assert!(shown(&nested).ends_with(".."));
    }
}
