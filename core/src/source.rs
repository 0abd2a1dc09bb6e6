//! From files to a generation.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    thread,
};

use edgewright_script::{
    diagnostic::{Diagnostic, Diagnostics},
    engine,
    load::{self, Inputs},
    program::{PoolDeclaration, Program, TargetDeclaration},
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

use crate::{
    config::{self, Config, Overrides, PoolConfig, PoolTarget, ScriptLimits, Target, TargetTraits},
    dns::Resolver,
    files::{Fingerprint, Folder},
    generation::{Generation, Parts},
    jwks::KeySets,
    last_good::LastGood,
    metrics::Metrics,
    parcel::Parcel,
    pools::Pools,
    tls::TlsListeners,
};

/// How often the files are read again when the folder is swapped meanwhile.
const ATTEMPTS: usize = 5;

/// Bytes of stack for loading. Only what is used takes memory.
const LOAD_STACK: usize = 1024 * 1024 * 1024;

/// Time on the clock that one hook call may take; its CPU time is `[script] time`.
const WALL_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// Files that were read, compiled and checked, and that serve nothing yet.
///
/// Certificates of listeners may be missing, as a reload goes on without them: see [`Compiled::whole`].
pub struct Compiled {
    /// The folder, with what was read of it.
    pub folder: Arc<Folder>,
    /// The process's configuration.
    pub config: Config,
    /// The program.
    pub program: Arc<Program>,
    /// All pools: those of the configuration and those of the program.
    pub pools: BTreeMap<String, PoolConfig>,
    /// Findings that stop nothing.
    pub warnings: Vec<Diagnostic>,
}

impl Compiled {
    /// The same, if all certificates of listeners can be used.
    ///
    /// # Errors
    /// With what is wrong with the others.
    pub fn whole(self) -> Result<Self, Refused> {
        let tables = self
            .config
            .listeners
            .iter()
            .filter_map(|one| one.tls.as_ref());
        let slots = tables.flat_map(|tls| &tls.certificates);
        let wrong = slots.filter_map(|slot| slot.found.as_ref().err().cloned());
        let wrong: Vec<_> = wrong.collect();
        if wrong.is_empty() {
            return Ok(self);
        }
        Err(Refused {
            diagnostics: Diagnostics(wrong),
            last: Some(LastRead::of(&self.folder)),
        })
    }
}

/// Why files could not be compiled.
#[derive(Debug)]
pub struct Refused {
    /// The findings, of which at least one is an error.
    pub diagnostics: Diagnostics,
    /// What was read before the error; `None` when the folder was swapped each time.
    pub last: Option<LastRead>,
}

/// Reads, compiles and checks everything that can be without serving. What the program counts and
/// caches is shared with the other programs of `state`.
///
/// # Errors
/// With every mistake that could be found at once.
pub fn compile_with(
    path: &Path,
    overrides: &Overrides,
    state: &StateStore,
) -> Result<Compiled, Refused> {
    let compiled = on_a_large_stack(|| compile_until_consistent(path, overrides, state));
    compiled.unwrap_or_else(|error| {
        Err(Refused {
            diagnostics: error.into(),
            last: None,
        })
    })
}

/// As [`compile_with`], for a program that shares nothing with others; nothing is missing.
///
/// # Errors
/// As [`compile_with`] and [`Compiled::whole`].
pub fn compile(path: &Path, overrides: &Overrides) -> Result<Compiled, Refused> {
    compile_with(path, overrides, &StateStore::default()).and_then(Compiled::whole)
}

/// Runs `work` on a thread whose stack holds what a program can nest while it is loaded: closures
/// in closures, for instance, are freed by recursion. A panic of the interpreter ends as an error.
fn on_a_large_stack<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, Diagnostic> {
    let failed = |what: &str| Diagnostic::error(format!("the program can't be loaded: {what}"));
    thread::scope(|scope| {
        thread::Builder::new()
            .name("load".to_owned())
            .stack_size(LOAD_STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| failed(&error.to_string()))?
            .join()
            .map_err(|_| failed("the interpreter panicked"))
    })
}

fn compile_until_consistent(
    path: &Path,
    overrides: &Overrides,
    state: &StateStore,
) -> Result<Compiled, Refused> {
    let mut attempt = 1;
    loop {
        match compile_once(path, overrides, state) {
            Err(Interrupted::Changed) if attempt < ATTEMPTS => attempt += 1,
            Err(Interrupted::Changed) => {
                return Err(Refused {
                    diagnostics: Diagnostic::error(FileError::Changed.to_string()).into(),
                    last: None,
                });
            }
            Err(Interrupted::Refused(refused)) => return Err(refused),
            Ok(compiled) => return Ok(compiled),
        }
    }
}

enum Interrupted {
    Changed,
    Refused(Refused),
}

fn compile_once(
    path: &Path,
    overrides: &Overrides,
    state: &StateStore,
) -> Result<Compiled, Interrupted> {
    let config::Loaded {
        folder,
        config,
        mut warnings,
    } = config::attempt(path, overrides).map_err(|error| {
        Interrupted::Refused(Refused {
            diagnostics: error.diagnostics,
            last: Some(match error.folder {
                Some(folder) => LastRead::of(&folder),
                None => LastRead::absent(path),
            }),
        })
    })?;
    let refused = |diagnostics: Diagnostics| {
        Interrupted::Refused(Refused {
            diagnostics,
            last: Some(LastRead::of(&folder)),
        })
    };
    let source = match folder.read(&config.routes) {
        Ok(source) => source,
        Err(FileError::Changed) => return Err(Interrupted::Changed),
        Err(error) => return Err(refused(Diagnostic::error(error.to_string()).into())),
    };
    // Some editors begin a file with a byte order mark.
    let source = match source.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) => text.to_vec(),
        None => source,
    };
    let source = String::from_utf8(source).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
            + 1;
        let finding = Diagnostic::error("the program is not UTF-8").at(&config.routes, line, 1);
        refused(finding.into())
    })?;
    let inputs = Inputs {
        file: config.routes.clone(),
        source,
        files: Rc::new(FolderFiles(folder.clone())),
        environment: Rc::new(|name| std::env::var(name).ok()),
        pools: config.pools.keys().cloned().collect(),
        limits: script_limits(&config.script),
        path_policy: config.path,
        state: state.clone(),
    };
    let loaded = match load::load(&inputs) {
        Ok(loaded) => loaded,
        Err(load::LoadError::Changed) => return Err(Interrupted::Changed),
        Err(load::LoadError::Invalid(diagnostics)) => return Err(refused(diagnostics)),
    };
    let pools = all_pools(&config, &loaded.program).map_err(refused)?;
    warnings.extend(loaded.warnings);
    Ok(Compiled {
        folder,
        config,
        program: Arc::new(loaded.program),
        pools,
        warnings,
    })
}

struct FolderFiles(Arc<Folder>);

impl Files for FolderFiles {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        self.0.read(name)
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        self.0.read_program(name)
    }
}

fn script_limits(limits: &ScriptLimits) -> engine::Limits {
    engine::Limits {
        operations: limits.operations,
        time: limits.time,
        wall_time: WALL_TIME.max(limits.time),
        memory: limits.memory,
        call_depth: limits.call_depth,
        string: limits.string,
        items: limits.items,
        body: limits.body,
        fetches: limits.fetches,
        fetch_timeout: limits.fetch_timeout,
        waiting: limits.waiting,
        waiting_memory: limits.waiting_memory,
        compile: limits.compile,
    }
}

fn all_pools(
    config: &Config,
    program: &Program,
) -> Result<BTreeMap<String, PoolConfig>, Diagnostics> {
    let mut pools = config.pools.clone();
    let mut findings = Vec::new();
    for declared in &program.pools {
        if let Some(targets) = &declared.targets {
            match declared_pool(declared, targets) {
                Ok(mut pool) => {
                    pool.own_zone = config.server.zone.as_deref().map(Into::into);
                    pools.insert(declared.name.clone(), pool);
                }
                Err(message) => findings.push(Diagnostic {
                    place: declared.place.clone(),
                    ..Diagnostic::error(message)
                }),
            }
        }
    }
    if findings.is_empty() {
        Ok(pools)
    } else {
        Err(Diagnostics(findings))
    }
}

fn declared_pool(
    declared: &PoolDeclaration,
    targets: &[TargetDeclaration],
) -> Result<PoolConfig, String> {
    config::check_pool_name(&declared.name)?;
    let targets = targets.iter().map(|declared| {
        let text = &declared.target;
        let target: Result<Target, _> = text.parse();
        let target = target.map_err(|error| format!("`{text}` is no target: {error}"))?;
        if let Some(zone) = &declared.zone {
            config::check_zone(zone)?;
        }
        let traits = TargetTraits {
            weight: declared.weight,
            backup: declared.backup,
            zone: declared.zone.as_deref().map(Into::into),
        };
        Ok::<_, String>(PoolTarget { target, traits })
    });
    Ok(PoolConfig {
        targets: targets.collect::<Result<_, _>>()?,
        ..PoolConfig::new(Vec::new())
    })
}

/// Where generations come from.
pub struct Source {
    /// What the user named.
    pub path: PathBuf,
    /// What the command line says.
    pub overrides: Overrides,
    /// Resolves the names of pools.
    pub resolver: Arc<Resolver>,
    /// Counters of the process.
    pub metrics: Arc<Metrics>,
    /// Interpreters to make for each generation: one for each worker.
    pub workers: usize,
    /// What programs count and cache, over all generations.
    pub state: StateStore,
    /// Key sets, over all generations.
    pub key_sets: Arc<KeySets>,
    /// Where files that were loaded are kept, if they are.
    pub last_good: Option<Arc<LastGood>>,
}

impl Source {
    /// Compiles what the files say now.
    ///
    /// # Errors
    /// As [`compile_with`].
    pub fn compile(&self) -> Result<Compiled, Refused> {
        compile_with(&self.path, &self.overrides, &self.state)
    }

    /// Keeps files that were loaded, for a start at which they are refused.
    pub(crate) fn keep(&self, folder: &Folder, revision: &str) {
        if let Some(last_good) = &self.last_good {
            last_good.keep(&self.path, folder, revision);
            last_good.set_degraded(false);
        }
    }

    /// The folder of what the user named.
    pub(crate) fn folder_path(&self) -> PathBuf {
        folder_of(&self.path)
    }

    /// Makes a generation; what did not change since `previous` is carried over.
    ///
    /// # Errors
    /// When a listener would have no certificate, or an interpreter can't be made of a program that compiles, which
    /// would be a bug.
    pub fn generation(
        &self,
        compiled: Compiled,
        previous: Option<&Generation>,
    ) -> Result<Generation, Diagnostics> {
        // First, as what follows changes what all generations share.
        let before = previous.map(|generation| &generation.tls);
        let tls = TlsListeners::build(&compiled.config, before)?;
        let has_hooks = !compiled.program.hooks.is_empty();
        let interpreters = on_a_large_stack(|| {
            (0..if has_hooks { self.workers } else { 0 })
                .map(|_| Parcel::new(&compiled.program))
                .collect::<Result<Vec<_>, _>>()
        })??;
        self.key_sets.bind(&compiled.program);
        self.resolver.configure(&compiled.config.dns);
        let previous = previous.map(|generation| &generation.pools);
        let pools = Pools::build(&compiled.pools, &self.resolver, previous);
        let parts = Parts {
            config: compiled.config,
            program: compiled.program,
            fingerprint: compiled.folder.fingerprint(),
            pools,
            tls,
            interpreters,
        };
        Generation::new(parts, &self.metrics)
            .ok_or_else(|| Diagnostic::error("the program names a pool that was not built").into())
    }
}

/// What an attempt read, for telling whether anything has changed since.
#[derive(Debug, Clone)]
pub struct LastRead {
    /// Where, and which content; `None` when the folder itself was not there.
    read: Option<Fingerprint>,
    root: PathBuf,
    /// The folders whose changes may change it.
    pub(crate) watched: Vec<PathBuf>,
}

impl LastRead {
    pub(crate) fn of(folder: &Folder) -> Self {
        Self {
            read: Some(folder.fingerprint()),
            root: folder.root().to_owned(),
            watched: folder.watched_dirs(),
        }
    }

    /// The folder of `path` was not there.
    fn absent(path: &Path) -> Self {
        let root = folder_of(path);
        Self {
            read: None,
            watched: vec![root.clone()],
            root,
        }
    }

    /// Where it was read.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether reading it again would give the same.
    pub(crate) fn is_current(&self) -> bool {
        match &self.read {
            Some(fingerprint) => fingerprint.is_current(&self.root),
            None => !self.root.is_dir(),
        }
    }
}

/// The folder of what the user named: a folder, or a file in one.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let is_file = path
        .extension()
        .is_some_and(|extension| extension == "toml" || extension == "rhai");
    match path.parent() {
        Some(parent) if is_file && parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) if is_file => parent.to_owned(),
        _ => path.to_owned(),
    }
}
