//! A system whose root certificates are missing, or not all in order.

use crate::support::launch::serving;
use crate::support::upstream::{Upstream, ok};

#[test]
fn the_proxy_starts_and_serves() {
    let web = Upstream::start(|_| ok("here"));
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.pem");
    let text = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    std::fs::write(&broken, text).unwrap();
    for file in ["/nonexistent/roots.pem", broken.to_str().unwrap()] {
        let proxy = serving(r#"route("/{*rest}").to("web");"#)
            .pool("web", web.address())
            .environment("SSL_CERT_FILE", file)
            .start();
        assert_eq!(proxy.get("/x").status, 200, "{file}");
    }
}
