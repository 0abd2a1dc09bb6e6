//! `table(..)`: from a file of the folder, by its extension, or from a map.

use rhai::{Engine, Map};

use super::{Inputs, draft::SharedDraft, options::Options};
use crate::{
    engine::{Local, NativeResult, native_error},
    frozen::Frozen,
    values::{Columns, FileError, Table, Wrong},
};

pub(super) fn register(engine: &mut Engine, inputs: &Inputs, draft: &SharedDraft) {
    let (files, shared) = (inputs.files.clone(), draft.clone());
    let read = move |name: &str| {
        files.read(name).map_err(|error| {
            if error == FileError::Changed {
                shared.borrow_mut().files_changed = true;
            }
            native_error(error.to_string())
        })
    };
    let content = read.clone();
    engine.register_fn("table", move |name: &str| {
        let text = content(name)?;
        made(
            name,
            match extension(name).as_str() {
                "csv" => Table::from_csv(&text, &Columns::default()),
                "txt" | "list" => Table::from_lines(&text),
                _ => Table::from_json(&text),
            },
        )
    });
    engine.register_fn("table", move |name: &str, options: Map| {
        if extension(name) != "csv" {
            return Err(native_error(format!(
                "only a table of columns has options, and `{name}` is no .csv file"
            )));
        }
        let columns = columns(options)?;
        made(name, Table::from_csv(&read(name)?, &columns))
    });
    engine.register_fn("table", |entries: Map| -> NativeResult<Local<Table>> {
        let entries = entries.into_iter().map(|(key, value)| {
            let value = Frozen::freeze(&value)
                .map_err(|what| native_error(format!("a table can't hold {what}")))?;
            if value.has_function() {
                return Err(native_error(
                    "a table holds plain data: use a map for functions",
                ));
            }
            Ok((key.to_string(), value))
        });
        let table = Table::new(entries.collect::<NativeResult<Vec<_>>>()?);
        Ok(Local::new(table))
    });
}

fn made(name: &str, table: Result<Table, Wrong>) -> NativeResult<Local<Table>> {
    let table = table.map(Local::new);
    table.map_err(|wrong| native_error(wrong.of(name).to_string()))
}

/// In lower case; empty when the name has none.
fn extension(name: &str) -> String {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    extension.to_ascii_lowercase()
}

fn columns(options: Map) -> NativeResult<Columns> {
    let mut options =
        Options::new("table", options, &["key", "value", "separator"]).map_err(native_error)?;
    let mut columns = Columns {
        key: options.text("key").map_err(native_error)?,
        value: options.text("value").map_err(native_error)?,
        ..Columns::default()
    };
    if columns.value.is_some() && columns.key.is_none() {
        return Err(native_error(
            "`value` of `table` names a column of a table with names: say which one has the keys, \
             #{ key: \"..\" }",
        ));
    }
    if let Some(separator) = options.text("separator").map_err(native_error)? {
        columns.separator = match separator.as_bytes() {
            [one] if one.is_ascii() && !matches!(one, b'"' | b'\r' | b'\n') => *one,
            _ => {
                return Err(native_error(
                    "`separator` of `table` is one character, such as \";\" or \"\\t\"",
                ));
            }
        };
    }
    Ok(columns)
}
