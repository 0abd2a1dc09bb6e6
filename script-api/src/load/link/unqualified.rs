//! The names of an imported file's own top level, where the file uses them.
//!
//! All words that are a name of the top level are renamed, local variables of that name among
//! them: they then hide what they hid before. What is not a name of the program stays as it is:
//! properties, keys of maps, native functions and methods.
//!
//! The program's own file keeps its names, since it is the one that most programs have. So a word
//! of an imported file that is a name of *that* top level is renamed too, to something that
//! doesn't exist: a file sees what it declares and what it imports, and no more.

use rhai::{Position, Token};

use super::{GLOBAL, Program, declarations::Declarations, file::ParsedFile, words::Words};
use crate::diagnostic::Diagnostic;

/// Finds the words of the imported file `number` that are renamed.
pub(super) fn find(program: &Program<'_>, number: usize, words: &mut Words) {
    let file = program.file(number);
    let finder = Finder {
        program,
        file,
        own: &file.declarations,
        main: &program.file(program.main()).declarations,
    };
    for (index, (token, at)) in file.tokens.iter().enumerate() {
        let found = match token {
            Token::Identifier(name) => finder.word(index, name, *at).map(|renamed| {
                let name: &str = name;
                renamed.then_some((*at, name))
            }),
            Token::Reserved(word) => match word.as_str() {
                "Fn" => finder.function_by_text(index),
                "is_def_fn" => Ok(finder.asked_for(index, Declarations::has_function)),
                "is_def_var" => Ok(finder.asked_for(index, Declarations::has)),
                _ => continue,
            },
            _ => continue,
        };
        match found {
            Ok(Some((at, name))) => {
                words.rename(at, program.stems.join(number, name), name.chars().count());
            }
            Ok(None) => {}
            Err(error) => words.findings.push(error),
        }
    }
}

struct Finder<'p, 'a> {
    program: &'p Program<'a>,
    file: &'a ParsedFile,
    own: &'a Declarations,
    /// Those of the program's own file.
    main: &'a Declarations,
}

impl<'a> Finder<'_, 'a> {
    /// Whether the word at `index` is renamed.
    fn word(&self, index: usize, name: &str, at: Position) -> Result<bool, Diagnostic> {
        if !self.own.has(name) && !self.main.has(name) {
            return Ok(false);
        }
        let before = |offset: usize| {
            let index = index.checked_sub(offset)?;
            self.file.token(index)
        };
        let behind = |offset: usize| self.file.token(index + offset);
        Ok(match (before(1), behind(1)) {
            // A key of a map; the name of a module, whether before `::` or behind `as`.
            (_, Some(Token::Colon | Token::DoubleColon)) | (Some(Token::As), _) => false,
            // `global::NAME` means the file itself; everything else behind `::` is another file's.
            (Some(Token::DoubleColon), _) => matches!(
                before(2),
                Some(Token::Identifier(root)) if root.as_str() == GLOBAL
            ),
            // `fn Type.name(`: first the type, then the name.
            (Some(Token::Fn), Some(Token::Period)) => false,
            (Some(Token::Period), _) if before(3) == Some(&Token::Fn) => true,
            (Some(Token::Fn), _) => true,
            (Some(Token::Period | Token::Elvis), Some(Token::LeftParen | Token::Unit)) => {
                self.method(name, at)?
            }
            (Some(Token::Period | Token::Elvis), _) => false,
            (_, Some(Token::LeftParen | Token::Unit)) => self.call(name, at),
            (_, Some(Token::Bang)) if matches!(behind(2), Some(Token::LeftParen | Token::Unit)) => {
                self.call(name, at)
            }
            _ => true,
        })
    }

    /// Whether `name(..)` calls a function of a file, and not a native.
    fn call(&self, name: &str, at: Position) -> bool {
        let Some(arguments) = self.file.arguments(at) else {
            return true;
        };
        let natives = self.program.natives.arities(name);
        if !self.is_function(name) {
            // A variable can't be called, but a native of its name can.
            return natives.is_none();
        }
        natives.is_none_or(|arities| !arities.contains(&arguments))
    }

    /// The same for `.name(..)`, which may also call what a map holds under that key: that comes
    /// first while the program runs, and is looked for under the name as it is written.
    fn method(&self, name: &str, at: Position) -> Result<bool, Diagnostic> {
        let Some(arguments) = self.file.arguments(at) else {
            return Ok(true);
        };
        let is_member = self.program.members.contains(name);
        let natives = self.program.natives.arities(name);
        // The receiver of a native is one of its arguments.
        if !self.is_function(name) || natives.is_some_and(|all| all.contains(&(arguments + 1))) {
            return Ok(false);
        }
        if is_member && self.own.takes(name, arguments) {
            let message = format!(
                "`{name}` is a function of this file and the key of a map: which one is called \
                 doesn't show"
            );
            let error = self.file.error(at, name.chars().count(), message);
            return Err(error.help("give one of them another name"));
        }
        Ok(!is_member)
    }

    /// Whether a function of this name is declared here, or where this file doesn't see it.
    fn is_function(&self, name: &str) -> bool {
        self.own.has_function(name) || self.main.has_function(name)
    }

    /// The text in `Fn("name")`, which stands at `index`.
    fn function_by_text(&self, index: usize) -> Result<Option<(Position, &'a str)>, Diagnostic> {
        match self.file.tokens.get(index + 1..index + 4) {
            Some(
                [
                    (Token::LeftParen, _),
                    (Token::StringConstant(name), at),
                    (Token::RightParen, _),
                ],
            ) => {
                let name: &str = name;
                Ok(self.is_function(name).then_some((*at, name)))
            }
            _ => {
                let at = self.file.tokens[index].1;
                let message = "in an imported file, `Fn` takes the name of a function in quotes";
                let error = self.file.error(at, "Fn".len(), message);
                Err(error.help("a function can be named without `Fn`: `let f = gate;`"))
            }
        }
    }

    /// The name in `is_def_fn("name", 1)`, `is_def_fn("type", "name", 1)` or `is_def_var("name")`.
    fn asked_for(
        &self,
        index: usize,
        has: fn(&Declarations, &str) -> bool,
    ) -> Option<(Position, &'a str)> {
        let arguments = self.file.tokens.get(index + 2..)?;
        let (name, at) = match arguments {
            [
                (Token::StringConstant(_), _),
                (Token::Comma, _),
                (Token::StringConstant(name), at),
                ..,
            ] => (name, *at),
            [(Token::StringConstant(name), at), ..] => (name, *at),
            _ => return None,
        };
        let name: &str = name;
        (has(self.own, name) || has(self.main, name)).then_some((at, name))
    }
}
