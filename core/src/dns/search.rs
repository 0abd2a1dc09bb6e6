//! The search list of resolv.conf(5), expanded here because the library's own expansion reports a
//! failed candidate followed by a missing one as "no such name".

use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::Name;

/// The `search` domains and the `ndots` option.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SearchList {
    domains: Vec<Name>,
    ndots: usize,
}

impl SearchList {
    pub(super) fn new(domains: impl IntoIterator<Item = Name>, ndots: usize) -> Self {
        let absolute = |mut domain: Name| {
            domain.set_fqdn(true);
            domain
        };
        Self {
            domains: domains.into_iter().map(absolute).collect(),
            ndots,
        }
    }

    /// The absolute names that `host` may stand for, in the order in which they are tried.
    ///
    /// A trailing dot makes a name absolute. A name with at least `ndots` dots is tried as written
    /// first, others last. In addition to resolv.conf(5), a name that already ends in a search
    /// domain is tried as written first: in a pod (`ndots:5`, search domains that end in the
    /// cluster's domain) this saves three pointless lookups for `web.default.svc.cluster.local`.
    pub(super) fn candidates(&self, host: &str) -> Result<Vec<Name>, ProtoError> {
        let written: Name = host.parse()?;
        if written.is_fqdn() {
            return Ok(vec![written]);
        }
        let mut absolute = written.clone();
        absolute.set_fqdn(true);
        let dots = usize::from(written.num_labels()).saturating_sub(1);
        let complete = |domain: &Name| !domain.is_root() && domain.zone_of(&absolute);
        let as_written_first = dots >= self.ndots || self.domains.iter().any(complete);

        // A name that grows too long with a domain can't exist there.
        let searched = self
            .domains
            .iter()
            .filter_map(|domain| written.clone().append_domain(domain).ok());
        let mut names = Vec::with_capacity(self.domains.len() + 1);
        if as_written_first {
            names.push(absolute);
            names.extend(searched);
        } else {
            names.extend(searched);
            names.push(absolute);
        }
        let mut unique: Vec<Name> = Vec::with_capacity(names.len());
        for name in names {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        Ok(unique)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn expand(domains: &[&str], ndots: usize, host: &str) -> Vec<String> {
        let domains = domains.iter().map(|domain| domain.parse().unwrap());
        let list = SearchList::new(domains, ndots);
        let names = list.candidates(host).unwrap();
        names.iter().map(|name| name.to_ascii()).collect()
    }

    const POD: [&str; 3] = [
        "shop.svc.cluster.local",
        "svc.cluster.local",
        "cluster.local",
    ];

    #[test]
    fn short_names_go_through_the_list_in_a_pod() {
        let expected = [
            "web.shop.svc.cluster.local.",
            "web.svc.cluster.local.",
            "web.cluster.local.",
            "web.",
        ];
        assert_eq!(expand(&POD, 5, "web"), expected);
        assert_eq!(
            expand(&POD, 5, "web.other")[1],
            "web.other.svc.cluster.local."
        );
    }

    #[test]
    fn names_in_the_clusters_domain_are_tried_as_written_first() {
        let names = expand(&POD, 5, "web.default.svc.cluster.local");
        assert_eq!(names[0], "web.default.svc.cluster.local.");
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn a_trailing_dot_is_absolute() {
        assert_eq!(expand(&POD, 5, "api.example.com."), ["api.example.com."]);
    }

    #[test]
    fn enough_dots_come_first_and_few_last() {
        let search = ["corp.example"];
        assert_eq!(
            expand(&search, 1, "api.example.com"),
            ["api.example.com.", "api.example.com.corp.example."]
        );
        assert_eq!(expand(&search, 1, "api"), ["api.corp.example.", "api."]);
        assert_eq!(expand(&[], 1, "api"), ["api."]);
        assert_eq!(expand(&["."], 1, "api"), ["api."]);
    }

    #[test]
    fn underscores_pass_and_nonsense_is_an_error() {
        assert_eq!(expand(&[], 1, "my_db"), ["my_db."]);
        let list = SearchList::default();
        assert!(list.candidates(&"a".repeat(64)).is_err());
        assert!(list.candidates("a..b").is_err());
    }
}
