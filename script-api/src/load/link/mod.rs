//! `import`: from the files of a program to one text.
//!
//! Rhai has modules of its own, but their functions can't be handed over by name, don't see the
//! constants beside them, and report no file. So the files are put one behind the other, each
//! after those that it imports, and compiled as one program. What keeps them apart is done to
//! single words while they are parsed ([`crate::source`]): the names of an imported file's top
//! level get its stem in front. In the text only `import` statements and the `::gate` of
//! `auth::gate` are blanked, so that every column stays what it is.
//!
//! Which words these are is decided from the tokens of each file as the parser saw them, so that
//! what stands in a text, a comment or between the braces of an interpolation is taken for what
//! it is.

mod collect;
mod declarations;
mod file;
mod path;
mod qualified;
mod text;
mod tokens;
mod unqualified;
mod words;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use hashbrown::HashMap;
use rhai::{AST, Engine, Position, Stmt};

use super::{Inputs, LoadError};
use crate::{
    diagnostic::Diagnostics,
    lint::Natives,
    source::{Renames, Source, SourceFile, Stems},
};
use collect::Collected;
use file::ParsedFile;
use words::Words;

/// Lines of all files together: Rhai counts lines in 16 bits.
const MAX_LINES: usize = 65_000;

/// The module that Rhai provides by itself: what the file's own top level declares.
const GLOBAL: &str = "global";

/// What stands behind the text of an imported file: it ends its last statement.
const END_OF_FILE: &str = "\n;";

/// Compiles a program with all files that it imports.
///
/// # Errors
/// When a file is missing, lies elsewhere or is wrong, and when a name is used that another file
/// doesn't have or show.
pub(super) fn compile(
    engine: &mut Engine,
    inputs: &Inputs,
    natives: &Natives,
) -> Result<(Source, AST), LoadError> {
    let source = Source::one_file(&inputs.file, &inputs.source);
    let ast = source.compile(engine)?;
    let imports = |one: &Stmt| matches!(one, Stmt::Import(..));
    if !ast.statements().iter().any(imports) {
        return Ok((source, ast));
    }
    let files = collect::collect(engine, inputs)?;
    let source = link(&files, natives)?;
    let ast = source.compile(engine)?;
    Ok((source, ast))
}

/// Makes one text of the files, which come in the order of their lines.
fn link(files: &[Collected], natives: &Natives) -> Result<Source, Diagnostics> {
    let stems = stems(files, natives);
    let program = Program {
        files,
        stems: &stems,
        natives,
        members: files.iter().flat_map(|one| one.file.members()).collect(),
    };
    let mut findings = Vec::new();
    let mut text = String::new();
    let mut line = 1;
    let mut renames = Renames::default();
    let mut parts = Vec::new();
    for (number, Collected { file, targets }) in files.iter().enumerate() {
        let mut words = Words::default();
        qualified::find(&program, number, &mut words);
        if number != program.main() {
            unqualified::find(&program, number, &mut words);
        }
        let blanked = text::blank(file, &words.blanks);
        let Words {
            renames: found,
            findings: wrong,
            ..
        } = words;
        findings.extend(wrong);
        match blanked {
            Ok(blanked) => text.push_str(&blanked),
            Err(error) => findings.push(error),
        }
        parts.push(SourceFile {
            name: file.name.clone(),
            first_line: line,
            aliases: file
                .imports
                .iter()
                .zip(targets)
                .filter_map(|(import, target)| Some((import.alias.clone()?, *target)))
                .collect(),
            declared: program.declared(number),
        });
        for (at, rename) in found {
            renames.insert(moved(at, line), rename);
        }
        if number != program.main() {
            text.push_str(END_OF_FILE);
            text.push('\n');
            line += file.lines() + 1;
        } else {
            line += file.lines();
        }
    }
    if line - 1 > MAX_LINES {
        let import = program.file(program.main()).imports.first();
        let at = import.map_or(Position::NONE, |import| import.at);
        findings.push(program.file(program.main()).error(
            at,
            "import".len(),
            format!("the program and all files it imports have more than {MAX_LINES} lines"),
        ));
    }
    if findings.is_empty() {
        return Ok(Source::linked(text, parts, stems, renames));
    }
    Err(Diagnostics(findings))
}

/// `at` in a file that begins at `first_line`. A line that is too far down stays where it is:
/// then there are too many lines, which is an error of its own.
fn moved(at: Position, first_line: usize) -> Position {
    let line = at.line().map(|line| line + first_line - 1);
    let line = line.and_then(|line| u16::try_from(line).ok());
    let column = at.position().and_then(|column| u16::try_from(column).ok());
    line.map_or(at, |line| Position::new(line, column.unwrap_or(0)))
}

fn stems(files: &[Collected], natives: &Natives) -> Stems {
    let mut stems = Stems::default();
    let imported = files.len() - 1;
    for one in &files[..imported] {
        stems.add(&one.file.name, |start| {
            let mut names = natives.names();
            names.any(|name| name.starts_with(start))
                || files.iter().any(|one| one.file.has_word_with(start))
        });
    }
    stems
}

/// All files, while they are linked.
struct Program<'a> {
    /// The program's own file comes last.
    files: &'a [Collected],
    stems: &'a Stems,
    natives: &'a Natives,
    /// Keys of maps, which may hold functions: `map.key(..)` calls them.
    members: HashSet<&'a str>,
}

impl<'a> Program<'a> {
    fn main(&self) -> usize {
        self.files.len() - 1
    }

    fn file(&self, number: usize) -> &'a ParsedFile {
        &self.files[number].file
    }

    /// The file that `alias` stands for in the file `number`.
    fn import(&self, number: usize, alias: &str) -> Option<usize> {
        let Collected { file, targets } = &self.files[number];
        let mut imports = file.imports.iter().zip(targets);
        let found = imports.find(|(import, _)| import.alias.as_deref() == Some(alias));
        found.map(|(_, target)| *target)
    }

    fn declared(&self, number: usize) -> HashMap<String, bool> {
        let declarations = &self.file(number).declarations;
        let names = declarations.names();
        names
            .map(|name| {
                let public = number != self.main() && declarations.is_public(name);
                (name.to_owned(), public)
            })
            .collect()
    }
}
