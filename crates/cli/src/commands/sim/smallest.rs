//! The smallest scenario that fails as another one did, and its file.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_sim::mutants::Mutant;
use quorate_sim::shrink::{Shrunk, Size, file_of, shrink};
use quorate_sim::{Scenario, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Smallest failing scenario, and the path that it is written to.
pub(super) struct Smallest {
    before: Size,
    shrunk: Shrunk,
    file: PathBuf,
}

/// Shrinks a scenario for at most so many seconds and writes what is left.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn find(
    scenario: &Scenario,
    failure: &quorate_sim::Failure,
    seconds: u64,
    file: &Path,
) -> Result<Option<Smallest>, Failure> {
    let (begun, most) = (Instant::now(), Duration::from_secs(seconds));
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a constant that parses"));
    let shrunk = shrink(scenario, failure.oracle, |step| {
        let left = most.saturating_sub(begun.elapsed()).as_secs();
        bar.set_message(format!(
            "shrinking seed {}: fewer {}, {} so far · {} runs · at most {left} s left",
            scenario.seed, step.pass, step.size, step.runs
        ));
        bar.tick();
        begun.elapsed() < most
    });
    bar.finish_and_clear();
    let Some(mut shrunk) = shrunk else { return Ok(None) };
    write(file, &file_of(&shrunk))?;
    // The command names the file from here on, and runs exactly what is in it.
    shrunk.scenario = load(file)?;
    shrunk.report = run(&shrunk.scenario);
    Ok(Some(Smallest { before: Size::of(scenario), shrunk, file: file.to_owned() }))
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

/// Reads a scenario's file.
///
/// # Errors
/// When there is none, it is refused, or it leaves out a rule that this build cannot leave out.
pub(super) fn load(file: &Path) -> Result<Scenario, Failure> {
    let name = file.display();
    let mut scenario = Scenario::from_toml(&read(file)?)
        .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    needs_mutants(file, scenario.mutant)?;
    scenario.file = Some(name.to_string());
    Ok(scenario)
}

impl Smallest {
    pub(super) fn to_json(&self) -> Value {
        let size = |size: &Size| {
            json!({
                "replicas": size.replicas,
                "faulty": size.faulty,
                "faults": size.faults,
                "operations": size.operations,
                "clients": size.clients,
            })
        };
        json!({
            "file": self.file.display().to_string(),
            "replay": self.shrunk.scenario.replay(),
            "runs": self.shrunk.runs,
            "complete": self.shrunk.complete,
            "trace_hash": hex::encode(self.shrunk.report.trace_hash.0),
            "before": size(&self.before),
            "after": size(&Size::of(&self.shrunk.scenario)),
        })
    }
}

impl std::fmt::Display for Smallest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, shrunk, .. } = self;
        let (seed, after) = (shrunk.scenario.seed, Size::of(&shrunk.scenario));
        writeln!(f, "the smallest scenario found that fails like seed {seed}:")?;
        writeln!(f, "  from {before}")?;
        writeln!(f, "  to   {after}, in {} runs", shrunk.runs)?;
        if !shrunk.complete {
            writeln!(f, "  (the time was over: a longer --shrink may find a smaller one)")?;
        }
        for line in file_of(shrunk).lines() {
            writeln!(f, "  | {line}")?;
        }
        if let Err(failure) = &shrunk.report.verdict {
            writeln!(f, "  {}: {}", failure.oracle, failure.text)?;
        }
        writeln!(f, "  trace {}", hex::encode(shrunk.report.trace_hash.0))?;
        write!(f, "  to run it again: {}", shrunk.scenario.replay())
    }
}
