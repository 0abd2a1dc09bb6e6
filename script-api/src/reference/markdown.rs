//! `docs/reference.md`.

use std::{
    any::TypeId,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use rhai::{Array, Blob, FLOAT, FnPtr, INT, ImmutableString, Map, is_valid_identifier};

use super::{Entry, GROUPS, Group, TYPES};
use crate::{
    engine::sandbox::of_rhai,
    program::{HookKind, Need},
};

/// The text of `docs/reference.md`.
pub fn markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    out.push_str("\n## Where what may stand\n\n");
    phases(&mut out);
    out.push_str("\n## Types\n\n| type | |\n| --- | --- |\n");
    for (name, meaning) in TYPES {
        row(&mut out, [format!("`{name}`").as_str(), meaning]);
    }
    out.push_str(
        "\nOther types, such as `Request`, are edgewright's own and have a section below. `a | b` is one of them.\n",
    );
    for group in GROUPS {
        section(&mut out, group);
    }
    out.push_str(OF_RHAI);
    for (what, names) in natives_of_rhai() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        row(&mut out, [what, &names.join(" ")]);
    }
    out
}

const INTRODUCTION: &str = "\
# Reference

Everything that `routes.rhai` can call, read and assign to. This page is written from the tables that the checks use, which a test compares with what
is registered: to change it, change `script-api/src/reference/` and run

```sh
EDGEWRIGHT_UPDATE_DOCS=1 cargo nextest run -p edgewright-script --test reference
```

How the parts play together stands in [routes.md](routes.md).
";

const OF_RHAI: &str = "
## What Rhai brings

Of [Rhai's own functions](https://rhai.rs/book/ref/index.html) there are these, besides its operators, as functions of a value or as its methods. Text
methods change the text in place. There is no `print`, `debug` or `eval`, nothing that sleeps, and no other access to files.

| of | |
| --- | --- |
";

/// Which kind of hook has what, and what needs it.
fn phases(out: &mut String) {
    out.push_str("| | the top level |");
    for kind in HookKind::ALL {
        write!(out, " {} |", kind.written()).ok();
    }
    out.push_str(" |\n| --- | --- |");
    out.push_str(&" --- |".repeat(HookKind::ALL.len() + 1));
    out.push('\n');
    for need in Need::ALL {
        let mark = |has: bool| if has { " yes |" } else { " |" };
        write!(out, "| {} |{}", need.described(), mark(need.at_top_level())).ok();
        for kind in HookKind::ALL {
            out.push_str(mark(kind.has(need)));
        }
        writeln!(out, " {} |", examples(need)).ok();
    }
}

/// What needs this, as far as it isn't too much to name.
fn examples(need: Need) -> String {
    const MOST: usize = 16;
    let mut names: Vec<String> = Vec::new();
    for group in GROUPS {
        for entry in group.entries {
            let receiver = match group.of {
                Some("Request") => "req.",
                Some("Response") => "res.",
                Some(_) => ".",
                None => "",
            };
            if entry.need == need {
                names.push(format!("`{receiver}{}`", entry.name()));
            }
            if entry.assigned == Some(need) {
                names.push(format!("`{receiver}{} =`", entry.name()));
            }
        }
    }
    if names.len() <= MOST {
        return names.join(" ");
    }
    let groups = GROUPS.iter().filter(|group| usual_need(group) == need);
    let titles: Vec<String> = groups.map(|group| group.title.to_lowercase()).collect();
    titles.join("; ")
}

fn section(out: &mut String, group: &Group) {
    writeln!(out, "\n## {}", group.title).ok();
    if !group.about.is_empty() {
        writeln!(out, "\n{}", group.about).ok();
    }
    let usual = usual_need(group);
    if usual != Need::Nothing {
        writeln!(out, "\nMay stand {}.", usual.places()).ok();
    }
    out.push('\n');
    for entry in group.entries {
        list_item(out, entry, usual);
    }
}

/// What most of the group needs.
fn usual_need(group: &Group) -> Need {
    let count = |need: &Need| group.entries.iter().filter(|one| one.need == *need).count();
    Need::ALL
        .into_iter()
        .rev()
        .max_by_key(count)
        .unwrap_or(Need::Nothing)
}

fn list_item(out: &mut String, entry: &Entry, usual: Need) {
    let signatures: Vec<String> = entry
        .signatures
        .iter()
        .map(|one| format!("`{one}`"))
        .collect();
    write!(
        out,
        "- {}<br>\n  {}",
        signatures.join("<br>\n  "),
        entry.docs
    )
    .ok();
    if entry.need != usual {
        write!(out, " *May stand {}.*", entry.need.places()).ok();
    }
    if let Some(need) = entry.assigned {
        write!(out, " *Can be assigned to {}.*", need.places()).ok();
    }
    out.push('\n');
}

fn row<const N: usize>(out: &mut String, cells: [&str; N]) {
    writeln!(out, "| {} |", cells.join(" | ")).ok();
}

/// The names that Rhai's packages have, by the type of their first parameter.
fn natives_of_rhai() -> Vec<(&'static str, BTreeSet<String>)> {
    let groups: [(&str, &[TypeId]); 7] = [
        (
            "text",
            &[TypeId::of::<ImmutableString>(), TypeId::of::<char>()],
        ),
        ("`array`", &[TypeId::of::<Array>()]),
        ("`map`", &[TypeId::of::<Map>()]),
        ("`function`", &[TypeId::of::<FnPtr>()]),
        ("numbers", &[TypeId::of::<INT>(), TypeId::of::<FLOAT>()]),
        ("`bytes`", &[TypeId::of::<Blob>()]),
        ("everything else", &[]),
    ];
    let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let all = of_rhai().collect_fn_metadata(
        None,
        |function| {
            let first = function.metadata.param_types.first().copied();
            Some((function.metadata.name.to_string(), first))
        },
        true,
    );
    for (name, first) in all {
        let name = name.strip_prefix("get$").unwrap_or(&name);
        let here = is_valid_identifier(name) && !["print", "debug"].contains(&name);
        if !here {
            continue;
        }
        let group =
            first.and_then(|first| groups.iter().position(|(_, types)| types.contains(&first)));
        let group = group.unwrap_or(groups.len() - 1);
        found.entry(group).or_default().insert(name.to_owned());
    }
    found
        .into_iter()
        .map(|(group, names)| (groups[group].0, names))
        .collect()
}
