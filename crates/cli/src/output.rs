//! Printing of what commands return.

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

/// Prints a text that ends its own lines.
pub(crate) fn text(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes());
}

/// Columns that lines for people are broken at.
const COLUMNS: usize = 80;

/// A paragraph on lines of its own, broken between words: the first line indented by `first`, the
/// others by `others`. Begins with a line's end.
pub(crate) fn indented(text: &str, first: usize, others: usize) -> String {
    let mut lines = vec![" ".repeat(first)];
    let mut empty = true;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first one");
        if !empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(" ".repeat(others) + word);
            continue;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.iter().map(|line| format!("\n{line}")).collect()
}

/// This program as it was called, for commands that can be pasted.
pub(crate) fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "quorate".to_owned())
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn paragraphs_stay_within_the_columns() {
        let text = indented(&"word ".repeat(40), 2, 6);
        assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("\n  word word") && text.contains("\n      word"), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(indented("one", 2, 4), "\n  one");
    }
}
