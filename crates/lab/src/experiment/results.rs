//! Results as JSON lines: one line for each finished point, whole or absent.

use super::{RunnerKind, Setup, Shard, Signatures, metrics};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The number of the format described here. Lines of another format are not read.
pub const FORMAT: u32 = 1;

/// One finished point: everything that decided it, everything measured, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the format: [`FORMAT`].
    pub format: u32,
    /// Id of the experiment.
    pub experiment: String,
    /// The preset that asked for it.
    pub preset: String,
    /// The part that it was measured in, in a file of a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Identity of the point: [`Setup::key`].
    pub key: String,
    /// Everything that decided it.
    pub setup: Setup,
    /// Numbers by name ([`super::metrics`]); none when it failed.
    pub measured: BTreeMap<String, f64>,
    /// Reason for which nothing was measured; absent when something was.
    pub failed: Option<String>,
    /// Kind of signatures: computed, or charged at a price.
    pub signatures: Signatures,
    /// Beginning of the measurement, in universal time.
    pub started: String,
    /// Seconds that it took here, whatever time passed in it.
    pub wall_s: f64,
    /// The machine and the binary, with its commit.
    pub machine: Value,
    /// Other findings of the runner, such as a simulation's trace hash.
    pub details: Value,
}

impl Record {
    /// A number by its name: measured, or a setting.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let measured = self.measured.get(name).copied();
        measured.or_else(|| self.setup.to_json().get(name).and_then(Value::as_f64))
    }

    /// Reasons to doubt that its numbers are those of a committee under this load: that the window
    /// was not stationary, too short, or had view changes. None of a result that stands, and of
    /// runners that do not judge.
    #[must_use]
    pub fn doubts(&self) -> Vec<&str> {
        let doubts = self.details[metrics::DOUBTS].as_array();
        doubts.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The commit of the binary that measured it.
    #[must_use]
    pub fn commit(&self) -> &str {
        self.machine["commit"].as_str().unwrap_or("unknown")
    }

    /// The processor that it was measured on, with the number of its cores.
    #[must_use]
    pub fn processor(&self) -> String {
        processor_of(&self.machine)
    }

    /// Tells whether another run of the same point came to the same.
    #[must_use]
    pub fn is_same_result(&self, other: &Self) -> bool {
        self.setup == other.setup
            && self.measured == other.measured
            && self.failed == other.failed
            && self.signatures == other.signatures
            && self.details == other.details
    }

    /// Tells whether a result of this machine and binary can stand beside it. What is simulated is
    /// the same on every machine.
    #[must_use]
    pub fn fits(&self, machine: &Value) -> bool {
        let same = |field: &str| self.machine[field] == machine[field];
        let measured_here = self.setup.runner != RunnerKind::Simulated;
        same("commit") && same("optimised") && (!measured_here || same("cpu") && same("cores"))
    }
}

/// The processor of a machine, with the number of its cores.
pub(crate) fn processor_of(machine: &Value) -> String {
    let cpu = machine["cpu"].as_str().unwrap_or("unknown");
    format!("{cpu}, {} cores", machine["cores"])
}

/// Reason for which a results file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The system refuses to read or write.
    #[error("cannot {what} {}: {source}", path.display())]
    System {
        /// Attempt that was refused.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A line is something else.
    #[error("{}, line {line}: {reason}", path.display())]
    NotAResult {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Mistake in the line.
        reason: String,
    },
}

/// All results in a file, in order; none where there is no file. The last line may be cut short, by
/// a run that was killed while it wrote: then it is left out.
///
/// # Errors
/// When the file cannot be read, or a line is not a result of this format.
pub fn read(path: &Path) -> Result<Vec<Record>, ResultsError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(ResultsError::System { what: "read", path: path.to_owned(), source });
        }
    };
    parse(&text).map_err(|(line, reason)| ResultsError::NotAResult {
        path: path.to_owned(),
        line,
        reason,
    })
}

/// Results in a text, as [`read`].
///
/// # Errors
/// The line's number, and what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Record>, (usize, String)> {
    let mut records = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') || line.trim().is_empty() {
            continue;
        }
        let bad = |reason: String| (index + 1, reason);
        let value: Value = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        if value["format"] != FORMAT {
            let found = &value["format"];
            return Err(bad(format!("a result of format {found}; this binary reads {FORMAT}")));
        }
        records.push(serde_json::from_value(value).map_err(|error| bad(error.to_string()))?);
    }
    Ok(records)
}

/// The results as JSON lines.
///
/// # Panics
/// Never: records are plain data.
#[must_use]
pub fn lines(records: &[Record]) -> String {
    let line = |record| serde_json::to_string(record).expect("plain data") + "\n";
    records.iter().map(line).collect()
}

/// A results file that grows by lines.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// A file that holds these results and no others, and the folder for it where that is missing.
    /// The old file stays until the new one is complete.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(path: &Path, records: &[Record]) -> Result<Self, ResultsError> {
        let failed =
            |what| move |source| ResultsError::System { what, path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed("make a folder for"))?;
        }
        let fresh = path.with_extension("jsonl.new");
        fs::write(&fresh, lines(records)).map_err(failed("write"))?;
        fs::rename(&fresh, path).map_err(failed("write"))?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed("open"))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn add(&mut self, record: &Record) -> Result<(), ResultsError> {
        let line = lines(std::slice::from_ref(record));
        let failed =
            |source| ResultsError::System { what: "write", path: self.path.clone(), source };
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush()).map_err(failed)
    }
}

/// To nine significant digits: more than anybody measures, and the same when it is read again, so
/// that a search goes on alike with it.
pub(crate) fn rounded(number: f64) -> f64 {
    format!("{number:.8e}").parse().unwrap_or(number)
}

/// Numbers by name, each [`rounded`].
pub(crate) fn rounded_all(numbers: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    numbers.into_iter().map(|(name, number)| (name, rounded(number))).collect()
}

/// Other findings, with each number in them that is no whole one [`rounded`].
pub(crate) fn rounded_within(details: Value) -> Value {
    match details {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or(Value::Null, |number| Value::from(rounded(number)))
        }
        Value::Array(items) => items.into_iter().map(rounded_within).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, rounded_within(value))).collect()
        }
        other => other,
    }
}
