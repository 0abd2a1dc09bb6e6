//! Which route answers: by specificity, whatever the order they are written in.

use crate::support::client::{get, request};
use crate::support::launch::serving;

const ROUTES: [&str; 7] = [
    r#"route("/").respond(200, "root");"#,
    r#"route("/items/{id}").respond(200, "one");"#,
    r#"route("/items/new").respond(200, "new");"#,
    r#"route("/items/{*rest}").respond(200, "rest");"#,
    r#"route("/items/{id}/edit").respond(200, "edit");"#,
    r#"route("/items/new/{*rest}").respond(200, "new rest");"#,
    r#"route("/files/{*path}").respond(200, "files");"#,
];

const EXPECTED: [(&str, u16, &str); 14] = [
    ("/", 200, "root"),
    ("/?x=1", 200, "root"),
    ("/items/new", 200, "new"),
    ("/items/7", 200, "one"),
    ("/items/new?id=7", 200, "new"),
    ("/items/7/edit", 200, "edit"),
    ("/items/7/other", 200, "rest"),
    ("/items/7/edit/more", 200, "rest"),
    // Segment by segment from the left: the literal `new` is decided before what follows it.
    ("/items/new/edit", 200, "new rest"),
    ("/items", 200, "rest"),
    ("/items/", 200, "rest"),
    ("/files", 200, "files"),
    ("/files/a/b/c", 200, "files"),
    ("/filesystem", 404, ""),
];

fn check(routes: &str) {
    let proxy = serving(routes).start();
    for (target, status, body) in EXPECTED {
        let response = proxy.get(target);
        assert_eq!(response.status, status, "{target} with\n{routes}");
        if status == 200 {
            assert_eq!(response.text(), body, "{target} with\n{routes}");
        }
    }
}

#[test]
fn the_most_specific_route_answers() {
    check(&ROUTES.join("\n"));
}

#[test]
fn the_order_in_the_file_does_not_matter() {
    let mut reversed = ROUTES;
    reversed.reverse();
    check(&reversed.join("\n"));
}

#[test]
fn root_is_only_root() {
    let proxy = serving(r#"route("/").respond(200, "root");"#).start();
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(proxy.get("/x").status, 404);
    assert_eq!(proxy.get("/index.html").status, 404);
}

#[test]
fn a_catch_all_matches_root_too() {
    let proxy = serving(
        r#"
        route("/{*rest}").respond(|req| respond(200, "[" + req.param("rest") + "]"));
        "#,
    )
    .start();
    assert_eq!(proxy.text("/"), "[]");
    assert_eq!(proxy.text("/a"), "[a]");
    assert_eq!(proxy.text("/a/b/"), "[a/b/]");
}

#[test]
fn captures_stay_percent_encoded() {
    let proxy = serving(
        r#"
        route("/users/{id}/{*rest}").respond(|req| {
            respond(200, req.param("id") + "|" + req.param("rest"))
        });
        route("/params/{id}").respond(|req| respond(200, req.params.id));
        "#,
    )
    .start();
    assert_eq!(proxy.text("/users/a%20b/c%20d/e"), "a%20b|c%20d/e");
    assert_eq!(proxy.text("/users/%61/x"), "a|x");
    assert_eq!(proxy.text("/params/a%20b"), "a%20b");
}

#[test]
fn a_method_that_no_route_takes_is_405_with_allow() {
    let proxy = serving(
        r#"
        route("/m").methods(["GET", "POST"]).respond(200, "m");
        route("/m").methods(["DELETE"]).respond(200, "gone");
        "#,
    )
    .start();
    assert_eq!(proxy.text("/m"), "m");
    assert_eq!(proxy.send(&request("DELETE", "/m")).text(), "gone");
    let refused = proxy.send(&request("PUT", "/m").body("x"));
    assert_eq!(refused.status, 405);
    let allow = refused.header("allow").expect("Allow on a 405");
    let allowed: Vec<&str> = allow.split(',').map(str::trim).collect();
    for method in ["GET", "POST", "DELETE"] {
        assert!(allowed.contains(&method), "Allow: {allow}");
    }
    assert!(!allowed.contains(&"PUT"), "Allow: {allow}");
    assert_eq!(proxy.send(&request("PUT", "/other").body("x")).status, 404);
}

#[test]
fn a_route_that_names_the_method_wins_over_one_that_does_not() {
    let proxy = serving(
        r#"
        route("/t").respond(200, "any");
        route("/t").methods(["POST"]).respond(200, "post");
        "#,
    )
    .start();
    assert_eq!(proxy.text("/t"), "any");
    assert_eq!(proxy.send(&request("POST", "/t").body("")).text(), "post");
    assert_eq!(proxy.send(&request("PUT", "/t").body("")).text(), "any");
}

#[test]
fn head_gets_the_headers_of_a_local_answer_and_no_body() {
    let proxy = serving(r#"route("/h").respond(200, "four");"#).start();
    let mut connection = crate::support::client::Connection::open(proxy.address()).unwrap();
    let head = connection.send(&request("HEAD", "/h")).unwrap();
    assert_eq!(head.status, 200);
    // The next answer on the same connection is whole: no body was in between.
    let next = connection.send(&get("/h")).unwrap();
    assert_eq!((next.status, next.text().as_str()), (200, "four"));
}
