#![allow(clippy::unwrap_used)]

mod checks;
mod failures;
mod health;
mod listener_tls;
mod loading;
mod mistakes;
mod tls;
mod values;

use super::convert;
use super::error::Source;
use super::*;

/// The configuration that a text gives, or its errors, one a line.
fn parse(text: &str) -> Result<Config, String> {
    let source = Source {
        name: CONFIG_FILE,
        text,
    };
    convert::parse(source, &Overrides::default())
        .map(|parsed| parsed.config)
        .map_err(|diagnostics| diagnostics.to_string())
}

/// The errors of a text that has some, without the file's name.
fn errors(text: &str) -> String {
    parse(text)
        .unwrap_err()
        .replace("edgewright.toml:", "")
        .replace("error: ", "")
}
