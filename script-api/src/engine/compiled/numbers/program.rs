//! The program of one turn.

use rhai::INT;

/// Registers that a program may have.
pub(in crate::engine::compiled) const REGISTERS: usize = 16;

/// The number of a register, below [`REGISTERS`].
pub(in crate::engine::compiled) type Register = u8;

/// The values of all registers.
pub(super) type Registers = [INT; REGISTERS];

/// An operator that gives a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) enum Compute {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

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

/// An operation. `operations` are those of the hook that are counted on the way to its end since the last one
/// that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::compiled) enum Op {
    /// Computes `to` from two others.
    Compute {
        operator: Compute,
        to: Register,
        left: Register,
        right: Register,
    },
    /// Copies a register.
    Copy { to: Register, from: Register },
    /// Goes on there unless this holds.
    Unless {
        operator: Compare,
        left: Register,
        right: Register,
        target: u16,
        operations: u16,
    },
    /// Goes on there.
    Jump { target: u16, operations: u16 },
    /// The turn ends, and the next one comes.
    Next { operations: u16 },
    /// The loop ends.
    End { operations: u16 },
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
    /// No turn counts more operations of the hook.
    pub(in crate::engine::compiled) most: u64,
    /// Whether it may have changed a variable when it comes to something that it can't do.
    pub(in crate::engine::compiled) may_be_half_done: bool,
}

impl Program {
    /// Runs a turn; gives how it ended, and the operations of the hook that it counted. After
    /// [`Done::Not`] the registers are as before.
    #[inline]
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

    #[inline]
    fn run(&self, registers: &mut Registers) -> (Done, u64) {
        let mut counted = 0;
        let mut next = 0;
        // A turn has no loops: each operation is run once at the most.
        while let Some(op) = self.ops.get(next) {
            next += 1;
            match *op {
                Op::Compute {
                    operator,
                    to,
                    left,
                    right,
                } => {
                    let (left, right) = (*at(registers, left), *at(registers, right));
                    let Some(value) = operator.of(left, right) else {
                        return (Done::Not, 0);
                    };
                    *at(registers, to) = value;
                }
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
        }
        (Done::Next, counted)
    }
}

/// The register with this number.
#[inline(always)]
fn at(registers: &mut Registers, register: Register) -> &mut INT {
    // There is none with a higher number.
    &mut registers[usize::from(register) % REGISTERS]
}

impl Compute {
    /// `None`: it is no number of this size.
    #[inline(always)]
    fn of(self, left: INT, right: INT) -> Option<INT> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
        }
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
            Self::Compute { .. } | Self::Copy { .. } => 0,
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
