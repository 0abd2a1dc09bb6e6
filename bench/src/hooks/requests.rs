//! The requests that the hooks run on.

use edgewright_script::memory::MemoryRequest;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::load::{self, BLUE, BROWSER_FIELDS, GREEN, KEY_HEADER, PATH, VARIANT_HEADER};

/// How many different requests the measured calls go through: more than one, because the same bytes
/// each time are what no cache and no branch predictor ever sees in service.
pub(super) const COUNT: usize = 64;

/// Requests with good keys, half of them for either pool.
pub(super) fn measured() -> Vec<MemoryRequest> {
    load::keys()
        // Keys from all over the table.
        .step_by(load::keys().count() / COUNT)
        .take(COUNT)
        .enumerate()
        .map(|(number, (key, _))| {
            let variant = if number % 2 == 0 { BLUE } else { GREEN };
            request(Some(key.as_bytes()), Some(variant.as_bytes()))
        })
        .collect()
}

/// A request with this key and variant; a text that can't stand in a header is left out.
pub(super) fn request(key: Option<&[u8]>, variant: Option<&[u8]>) -> MemoryRequest {
    let mut request = MemoryRequest::new("GET", "bench.test", PATH);
    let fields = [("host", "bench.test".as_bytes())]
        .into_iter()
        .chain(BROWSER_FIELDS.map(|(name, value)| (name, value.as_bytes())))
        .chain(key.map(|key| (KEY_HEADER, key)))
        .chain(variant.map(|variant| (VARIANT_HEADER, variant)));
    request.headers = fields
        .filter_map(|(name, value)| {
            Some((
                HeaderName::from_static(name),
                HeaderValue::from_bytes(value).ok()?,
            ))
        })
        .collect::<HeaderMap>();
    request
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn they_have_eight_fields_and_differ() {
        let requests = measured();
        assert_eq!(requests.len(), COUNT);
        assert!(requests.iter().all(|request| request.headers.len() == 8));
        let keys: HashSet<_> = requests
            .iter()
            .map(|request| request.headers[KEY_HEADER].clone())
            .collect();
        assert_eq!(keys.len(), COUNT);
        let green = requests
            .iter()
            .filter(|request| request.headers[VARIANT_HEADER] == GREEN);
        assert_eq!(green.count(), COUNT / 2);
    }
}
