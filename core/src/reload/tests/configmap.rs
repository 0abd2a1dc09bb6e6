//! ConfigMap mounts, updated in the kubelet's way.

use super::atomic_writer::AtomicWriter;
use super::*;

fn mount(content: &str) -> (Site, AtomicWriter) {
    let site = Site::empty();
    let writer = AtomicWriter::new(&site.dir);
    assert!(writer.publish(&[("routes.rhai", content)]).unwrap());
    (site, writer)
}

#[test]
fn the_writer_makes_the_layout_of_a_mount() {
    let (site, writer) = mount("one");
    let data = fs::read_link(site.dir.join("..data")).unwrap();
    assert!(data.to_str().unwrap().starts_with("..2"), "{data:?}");
    let link = fs::read_link(site.file()).unwrap();
    assert_eq!(link, Path::new("..data/routes.rhai"));
    assert!(!writer.publish(&[("routes.rhai", "one")]).unwrap());
    assert_eq!(fs::read_link(site.dir.join("..data")).unwrap(), data);

    let files = [("certs/tls.key", "key"), ("keys.json", "{}")];
    assert!(writer.publish(&files).unwrap());
    assert!(!site.dir.join(data).exists(), "the old folder is gone");
    assert!(!site.file().is_symlink(), "the link of a key that went");
    let read = |name| fs::read_to_string(writer.dir().join(name)).unwrap();
    assert_eq!(read("certs/tls.key"), "key");
    assert_eq!(read("keys.json"), "{}");
}

#[test]
fn each_swap_is_noticed() {
    let (site, writer) = mount("one");
    let reload = site.start(EVENTS_ONLY);
    for (count, content) in (1..).zip(["two", "three", "four"]) {
        writer.publish(&[("routes.rhai", content)]).unwrap();
        let status = serves(&reload, content);
        assert_eq!(status.counts.loaded, count);
        assert_eq!(status.counts.failed, 0, "nothing half done was read");
    }
}

#[test]
fn a_swap_is_live_within_two_seconds_at_the_default_pace() {
    let (site, writer) = mount("one");
    let reload = site.start(Options::default());
    for content in ["two", "three", "four"] {
        let begin = Instant::now();
        writer.publish(&[("routes.rhai", content)]).unwrap();
        serves(&reload, content);
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

#[test]
fn a_swap_that_changes_other_keys_only_reloads_nothing() {
    let (site, writer) = mount("one");
    let reload = site.start(EVENTS_ONLY);
    let before = site.probe.checks();
    let files = [("routes.rhai", "one"), ("other", "new")];
    assert!(writer.publish(&files).unwrap());
    eventually("the swap is noticed", || site.probe.checks() > before);
    assert_eq!(site.probe.attempts(), 0);
    assert_eq!(reload.status().last_attempt, None);
    assert_eq!(reload.status().counts, Default::default());
}

#[test]
fn bad_then_good() {
    let (site, writer) = mount("one");
    let reload = site.start(EVENTS_ONLY);
    writer.publish(&[("routes.rhai", "bad hook")]).unwrap();
    let status = refused(&reload, "routes.rhai:1:1: error: bad hook");
    assert_eq!(status.revision, revision("one"), "the last good one serves");
    assert_eq!(
        status.last_attempt.as_ref().unwrap().result.as_str(),
        "failed"
    );
    writer.publish(&[("routes.rhai", "two")]).unwrap();
    let status = serves(&reload, "two");
    assert_eq!((status.counts.loaded, status.counts.failed), (1, 1));
    assert!(status.loaded_at >= status.last_attempt.as_ref().unwrap().at);
}

#[test]
fn bad_then_taken_back() {
    let (site, writer) = mount("one");
    let reload = site.start(EVENTS_ONLY);
    writer.publish(&[("routes.rhai", "bad")]).unwrap();
    refused(&reload, "bad");
    writer.publish(&[("routes.rhai", "one")]).unwrap();
    let status = serves(&reload, "one");
    assert_eq!((status.counts.loaded, status.counts.unchanged), (0, 1));
}

#[test]
fn a_mount_on_a_folder_behind_the_data_link() {
    // A projected volume with a folder in its key: the folder itself is replaced by each swap.
    let site = Site::empty();
    let writer = AtomicWriter::new(site.root.path().join("mount"));
    fs::create_dir(writer.dir()).unwrap();
    writer.publish(&[("app/routes.rhai", "one")]).unwrap();
    let site = Site {
        dir: writer.dir().join("app"),
        ..site
    };
    site.watch_only(&[&site.dir]);
    let reload = site.start(EVENTS_ONLY);
    for content in ["two", "three", "four"] {
        writer.publish(&[("app/routes.rhai", content)]).unwrap();
        serves(&reload, content);
    }
}
