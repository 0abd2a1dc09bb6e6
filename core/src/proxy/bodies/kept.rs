//! Counts the bytes of bodies that are kept for hooks, in the whole process.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are kept now.
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// Why no more can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Full {
    /// The body is longer than `[script] body`.
    Body,
    /// All bodies together are longer than `[script] bodies`.
    Process,
}

/// Bytes of one body, counted until this is dropped.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Kept(usize);

impl Kept {
    /// Counts `more` bytes, of `body` at the most for this body and `bodies` for all.
    pub(super) fn grow(&mut self, more: usize, body: usize, bodies: usize) -> Result<(), Full> {
        if self.0.saturating_add(more) > body {
            return Err(Full::Body);
        }
        let total = TOTAL.fetch_add(more, Ordering::Relaxed) + more;
        self.0 += more;
        if total > bodies {
            return Err(Full::Process);
        }
        Ok(())
    }

    /// Counts `length` bytes from now on, whatever it was.
    pub(in crate::proxy) fn set(&mut self, length: usize) {
        TOTAL.fetch_add(length, Ordering::Relaxed);
        TOTAL.fetch_sub(self.0, Ordering::Relaxed);
        self.0 = length;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        TOTAL.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Bytes of bodies that are kept for hooks now.
pub(crate) fn kept_bytes() -> usize {
    TOTAL.load(Ordering::Relaxed)
}
