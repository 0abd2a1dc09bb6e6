//! Makes programs by chance, out of everything that hooks are made of.

mod numbers;

use std::fmt::Write as _;

use fastrand::Rng;

/// Makes the bodies of hooks.
pub struct Generator {
    random: Rng,
    /// Names of variables that are visible.
    variables: Vec<String>,
    made: usize,
    depth: usize,
    loops: usize,
}

const TEXTS: [&str; 6] = ["", "a", "web", "42", "/a/b", "héé"];
const NUMBERS: [&str; 6] = ["0", "1", "-1", "7", "100", "9223372036854775807"];

impl Generator {
    /// The same seed makes the same program.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            variables: Vec::new(),
            made: 0,
            depth: 0,
            loops: 0,
        }
    }

    /// The body of a hook whose parameter is `req`.
    pub fn body(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.random.usize(1..7) {
            let statement = self.statement();
            let _ = writeln!(text, "    {statement}");
        }
        let end = self.expression();
        let _ = writeln!(text, "    req.set(\"end\", {end});");
        for variable in self.variables.clone() {
            let _ = writeln!(text, "    req.set(\"{variable}\", {variable});");
        }
        text
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.random.usize(..texts.len())]
    }

    fn variable(&mut self) -> Option<String> {
        if self.variables.is_empty() {
            return None;
        }
        let index = self.random.usize(..self.variables.len());
        Some(self.variables[index].clone())
    }

    fn new_variable(&mut self) -> String {
        self.made += 1;
        format!("v{}", self.made)
    }

    fn block(&mut self) -> String {
        let height = self.variables.len();
        self.depth += 1;
        let mut text = String::from("{ ");
        for _ in 0..self.random.usize(0..3) {
            text += &self.statement();
            text.push(' ');
        }
        if self.random.bool() {
            text += &self.expression();
            text.push(' ');
        }
        text.push('}');
        self.depth -= 1;
        self.variables.truncate(height);
        text
    }

    fn statement(&mut self) -> String {
        let simple = self.depth > 3;
        match self.random.u8(if simple { 0..5 } else { 0..14 }) {
            0 | 1 => {
                let value = self.expression();
                let name = self.new_variable();
                self.variables.push(name.clone());
                format!("let {name} = {value};")
            }
            2 => match self.variable() {
                Some(name) => {
                    let operator = self.one_of(&["=", "+=", "-=", "*="]);
                    format!("{name} {operator} {};", self.expression())
                }
                None => format!("req.set(\"a\", {});", self.expression()),
            },
            3 => format!("req.set_header(\"x-a\", {});", self.expression()),
            4 => match self.variable() {
                Some(name) => {
                    let place =
                        self.one_of(&["[0]", "[1]", "[-1]", ".a", "[\"a\"]", ".b.c", "[0].a"]);
                    format!("{name}{place} = {};", self.expression())
                }
                None => format!("req.add_header(\"x-b\", {});", self.expression()),
            },
            5 | 6 => {
                let condition = self.condition();
                let then = self.block();
                if self.random.bool() {
                    format!("if {condition} {then} else {}", self.block())
                } else {
                    format!("if {condition} {then}")
                }
            }
            7 => {
                let over = match self.random.u8(0..4) {
                    0 => "0..3".to_owned(),
                    1 => self.array(),
                    2 => format!("\"{}\"", self.one_of(&TEXTS)),
                    _ => self.expression(),
                };
                let name = self.new_variable();
                let height = self.variables.len();
                self.variables.push(name.clone());
                self.loops += 1;
                let body = self.block();
                self.loops -= 1;
                self.variables.truncate(height);
                format!("for {name} in {over} {body}")
            }
            8 => {
                let value = self.expression();
                let cases = (0..self.random.usize(1..4)).map(|_| {
                    let case = if self.random.bool() {
                        self.one_of(&NUMBERS).replace('-', "")
                    } else {
                        format!("\"{}\"", self.one_of(&TEXTS))
                    };
                    format!("{case} => {}", self.block())
                });
                let cases: Vec<_> = cases.collect();
                format!(
                    "switch {value} {{ {}, _ => {} }}",
                    cases.join(", "),
                    self.block()
                )
            }
            9 if self.loops > 0 => self.one_of(&["break;", "continue;"]).to_owned(),
            9 | 10 => format!(
                "if {} {{ return {}; }}",
                self.condition(),
                self.expression()
            ),
            11 | 12 => self.number_loop(),
            _ => match self.variable() {
                Some(name) => {
                    let call =
                        self.one_of(&["push(1)", "make_upper()", "clear()", "pop()", "trim()"]);
                    format!("{name}.{call};")
                }
                None => format!("if {} {{ throw {}; }}", self.condition(), self.expression()),
            },
        }
    }

    fn condition(&mut self) -> String {
        if self.random.u8(0..10) < 8 {
            return self.truth();
        }
        self.depth += 1;
        let condition = match self.random.u8(0..8) {
            0..=3 => {
                let operator = self.one_of(&["==", "!=", "<", ">="]);
                format!("{} {operator} {}", self.operand(), self.operand())
            }
            4 => format!("{} && {}", self.bracketed(), self.bracketed()),
            5 => format!("!{}", self.bracketed()),
            6 => format!("req.path.starts_with({})", self.expression()),
            _ => self.expression(),
        };
        self.depth -= 1;
        condition
    }

    fn bracketed(&mut self) -> String {
        if self.depth > 4 {
            return "true".to_owned();
        }
        format!("({})", self.condition())
    }

    fn operand(&mut self) -> String {
        let operand = self.expression();
        format!("({operand})")
    }

    fn array(&mut self) -> String {
        self.depth += 1;
        let items: Vec<_> = (0..self.random.usize(0..4))
            .map(|_| self.expression())
            .collect();
        self.depth -= 1;
        format!("[{}]", items.join(", "))
    }

    /// A number, whatever happens.
    fn number(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 5;
        let number = match self.random.u8(if deep { 0..2 } else { 0..9 }) {
            0 => self.random.i32(-9..100).to_string(),
            1 => format!("\"{}\".len()", self.one_of(&TEXTS)),
            2 | 3 => {
                let operator = self.one_of(&["+", "-", "*"]);
                format!("({} {operator} {})", self.number(), self.number())
            }
            4 => format!("double({})", self.number()),
            5 => format!("(num({}) ?? {})", self.text(), self.number()),
            6 => format!(
                "[{}, {}][{}]",
                self.number(),
                self.number(),
                self.random.u8(0..2)
            ),
            7 => {
                let (condition, number) = (self.truth(), self.number());
                format!("if {condition} {{ {number} }} else {{ {} }}", self.number())
            }
            _ => format!("#{{ a: {} }}.a", self.number()),
        };
        self.depth -= 1;
        number
    }

    /// A text, whatever happens.
    fn text(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 5;
        let text = match self.random.u8(if deep { 0..2 } else { 0..11 }) {
            0 => format!("\"{}\"", self.one_of(&TEXTS)),
            1 => format!("req.{}", self.one_of(&["path", "method", "host"])),
            2 => format!("(req.header(\"x-number\") ?? {})", self.text()),
            3 => format!("({} + {})", self.text(), self.text()),
            4 => format!("`a ${{{}}} ${{{}}}`", self.text(), self.number()),
            5 => format!("{}.to_upper()", self.text()),
            6 => format!("(KEYS.get({}) ?? {})", self.text(), self.text()),
            7 => format!("either({}, {})", self.text(), self.text()),
            8 => format!("type_of({})", self.expression()),
            9 => {
                let (value, case) = (self.text(), self.one_of(&TEXTS));
                let (one, other) = (self.text(), self.text());
                format!("switch {value} {{ \"{case}\" => {one}, _ => {other} }}")
            }
            _ => format!("OPTIONS.b.{}", self.one_of(&["c", "c"])),
        };
        self.depth -= 1;
        text
    }

    /// True or false, whatever happens.
    fn truth(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 5;
        let truth = match self.random.u8(if deep { 0..1 } else { 0..8 }) {
            0 => self.one_of(&["true", "false"]).to_owned(),
            1 => {
                let operator = self.one_of(&["==", "!=", "<", ">="]);
                format!("({} {operator} {})", self.number(), self.number())
            }
            2 => format!("({} == {})", self.text(), self.text()),
            3 => format!("{}.starts_with({})", self.text(), self.text()),
            4 => format!(
                "({} in {})",
                self.text(),
                self.one_of(&["NAMES", "\"web\"", "OPTIONS"])
            ),
            5 => format!("!{}", self.truth()),
            6 => {
                let operator = self.one_of(&["&&", "||"]);
                format!("({} {operator} {})", self.truth(), self.truth())
            }
            _ => format!("({} == ())", self.expression()),
        };
        self.depth -= 1;
        truth
    }

    fn expression(&mut self) -> String {
        if self.depth > 4 {
            return self.leaf();
        }
        match self.random.u8(0..10) {
            0..=2 => return self.number(),
            3..=5 => return self.text(),
            6 => return self.truth(),
            _ => {}
        }
        self.depth += 1;
        let expression = match self.random.u8(0..22) {
            0..=6 => self.leaf(),
            7 | 8 => {
                let operator = self.one_of(&["+", "-", "*", "/", "%", "==", "<", "in", "??"]);
                format!("{} {operator} {}", self.operand(), self.operand())
            }
            9 => self.array(),
            10 => format!(
                "#{{ a: {}, b: #{{ c: {} }} }}",
                self.expression(),
                self.expression()
            ),
            11 => format!("`{} ${{{}}}`", self.one_of(&TEXTS), self.expression()),
            12 => format!(
                "if {} {} else {}",
                self.condition(),
                self.block(),
                self.block()
            ),
            13 => format!("double({})", self.expression()),
            14 => format!("either({}, {})", self.expression(), self.expression()),
            15 => format!("KEYS.get({})", self.expression()),
            16 => format!("DIGITS.is_match({})", self.expression()),
            17 => {
                let operand = self.operand();
                let call = self.one_of(&[
                    ".len()",
                    ".to_upper()",
                    ".split(\",\")",
                    ".a",
                    "?.a",
                    "?.b?.c",
                    "[0]",
                    "?[0]",
                    ".contains(\"a\")",
                    ".sub_string(1)",
                    ".trim()",
                    ".keys()",
                    ".starts_with(\"a\")",
                    ".to_string()",
                    "[\"a\"]",
                    ".b.c",
                ]);
                format!("{operand}{call}")
            }
            18 => format!("{}.map(|x| x + 1)", self.array()),
            19 => format!("num({})", self.expression()),
            20 => format!("type_of({})", self.expression()),
            _ => self.block(),
        };
        self.depth -= 1;
        expression
    }

    fn leaf(&mut self) -> String {
        match self.random.u8(0..10) {
            0 | 1 => match self.variable() {
                Some(name) => name,
                None => "()".to_owned(),
            },
            2 => self.one_of(&NUMBERS).to_owned(),
            3 => format!("\"{}\"", self.one_of(&TEXTS)),
            4 => self
                .one_of(&["true", "false", "()", "2.5", "'c'"])
                .to_owned(),
            5 => format!(
                "req.header(\"{}\")",
                self.one_of(&["x-number", "x-none", "x-a"])
            ),
            6 => format!(
                "req.{}",
                self.one_of(&["path", "method", "host", "query_string"])
            ),
            7 => format!("req.query(\"{}\")", self.one_of(&["q", "none"])),
            8 => self
                .one_of(&["LIMIT", "NAMES", "OPTIONS", "NAMES[0]", "OPTIONS.a"])
                .to_owned(),
            _ => "KEYS.get(\"k-bob\")".to_owned(),
        }
    }
}
