//! Parts of an experiment's points, one for each of several machines.

use super::{Job, Runners};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Most parts that an experiment is divided into.
const COUNT_MAX: u32 = 10_000;

/// One of several parts, as in `0/3`: counted from 0, as the indexed jobs of Kubernetes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Part number `index` of `count`; `None` where there is no such part.
    #[must_use]
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (index < count && count <= COUNT_MAX).then_some(Self { index, count })
    }

    /// Number of the part, from 0.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }

    /// Number of parts in all.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// Name of the file that keeps the part's results, `what` being the name of the whole.
    #[must_use]
    pub fn file_name(self, what: &str) -> PathBuf {
        format!("{}{}-of-{}.jsonl", Self::file_prefix(what), self.index, self.count).into()
    }

    /// First letters of the names of all such files.
    #[must_use]
    pub fn file_prefix(what: &str) -> String {
        format!("{what}.shard-")
    }

    /// The items of this part, in order, where `owners` has the part of each.
    pub fn take<'a, T>(
        self,
        items: &'a [T],
        owners: &'a [u32],
    ) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let own = move |(_, owner): &(&T, &u32)| **owner == self.index;
        items.iter().zip(owners).filter(own).map(|(item, _)| item)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.index, self.count)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok();
        let numbers = text.split_once('/').and_then(|(a, b)| Some((number(a)?, number(b)?)));
        let (index, count) =
            numbers.ok_or("a part is written I/N, such as 0/3: the first of three")?;
        Self::new(index, count).ok_or_else(|| match count {
            1..=COUNT_MAX => format!("of {count} parts the last is {}/{count}", count - 1),
            _ => format!("there are 1 to {COUNT_MAX} parts"),
        })
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// The part of each job, in the jobs' order, so that all parts take about as long: each job goes to
/// the part that has least to do, the longest first. All machines divide alike, for nothing but the
/// jobs decides. Those that run alone on a machine are divided apart from those that run side by
/// side, which take less time the more cores there are.
#[must_use]
pub fn owners(jobs: &[Job], runners: &Runners, count: u32) -> Vec<u32> {
    let costs: Vec<Cost> = jobs.iter().map(|job| Cost::of(job, runners)).collect();
    let mut longest_first: Vec<usize> = (0..jobs.len()).collect();
    longest_first.sort_by_key(|&index| (Reverse(costs[index].estimate_ms), index));
    let mut loads = vec![[0_u64; 2]; count as usize];
    let mut owners = vec![0; jobs.len()];
    for index in longest_first {
        let Cost { kind, estimate_ms } = costs[index];
        let least = (0..loads.len()).min_by_key(|&part| (loads[part][kind], part)).unwrap_or(0);
        loads[least][kind] += estimate_ms;
        owners[index] = least as u32;
    }
    owners
}

/// Time that a job takes.
#[derive(Clone, Copy)]
struct Cost {
    /// 1 for those that run side by side with others, 0 for those that must not.
    kind: usize,
    /// In whole milliseconds, at least one: what differs between two machines' last digits of a
    /// floating-point number must not decide.
    estimate_ms: u64,
}

impl Cost {
    fn of(job: &Job, runners: &Runners) -> Self {
        let runner = runners.of(job.setup.runner);
        let estimate_ms = (1_000.0 * runner.estimate_s(&job.setup)).round() as u64;
        Self { kind: usize::from(runner.is_parallel()), estimate_ms: estimate_ms.max(1) }
    }
}
