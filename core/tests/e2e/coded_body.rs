//! Case coded-body: the upstream's response is compressed, and a hook rewrites it (apisix 10562, 7736).

use std::io::Write;

use crate::support::client::get;
use crate::support::launch::serving;
use crate::support::upstream::{Upstream, answer};
use crate::support::wait::SOON;

const TEXT: &str = "a secret number: 1234";

fn coded(coding: &str) -> Vec<u8> {
    let mut coded = Vec::new();
    match coding {
        "gzip" => {
            let mut coder = flate2::write::GzEncoder::new(&mut coded, flate2::Compression::best());
            coder.write_all(TEXT.as_bytes()).unwrap();
            coder.finish().unwrap();
        }
        "br" => brotli::CompressorWriter::new(&mut coded, 4096, 5, 22)
            .write_all(TEXT.as_bytes())
            .unwrap(),
        "zstd" => coded = zstd::stream::encode_all(TEXT.as_bytes(), 3).unwrap(),
        _ => coded = TEXT.into(),
    }
    coded
}

const HOOKS: &str = r#"
    const DIGITS = regex("[0-9]");
    fn mask(req, res) { res.set_body(DIGITS.replace_all(res.body().text(), "*")); }
    route("/whole/{coding}").on_response_body(mask).to("web");
    route("/pieces/{coding}").on_response_body(#{ stream: true, hold: "16B" }, mask).to("web");
"#;

#[test]
fn what_can_be_decoded_is_rewritten_and_the_rest_passes_as_it_is() {
    let web = Upstream::start(|seen| {
        let target = seen.target();
        let coding = target.rsplit('/').next().unwrap();
        answer(200, &[("Content-Encoding", coding)], coded(coding))
    });
    let proxy = serving(HOOKS).pool("web", web.address()).start();
    for way in ["whole", "pieces"] {
        for coding in ["gzip", "br", "zstd", "identity"] {
            let request = get(&format!("/{way}/{coding}"));
            let response = proxy.send(&request.header("Accept-Encoding", "gzip, br, zstd"));
            assert_eq!(response.text(), "a secret number: ****", "{way} {coding}");
            let left = response.header("content-encoding");
            assert!(left.is_none_or(|left| left == "identity"), "{left:?}");
        }
        let unknown = proxy.get(&format!("/{way}/dcz"));
        assert_eq!(unknown.text(), TEXT);
        assert_eq!(unknown.header("content-encoding"), Some("dcz"));
        assert_eq!(unknown.header("content-length"), Some("21"));
    }
    proxy.log.wait_nth("body hooks not run", 2, SOON);
}

#[test]
fn what_is_no_such_coding_is_a_502() {
    let web = Upstream::start(|_| answer(200, &[("Content-Encoding", "gzip")], TEXT));
    let proxy = serving(HOOKS).pool("web", web.address()).start();
    assert_eq!(proxy.get("/whole/gzip").status, 502);
}

#[test]
fn a_bomb_is_stopped() {
    let mut bomb = Vec::new();
    let mut coder = flate2::write::GzEncoder::new(&mut bomb, flate2::Compression::best());
    coder.write_all(&vec![b' '; 10_000_000]).unwrap();
    coder.finish().unwrap();
    let web = Upstream::start(move |_| answer(200, &[("Content-Encoding", "gzip")], &bomb));
    let proxy = serving(HOOKS).pool("web", web.address()).start();
    assert_eq!(proxy.get("/whole/gzip").status, 500);
    // Nothing of it was sent yet: header and first piece are written together.
    assert_eq!(proxy.get("/pieces/gzip").status, 500);
}
