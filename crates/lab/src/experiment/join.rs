//! The results of an experiment's parts, put together.

use super::parts::{Found, JoinError, Parts};
use super::shard::owners;
use super::{Job, Record, Runners};
use std::collections::BTreeMap;

/// The results of all points, in the order of `jobs`, as one machine would have them.
///
/// # Errors
/// When the parts are of something else than `jobs`, which errors call `whole`, a point has two
/// results that differ, or points are missing.
pub fn join(
    whole: &str,
    jobs: &[Job],
    runners: &Runners,
    parts: &Parts,
) -> Result<Vec<Record>, JoinError> {
    let mut by_key: BTreeMap<&str, Option<&Found>> =
        jobs.iter().map(|job| (job.key.as_str(), None)).collect();
    for found in parts.found() {
        let (key, path) = (found.record.key.clone(), found.path.clone());
        let Some(place) = by_key.get_mut(key.as_str()) else {
            return Err(JoinError::Foreign { key, path, whole: whole.to_owned() });
        };
        match place {
            Some(other) if !other.record.is_same_result(&found.record) => {
                return Err(JoinError::Twice { key, a: other.path.clone(), b: path });
            }
            // Which of two alike is kept must not depend on the order of the files.
            Some(other) if other.record.started <= found.record.started => {}
            _ => *place = Some(found),
        }
    }
    let all: Vec<Option<&Found>> = jobs.iter().map(|job| by_key[job.key.as_str()]).collect();
    let owners = owners(jobs, runners, parts.count());
    let is_there: Vec<bool> = all.iter().map(Option::is_some).collect();
    match gaps(&is_there, &owners, parts.count()) {
        Some(gaps) => Err(JoinError::Missing { gaps, count: parts.count() }),
        None => Ok(all.into_iter().flatten().map(|found| found.record.clone()).collect()),
    }
}

/// Parts that miss points, in words; `None` if all are there.
fn gaps(is_there: &[bool], owners: &[u32], count: u32) -> Option<String> {
    let gap = |part: u32| {
        let own = || is_there.iter().zip(owners).filter(move |(_, owner)| **owner == part);
        let (all, missing) = (own().count(), own().filter(|(there, _)| !**there).count());
        match missing {
            0 => None,
            some if some == all => Some(format!("part {part} has none of its {all} points")),
            some => Some(format!("part {part} lacks {some} of its {all} points")),
        }
    };
    let gaps: Vec<String> = (0..count).filter_map(gap).collect();
    (!gaps.is_empty()).then(|| gaps.join(", "))
}
