//! Whose requests are answered: protection against web pages in the operator's browser.
//!
//! A page of any site can send requests to `127.0.0.1`. It can't read the answers, but a reload
//! would happen; and once its own name resolves to `127.0.0.1` (DNS rebinding) it could read them
//! too. Browsers tell both apart from an honest request: by `sec-fetch-site` (Fetch Metadata) and
//! `origin` (RFC 6454 section 7), and by `host`, which holds the name of the page's site.

use http::uri::Authority;
use http::{HeaderMap, Uri, Version};
use std::net::IpAddr;

/// A request that is refused for what it says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// HTTP/1.1 without `host` (RFC 9112 section 3.2), or one that is no authority.
    BadHost,
    /// A loopback listener was asked by a name that isn't a loopback name.
    ForeignHost,
    /// A page of another site is asking.
    CrossSite,
}

/// Checks the authority that the request names. On a loopback listener it must be `localhost`, a
/// name below `.localhost` (RFC 6761 section 6.3) or a loopback address, with any port.
pub(super) fn check_host(
    uri: &Uri,
    headers: &HeaderMap,
    version: Version,
    loopback: bool,
) -> Result<(), Refusal> {
    let Some(authority) = authority(uri, headers)? else {
        // Only a browser can be tricked, and browsers send it.
        return if version <= Version::HTTP_10 {
            Ok(())
        } else {
            Err(Refusal::BadHost)
        };
    };
    if loopback && !names_loopback(authority.host()) {
        return Err(Refusal::ForeignHost);
    }
    Ok(())
}

/// Refuses what a page of another site sent. Another port of the same host counts as another site
/// here, although `sec-fetch-site` calls it `same-site`: it may be anybody's application.
pub(super) fn check_same_site(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if !sites.all(|site| site == "same-origin" || site == "none") {
        return Err(Refusal::CrossSite);
    }
    let host = authority(uri, headers)?;
    let same = |origin: &http::HeaderValue| {
        let origin = origin.to_str().ok()?.parse::<Uri>().ok()?;
        let (origin, host) = (origin.authority()?, host.as_ref()?);
        Some(origin == host)
    };
    let mut origins = headers.get_all(http::header::ORIGIN).iter();
    // `null`, the origin of a sandboxed page or a file, has no authority and is refused too.
    if !origins.all(|origin| same(origin) == Some(true)) {
        return Err(Refusal::CrossSite);
    }
    Ok(())
}

/// The authority of the request target, else of `host`. (Pingora refuses two that differ.)
fn authority(uri: &Uri, headers: &HeaderMap) -> Result<Option<Authority>, Refusal> {
    if let Some(authority) = uri.authority() {
        return Ok(Some(authority.clone()));
    }
    let Some(host) = headers.get(http::header::HOST) else {
        return Ok(None);
    };
    let authority = Authority::try_from(host.as_bytes()).map_err(|_| Refusal::BadHost)?;
    Ok(Some(authority))
}

fn names_loopback(host: &str) -> bool {
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    if let Ok(address) = literal.unwrap_or(host).parse::<IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let fields = fields.iter();
        fields
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append::<http::HeaderName>(name, value);
                map
            })
    }

    fn host(uri: &str, fields: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let uri = uri.parse().unwrap();
        check_host(&uri, &headers(fields), Version::HTTP_11, true)
    }

    #[test]
    fn loopback_names_and_addresses_pass() {
        for name in [
            "localhost",
            "LocalHost:9180",
            "localhost.:9180",
            "edge.localhost",
            "127.0.0.1:9180",
            "127.8.9.10",
            "[::1]:9180",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(host("/", &[("host", name)]), Ok(()), "{name}");
        }
        assert_eq!(host("http://localhost/", &[]), Ok(()));
    }

    #[test]
    fn other_names_are_foreign() {
        for name in [
            "evil.example:9180",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[2001:db8::1]:9180",
            "2130706433",
        ] {
            let refused = host("/", &[("host", name)]);
            assert_eq!(refused, Err(Refusal::ForeignHost), "{name}");
        }
        let target = host("http://evil.example/", &[("host", "localhost")]);
        assert_eq!(target, Err(Refusal::ForeignHost));
    }

    #[test]
    fn elsewhere_than_on_loopback_any_name_passes() {
        let fields = headers(&[("host", "edge.internal:9180")]);
        let uri = Uri::from_static("/");
        let checked = check_host(&uri, &fields, Version::HTTP_11, false);
        assert_eq!(checked, Ok(()));
    }

    #[test]
    fn a_missing_host_passes_in_http_1_0_only() {
        let (uri, none) = (Uri::from_static("/"), HeaderMap::new());
        let check = |version| check_host(&uri, &none, version, true);
        assert_eq!(check(Version::HTTP_10), Ok(()));
        assert_eq!(check(Version::HTTP_11), Err(Refusal::BadHost));
        assert_eq!(host("/", &[("host", "a b")]), Err(Refusal::BadHost));
        assert_eq!(host("/", &[("host", "")]), Err(Refusal::BadHost));
    }

    fn site(fields: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let mut all = headers(fields);
        all.insert("host", "localhost:9180".parse().unwrap());
        check_same_site(&Uri::from_static("/reload"), &all)
    }

    #[test]
    fn tools_and_the_listeners_own_page_may_reload() {
        assert_eq!(site(&[]), Ok(()));
        assert_eq!(site(&[("sec-fetch-site", "none")]), Ok(()));
        let own = [
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://localhost:9180"),
        ];
        assert_eq!(site(&own), Ok(()));
    }

    #[test]
    fn pages_of_other_sites_may_not() {
        for fields in [
            [("sec-fetch-site", "cross-site")].as_slice(),
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "")],
            &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://evil.example")],
            &[("origin", "http://localhost:3000")],
            &[("origin", "http://localhost:9180.evil.example")],
            &[("origin", "null")],
            &[("origin", "")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example"),
            ],
        ] {
            assert_eq!(site(fields), Err(Refusal::CrossSite), "{fields:?}");
        }
    }
}
