//! Makes the second form of loops that only compute with whole numbers (`compiled::numbers`).
//!
//! What isn't known here makes no such form, and the general one runs all turns. Each operation of the
//! hook is counted as the general form does it; where doesn't matter, since nothing is looked at in between.

use rhai::{ASTFlags, Expr, FnCallExpr, INT, Ident, Stmt};

use super::{Lowering, Variable as Found};
use crate::engine::compiled::numbers::{
    Compare, Compute, Loop, Op, Program, REGISTERS, Register, Variable,
};

impl Lowering<'_> {
    /// The second form of a loop. The variable of a `for` is `item`, the last one that is visible.
    pub(super) fn numbers(
        &mut self,
        item: Option<&Ident>,
        condition: Option<&Expr>,
        body: &[Stmt],
    ) -> Option<Loop> {
        if body.is_empty() || !self.engine.fast_operators() {
            return None;
        }
        let visible = self.current().variables.len();
        let mut maker = Maker {
            outside: visible - usize::from(item.is_some()),
            lowering: self,
            program: Program::default(),
            inside: Vec::new(),
            registers: 0,
            lowest_temporary: REGISTERS,
            lowest: REGISTERS,
            counted: 0,
            open: Vec::new(),
        };
        let made = maker.turn(item.is_some(), condition, body);
        let Maker { program, .. } = maker;
        self.current().variables.truncate(visible);
        let item = made?;
        Some(Loop { program, item })
    }
}

/// A place that is jumped to before it is known where it is.
#[derive(Clone, Copy)]
struct Label(usize);

/// A variable of the loop or of its body.
struct Inside {
    local: usize,
    register: Register,
    is_constant: bool,
}

struct Maker<'l, 'p> {
    lowering: &'l mut Lowering<'p>,
    program: Program,
    /// The number of the first variable that isn't one of the hook around the loop.
    outside: usize,
    inside: Vec<Inside>,
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

impl Maker<'_, '_> {
    /// Makes the program; gives the register of the variable of a `for`.
    fn turn(
        &mut self,
        has_item: bool,
        condition: Option<&Expr>,
        body: &[Stmt],
    ) -> Option<Option<Register>> {
        let item = if has_item {
            let register = self.register()?;
            self.inside.push(Inside {
                local: self.outside,
                register,
                is_constant: false,
            });
            Some(register)
        } else {
            None
        };
        let end = self.label();
        if let Some(condition) = condition {
            self.branch(condition, false, end)?;
        }
        self.statements(body)?;
        let operations = self.take_counted();
        self.program.ops.push(Op::Next { operations });
        self.bind(end)?;
        self.program.ops.push(Op::End { operations: 0 });
        let operations = self.program.ops.iter().map(|op| u64::from(op.operations()));
        self.program.most = operations.sum();
        self.program.may_be_half_done = self.may_be_half_done();
        Some(item)
    }

    /// Whether something that can't be done may come behind a change.
    fn may_be_half_done(&self) -> bool {
        let changes = |register: Register| {
            let mut variables = self.program.variables.iter();
            variables.any(|variable| variable.register == register)
        };
        let mut has_changed = false;
        for op in &self.program.ops {
            match *op {
                Op::Compute { to, .. } => {
                    if has_changed {
                        return true;
                    }
                    has_changed = changes(to);
                }
                Op::Copy { to, .. } => has_changed |= changes(to),
                _ => {}
            }
        }
        false
    }

    fn statements(&mut self, statements: &[Stmt]) -> Option<()> {
        let visible = self.lowering.current().variables.len();
        let inside = self.inside.len();
        for statement in statements {
            self.statement(statement)?;
            self.lowest_temporary = REGISTERS;
        }
        self.lowering.current().variables.truncate(visible);
        self.inside.truncate(inside);
        Some(())
    }

    fn statement(&mut self, statement: &Stmt) -> Option<()> {
        self.count()?;
        match statement {
            Stmt::Noop(_) => Some(()),
            Stmt::Block(block) => self.statements(block.statements()),
            Stmt::Assignment(assignment) => {
                let (info, sides) = &**assignment;
                let operator = match info.get_op_assignment_info() {
                    None => None,
                    Some((_, _, _, whole, _, plain)) => {
                        if self.is_own(whole) || self.is_own(plain) {
                            return None;
                        }
                        Some(computation(plain)?)
                    }
                };
                let value = self.number(&sides.rhs)?;
                self.count()?;
                let to = self.target(&sides.lhs)?;
                self.program.ops.push(match operator {
                    Some(operator) => Op::Compute {
                        operator,
                        to,
                        left: to,
                        right: value,
                    },
                    None => Op::Copy { to, from: value },
                });
                Some(())
            }
            Stmt::Var(details, flags, _) => {
                let (name, value, shadowed) = &**details;
                let variables = self.lowering.current().variables.len();
                if shadowed.is_some()
                    || flags.contains(ASTFlags::EXPORTED)
                    || variables >= self.lowering.engine.max_variables()
                {
                    return None;
                }
                let from = self.number(value)?;
                let register = self.register()?;
                let to = register;
                self.program.ops.push(Op::Copy { to, from });
                self.inside.push(Inside {
                    local: variables,
                    register,
                    is_constant: flags.contains(ASTFlags::CONSTANT),
                });
                self.lowering.current().variables.push(name.name.clone());
                Some(())
            }
            Stmt::If(details, _) => {
                let (otherwise, behind) = (self.label(), self.label());
                self.branch(&details.expr, false, otherwise)?;
                self.statements(details.body.statements())?;
                if details.branch.is_empty() {
                    return self.bind(otherwise);
                }
                self.jump(behind);
                self.bind(otherwise)?;
                self.statements(details.branch.statements())?;
                self.bind(behind)
            }
            Stmt::BreakLoop(None, flags, _) => {
                let operations = self.take_counted();
                self.program.ops.push(if flags.contains(ASTFlags::BREAK) {
                    Op::End { operations }
                } else {
                    Op::Next { operations }
                });
                Some(())
            }
            _ => None,
        }
    }

    /// The register with the value of an expression.
    fn number(&mut self, expression: &Expr) -> Option<Register> {
        self.count()?;
        if let Some(value) = expression.get_literal_value(None) {
            return self.constant(value.as_int().ok()?);
        }
        match expression {
            Expr::Variable(..) => match self.lowering.variable(expression).ok()? {
                Found::Global(value) => self.constant(value.as_int().ok()?),
                Found::Local(local) => self.variable(local),
            },
            Expr::FnCall(call, _) if call.op_token.is_some() && !self.is_own(&call.name) => {
                self.computed(call)
            }
            _ => None,
        }
    }

    fn computed(&mut self, call: &FnCallExpr) -> Option<Register> {
        let (operator, left, right) = match &call.args[..] {
            [left, right] => {
                let operator = computation(&call.name)?;
                (operator, self.number(left)?, self.number(right)?)
            }
            [operand] if call.name == "-" => {
                let operand = self.number(operand)?;
                (Compute::Subtract, self.constant(0)?, operand)
            }
            _ => return None,
        };
        let to = self.temporary()?;
        self.program.ops.push(Op::Compute {
            operator,
            to,
            left,
            right,
        });
        Some(to)
    }

    /// Goes to a label if a condition holds, or if it doesn't.
    fn branch(&mut self, condition: &Expr, if_it: bool, target: Label) -> Option<()> {
        self.count()?;
        match condition {
            Expr::And(parts, _) => self.parts(parts, false, if_it, target),
            Expr::Or(parts, _) => self.parts(parts, true, if_it, target),
            Expr::FnCall(call, _) if call.op_token.is_some() && !self.is_own(&call.name) => {
                match &call.args[..] {
                    [operand] if call.name == "!" => self.branch(operand, !if_it, target),
                    [left, right] => {
                        let operator = comparison(&call.name)?;
                        let (left, right) = (self.number(left)?, self.number(right)?);
                        let operator = if if_it { operator.opposite() } else { operator };
                        let operations = self.take_counted();
                        self.open[target.0].push(self.program.ops.len());
                        self.program.ops.push(Op::Unless {
                            operator,
                            left,
                            right,
                            target: 0,
                            operations,
                        });
                        self.lowest_temporary = REGISTERS;
                        Some(())
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `&&` and `||`: the first part that is `decides` decides.
    fn parts(&mut self, parts: &[Expr], decides: bool, if_it: bool, target: Label) -> Option<()> {
        let (last, others) = parts.split_last()?;
        if decides == if_it {
            for part in parts {
                self.branch(part, if_it, target)?;
            }
            return Some(());
        }
        let behind = self.label();
        for part in others {
            self.branch(part, decides, behind)?;
        }
        self.branch(last, if_it, target)?;
        self.bind(behind)
    }

    /// The register of a variable that is assigned to.
    fn target(&mut self, expression: &Expr) -> Option<Register> {
        if !matches!(expression, Expr::Variable(..)) {
            return None;
        }
        let Found::Local(local) = self.lowering.variable(expression).ok()? else {
            return None;
        };
        if let Some(inside) = self.inside.iter().find(|inside| inside.local == local) {
            return (!inside.is_constant).then_some(inside.register);
        }
        let register = self.variable(local)?;
        let mut variables = self.program.variables.iter_mut();
        variables
            .find(|variable| variable.local == local)?
            .is_changed = true;
        Some(register)
    }

    fn variable(&mut self, local: usize) -> Option<Register> {
        if let Some(inside) = self.inside.iter().find(|inside| inside.local == local) {
            return Some(inside.register);
        }
        // What isn't one of the loop's own stands outside of it.
        if local >= self.outside {
            return None;
        }
        let mut known = self.program.variables.iter();
        if let Some(variable) = known.find(|variable| variable.local == local) {
            return Some(variable.register);
        }
        let register = self.register()?;
        self.program.variables.push(Variable {
            local,
            register,
            is_changed: false,
        });
        Some(register)
    }

    fn constant(&mut self, value: INT) -> Option<Register> {
        let mut known = self.program.constants.iter();
        if let Some((register, _)) = known.find(|(_, known)| *known == value) {
            return Some(*register);
        }
        let register = self.register()?;
        self.program.constants.push((register, value));
        Some(register)
    }

    fn register(&mut self) -> Option<Register> {
        let register = self.registers;
        self.registers += 1;
        self.is_room().then_some(())?;
        Register::try_from(register).ok()
    }

    fn temporary(&mut self) -> Option<Register> {
        self.lowest_temporary = self.lowest_temporary.checked_sub(1)?;
        self.lowest = self.lowest.min(self.lowest_temporary);
        self.is_room().then_some(())?;
        Register::try_from(self.lowest_temporary).ok()
    }

    fn is_room(&self) -> bool {
        self.registers <= self.lowest
    }

    fn count(&mut self) -> Option<()> {
        self.counted = self.counted.checked_add(1)?;
        Some(())
    }

    fn take_counted(&mut self) -> u16 {
        std::mem::take(&mut self.counted)
    }

    fn label(&mut self) -> Label {
        self.open.push(Vec::new());
        Label(self.open.len() - 1)
    }

    fn jump(&mut self, target: Label) {
        let operations = self.take_counted();
        self.open[target.0].push(self.program.ops.len());
        self.program.ops.push(Op::Jump {
            target: 0,
            operations,
        });
    }

    /// A label is here: whoever comes from elsewhere doesn't count what was counted on the way from above.
    fn bind(&mut self, label: Label) -> Option<()> {
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

    /// Whether the program has an operator of this name.
    fn is_own(&self, name: &str) -> bool {
        [1, 2].iter().any(|&parameters| {
            let functions = self.lowering.functions;
            functions.contains_key(&(name, parameters))
        })
    }
}

fn computation(name: &str) -> Option<Compute> {
    Some(match name {
        "+" => Compute::Add,
        "-" => Compute::Subtract,
        "*" => Compute::Multiply,
        "/" => Compute::Divide,
        "%" => Compute::Remainder,
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<Compare> {
    Some(match name {
        "==" => Compare::Equal,
        "!=" => Compare::NotEqual,
        "<" => Compare::Less,
        "<=" => Compare::LessOrEqual,
        ">" => Compare::Greater,
        ">=" => Compare::GreaterOrEqual,
        _ => return None,
    })
}
