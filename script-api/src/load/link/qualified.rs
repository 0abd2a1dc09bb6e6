//! `auth::gate`: names of imported files.

use rhai::{Position, Token};

use super::{
    GLOBAL, Program,
    declarations::Seen,
    words::{Blank, Word, Words},
};
use crate::{diagnostic::Diagnostic, suggest::nearest};

/// Finds the imports and the qualified names of the file `number`.
pub(super) fn find(program: &Program<'_>, number: usize, words: &mut Words) {
    let imports = program.file(number).imports.iter();
    let blanks = imports.map(|import| Blank::Import(import.at, import.end));
    words.blanks.extend(blanks);
    let finder = Finder { program, number };
    let file = program.file(number);
    for (index, (token, at)) in file.tokens.iter().enumerate() {
        let found = match token {
            Token::Identifier(root) if file.token(index + 1) == Some(&Token::DoubleColon) => {
                if index > 0 && file.token(index - 1) == Some(&Token::DoubleColon) {
                    continue;
                }
                finder.qualified(index, root, *at, words)
            }
            Token::Reserved(word) if word.as_str() == "Fn" => finder.by_text(index, words),
            _ => continue,
        };
        words.findings.extend(found.err());
    }
}

struct Finder<'p, 'a> {
    program: &'p Program<'a>,
    number: usize,
}

impl Finder<'_, '_> {
    /// The name that begins with `root`, the token at `index`.
    fn qualified(
        &self,
        index: usize,
        root: &str,
        at: Position,
        words: &mut Words,
    ) -> Result<(), Diagnostic> {
        let file = self.program.file(self.number);
        let is_misplaced = file.misplaced_aliases.iter().any(|alias| alias == root);
        if root == GLOBAL || is_misplaced || self.program.natives.has_module(root) {
            return Ok(());
        }
        let Some(target) = self.program.import(self.number, root) else {
            return Err(self.unknown_module(root, at));
        };
        let Some((Token::Identifier(name), name_at)) = file.tokens.get(index + 2) else {
            return Ok(());
        };
        let first = Word {
            text: root.to_owned(),
            at,
        };
        let last = Word {
            text: name.to_string(),
            at: *name_at,
        };
        let length = written(&first, &last);
        if file.token(index + 3) == Some(&Token::DoubleColon) {
            let message = format!("what `{root}` imports itself is not seen here");
            let error = file.error(at, length, message);
            return Err(error.help("import that file here too, under a name of its own"));
        }
        let is_call = matches!(
            file.token(index + 3),
            Some(Token::LeftParen | Token::Unit | Token::Bang)
        );
        let arguments = is_call.then(|| file.arguments(*name_at)).flatten();
        self.check(root, target, name, arguments)
            .map_err(|(message, help)| {
                let mut error = file.error(at, length, message);
                error.help = help;
                error
            })?;
        words.rename(at, self.program.stems.join(target, name), length);
        words.blanks.push(Blank::Behind(first, last));
        Ok(())
    }

    /// `Fn("auth::gate")`.
    fn by_text(&self, index: usize, words: &mut Words) -> Result<(), Diagnostic> {
        let file = self.program.file(self.number);
        let Some((Token::StringConstant(text), at)) = file.tokens.get(index + 2) else {
            return Ok(());
        };
        let Some((alias, name)) = text.split_once("::") else {
            return Ok(());
        };
        // What else it may be is a function that exists nowhere, which is another check's business.
        let Some(target) = self.program.import(self.number, alias) else {
            return Ok(());
        };
        let length = text.chars().count();
        self.check(alias, target, name, None)
            .map_err(|(message, help)| {
                let mut error = file.error(*at, length + "\"\"".len(), message);
                error.help = help;
                error
            })?;
        words.rename(*at, self.program.stems.join(target, name), length);
        Ok(())
    }

    /// Whether this file may use `name` of the file `target`; else what is wrong, and what helps.
    fn check(
        &self,
        alias: &str,
        target: usize,
        name: &str,
        arguments: Option<usize>,
    ) -> Result<(), (String, Option<String>)> {
        let file = self.program.file(target);
        let declarations = &file.declarations;
        match declarations.seen(name, arguments) {
            Seen::Yes => Ok(()),
            Seen::Private => Err((
                format!("`{name}` is private in `{}`", file.name),
                Some("other files see it without the `private`".to_owned()),
            )),
            Seen::Variable => Err((
                format!(
                    "`{name}` is a `let` of `{}`, which other files don't see",
                    file.name
                ),
                Some("make it a `const`".to_owned()),
            )),
            Seen::Nothing => {
                let public = declarations.names();
                let near = nearest(name, public.filter(|name| declarations.is_public(name)));
                Err((
                    format!("there is no `{name}` in `{}`", file.name),
                    near.map(|near| format!("did you mean `{alias}::{near}`?")),
                ))
            }
        }
    }

    fn unknown_module(&self, root: &str, at: Position) -> Diagnostic {
        let file = self.program.file(self.number);
        let aliases = file
            .imports
            .iter()
            .flat_map(|import| import.alias.as_deref());
        let help = match nearest(root, aliases) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("import it at the top level: `import \"{root}\" as {root};`"),
        };
        let error = file.error(at, root.chars().count(), format!("unknown module `{root}`"));
        error.help(help)
    }
}

/// Characters from the beginning of `first` to the end of `last`, if that is in the same line.
fn written(first: &Word, last: &Word) -> usize {
    let length = |word: &Word| word.text.chars().count();
    match (first.at.position(), last.at.position()) {
        (Some(begin), Some(end)) if first.at.line() == last.at.line() && end > begin => {
            end - begin + length(last)
        }
        _ => length(first),
    }
}
