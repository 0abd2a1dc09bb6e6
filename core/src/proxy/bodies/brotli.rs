//! Undoes Brotli (RFC 7932), knowing where the body ends.
//!
//! The library's own writer takes bytes behind the end when they come one by one, and refuses them when they come with the
//! rest; and it allows windows of up to 1 GiB, which RFC 7932 doesn't know.

use std::io::{self, Write};

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};

/// Bytes that are decoded at a time.
const BUFFER: usize = 16 * 1024;

/// Writes what it decodes to `W`.
pub(in crate::proxy) struct Brotli<W> {
    out: W,
    state: BrotliState<HeapAlloc<u8>, HeapAlloc<u32>, HeapAlloc<HuffmanCode>>,
    buffer: Box<[u8]>,
    total: usize,
    has_ended: bool,
}

impl<W: Write> Brotli<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            // Strict: a window of 16 MiB at the most.
            state: BrotliState::new_strict(
                HeapAlloc::new(0),
                HeapAlloc::new(0),
                HeapAlloc::new(HuffmanCode::default()),
            ),
            buffer: vec![0; BUFFER].into(),
            total: 0,
            has_ended: false,
        }
    }

    pub(super) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Takes a piece of the body.
    pub(super) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        let (mut left, mut read) = (piece.len(), 0);
        loop {
            if self.has_ended {
                // A body is one stream, and nothing stands behind it (RFC 7932 section 2).
                return match left {
                    0 => Ok(()),
                    _ => Err(io::ErrorKind::InvalidData.into()),
                };
            }
            let (mut room, mut written) = (self.buffer.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut read,
                piece,
                &mut room,
                &mut written,
                &mut self.buffer,
                &mut self.total,
                &mut self.state,
            );
            self.out.write_all(&self.buffer[..written])?;
            match result {
                BrotliResult::ResultSuccess => self.has_ended = true,
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultFailure => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Says that the body is over.
    pub(super) fn finish(&self) -> io::Result<()> {
        if self.has_ended {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}
