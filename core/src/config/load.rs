//! Finding and reading the configuration that a command line names.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgewright_script::diagnostic::{Diagnostic, Diagnostics};
use edgewright_script::values::{FileError, Files as _};

use super::convert::{self, Parsed};
use super::error::Source;
use super::pools::tls;
use super::{CONFIG_FILE, Config, ROUTES_FILE};
use crate::files::Folder;

/// How often reading starts again because the folder was swapped meanwhile. The kubelet swaps
/// at most about once a minute, so a second time is rare and a fifth is a fault.
pub(super) const ATTEMPTS: usize = 5;

/// What the command line and the environment say in place of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--listen`: stands in place of all `[[listeners]]` unless it is empty.
    pub listen: Vec<SocketAddr>,
    /// `EDGEWRIGHT_LISTEN`: the listener when nothing else names one. A container's own loopback,
    /// the usual default, is out of everybody's reach.
    pub default_listen: Option<SocketAddr>,
    /// `EDGEWRIGHT_HEALTH`: the `[health] address` when the file names none.
    pub default_health: Option<SocketAddr>,
    /// `EDGEWRIGHT_ZONE`: the `[server] zone` when the file names none.
    pub default_zone: Option<String>,
    /// `--last-good`: what is read is to be kept.
    pub keep_contents: bool,
}

/// A configuration and the folder it was read from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// For reading the program and its files: they belong to the same revision.
    pub folder: Arc<Folder>,
    /// The checked configuration. Its `routes` file exists. Certificates of listeners may be missing in it: see
    /// [`Slot`](super::Slot).
    pub config: Config,
    /// Findings that stop nothing.
    pub warnings: Vec<Diagnostic>,
}

/// Why nothing was loaded.
#[derive(Debug)]
pub struct LoadError {
    /// All that is wrong.
    pub diagnostics: Diagnostics,
    /// The folder, when it could be opened. The fingerprint of what was read before the failure
    /// tells whether trying again can give another result.
    pub folder: Option<Arc<Folder>>,
}

/// Loads the configuration that `path` names: a folder, a `.toml` or a `.rhai` file.
///
/// A folder may have an `edgewright.toml`; without one it is a program, `routes.rhai`. A `.rhai`
/// file is a program, for which an `edgewright.toml` beside it counts too. Reads again when the
/// folder is swapped meanwhile.
///
/// # Errors
/// All that is wrong with the file, with places; or that a file is missing or unreadable.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    attempt(path, overrides).map_err(|error| error.diagnostics)
}

/// As [`load`], with more to a failure.
///
/// # Errors
/// As [`load`].
pub fn attempt(path: &Path, overrides: &Overrides) -> Result<Loaded, LoadError> {
    attempt_with(path, overrides, |folder| Folder::open(folder, &[]))
}

/// [`attempt`] with another way to open the folder, so that a test can change it between two
/// reads.
pub(super) fn attempt_with(
    path: &Path,
    overrides: &Overrides,
    mut open: impl FnMut(&Path) -> io::Result<Folder>,
) -> Result<Loaded, LoadError> {
    let named = Named::find(path).map_err(|error| LoadError::new(error, None))?;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let folder = open(&named.folder)
            .map_err(|error| LoadError::new(unopened(&named.folder, error), None))?;
        let folder = Arc::new(folder);
        if overrides.keep_contents {
            folder.keep_contents();
        }
        match named.read(&folder, overrides) {
            Ok((config, warnings)) => {
                return Ok(Loaded {
                    folder,
                    config,
                    warnings,
                });
            }
            Err(Failure::Wrong(diagnostics)) => {
                return Err(LoadError::new(diagnostics, Some(folder)));
            }
            Err(Failure::Changed) => last = Some(folder),
        }
    }
    let message = format!(
        "`{}` changed {ATTEMPTS} times while it was read",
        named.folder.display()
    );
    Err(LoadError::new(Diagnostic::error(message), last))
}

impl LoadError {
    fn new(diagnostics: impl Into<Diagnostics>, folder: Option<Arc<Folder>>) -> Self {
        Self {
            diagnostics: diagnostics.into(),
            folder,
        }
    }
}

/// Why reading ended.
enum Failure {
    Changed,
    Wrong(Diagnostics),
}

impl<T: Into<Diagnostics>> From<T> for Failure {
    fn from(wrong: T) -> Self {
        Self::Wrong(wrong.into())
    }
}

/// What a path of the command line means.
struct Named {
    folder: PathBuf,
    /// The configuration file's name, and whether it must be there.
    config: (String, bool),
    /// The program's name when the path is that of a program.
    routes: Option<String>,
}

impl Named {
    fn find(path: &Path) -> Result<Self, Diagnostic> {
        let metadata = path.metadata().map_err(|error| unopened(path, error))?;
        if metadata.is_dir() {
            return Ok(Self {
                folder: path.to_path_buf(),
                config: (CONFIG_FILE.to_string(), false),
                routes: None,
            });
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let extension = path.extension().and_then(|extension| extension.to_str());
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        match (name, extension) {
            (Some(name), Some("toml")) => Ok(Self {
                folder,
                config: (name.to_string(), true),
                routes: None,
            }),
            (Some(name), Some("rhai")) => Ok(Self {
                folder,
                config: (CONFIG_FILE.to_string(), false),
                routes: Some(name.to_string()),
            }),
            _ => Err(unopened(
                path,
                "it is no folder, no .toml and no .rhai file",
            )),
        }
    }

    /// The configuration, with warnings.
    fn read(
        &self,
        folder: &Folder,
        overrides: &Overrides,
    ) -> Result<(Config, Vec<Diagnostic>), Failure> {
        let (name, required) = &self.config;
        let text = match folder.read(name) {
            Ok(content) => Some(
                String::from_utf8(content)
                    .map_err(|_| Diagnostic::error(format!("`{name}` is not UTF-8 text")))?,
            ),
            Err(FileError::NotFound(_)) if !required => None,
            Err(error) => return Err(unreadable(error)),
        };
        let source = Source {
            name,
            text: text.as_deref().unwrap_or_default(),
        };
        let Parsed {
            mut config,
            mut routes_at,
            listeners_tls,
            tls,
        } = convert::parse(source, overrides)?;
        config.file = text.is_some().then(|| folder.root().join(name));
        if let Some(routes) = &self.routes {
            config.routes.clone_from(routes);
            routes_at = None;
        }
        folder.allow(&config.files.allow);
        let mut warnings = read_tls(tls, folder, source, &mut config)?;
        for (address, unread) in listeners_tls {
            let tls = unread.read(folder, source, &mut warnings);
            let tls = tls.map_err(unreadable)?;
            let mut listeners = config.listeners.iter_mut();
            if let Some(listener) = listeners.find(|one| one.address == address) {
                listener.tls = Some(tls);
            }
        }
        match folder.read(&config.routes) {
            Ok(_) => Ok((config, warnings)),
            Err(FileError::Changed) => Err(Failure::Changed),
            Err(error) => Err(no_program(&error, routes_at.map(|at| (source, at))).into()),
        }
    }
}

/// Reads what the TLS of pools is made of; gives what should be known about it.
fn read_tls(
    unread: Vec<(String, tls::Unread)>,
    folder: &Folder,
    source: Source<'_>,
    config: &mut Config,
) -> Result<Vec<Diagnostic>, Failure> {
    let mut found = Vec::new();
    for (name, unread) in unread {
        let tls = unread.read(folder, source, &mut found);
        let tls = tls.map_err(unreadable)?.map(Arc::new);
        if let Some(pool) = config.pools.get_mut(&name) {
            pool.tls = tls;
        }
    }
    let found = Diagnostics(found);
    if found.has_errors() {
        return Err(found.into());
    }
    Ok(found.0)
}

fn no_program(error: &FileError, written: Option<(Source<'_>, Range<usize>)>) -> Diagnostic {
    let message = format!("no program: {error}");
    match written {
        Some((source, at)) => source.error(&at, message),
        None => Diagnostic::error(message).help(format!(
            "a program stands in `{ROUTES_FILE}`, or in the file that `routes` in \
             `{CONFIG_FILE}` names"
        )),
    }
}

fn unreadable(error: FileError) -> Failure {
    match error {
        FileError::Changed => Failure::Changed,
        error => Diagnostic::error(error.to_string()).into(),
    }
}

fn unopened(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(format!("can't open `{}`: {why}", path.display()))
}
