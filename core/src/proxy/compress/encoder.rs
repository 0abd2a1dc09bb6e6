//! Codes a body that comes in pieces.

use std::io::{self, Write};

use bytes::Bytes;
use edgewright_script::program::ContentCoding;

/// Levels that a proxy can afford while it serves: a few ten MiB/s and more of each CPU.
const GZIP: u32 = 5;
const BROTLI: u32 = 4;
const ZSTD: i32 = 3;

/// Log of brotli's window: 4 MiB, which every decoder takes.
const BROTLI_WINDOW: u32 = 22;

/// Bytes of brotli's buffer.
const BUFFER: usize = 4096;

/// Codes a body.
pub(super) enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    pub(super) fn new(coding: ContentCoding) -> io::Result<Self> {
        let out = Vec::new();
        Ok(match coding {
            ContentCoding::Gzip => Self::Gzip(flate2::write::GzEncoder::new(
                out,
                flate2::Compression::new(GZIP),
            )),
            ContentCoding::Brotli => Self::Brotli(Box::new(brotli::CompressorWriter::new(
                out,
                BUFFER,
                BROTLI,
                BROTLI_WINDOW,
            ))),
            ContentCoding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, ZSTD)?),
        })
    }

    /// Takes a piece and gives all that the client needs to have it: a stream stays a stream.
    pub(super) fn push(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        let out = match self {
            Self::Gzip(encoder) => {
                encoder.write_all(piece)?;
                encoder.flush()?;
                encoder.get_mut()
            }
            Self::Brotli(encoder) => {
                encoder.write_all(piece)?;
                encoder.flush()?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.write_all(piece)?;
                encoder.flush()?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out).into())
    }

    /// Takes the last piece and gives the rest.
    pub(super) fn finish(self, piece: &[u8]) -> io::Result<Bytes> {
        let out = match self {
            Self::Gzip(mut encoder) => {
                encoder.write_all(piece)?;
                encoder.finish()?
            }
            Self::Brotli(mut encoder) => {
                encoder.write_all(piece)?;
                encoder.into_inner()
            }
            Self::Zstd(mut encoder) => {
                encoder.write_all(piece)?;
                encoder.finish()?
            }
        };
        Ok(out.into())
    }
}
