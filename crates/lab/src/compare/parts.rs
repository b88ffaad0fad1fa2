//! A comparison divided among machines: each searches for some candidates.

use super::advice::name;
use super::bench::{Bench, Known, setup};
use super::{Candidate, Comparison, ComparisonSpec, Means, answer, sorted};
use crate::experiment::results::{self, Writer};
use crate::experiment::{Found, JoinError, Parts, Record, RunError, Setup, Shard};
use serde_json::Value;
use std::path::Path;

/// Reason for which a comparison of several machines has no answer.
#[derive(Debug, thiserror::Error)]
pub enum FailedJoin {
    /// The parts do not fit together.
    #[error(transparent)]
    Parts(#[from] JoinError),
    /// They are of a comparison with other options.
    #[error(
        "{path} was measured with '{field}' = {there}, and here it is {here}: give --join the \
         options that --shard had"
    )]
    OtherOption {
        /// Name of the setting.
        field: String,
        /// Its value in the part.
        there: String,
        /// Value of it that this command asks for.
        here: String,
        /// Path of the part's file.
        path: String,
    },
    /// The last points are to be measured by another program than those before.
    #[error(
        "{path} was measured by commit {there} on {processor}, and this is commit {here}: what is \
         left, each candidate at the common rate, must be measured by the same program, and what \
         is timed on the same kind of machine"
    )]
    OtherProgram {
        /// Commit that measured the part.
        there: String,
        /// Processor that it was measured on.
        processor: String,
        /// Commit of this program.
        here: String,
        /// Path of the part's file.
        path: String,
    },
    /// The points that are left cannot be measured.
    #[error("{}", said(.0))]
    Run(RunError),
}

fn said(error: &RunError) -> &str {
    match error {
        RunError::Interrupted => "interrupted",
        RunError::Failed(reason) | RunError::Refused(reason) => reason,
    }
}

/// The candidates that a part searches for: each in turn goes to the next part.
#[must_use]
pub fn candidates_of(spec: &ComparisonSpec, shard: Shard) -> Vec<Candidate> {
    let owners: Vec<u32> =
        (0..spec.candidates.len()).map(|at| part_of(at, shard.count())).collect();
    shard.take(&spec.candidates, &owners).copied().collect()
}

fn part_of(candidate: usize, count: u32) -> u32 {
    (candidate as u64 % u64::from(count)) as u32
}

/// Searches for the candidates of a part, and measures them at the rate that was asked for where
/// one was. Every result is a line of `results`; with `resume` those that are there are not
/// measured again, if this program measured them.
///
/// # Errors
/// When it was interrupted, no point can be measured, or results cannot be read or written.
pub fn measure_part(
    spec: &ComparisonSpec,
    shard: Shard,
    results: &Path,
    resume: bool,
    means: &Means<'_>,
) -> Result<Vec<Record>, RunError> {
    let refused = |error: results::ResultsError| RunError::Refused(error.to_string());
    let mut kept = if resume { results::read(results).map_err(refused)? } else { Vec::new() };
    kept.retain(|record| record.fits(means.machine) && record.shard == Some(shard));
    let writer = Writer::create(results, &kept).map_err(refused)?;
    let bench = Bench::new(spec, *means).of_part(shard, known(kept), writer);
    let (candidates, sizes) = (candidates_of(spec, shard), sorted(&spec.sizes));
    let looks = if spec.rate.is_some() { 2 } else { 1 };
    let step = bench.steps(looks * sizes.len() * candidates.len());
    let knees = bench.search(&candidates, &sizes, &step)?;
    if spec.rate.is_some() {
        bench.check(&knees, &step)?;
    }
    Ok(bench.into_records())
}

fn known(records: Vec<Record>) -> Known {
    let mut known = Known::new();
    for record in records {
        known.entry(record.key.clone()).or_default().push_back(record);
    }
    known
}

/// The answer to a spec whose searches were done in parts. Measures what asks for all of them: each
/// candidate at the common rate, unless one was asked for.
///
/// # Errors
/// When parts are missing, of another comparison or program, or what is left cannot be measured.
pub fn join(
    spec: &ComparisonSpec,
    parts: &Parts,
    means: &Means<'_>,
) -> Result<Comparison, FailedJoin> {
    for found in parts.found() {
        belongs(spec, found)?;
        fits(spec, found, means.machine)?;
    }
    let known = known(once(parts)?);
    let gaps = gaps(spec, parts.count(), &known, means);
    if !gaps.is_empty() {
        let (gaps, count) = (gaps.join(", "), parts.count());
        return Err(JoinError::Missing { gaps, count }.into());
    }
    answer(Bench::new(spec, *means).of_known(known)).map_err(FailedJoin::Run)
}

/// Refuses results of another comparison, naming an option that differs.
fn belongs(spec: &ComparisonSpec, found: &Found) -> Result<(), FailedJoin> {
    let record = &found.record;
    let path = found.path.display().to_string();
    let other = |field: &str, there: String, here: String| {
        Err(FailedJoin::OtherOption { field: field.to_owned(), there, here, path: path.clone() })
    };
    if record.preset != spec.preset() {
        return other("rate", record.preset.clone(), spec.preset());
    }
    let candidate = Candidate::of(&record.setup);
    let (size, place) = spec.place(record.setup.validators, candidate);
    if size.is_none() {
        let sizes = format!("{:?}", spec.sizes);
        return other("validators", record.setup.validators.to_string(), sizes);
    }
    if place.is_none() {
        let names: Vec<String> = spec.candidates.iter().map(|one| name(*one)).collect();
        return other("schemes and policies", name(candidate), names.join("; "));
    }
    // Patience follows from what the part itself measured.
    let give_up_ms = record.setup.give_up_ms;
    let here = setup(spec, record.setup.validators, candidate, record.setup.rate);
    let here = Setup { give_up_ms, ..here }.to_json();
    let there = record.setup.to_json();
    let fields = here.as_object().into_iter().flatten();
    for (field, value) in fields {
        let found = there.get(field).unwrap_or(&Value::Null);
        if found != value {
            return other(field, found.to_string(), value.to_string());
        }
    }
    Ok(())
}

/// Refuses results of another program where points are still to be measured.
fn fits(spec: &ComparisonSpec, found: &Found, machine: &Value) -> Result<(), FailedJoin> {
    if spec.rate.is_some() || found.record.fits(machine) {
        return Ok(());
    }
    Err(FailedJoin::OtherProgram {
        there: found.record.commit().to_owned(),
        processor: found.record.processor(),
        here: machine["commit"].as_str().unwrap_or("unknown").to_owned(),
        path: found.path.display().to_string(),
    })
}

/// The results without those that a second file has of the same points, which must be the same. One
/// file may well have two of a point: the search and the look at the common rate may meet.
fn once(parts: &Parts) -> Result<Vec<Record>, JoinError> {
    let mut kept: Vec<&Found> = Vec::new();
    for found in parts.found() {
        let other = |one: &&&Found| one.record.key == found.record.key && one.path != found.path;
        match kept.iter().find(other) {
            None => kept.push(found),
            Some(one) if one.record.is_same_result(&found.record) => {}
            Some(one) => {
                let (a, b) = (one.path.clone(), found.path.clone());
                return Err(JoinError::Twice { key: found.record.key.clone(), a, b });
            }
        }
    }
    Ok(kept.into_iter().map(|found| found.record.clone()).collect())
}

/// Candidates whose searches cannot be followed to their ends, with their parts.
fn gaps(spec: &ComparisonSpec, count: u32, known: &Known, means: &Means<'_>) -> Vec<String> {
    let sizes = sorted(&spec.sizes);
    let is_whole = |candidate: Candidate| {
        let bench = Bench::new(spec, *means).of_known(known.clone());
        let knees = bench.knees(candidate, &sizes, &|| {});
        let checked = |knees: Vec<_>| spec.rate.is_none() || bench.check(&knees, &|| {}).is_ok();
        knees.is_ok_and(checked)
    };
    let open = spec.candidates.iter().enumerate().filter(|(_, candidate)| !is_whole(**candidate));
    let gap = |(at, candidate): (usize, &Candidate)| {
        format!("part {} lacks points of {}", part_of(at, count), name(*candidate))
    };
    open.map(gap).collect()
}
