//! Loops over whole numbers, without boxes.
//!
//! A loop whose body only computes with whole numbers has a second form: a program of a few operations
//! over registers, one for each variable. A turn of it does what the same turn of the general form does,
//! and counts as many operations. Whatever is rare is left to the general form, turn by turn: a number
//! that is too large, a division by zero, and the moment at which the budget is looked at.

mod assembler;
mod program;
mod run;

pub(super) use assembler::{Assembler, Label};
pub(super) use program::{Compare, Op, Operands, Register, Variable};
pub(super) use run::{Ended, Loop};
