//! Each construct of the language, and each way to fail in it.

use edgewright_script::memory::MemoryRequest;

use crate::{
    both::{Both, response},
    support,
};

/// Bodies of hooks. `b` is the request; what they keep under a name is compared.
const BODIES: &[&str] = &[
    // Numbers.
    "req.set(\"v\", 7 + 3 * 2 - 8 / 3 % 2);",
    "let a = 9223372036854775807; req.set(\"v\", a + 1);",
    "let a = -9223372036854775807 - 1; req.set(\"v\", -a);",
    "let a = 5; let z = 0; req.set(\"v\", a / z);",
    "let a = 5; let z = 0; req.set(\"v\", a % z);",
    "req.set(\"v\", 2.5 * 2); req.set(\"w\", 7 / 2.0);",
    "req.set(\"v\", 6 & 3 | 8); req.set(\"w\", 1 << 4);",
    "req.set(\"v\", 2 ** 10);",
    "let week = 7 * 24 * 60 * 60; req.set(\"v\", week + 1 - (2 * 3)); req.set(\"w\", \"a\" + \"b\" + \"c\");",
    "req.set(\"v\", 9223372036854775807 + 1 * 2);",
    // Texts.
    "req.set(\"v\", \"a\" + \"b\" + 5);",
    "let t = \"a\"; t += \"b\"; t += 'c'; req.set(\"v\", t);",
    "req.set(\"v\", `${1 + 1} ${\"x\"} ${()} ${[1, \"a\"]} ${2.5} ${true}`);",
    "let t = \"hello\"; req.set(\"v\", t.len()); req.set(\"w\", t.to_upper());",
    "let t = \"hello\"; req.set(\"v\", t[1].to_string()); req.set(\"w\", t[-1].to_string());",
    "let t = \"hello\"; req.set(\"v\", t[9].to_string());",
    "let t = \"hello\"; t[0] = 'j'; req.set(\"v\", t);",
    "let t = \"hello\"; t.make_upper(); req.set(\"v\", t);",
    "let t = \"a,b\"; req.set(\"v\", t.split(\",\")); req.set(\"w\", t.split(\",\")[1]);",
    "let t = \"x\"; loop { t += t; }",
    // Comparisons.
    "req.set(\"v\", [1 == 1, 1 == 2, \"a\" == \"a\", \"a\" == (), () == (), true == true, 1 == \"1\"]);",
    "req.set(\"v\", [1 != 1, \"a\" != \"b\", \"a\" != (), () != (), true != false]);",
    "req.set(\"v\", [1 < 2, 2 <= 2, 3 > 4, \"a\" < \"b\", 1.5 > 1]);",
    "let h = req.header(\"x-number\"); req.set(\"v\", h < 5);",
    "req.set(\"v\", [[1, 2] == [1, 2], #{ a: 1 } == #{ a: 1 }, [1] != [2]]);",
    "req.set(\"v\", [1 in [1, 2], \"b\" in \"abc\", \"a\" in #{ a: 1 }, 3 in 0..5]);",
    "req.set(\"v\", !(1 in [2]));",
    // Conditions.
    "if req.path == \"/\" { req.set(\"v\", 1); } else if req.path == \"/a\" { req.set(\"v\", 2); } else { req.set(\"v\", 3); }",
    "if 5 { req.set(\"v\", 1); }",
    "let x = (); if x { req.set(\"v\", 1); }",
    "let x = 3; if x > 2 && x < 5 || x == 9 { req.set(\"v\", 1); }",
    "let x = \"a\"; if x && true { req.set(\"v\", 1); }",
    "let x = 1; let y = if x == 1 { \"one\" } else { \"other\" }; req.set(\"v\", y);",
    "let x = (); req.set(\"v\", x ?? 5); req.set(\"w\", x ?? req.header(\"none\") ?? \"end\");",
    "let x = !true; req.set(\"v\", x); let y = 5; req.set(\"w\", !y);",
    // Questions to the request.
    "if req.path == \"/a/b\" { return; } req.set(\"v\", 1);",
    "if req.path != \"/a/b\" { return; } req.set(\"v\", 1);",
    "if req.header(\"x-number\") == \"42\" && req.method == \"GET\" { return; } throw 1;",
    "if req.header(\"x-none\") == () || req.host == \"x\" { return; } throw 1;",
    "if !(req.path.starts_with(\"/a\")) { return; } if req.path.ends_with(\"/b\") { return; } throw 1;",
    "if req.header(\"x-none\").starts_with(\"/a\") { throw 1; } else { return; }",
    "if req.header(\"x-number\") == \"42\" { true } else { false }",
    "if req.scheme == \"http\" { if req.query_string == \"\" { throw 1; } else { return; } } throw 2;",
    "let req = 5; if req == 5 { return; } throw 1;",
    // Loops over whole numbers.
    "let s = 0; for n in 0..1000 { s += n; } req.set(\"v\", s);",
    "let s = 0; for n in 0..=100 { if n % 3 == 0 { continue; } s += n * 2 - 1; if s > 5000 { break; } } req.set(\"v\", s);",
    "let s = 0; let i = 0; while i < 500 { i += 1; s += i; } req.set(\"v\", [s, i]);",
    "let s = 0; loop { s += 1; if s >= 300 { break; } } req.set(\"v\", s);",
    "let s = 0; for n in 0..1000 { } for n in 5..5 { s += 1; } for n in 9..3 { s += 1; } req.set(\"v\", s);",
    "let s = 9223372036854775000; for n in 0..1000 { s += n; } req.set(\"v\", s);",
    "let a = 0; let s = 9223372036854775000; for n in 0..1000 { a += 1; s += n; } req.set(\"v\", s);",
    "let a = 0; let s = 0; for n in 0..100 { a += 1; s += 100 / (50 - n); } req.set(\"v\", s);",
    "let a = 0; let s = 0; for n in 0..100 { a += 1; if n > 70 { s = n % (80 - n); } } req.set(\"v\", s);",
    "let s = 1; for n in 0..100 { s *= -3; } req.set(\"v\", s);",
    "let s = 0; for n in 9223372036854775800..=9223372036854775807 { s = n; } req.set(\"v\", s);",
    "let s = -9223372036854775807 - 1; for n in 0..3 { s = -s; } req.set(\"v\", s);",
    "let s = 0; for n in 0..50 { let d = n * n; let e = d - 1; d += e; s += d; } req.set(\"v\", s);",
    "let s = 0; for n in 0..50 { const d = n; s += d; } req.set(\"v\", s);",
    "let s = 0; for n in 0..50 { const d = n; d = 5; s += d; } req.set(\"v\", s);",
    "const s = 0; for n in 0..50 { s += n; } req.set(\"v\", s);",
    "const k = 3; let s = 0; for n in 0..50 { s += n * k + LIMIT; } req.set(\"v\", s);",
    "let s = 0; for n in 0..50 { n = n * 2; s += n; } req.set(\"v\", s);",
    "let n = 7; let s = 0; for n in 0..10 { let n = n + 1; let s = n; s += 1; } req.set(\"v\", [n, s]);",
    "let s = 0; for n in 0..200 { if n == 150 { s = \"text\"; } else { s += 1; } } req.set(\"v\", s);",
    "let s = \"a\"; for n in 0..5 { s += n; } req.set(\"v\", s);",
    "let s = 1.5; for n in 0..5 { s += n; } req.set(\"v\", s);",
    "let s = (); for n in 0..5 { s = n; } req.set(\"v\", s);",
    "let s = 0; let u = 5; for n in 0..60 { if n > 5 && n < 20 || n == 40 { s += 1; } else if !(n < 30) && !(n == 35 || n > 50) { s += 100; u -= 1; } } req.set(\"v\", [s, u]);",
    "let s = 0; for n in 0..20 { if n > 5 || n < 3 && n != 1 { s += n; } if !(n > 5 && n < 9) { s += 1000; } } req.set(\"v\", s);",
    "let s = 0; for n in 0..30 { for m in 0..n { s += m; if m > 20 { break; } } if s > 900 { break; } } req.set(\"v\", s);",
    "let s = 0; for n in 0..30 { { let q = n; s += q; } ; s -= 1; } req.set(\"v\", s);",
    "let s = 0; let v = for n in 0..30 { s += 1; if n == 7 { break; } }; req.set(\"v\", [s, v]);",
    "let s = 0; let v = for n in 0..30 { s += 1; if n == 7 { break s; } }; req.set(\"v\", [s, v]);",
    "let s = 0; for n in 0..30 { s += 1; if n == 7 { return; } }",
    "let s = 0; for (n, i) in 10..30 { s += n * i; } req.set(\"v\", s);",
    "let s = 0; for n in 0..3 { let f = 1 < 2; if f { s += 1; } } req.set(\"v\", s);",
    "let s = 0; while s < 10 || s % 7 != 0 { s += 3; } req.set(\"v\", s);",
    "let s = 0; do { s += 3; } while s < 1000; req.set(\"v\", s);",
    "let i = 0; while true { i += 1; if i % 2 == 1 { continue; } if i > 99 { break; } } req.set(\"v\", i);",
    "let i = 0; while i < 10 { } req.set(\"v\", i);",
    "let i = 0; while i != \"x\" { i += 1; if i > 50 { i = \"x\"; } } req.set(\"v\", i);",
    "let i = 0; while i { i += 1; }",
    "let i = 0; loop { i += 1; }",
    "let i = 0; loop { i = i; }",
    "let a = 1; let b = 2; let c = 3; let d = 4; let e = 5; let f = 6; let g = 7; let h = 8; for n in 0..40 { a += b; b = (a % 97) * (c + d) - (e * (f - (g * (h - n)))); c = a - b + 11 - 12 * 13; if c > 1000000 { c = 0; } } req.set(\"v\", [a, b, c]);",
    "let a = 1; let b = 2; for n in 0..40 { let c = (a + b) * (a - b) % (1 + 2) + 3; a = b; b = c; let t = a; a = b; b = t; } req.set(\"v\", [a, b]);",
    // Questions to what was kept of it.
    "let path = req.path; if path.starts_with(\"/a\") { return; } throw 1;",
    "let path = req.path; if path == \"/b\" { return; } throw 1;",
    "const n = req.header(\"x-number\"); if n == \"42\" && n != () { return; } throw n;",
    "let path = req.path; let path = req.host; if path.starts_with(\"/a\") { throw 1; } else { return; }",
    "let req = req.path; if req.starts_with(\"/a\") { return; } throw 1;",
    "let req = req.path; if req.path == \"/a/b\" { return; } throw 1;",
    "let path = req.path; path = \"/other\"; if path == \"/a/b\" { throw 1; }",
    "let n = req.header(\"x-none\"); if n == () { if n.starts_with(\"a\") { throw 1; } else { return; } }",
    "let n = req.header(\"no name\"); if n == () { return; } throw 1;",
    // Natives that are known, on what they are for and on something else.
    "let r = req; r.set_header(\"X-Mixed\", 5); r = #{ header: 1 }; req.set(\"v\", r.header(\"x-number\"));",
    "let r = req; req.set(\"v\", r.header(\"x-number\")); r = \"text\"; req.set(\"w\", r.header(\"x-number\"));",
    "let r = [req]; req.set(\"v\", r[0].header(\"x-number\")); r[0].set_header(\"x-a\", \"b\");",
    "const r = req; r.set_header(\"x-a\", \"b\"); req.set(\"v\", r.header(\"x-a\"));",
    "req.set_header(\"x-a\", ()); req.set_header(\"x-b\", 2.5); req.add_header(\"x-b\", true); req.remove_header(\"x-number\");",
    "req.set_header(\"x-a\", [1]);",
    "req.set_header(\"x-a\", \"line\\nend\");",
    "let v = \"line\\nend\"; req.set_header(\"x-a\", v);",
    "req.set_header(\"no name\", \"x\");",
    "req.set_header(\"content-length\", \"5\");",
    "req.add_header(\"transfer-encoding\", \"x\");",
    "req.set_header({ req.set(\"v\", 1); \"x-a\" }, \"b\"); req.set(\"w\", req.header(\"x-a\"));",
    "req.set_header(\"x-a\", { req.set_header(\"x-a\", \"first\"); req.header(\"x-a\") + \"!\" }); req.set(\"v\", req.header(\"x-a\"));",
    "let r = req; r.set_header(\"x-a\", { r = 5; \"b\" });",
    "req.set(\"v\", req.header(\"x-number\").starts_with(\"4\")); req.set(\"w\", req.path.ends_with(req.header(\"x-none\")));",
    "let t = \"hello\"; let w = \"he\"; req.set(\"v\", [t.starts_with(w), t.starts_with('h'), t.ends_with(\"o\"), t.ends_with(())]);",
    "let t = \"hello\"; req.set(\"v\", t.starts_with(5));",
    "let t = [1]; req.set(\"v\", t.starts_with(\"a\"));",
    "req.set(\"v\", \"hello\".starts_with(\"he\")); let m = #{ starts_with: 5 }; req.set(\"w\", m.starts_with(\"a\"));",
    "req.set(\"v\", KEYS.get(\"none\")); req.set(\"w\", KEYS.contains(\"none\")); req.set(\"x\", KEYS.get(5));",
    "let k = KEYS; req.set(\"v\", k.get(req.header(\"x-none\"))); k = #{ get: 5 }; req.set(\"w\", k.get(\"a\"));",
    "req.set(\"v\", [req.method, req.scheme, req.host, req.path, req.raw_path, req.query_string, req.protocol, req.status]);",
    "req.path = \"/else\"; req.set(\"v\", req.path); req.path += \"/more\"; req.set(\"w\", req.path);",
    "req.method = \"POST\";",
    "let r = (); req.set(\"v\", r?.header(\"x\")); req.set(\"w\", req?.header(\"x-number\"));",
    // Sides of operators that change each other.
    "let a = 1; req.set(\"v\", a + { a = 5; a }); req.set(\"w\", { a = 7; a } + a);",
    "let a = \"x\"; if a == { a = \"y\"; \"x\" } { req.set(\"v\", a); }",
    "let a = [1]; req.set(\"v\", a == [1]); let b = a; req.set(\"w\", a == b);",
    "if req.header(\"bad name\") == () { return; } throw 1;",
    "req.method == \"GET\"",
    // Choices.
    "let x = req.method; let y = switch x { \"GET\" => 1, \"POST\" => 2, _ => 3 }; req.set(\"v\", y);",
    "let x = 5; let y = switch x { 1 => \"a\", 5 if x > 9 => \"b\", 3..9 => \"c\", _ => \"d\" }; req.set(\"v\", y);",
    "let x = 4.5; let y = switch x { 4 => \"a\", 3..9 => \"c\", _ => \"d\" }; req.set(\"v\", y);",
    "let x = [1]; switch x { [1] => req.set(\"v\", 1), _ => req.set(\"v\", 2) }",
    "let x = 'c'; switch x { 'a' | 'c' => req.set(\"v\", 1), _ => () }",
    "let x = (); switch x { () => req.set(\"v\", 1) }",
    "let x = 7; switch x { 1 => req.set(\"v\", 1) }",
    // Loops.
    "let n = 0; for i in 0..5 { n += i; } req.set(\"v\", n);",
    "let n = 0; for i in 0..=5 { if i == 2 { continue; } if i == 4 { break; } n += i; } req.set(\"v\", n);",
    "let n = []; for (x, i) in [\"a\", \"b\"] { n.push(x + i); } req.set(\"v\", n);",
    "let n = \"\"; for c in \"héllo\" { n += c; n += \".\"; } req.set(\"v\", n);",
    "let n = 0; for i in range(0, 10, 3) { n += i; } req.set(\"v\", n);",
    "let n = 0; for i in 5 { n += i; }",
    "let n = 0; for i in () { n += 1; }",
    "let n = 0; while n < 7 { n += 2; } req.set(\"v\", n);",
    "let n = 0; loop { n += 1; if n == 4 { break; } } req.set(\"v\", n);",
    "let n = 0; do { n += 1; } while n < 3; req.set(\"v\", n);",
    "let n = 0; do { n += 1; if n == 2 { continue; } } until n > 3; req.set(\"v\", n);",
    "let n = 0; let m = loop { n += 1; if n > 2 { break n * 10; } }; req.set(\"v\", m);",
    "for i in 0..3 { for j in 0..3 { if j == 1 { break; } if i == 2 { return respond(200, `${i}`); } } }",
    "for i in 0..100000 { }",
    "loop { }",
    "while true { }",
    // Variables.
    "let a = 1; { let a = 2; req.set(\"v\", a); } req.set(\"w\", a);",
    "let a = 1; let a = a + 1; req.set(\"v\", a);",
    "const C = 5; req.set(\"v\", C + 1);",
    "let a = 1; a = \"b\"; a = [a, a]; req.set(\"v\", a);",
    "let a = 10; a -= 3; a *= 2; a /= 7; a %= 3; req.set(\"v\", a);",
    "let a = 9223372036854775807; a += 1; req.set(\"v\", a);",
    "let a = (); a += 1; req.set(\"v\", a);",
    "let a = true; a |= false; req.set(\"v\", a);",
    // Arrays and maps.
    "let a = [1, 2, 3]; a[0] = 9; a[-1] += 4; req.set(\"v\", a); req.set(\"w\", a[1]);",
    "let a = [1, 2, 3]; req.set(\"v\", a[3]);",
    "let a = [1, 2, 3]; req.set(\"v\", a[\"x\"]);",
    "let a = [1, 2, 3]; a[7] = 1;",
    "let a = [[1, 2], [3]]; a[0][1] = 5; a[1].push(6); req.set(\"v\", a);",
    "let a = [3, 1, 2]; a.sort(); req.set(\"v\", a); a.clear(); req.set(\"w\", a.len());",
    "let a = [1, 2, 3, 4]; req.set(\"v\", a.filter(|x| x % 2 == 0)); req.set(\"w\", a.map(|x| x * x));",
    "let a = [1, 2, 3, 4]; req.set(\"v\", a.reduce(|sum, x| sum + x, 0));",
    "let a = [1, 2]; a.map(|x| x.nothing());",
    "let m = #{ a: 1, b: #{ c: [1, 2] } }; m.a = 5; m.b.c[0] = 7; m[\"d\"] = 1; req.set(\"v\", m);",
    "let m = #{ a: 1 }; m.a += 4; m[\"a\"] *= 2; req.set(\"v\", m); req.set(\"w\", m.none);",
    "let m = #{ a: 1 }; req.set(\"v\", m.keys()); req.set(\"w\", m.len());",
    "let m = #{ a: #{ b: () } }; req.set(\"v\", m?.a?.b?.c); req.set(\"w\", m.x?.y);",
    "let m = #{ a: 1 }; req.set(\"v\", m[5]);",
    "let m = (); req.set(\"v\", m?.a); req.set(\"w\", m?[0]);",
    "let m = (); req.set(\"v\", m.a);",
    "let m = 5; req.set(\"v\", m.a);",
    "let n = 5; req.set(\"v\", n[0]); n[1] = true; req.set(\"w\", n);",
    "let a = [1]; let b = a; b.push(2); req.set(\"v\", [a, b]);",
    "let a = []; loop { a.push(1); }",
    "let a = [1]; loop { a = [a, a]; }",
    "let m = #{}; let n = 0; loop { m[`k${n}`] = n; n += 1; }",
    // Functions of the program.
    "req.set(\"v\", double(4)); req.set(\"w\", fact(5));",
    "req.set(\"v\", fact(100));",
    "req.set(\"v\", throws(1));",
    "let x = [1]; changes(x); req.set(\"v\", x);",
    "req.set(\"v\", nothing()); req.set(\"w\", returns(true)); req.set(\"x\", returns(false));",
    "req.set(\"v\", endless(1));",
    "req.set(\"v\", double(\"a\")); req.set(\"w\", double(#{}));",
    "req.set(\"v\", double(double(double(1))));",
    "spin(5);",
    // Ends.
    "throw \"no\";",
    "throw #{ status: 403 };",
    "throw;",
    "return;",
    "return 5;",
    "return respond(403, \"no\").header(\"x-a\", \"b\").header(\"x-c\", 5);",
    "respond(200, \"yes\")",
    "respond(999)",
    "let lost = respond(403); req.set(\"v\", lost.status);",
    "true",
    "double",
    "REFUSED",
    "if req.path != \"/nowhere\" { return REFUSED; }",
    "let s = REFUSED.status;",
    // Requests.
    "req.set_header(\"x-out\", req.header(\"x-number\")); req.add_header(\"x-out\", \"more\"); req.remove_header(\"x-number\");",
    "req.set_header(\"bad name\", \"x\");",
    "req.set_header(\"x-out\", \"bad\\nvalue\");",
    "req.set_header(\"x-out\", [1]);",
    "req.set_header(\"x-out\", ()); req.set_header(\"x-int\", 5); req.set_header(\"x-bool\", true);",
    "req.path = \"/other\"; req.set(\"v\", req.path);",
    "req.path = \"no path\"; req.set(\"v\", req.path);",
    "req.path += \"/more\"; req.set(\"v\", req.path);",
    "req.set(\"v\", [req.method, req.scheme, req.host, req.path, req.raw_path, req.query_string, req.client_ip, req.protocol]);",
    "req.set(\"v\", [req.query(\"q\"), req.queries(\"q\"), req.cookie(\"c\"), req.param(\"p\"), req.params, req.tls]);",
    "req.set(\"v\", req.path.starts_with(\"/a\")); req.set(\"w\", req.header(\"none\").starts_with(\"x\"));",
    "req.set(\"v\", req.path.sub_string(1)); req.set(\"w\", req.path.len()); req.set(\"x\", req.path.split(\"/\"));",
    "req.host.make_upper(); req.set(\"v\", req.host);",
    "req.unknown_thing(5);",
    "req.set(\"v\", num(req.header(\"x-number\")) + 1);",
    "let r = req; r.set_header(\"x-out\", \"y\"); req.set(\"v\", type_of(r));",
    "req.set(\"v\", [type_of(1), type_of(\"a\"), type_of(()), type_of([]), type_of(req), type_of(KEYS)]);",
    // Values of the load.
    "req.set(\"v\", [KEYS.get(\"k-alice\"), KEYS.get(req.header(\"none\")), KEYS.contains(\"k-bob\"), KEYS.len()]);",
    "req.set(\"v\", [INSIDE.contains(req.client_ip), DIGITS.is_match(req.header(\"x-number\")), DIGITS.captures(\"a12b\"), DIGITS.replace_all(\"a1b22\", \"#\")]);",
    "req.set(\"v\", HITS.add(\"a\", 2)); req.set(\"w\", HITS.get(\"a\")); req.set(\"x\", FAST.allow(\"k\"));",
    "HITS.add(req.header(\"none\"), 1);",
    "req.set(\"v\", [LIMIT, NAMES, OPTIONS.a, OPTIONS.b.c]);",
    "let n = NAMES; n.push(\"z\"); req.set(\"v\", [n, NAMES]);",
    "for name in NAMES { req.add_header(\"x-name\", name); }",
    "req.set(\"v\", REMEMBERED.get(\"x\")); REMEMBERED.set(\"x\", [1, #{ a: 2 }]); req.set(\"w\", REMEMBERED.get(\"x\"));",
    "req.set(\"v\", REMEMBERED.get_or(\"y\", made)); req.set(\"w\", REMEMBERED.get_or(\"y\", || 5));",
    // Calls back, and what waits.
    "let r = fetch(\"web\"); req.set(\"v\", r.status);",
    "req.set(\"v\", sha256(\"a\").hex()); req.set(\"w\", hmac_sha256(\"k\", \"m\").base64());",
    "req.set(\"v\", url_encode(\"a b\") + url_decode(\"%41\"));",
];

const HEAD: &str = r#"
const KEYS = table("keys.json");
const INSIDE = cidr(["10.0.0.0/8", "127.0.0.0/8"]);
const DIGITS = regex("[0-9]+");
const HITS = counter();
const FAST = rate(3, "1h");
const REMEMBERED = cache("1h", 10);
const LIMIT = 5;
const NAMES = ["x", "y"];
const OPTIONS = #{ a: 1, b: #{ c: "d" } };
const REFUSED = respond(403, "refused");
fn double(x) { x + x }
fn fact(n) { if n == 1 { 1 } else { n * fact(n - 1) } }
fn throws(x) { let y = x; throw "from within"; }
fn changes(x) { x.push(2); x }
fn nothing() { }
fn returns(early) { if early { return "early"; } "late" }
fn endless(n) { endless(n + 1) }
fn spin(n) { let i = 0; while i >= 0 { i += n; } }
fn made(key) { "made of " + key }
"#;

fn request() -> MemoryRequest {
    MemoryRequest::new("GET", "any.example", "/a/b?q=1&q=two&z=%20")
        .with_header("x-number", "42")
        .with_header("cookie", "c=cookie; d=e")
        .with_header("x-text", "some text")
}

/// The program with this body, once without comparisons by order, where Rhai's own operators come
/// first, and once with one, where they don't.
fn programs(body: &str) -> [String; 2] {
    let route =
        format!("route(\"/{{*rest}}\").on_request(|req| {{\n    {body}\n}}).to(\"web\");\n");
    let ordered =
        "route(\"/ordered\").on_request(|req| { if req.path < \"a\" { return; } }).to(\"web\");\n";
    [format!("{HEAD}{route}"), format!("{HEAD}{route}{ordered}")]
}

#[test]
fn every_construct_means_the_same() {
    let mut refused = Vec::new();
    for body in BODIES {
        for program in programs(body) {
            let inputs = support::inputs(&program);
            let mut both = match Both::load(&inputs) {
                Ok(both) => both,
                Err(why) => {
                    refused.push(format!("{body}: {why}"));
                    continue;
                }
            };
            both.compare(&request(), &response(), &body);
        }
    }
    // What the checks at load refuse is no comparison; few of the bodies may be that.
    assert!(refused.len() < BODIES.len() / 4, "{refused:#?}");
}

#[test]
fn every_limit_of_operations_is_met_at_the_same_place() {
    let all = std::env::var_os("EDGEWRIGHT_SOAK").is_some();
    for (number, body) in (0..).zip(BODIES) {
        for program in programs(body) {
            let mut inputs = support::inputs(&program);
            let limits = (1..40).chain([55, 80, 120, 200]);
            // Loading takes its time: a sixth of them, others for each body.
            for operations in limits.filter(|limit| all || (limit + number) % 6 == 0) {
                inputs.limits.operations = operations;
                let Ok(mut both) = Both::load(&inputs) else {
                    break;
                };
                let about = format!("{operations} operations for {body}");
                both.compare(&request(), &response(), &about);
            }
        }
    }
}
