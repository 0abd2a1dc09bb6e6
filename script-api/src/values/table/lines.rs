//! A table that is a set of lines.

use hashbrown::HashMap;

use super::Wrong;
use crate::frozen::Frozen;

pub(super) fn read(text: &[u8]) -> Result<HashMap<String, Frozen>, Wrong> {
    let mut entries = HashMap::new();
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let line = std::str::from_utf8(line)
            .map_err(|_| Wrong::new(number, "the line is no UTF-8"))?
            .trim();
        if !line.is_empty() && !line.starts_with('#') {
            entries.insert(line.to_owned(), Frozen::Bool(true));
        }
    }
    Ok(entries)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Table;
    use super::*;

    #[test]
    fn keeps_lines_and_drops_comments() {
        let text = "\u{feff}# blocked\n10.0.0.1\r\n\n  # more\n bad agent \n10.0.0.1";
        let table = Table::from_lines(text.as_bytes()).unwrap();
        assert_eq!(table.len(), 2);
        assert_eq!(table.get("10.0.0.1"), Some(&Frozen::Bool(true)));
        assert!(table.contains("bad agent") && !table.contains("# blocked"));
        assert!(Table::from_lines(b"").unwrap().is_empty());
        let wrong = Table::from_lines(b"a\n\xff").unwrap_err();
        assert_eq!(
            wrong.of("b.txt").to_string(),
            "b.txt:2: the line is no UTF-8"
        );
    }
}
