//! Words of a program's text that the parser is given as something else.

use std::{cell::Cell, rc::Rc, sync::Arc};

use hashbrown::HashMap;
use rhai::{Engine, Position, Token};

/// What a word means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rename {
    /// The name in the program.
    pub(crate) name: String,
    /// Characters that are written for it in the file.
    pub(crate) written: usize,
}

/// The words that mean something else, by their places: names, and texts that name a function.
#[derive(Debug, Default)]
pub(crate) struct Renames(HashMap<Position, Rename>);

impl Renames {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn insert(&mut self, at: Position, rename: Rename) {
        self.0.insert(at, rename);
    }

    /// How long what stands at `at` is in the file, if it is as long as a name in the program (or
    /// as one in quotes).
    pub(super) fn written_length(&self, at: Position, length: usize) -> usize {
        match self.0.get(&at) {
            Some(Rename { name, written }) if length == name.len() => *written,
            Some(Rename { name, written }) if length == name.len() + "\"\"".len() => {
                written + "\"\"".len()
            }
            _ => length,
        }
    }

    /// The token that is meant by the one at `at`, if that is another one.
    fn meant(&self, token: &Token, at: Position) -> Option<Token> {
        let name = || Some(Box::new(self.0.get(&at)?.name.as_str().into()));
        match token {
            Token::Identifier(_) => name().map(Token::Identifier),
            Token::StringConstant(_) => name().map(Token::StringConstant),
            _ => None,
        }
    }
}

/// Makes `engine` read the words of a program as `renames` says, and count those that it has read
/// so. Nothing else may be compiled with it.
pub(super) fn install(engine: &mut Engine, renames: Arc<Renames>) -> Rc<Cell<usize>> {
    let applied = Rc::new(Cell::new(0));
    let count = applied.clone();
    #[allow(deprecated)] // Marked so because it may change, not because it will go.
    engine.on_parse_token(move |token, at, _| match renames.meant(&token, at) {
        Some(meant) => {
            count.set(count.get() + 1);
            meant
        }
        None => token,
    });
    applied
}
