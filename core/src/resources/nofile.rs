//! The limit on open files. Each proxied request may hold two sockets, and the soft limit that a
//! process starts with (1024 by tradition) is far below what the hard limit allows.

use std::fmt;
use std::io;

use rlimit::{INFINITY, Resource};

/// The soft limit on open files, before and after [`raise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// What the process started with.
    pub before: u64,
    /// What holds now; `u64::MAX` when there is no limit.
    pub after: u64,
}

/// Raises the soft limit on open files to the hard limit, as getrlimit(2) allows anyone to.
///
/// # Errors
/// When the kernel refuses to tell or to change the limit (a sandbox); what held before holds on.
pub fn raise() -> io::Result<OpenFiles> {
    let (before, hard) = Resource::NOFILE.get()?;
    if before < hard {
        Resource::NOFILE.set(hard, hard)?;
    }
    Ok(OpenFiles {
        before,
        after: before.max(hard),
    })
}

/// The log line: `open files: limit raised from 256 to 20000` or `open files: limit 20000`.
impl fmt::Display for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("open files: limit ")?;
        if self.before < self.after {
            write!(f, "raised from {} to ", self.before)?;
        }
        if self.after == INFINITY {
            f.write_str("unlimited")
        } else {
            write!(f, "{}", self.after)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn raises_a_lowered_soft_limit() {
        let (_, hard) = Resource::NOFILE.get().unwrap();
        // One below the hard limit: enough to see the change, harmless to tests beside this one.
        let lowered = hard.min(1 << 20) - 1;
        Resource::NOFILE.set(lowered, hard).unwrap();
        let raised = OpenFiles {
            before: lowered,
            after: hard,
        };
        assert_eq!(raise().unwrap(), raised);
        assert_eq!(Resource::NOFILE.get().unwrap(), (hard, hard));
        let again = OpenFiles {
            before: hard,
            after: hard,
        };
        assert_eq!(raise().unwrap(), again);
    }

    #[test]
    fn line_tells_what_changed() {
        for (before, after, expected) in [
            (256, 20000, "open files: limit raised from 256 to 20000"),
            (20000, 20000, "open files: limit 20000"),
            (
                1024,
                INFINITY,
                "open files: limit raised from 1024 to unlimited",
            ),
            (INFINITY, INFINITY, "open files: limit unlimited"),
        ] {
            assert_eq!(OpenFiles { before, after }.to_string(), expected);
        }
    }
}
