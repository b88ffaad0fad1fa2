//! Every crash point of a replica: each boundary between two of its effects, crashed in every way.
//!
//! One run of a small committee is recorded: work, views timed out, turns as the leader, bodies,
//! snapshots, a log that deletes its oldest segments, a member that fetches what it missed. One
//! replica of it is the *subject*. At each boundary between two of its effects, and at each step of
//! its host, its disks are forked and crashed: cleanly; with everything unsynced lost; with the
//! last record torn at each of its bytes; with nothing unsynced but the last write kept; with a bit
//! flipped, in the last record, in the last group, and before it. Beside these, each write, sync
//! and change of a name of the run fails once, and the disk is full at each of them.
//!
//! After each of them the subject recovers, and
//!
//! - what it recovers is a beginning of what it wrote, and holds all that was called durable
//!   (`model`); a flipped bit that can be told from a torn end stops it;
//! - a failed disk stopped it, and the journal says so again when asked again;
//! - members that contradict themselves offer it other blocks in the views in which it has signed,
//!   blocks that extend too little, and older ones (`offers`): it contradicts nothing that left
//!   before the crash, votes for nothing whose bodies it lost, and executes the same heights to the
//!   same roots, no request twice (the [oracles](crate::oracles));
//! - the recovery itself is cut short, by the failure of each of its steps and by a second crash;
//! - in a committee that works it goes on to commit.
//!
//! The same is done with a run in which the committee changes, at hosts of every part in that
//! ([`Role`]): the stop block, the record of the hand-over, its note and the first records of the
//! next epoch are boundaries like all others. In every continuation the change is brought again,
//! and the subject must come to serve in the next epoch.
//!
//! What is recovered decides what follows, for machines are deterministic: where two ways to crash
//! leave the same, its offers are made once. Nothing here is drawn: the same build looks at the
//! same cases.

mod cases;
mod chronicle;
mod committee;
mod disks;
mod failures;
mod host;
mod model;
mod offers;
mod recorded;
mod report;
mod shared;

use crate::mutants::{Active, Mutant};
use crate::oracles::Violation;
use cases::{Counts, Moment};
use chronicle::Chronicle;
use disks::{DiskFailure, Disks, every_failure, full_at_each_write};
use quorate_consensus::ProtocolKind;
use quorate_types::Time;
use recorded::Recorded;
pub use report::{Broken, Report};
use shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Selection of crash points, and how they are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// At how many points at once.
    pub threads: usize,
    /// Number of the one point to look at; all where it is absent.
    pub only: Option<u64>,
    /// Every so many-th point; 1 for all of them.
    pub every: u64,
    /// Protocol that the committee runs.
    pub protocol: ProtocolKind,
    /// The host that is looked at while the committee changes; `None`: the committee stays.
    pub border: Option<Role>,
    /// A rule that is left out.
    pub mutant: Option<Mutant>,
}

/// Part that a host has in a change of committee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Member before and after it, with another index.
    Stays,
    /// Member before and after it, and away when the epoch ends.
    Away,
    /// Member before it, learner after it.
    Leaves,
    /// Learner before it, member after it.
    Joins,
    /// Learner before and after it.
    Learns,
}

impl Role {
    /// Every role, in the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::Stays, Self::Away, Self::Leaves, Self::Joins, Self::Learns];

    fn host(self) -> usize {
        match self {
            Self::Stays => 1,
            Self::Leaves => 2,
            Self::Away => 3,
            Self::Joins => 4,
            Self::Learns => 5,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stays => "stays",
            Self::Away => "away",
            Self::Leaves => "leaves",
            Self::Joins => "joins",
            Self::Learns => "learns",
        })
    }
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no part in a change: stays, away, leaves, joins or learns")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<Self, UnknownRole> {
        let named = Self::ALL.into_iter().find(|role| role.to_string() == name);
        named.ok_or_else(|| UnknownRole(name.to_owned()))
    }
}

impl Options {
    fn wants(&self, point: u64) -> bool {
        match self.only {
            Some(only) => only == point,
            None => point.is_multiple_of(self.every.max(1)),
        }
    }
}

/// The points of the recorded run: its boundaries by number, then the failures of its disks.
#[derive(Clone, Debug)]
struct Points {
    boundaries: u64,
    steps: BTreeMap<&'static str, u64>,
    failures: Vec<DiskFailure>,
}

impl Points {
    fn count(&self) -> u64 {
        self.boundaries + self.failures.len() as u64
    }
}

/// Looks at every point; `progress` is told how many are done, of how many.
///
/// # Panics
/// When the recorded run itself does not work.
pub fn run(options: &Options, mut progress: impl FnMut(u64, u64)) -> Report {
    let shared = recorded::shared(options);
    let survey = with_mutant(options.mutant, || survey(&shared));
    let points = match survey {
        Ok(points) => points,
        Err(broken) => {
            return Report { broken: vec![broken], ..Report::default() };
        }
    };
    let total = (0..points.count()).filter(|point| options.wants(*point)).count() as u64;
    let (count, steps) = (points.count(), points.steps.clone());
    let mut report = Report { points: count, steps, ..Report::default() };
    let (sender, receiver) = mpsc::channel();
    let lane = Lane {
        options: *options,
        number: 0,
        shared,
        points: Arc::new(points),
        next: Arc::default(),
        stop: Arc::default(),
        sender,
    };
    for number in 0..options.threads.max(1) as u64 {
        let lane = Lane { number, ..lane.clone() };
        thread::spawn(move || {
            with_mutant(lane.options.mutant, || {
                lane.failures();
                lane.boundaries();
            });
        });
    }
    drop(lane);
    for (done, (counts, outcome)) in (1..).zip(receiver) {
        progress(done, total);
        for (mode, count) in counts {
            *report.cases.entry(mode).or_default() += count;
        }
        report.broken.extend(outcome.err());
    }
    report.broken.sort_by_key(|broken| broken.point);
    report
}

fn with_mutant<T>(mutant: Option<Mutant>, work: impl FnOnce() -> T) -> T {
    let _active = Active::set(mutant);
    work()
}

/// Counts the boundaries, and what its disks do.
fn survey(shared: &Arc<Shared>) -> Result<Points, Broken> {
    catch(0, "the recorded run", || {
        let mut recorded = Recorded::begin(shared, &[]).expect("nothing fails");
        let steps = Rc::new(RefCell::new(BTreeMap::new()));
        let counter = Rc::clone(&steps);
        recorded.watch(Box::new(move |_, what| {
            *counter.borrow_mut().entry(what).or_default() += 1;
        }));
        recorded.run();
        if let Some(violation) = recorded.chronicle.borrow().complaint.clone() {
            let (point, after, mode) = (0, "the recorded run", "not at all".to_owned());
            return Err(Broken { point, after, mode, violation });
        }
        let mut failures = Vec::new();
        for (start, faults) in recorded.committee.faults().iter().enumerate() {
            let all = every_failure(faults).into_iter().chain(full_at_each_write(faults));
            failures.extend(all.map(|(log, fault)| DiskFailure { start, log, fault }));
        }
        let steps: BTreeMap<&'static str, u64> = steps.borrow().clone();
        Ok(Points { boundaries: steps.values().sum(), steps, failures })
    })
}

/// A panic counts as a violation.
fn catch<T>(
    point: u64,
    after: &'static str,
    work: impl FnOnce() -> Result<T, Broken>,
) -> Result<T, Broken> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let violation = Violation { oracle: "panic", text: text.unwrap_or_default() };
        Err(Broken { point, after, mode: String::new(), violation })
    })
}

type Outcome = (Counts, Result<(), Broken>);

/// One thread's part of the points.
#[derive(Clone)]
struct Lane {
    options: Options,
    number: u64,
    shared: Arc<Shared>,
    points: Arc<Points>,
    next: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    sender: mpsc::Sender<Outcome>,
}

impl Lane {
    fn is_mine(&self, point: u64) -> bool {
        let threads = self.options.threads.max(1) as u64;
        (point / self.options.every.max(1)) % threads == self.number && self.is_wanted(point)
    }

    fn is_wanted(&self, point: u64) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.options.wants(point)
    }

    fn done(&self, counts: Counts, outcome: Result<(), Broken>) {
        if outcome.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        // Nobody listens any more only when the whole search was abandoned.
        let _ = self.sender.send((counts, outcome));
    }

    /// Runs the recorded run once more, and looks at every so many-th boundary as it passes.
    fn boundaries(&self) {
        let mut recorded = Recorded::begin(&self.shared, &[]).expect("the survey came through");
        let (disks, chronicle) = (recorded.disks.clone(), recorded.chronicle.clone());
        let lane = self.clone();
        let (mut point, mut version) = (0, None);
        recorded.watch(Box::new(move |now, what| {
            let (number, present) = (point, chronicle.borrow());
            point += 1;
            // Nothing was said or written since the last boundary: what was found there holds here.
            let is_old = version.replace(present.version) == Some(present.version)
                && !matches!(what, "task" | "snapshot" | "note of the hand-over");
            if lane.is_mine(number) {
                let mut counts = Counts::new();
                let outcome = if is_old {
                    *counts.entry("as the boundary before").or_default() += 1;
                    Ok(())
                } else {
                    lane.look(number, what, now, &disks, &present, &mut counts)
                };
                lane.done(counts, outcome);
            }
        }));
        recorded.run();
    }

    fn look(
        &self,
        number: u64,
        what: &'static str,
        now: Time,
        disks: &[Option<Disks>],
        chronicle: &Chronicle,
        counts: &mut Counts,
    ) -> Result<(), Broken> {
        catch(number, what, || {
            let (shared, known) = (&self.shared, Vec::new());
            Moment { shared, number, what, now, disks, chronicle, counts, known }.try_all()
        })
    }

    fn failures(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let failures = &self.points.failures;
            let found = usize::try_from(index).ok().and_then(|index| failures.get(index));
            let Some(failure) = found else { return };
            let point = self.points.boundaries + index;
            if self.is_wanted(point) {
                let mut counts = Counts::new();
                let outcome = catch(point, "a failure of the disk", || {
                    failures::try_failure(&self.shared, point, failure, &mut counts)
                });
                self.done(counts, outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests;
