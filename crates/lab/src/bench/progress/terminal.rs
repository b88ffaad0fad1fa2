//! A few lines of a terminal that are drawn over themselves.
//!
//! The cursor stays visible and below the panel, and nothing about the terminal is changed: however
//! the program ends, even by SIGKILL, there is nothing to restore.

use super::frame::{Bar, Frame, State};
use console::{Term, truncate_str};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;

/// Rows and columns assumed where the terminal does not say.
const SIZE: (u16, u16) = (24, 80);

/// Lines on standard error that replace one another.
#[derive(Debug)]
pub(super) struct Panel {
    terminal: Term,
    bar: ProgressBar,
}

impl Panel {
    pub(super) fn new(terminal: Term) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        Self { terminal, bar }
    }

    /// Replaces what is shown, within the columns and rows that there are.
    pub(super) fn draw(&self, state: &State) {
        let (rows, columns) = self.terminal.size_checked().unwrap_or(SIZE);
        // The last column stays empty, since some terminals wrap when it is written; the last row
        // is the cursor's.
        let (width, height) = (usize::from(columns).max(20) - 1, usize::from(rows).max(4) - 1);
        let frame = state.frame(width, height);
        self.bar.set_style(style(&frame, height));
        self.bar.update(|bar| {
            bar.set_len(frame.bar.as_ref().map_or(0, |bar| bar.span_s));
            bar.set_pos(frame.bar.as_ref().map_or(0, |bar| bar.second));
        });
    }

    /// Removes the panel from the terminal.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The frame as a style: all but its bar is text, cut off at the edges of the terminal.
fn style(frame: &Frame, height: usize) -> ProgressStyle {
    let bar = frame
        .bar
        .as_ref()
        .map(|Bar { columns, note, .. }| format!(" {{bar:{columns}.cyan/dim}}  {note}"));
    let rest = height.saturating_sub(frame.above.len() + usize::from(bar.is_some()));
    let below = &frame.below[..frame.below.len().min(rest)];
    let lines = [
        (!frame.above.is_empty()).then(|| "{above}".to_owned()),
        bar,
        (!below.is_empty()).then(|| "{below}".to_owned()),
    ];
    let template: Vec<String> = lines.into_iter().flatten().collect();
    let style = ProgressStyle::with_template(&template.join("\n")).expect("a good template");
    style
        .progress_chars("━━─")
        .with_key("above", text(&frame.above, frame.width))
        .with_key("below", text(below, frame.width))
}

/// Lines of text as a part of a template.
fn text(
    lines: &[String],
    width: usize,
) -> impl Fn(&ProgressState, &mut dyn Write) + Clone + Send + Sync + 'static {
    let cut = |line: &String| truncate_str(line, width, "…").into_owned();
    let text = lines.iter().map(cut).collect::<Vec<_>>().join("\n");
    // A terminal that cannot be written to is no reason to fail a bench.
    move |_: &ProgressState, out: &mut dyn Write| out.write_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Bar, Frame, style};
    use console::strip_ansi_codes;
    use indicatif::{ProgressBar, ProgressDrawTarget, TermLike};
    use parking_lot::Mutex;
    use std::io;
    use std::sync::Arc;

    /// A terminal of 20 columns and 6 rows that keeps what is written to it; lines are filled up
    /// with spaces.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            20
        }

        fn height(&self) -> u16 {
            6
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(&format!("{line}\n"))
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().push_str(&strip_ansi_codes(text));
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn drawn(frame: &Frame) -> Vec<String> {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let bar = ProgressBar::with_draw_target(Some(10), target);
        bar.set_style(style(frame, 5));
        bar.update(|bar| bar.set_pos(5));
        let text: Vec<char> = screen.0.lock().chars().filter(|one| *one != '\n').collect();
        let rows = text.chunks(20).map(|row| row.iter().collect::<String>());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    #[test]
    fn what_is_too_wide_or_too_long_is_cut_off() {
        let bar = Bar { second: 5, span_s: 10, columns: 4, note: "5 s left".to_owned() };
        let below = ["one", "two is too long for a line", "three", "four", "five"];
        let frame = Frame {
            above: vec!["head {with braces}".to_owned()],
            bar: Some(bar),
            below: below.map(str::to_owned).to_vec(),
            width: 19,
        };
        let expected =
            ["head {with braces}", " ━━━─  5 s left", "one", "two is too long fo…", "three"];
        assert_eq!(drawn(&frame), expected);
    }

    #[test]
    fn before_the_load_there_is_no_bar() {
        let above = vec![" · writing keys".to_owned()];
        assert_eq!(drawn(&Frame { above, width: 19, ..Frame::default() }), [" · writing keys"]);
    }
}
