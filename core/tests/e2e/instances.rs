//! Two processes on one address, and files that are not what they should be.

use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::support::client::get;
use crate::support::command::{BINARY, Folder};
use crate::support::launch::serving;
use crate::support::log::Log;
use crate::support::ports;
use crate::support::proxy::Proxy;
use crate::support::upstream::Upstream;
use crate::support::wait::{SOON, eventually, until};

/// A process that may or may not come to serve; killed when dropped.
struct Instance {
    child: Child,
    log: Log,
    name: String,
    _folder: Folder,
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Instance {
    /// Listens on `listen` and answers with `name`.
    fn spawn(name: &str, listen: &str) -> Self {
        let settings = format!(
            "[[listeners]]\naddress = \"{listen}\"\n\
             [admin]\naddress = \"off\"\n[health]\naddress = \"off\"\n"
        );
        let routes = format!("route(\"/\").respond(200, \"{name}\");");
        let folder = Folder::with(&[("routes.rhai", &routes), ("edgewright.toml", &settings)]);
        let mut child = Command::new(BINARY)
            .arg("run")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, _) = Log::follow(child.stderr.take().unwrap());
        Self {
            child,
            log,
            name: name.to_owned(),
            _folder: folder,
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

/// Two that start at the same moment: one ends and says why, the other is the one that answers.
fn race(listen: [&str; 2], address: SocketAddr) {
    let mut both = [
        Instance::spawn("one", listen[0]),
        Instance::spawn("two", listen[1]),
    ];
    let (loser, status) = eventually("one of the two to end", 2 * SOON, || {
        let mut ended = both.iter_mut().enumerate();
        let ended = ended.find_map(|(index, instance)| Some((index, instance.ended()?)));
        let serving = |instance: &Instance| instance.log.count("listening on") > 0;
        assert!(
            ended.is_some() || !both.iter().all(serving),
            "both serve on {listen:?}"
        );
        ended
    });
    let [first, second] = &mut both;
    let (lost, serves) = match loser {
        0 => (first, second),
        _ => (second, first),
    };
    assert_eq!(status.code(), Some(1), "{}", lost.log.text());
    let line = lost.log.wait("can't listen on", SOON);
    assert!(line.contains(listen[loser]), "{line}");
    assert_eq!(lost.log.count("listening on"), 0, "{}", lost.log.text());
    assert_eq!(lost.log.count("panicked"), 0, "{}", lost.log.text());
    serves.log.wait("listening on", SOON);
    for _ in 0..20 {
        assert_eq!(get("/").send(address).text(), serves.name);
    }
    assert!(serves.ended().is_none(), "{}", serves.log.text());
}

#[test]
fn of_two_at_the_same_moment_one_serves() {
    for _ in 0..5 {
        let address = ports::steady([127, 0, 0, 1].into());
        let text = address.to_string();
        race([&text, &text], address);
    }
}

#[test]
fn any_address_and_one_of_them_are_the_same_place() {
    for _ in 0..5 {
        let address = ports::steady([127, 0, 0, 1].into());
        let any = format!("0.0.0.0:{}", address.port());
        race([&any, &address.to_string()], address);
    }
}

fn version(name: &str) -> String {
    format!("route(\"/version\").respond(200, \"{name}\");\n")
}

fn write(proxy: &Proxy, bytes: &[u8]) {
    std::fs::write(proxy.file("routes.rhai"), bytes).unwrap();
}

#[test]
fn a_truncated_program_is_refused() {
    let proxy = serving(&version("one")).start();
    let revision = proxy.status()["revision"].as_str().unwrap().to_owned();
    for (nth, rest) in ["", "// only a comment\n"].into_iter().enumerate() {
        write(&proxy, rest.as_bytes());
        let line = proxy.log.wait_nth("reload refused", nth + 1, SOON);
        assert!(line.contains("no routes"), "{line}");
        assert!(
            line.contains(&format!("revision {revision} keeps serving")),
            "{line}"
        );
        until("the refusal in /status", SOON, || {
            let status = proxy.status();
            status["revision"] == revision.as_str()
                && status["last_error"].to_string().contains("no routes")
        });
        assert_eq!(proxy.reload().0, 422);
        assert_eq!(proxy.text("/version"), "one");
        write(&proxy, version("one").as_bytes());
        until("the way back", SOON, || {
            proxy.status()["last_error"].is_null()
        });
    }
    write(&proxy, version("two").as_bytes());
    until("the next version", SOON, || proxy.text("/version") == "two");
}

/// What some editors put at the beginning of a text file.
const MARK: &str = "\u{feff}";

#[test]
fn the_program_and_the_settings_may_begin_with_a_byte_order_mark() {
    let web = Upstream::fixed("ok");
    let proxy = serving(&format!(
        "{MARK}{}route(\"/up\").to(\"web\");\n",
        version("one")
    ))
    .settings(MARK)
    .pool("web", web.address())
    .start();
    assert_eq!(proxy.text("/version"), "one");
    assert_eq!(proxy.text("/up"), "ok");
    write(&proxy, format!("{MARK}{}", version("two")).as_bytes());
    until("the reload", SOON, || proxy.text("/version") == "two");
    // A mistake stands in the column that an editor shows.
    let mistake = format!("{MARK}route(\"/x\").to(\"nowhere\");");
    write(&proxy, mistake.as_bytes());
    let line = proxy.log.wait("reload refused", SOON);
    assert!(line.contains("routes.rhai:1:17"), "{line}");
}

#[test]
fn a_table_may_begin_with_a_byte_order_mark() {
    let routes = r#"
        const T = table("data.json");
        route("/version").respond(|req| respond(200, T.get("version")));
    "#;
    let proxy = serving(routes)
        .file("data.json", &format!("{MARK}{{\"version\": \"one\"}}"))
        .start();
    assert_eq!(proxy.text("/version"), "one");
}
