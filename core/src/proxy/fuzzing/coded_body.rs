//! Coded bodies: what is decoded doesn't depend on the pieces that it comes in, is bounded, and ends
//! where the body does.

use std::io::Write as _;

use crate::proxy::bodies::coding::{Coding, Decoder, Fault};

/// Bytes that are taken at a time.
const MOST: usize = 64 * 1024;

const CODINGS: [Coding; 5] = [
    Coding::Identity,
    Coding::Gzip,
    Coding::Deflate,
    Coding::Brotli,
    Coding::Zstd,
];

/// The input is a line and a text. The line has a digit that chooses the coding, a character that is the
/// size of the pieces, and then pairs: a place in the coded text and what is changed there.
pub fn coded_body(input: &[u8]) {
    let mut lines = input.splitn(2, |&byte| byte == b'\n');
    let (line, text) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let &[coding, size, ref changes @ ..] = line else {
        return;
    };
    let coding = CODINGS[usize::from(coding.wrapping_sub(b'0')) % CODINGS.len()];
    let size = usize::from(size).max(1);
    in_pieces(coding, text, size);
    let Some(mut coded) = coded(coding, text) else {
        return;
    };
    assert_eq!(
        decoded(coding, &coded, size).as_deref(),
        Ok(text),
        "{coding:?}"
    );
    let cut = &coded[..coded.len() - 1];
    if !cut.is_empty() {
        let found = decoded(coding, cut, size);
        assert_eq!(
            found,
            Err(Fault::Broken),
            "{coding:?} without its last byte"
        );
    }
    for change in changes.chunks_exact(2) {
        let place = usize::from(change[0]) % coded.len();
        coded[place] ^= change[1];
    }
    in_pieces(coding, &coded, size);
}

/// What is decoded from pieces is what is decoded from the whole.
fn in_pieces(coding: Coding, body: &[u8], size: usize) {
    let whole = decoded(coding, body, body.len().max(1));
    let pieces = decoded(coding, body, size);
    match (&whole, &pieces) {
        // More is taken altogether, a piece at a time.
        (Err(Fault::TooLarge), _) => {}
        // libzstd forgets to compare the length in a frame's header when the last block is empty,
        // unless it gets the frame at once.
        (Err(Fault::Broken), Ok(_)) if coding == Coding::Zstd => {}
        // The library refuses more of what is wrong when it can't read ahead.
        (Ok(_), Err(Fault::Broken)) if coding == Coding::Brotli => {}
        _ => assert_eq!(whole, pieces, "{coding:?} in pieces of {size}"),
    }
}

fn decoded(coding: Coding, body: &[u8], size: usize) -> Result<Vec<u8>, Fault> {
    let mut decoder = Decoder::new(coding, MOST).expect("there is memory for it");
    let mut all = Vec::new();
    for piece in body.chunks(size) {
        let piece = decoder.push(piece)?;
        assert!(piece.len() <= MOST);
        all.extend_from_slice(&piece);
    }
    all.extend_from_slice(&decoder.finish()?);
    Ok(all)
}

fn coded(coding: Coding, text: &[u8]) -> Option<Vec<u8>> {
    let level = flate2::Compression::fast();
    let write = "nothing goes wrong in memory";
    Some(match coding {
        Coding::Identity => return None,
        Coding::Gzip => {
            let mut coder = flate2::write::GzEncoder::new(Vec::new(), level);
            coder.write_all(text).expect(write);
            coder.finish().expect(write)
        }
        Coding::Deflate => {
            let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            coder.write_all(text).expect(write);
            coder.finish().expect(write)
        }
        Coding::Brotli => {
            let mut coded = Vec::new();
            let mut coder = brotli::CompressorWriter::new(&mut coded, 4096, 1, 18);
            coder.write_all(text).expect(write);
            drop(coder);
            coded
        }
        Coding::Zstd => zstd::stream::encode_all(text, 1).expect(write),
    })
}
