//! One file of a program, parsed by itself.

use std::collections::HashMap;

use rhai::{AST, ASTNode, Engine, Expr, Position, Stmt, Token};

use super::{
    END_OF_FILE, GLOBAL,
    declarations::Declarations,
    tokens::{self, Tokens},
};
use crate::{diagnostic::Diagnostic, source::Source};

/// Characters of one line: Rhai counts columns in 16 bits.
const MAX_LINE: usize = 65_000;

/// A file with what linking asks for.
#[derive(Debug)]
pub(super) struct ParsedFile {
    /// As messages call it.
    pub(super) name: String,
    pub(super) text: String,
    /// As the parser saw them.
    pub(super) tokens: Tokens,
    pub(super) declarations: Declarations,
    pub(super) imports: Vec<Import>,
    /// The aliases of imports that don't stand at the top level, which is an error of its own.
    pub(super) misplaced_aliases: Vec<String>,
    /// How many arguments each call has, by the place of the function's name.
    calls: HashMap<Position, usize>,
}

/// An `import` at the top level.
#[derive(Debug, Clone)]
pub(super) struct Import {
    /// Where `import` stands.
    pub(super) at: Position,
    pub(super) path: String,
    pub(super) path_at: Position,
    pub(super) alias: Option<String>,
    /// The `;` behind it; `None` at the end of the file.
    pub(super) end: Option<Position>,
}

impl ParsedFile {
    /// Parses a file; an imported one must end by itself, because others stand behind it.
    ///
    /// # Errors
    /// With everything in it that keeps it from being linked.
    pub(super) fn parse(
        engine: &mut Engine,
        name: &str,
        text: String,
        is_imported: bool,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut file = Self {
            name: name.to_owned(),
            text,
            tokens: Vec::new(),
            declarations: Declarations::default(),
            imports: Vec::new(),
            misplaced_aliases: Vec::new(),
            calls: HashMap::new(),
        };
        file.check_lines().map_err(|error| vec![error])?;
        let (parsed, tokens) = if is_imported {
            tokens::record(engine, &format!("{}{END_OF_FILE}", file.text))
        } else {
            tokens::record(engine, &file.text)
        };
        let ast = match parsed {
            Ok(ast) => ast,
            // Without what was put behind it, the error is about the file itself.
            Err(error) => {
                let error = engine.compile(&file.text).err().unwrap_or(error);
                let source = Source::one_file(name, file.text);
                return Err(vec![Diagnostic::from_parse_error(&error, &source)]);
            }
        };
        file.tokens = tokens;
        if is_imported {
            file.take_end().map_err(|error| vec![error])?;
        }
        file.declarations = Declarations::of(&ast);
        file.note_calls(&ast);
        file.find_imports(&ast)?;
        Ok(file)
    }

    /// An error at `at`, which underlines `length` characters.
    pub(super) fn error(
        &self,
        at: Position,
        length: usize,
        message: impl Into<String>,
    ) -> Diagnostic {
        let (line, column) = (at.line().unwrap_or(1), at.position().unwrap_or(1));
        Diagnostic::error(message)
            .at(&self.name, line, column)
            .spanning(length)
    }

    /// Lines of its text; the one behind the last newline counts, though nothing may stand in it.
    pub(super) fn lines(&self) -> usize {
        memchr::memchr_iter(b'\n', self.text.as_bytes()).count() + 1
    }

    pub(super) fn token(&self, index: usize) -> Option<&Token> {
        self.tokens.get(index).map(|(token, _)| token)
    }

    /// The number of arguments of the call of the function whose name stands at `at`.
    pub(super) fn arguments(&self, at: Position) -> Option<usize> {
        self.calls.get(&at).copied()
    }

    /// Whether a word of the text begins with `start`.
    pub(super) fn has_word_with(&self, start: &str) -> bool {
        let text = self.text.as_bytes();
        memchr::memmem::find_iter(text, start).any(|found| {
            let before = found.checked_sub(1).map(|before| text[before]);
            !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    }

    /// The keys of maps in this file that may hold a function.
    pub(super) fn members(&self) -> impl Iterator<Item = &str> {
        tokens::members(&self.tokens)
    }

    fn check_lines(&self) -> Result<(), Diagnostic> {
        for (index, line) in self.text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let found = if line.contains('\r') {
                "a carriage return without a line feed: save the file with ordinary line endings"
                    .to_owned()
            } else if line.len() > MAX_LINE && line.chars().count() > MAX_LINE {
                format!("a line of a program with imports has {MAX_LINE} characters at most")
            } else {
                continue;
            };
            return Err(Diagnostic::error(found).at(&self.name, index + 1, 1));
        }
        Ok(())
    }

    /// Takes away the token that was put behind the file. It is not there when a comment without
    /// an end has swallowed it.
    fn take_end(&mut self) -> Result<(), Diagnostic> {
        let line = self.lines() + 1;
        if matches!(self.tokens.last(), Some((Token::SemiColon, at)) if at.line() == Some(line)) {
            self.tokens.pop();
            return Ok(());
        }
        let begin = self.text.rfind("/*").unwrap_or(self.text.len());
        let before = &self.text[..begin];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        Err(Diagnostic::error("this comment has no end")
            .at(&self.name, line, column)
            .spanning("/*".len())
            .help("it ends with `*/`; in a comment, `/*` begins another one"))
    }

    fn note_calls(&mut self, ast: &AST) {
        let calls = &mut self.calls;
        let misplaced = &mut self.misplaced_aliases;
        let at_the_top: Vec<Position> = imports(ast).collect();
        ast.walk(&mut |path: &[ASTNode<'_>]| {
            match path.last() {
                Some(
                    ASTNode::Expr(Expr::FnCall(call, at) | Expr::MethodCall(call, at))
                    | ASTNode::Stmt(Stmt::FnCall(call, at)),
                ) => {
                    calls.insert(*at, call.args.len());
                }
                Some(ASTNode::Stmt(Stmt::Import(import, at))) if !at_the_top.contains(at) => {
                    misplaced.push(import.1.name.to_string());
                }
                _ => {}
            }
            true
        });
    }

    fn find_imports(&mut self, ast: &AST) -> Result<(), Vec<Diagnostic>> {
        let at_the_top: Vec<Position> = imports(ast).collect();
        let mut findings = Vec::new();
        for index in 0..self.tokens.len() {
            let (token, at) = &self.tokens[index];
            if *token == Token::Import && at_the_top.contains(at) {
                match self.import(index) {
                    Ok(import) => self.imports.push(import),
                    Err(error) => findings.push(error),
                }
            }
        }
        if findings.is_empty() {
            return Ok(());
        }
        Err(findings)
    }

    /// The `import` whose first token is the one at `index`.
    fn import(&self, index: usize) -> Result<Import, Diagnostic> {
        let behind = |offset: usize| self.tokens.get(index + offset);
        let at = self.tokens[index].1;
        let Some((Token::StringConstant(path), path_at)) = behind(1) else {
            let at = behind(1).map_or(at, |(_, at)| *at);
            return Err(not_literal(self.error(
                at,
                1,
                "`import` takes a text in quotes",
            )));
        };
        let (alias, end) = match behind(2) {
            Some((Token::As, _)) => (behind(3), behind(4)),
            end => (None, end),
        };
        if let Some((token, at)) = end
            && *token != Token::SemiColon
        {
            return Err(not_literal(self.error(*at, 1, "an `import` ends here")));
        }
        let alias = match alias {
            Some((Token::Identifier(name), at)) => Some(self.alias(name, *at)?),
            _ => None,
        };
        Ok(Import {
            at,
            path: path.to_string(),
            path_at: *path_at,
            alias,
            end: end.map(|(_, at)| *at),
        })
    }

    fn alias(&self, name: &str, at: Position) -> Result<String, Diagnostic> {
        let taken = |import: &Import| import.alias.as_deref() == Some(name);
        let reason = if self.imports.iter().any(taken) {
            format!("another import is already called `{name}`")
        } else if name == GLOBAL {
            format!("`{GLOBAL}` means the file itself")
        } else {
            return Ok(name.to_owned());
        };
        let error = self.error(at, name.chars().count(), reason);
        Err(error.help("choose another name"))
    }
}

fn not_literal(error: Diagnostic) -> Diagnostic {
    error.help("write it as `import \"auth\" as auth;`")
}

/// The places of the imports at the top level.
fn imports(ast: &AST) -> impl Iterator<Item = Position> {
    let statements = ast.statements().iter();
    statements.filter_map(|one| match one {
        Stmt::Import(_, at) => Some(*at),
        _ => None,
    })
}
