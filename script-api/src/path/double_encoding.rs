//! Finds dots and slashes that only come to light when a path is decoded more than once.

use super::hex_value;
use smallvec::SmallVec;

/// An escape of which the digits are not all there yet.
#[derive(Clone, Copy)]
struct Open {
    /// The `%` itself came out of an escape.
    decoded: bool,
    high: Option<u8>,
}

/// Whether decoding `path` again and again ever turns an escape whose `%` was itself escaped into a
/// dot, slash or backslash.
///
/// All rounds are done in one pass: an escape is decoded as soon as its second digit is known, and
/// what it gives is read on like a byte of the path. The order does not matter, since an escape
/// never overlaps another one. Linear in the length; allocates only where more than 16 escapes
/// stand open at once.
pub(super) fn hides_separator(path: &[u8]) -> bool {
    let mut open: SmallVec<[Open; 16]> = SmallVec::new();
    for &byte in path {
        let mut byte = byte;
        let mut decoded = false;
        loop {
            if byte == b'%' {
                open.push(Open {
                    decoded,
                    high: None,
                });
                break;
            }
            let Some(digit) = hex_value(byte) else {
                // Nothing before this byte can become an escape any more.
                open.clear();
                break;
            };
            let Some(last) = open.last_mut() else {
                break;
            };
            let Some(high) = last.high else {
                last.high = Some(digit);
                break;
            };
            let nested = last.decoded;
            open.pop();
            byte = high << 4 | digit;
            decoded = true;
            if nested && matches!(byte, b'.' | b'/' | b'\\') {
                return true;
            }
        }
    }
    false
}
