//! Changes of the Cookie header of a request. Other cookies stay byte for byte as they were sent.

/// Whether `pair` is the cookie called `name`, as [`super::cookie_value`] reads it.
fn is_called(pair: &[u8], name: &str) -> bool {
    let Some(end) = memchr::memchr(b'=', pair) else {
        return false;
    };
    pair[..end].trim_ascii() == name.as_bytes()
}

/// The line with the cookies called `name` gone; `None` when it has none, and an empty one when it has
/// no others.
pub fn without(line: &[u8], name: &str) -> Option<Vec<u8>> {
    let pairs = || line.split(|&byte| byte == b';');
    pairs().find(|pair| is_called(pair, name))?;
    let mut kept = Vec::with_capacity(line.len());
    for pair in pairs().filter(|pair| !is_called(pair, name)) {
        if kept.is_empty() {
            // What now comes first has no space before it.
            kept.extend_from_slice(pair.trim_ascii_start());
        } else {
            kept.push(b';');
            kept.extend_from_slice(pair);
        }
    }
    Some(kept)
}

/// The line with the first cookie called `name` having this value and no other of that name; `None` when
/// it has none.
pub fn with(line: &[u8], name: &str, value: &str) -> Option<Vec<u8>> {
    let pairs = || line.split(|&byte| byte == b';');
    pairs().find(|pair| is_called(pair, name))?;
    let mut is_set = false;
    let mut changed = Vec::with_capacity(line.len() + value.len());
    for (index, pair) in pairs().enumerate() {
        let is_it = is_called(pair, name);
        if is_it && is_set {
            continue;
        }
        if index > 0 {
            changed.push(b';');
        }
        if is_it {
            is_set = true;
            if index > 0 {
                changed.push(b' ');
            }
            changed.extend_from_slice(name.as_bytes());
            changed.push(b'=');
            changed.extend_from_slice(value.as_bytes());
        } else {
            changed.extend_from_slice(pair);
        }
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "a=1; session=\"x y\";b = 2 ; a=3; flag; c=\u{e9}";

    fn text(line: Option<Vec<u8>>) -> Option<String> {
        line.map(|line| String::from_utf8_lossy(&line).into_owned())
    }

    #[test]
    fn removing_one_leaves_the_others_as_they_were() {
        let line = |name| text(without(SENT.as_bytes(), name));
        assert_eq!(
            line("a").as_deref(),
            Some("session=\"x y\";b = 2 ; flag; c=\u{e9}")
        );
        assert_eq!(
            line("b").as_deref(),
            Some("a=1; session=\"x y\"; a=3; flag; c=\u{e9}")
        );
        assert_eq!(line("flag"), None);
        assert_eq!(line("x"), None);
        assert_eq!(text(without(b"a=1; a=2", "a")).as_deref(), Some(""));
    }

    #[test]
    fn setting_one_leaves_the_others_as_they_were() {
        let line = |name, value| text(with(SENT.as_bytes(), name, value));
        assert_eq!(
            line("a", "9").as_deref(),
            Some("a=9; session=\"x y\";b = 2 ; flag; c=\u{e9}")
        );
        assert_eq!(
            line("b", "").as_deref(),
            Some("a=1; session=\"x y\"; b=; a=3; flag; c=\u{e9}")
        );
        assert_eq!(line("new", "1"), None);
    }
}
