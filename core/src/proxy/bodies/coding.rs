//! Undoes the content coding of a response (RFC 9110 section 8.4.1), so that hooks see the text.

use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use zstd::stream::raw::DParameter;

use super::brotli::Brotli;

/// Log of the window that a zstd body may ask for: 8 MiB, as for the Web (RFC 9659 section 3).
const ZSTD_WINDOW: u32 = 23;

/// The coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Coding {
    /// None.
    Identity,
    Gzip,
    Brotli,
    Zstd,
    /// Zlib, whatever its name says.
    Deflate,
}

impl Coding {
    /// The coding of a response; `None` when it is one that can't be undone, or several.
    pub(in crate::proxy) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(header::CONTENT_ENCODING).into_iter();
        let Some(line) = lines.next() else {
            return Some(Self::Identity);
        };
        if lines.next().is_some() {
            return None;
        }
        let name = line.to_str().ok()?.trim().to_ascii_lowercase();
        Some(match name.as_str() {
            "" | "identity" => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip,
            "br" => Self::Brotli,
            "zstd" => Self::Zstd,
            "deflate" => Self::Deflate,
            _ => return None,
        })
    }
}

/// What is decoded so far and was not taken yet, up to a bound.
pub(in crate::proxy) struct Out {
    bytes: BytesMut,
    most: usize,
    is_full: bool,
}

impl Write for Out {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.most {
            self.is_full = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a body can't be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Fault {
    /// It would be longer than allowed.
    TooLarge,
    /// It is not what its header says, or ends too early.
    Broken,
}

/// Decodes a body that comes in pieces.
pub(in crate::proxy) enum Decoder {
    Identity(Out),
    Gzip(flate2::write::MultiGzDecoder<Out>),
    Deflate(flate2::write::ZlibDecoder<Out>),
    Brotli(Box<Brotli<Out>>),
    /// Unlike the library's own `write::Decoder`, this one knows whether the last frame was whole.
    Zstd(zstd::stream::zio::Writer<Out, zstd::stream::raw::Decoder<'static>>),
}

impl Decoder {
    /// For a body of which `most` decoded bytes at a time are taken.
    pub(in crate::proxy) fn new(coding: Coding, most: usize) -> io::Result<Self> {
        let out = Out {
            bytes: BytesMut::new(),
            most,
            is_full: false,
        };
        Ok(match coding {
            Coding::Identity => Self::Identity(out),
            Coding::Gzip => Self::Gzip(flate2::write::MultiGzDecoder::new(out)),
            Coding::Deflate => Self::Deflate(flate2::write::ZlibDecoder::new(out)),
            Coding::Brotli => Self::Brotli(Box::new(Brotli::new(out))),
            Coding::Zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW))?;
                Self::Zstd(zstd::stream::zio::Writer::new(out, decoder))
            }
        })
    }

    fn out(&mut self) -> &mut Out {
        match self {
            Self::Identity(out) => out,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.writer_mut(),
        }
    }

    /// Takes a piece of the body as it came, and gives what is decoded by it.
    pub(in crate::proxy) fn push(&mut self, piece: &[u8]) -> Result<Bytes, Fault> {
        let written = match self {
            Self::Identity(out) => out.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Self::Deflate(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
            Self::Brotli(decoder) => decoder.push(piece),
            Self::Zstd(decoder) => decoder.write_all(piece).and_then(|()| decoder.flush()),
        };
        self.taken(written)
    }

    /// Says that the body is over, and gives the rest.
    pub(in crate::proxy) fn finish(&mut self) -> Result<Bytes, Fault> {
        let finished = match self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.finish(),
            Self::Zstd(decoder) => decoder.finish(),
        };
        self.taken(finished)
    }

    fn taken(&mut self, outcome: io::Result<()>) -> Result<Bytes, Fault> {
        let out = self.out();
        if out.is_full {
            return Err(Fault::TooLarge);
        }
        match outcome {
            Ok(()) => Ok(out.bytes.split().freeze()),
            Err(_) => Err(Fault::Broken),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog, again and again and again.";

    fn coded(coding: Coding, text: &[u8]) -> Vec<u8> {
        match coding {
            Coding::Identity => text.to_vec(),
            Coding::Gzip => {
                let mut coder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                coder.write_all(text).unwrap();
                coder.finish().unwrap()
            }
            Coding::Deflate => {
                let mut coder =
                    flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                coder.write_all(text).unwrap();
                coder.finish().unwrap()
            }
            Coding::Brotli => {
                let mut coded = Vec::new();
                brotli::CompressorWriter::new(&mut coded, 4096, 5, 22)
                    .write_all(text)
                    .unwrap();
                coded
            }
            Coding::Zstd => zstd::stream::encode_all(text, 3).unwrap(),
        }
    }

    const CODINGS: [Coding; 5] = [
        Coding::Identity,
        Coding::Gzip,
        Coding::Deflate,
        Coding::Brotli,
        Coding::Zstd,
    ];

    #[test]
    fn decodes_byte_by_byte() {
        for coding in CODINGS {
            let mut decoder = Decoder::new(coding, 1000).unwrap();
            let mut text = Vec::new();
            for byte in coded(coding, TEXT) {
                text.extend_from_slice(&decoder.push(&[byte]).unwrap());
            }
            text.extend_from_slice(&decoder.finish().unwrap());
            assert_eq!(text, TEXT, "{coding:?}");
        }
    }

    #[test]
    fn a_bomb_is_stopped() {
        let zeros = vec![0; 10_000_000];
        for coding in CODINGS {
            let mut decoder = Decoder::new(coding, 100_000).unwrap();
            let bomb = coded(coding, &zeros);
            let pushed = decoder.push(&bomb);
            assert_eq!(pushed.unwrap_err(), Fault::TooLarge, "{coding:?}");
        }
    }

    #[test]
    fn what_is_no_such_coding_is_an_error() {
        for coding in CODINGS.into_iter().skip(1) {
            let mut decoder = Decoder::new(coding, 1000).unwrap();
            let pushed = decoder.push(b"\xff\xffno such coding, whatever the header says");
            let outcome = pushed.and_then(|_| decoder.finish());
            assert_eq!(outcome.unwrap_err(), Fault::Broken, "{coding:?}");
        }
    }

    #[test]
    fn what_ends_too_early_is_an_error() {
        for coding in CODINGS.into_iter().skip(1) {
            let whole = coded(coding, TEXT);
            for length in [1, whole.len() / 2, whole.len() - 1] {
                let mut decoder = Decoder::new(coding, 1000).unwrap();
                let pushed = decoder.push(&whole[..length]);
                let outcome = pushed.and_then(|_| decoder.finish());
                assert_eq!(outcome.unwrap_err(), Fault::Broken, "{coding:?} {length}");
            }
        }
    }

    #[test]
    fn what_follows_the_end_of_a_brotli_body_is_an_error() {
        let mut body = coded(Coding::Brotli, TEXT);
        body.push(b'x');
        for size in [1, body.len() - 1, body.len()] {
            let mut decoder = Decoder::new(Coding::Brotli, 1000).unwrap();
            let outcome = body.chunks(size).try_for_each(|piece| {
                decoder.push(piece)?;
                Ok(())
            });
            assert_eq!(outcome, Err(Fault::Broken), "in pieces of {size}");
        }
    }

    #[test]
    fn knows_codings_by_name() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(
                    header::CONTENT_ENCODING,
                    http::HeaderValue::from_static(value),
                );
            }
            Coding::of(&headers)
        };
        assert_eq!(of(&[]), Some(Coding::Identity));
        assert_eq!(of(&["GZIP"]), Some(Coding::Gzip));
        assert_eq!(of(&["br"]), Some(Coding::Brotli));
        assert_eq!(of(&["gzip, br"]), None);
        assert_eq!(of(&["gzip", "br"]), None);
        assert_eq!(of(&["dcb"]), None);
    }
}
