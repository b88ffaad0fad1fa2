//! The smallest scenario that fails as another one did, and its file.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_sim::Scenario;
use quorate_sim::mutants::Mutant;
use quorate_sim::shrink::{Shrinks, Shrunk, file_of, shrink};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Smallest failing scenario, and the path that it is written to.
pub(super) struct Smallest<S: Shrinks> {
    before: S::Size,
    shrunk: Shrunk<S>,
    file: PathBuf,
}

/// Shrinks a scenario for at most so many seconds and writes what is left.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn find<S: Shrinks>(
    scenario: &S,
    failure: &quorate_sim::Failure,
    seconds: u64,
    file: &Path,
) -> Result<Option<Smallest<S>>, Failure> {
    let (begun, most) = (Instant::now(), Duration::from_secs(seconds));
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a constant that parses"));
    let shrunk = shrink(scenario, failure.oracle, |step| {
        let left = most.saturating_sub(begun.elapsed()).as_secs();
        bar.set_message(format!(
            "shrinking seed {}: fewer {}, {} so far · {} runs · at most {left} s left",
            scenario.seed(),
            step.pass,
            step.size,
            step.runs
        ));
        bar.tick();
        begun.elapsed() < most
    });
    bar.finish_and_clear();
    let Some(mut shrunk) = shrunk else { return Ok(None) };
    write(file, &file_of(&shrunk))?;
    // The command names the file from here on, and runs exactly what is in it.
    shrunk.scenario = parse(&read(file)?, file)?;
    shrunk.report = shrunk.scenario.run();
    Ok(Some(Smallest { before: scenario.size(), shrunk, file: file.to_owned() }))
}

/// Writes a file, and makes the folder that it is in.
///
/// # Errors
/// When that does not go.
pub(super) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, text)
    };
    write().map_err(|error| {
        Failure::run(format!("cannot write {}: {error}; choose another --out", file.display()))
    })
}

/// Reads a file's text.
///
/// # Errors
/// When there is none.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))
}

/// Refuses a file that leaves out a rule, when this build leaves out none.
///
/// # Errors
/// With the command that can.
pub(super) fn needs_mutants(file: &Path, mutant: Option<Mutant>) -> Result<(), Failure> {
    let name = file.display();
    if mutant.is_none() || quorate_crypto::mutants::ENABLED {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name} leaves out a rule and this build leaves out none; use \
         `cargo run --release -p quorate-cli --features mutants -- sim --replay {name}`"
    )))
}

/// Reads a committee's scenario from its file.
///
/// # Errors
/// When there is none, it is refused, or it leaves out a rule that this build cannot leave out.
pub(super) fn load(file: &Path) -> Result<Scenario, Failure> {
    let scenario: Scenario = parse(&read(file)?, file)?;
    needs_mutants(file, scenario.mutant)?;
    Ok(scenario)
}

/// Scenario in the text of a file.
///
/// # Errors
/// When it is refused.
pub(super) fn parse<S: Shrinks>(text: &str, file: &Path) -> Result<S, Failure> {
    let name = file.display().to_string();
    S::from_file(text, name.clone()).map_err(|error| Failure::usage(format!("{name}: {error}")))
}

impl<S: Shrinks> Smallest<S> {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "file": self.file.display().to_string(),
            "replay": self.shrunk.scenario.replay(),
            "runs": self.shrunk.runs,
            "complete": self.shrunk.complete,
            "trace_hash": hex::encode(S::trace_hash(&self.shrunk.report).0),
            "before": self.before,
            "after": self.shrunk.scenario.size(),
        })
    }
}

impl<S: Shrinks> std::fmt::Display for Smallest<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, shrunk, .. } = self;
        let (seed, after) = (shrunk.scenario.seed(), shrunk.scenario.size());
        writeln!(f, "the smallest scenario found that fails like seed {seed}:")?;
        writeln!(f, "  from {before}")?;
        writeln!(f, "  to   {after}, in {} runs", shrunk.runs)?;
        if !shrunk.complete {
            writeln!(f, "  (the time was over: a longer --shrink may find a smaller one)")?;
        }
        for line in file_of(shrunk).lines() {
            writeln!(f, "  | {line}")?;
        }
        if let Some(failure) = S::failure(&shrunk.report) {
            writeln!(f, "  {}: {}", failure.oracle, failure.text)?;
        }
        writeln!(f, "  trace {}", hex::encode(S::trace_hash(&shrunk.report).0))?;
        write!(f, "  to run it again: {}", shrunk.scenario.replay())
    }
}
