//! A table from rows of columns.

use csv::{ByteRecord, ReaderBuilder, Trim};
use hashbrown::HashMap;

use super::Wrong;
use crate::{frozen::Frozen, suggest};

/// Which columns are what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The name of the column that has the keys. The first row has the names then. Without one there
    /// are two columns and no names: key and value.
    pub key: Option<String>,
    /// The name of the column that has the values; without one a value is a map of all columns.
    pub value: Option<String>,
    /// What stands between columns, a comma unless given.
    pub separator: u8,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            key: None,
            value: None,
            separator: b',',
        }
    }
}

/// What a row is read by.
struct Layout {
    names: Vec<String>,
    key: usize,
    value: Option<usize>,
}

pub(super) fn read(text: &[u8], columns: &Columns) -> Result<HashMap<String, Frozen>, Wrong> {
    // The reader takes all that follows for a part of the cell.
    if memchr::memchr_iter(b'"', text).count() % 2 == 1 {
        return Err(Wrong::new(
            None,
            "a `\"` is not closed; one inside a cell is written `\"\"`",
        ));
    }
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        // Rows of another length are found here, and shown with their line.
        .flexible(true)
        .trim(Trim::All)
        .delimiter(columns.separator)
        .from_reader(text);
    let mut row = ByteRecord::new();
    let mut layout = None;
    let mut entries = HashMap::new();
    let mut lines: HashMap<String, u64> = HashMap::new();
    loop {
        let more = reader.read_byte_record(&mut row);
        if !more.map_err(|error| Wrong::new(None, error.to_string()))? {
            return Ok(entries);
        }
        let line = line_of(text, &row);
        let cells = cells(&row, line)?;
        let layout = match &layout {
            Some(layout) => layout,
            None => {
                let first = Layout::of(&cells, columns, line)?;
                let has_names = columns.key.is_some();
                let layout = layout.insert(first);
                if has_names {
                    continue;
                }
                layout
            }
        };
        let (key, value) = layout.entry(&cells, line)?;
        if let Some(&first) = lines.get(key) {
            return Err(Wrong::twice(line, key, first));
        }
        lines.insert(key.to_owned(), line);
        entries.insert(key.to_owned(), value);
    }
}

/// The line in which a row begins. The reader's own count is where it looked for the row, empty lines
/// before it included.
fn line_of(text: &[u8], row: &ByteRecord) -> u64 {
    let Some(place) = row.position() else {
        return 1;
    };
    let from = usize::try_from(place.byte()).unwrap_or(usize::MAX);
    let rest = text.get(from..).unwrap_or_default();
    let empty = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    let empty = empty.filter(|&&byte| byte == b'\n').count();
    place.line() + empty as u64
}

fn cells(row: &ByteRecord, line: u64) -> Result<Vec<&str>, Wrong> {
    let cells = row.iter().map(std::str::from_utf8);
    cells
        .collect::<Result<_, _>>()
        .map_err(|_| Wrong::new(line, "the row is no UTF-8"))
}

impl Layout {
    fn of(first: &[&str], columns: &Columns, line: u64) -> Result<Self, Wrong> {
        let Some(key) = &columns.key else {
            if first.len() == 2 {
                return Ok(Self {
                    names: vec!["key".to_owned(), "value".to_owned()],
                    key: 0,
                    value: Some(1),
                });
            }
            let message = format!(
                "a table of two columns, key and value, has none of {}; with names in the first row say \
                 which one has the keys: #{{ key: \"..\" }}",
                first.len()
            );
            return Err(Wrong::new(line, message));
        };
        for (index, name) in first.iter().enumerate() {
            if first[..index].contains(name) {
                return Err(Wrong::new(line, format!("two columns are called `{name}`")));
            }
        }
        let find = |name: &str| {
            let found = first.iter().position(|known| *known == name);
            found.ok_or_else(|| {
                let hint = suggest::hint(name, first.iter().copied());
                Wrong::new(line, format!("there is no column `{name}` ({hint})"))
            })
        };
        Ok(Self {
            key: find(key)?,
            value: columns.value.as_deref().map(find).transpose()?,
            names: first.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    fn entry<'r>(&self, cells: &[&'r str], line: u64) -> Result<(&'r str, Frozen), Wrong> {
        if cells.len() != self.names.len() {
            let message = format!(
                "the row has {} columns, and must have {}",
                cells.len(),
                self.names.len()
            );
            return Err(Wrong::new(line, message));
        }
        let key = cells[self.key];
        if key.is_empty() {
            return Err(Wrong::new(line, "the row has no key"));
        }
        let text = |cell: &str| Frozen::Text(cell.into());
        let value = match self.value {
            Some(value) => text(cells[value]),
            None => {
                let mut columns: Vec<(String, Frozen)> = self
                    .names
                    .iter()
                    .zip(cells)
                    .map(|(name, cell)| (name.clone(), text(cell)))
                    .collect();
                columns.sort_by(|a, b| a.0.cmp(&b.0));
                Frozen::Map(columns)
            }
        };
        Ok((key, value))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Table;
    use super::*;

    fn named(key: &str, value: Option<&str>) -> Columns {
        Columns {
            key: Some(key.to_owned()),
            value: value.map(str::to_owned),
            ..Columns::default()
        }
    }

    fn text(text: &str) -> Frozen {
        Frozen::Text(text.into())
    }

    fn wrong(csv: &str, columns: &Columns) -> String {
        let wrong = Table::from_csv(csv.as_bytes(), columns).unwrap_err();
        wrong.of("t.csv").to_string()
    }

    #[test]
    fn two_columns_are_key_and_value() {
        let csv = "\u{feff}acme, web\r\n\"glo,be\",\"a \"\"b\"\"\"\r\n\r\nlast,";
        let table = Table::from_csv(csv.as_bytes(), &Columns::default()).unwrap();
        assert_eq!(table.get("acme"), Some(&text("web")));
        assert_eq!(table.get("glo,be"), Some(&text("a \"b\"")));
        assert_eq!(table.get("last"), Some(&text("")));
        assert_eq!(table.len(), 3);
        let tabs = Columns {
            separator: b'\t',
            ..Columns::default()
        };
        let table = Table::from_csv(b"a\tb,c\n", &tabs).unwrap();
        assert_eq!(table.get("a"), Some(&text("b,c")));
    }

    #[test]
    fn named_columns_are_maps_or_one_of_them() {
        let csv = "plan,host,pool\ngold,acme.example,web\nfree,globe.example,canary\n";
        let table = Table::from_csv(csv.as_bytes(), &named("host", None)).unwrap();
        let row = [("host", "acme.example"), ("plan", "gold"), ("pool", "web")];
        let row = row.map(|(name, cell)| (name.to_owned(), text(cell)));
        assert_eq!(table.get("acme.example"), Some(&Frozen::Map(row.to_vec())));
        let table = Table::from_csv(csv.as_bytes(), &named("host", Some("pool"))).unwrap();
        assert_eq!(table.get("globe.example"), Some(&text("canary")));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let two = Columns::default();
        assert_eq!(
            wrong("a,1\n\n\nb\n", &two),
            "t.csv:4: the row has 1 columns, and must have 2"
        );
        assert_eq!(
            wrong("a,1\r\nb,\"x\ny\"\r\n\r\na,2\r\n", &two),
            "t.csv:5: the key `a` stands in line 1 already"
        );
        assert_eq!(wrong("a,1\n,2", &two), "t.csv:2: the row has no key");
        assert!(wrong("a,b,c\n", &two).starts_with("t.csv:1: a table of two columns"));
        assert_eq!(
            wrong("\nhots,pool\n", &named("host", None)),
            "t.csv:2: there is no column `host` (did you mean `hots`?)"
        );
        assert_eq!(
            wrong("a,a\n", &named("a", None)),
            "t.csv:1: two columns are called `a`"
        );
        let latin = Table::from_csv(b"a,1\nb,\xe9\n", &two).unwrap_err();
        assert_eq!(
            latin.of("t.csv").to_string(),
            "t.csv:2: the row is no UTF-8"
        );
    }

    #[test]
    fn nothing_is_an_empty_table() {
        assert!(
            Table::from_csv(b"", &Columns::default())
                .unwrap()
                .is_empty()
        );
    }
}
