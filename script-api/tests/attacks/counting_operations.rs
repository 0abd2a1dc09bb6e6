//! Operations are counted wherever they happen: a hook that counts its own steps in a header of the
//! request never gets further than its budget.

use edgewright_script::{engine::Limits, memory::MemoryRequest};

use crate::harness::{on_a_worker, runner, unhurried};

/// Steps that the hook made before its budget ended it.
fn steps(body: &str) -> u64 {
    let source = format!(
        "route(\"/a\").on_request(|req| {{\n{body}\n}}).to(\"web\");
        fn step(req) {{ req.set_header(\"x-steps\", num(req.header(\"x-steps\")) + 1); }}"
    );
    on_a_worker(move || {
        let mut edge = runner(&source, unhurried());
        let mut request = MemoryRequest::new("GET", "h", "/a").with_header("x-steps", "0");
        edge.run(&mut request).unwrap_err();
        request.headers["x-steps"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap()
    })
}

#[test]
fn no_step_is_lost() {
    let plain = steps("loop { step(req); }");
    // A step is a handful of operations.
    let budget = Limits::default().operations;
    assert!(plain > budget / 50 && plain < budget / 2, "{plain} steps");
    let hundred = "let hundred = []; hundred.pad(100, 0);";
    for body in [
        format!(
            "{hundred} hundred.map(|x| {{ {hundred} hundred.map(|y| {{ for n in 0..1000 {{ step(req); }} }}) }});"
        ),
        format!("{hundred} loop {{ hundred.for_each(|x| {{ step(req); }}); }}"),
        format!("{hundred} loop {{ hundred.filter(|x| {{ step(req); true }}); }}"),
        format!("{hundred} loop {{ hundred.reduce(|s, x| {{ step(req); x }}, 0); }}"),
        format!("{hundred} loop {{ hundred.sort(|x, y| {{ step(req); 0 }}); }}"),
        format!(
            "{hundred} loop {{ try {{ hundred.map(|x| {{ step(req); throw 1; }}) }} catch {{}} }}"
        ),
        "let f = |x| { step(req); }; loop { f.call(1); }".to_owned(),
        "loop { try { step(req); throw 1; } catch {} }".to_owned(),
    ] {
        let counted = steps(&body);
        assert!(
            counted > 100 && counted <= plain,
            "{counted} steps, {plain} in a plain loop: {body}"
        );
    }
}
