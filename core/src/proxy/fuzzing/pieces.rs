//! A body that hooks see piece by piece ends up as one that they see whole.

use bytes::Bytes;
use edgewright_script::program::{BodyHook, HookId};

use super::line;
use crate::proxy::bodies::{response::Lost, stream::Stage};

/// The input is what is looked for, what stands in its place, digits for the sizes of pieces, and the
/// body, a line each.
pub fn pieces(input: &[u8]) {
    let (from, rest) = line(input);
    let (to, rest) = line(rest);
    let (sizes, body) = line(rest);
    let pass = |hold, hook: &dyn Fn(&[u8]) -> Vec<u8>| passed(body, sizes.as_bytes(), hold, hook);

    for hold in [0, 1, 7, 4096] {
        assert_eq!(pass(hold, &|piece| piece.to_vec()), body, "left alone");
        let upper = |piece: &[u8]| piece.to_ascii_uppercase();
        assert_eq!(pass(hold, &upper), upper(body), "byte by byte");
    }
    let Ok(text) = std::str::from_utf8(body) else {
        return;
    };
    // Where matches may overlap, it depends on where one begins to look.
    if from.is_empty() || overlaps(from) {
        return;
    }
    let replace = |piece: &[u8]| {
        let piece = std::str::from_utf8(piece).expect("characters are not cut");
        piece.replace(from, to).into_bytes()
    };
    let whole = text.replace(from, to).into_bytes();
    for hold in [from.len(), 4096] {
        assert_eq!(
            pass(hold, &replace),
            whole,
            "{from:?} to {to:?}, held {hold}"
        );
    }
}

/// Whether the text can begin before another one of it ends.
fn overlaps(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..bytes.len()).any(|length| bytes.starts_with(&bytes[bytes.len() - length..]))
}

fn passed(body: &[u8], sizes: &[u8], hold: usize, hook: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut stage = Stage::new(BodyHook {
        hook: HookId::default(),
        stream: Some(hold),
    });
    let mut run = |piece: Bytes, _: bool| Ok::<_, Lost>(hook(&piece).into());
    let mut all = Vec::new();
    let mut rest = body;
    for size in sizes {
        let size = usize::from(size.saturating_sub(b'0')).min(rest.len());
        let (piece, behind) = rest.split_at(size);
        rest = behind;
        all.extend_from_slice(&step(&mut stage, piece, false, &mut run));
    }
    all.extend_from_slice(&step(&mut stage, rest, true, &mut run));
    all
}

fn step(
    stage: &mut Stage,
    piece: &[u8],
    end: bool,
    run: &mut impl FnMut(Bytes, bool) -> Result<Bytes, Lost>,
) -> Bytes {
    match stage.pass(&Bytes::copy_from_slice(piece), end, run) {
        Ok(bytes) => bytes,
        Err(_) => panic!("the hook doesn't fail"),
    }
}
