//! Conditions that can't be true or false. Rhai refuses plain literals itself.

use rhai::Expr;

use super::findings::Findings;
use super::kinds::{Kind, kind_of};
use super::place::start_of;
use super::program::Program;
use super::walk::Check;

pub(super) struct Conditions<'a> {
    pub(super) program: &'a Program<'a>,
}

impl<'a> Check<'a> for Conditions<'a> {
    fn condition(&mut self, condition: &'a Expr, findings: &mut Findings) {
        match kind_of(self.program, condition) {
            None | Some(Kind::Bool) => {}
            Some(other) => findings.error(
                start_of(condition),
                1,
                format!(
                    "a condition is true or false, and this is {}",
                    other.described()
                ),
                Some("compare it with something, such as `x != ()`".to_string()),
            ),
        }
    }
}
