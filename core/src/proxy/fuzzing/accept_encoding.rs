//! Which coding a client is given of those that it names.

use edgewright_script::program::ContentCoding;

use crate::proxy::compress::accepted::best;

/// The input is the lines of Accept-Encoding.
pub fn accept_encoding(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let all = ContentCoding::ALL;
    let chosen = |more: &str| best(text.lines().chain([more]), &all);
    let names = |name: &str| text.to_ascii_lowercase().contains(name);
    if let Some(coding) = best(text.lines(), &all) {
        assert!(names(&coding.name().to_ascii_lowercase()) || names("*"));
        assert_eq!(best(text.lines(), &[coding]), Some(coding));
    }
    assert_eq!(best(text.lines(), &[]), None);

    // What comes last counts.
    let refused: Vec<String> = all
        .iter()
        .map(|coding| format!("{};q=0", coding.name()))
        .collect();
    let refused = refused.join(",");
    assert_eq!(chosen(&refused), None);
    assert_eq!(
        chosen("*;q=0, identity;q=1, gzip;q=0.999, br;q=0, zstd;q=0"),
        None
    );
    for coding in all {
        let liked = format!("{refused}, identity;q=0, {};q=1", coding.name());
        assert_eq!(chosen(&liked), Some(coding));
    }
}
