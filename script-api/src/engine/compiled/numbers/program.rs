//! The program of one turn.

use rhai::INT;

/// Registers that a program may have.
pub(in crate::engine::compiled) const REGISTERS: usize = 16;

/// The number of a register, below [`REGISTERS`].
pub(in crate::engine::compiled) type Register = u8;

/// The values of all registers.
pub(super) type Registers = [INT; REGISTERS];

/// An operator that compares two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The registers of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) struct Operands {
    pub(in crate::engine::compiled) to: Register,
    pub(in crate::engine::compiled) left: Register,
    pub(in crate::engine::compiled) right: Register,
}

/// An operation. `operations` are those of the hook that are counted on the way to its end since the last one
/// that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) enum Op {
    /// These five compute a register from two others, and are not done when that is no number of this size.
    Add(Operands),
    Subtract(Operands),
    Multiply(Operands),
    Divide(Operands),
    Remainder(Operands),
    /// Copies a register.
    Copy {
        to: Register,
        from: Register,
    },
    /// Goes on there unless this holds.
    Unless {
        operator: Compare,
        left: Register,
        right: Register,
        target: u16,
        operations: u16,
    },
    /// Goes on there.
    Jump {
        target: u16,
        operations: u16,
    },
    /// The turn ends, and the next one comes.
    Next {
        operations: u16,
    },
    /// The loop ends.
    End {
        operations: u16,
    },
}

/// A local variable of the hook, and its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) struct Variable {
    pub(in crate::engine::compiled) local: usize,
    pub(in crate::engine::compiled) register: Register,
    /// Whether the program changes it.
    pub(in crate::engine::compiled) is_changed: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) enum Done {
    /// The next one comes.
    Next,
    /// It was the last one.
    Last,
    /// It did not end: the general form has to run it, from its beginning.
    Not,
}

/// What a turn does.
#[derive(Debug, Default)]
pub(in crate::engine::compiled) struct Program {
    pub(in crate::engine::compiled) ops: Vec<Op>,
    /// The variables of the hook that it uses.
    pub(in crate::engine::compiled) variables: Vec<Variable>,
    /// What registers hold from the beginning on.
    pub(in crate::engine::compiled) constants: Vec<(Register, INT)>,
    /// Operations of the hook that are counted behind the last one of the program that counts.
    pub(in crate::engine::compiled) last_counted: u16,
    /// No turn counts more operations of the hook.
    pub(in crate::engine::compiled) most: u64,
    /// Whether it may have changed a variable when it comes to something that it can't do.
    pub(in crate::engine::compiled) may_be_half_done: bool,
}

impl Program {
    /// Runs a turn; gives how it ended, and the operations of the hook that it counted. After
    /// [`Done::Not`] the registers are as before.
    #[inline(always)]
    pub(super) fn turn(&self, registers: &mut Registers) -> (Done, u64) {
        if !self.may_be_half_done {
            return self.run(registers);
        }
        let before = *registers;
        let (done, counted) = self.run(registers);
        if done == Done::Not {
            *registers = before;
        }
        (done, counted)
    }

    // In the loop over the turns, of which most have an operation or two.
    #[inline(always)]
    fn run(&self, registers: &mut Registers) -> (Done, u64) {
        let mut counted = 0;
        let mut next = 0;
        // A turn has no loops: each operation is run once at the most.
        while let Some(op) = self.ops.get(next) {
            next += 1;
            let mut done = true;
            match *op {
                Op::Add(of) => done = of.compute(registers, INT::checked_add),
                Op::Subtract(of) => done = of.compute(registers, INT::checked_sub),
                Op::Multiply(of) => done = of.compute(registers, INT::checked_mul),
                Op::Divide(of) => done = of.compute(registers, INT::checked_div),
                Op::Remainder(of) => done = of.compute(registers, INT::checked_rem),
                Op::Copy { to, from } => *at(registers, to) = *at(registers, from),
                Op::Unless {
                    operator,
                    left,
                    right,
                    target,
                    operations,
                } => {
                    counted += u64::from(operations);
                    if !operator.holds(*at(registers, left), *at(registers, right)) {
                        next = usize::from(target);
                    }
                }
                Op::Jump { target, operations } => {
                    counted += u64::from(operations);
                    next = usize::from(target);
                }
                Op::Next { operations } => return (Done::Next, counted + u64::from(operations)),
                Op::End { operations } => return (Done::Last, counted + u64::from(operations)),
            }
            if !done {
                return (Done::Not, 0);
            }
        }
        (Done::Next, counted + u64::from(self.last_counted))
    }
}

/// The register with this number.
#[inline(always)]
fn at(registers: &mut Registers, register: Register) -> &mut INT {
    // There is none with a higher number.
    &mut registers[usize::from(register) % REGISTERS]
}

impl Operands {
    /// `false`: it is no number of this size.
    #[inline(always)]
    fn compute(self, registers: &mut Registers, how: impl Fn(INT, INT) -> Option<INT>) -> bool {
        let (left, right) = (*at(registers, self.left), *at(registers, self.right));
        let Some(value) = how(left, right) else {
            return false;
        };
        *at(registers, self.to) = value;
        true
    }
}

impl Op {
    /// Operations of the hook that it counts.
    pub(in crate::engine::compiled) fn operations(&self) -> u16 {
        match *self {
            Self::Unless { operations, .. }
            | Self::Jump { operations, .. }
            | Self::Next { operations }
            | Self::End { operations } => operations,
            _ => 0,
        }
    }

    /// The register that it computes, which can fail.
    pub(in crate::engine::compiled) fn computes(&self) -> Option<Register> {
        match self {
            Self::Add(of)
            | Self::Subtract(of)
            | Self::Multiply(of)
            | Self::Divide(of)
            | Self::Remainder(of) => Some(of.to),
            _ => None,
        }
    }
}

impl Compare {
    /// What holds when this doesn't.
    pub(in crate::engine::compiled) fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    #[inline(always)]
    fn holds(self, left: INT, right: INT) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(to: Register, left: Register, right: Register) -> Op {
        Op::Add(Operands { to, left, right })
    }

    #[test]
    fn what_cannot_be_done_is_as_before() {
        let program = Program {
            ops: vec![add(0, 0, 1), add(2, 2, 2), Op::Next { operations: 7 }],
            may_be_half_done: true,
            ..Program::default()
        };
        let mut registers = Registers::default();
        registers[..3].copy_from_slice(&[1, 2, 3]);
        assert_eq!(program.turn(&mut registers), (Done::Next, 7));
        assert_eq!(registers[..3], [3, 2, 6]);
        registers[2] = INT::MAX;
        let before = registers;
        assert_eq!(program.turn(&mut registers), (Done::Not, 0));
        assert_eq!(registers, before);
    }

    #[test]
    fn a_way_counts_what_lies_on_it() {
        let unless = Op::Unless {
            operator: Compare::Less,
            left: 0,
            right: 1,
            target: 2,
            operations: 3,
        };
        let ops = vec![
            unless,
            Op::Next { operations: 5 },
            Op::End { operations: 0 },
        ];
        let program = Program {
            ops,
            ..Program::default()
        };
        let mut registers = Registers::default();
        registers[1] = 1;
        assert_eq!(program.turn(&mut registers), (Done::Next, 8));
        registers[0] = 1;
        assert_eq!(program.turn(&mut registers), (Done::Last, 3));
    }
}
