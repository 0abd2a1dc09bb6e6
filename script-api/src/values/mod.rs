//! Values made at load time: native, immutable, shared by all workers.

mod cidr;
mod regex;
mod secret;
mod table;

pub use cidr::Cidr;
pub use regex::{NotReplaced, Regex};
pub use secret::{MOST_SECRET, Secret};
pub use table::{Columns, Table, Wrong};

use std::path::PathBuf;

use thiserror::Error;

/// Why a file of the configuration's folder could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FileError {
    /// The name leads out of the folders that may be read.
    #[error("`{0}` lies outside the configuration's folder and of `[files] allow`")]
    Outside(String),
    /// There is no such file.
    #[error("there is no file `{0}` in the configuration's folder")]
    NotFound(String),
    /// The file is larger than what is read at all.
    #[error("`{name}` is larger than {limit} bytes")]
    TooLarge {
        /// The name that was asked for.
        name: String,
        /// The bound, in bytes.
        limit: u64,
    },
    /// The folder was swapped while it was read (the kubelet's atomic writer): start again.
    #[error("the folder changed while it was read")]
    Changed,
    /// Any other failure of the operating system.
    #[error("`{name}` can't be read: {error}")]
    Io {
        /// The name that was asked for.
        name: String,
        /// What the operating system says.
        error: String,
    },
}

/// How a program reads the files that it names.
///
/// The implementation decides which folders may be read; a program never opens a path itself.
pub trait Files {
    /// The content of the file `name`, relative to the configuration's folder.
    ///
    /// # Errors
    /// When the file is missing, too large, outside the folders that may be read, or unreadable.
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError>;

    /// A file that is part of the program itself. It lies in the configuration's folder, symbolic
    /// links followed; folders beside it that may be read otherwise don't count.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError>;
}

/// A file of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its content.
    pub content: Vec<u8>,
    /// Where it really lies: two names of one file lead to the same path.
    pub path: PathBuf,
}
