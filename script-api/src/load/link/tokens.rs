//! The tokens of a file as the parser is given them: what stands between the braces of an
//! interpolation is code, what stands around it is text.

use std::{cell::RefCell, rc::Rc};

use rhai::{AST, Engine, ParseError, Position, Token};

pub(super) type Tokens = Vec<(Token, Position)>;

/// Compiles `text`, and gives the tokens that the parser was given.
pub(super) fn record(engine: &mut Engine, text: &str) -> (Result<AST, ParseError>, Tokens) {
    let seen = Rc::new(RefCell::new(Tokens::new()));
    let shared = seen.clone();
    #[allow(deprecated)] // Marked so because it may change, not because it will go.
    engine.on_parse_token(move |token, at, _| {
        shared.borrow_mut().push((token.clone(), at));
        token
    });
    let parsed = engine.compile(text);
    let tokens = std::mem::take(&mut *seen.borrow_mut());
    (parsed, tokens)
}

/// The keys of maps that may hold a function.
pub(super) fn members(tokens: &[(Token, Position)]) -> impl Iterator<Item = &str> {
    tokens.windows(4).filter_map(member)
}

/// The key that four tokens give to something which may be a function.
fn member(tokens: &[(Token, Position)]) -> Option<&str> {
    let [(first, _), (second, _), (third, _), (fourth, _)] = tokens else {
        return None;
    };
    let is_literal = matches!(
        third,
        Token::IntegerConstant(_)
            | Token::FloatConstant(_)
            | Token::CharConstant(_)
            | Token::StringConstant(_)
            | Token::True
            | Token::False
    ) && matches!(fourth, Token::Comma | Token::RightBrace);
    match (first, second, third, fourth) {
        // `key: value`
        (Token::Identifier(key) | Token::StringConstant(key), Token::Colon, ..) if !is_literal => {
            Some(key)
        }
        // `.key = value` and `["key"] = value`
        (Token::Period, Token::Identifier(key), Token::Equals, _)
        | (Token::LeftBracket, Token::StringConstant(key), Token::RightBracket, Token::Equals) => {
            Some(key)
        }
        _ => None,
    }
}
