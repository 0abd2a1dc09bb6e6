//! The text of a program, and where each part of it comes from.
//!
//! A program may be several files. They are linked to one text ([`crate::load`]), the imported
//! ones first, so that everything behind the parser has one program with one tree, and places in
//! it are told apart by their lines. The names at the top level of an imported file get a stem in
//! front of them (`auth__gate`), which no message ever shows.

mod names;
mod renames;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use hashbrown::HashMap;
use rhai::{AST, Engine, Position};

use crate::diagnostic::{Diagnostic, Place};

pub(crate) use names::Stems;
pub(crate) use renames::{Rename, Renames};

/// The text of a program with the files that it is made of.
#[derive(Debug, Clone, Default)]
pub struct Source {
    text: String,
    /// In the order of their lines; the program's own file comes last.
    files: Vec<SourceFile>,
    stems: Stems,
    renames: Arc<Renames>,
}

/// One file of a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceFile {
    /// As the configuration or an `import` names it.
    pub(crate) name: String,
    /// Its first line in the text of the program, from 1.
    pub(crate) first_line: usize,
    /// The files that it imports under a name: the name, and the number of the file.
    pub(crate) aliases: Vec<(String, usize)>,
    /// The names at its top level, and whether files that import it may use them.
    pub(crate) declared: HashMap<String, bool>,
}

impl Source {
    /// A program of one file.
    pub fn one_file(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            files: vec![SourceFile {
                name: name.into(),
                first_line: 1,
                ..SourceFile::default()
            }],
            ..Self::default()
        }
    }

    /// A program of several files, whose `text` holds one behind the other. `renames` are the
    /// words of it that mean something else than they say.
    pub(crate) fn linked(
        text: String,
        files: Vec<SourceFile>,
        stems: Stems,
        renames: Renames,
    ) -> Self {
        Self {
            text,
            files,
            stems,
            renames: Arc::new(renames),
        }
    }

    /// The text as it is compiled; names in it may mean something else than they say.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the program's own file.
    pub fn main_file(&self) -> &str {
        self.files.last().map_or("", |file| &file.name)
    }

    /// Compiles the text as it is meant. `engine` must compile nothing else afterwards.
    ///
    /// # Errors
    /// With the parser's, and when a word that means something else isn't where it should be.
    pub(crate) fn compile(&self, engine: &mut Engine) -> Result<AST, Diagnostic> {
        let applied =
            (!self.renames.is_empty()).then(|| renames::install(engine, self.renames.clone()));
        let ast = engine
            .compile(&self.text)
            .map_err(|error| Diagnostic::from_parse_error(&error, self))?;
        // A word that kept its own meaning could be another file's gate.
        match applied {
            Some(applied) if applied.get() != self.renames.len() => {
                Err(Diagnostic::error("the files can't be put together"))
            }
            _ => Ok(ast),
        }
    }

    /// Where `at` is, and `length` characters from there; `None` when it is no place.
    pub(crate) fn place(&self, at: Position, length: usize) -> Option<Place> {
        let line = at.line()?;
        let file = self.file_at(line);
        Some(Place {
            file: file.map_or_else(String::new, |file| file.name.clone()),
            line: line - file.map_or(0, |file| file.first_line - 1),
            column: at.position().unwrap_or(1),
            length: self.renames.written_length(at, length).max(1),
        })
    }

    /// Like [`Source::place`]; the beginning of the program when `at` is no place.
    pub(crate) fn place_or_start(&self, at: Position) -> Place {
        self.place(at, 1).unwrap_or_else(|| Place {
            file: self.main_file().to_owned(),
            line: 1,
            column: 1,
            length: 1,
        })
    }

    /// `text` with names as the file `reader` writes them: `gate` in their own file, `auth::gate`
    /// where that is imported as `auth`.
    pub(crate) fn readable<'t>(&self, text: &'t str, reader: &str) -> Cow<'t, str> {
        self.stems.replace(text, |owner, name| {
            let reader = self.files.iter().find(|file| file.name == reader);
            let alias = reader.and_then(|file| file.alias_of(owner));
            match alias {
                _ if reader.is_some_and(|file| file.name == self.files[owner].name) => {
                    name.to_owned()
                }
                Some(alias) => format!("{alias}::{name}"),
                None => format!("{}::{name}", self.stems.stem(owner)),
            }
        })
    }

    /// Makes what `finding` says readable where it says it.
    pub(crate) fn make_readable(&self, finding: &mut Diagnostic) {
        if self.stems.is_empty() {
            return;
        }
        let reader = finding.place.as_ref();
        let reader = reader.map_or_else(|| self.main_file().to_owned(), |place| place.file.clone());
        finding.message = self.readable(&finding.message, &reader).into_owned();
        if let Some(help) = &mut finding.help {
            *help = self.readable(help, &reader).into_owned();
        }
    }

    /// The name `name` of the program as its own file writes it.
    pub(crate) fn own_name<'n>(&self, name: &'n str) -> &'n str {
        self.stems.split(name).map_or(name, |(_, own)| own)
    }

    /// The name `name` of the program, as it stays when other files come and go: `LIMIT`,
    /// `lib/auth::LIMIT`.
    pub(crate) fn lasting_name(&self, name: &str) -> String {
        match self.stems.split(name) {
            Some((file, own)) => {
                let file = &self.files[file].name;
                format!("{}::{own}", file.strip_suffix(".rhai").unwrap_or(file))
            }
            None => name.to_owned(),
        }
    }

    /// How the name `name` of the program is written at `at`; `None` where it can't be used. A
    /// native or a local variable is called the same everywhere.
    pub(crate) fn name_at<'n>(&self, name: &'n str, at: Position) -> Option<Cow<'n, str>> {
        let (owner, own) = match self.stems.split(name) {
            Some(found) => found,
            None => (self.files.len().checked_sub(1)?, name),
        };
        let here = at.line().and_then(|line| self.number_at(line));
        let public = self.files[owner].declared.get(own);
        match (here, public) {
            (Some(here), Some(public)) if here != owner => {
                let alias = self.files[here].alias_of(owner).filter(|_| *public)?;
                Some(Cow::Owned(format!("{alias}::{own}")))
            }
            _ => Some(Cow::Borrowed(own)),
        }
    }

    fn number_at(&self, line: usize) -> Option<usize> {
        self.files
            .partition_point(|file| file.first_line <= line)
            .checked_sub(1)
    }

    fn file_at(&self, line: usize) -> Option<&SourceFile> {
        self.number_at(line).map(|number| &self.files[number])
    }
}

impl SourceFile {
    fn alias_of(&self, file: usize) -> Option<&str> {
        let found = self.aliases.iter().find(|(_, number)| *number == file);
        found.map(|(alias, _)| alias.as_str())
    }
}
