//! The names that the top level of an imported file has in the text of the whole program.

use std::borrow::Cow;

/// What stands between the stem of a file and a name of it. No stem holds it.
const SEPARATOR: &str = "__";

/// The stems of the imported files, by the number of the file. Together with a name they make a
/// name that no file writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stems(Vec<String>);

impl Stems {
    /// Adds a stem for the next file, which is called `name`. `is_taken` says of the beginning of
    /// a name whether the program writes such names itself.
    ///
    /// A stem is derived from the name alone where it can be, so that it stays the same when
    /// other files come and go.
    pub(crate) fn add(&mut self, name: &str, is_taken: impl Fn(&str) -> bool) {
        let plain = plain_stem(name);
        let mut stem = plain.clone();
        let mut number = 1;
        while self.0.contains(&stem) || is_taken(&format!("{stem}{SEPARATOR}")) {
            number += 1;
            stem = format!("{plain}_{number}");
        }
        self.0.push(stem);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn stem(&self, file: usize) -> &str {
        &self.0[file]
    }

    /// What `name` of the imported file `file` is called in the program.
    pub(crate) fn join(&self, file: usize, name: &str) -> String {
        format!("{}{SEPARATOR}{name}", self.0[file])
    }

    /// The file of a name of the program, and what it is called there; `None` for a name of the
    /// program's own file.
    pub(super) fn split<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let (stem, own) = name.split_once(SEPARATOR)?;
        let file = self.0.iter().position(|known| known == stem)?;
        Some((file, own))
    }

    /// `text` with every name of an imported file replaced by what `write` makes of the number of
    /// the file and the name in it.
    pub(super) fn replace<'t>(
        &self,
        text: &'t str,
        mut write: impl FnMut(usize, &str) -> String,
    ) -> Cow<'t, str> {
        if self.is_empty() || !text.contains(SEPARATOR) {
            return Cow::Borrowed(text);
        }
        let mut replaced = String::with_capacity(text.len());
        let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            match self.split(word) {
                Some((file, own)) => replaced.push_str(&write(file, own)),
                None => replaced.push_str(word),
            }
            let end = behind.find(is_inside).unwrap_or(behind.len());
            let (between, behind) = behind.split_at(end);
            replaced.push_str(between);
            rest = behind;
        }
        Cow::Owned(replaced)
    }
}

/// `lib_auth` for `lib/auth.rhai`: a letter first, then letters, digits and single underscores.
fn plain_stem(name: &str) -> String {
    let name = name.strip_suffix(".rhai").unwrap_or(name);
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let stem = words.join("_");
    match stem.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => stem,
        _ => format!("m{stem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(names: &[&str]) -> Stems {
        let mut stems = Stems::default();
        for name in names {
            stems.add(name, |_| false);
        }
        stems
    }

    #[test]
    fn stems_are_identifiers_and_differ() {
        let made = stems(&[
            "auth.rhai",
            "lib/auth.rhai",
            "lib-auth.rhai",
            "404.rhai",
            "größe.rhai",
            "_.rhai",
            "a__b.rhai",
        ]);
        assert_eq!(
            made.0,
            ["auth", "lib_auth", "lib_auth_2", "m404", "gr_e", "m", "a_b"]
        );
        for file in 0..made.0.len() {
            assert!(rhai::is_valid_identifier(&made.join(file, "x")));
            assert_eq!(made.split(&made.join(file, "__x")), Some((file, "__x")));
        }
    }

    #[test]
    fn a_stem_avoids_what_the_program_writes() {
        let mut made = Stems::default();
        made.add("auth.rhai", |start| start == "auth__");
        assert_eq!(made.join(0, "gate"), "auth_2__gate");
    }

    #[test]
    fn only_whole_names_are_replaced() {
        let made = stems(&["auth.rhai", "lib/keys.rhai"]);
        let shown = |text| made.replace(text, |file, name| format!("<{file}:{name}>"));
        assert_eq!(
            shown("`auth__gate` (lib_keys__K), xauth__gate, auth_gate, _auth__x é auth__é"),
            "`<0:gate>` (<1:K>), xauth__gate, auth_gate, _auth__x é <0:>é"
        );
        assert!(matches!(shown("nothing"), Cow::Borrowed("nothing")));
    }
}
