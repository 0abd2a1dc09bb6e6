//! Rhai's type names in plain words.

/// `i64` and `f64` are numbers, every kind of string is text; other names stay.
pub(super) fn plain_type(name: &str) -> &str {
    match name {
        "i64" | "f64" => "a number",
        "char" => "a character",
        "string" | "&str" | "ImmutableString" | "String" => "text",
        _ if name.contains("ImmutableString") || name.ends_with("::string::String") => "text",
        "bool" => "true or false",
        "()" => "`()`",
        "array" => "an array",
        "map" => "a map",
        "blob" => "a blob",
        "Fn" => "a function",
        other => other.rsplit("::").next().unwrap_or(other),
    }
}

/// The argument types of a signature such as `foo (i64, &str | ImmutableString | String)`.
pub(super) fn plain_arguments(signature: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = signature.split_once('(')?;
    let list = rest.trim_end().strip_suffix(')')?;
    let types = list
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .map(plain_type)
        .collect();
    Some((name.trim(), types))
}
