//! What commands print.

use serde::Serialize;
use std::io::Write;

/// Prints a value as indented JSON.
///
/// # Panics
/// Never: what commands print is plain data.
pub(crate) fn json(value: &impl Serialize) {
    line(&serde_json::to_string_pretty(value).expect("plain data"));
}

/// Prints a text and ends the line. A reader that went away, such as `head`, is no error.
pub(crate) fn line(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{text}");
}

/// This program as it was called, for commands that can be pasted.
pub(crate) fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "quorate".to_owned())
}
