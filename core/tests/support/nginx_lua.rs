//! A real nginx with its Lua module, as other people's edge: what edgewright is compared with.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::nginx::{Nginx, http_settings, process_settings};

/// Where distributions put the dynamic modules.
const MODULE_FOLDERS: [&str; 3] = [
    "/usr/lib/nginx/modules",
    "/usr/lib64/nginx/modules",
    "/usr/share/nginx/modules",
];

/// In the order in which nginx must load them.
const MODULES: [&str; 3] = [
    "ndk_http_module.so",
    "ngx_http_lua_module.so",
    "ngx_http_headers_more_filter_module.so",
];

/// The Debian packages that the comparison needs.
const PACKAGES: &str =
    "nginx-light libnginx-mod-http-lua libnginx-mod-http-headers-more-filter lua-cjson";

/// Where nginx writes its errors, and those of scripts, below its prefix.
const ERROR_LOG: &str = "error.log";

/// Why nginx with Lua can't be run here; `None` when it can.
pub fn missing() -> Option<String> {
    let install = |why: &str| Some(format!("{why} (Debian packages {PACKAGES})"));
    let Some(modules) = load_modules() else {
        return install("nginx has no Lua module or no headers-more module");
    };
    let folder = TempDir::new().unwrap();
    let configuration = folder.path().join("nginx.conf");
    let text = format!(
        "{modules}{}events {{}}\nhttp {{\n{}init_by_lua_block {{ require \"cjson.safe\" }}\n}}\n",
        process_settings(folder.path()),
        http_settings(folder.path()),
    );
    std::fs::write(&configuration, text).unwrap();
    let tried = Command::new("nginx")
        .args(["-t", "-e", "stderr", "-p"])
        .arg(folder.path())
        .arg("-c")
        .arg(&configuration)
        .output();
    match tried {
        Err(error) => install(&format!("nginx can't be started: {error}")),
        Ok(output) if !output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            install(&format!("nginx with Lua and cjson does not start: {said}"))
        }
        Ok(_) => None,
    }
}

/// Runs the files of a job: `nginx.conf`, which is the inside of nginx's `http` block, and what it
/// reads, which is below `ngx.config.prefix()`. Each `server` in it says `include listen.conf;`
/// where other people would write their port. `lua` is a folder of further Lua modules, `upstreams` are
/// names and addresses.
pub fn start(files: &[(String, String)], lua: &Path, upstreams: &[(String, SocketAddr)]) -> Nginx {
    let lua = lua.display();
    let modules = load_modules().expect("nginx has its Lua module");
    let upstreams: String = upstreams
        .iter()
        .map(|(name, address)| format!("upstream {name} {{ server {address}; keepalive 8; }}\n"))
        .collect();
    Nginx::configured(IpAddr::from([127, 0, 0, 1]), |address, folder| {
        for (name, text) in files {
            // nginx.conf itself is the wrapper below.
            let name = if name == "nginx.conf" {
                "job.conf"
            } else {
                name
            };
            std::fs::write(folder.join(name), text).unwrap();
        }
        std::fs::write(folder.join("listen.conf"), format!("listen {address};\n")).unwrap();
        // What everybody writes who proxies with nginx; edgewright does it by default.
        format!(
            "{modules}{}error_log {ERROR_LOG} warn;\nevents {{}}\nhttp {{\n{}\
             lua_package_path \"$prefix/?.lua;{lua}/?.lua;;\";\n\
             proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n\
             proxy_set_header Host $http_host;\n{upstreams}include job.conf;\n}}\n",
            process_settings(folder),
            http_settings(folder),
        )
    })
}

/// What nginx and the scripts in it have complained about.
pub fn errors(nginx: &Nginx) -> String {
    std::fs::read_to_string(nginx.folder().join(ERROR_LOG)).unwrap_or_default()
}

/// The lines that load the modules; `None` when one isn't installed.
fn load_modules() -> Option<String> {
    let folder = MODULE_FOLDERS
        .iter()
        .map(PathBuf::from)
        .find(|folder| MODULES.iter().all(|module| folder.join(module).exists()))?;
    let line = |module: &&str| format!("load_module {};\n", folder.join(module).display());
    Some(MODULES.iter().map(line).collect())
}
