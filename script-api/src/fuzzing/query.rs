//! Queries: reading, and changes that leave the rest alone.

use crate::request::{form_decode, query, query_values};

/// The input is a name, a value and a query, a line each.
pub fn query(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let ([name, value], sent) = super::lines(text);
    let values = |query: &str| -> Vec<String> {
        let values = query_values(query, name);
        values.map(|value| value.into_owned()).collect()
    };
    let others = |query: &str| -> Vec<String> {
        let others = query.split('&').filter(|one| !is_called(one, name));
        others.map(ToOwned::to_owned).collect()
    };
    let before = values(sent);

    let added = query::add(sent, name, value);
    assert!(added.starts_with(sent));
    let set = query::set(sent, name, value);
    let removed = query::remove(sent, name);
    if !name.is_empty() {
        let mut expected = before.clone();
        expected.push(value.to_owned());
        assert_eq!(values(&added), expected);
        assert_eq!(values(&set), [value]);
        assert_eq!(removed.is_none(), before.is_empty());
        assert_eq!(values(removed.as_deref().unwrap_or(sent)), [""; 0]);
    }
    if let Some(removed) = &removed {
        // Without any parameter, a query is one empty text.
        let expected = others(sent);
        assert_eq!(
            removed.split('&').collect::<Vec<_>>().join("&"),
            expected.join("&")
        );
    }
    if !before.is_empty() {
        assert_eq!(others(&set), others(sent));
    }

    let names = query::names(sent);
    for (index, one) in names.iter().enumerate() {
        assert!(!names[..index].contains(one), "{one} is there twice");
        assert!(one.is_empty() || query_values(sent, one).next().is_some());
    }

    let sorted = query::sorted(sent);
    assert_eq!(query::sorted(&sorted), sorted);
    let mut parameters: Vec<&str> = sent.split('&').filter(|one| !one.is_empty()).collect();
    let mut kept: Vec<&str> = sorted.split('&').filter(|one| !one.is_empty()).collect();
    parameters.sort_unstable();
    kept.sort_unstable();
    assert_eq!(kept, parameters);
    assert_eq!(
        values(&sorted),
        before,
        "those of one name keep their order"
    );

    let whole = query::whole(sent);
    assert!(
        whole
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    );
    assert_eq!(query::whole(&whole), whole);
    assert_eq!(values(&whole), before);
}

fn is_called(parameter: &str, name: &str) -> bool {
    let written = parameter.split('=').next().unwrap_or_default();
    !parameter.is_empty() && form_decode(written) == name
}
