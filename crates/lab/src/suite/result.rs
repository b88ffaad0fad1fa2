//! Results of a sitting: one JSON document.

use super::file::{Row, Suite};
use super::goal::{GOODPUT_RATIO, Judged, RATIO};
use super::{SuiteError, figures};
use crate::experiment::Record;
use crate::experiment::results::{processor_of, rounded};
use crate::quiet::Quietness;
use quorate_report::text::thousands;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The number of the format described here. Results of another format are not read.
pub const FORMAT: u32 = 1;

/// Results of a suite's rows, measured in one sitting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteResult {
    /// Number of the format: [`FORMAT`].
    pub suite_format: u32,
    /// Id of the suite.
    pub suite: String,
    /// A line that says what it is.
    pub title: String,
    /// Subject of the suite, and how to read it.
    pub shows: String,
    /// Beginning of the sitting, in universal time.
    pub started: String,
    /// Its length in seconds.
    pub wall_s: f64,
    /// The command that asked for it; empty where there was none.
    pub command: String,
    /// Seed that decided the order.
    pub seed: u64,
    /// Keys of the rows, in the order in which they were to be measured.
    pub order: Vec<String>,
    /// Reason for which rows at the end of that order are missing; absent if none is.
    pub ended_early: Option<String>,
    /// The machine and the binary.
    pub machine: Value,
    /// The earlier result that it stands beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Earlier>,
    /// One entry for each row that was measured, in the order of the suite.
    pub rows: Vec<RowResult>,
}

/// Result of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowResult {
    /// Key of the row.
    pub row: String,
    /// The work in words.
    pub title: String,
    /// Key of the row that its rate is divided by.
    pub beside: Option<String>,
    /// So many times that rate is what it was offered; absent where its rate is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_times: Option<f64>,
    /// Its goals, and whether they are met.
    pub goals: Vec<Judged>,
    /// What was seen of the machine.
    pub quietness: Quietness,
    /// Respects in which the machine was not quiet, in words; none if it was.
    pub disturbances: Vec<String>,
    /// Its figures beside those of an earlier result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Compared>,
    /// Everything that decided it, and everything measured.
    #[serde(flatten)]
    pub record: Record,
}

/// The earlier result that another stands beside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    /// Beginning of its sitting, in universal time.
    pub started: String,
    /// The commit of its binary.
    pub commit: String,
    /// Its processor, with the number of its cores.
    pub processor: String,
}

/// Figures of a row beside those of an earlier result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// This over the earlier, by metric.
    pub ratios: BTreeMap<String, f64>,
    /// What to know of them, in words: why there are none, or that the machine was not quiet then.
    pub note: Option<String>,
}

impl RowResult {
    /// A row's record, whose goals are judged when all rows are there.
    pub(super) fn new(row: &Row, record: Record, quietness: Quietness) -> Self {
        Self {
            row: row.key.clone(),
            title: row.title.clone(),
            beside: row.beside.clone(),
            rate_times: row.rate_times,
            goals: row.goals.iter().map(|goal| goal.judge(None)).collect(),
            quietness,
            disturbances: Vec::new(),
            against: None,
            record,
        }
    }
}

impl RowResult {
    /// The work in words; of a rate that followed from another row's, how much was offered.
    pub(super) fn work(&self) -> String {
        match (&self.beside, self.rate_times) {
            (Some(beside), Some(times)) if self.record.failed.is_none() => {
                let rate = thousands(self.record.setup.rate);
                format!("{}: {rate} a second, {times} × {beside}", self.title)
            }
            _ => self.title.clone(),
        }
    }
}

impl SuiteResult {
    /// Reads a result from a file.
    ///
    /// # Errors
    /// When it cannot be read, holds something else, or holds another format.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let text = fs::read_to_string(path).map_err(SuiteError::at("read", path))?;
        let other = |reason: String| SuiteError::NotAResult { path: path.to_owned(), reason };
        let value: Value = serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
        match value.get("suite_format") {
            None => return Err(other("it has no 'suite_format'".to_owned())),
            Some(format) if *format != FORMAT => {
                let found = format.to_string();
                return Err(SuiteError::OtherFormat {
                    path: path.to_owned(),
                    found,
                    known: FORMAT,
                });
            }
            Some(_) => {}
        }
        serde_json::from_value(value).map_err(|error| other(error.to_string()))
    }

    /// Writes it, and the folder for it where that is missing.
    ///
    /// # Errors
    /// When the system refuses.
    ///
    /// # Panics
    /// Never: a result is plain data.
    pub fn write(&self, path: &Path) -> Result<(), SuiteError> {
        let text = serde_json::to_string_pretty(self).expect("plain data");
        write(path, &format!("{text}\n"))
    }

    /// The processor that it was measured on, with the number of its cores.
    #[must_use]
    pub fn processor(&self) -> String {
        processor_of(&self.machine)
    }

    /// The commit of the binary that measured it.
    #[must_use]
    pub fn commit(&self) -> &str {
        self.machine["commit"].as_str().unwrap_or("unknown")
    }

    /// Number of goals that are met, and of all.
    #[must_use]
    pub fn goals(&self) -> (usize, usize) {
        let all = self.rows.iter().flat_map(|row| &row.goals);
        (all.clone().filter(|goal| goal.met == Some(true)).count(), all.count())
    }

    /// Puts rows into the order of the suite, divides rates, judges goals and quietness: what asks
    /// for all rows.
    pub(super) fn conclude(&mut self, suite: &Suite) {
        let place = |key: &str| suite.rows.iter().position(|row| row.key == key);
        self.rows.sort_by_key(|row| place(&row.row));
        let rates: BTreeMap<String, f64> = self.rows.iter().filter_map(rate_of).collect();
        let syncs = self.rows.iter().filter_map(|row| row.quietness.before.sync_p50_ms);
        let sync_least_ms = syncs.reduce(f64::min);
        for row in &mut self.rows {
            let beside = row.beside.as_ref().and_then(|key| rates.get(key));
            let over = |rate: Option<&f64>| rate.zip(beside).map(|(rate, of)| rounded(rate / of));
            let ratios = [
                (RATIO, over(rates.get(&row.row))),
                (GOODPUT_RATIO, over(row.record.measured.get("goodput_tps"))),
            ];
            let ratios = ratios.map(|(name, ratio)| Some((name.to_owned(), ratio?)));
            row.record.measured.extend(ratios.into_iter().flatten());
            let measured = &row.record.measured;
            let judge =
                |judged: &Judged| judged.goal.judge(measured.get(&judged.goal.metric).copied());
            row.goals = row.goals.iter().map(judge).collect();
            row.disturbances = row.quietness.disturbances(sync_least_ms);
        }
    }
}

/// Writes a text to a file, and makes the folder for it where that is missing.
pub(super) fn write(path: &Path, text: &str) -> Result<(), SuiteError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(SuiteError::at("make a folder for", path))?;
    }
    fs::write(path, text).map_err(SuiteError::at("write", path))
}

/// Key and rate of a row that has one.
fn rate_of(row: &RowResult) -> Option<(String, f64)> {
    let rate = figures::rate(&row.record).filter(|rate| *rate > 0.0)?;
    Some((row.row.clone(), rate))
}
