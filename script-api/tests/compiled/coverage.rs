//! How many of the hooks of the examples are compiled.

use edgewright_script::engine::Way;

use crate::{both::Both, examples};

#[test]
fn nearly_all_hooks_of_the_examples_are_compiled() {
    let (mut hooks, mut interpreted) = (0, Vec::new());
    for (name, inputs) in examples::all() {
        let both = Both::load(&inputs).unwrap_or_else(|why| panic!("{name}: {why}"));
        for way in both.compiled.ways() {
            hooks += 1;
            if let Way::Unknown { construct, place } = way {
                interpreted.push(format!("{name}, {place}: {construct}"));
            }
        }
        assert!(
            both.interpreted
                .ways()
                .iter()
                .all(|way| *way == Way::Interpreted)
        );
    }
    println!(
        "{} of {hooks} hooks are compiled; the others: {interpreted:#?}",
        hooks - interpreted.len()
    );
    assert!(hooks > 40, "{hooks}");
    assert!(interpreted.len() * 20 <= hooks, "{interpreted:#?}");
}
