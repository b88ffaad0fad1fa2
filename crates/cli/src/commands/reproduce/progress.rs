//! Progress of an experiment: a bar on a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use quorate_lab::experiment::Event;
use quorate_report::text::span;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Display of an experiment's events.
pub(super) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    /// Moment of the last line.
    line: Mutex<Option<Instant>>,
}

impl Progress {
    /// Nothing is shown when `quiet`.
    pub(super) fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} points · {msg}");
        bar.set_style(style.expect("a constant that parses"));
        Self { bar, quiet, line: Mutex::new(None) }
    }

    pub(super) fn show(&self, event: &Event<'_>) {
        match event {
            Event::Begin { total, done, unfit } => {
                self.bar.set_length(*total as u64);
                self.bar.set_position(*done as u64);
                if *unfit > 0 {
                    self.say(&format!("{unfit} results of another commit or machine are left out"));
                }
                if *done > 0 {
                    self.say(&format!("{done} of {total} points are there already"));
                }
            }
            Event::Started(_) => self.bar.tick(),
            Event::Finished { record, done, total, left_s } => {
                let left = format!("about {} left", span(*left_s));
                self.bar.set_message(left.clone());
                self.bar.set_position(*done as u64);
                if let Some(reason) = &record.failed {
                    self.say(&format!("a point without a result: {reason}"));
                }
                if self.bar.is_hidden() && self.is_time(done == total) {
                    self.say(&format!("{done}/{total} points, {left}"));
                }
            }
        }
    }

    fn is_time(&self, last: bool) -> bool {
        let mut line = self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let due = last || line.is_none_or(|before| before.elapsed() >= LINE_EVERY);
        if due {
            *line = Some(Instant::now());
        }
        due
    }

    fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() { eprintln!("{text}") } else { self.bar.println(text) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
