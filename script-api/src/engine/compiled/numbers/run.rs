//! Runs turns, as many at a time as the budget has room for.

use rhai::{Dynamic, INT};

use super::program::{Done, Program, REGISTERS, Register, Registers};
use crate::engine::{
    budget,
    compiled::machine::{Flow, Machine},
};

/// A loop in registers. The turns that it leaves are run by the general form.
#[derive(Debug)]
pub(in crate::engine::compiled) struct Loop {
    pub(in crate::engine::compiled) program: Program,
    /// The register of the variable of a `for`.
    pub(in crate::engine::compiled) item: Option<Register>,
}

/// How a loop in registers ended.
pub(in crate::engine::compiled) enum Ended {
    /// All turns are done. The value of the loop.
    Done(Dynamic),
    /// A variable is no number now: the general form goes on behind the turns that are done.
    NotNumbers,
}

impl Loop {
    /// Runs the turns for these items, of which those are taken that are run. `general` runs one turn, and
    /// gives the value of the loop if that was the last one.
    ///
    /// # Errors
    /// Those of the general form.
    pub(in crate::engine::compiled) fn run(
        &self,
        machine: &mut Machine<'_>,
        items: &mut impl Iterator<Item = INT>,
        mut general: impl FnMut(&mut Machine<'_>, INT) -> Flow<Option<Dynamic>>,
    ) -> Flow<Ended> {
        let mut registers = Registers::default();
        for &(register, value) in &self.program.constants {
            registers[usize::from(register) % REGISTERS] = value;
        }
        loop {
            if !self.load(machine, &mut registers) {
                return Ok(Ended::NotNumbers);
            }
            let (done, item) = self.turns(&mut registers, items);
            self.store(machine, &registers);
            match (done, item) {
                (Done::Last, _) | (_, None) => return Ok(Ended::Done(Dynamic::UNIT)),
                (_, Some(item)) => {
                    if let Some(value) = general(machine, item)? {
                        return Ok(Ended::Done(value));
                    }
                }
            }
        }
    }

    /// Runs turns in registers while the budget has room for them. Gives how the last one ended, and the
    /// item whose turn the general form has to run, unless there is no more.
    fn turns(
        &self,
        registers: &mut Registers,
        items: &mut impl Iterator<Item = INT>,
    ) -> (Done, Option<INT>) {
        let room = budget::room();
        let mut counted = 0;
        let ended = loop {
            let Some(item) = items.next() else {
                break (Done::Next, None);
            };
            if counted + self.program.most > room {
                break (Done::Not, Some(item));
            }
            if let Some(register) = self.item {
                registers[usize::from(register) % REGISTERS] = item;
            }
            let (done, operations) = self.program.turn(registers);
            counted += operations;
            match done {
                Done::Next => {}
                Done::Last => break (Done::Last, None),
                Done::Not => break (Done::Not, Some(item)),
            }
        };
        budget::add(counted);
        ended
    }

    /// Takes the variables into registers; `false` when one isn't a number that can be used so.
    fn load(&self, machine: &mut Machine<'_>, registers: &mut Registers) -> bool {
        for variable in &self.program.variables {
            let value = machine.local(variable.local);
            let Ok(number) = value.as_int() else {
                return false;
            };
            if value.is_shared() || (variable.is_changed && value.is_read_only()) {
                return false;
            }
            registers[usize::from(variable.register) % REGISTERS] = number;
        }
        true
    }

    fn store(&self, machine: &mut Machine<'_>, registers: &Registers) {
        for variable in &self.program.variables {
            if variable.is_changed {
                let number = registers[usize::from(variable.register) % REGISTERS];
                *machine.local(variable.local) = Dynamic::from_int(number);
            }
        }
    }
}
