//! A few lines of a terminal that are drawn over themselves.
//!
//! The cursor stays visible and below the panel, and nothing about the terminal is changed: however
//! the program ends, even by SIGKILL, there is nothing to restore.

use console::{Term, truncate_str};
use std::fmt::Write;

/// The size assumed where the terminal does not say, in rows and columns.
const SIZE: (u16, u16) = (24, 80);

/// The panel.
#[derive(Debug)]
pub(super) struct Panel {
    terminal: Term,
    /// Lines that it takes up now.
    drawn: usize,
}

impl Panel {
    pub(super) fn new(terminal: Term) -> Self {
        Self { terminal, drawn: 0 }
    }

    /// Replaces what is shown by what `frame` makes of the columns and rows that there are.
    pub(super) fn draw(&mut self, frame: impl FnOnce(usize, usize) -> Vec<String>) {
        let (rows, columns) = self.terminal.size_checked().unwrap_or(SIZE);
        // The last column stays empty, since some terminals wrap when it is written; the last row is
        // the cursor's.
        let (width, height) = (usize::from(columns).max(20) - 1, usize::from(rows).max(4) - 1);
        let lines = frame(width, height);
        let text = redrawn(self.drawn, &lines[..lines.len().min(height)], width);
        self.drawn = lines.len().min(height);
        // Progress that cannot be written is no reason to fail a bench.
        let _ = self.terminal.write_str(&text);
        let _ = self.terminal.flush();
    }

    /// Leaves no trace.
    pub(super) fn clear(&mut self) {
        let _ = self.terminal.write_str(&redrawn(self.drawn, &[], 0));
        let _ = self.terminal.flush();
        self.drawn = 0;
    }
}

/// What to write to replace `before` lines, in one piece so that nothing flickers.
fn redrawn(before: usize, lines: &[String], width: usize) -> String {
    let mut text = String::from("\r");
    if before > 0 {
        let _ = write!(text, "\x1b[{before}A");
    }
    for line in lines {
        let _ = writeln!(text, "{}\x1b[K", truncate_str(line, width, "…"));
    }
    text.push_str("\x1b[J");
    text
}

#[cfg(test)]
mod tests {
    use super::redrawn;

    #[test]
    fn a_frame_replaces_the_one_before_it() {
        let lines = ["one".to_owned(), "two is too long".to_owned()];
        assert_eq!(redrawn(0, &lines, 6), "\rone\x1b[K\ntwo i…\x1b[K\n\x1b[J");
        assert_eq!(redrawn(2, &lines[..1], 6), "\r\x1b[2Aone\x1b[K\n\x1b[J");
        assert_eq!(redrawn(3, &[], 6), "\r\x1b[3A\x1b[J");
    }
}
