//! Loads programs and runs requests against them, in memory.

#![allow(dead_code, clippy::unwrap_used)]

pub mod counting;

use std::{collections::HashMap, rc::Rc, sync::Arc};

use edgewright_script::{
    answer::Answer,
    diagnostic::Diagnostics,
    engine::{Choice, Failure, Interpreter, Limits, Verdict},
    load::{Inputs, LoadError, Loaded, load},
    memory::MemoryRequest,
    path::PathPolicy,
    program::{Destination, Match, PoolId, Program, Route},
    router::Captures,
    state::StateStore,
    values::{FileError, Files, ProgramFile},
};

/// Files in memory.
pub struct MemoryFiles(pub HashMap<&'static str, &'static str>);

impl Files for MemoryFiles {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let found = self.0.get(name).map(|text| text.as_bytes().to_vec());
        found.ok_or_else(|| FileError::NotFound(name.to_owned()))
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        let content = self.read(name)?;
        let path = name.into();
        Ok(ProgramFile { content, path })
    }
}

pub fn inputs(source: &str) -> Inputs {
    Inputs {
        file: "routes.rhai".to_owned(),
        source: source.to_owned(),
        files: Rc::new(MemoryFiles(HashMap::from([(
            "keys.json",
            r#"{"k-alice": "alice", "k-bob": "bob"}"#,
        )]))),
        environment: Rc::new(|name| (name == "REGION").then(|| "eu".to_owned())),
        pools: ["web", "api", "canary", "admin"]
            .map(str::to_owned)
            .to_vec(),
        limits: Limits::default(),
        path_policy: PathPolicy::default(),
        state: StateStore::default(),
    }
}

pub fn try_load(source: &str) -> Result<Loaded, Diagnostics> {
    try_load_from(&inputs(source))
}

pub fn try_load_from(inputs: &Inputs) -> Result<Loaded, Diagnostics> {
    load(inputs).map_err(|error| match error {
        LoadError::Invalid(found) => found,
        LoadError::Changed => panic!("files in memory don't change"),
    })
}

pub fn program(source: &str) -> Runner {
    program_from(&inputs(source))
}

pub fn program_from(inputs: &Inputs) -> Runner {
    let loaded = try_load_from(inputs).unwrap_or_else(|found| panic!("{found}"));
    let program = Arc::new(loaded.program);
    Runner {
        interpreter: Interpreter::new(program.clone()).unwrap(),
        program,
    }
}

/// A program with inputs of its own.
pub fn program_of(inputs: &Inputs) -> Runner {
    let program = match load(inputs) {
        Ok(loaded) => Arc::new(loaded.program),
        Err(LoadError::Invalid(found)) => panic!("{found}"),
        Err(LoadError::Changed) => panic!("files in memory don't change"),
    };
    Runner {
        interpreter: Interpreter::new(program.clone()).unwrap(),
        program,
    }
}

/// The errors of a program that must not load, one a line.
pub fn errors(source: &str) -> String {
    match try_load(source) {
        Ok(_) => panic!("the program loads: {source}"),
        Err(found) => found.to_string(),
    }
}

pub struct Runner {
    pub program: Arc<Program>,
    pub interpreter: Interpreter,
}

/// Where a request ended.
#[derive(Debug, PartialEq)]
pub enum End {
    Pool(String),
    Answer(u16, String),
    NotFound,
    MethodNotAllowed(String),
}

impl Runner {
    pub fn route_label(&self, request: &MemoryRequest) -> String {
        match self.program.find(request, &[]) {
            Match::Found(found) => self.program.route(found.route).label.clone(),
            other => format!("{other:?}"),
        }
    }

    /// Matches and runs a request as a server would.
    pub fn run(&mut self, request: &mut MemoryRequest) -> Result<End, Failure> {
        let program = self.program.clone();
        let mut rejected = Vec::new();
        let found = loop {
            match program.find(request, &rejected) {
                Match::Found(found) => {
                    let route = program.route(found.route);
                    request.params = params(route, request, &found.captures);
                    let mut holds = true;
                    for &hook in &route.when {
                        holds = holds && self.interpreter.when(hook, request)?;
                    }
                    if holds {
                        break found;
                    }
                    rejected.push(found.route);
                }
                Match::MethodNotAllowed { allow, .. } => return Ok(End::MethodNotAllowed(allow)),
                Match::NoRoute(_) | Match::NoSite => return Ok(End::NotFound),
            }
        };
        let route = program.route(found.route);
        for &hook in &route.on_request {
            if let Verdict::Answer(answer) = self.interpreter.on_request(hook, request)? {
                return Ok(answered(&answer));
            }
        }
        let pool = |id: PoolId| End::Pool(program.pools[id.index()].name.clone());
        Ok(match &route.destination {
            Destination::Pool(id) => pool(*id),
            Destination::Split(split) => pool(split.pick(0)),
            Destination::Respond(answer) => answered(answer),
            Destination::RespondFunction(hook) => {
                answered(&self.interpreter.respond(*hook, request)?)
            }
            Destination::Redirect(status, target) => {
                let mut text = String::new();
                target.render(&request.path, &found.captures, &mut text);
                End::Answer(status.as_u16(), text)
            }
            Destination::Function(hook) => match self.interpreter.choose(*hook, request)? {
                Choice::Pool(id) => pool(id),
                Choice::Split(split) => pool(split.pick(0)),
                Choice::Pick(pick) => pool(pick.pool),
                Choice::Answer(answer) => answered(&answer),
            },
        })
    }

    pub fn get(&mut self, target: &str) -> End {
        self.run(&mut MemoryRequest::new("GET", "any.example", target))
            .unwrap_or_else(|failure| panic!("{failure}"))
    }
}

fn answered(answer: &Answer) -> End {
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    End::Answer(answer.status.as_u16(), body)
}

fn params(route: &Route, request: &MemoryRequest, captures: &Captures) -> Vec<(String, String)> {
    route
        .pattern
        .names()
        .enumerate()
        .map(|(index, name)| {
            let text = captures.get(&request.path, index).unwrap_or_default();
            (name.to_owned(), text.to_owned())
        })
        .collect()
}
