//! Without an admin and a health listener everything else still works.

use crate::support::client::Connection;
use crate::support::launch::serving;
use crate::support::proxy::Proxy;
use crate::support::wait::{SOON, until};

fn version(name: &str) -> String {
    format!("route(\"/version\").respond(200, \"{name}\");\n")
}

/// A proxy with neither of the two listeners, which listens.
fn proxy() -> Proxy {
    serving(&version("one"))
        .published_by(|folder, files| {
            for (name, text) in files {
                let text = match text.find("[admin]") {
                    Some(at) if *name == "edgewright.toml" => format!(
                        "{}[admin]\naddress = \"off\"\n[health]\naddress = \"off\"\n",
                        &text[..at]
                    ),
                    _ => (*text).to_owned(),
                };
                std::fs::write(folder.join(name), text).unwrap();
            }
        })
        .not_ready_at_first()
        .start()
}

fn write(proxy: &Proxy, text: &str) {
    std::fs::write(proxy.file("routes.rhai"), text).unwrap();
}

#[test]
fn a_file_change_is_picked_up() {
    let proxy = proxy();
    for address in [proxy.admin(), proxy.health()] {
        assert!(Connection::open(address).is_err(), "{address} answers");
    }
    assert_eq!(proxy.text("/version"), "one");
    for name in ["two", "three"] {
        write(&proxy, &version(name));
        until("the new version", SOON, || proxy.text("/version") == name);
    }
    write(&proxy, "route(\"/version\").to(\"nowhere\");\n");
    proxy.log.wait("reload refused", SOON);
    assert_eq!(proxy.text("/version"), "three");
}

#[test]
fn sighup_reloads() {
    let mut proxy = proxy();
    // Nothing changed: only the signal can be what is told.
    proxy.signal("HUP");
    proxy.log.wait("nothing changed", SOON);
    write(&proxy, &version("two"));
    proxy.signal("HUP");
    until("the new version", SOON, || proxy.text("/version") == "two");
    assert!(proxy.running());
    proxy.signal("TERM");
    assert_eq!(proxy.wait_exit(SOON).0.code(), Some(0));
}
