//! `docs/reference.md` is what the tables say.

use std::{fs, path::Path};

use edgewright_script::reference::markdown;

/// Set, the file is written anew.
const UPDATE: &str = "EDGEWRIGHT_UPDATE_DOCS";

#[test]
fn the_page_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference.md");
    let made = markdown();
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&page, &made).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    }
    let kept = fs::read_to_string(&page).unwrap_or_default();
    let mut lines = kept.lines().zip(made.lines()).enumerate();
    let first = lines.find(|(_, (kept, made))| kept != made);
    assert!(
        kept == made,
        "docs/reference.md is not what script-api/src/reference/ says (line {}): write it anew with\n\
         {UPDATE}=1 cargo nextest run -p edgewright-script --test reference",
        first.map_or(
            kept.lines().count().min(made.lines().count()),
            |(index, _)| index
        ) + 1,
    );
}
