//! Puts a program together.

use rhai::INT;

use super::program::{Compare, Op, Program, REGISTERS, Register};

/// A place that is jumped to before it is known where it is.
#[derive(Clone, Copy)]
pub(in crate::engine::compiled) struct Label(usize);

/// A program that is being made.
pub(in crate::engine::compiled) struct Assembler {
    pub(in crate::engine::compiled) program: Program,
    /// Registers that are taken: variables and constants from below, what is only used within a statement
    /// from above.
    registers: usize,
    lowest_temporary: usize,
    /// The lowest of those of all statements.
    lowest: usize,
    /// Operations of the hook since the last one of the program that counts.
    counted: u16,
    /// Where operations jump to that label.
    open: Vec<Vec<usize>>,
}

impl Default for Assembler {
    fn default() -> Self {
        Self {
            program: Program::default(),
            registers: 0,
            lowest_temporary: REGISTERS,
            lowest: REGISTERS,
            counted: 0,
            open: Vec::new(),
        }
    }
}

impl Assembler {
    /// The program.
    pub(in crate::engine::compiled) fn end(mut self) -> Program {
        let operations = self.program.ops.iter().map(|op| u64::from(op.operations()));
        self.program.most = operations.sum::<u64>() + u64::from(self.counted);
        self.program.last_counted = self.counted;
        self.program.may_be_half_done = self.may_be_half_done();
        self.program
    }

    /// Whether something that can't be done may come behind a change.
    fn may_be_half_done(&self) -> bool {
        let changes = |register: Register| {
            let mut variables = self.program.variables.iter();
            variables.any(|variable| variable.register == register)
        };
        let mut has_changed = false;
        for op in &self.program.ops {
            if let Some(register) = op.computes() {
                if has_changed {
                    return true;
                }
                has_changed = changes(register);
            } else if let Op::Copy { to, .. } = *op {
                has_changed |= changes(to);
            }
        }
        false
    }

    /// A register that holds this from the beginning on.
    pub(in crate::engine::compiled) fn constant(&mut self, value: INT) -> Option<Register> {
        let mut known = self.program.constants.iter();
        if let Some((register, _)) = known.find(|(_, known)| *known == value) {
            return Some(*register);
        }
        let register = self.register()?;
        self.program.constants.push((register, value));
        Some(register)
    }

    /// A register of its own; `None`: there is none left.
    pub(in crate::engine::compiled) fn register(&mut self) -> Option<Register> {
        let register = self.registers;
        self.registers += 1;
        self.is_room().then_some(())?;
        Register::try_from(register).ok()
    }

    /// A register until the end of the statement.
    pub(in crate::engine::compiled) fn temporary(&mut self) -> Option<Register> {
        self.lowest_temporary = self.lowest_temporary.checked_sub(1)?;
        self.lowest = self.lowest.min(self.lowest_temporary);
        self.is_room().then_some(())?;
        Register::try_from(self.lowest_temporary).ok()
    }

    fn is_room(&self) -> bool {
        self.registers <= self.lowest
    }

    /// The statement has ended.
    pub(in crate::engine::compiled) fn free_temporaries(&mut self) {
        self.lowest_temporary = REGISTERS;
    }

    /// An operation of the hook is counted.
    pub(in crate::engine::compiled) fn count(&mut self) -> Option<()> {
        self.counted = self.counted.checked_add(1)?;
        Some(())
    }

    fn take_counted(&mut self) -> u16 {
        std::mem::take(&mut self.counted)
    }

    pub(in crate::engine::compiled) fn push(&mut self, op: Op) {
        self.program.ops.push(op);
    }

    /// The next turn comes.
    pub(in crate::engine::compiled) fn next(&mut self) {
        let operations = self.take_counted();
        self.push(Op::Next { operations });
    }

    /// This was the last turn.
    pub(in crate::engine::compiled) fn last(&mut self) {
        let operations = self.take_counted();
        self.push(Op::End { operations });
    }

    /// Goes to a label unless this holds.
    pub(in crate::engine::compiled) fn unless(
        &mut self,
        operator: Compare,
        left: Register,
        right: Register,
        target: Label,
    ) {
        let operations = self.take_counted();
        self.open[target.0].push(self.program.ops.len());
        self.push(Op::Unless {
            operator,
            left,
            right,
            target: 0,
            operations,
        });
        self.free_temporaries();
    }

    /// A new label, which is bound later.
    pub(in crate::engine::compiled) fn label(&mut self) -> Label {
        self.open.push(Vec::new());
        Label(self.open.len() - 1)
    }

    pub(in crate::engine::compiled) fn jump(&mut self, target: Label) {
        let operations = self.take_counted();
        self.open[target.0].push(self.program.ops.len());
        self.program.ops.push(Op::Jump {
            target: 0,
            operations,
        });
    }

    /// A label is here: whoever comes from elsewhere doesn't count what was counted on the way from above.
    pub(in crate::engine::compiled) fn bind(&mut self, label: Label) -> Option<()> {
        if self.counted > 0 {
            self.jump(label);
        }
        let here = u16::try_from(self.program.ops.len()).ok()?;
        for from in std::mem::take(&mut self.open[label.0]) {
            match &mut self.program.ops[from] {
                Op::Unless { target, .. } | Op::Jump { target, .. } => *target = here,
                _ => return None,
            }
        }
        Some(())
    }
}
