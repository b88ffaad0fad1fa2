//! One live line on a terminal; nothing anywhere else.

use super::config::BenchConfig;
use super::evidence::Sample;
use crate::text::{milliseconds, thousands};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// The line.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line on standard error if that is a terminal, and silence otherwise or when `quiet`.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// Says what is being waited for.
    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// The load begins: from now on there is a bar.
    pub fn begin(&self, config: &BenchConfig) {
        self.bar.set_length(config.load_span().as_secs());
        self.bar.set_style(style("{spinner} {bar:12} {msg}"));
    }

    /// Shows the last second.
    pub fn show(&self, config: &BenchConfig, samples: &[Sample], killed: &[u16]) {
        let [.., before, now] = samples else { return };
        let operations =
            |sample: &Sample, id: usize| sample.looks[id].as_ref().map(|status| status.operations);
        let working =
            (0..now.looks.len()).filter(|id| !killed.iter().any(|k| usize::from(*k) == *id));
        let grown = working
            .filter_map(|id| Some(operations(now, id)?.saturating_sub(operations(before, id)?)));
        let view = now.looks.iter().flatten().map(|status| status.view).max().unwrap_or(0);
        let note =
            if now.second <= config.warmup_s { " · warm-up".to_owned() } else { dead(killed) };
        self.bar.set_position(now.second);
        self.bar.set_message(format!(
            "{} s · offered {} · committed {}/s · p50 {} ms · view {}{note}",
            now.second,
            config.offered(),
            thousands(grown.min().unwrap_or(0)),
            milliseconds(now.lately.p50),
            thousands(view),
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn dead(killed: &[u16]) -> String {
    if killed.is_empty() {
        return String::new();
    }
    let ids: Vec<String> = killed.iter().map(u16::to_string).collect();
    format!(" · dead: {}", ids.join(", "))
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("a constant that parses");
    style.progress_chars("━╸ ")
}
