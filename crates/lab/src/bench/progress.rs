//! A bench as it runs: a panel on a terminal, plain lines anywhere else, on standard error.

mod frame;
mod terminal;

use super::evidence::{Sample, ValidatorState};
use crate::load::LoadConfig;
use console::Term;
use frame::State;
use parking_lot::Mutex;
use terminal::Panel;

/// Seconds between plain lines.
const LINE_SECONDS: u64 = 5;

/// Display of a bench's progress.
#[derive(Debug)]
pub struct Progress {
    output: Mutex<Output>,
}

#[derive(Debug)]
enum Output {
    /// No display at all.
    Silent,
    /// A line now and then, for logs.
    Lines(State),
    /// A panel that is drawn over itself.
    Panel(State, Panel),
}

impl Progress {
    /// A panel if standard error is a terminal, lines if it is not, and silence when `quiet`.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let terminal = Term::stderr();
        let output = match (quiet, terminal.is_term()) {
            (true, _) => Output::Silent,
            (false, true) => Output::Panel(State::default(), Panel::new(terminal)),
            (false, false) => Output::Lines(State::default()),
        };
        Self { output: Mutex::new(output) }
    }

    /// Says what is being waited for.
    pub fn say(&self, what: impl Into<String>) {
        let what = what.into();
        match &mut *self.output.lock() {
            Output::Silent => {}
            Output::Lines(_) => eprintln!("{what}"),
            Output::Panel(state, panel) => {
                state.stage = Some(what);
                panel.draw(state);
            }
        }
    }

    /// Says how far something has come, in whole seconds since it began: on a terminal each time,
    /// in lines now and then.
    pub fn tick(&self, second: u64, what: impl Into<String>) {
        let is_due = second.is_multiple_of(LINE_SECONDS);
        let are_lines = matches!(&*self.output.lock(), Output::Lines(_));
        if is_due || !are_lines {
            self.say(what);
        }
    }

    /// Takes in that a load begins, and what its panel is called.
    pub fn begin(&self, title: impl Into<String>, load: &LoadConfig) {
        if let Some(state) = self.output.lock().state() {
            state.begin(title.into(), load);
        }
    }

    /// Something was done on purpose, so many seconds into the window.
    pub fn note(&self, at_s: f64, what: impl Into<String>) {
        let what = what.into();
        match &mut *self.output.lock() {
            Output::Silent => {}
            Output::Lines(_) => eprintln!("{at_s:>5.1} s  {what}"),
            Output::Panel(state, panel) => {
                state.note(at_s, what);
                panel.draw(state);
            }
        }
    }

    /// Shows the last second.
    pub fn show(&self, samples: &[Sample], states: &[ValidatorState]) {
        let mut output = self.output.lock();
        if let Some(state) = output.state() {
            state.take_in(samples, states);
        }
        match &mut *output {
            Output::Lines(state) if state.second().is_multiple_of(LINE_SECONDS) => {
                if let Some(line) = state.line() {
                    eprintln!("{line}");
                }
            }
            Output::Panel(state, panel) => panel.draw(state),
            Output::Silent | Output::Lines(_) => {}
        }
    }
}

impl Output {
    fn state(&mut self) -> Option<&mut State> {
        match self {
            Self::Silent => None,
            Self::Lines(state) | Self::Panel(state, _) => Some(state),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Output::Panel(_, panel) = &mut *self.output.lock() {
            panel.clear();
        }
    }
}
