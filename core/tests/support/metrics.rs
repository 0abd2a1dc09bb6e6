//! Reading the Prometheus text format, as much of it as the tests ask for.

/// The sum of the samples called `name` that carry all of `labels`; 0 when there is none.
pub fn value(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    text.lines()
        .filter_map(sample)
        .filter(|sample| sample.name == name)
        .filter(|sample| {
            labels
                .iter()
                .all(|(key, value)| sample.labels.iter().any(|(k, v)| k == key && v == value))
        })
        .fold(0.0, |sum, sample| sum + sample.value)
}

/// Whether any sample called `name` stands there.
pub fn present(text: &str, name: &str) -> bool {
    text.lines().filter_map(sample).any(|s| s.name == name)
}

struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// `name{key="value",..} 1.5`; comments and blank lines give nothing.
fn sample(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' '])?;
    let name = line[..end].to_owned();
    let mut rest = &line[end..];
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((key.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// The text up to the closing quote, its escapes taken away, and what follows the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
