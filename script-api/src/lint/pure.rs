//! Natives that do nothing but give a value, which is then thrown away: a `jwt_verify` that nobody
//! asks is a gate left open.

use rhai::{Expr, FnCallExpr, Position};

use super::chain::{Chain, Link};
use super::findings::Findings;
use super::program::Program;
use super::scope::Scope;
use super::walk::Check;

const PURE: [&str; 51] = [
    "argon2_verify",
    "base64",
    "base64url",
    "bcrypt_verify",
    "bucket",
    "constant_time_eq",
    "crc32",
    "fixed",
    "form_encode",
    "form_parse",
    "from_base64",
    "from_base64url",
    "from_hex",
    "hex",
    "hmac_sha1",
    "hmac_sha256",
    "hmac_sha384",
    "hmac_sha512",
    "html_escape",
    "http_date",
    "is_ip",
    "iso_date",
    "json_encode",
    "jwt_sign",
    "jwt_verify",
    "md5",
    "now",
    "now_ms",
    "num",
    "padded_start",
    "parse_http_date",
    "parse_iso_date",
    "password_verify",
    "random_bytes",
    "random_int",
    "repeat",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "split_once",
    "split_once_rev",
    "trimmed",
    "trimmed_end",
    "trimmed_start",
    "url_decode",
    "url_encode",
    "uuid_v4",
    "uuid_v7",
    "without_prefix",
    "without_suffix",
];

pub(super) struct Pure<'a> {
    pub(super) program: &'a Program<'a>,
}

impl Pure<'_> {
    fn pure_call<'e>(&self, value: &'e Expr) -> Option<(&'e FnCallExpr, Position)> {
        let (call, at) = match value {
            Expr::FnCall(call, at) => (&**call, *at),
            _ => match Chain::of(value)?.links.last()? {
                Link::Method(call, at) => (*call, *at),
                _ => return None,
            },
        };
        let name = call.name.as_str();
        let is_pure = PURE.contains(&name)
            && !call.is_qualified()
            && !self.program.has_function(name)
            && !self.program.members.contains(name);
        is_pure.then_some((call, at))
    }
}

impl<'a> Check<'a> for Pure<'a> {
    fn discarded(&mut self, value: &'a Expr, scope: &Scope<'a>, findings: &mut Findings) {
        let Some((call, at)) = self.pure_call(value) else {
            return;
        };
        let name = &call.name;
        let help = (!scope.is_plain_top_level()).then(|| match name.as_str() {
            "jwt_verify" => {
                "let claims = jwt_verify(..); if claims == () { return respond(401); }".to_string()
            }
            "constant_time_eq" | "password_verify" | "bcrypt_verify" | "argon2_verify" => {
                format!("if !{name}(..) {{ return respond(401); }}")
            }
            _ => format!("let x = {name}(..);"),
        });
        let message = format!("`{name}` does nothing but give a value, which is thrown away");
        findings.error(at, name.chars().count(), message, help);
    }
}
