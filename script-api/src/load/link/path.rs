//! The names of files in `import`.

const EXTENSION: &str = ".rhai";

/// The name of a file below the configuration's folder, as it is shown and read: `lib/auth.rhai`
/// for `./lib//auth`.
///
/// # Errors
/// When it is none, or leads out of the folder.
pub(super) fn normal(written: &str) -> Result<String, String> {
    let outside = || format!("`{written}` lies outside the configuration's folder");
    if written.starts_with('/') {
        return Err(outside());
    }
    let parts = written.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    if parts.contains(&"..") {
        return Err(outside());
    }
    let mut name = parts.join("/");
    if name.is_empty() || written.ends_with('/') {
        return Err(format!("`{written}` names no file"));
    }
    if !name.ends_with(EXTENSION) {
        name.push_str(EXTENSION);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::normal;

    #[test]
    fn one_name_for_all_spellings() {
        for (written, expected) in [
            ("auth", "auth.rhai"),
            ("auth.rhai", "auth.rhai"),
            ("./lib/.//auth", "lib/auth.rhai"),
            ("auth.v2", "auth.v2.rhai"),
            ("..auth", "..auth.rhai"),
        ] {
            assert_eq!(normal(written).unwrap(), expected, "{written}");
        }
    }

    #[test]
    fn nothing_outside_and_no_folder() {
        for written in [
            "../auth",
            "lib/../auth",
            "/etc/auth",
            "//auth",
            "..",
            "a/..",
        ] {
            let error = normal(written).unwrap_err();
            assert!(error.contains("outside"), "{written}: {error}");
        }
        for written in ["", ".", "lib/", "./"] {
            let error = normal(written).unwrap_err();
            assert!(error.contains("names no file"), "{written}: {error}");
        }
    }
}
