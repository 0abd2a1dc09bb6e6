//! A body that hooks see piece by piece.
//!
//! What a hook looks for may lie across two pieces. So the end of each piece is kept back and shown
//! again, in front of the next piece. Only text that the hook has left alone may be shown again, or it would be
//! rewritten twice: what is kept back is a common end of the piece and of what the hook has made of
//! it, which the hook also leaves alone when it sees nothing else.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use edgewright_script::{
    engine::Verdict,
    program::{BodyHook, HookId, Later},
};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{
    coding::Decoder,
    response::{BodyFault, Lost},
};
use crate::{
    proxy::{
        context::State,
        hooks::{self, Body, Exchange},
    },
    worker::Handle,
};

/// A body that hooks see piece by piece.
pub(in crate::proxy) struct Streams {
    header: ResponseHeader,
    decoder: Decoder,
    stages: Vec<Stage>,
}

/// One hook, and what it is shown again.
pub(in crate::proxy) struct Stage {
    hook: BodyHook,
    held: Bytes,
}

impl Streams {
    pub(super) fn new(later: &Later, decoder: Decoder, header: ResponseHeader) -> Self {
        let hooks = later.on_response_body.iter();
        let stages = hooks.map(|&hook| Stage::new(hook));
        Self {
            header,
            decoder,
            stages: stages.collect(),
        }
    }

    /// Takes a piece of the body as it came and gives what the client gets of it now.
    pub(super) fn pass(
        &mut self,
        session: &mut Session,
        handle: &Arc<Handle>,
        state: &mut State,
        piece: &[u8],
        end: bool,
    ) -> Result<Bytes, Lost> {
        let fault = |fault| Lost::Fault(BodyFault::from(fault));
        let mut bytes = self.decoder.push(piece).map_err(fault)?;
        if end {
            let rest = self.decoder.finish().map_err(fault)?;
            bytes = joined(bytes, &rest);
        }
        for stage in &mut self.stages {
            let hook = stage.hook.hook;
            let mut run = |bytes: Bytes, is_last: bool| {
                let mut exchange = Exchange {
                    body: Some(Body { bytes, is_last }),
                    ..Exchange::response(session, handle, state, &mut self.header, false)
                };
                piece_of(hook, &mut exchange)
            };
            bytes = stage.pass(&bytes, end, &mut run)?;
        }
        Ok(bytes)
    }
}

/// Runs a hook over a piece.
fn piece_of(hook: HookId, exchange: &mut Exchange<'_>) -> Result<Bytes, Lost> {
    match hooks::run_now::<Verdict>(hook, exchange) {
        Ok(Verdict::Continue) => {}
        Ok(Verdict::Answer(_)) => {
            hooks::misused(
                hook,
                exchange,
                "a hook that gets the body in pieces can't answer: the response has begun",
            );
            return Err(Lost::Told);
        }
        Err(_) => return Err(Lost::Told),
    }
    let body = exchange.body.take();
    Ok(body.map(|body| body.bytes).unwrap_or_default())
}

impl Stage {
    /// Before the first piece.
    pub(in crate::proxy) fn new(hook: BodyHook) -> Self {
        Self {
            hook,
            held: Bytes::new(),
        }
    }

    /// Takes a piece, runs the hook over what it may see of it, and gives what goes on.
    pub(in crate::proxy) fn pass(
        &mut self,
        piece: &Bytes,
        end: bool,
        run: &mut impl FnMut(Bytes, bool) -> Result<Bytes, Lost>,
    ) -> Result<Bytes, Lost> {
        let window = joined(std::mem::take(&mut self.held), piece);
        if end {
            return run(window, true);
        }
        // A character that is cut in two waits for its other part.
        let whole = window.len() - cut_character(&window);
        let seen = window.slice(..whole);
        if seen.is_empty() {
            self.held = window;
            return Ok(Bytes::new());
        }
        let made = run(seen.clone(), false)?;
        let most = self.hook.stream.unwrap_or_default();
        let held = held(&seen, &made, most, run)?;
        self.held = window.slice(whole - held..);
        Ok(made.slice(..made.len() - held))
    }
}

/// How many bytes at the end of `seen` are kept back, of which a hook has made `made`.
fn held(
    seen: &Bytes,
    made: &Bytes,
    most: usize,
    run: &mut impl FnMut(Bytes, bool) -> Result<Bytes, Lost>,
) -> Result<usize, Lost> {
    let common = seen.iter().rev().zip(made.iter().rev());
    let common = common.take_while(|(a, b)| a == b).count();
    let most = at_character(seen, common.min(most));
    if seen == made {
        return Ok(most);
    }
    // New text may end like the old one did. What is kept back must be text that the hook leaves
    // alone: the longest such end.
    let mut stays = |length: usize| {
        let end = seen.slice(seen.len() - length..);
        run(end.clone(), false).map(|made| made == end)
    };
    if most == 0 || stays(most)? {
        return Ok(most);
    }
    let (mut alone, mut changed) = (0, most);
    while alone < changed {
        let middle = at_character(seen, (alone + changed) / 2);
        if middle <= alone {
            break;
        }
        if stays(middle)? {
            alone = middle;
        } else {
            changed = middle;
        }
    }
    Ok(alone)
}

/// `length`, or a little less so that the end of `text` begins with a whole character.
fn at_character(text: &[u8], length: usize) -> usize {
    let start = text.len() - length;
    let continued = text[start..].iter().take(3);
    let continued = continued.take_while(|&&byte| byte & 0xC0 == 0x80).count();
    length - continued
}

/// Bytes at the end of `text` that begin a character of UTF-8 and don't end it.
fn cut_character(text: &[u8]) -> usize {
    for back in 1..=text.len().min(3) {
        let byte = text[text.len() - back];
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if length > back { back } else { 0 };
    }
    0
}

fn joined(first: Bytes, second: &Bytes) -> Bytes {
    if first.is_empty() {
        return second.clone();
    }
    if second.is_empty() {
        return first;
    }
    let mut both = BytesMut::with_capacity(first.len() + second.len());
    both.extend_from_slice(&first);
    both.extend_from_slice(second);
    both.freeze()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use edgewright_script::program::HookId;

    /// A body in pieces through a hook that replaces `from` with `to`.
    fn replaced(pieces: &[&str], from: &str, to: &str, hold: usize) -> String {
        let mut stage = Stage::new(BodyHook {
            hook: HookId::default(),
            stream: Some(hold),
        });
        let mut run = |bytes: Bytes, _: bool| {
            let text = std::str::from_utf8(&bytes).unwrap();
            Ok::<_, Lost>(Bytes::from(text.replace(from, to)))
        };
        let mut all = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let end = index + 1 == pieces.len();
            let passed = stage.pass(&Bytes::copy_from_slice(piece.as_bytes()), end, &mut run);
            all.extend_from_slice(&passed.ok().unwrap());
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn a_match_across_pieces_is_found_once() {
        let pieces = ["This is a will-be-repla", "ced-text, ok"];
        assert_eq!(
            replaced(&pieces, "will-be-replaced-text", "new", 64),
            "This is a new, ok"
        );
        assert_eq!(replaced(&["a", "b", "a", "b"], "ab", "x", 1), "xx");
    }

    #[test]
    fn new_text_that_holds_the_old_is_not_rewritten_again() {
        assert_eq!(
            replaced(&["<a href=", "1><b href=2", ">"], "href=", "data-href=", 64),
            "<a data-href=1><b data-href=2>"
        );
        assert_eq!(
            replaced(&["foo", " foo", "x"], "foo", "foofoo", 64),
            "foofoo foofoox"
        );
    }

    #[test]
    fn characters_are_not_cut() {
        assert_eq!(cut_character("caf\u{e9}".as_bytes()), 0);
        assert_eq!(cut_character(b"caf\xc3"), 1);
        assert_eq!(cut_character(b"\xe2\x82"), 2);
        assert_eq!(cut_character(b"\xf0\x9f\x92"), 3);
        assert_eq!(cut_character(b"\x80\x80\x80\x80"), 0);
        assert_eq!(cut_character(b""), 0);
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            text in "[ab\u{e9}-]{0,40}",
            cuts in prop::collection::vec(0usize..40, 0..6),
            to in "[ab]{0,4}",
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| text.is_char_boundary(cut)).collect();
            cuts.push(0);
            cuts.push(text.len());
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let whole = text.replace("ab-", &to);
            prop_assert_eq!(replaced(&pieces, "ab-", &to, 16), whole);
        }
    }
}
