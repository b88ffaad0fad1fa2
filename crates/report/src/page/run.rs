//! A result and what to call it.

use super::settings::{differing, flatten};
use crate::Report;
use crate::results::Measurement;
use crate::text::grouped;

/// One run on a page.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name where several runs are shown.
    pub label: String,
    /// Result of the run.
    pub report: Report,
}

/// Settings that make the best names, the most telling first.
const TELLING: [&str; 8] = [
    "scheme",
    "validators",
    "wan",
    "rate",
    "durability",
    "service",
    "settings.protocol",
    "tx_bytes",
];

/// Most settings in one name.
const NAMED_MAX: usize = 2;

/// Calls each result by what sets it apart from the others. `wanted` names come first; the rest get
/// one from the settings that differ, and a letter where that says too little.
#[must_use]
pub fn name_runs(reports: Vec<Report>, wanted: &[String]) -> Vec<Run> {
    let paths = telling(&reports);
    let labels: Vec<String> = reports.iter().map(|report| label(report, &paths)).collect();
    let letter = |index: usize| char::from(b'A' + (index % 26) as u8);
    let name = |(index, report): (usize, Report)| {
        let own = &labels[index];
        let unique = labels.iter().filter(|label| *label == own).count() == 1;
        let label = match wanted.get(index) {
            Some(wanted) => wanted.clone(),
            None if own.is_empty() => format!("run {}", letter(index)),
            None if unique => own.clone(),
            None => format!("{own} ({})", letter(index)),
        };
        Run { label, report }
    };
    reports.into_iter().enumerate().map(name).collect()
}

/// The differing settings that names are made of.
fn telling(reports: &[Report]) -> Vec<String> {
    if reports.len() < 2 {
        return vec!["scheme".to_owned()];
    }
    let all: Vec<_> = reports.iter().map(|report| flatten(&report.config)).collect();
    let mut paths = differing(&all);
    paths.retain(|path| !path.starts_with("machine.") && path != "seed");
    let rank = |path: &String| TELLING.iter().position(|t| t == path).unwrap_or(TELLING.len());
    paths.sort_by_key(rank);
    paths.truncate(NAMED_MAX);
    paths
}

fn label(report: &Report, paths: &[String]) -> String {
    let part = |path: &String| {
        let value = grouped(&report.setting(path));
        match path.as_str() {
            "scheme" => scheme(&value),
            "durability" | "service" | "settings.protocol" => value,
            "validators" => format!("{value} validators"),
            "rate" => format!("{value} tx/s"),
            _ => {
                let name = path.rsplit('.').next().unwrap_or(path).replace('_', " ");
                format!("{name} {value}")
            }
        }
    };
    paths.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// A line that says under what circumstances all of these runs were made: a chart without them says
/// little. What differs between the runs is left out.
#[must_use]
pub fn caption(runs: &[Run]) -> String {
    let common = |path: &str| {
        let mut values = runs.iter().map(|run| run.report.setting(path));
        let first = values.next().filter(|value| value != "-")?;
        values.all(|value| value == first).then(|| grouped(&first))
    };
    let with = |path: &str, words: &str| Some(format!("{}{words}", common(path)?));
    let unoptimised = runs.iter().any(|run| run.report.setting("machine.optimised") == "false");
    let parts = [
        with("validators", " validators"),
        if common("load").as_deref() == Some("closed") {
            Some("closed loop".to_owned())
        } else {
            with("rate", " tx/s")
        },
        with("tx_bytes", " bytes"),
        common("durability"),
        if runs.iter().all(|run| run.report.measurement == Measurement::Bench) {
            with("machine.cores", " cores, shared with the load")
        } else {
            with("loads", " loads")
        },
        common("machine.commit").map(|commit| format!("quorate {commit}")),
        unoptimised.then(|| "not optimised".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A scheme as people write it.
pub(super) fn scheme(name: &str) -> String {
    match name {
        "ed25519" => "Ed25519".to_owned(),
        "bls" => "BLS".to_owned(),
        other => other.to_owned(),
    }
}
