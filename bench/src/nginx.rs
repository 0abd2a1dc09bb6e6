//! nginx: the files of the backend, of the plain proxy and of the proxy with Lua.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::load::{self, BLUE, CHECK_PATH, CLIENT_HEADER, GREEN, PREFIXES};

/// Where distributions put the dynamic modules.
const MODULE_FOLDERS: [&str; 4] = [
    "/usr/lib/nginx/modules",
    "/usr/lib64/nginx/modules",
    "/usr/share/nginx/modules",
    "/usr/local/lib/nginx/modules",
];

/// Where the backend listens. Both pools are the same process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackendAddresses {
    /// Upstream of the pool that is measured.
    pub(crate) blue: SocketAddr,
    /// Upstream of the other pool.
    pub(crate) green: SocketAddr,
    /// `stub_status`.
    pub(crate) status: SocketAddr,
}

/// What a proxying nginx is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxySettings<'a> {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Where it sends requests.
    pub(crate) backend: BackendAddresses,
    /// Worker processes.
    pub(crate) workers: usize,
    /// Idle upstream connections of all workers together.
    pub(crate) pool: usize,
    /// Connections that one worker may have open.
    pub(crate) connections: usize,
    /// What a script does; `None` for the plain proxy.
    pub(crate) lua: Option<Lua<'a>>,
    /// Without a master process: for instruction counts.
    pub(crate) single_process: bool,
}

/// The jobs of a script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lua<'a> {
    /// Folder of the Lua module.
    pub(crate) modules: &'a Path,
    /// It looks the API key up.
    pub(crate) auth: bool,
    /// It chooses the pool.
    pub(crate) routing: bool,
}

/// The folder that holds the Lua module and the one it needs.
pub(crate) fn find_lua_modules() -> Option<PathBuf> {
    MODULE_FOLDERS
        .iter()
        .map(PathBuf::from)
        .find(|folder| folder.join("ngx_http_lua_module.so").exists())
}

/// The command that serves `config` with the files of `dir`, in the foreground.
pub(crate) fn command(nginx: &Path, dir: &Path, config: &str) -> Result<Command> {
    let file = dir.join("nginx.conf");
    fs::write(&file, config).with_context(|| format!("cannot write {}", file.display()))?;
    let mut command = Command::new(nginx);
    command
        .arg("-p")
        .arg(dir)
        .arg("-c")
        .arg(file)
        .args(["-e", "stderr"]);
    Ok(command)
}

/// What all configurations share. Nothing is written but errors; temporary files would go to the
/// run's own folder, since an unprivileged user can't write to the compiled-in ones.
pub(crate) fn main_context(
    workers: usize,
    connections: usize,
    modules: &str,
    http: &str,
) -> String {
    format!(
        "{modules}daemon off;\nworker_processes {workers};\npid nginx.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections {connections}; }}\n\
         http {{\n\
         access_log off;\n\
         client_body_temp_path tmp_body;\nproxy_temp_path tmp_proxy;\nfastcgi_temp_path tmp_fastcgi;\n\
         uwsgi_temp_path tmp_uwsgi;\nscgi_temp_path tmp_scgi;\n\
         # The default of 1000 requests would make each contestant open new connections.\n\
         keepalive_requests 1000000000;\nkeepalive_timeout 3600s;\n\
         {http}}}\n"
    )
}

/// The backend: one worker, a fixed answer from memory, and at the check path also what it got.
pub(crate) fn backend_config(addresses: BackendAddresses, connections: usize) -> String {
    let body = load::body();
    let server = |name: &str, address: SocketAddr| {
        let seen = CLIENT_HEADER.replace('-', "_");
        let prefixes = PREFIXES.map(|prefix| format!("/{prefix}/check"));
        let telling: String = [CHECK_PATH]
            .into_iter()
            .chain(prefixes.iter().map(String::as_str))
            .map(|path| {
                format!(
                    "  location {path} {{\n    add_header x-backend {name};\n    \
                     add_header x-seen-client $http_{seen};\n    return 200 \"{body}\";\n  }}\n"
                )
            })
            .collect();
        format!(
            "server {{\n  listen {address} backlog=4096;\n  default_type text/plain;\n  \
             location / {{ return 200 \"{body}\"; }}\n{telling}}}\n"
        )
    };
    let http = format!(
        "{}{}server {{ listen {}; location / {{ stub_status; }} }}\n",
        server(BLUE, addresses.blue),
        server(GREEN, addresses.green),
        addresses.status
    );
    main_context(1, connections, "", &http)
}

/// A proxy: plain, or with auth and routing in Lua.
pub(crate) fn proxy_config(settings: &ProxySettings) -> String {
    let (location, lua_settings) = match &settings.lua {
        Some(lua) => (
            lua_location(lua),
            "lua_package_path \"$prefix/?.lua;;\";\ninit_by_lua_block { require \"keys\" }\n",
        ),
        None => (format!("    proxy_pass http://{BLUE};\n"), ""),
    };
    let servers = format!(
        "{lua_settings}server {{\n  listen {} backlog=4096;\n  location / {{\n{location}{PROXYING}  }}\n}}\n",
        settings.listen,
    );
    let modules = settings.lua.map(|lua| lua.modules);
    proxy_with(settings, modules, &servers)
}

/// What each location has that proxies.
pub(crate) const PROXYING: &str = "    proxy_http_version 1.1;\n    \
    proxy_set_header Connection \"\";\n    proxy_set_header Host $http_host;\n";

/// A proxy with both pools and these servers; with the Lua modules when their folder is given.
pub(crate) fn proxy_with(
    settings: &ProxySettings,
    lua_modules: Option<&Path>,
    servers: &str,
) -> String {
    let idle = settings.pool.div_ceil(settings.workers.max(1));
    let upstream = |name: &str, address: SocketAddr| {
        format!(
            "upstream {name} {{\n  server {address};\n  keepalive {idle};\n  \
             keepalive_requests 1000000000;\n  keepalive_timeout 3600s;\n}}\n"
        )
    };
    let http = format!(
        "{}{}{servers}",
        upstream(BLUE, settings.backend.blue),
        upstream(GREEN, settings.backend.green),
    );
    let mut modules = String::new();
    if let Some(folder) = lua_modules {
        for module in ["ndk_http_module.so", "ngx_http_lua_module.so"] {
            modules += &format!("load_module {};\n", folder.join(module).display());
        }
    }
    if settings.single_process {
        modules += "master_process off;\n";
    }
    main_context(settings.workers, settings.connections, &modules, &http)
}

/// The same jobs as in [`crate::edgewright`]: the key's client to the upstream or a 401, and the pool
/// by a header.
fn lua_location(lua: &Lua) -> String {
    let (variable, upstream) = if lua.routing {
        ("    set $pool \"blue\";\n", "$pool")
    } else {
        ("", BLUE)
    };
    let auth = if lua.auth { LUA_AUTH } else { "" };
    let routing = if lua.routing { LUA_ROUTING } else { "" };
    format!(
        "{variable}    access_by_lua_block {{\n{auth}{routing}    }}\n    \
         proxy_pass http://{upstream};\n"
    )
}

const LUA_AUTH: &str = r#"      local client = require("keys")[ngx.var.http_x_api_key]
      if not client then
        ngx.status = 401
        ngx.header.content_length = 16
        ngx.print("unknown API key\n")
        return ngx.exit(401)
      end
      ngx.req.set_header("x-client", client)
"#;

const LUA_ROUTING: &str = r#"      if ngx.var.http_x_variant == "green" then
        ngx.var.pool = "green"
      end
"#;

/// The table of keys as a Lua module, loaded once before the workers are forked.
pub(crate) fn lua_keys() -> String {
    let entries: String = load::keys()
        .map(|(key, client)| format!("  [\"{key}\"] = \"{client}\",\n"))
        .collect();
    format!("return {{\n{entries}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lua: Option<Lua<'_>>) -> ProxySettings<'_> {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        ProxySettings {
            listen: address(1),
            backend: BackendAddresses {
                blue: address(2),
                green: address(3),
                status: address(4),
            },
            workers: 2,
            pool: 1000,
            connections: 4096,
            lua,
            single_process: false,
        }
    }

    #[test]
    fn the_pool_is_for_all_workers_together() {
        let config = proxy_config(&settings(None));
        assert!(config.contains("keepalive 500;"), "{config}");
        assert!(
            config.contains("worker_processes 2;") && !config.contains("lua"),
            "{config}"
        );
    }

    fn with_lua(auth: bool, routing: bool) -> String {
        let modules = Path::new("/modules");
        proxy_config(&settings(Some(Lua {
            modules,
            auth,
            routing,
        })))
    }

    #[test]
    fn lua_brings_both_modules_and_both_jobs() {
        let config = with_lua(true, true);
        assert!(
            config.starts_with("load_module /modules/ndk_http_module.so;\n"),
            "{config}"
        );
        assert!(config.contains("proxy_pass http://$pool;") && config.contains("ngx.exit(401)"));
        assert!(lua_keys().contains(&format!("[\"{}\"]", load::good_key())));
    }

    #[test]
    fn a_job_alone_is_alone() {
        let auth = with_lua(true, false);
        assert!(auth.contains("proxy_pass http://blue;") && auth.contains("ngx.exit(401)"));
        let routing = with_lua(false, true);
        assert!(routing.contains("proxy_pass http://$pool;") && !routing.contains("ngx.exit"));
    }
}
