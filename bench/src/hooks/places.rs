//! Names for addresses of code, by binutils' `addr2line`.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use super::trace::Module;

/// Characters of a function's name that are shown: generic ones can be very long.
const LONGEST: usize = 90;

/// For each of `instructions` the function and the line that it belongs to, or its offset in the file
/// when nothing is known of it.
pub(super) fn name(
    modules: &[Module],
    instructions: impl Iterator<Item = u64> + Clone,
) -> HashMap<u64, String> {
    let mut names = HashMap::new();
    for module in modules {
        let own: Vec<u64> = instructions
            .clone()
            .filter(|address| module.holds(*address))
            .collect();
        let offsets: Vec<u64> = own.iter().map(|address| address - module.base).collect();
        let text = ask(module, &offsets).unwrap_or_default();
        let mut known = parse(&text);
        for (address, offset) in own.into_iter().zip(offsets) {
            let file = module.path.file_name().unwrap_or_default();
            let fallback = || format!("{}+{offset:#x}", file.to_string_lossy());
            let name = known.remove(&offset).unwrap_or_else(fallback);
            names.insert(address, name);
        }
    }
    names
}

fn ask(module: &Module, offsets: &[u64]) -> Option<String> {
    if offsets.is_empty() {
        return None;
    }
    let output = Command::new("addr2line")
        .args([
            "--addresses",
            "--functions",
            "--inlines",
            "--demangle",
            "--exe",
        ])
        .arg(&module.path)
        .args(offsets.iter().map(|offset| format!("{offset:#x}")))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An address, then two lines for each function from the innermost outwards: its name, and file and
/// line.
fn parse(text: &str) -> HashMap<u64, String> {
    let mut found = HashMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let address = line.strip_prefix("0x");
        let Some(address) = address.and_then(|digits| u64::from_str_radix(digits, 16).ok()) else {
            continue;
        };
        let mut functions = Vec::new();
        while let Some(function) = lines.next_if(|line| !line.starts_with("0x")) {
            let place = lines.next().unwrap_or_default();
            if function != "??" {
                functions.push((function, Source::of(place)));
            }
        }
        if let Some(name) = describe(&functions) {
            found.insert(address, name);
        }
    }
    found
}

/// A place in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source<'a> {
    /// In the standard library.
    Standard,
    /// In a library.
    Library(&'a str),
    /// In this project.
    Own(&'a str),
}

impl<'a> Source<'a> {
    fn of(place: &'a str) -> Self {
        // binutils adds ` (discriminator 2)`.
        let place = place.split(" (").next().unwrap_or(place);
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let own = project
            .and_then(Path::to_str)
            .and_then(|project| place.strip_prefix(project));
        if let Some(own) = own {
            return Self::Own(own.trim_start_matches('/'));
        }
        if place.starts_with("/rustc/") || place.contains("/rustlib/") {
            return Self::Standard;
        }
        match place.split_once("/registry/src/") {
            // Behind the name of the registry.
            Some((_, rest)) => Self::Library(rest.split_once('/').map_or(rest, |(_, file)| file)),
            None => Self::Library(place),
        }
    }
}

/// What of a stack of inlined functions tells most: the innermost that is not the standard library's,
/// and the innermost of this project; if there is neither, the function itself.
fn describe(functions: &[(&str, Source)]) -> Option<String> {
    let mut parts = Vec::new();
    for &(function, source) in functions {
        match source {
            Source::Standard => {}
            Source::Library(place) if parts.is_empty() => parts.push(part(function, place)),
            Source::Library(_) => {}
            Source::Own(place) => {
                parts.push(part(function, place));
                break;
            }
        }
    }
    if parts.is_empty() {
        // The outermost is the function that was compiled, with all its types.
        let (function, _) = functions.last()?;
        parts.push(cut(function));
    }
    Some(parts.join(" in "))
}

/// A function with its place, which makes its types needless: `get<Cache>` is `get`.
fn part(function: &str, place: &str) -> String {
    let types = function.find('<').filter(|start| *start > 0);
    let name = types.map_or(function, |start| &function[..start]);
    format!("{} ({place})", cut(name))
}

fn cut(function: &str) -> String {
    match function.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", &function[..end]),
        None => function.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_the_project_is_named_and_what_it_calls() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/a.rs:7");
        let text = format!(
            "0x0000000000001234\nstore\n/rustc/59807/library/core/src/sync/atomic.rs:2872\n\
             seed\n/home/user/.cargo/registry/src/index.crates.io-1949/foldhash-0.2.0/src/seed.rs:66\n\
             default\n/home/user/.cargo/registry/src/index.crates.io-1949/foldhash-0.2.0/src/fast.rs:9\n\
             look_up<Table>\n{own} (discriminator 3)\nouter\n{own}\n\
             0x0000000000005678\nfetch_sub\n/rustc/59807/library/core/src/sync/atomic.rs:3942\n\
             core::ptr::drop_in_place<Table>\n/rustc/59807/library/core/src/ptr/mod.rs:1\n\
             0x9\n??\n??:0\n"
        );
        let found = parse(&text);
        let folder = env!("CARGO_MANIFEST_DIR").rsplit('/').next().unwrap();
        assert_eq!(
            found[&0x1234],
            format!("seed (foldhash-0.2.0/src/seed.rs:66) in look_up ({folder}/src/a.rs:7)")
        );
        assert_eq!(found[&0x5678], "core::ptr::drop_in_place<Table>");
        assert!(!found.contains_key(&9));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut(&"ä".repeat(100)).chars().count(), LONGEST + 2);
        assert_eq!(cut("short"), "short");
    }
}
