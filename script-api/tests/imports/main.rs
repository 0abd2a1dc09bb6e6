//! Programs of several files.

#![allow(clippy::unwrap_used)]

mod files;
mod mistakes;
mod names;
mod places;
mod same;

#[path = "../support/mod.rs"]
mod support;

use std::{collections::HashMap, rc::Rc};

use edgewright_script::{
    load::Inputs,
    memory::MemoryRequest,
    values::{FileError, Files, ProgramFile},
};
use support::{End, Runner, program_from, try_load_from};

/// A folder in memory. A content that begins with `->` is a link to the file behind it.
struct Folder(HashMap<String, String>);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Vec<u8>, FileError> {
        self.read_program(name).map(|file| file.content)
    }

    fn read_program(&self, name: &str) -> Result<ProgramFile, FileError> {
        match self.0.get(name).map(String::as_str) {
            None => Err(FileError::NotFound(name.to_owned())),
            Some("swapped") => Err(FileError::Changed),
            Some("elsewhere") => Err(FileError::Outside(name.to_owned())),
            Some(text) => match text.strip_prefix("->") {
                Some(target) => self.read_program(target),
                None => Ok(ProgramFile {
                    content: text.as_bytes().to_vec(),
                    path: name.into(),
                }),
            },
        }
    }
}

/// The program `main` with other files beside it.
fn with_files(main: &str, files: &[(&str, &str)]) -> Inputs {
    let own = [
        ("routes.rhai", main),
        ("keys.json", r#"{"k-alice": "alice"}"#),
    ];
    let all = files.iter().chain(&own);
    let all = all.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Inputs {
        files: Rc::new(Folder(all.collect())),
        ..support::inputs(main)
    }
}

fn program(main: &str, files: &[(&str, &str)]) -> Runner {
    program_from(&with_files(main, files))
}

/// What is wrong with a program, one finding a line.
fn errors(main: &str, files: &[(&str, &str)]) -> String {
    match try_load_from(&with_files(main, files)) {
        Ok(_) => panic!("the program loads: {main}"),
        Err(found) => found.to_string(),
    }
}

/// The program has one mistake, and says so.
#[track_caller]
fn refused(main: &str, files: &[(&str, &str)], expected: &str) {
    assert_eq!(errors(main, files), expected);
}

#[track_caller]
fn answers(main: &str, files: &[(&str, &str)], expected: &str) {
    let ended = program(main, files).get("/a");
    assert_eq!(ended, End::Answer(200, expected.to_owned()));
}

/// The message of the failure of a request for `/a`.
fn failure(main: &str, files: &[(&str, &str)]) -> String {
    let mut request = MemoryRequest::new("GET", "h", "/a");
    let ended = program(main, files).run(&mut request);
    ended.unwrap_err().to_string()
}

/// A file with a gate.
const AUTH: &str = r#"const KEYS = table("keys.json");
const REALM = "inner";

fn gate(req) {
    let client = KEYS.get(req.header("x-api-key"));
    if client == () { return denied(REALM); }
    req.set_header("x-client", client);
}

fn realm() { REALM }

private fn denied(realm) { respond(401, realm) }
"#;
