//! Cookies: reading, and changes that leave the others alone.

use crate::{
    cookie,
    program::Stamps,
    request::{cookie_value, cookies as editing, header_text},
};

/// The input is a name, a value and a Cookie header, a line each.
pub fn cookies(input: &[u8]) {
    let mut parts = input.splitn(3, |&byte| byte == b'\n');
    let mut part = || parts.next().unwrap_or_default();
    let (name, value, line) = (part(), part(), part());
    let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) else {
        return;
    };
    // Nothing else comes as a header.
    if http::HeaderValue::from_bytes(line).is_err() {
        return;
    }
    if let Some(stamps) = Stamps::parse(value) {
        assert_eq!(stamps.to_string(), value, "two cookies say the same");
    }
    let of = |line: &[u8]| cookie_value(&header_text(line), name).map(ToOwned::to_owned);
    let before = of(line);
    let without = editing::without(line, name);
    let with = editing::with(line, name, value);
    assert_eq!(without.is_some(), with.is_some());
    if let Some(without) = &without {
        assert_eq!(of(without), None, "it is still there");
        assert_eq!(others(without, name), others(line, name));
    }
    let attributes = cookie::Attributes::default();
    let Ok(set) = cookie::line(name, value, &attributes) else {
        return;
    };
    assert!(cookie::sets(set.as_bytes(), name));
    assert!(
        set.bytes().all(|byte| (0x20..0x7f).contains(&byte)),
        "{set}"
    );
    assert_eq!(set.matches(';').count(), 3, "{set}");
    assert_eq!(before.is_some(), without.is_some(), "read and not removed");
    if let Some(with) = &with {
        assert_eq!(of(with).as_deref(), Some(value));
        assert_eq!(others(with, name), others(line, name));
        let again = editing::with(with, name, value);
        assert_eq!(again.as_ref(), Some(with).filter(|_| again.is_some()));
        let gone = editing::without(with, name);
        assert_eq!(
            gone.map(|line| others(&line, name)),
            Some(others(line, name))
        );
    }
}

/// The other cookies as they stand there; the first one's place in the line is no part of it.
fn others(line: &[u8], name: &str) -> Vec<Vec<u8>> {
    let pairs = line.split(|&byte| byte == b';').filter(|pair| {
        let end = pair.iter().position(|&byte| byte == b'=');
        end.is_none_or(|end| pair[..end].trim_ascii() != name.as_bytes())
    });
    let mut pairs: Vec<Vec<u8>> = pairs.map(<[u8]>::to_vec).collect();
    // Nothing between two `;` is no cookie, and may go.
    pairs.retain(|pair| !pair.trim_ascii().is_empty());
    if let Some(first) = pairs.first_mut() {
        *first = first.trim_ascii_start().to_vec();
    }
    pairs
}
