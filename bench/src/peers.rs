//! The contestants and how each is started.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::backend::Backend;
use crate::edgewright;
use crate::interrupt::Interrupt;
use crate::jobs::{self, Job};
use crate::nginx::{self, Lua, ProxySettings};
use crate::placement::Placement;

/// A contestant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// Its name, as `--only` takes it.
    pub(crate) name: &'static str,
    /// What it is, for the report.
    pub(crate) what: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Floor {
        timeouts: bool,
    },
    Edgewright {
        /// The one that `make release-pgo` has built.
        pgo: bool,
        forwarded: bool,
        auth: bool,
        routing: bool,
    },
    Nginx {
        lua: Option<Jobs>,
    },
    /// One of the jobs in a hook or in Lua, and beside it the same without.
    Job {
        job: Job,
        side: Side,
    },
}

/// Who does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    /// edgewright.
    Edgewright,
    /// nginx with Lua.
    NginxLua,
}

/// What a script of nginx does.
#[derive(Debug, Clone, Copy)]
struct Jobs {
    auth: bool,
    routing: bool,
}

/// The name of the contestant that the others are compared with.
pub(crate) const FLOOR: &str = "floor";

/// All contestants, in the order of the report.
pub(crate) const ALL: [Peer; 12] = [
    Peer {
        name: FLOOR,
        what: "the smallest proxy that Pingora allows",
        kind: Kind::Floor { timeouts: false },
    },
    Peer {
        name: "floor-timeouts",
        what: "the floor with the upstream timeouts that edgewright sets",
        kind: Kind::Floor { timeouts: true },
    },
    Peer {
        name: "edgewright-bare",
        what: "one route, no hook, forwarded_headers = false",
        kind: Kind::Edgewright {
            pgo: false,
            forwarded: false,
            auth: false,
            routing: false,
        },
    },
    Peer {
        name: "edgewright",
        what: "one route, no hook",
        kind: Kind::Edgewright {
            pgo: false,
            forwarded: true,
            auth: false,
            routing: false,
        },
    },
    Peer {
        name: "edgewright-routing",
        what: "a hook chooses the pool by a header",
        kind: Kind::Edgewright {
            pgo: false,
            forwarded: true,
            auth: false,
            routing: true,
        },
    },
    Peer {
        name: "edgewright-auth",
        what: "a hook looks the API key up among 1000 and sets a header",
        kind: Kind::Edgewright {
            pgo: false,
            forwarded: true,
            auth: true,
            routing: false,
        },
    },
    Peer {
        name: "edgewright-script",
        what: "both hooks",
        kind: Kind::Edgewright {
            pgo: false,
            forwarded: true,
            auth: true,
            routing: true,
        },
    },
    Peer {
        name: "edgewright-pgo-bare",
        what: "edgewright-bare, built with a profile (make release-pgo)",
        kind: Kind::Edgewright {
            pgo: true,
            forwarded: false,
            auth: false,
            routing: false,
        },
    },
    Peer {
        name: "edgewright-pgo",
        what: "edgewright, built with a profile",
        kind: Kind::Edgewright {
            pgo: true,
            forwarded: true,
            auth: false,
            routing: false,
        },
    },
    Peer {
        name: "edgewright-pgo-script",
        what: "both hooks, built with a profile",
        kind: Kind::Edgewright {
            pgo: true,
            forwarded: true,
            auth: true,
            routing: true,
        },
    },
    Peer {
        name: "nginx",
        what: "proxy_pass with upstream keepalive",
        kind: Kind::Nginx { lua: None },
    },
    Peer {
        name: "nginx-lua",
        what: "the jobs of both hooks in access_by_lua",
        kind: Kind::Nginx {
            lua: Some(Jobs {
                auth: true,
                routing: true,
            }),
        },
    },
];

/// nginx with one job each in its script, for those who want the cost of one.
pub(crate) const NGINX_LUA_ALONE: [Peer; 2] = [
    Peer {
        name: "nginx-lua-routing",
        what: "the job of the routing hook in access_by_lua",
        kind: Kind::Nginx {
            lua: Some(Jobs {
                auth: false,
                routing: true,
            }),
        },
    },
    Peer {
        name: "nginx-lua-auth",
        what: "the job of the auth hook in access_by_lua",
        kind: Kind::Nginx {
            lua: Some(Jobs {
                auth: true,
                routing: false,
            }),
        },
    },
];

/// The programs that are started.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// `edgewright-floor`.
    pub(crate) floor: PathBuf,
    /// `edgewright`.
    pub(crate) edgewright: PathBuf,
    /// `edgewright` as `make release-pgo` builds it.
    pub(crate) pgo: PathBuf,
    /// nginx, for backend and contestants.
    pub(crate) nginx: PathBuf,
    /// Folder of nginx's Lua module, if there is one.
    pub(crate) lua_modules: Option<PathBuf>,
}

/// What is equal for all contestants.
pub(crate) struct Field {
    /// The programs.
    pub(crate) programs: Programs,
    /// Worker threads (nginx: processes) of a proxy.
    pub(crate) threads: usize,
    /// Idle upstream connections that a whole proxy keeps.
    pub(crate) pool: usize,
    /// Connections of the load.
    pub(crate) connections: usize,
    /// CPUs.
    pub(crate) placement: Placement,
    /// The backend.
    pub(crate) backend: Backend,
    /// Ctrl-C.
    pub(crate) interrupt: Interrupt,
}

impl Field {
    /// An edgewright without hooks.
    fn edgewright_settings(&self, listen: SocketAddr) -> edgewright::Settings {
        edgewright::Settings {
            listen,
            backend: self.backend.addresses(),
            threads: self.threads,
            pool: self.pool,
            forwarded_headers: true,
            auth_hook: false,
            routing_hook: false,
        }
    }

    /// An nginx without Lua.
    fn nginx_settings(
        &self,
        listen: SocketAddr,
        single_process: bool,
    ) -> Result<ProxySettings<'static>> {
        ensure!(
            !single_process || self.threads == 1,
            "instructions of nginx are counted in one process: --threads must be 1"
        );
        Ok(ProxySettings {
            listen,
            backend: self.backend.addresses(),
            workers: self.threads,
            pool: self.pool,
            connections: self.connections * 2 + self.pool + 64,
            lua: None,
            single_process,
        })
    }
}

impl Side {
    /// Both, in the order of the report.
    pub(crate) const ALL: [Self; 2] = [Self::Edgewright, Self::NginxLua];

    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Edgewright => "edgewright",
            Self::NginxLua => "nginx-Lua",
        }
    }
}

impl Peer {
    /// The contestant that does this job.
    pub(crate) fn doing(job: Job, side: Side) -> Self {
        Self {
            name: job.name(),
            what: side.name(),
            kind: Kind::Job { job, side },
        }
    }

    /// Whether it must refuse unknown keys and tell the upstream whose key it was.
    pub(crate) fn checks_keys(&self) -> bool {
        matches!(
            self.kind,
            Kind::Edgewright { auth: true, .. }
                | Kind::Nginx {
                    lua: Some(Jobs { auth: true, .. })
                }
        )
    }

    /// Whether the variant header must choose the pool.
    pub(crate) fn routes_by_header(&self) -> bool {
        matches!(
            self.kind,
            Kind::Edgewright { routing: true, .. }
                | Kind::Nginx {
                    lua: Some(Jobs { routing: true, .. })
                }
        )
    }

    /// Whether it is an nginx.
    pub(crate) fn is_nginx(&self) -> bool {
        matches!(
            self.kind,
            Kind::Nginx { .. }
                | Kind::Job {
                    side: Side::NginxLua,
                    ..
                }
        )
    }

    /// The program of this project that it runs; `None` for nginx.
    pub(crate) fn own_program<'a>(&self, programs: &'a Programs) -> Option<&'a Path> {
        match self.kind {
            Kind::Floor { .. } => Some(&programs.floor),
            Kind::Edgewright { pgo: true, .. } => Some(&programs.pgo),
            Kind::Edgewright { pgo: false, .. }
            | Kind::Job {
                side: Side::Edgewright,
                ..
            } => Some(&programs.edgewright),
            Kind::Nginx { .. }
            | Kind::Job {
                side: Side::NginxLua,
                ..
            } => None,
        }
    }

    /// Why it can't be run here, if so.
    pub(crate) fn missing(&self, programs: &Programs) -> Option<String> {
        match self.kind {
            Kind::Nginx { lua: Some(_) }
            | Kind::Job {
                side: Side::NginxLua,
                ..
            } if programs.lua_modules.is_none() => {
                Some("nginx's Lua module is not installed".to_owned())
            }
            _ => self
                .own_program(programs)
                .filter(|program| !program.exists())
                .map(|program| format!("{} does not exist", program.display())),
        }
    }

    /// The command that serves at `listen` with the files of `dir`, and those files.
    pub(crate) fn command(
        &self,
        field: &Field,
        dir: &Path,
        listen: SocketAddr,
        single_process: bool,
    ) -> Result<Command> {
        let programs = &field.programs;
        match self.kind {
            Kind::Floor { timeouts } => {
                let mut command = Command::new(&programs.floor);
                command
                    .arg(format!("--listen={listen}"))
                    .arg(format!("--upstream={}", field.backend.addresses().blue))
                    .arg(format!("--threads={}", field.threads))
                    .arg(format!("--keepalive={}", field.pool));
                if timeouts {
                    command.arg("--timeouts");
                }
                Ok(command)
            }
            Kind::Edgewright {
                pgo,
                forwarded,
                auth,
                routing,
            } => edgewright::command(
                if pgo {
                    &programs.pgo
                } else {
                    &programs.edgewright
                },
                dir,
                &edgewright::Settings {
                    forwarded_headers: forwarded,
                    auth_hook: auth,
                    routing_hook: routing,
                    ..field.edgewright_settings(listen)
                },
            ),
            Kind::Job {
                job,
                side: Side::Edgewright,
            } => edgewright::serving(
                &programs.edgewright,
                dir,
                &field.edgewright_settings(listen),
                &jobs::edgewright_files(job)?,
            ),
            Kind::Job {
                job,
                side: Side::NginxLua,
            } => {
                edgewright::write(dir, &jobs::nginx_files(job)?)?;
                let settings = field.nginx_settings(listen, single_process)?;
                let servers = jobs::nginx_servers(job, listen);
                let modules = programs.lua_modules.as_deref();
                let config = nginx::proxy_with(&settings, modules, &servers);
                nginx::command(&programs.nginx, dir, &config)
            }
            Kind::Nginx { lua } => {
                if lua.is_some() {
                    let file = dir.join("keys.lua");
                    std::fs::write(&file, nginx::lua_keys())
                        .with_context(|| format!("cannot write {}", file.display()))?;
                }
                let config = nginx::proxy_config(&ProxySettings {
                    lua: lua
                        .zip(programs.lua_modules.as_deref())
                        .map(|(jobs, modules)| Lua {
                            modules,
                            auth: jobs.auth,
                            routing: jobs.routing,
                        }),
                    ..field.nginx_settings(listen, single_process)?
                });
                nginx::command(&programs.nginx, dir, &config)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_the_floor_is_first() {
        let names: HashSet<_> = ALL
            .iter()
            .chain(&NGINX_LUA_ALONE)
            .map(|peer| peer.name)
            .collect();
        assert_eq!(names.len(), ALL.len() + NGINX_LUA_ALONE.len());
        assert_eq!(ALL[0].name, FLOOR);
    }
}
