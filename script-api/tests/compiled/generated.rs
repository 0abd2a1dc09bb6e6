//! Programs made by chance.

use edgewright_script::memory::MemoryRequest;

use crate::{
    both::{Both, response},
    generator::Generator,
    support,
};

const HEAD: &str = r#"
const KEYS = table("keys.json");
const DIGITS = regex("[0-9]+");
const LIMIT = 5;
const NAMES = ["x", "y"];
const OPTIONS = #{ a: 1, b: #{ c: "d" } };
fn double(x) { x + x }
fn either(a, b) { if type_of(a) == "string" { return b; } a }
"#;

/// Programs that are tried.
fn programs() -> u64 {
    match std::env::var("EDGEWRIGHT_SOAK") {
        Ok(_) => 6_000,
        Err(_) => 400,
    }
}

fn program(seed: u64) -> String {
    let body = Generator::new(seed).body();
    format!("{HEAD}route(\"/{{*rest}}\").on_request(|req| {{\n{body}}}).to(\"web\");\n")
}

fn request() -> MemoryRequest {
    MemoryRequest::new("GET", "any.example", "/a/b?q=1&q=two").with_header("x-number", "42")
}

#[test]
fn programs_made_by_chance_mean_the_same() {
    let (mut loaded, mut well) = (0, 0);
    let mut refused = String::new();
    for seed in 0..programs() {
        let program = program(seed);
        let mut inputs = support::inputs(&program);
        let mut both = match Both::load(&inputs) {
            Ok(both) => both,
            Err(why) => {
                refused = why;
                continue;
            }
        };
        loaded += 1;
        let about = format!("seed {seed}\n{program}");
        let seen = both.compare(&request(), &response(), &about);
        well += u64::from(seen.iter().all(|seen| seen.ended.is_ok()));
        // The same with so few operations that it ends somewhere in the middle.
        for operations in [3 + seed % 17, 20 + seed % 41] {
            inputs.limits.operations = operations;
            let Ok(mut both) = Both::load(&inputs) else {
                continue;
            };
            let about = format!("{operations} operations, {about}");
            both.compare(&request(), &response(), &about);
        }
    }
    println!(
        "{loaded} of {} programs loaded, {well} ended well",
        programs()
    );
    // A generator whose programs are all refused, or all fail at once, compares nothing.
    assert!(
        loaded * 4 > programs(),
        "only {loaded} programs load; the last one that doesn't: {refused}"
    );
    assert!(well * 10 > loaded, "only {well} of {loaded} end well");
}
