//! Reads and parses the files of a program, each once, in the order in which they run.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use rhai::Engine;

use super::{
    file::{Import, ParsedFile},
    path,
};
use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    load::{Inputs, LoadError},
    values::{FileError, Files, ProgramFile},
};

/// Files that a program may import.
const MAX_FILES: usize = 64;

/// Bytes of an imported file. A ConfigMap holds no more in all.
const MAX_SIZE: usize = 1024 * 1024;

/// A file of the program.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) file: ParsedFile,
    /// The number of the file that each of its imports leads to.
    pub(super) targets: Vec<usize>,
}

/// Reads and parses the program and all that it imports. A file comes behind those that it
/// imports; the program's own file is the last one.
///
/// # Errors
/// With every mistake in the imports of all files, and the first one in each file that can't be
/// parsed.
pub(super) fn collect(engine: &mut Engine, inputs: &Inputs) -> Result<Vec<Collected>, LoadError> {
    let mut collector = Collector {
        engine,
        files: &*inputs.files,
        collected: Vec::new(),
        known: HashMap::new(),
        open: Vec::new(),
        findings: Vec::new(),
    };
    // To tell when a file imports the program itself, which may lie anywhere.
    let path = match inputs.files.read_program(&inputs.file) {
        Ok(file) => file.path,
        Err(FileError::Changed) => return Err(LoadError::Changed),
        Err(_) => PathBuf::from(&inputs.file),
    };
    collector.add(&inputs.file, &path, inputs.source.clone(), false)?;
    if collector.findings.is_empty() {
        return Ok(collector.collected);
    }
    Err(LoadError::Invalid(Diagnostics(collector.findings)))
}

struct Collector<'a> {
    engine: &'a mut Engine,
    files: &'a dyn Files,
    collected: Vec<Collected>,
    /// By where a file really lies.
    known: HashMap<PathBuf, State>,
    /// The files whose imports are being read, the program's own first: where they really lie, and
    /// their names.
    open: Vec<(PathBuf, String)>,
    findings: Vec<Diagnostic>,
}

enum State {
    /// Its imports are being read.
    Open,
    Collected(usize),
    /// What is wrong with it has been said.
    Wrong,
}

impl Collector<'_> {
    /// Parses a file and adds it behind those that it imports. Gives its number, if nothing is
    /// wrong with it.
    fn add(
        &mut self,
        name: &str,
        path: &Path,
        text: String,
        is_imported: bool,
    ) -> Result<Option<usize>, LoadError> {
        let file = match ParsedFile::parse(self.engine, name, text, is_imported) {
            Ok(file) => file,
            Err(findings) => {
                self.findings.extend(findings);
                self.known.insert(path.to_owned(), State::Wrong);
                return Ok(None);
            }
        };
        self.known.insert(path.to_owned(), State::Open);
        self.open.push((path.to_owned(), name.to_owned()));
        let mut targets = Vec::new();
        for import in &file.imports {
            targets.extend(self.import(&file, import)?);
        }
        self.open.pop();
        if targets.len() < file.imports.len() {
            self.known.insert(path.to_owned(), State::Wrong);
            return Ok(None);
        }
        let number = self.collected.len();
        self.known.insert(path.to_owned(), State::Collected(number));
        self.collected.push(Collected { file, targets });
        Ok(Some(number))
    }

    /// The number of the file that `import` in `importer` leads to.
    fn import(
        &mut self,
        importer: &ParsedFile,
        import: &Import,
    ) -> Result<Option<usize>, LoadError> {
        let length = import.path.chars().count() + "\"\"".len();
        let wrong = |message: String| importer.error(import.path_at, length, message);
        let name = match path::normal(&import.path) {
            Ok(name) => name,
            Err(message) => {
                self.findings.push(wrong(message));
                return Ok(None);
            }
        };
        let ProgramFile { content, path } = match self.files.read_program(&name) {
            Ok(found) => found,
            Err(FileError::Changed) => return Err(LoadError::Changed),
            Err(error) => {
                let message = match &error {
                    FileError::Outside(name) => {
                        format!("`{name}` lies outside the configuration's folder")
                    }
                    other => other.to_string(),
                };
                let mut finding = wrong(message);
                if matches!(error, FileError::NotFound(_)) && importer.name.contains('/') {
                    finding = finding.help("paths begin at the configuration's folder");
                }
                self.findings.push(finding);
                return Ok(None);
            }
        };
        match self.known.get(&path) {
            Some(State::Collected(number)) => return Ok(Some(*number)),
            Some(State::Wrong) => return Ok(None),
            Some(State::Open) => {
                self.findings.push(
                    wrong(self.circle(&path))
                        .help("put what both need into a file of its own, which both import"),
                );
                return Ok(None);
            }
            None => {}
        }
        // The program's own file is known too.
        if self.known.len() > MAX_FILES {
            let message = format!("a program imports {MAX_FILES} files at most");
            self.findings.push(wrong(message));
            return Ok(None);
        }
        if content.len() > MAX_SIZE {
            let message = format!("`{name}` is larger than 1 MiB");
            self.findings.push(wrong(message));
            return Ok(None);
        }
        match text_of(content) {
            Ok(text) => self.add(&name, &path, text, true),
            Err(line) => {
                let finding = Diagnostic::error("the file is not UTF-8").at(&name, line, 1);
                self.findings.push(finding);
                self.known.insert(path, State::Wrong);
                Ok(None)
            }
        }
    }

    /// How the file at `path` comes to import itself.
    fn circle(&self, path: &Path) -> String {
        let begin = self.open.iter().position(|(open, _)| open == path);
        let around = &self.open[begin.unwrap_or(0)..];
        let mut names: Vec<String> = around.iter().map(|(_, name)| format!("`{name}`")).collect();
        names.extend(names.first().cloned());
        format!("the imports go in a circle: {}", names.join(" imports "))
    }
}

/// The text of a file, without the byte order mark that some editors begin it with.
///
/// # Errors
/// With the line in which it is not UTF-8.
fn text_of(content: Vec<u8>) -> Result<String, usize> {
    let content = match content.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) => text.to_vec(),
        None => content,
    };
    String::from_utf8(content).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        memchr::memchr_iter(b'\n', valid).count() + 1
    })
}
