//! Loops that mostly compute with whole numbers, and now and then do something else in the middle.

use super::Generator;

impl Generator {
    /// A loop, with the variables that it changes before it.
    pub(super) fn number_loop(&mut self) -> String {
        let names: Vec<_> = (0..3).map(|_| self.new_variable()).collect();
        let mut text = String::new();
        for name in &names {
            let kind = if self.random.u8(0..20) == 0 {
                "const"
            } else {
                "let"
            };
            text += &format!("{kind} {name} = {}; ", self.first_value());
        }
        let height = self.variables.len();
        self.variables.extend(names.iter().cloned());
        let visible = names.clone();
        let first = &names[0];
        let limit = self.random.u16(0..300);
        match self.random.u8(0..4) {
            0 => {
                let body = self.number_block(&visible, 2);
                let condition = self.number_condition(&visible, 1);
                text +=
                    &format!("while {first} < {limit} || {condition} {{ {first} += 1; {body} }}");
            }
            1 => {
                let body = self.number_block(&visible, 2);
                text +=
                    &format!("loop {{ {first} += 1; if {first} > {limit} {{ break; }} {body} }}");
            }
            _ => {
                let item = self.new_variable();
                let mut inside = visible.clone();
                inside.push(item.clone());
                let body = self.number_block(&inside, 2);
                let range = match self.random.u8(0..8) {
                    0 => "9223372036854775800..=9223372036854775807".to_owned(),
                    1 => format!("-{limit}..=5"),
                    2 => format!("0..{first}"),
                    _ => format!("0..{limit}"),
                };
                text += &format!("for {item} in {range} {{ {body} }}");
            }
        }
        // Those before the loop stay visible.
        self.variables.truncate(height);
        self.variables.extend(names);
        text
    }

    fn first_value(&mut self) -> String {
        match self.random.u8(0..20) {
            0 => "9223372036854775800".to_owned(),
            1 => "\"a\"".to_owned(),
            2 => "1.5".to_owned(),
            3 => "()".to_owned(),
            _ => self.random.i16(-50..50).to_string(),
        }
    }

    fn number_block(&mut self, visible: &[String], depth: usize) -> String {
        let mut visible = visible.to_vec();
        let statements: Vec<_> = (0..self.random.usize(1..4))
            .map(|_| self.number_statement(&mut visible, depth))
            .collect();
        statements.join(" ")
    }

    fn number_statement(&mut self, visible: &mut Vec<String>, depth: usize) -> String {
        let name = visible[self.random.usize(..visible.len())].clone();
        match self.random.u8(0..24) {
            0 => format!("{name} = \"text\";"),
            1 => format!("{name} = {} / 2.0;", self.computed_number(visible, 1)),
            2 => format!("req.set(\"n\", {});", self.computed_number(visible, 1)),
            3..=5 => {
                let value = self.computed_number(visible, 2);
                let kind = self.one_of(&["let", "let", "const"]);
                let new = if self.random.u8(0..4) == 0 {
                    name
                } else {
                    self.new_variable()
                };
                visible.push(new.clone());
                format!("{kind} {new} = {value};")
            }
            6..=9 if depth > 0 => {
                let condition = self.number_condition(visible, 2);
                let then = self.number_block(visible, depth - 1);
                let end = self.one_of(&["", "", "", "continue;", "break;"]);
                if self.random.bool() {
                    let otherwise = self.number_block(visible, depth - 1);
                    format!("if {condition} {{ {then} {end} }} else {{ {otherwise} }}")
                } else {
                    format!("if {condition} {{ {then} {end} }}")
                }
            }
            10 if depth > 0 => format!("{{ {} }}", self.number_block(visible, depth - 1)),
            11 if depth > 0 => {
                let item = self.new_variable();
                let mut inside = visible.clone();
                inside.push(item.clone());
                let body = self.number_block(&inside, depth - 1);
                format!("for {item} in 0..7 {{ {body} }}")
            }
            _ => {
                let operator = self.one_of(&["=", "+=", "+=", "-=", "*=", "/=", "%="]);
                format!("{name} {operator} {};", self.computed_number(visible, 2))
            }
        }
    }

    fn computed_number(&mut self, visible: &[String], depth: usize) -> String {
        if depth > 0 && self.random.bool() {
            let operator = self.one_of(&["+", "-", "*", "/", "%"]);
            let (left, right) = (
                self.computed_number(visible, depth - 1),
                self.computed_number(visible, depth - 1),
            );
            return format!("({left} {operator} {right})");
        }
        match self.random.u8(0..12) {
            0..=6 => visible[self.random.usize(..visible.len())].clone(),
            7 => format!("-{}", visible[self.random.usize(..visible.len())]),
            8 => "9223372036854775807".to_owned(),
            _ => self.random.i16(-9..100).to_string(),
        }
    }

    fn number_condition(&mut self, visible: &[String], depth: usize) -> String {
        match self.random.u8(0..8) {
            0 if depth > 0 => format!("!({})", self.number_condition(visible, depth - 1)),
            1 | 2 if depth > 0 => {
                let (one, other) = (
                    self.number_condition(visible, depth - 1),
                    self.number_condition(visible, depth - 1),
                );
                let operator = self.one_of(&["&&", "||"]);
                format!("({one} {operator} {other})")
            }
            _ => {
                let operator = self.one_of(&["==", "!=", "<", "<=", ">", ">="]);
                format!(
                    "{} {operator} {}",
                    self.computed_number(visible, 1),
                    self.computed_number(visible, 1)
                )
            }
        }
    }
}
