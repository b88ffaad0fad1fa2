//! From a scenario that fails to the smallest one found that fails in the same way.
//!
//! Each pass proposes simpler scenarios, boldest first; one that still breaks the same oracle is
//! taken and the pass begins again. When no pass finds anything more, or the budget is spent, what
//! is left is the smallest. Nothing is drawn: the same scenario shrinks the same way every time.
//!
//! What is simpler, each kind of scenario says ([`Shrinks`]): that of a committee in
//! `committee`, that of payments beside it. A simpler scenario must be one that a correct system
//! survives, or anything would fail in it: no step makes more members faulty than are tolerated
//! (unless they were from the start), and none touches the time that progress is given.

mod committee;

pub use committee::Size;

use crate::faults::{Fault, Schedule};
use crate::network::Conditions;
use crate::run::Failure;
use crate::scenario::text::TextError;
use quorate_crypto::Digest;
use quorate_types::Time;
use serde::Serialize;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// Scenario that can be made simpler.
pub trait Shrinks: Clone + PartialEq + Sized + 'static {
    /// Size of a scenario, as people see it.
    type Size: Copy + fmt::Debug + fmt::Display + Serialize;
    /// Result of a run.
    type Report: Clone + fmt::Debug;

    /// Passes in their order: parts that cost most to understand go first.
    const PASSES: &'static [Pass<Self>];

    /// Counts what a reader has to understand: passes make it smaller or leave the scenario.
    fn size(&self) -> Self::Size;

    /// Runs it to its end.
    fn run(&self) -> Self::Report;

    /// Property that a run broke, if it broke one.
    fn failure(report: &Self::Report) -> Option<&Failure>;

    /// The hash of all events of a run.
    fn trace_hash(report: &Self::Report) -> Digest;

    /// Returns `true` if a correct system survives it wherever it survives `before`.
    fn is_survivable(&self, before: &Self) -> bool;

    /// Leaves out what befalls nobody that there is, after something was changed.
    fn fit(&mut self);

    /// The same without whatever says how it was drawn.
    #[must_use]
    fn plain(&self) -> Self;

    /// Seed that it was drawn from.
    fn seed(&self) -> u64;

    /// Command that runs it again.
    fn replay(&self) -> String;

    /// As a file that [`Shrinks::from_file`] reads back: the same run, event for event.
    fn to_toml(&self) -> String;

    /// Reads a file of this name.
    ///
    /// # Errors
    /// When it is no such scenario, or its parts do not fit together.
    fn from_file(text: &str, name: String) -> Result<Self, TextError>;
}

/// State of a search for a smaller scenario.
#[derive(Clone, Copy, Debug)]
pub struct Step<Z> {
    /// Scenarios run so far.
    pub runs: u64,
    /// The smallest that fails so far.
    pub size: Z,
    /// Name of the pass under way.
    pub pass: &'static str,
}

/// Smallest scenario that was found.
#[derive(Clone, Debug)]
pub struct Shrunk<S: Shrinks> {
    /// The smallest scenario found.
    pub scenario: S,
    /// Its report; its verdict is the same oracle's complaint.
    pub report: S::Report,
    /// Number of scenarios run.
    pub runs: u64,
    /// `true` if nothing simpler fails, as far as the passes go; otherwise the budget was spent.
    pub complete: bool,
}

/// One way to make scenarios simpler.
#[derive(Debug)]
pub struct Pass<S> {
    /// What there is less of.
    pub name: &'static str,
    /// Simpler scenarios, boldest first.
    pub propose: fn(&S) -> Vec<S>,
}

/// Shrinks a scenario that breaks `oracle`. `proceed` hears of every step, and ends it all by
/// answering no. `None` when the scenario does not break that oracle.
pub fn shrink<S: Shrinks>(
    scenario: &S,
    oracle: &str,
    mut proceed: impl FnMut(&Step<S::Size>) -> bool,
) -> Option<Shrunk<S>> {
    let same = |report: &S::Report| S::failure(report).is_some_and(|f| f.oracle == oracle);
    let mut best = scenario.plain();
    let mut report = best.run();
    let mut runs = 1;
    if !same(&report) {
        return None;
    }
    let mut try_one = |candidate: &S, best: &S, pass| {
        runs += 1;
        let report = candidate.run();
        let went_on = proceed(&Step { runs, size: best.size(), pass });
        (went_on, same(&report).then_some(report))
    };
    let mut improved = true;
    while std::mem::take(&mut improved) {
        for pass in S::PASSES {
            while let Some(next) = first_that_fails(pass, &best, &mut try_one) {
                let Ok((simpler, its_report)) = next else {
                    return Some(Shrunk { scenario: best, report, runs, complete: false });
                };
                (best, report, improved) = (simpler, its_report, true);
            }
        }
    }
    Some(Shrunk { scenario: best, report, runs, complete: true })
}

/// The first simpler scenario of a pass that still fails; `Err` when the budget is spent.
fn first_that_fails<S: Shrinks>(
    pass: &Pass<S>,
    best: &S,
    try_one: &mut impl FnMut(&S, &S, &'static str) -> (bool, Option<S::Report>),
) -> Option<Result<(S, S::Report), OutOfBudget>> {
    for candidate in (pass.propose)(best) {
        if candidate == *best || !candidate.is_survivable(best) {
            continue;
        }
        match try_one(&candidate, best, pass.name) {
            (_, Some(report)) => return Some(Ok((candidate, report))),
            (false, None) => return Some(Err(OutOfBudget)),
            (true, None) => {}
        }
    }
    None
}

struct OutOfBudget;

/// A copy with something changed, in which everything befalls somebody that there is.
pub(crate) fn with<S: Shrinks>(scenario: &S, change: impl FnOnce(&mut S)) -> S {
    let mut simpler = scenario.clone();
    change(&mut simpler);
    simpler.fit();
    simpler
}

/// Copies without parts of one of their lists.
pub(crate) fn without<S: Shrinks, T>(scenario: &S, list: fn(&mut S) -> &mut Vec<T>) -> Vec<S> {
    let len = list(&mut scenario.clone()).len();
    parts(len).map(|part| with(scenario, |s| drop(list(s).drain(part)))).collect()
}

/// Parts of a list to leave out: all of it, halves, quarters, and so on to single ones.
fn parts(len: usize) -> impl Iterator<Item = Range<usize>> {
    let chunks = std::iter::successors(Some(len), |chunk| Some(chunk / 2));
    let chunks = chunks.take_while(|chunk| *chunk > 0);
    chunks.flat_map(move |chunk| {
        (0..len).step_by(chunk).map(move |start| start..len.min(start + chunk))
    })
}

/// The faults that befall a host that there is.
pub(crate) fn keep_faults_of(schedule: &mut Schedule, hosts: usize) {
    schedule.retain(|(_, fault)| fault.host().is_none_or(|host| host < hosts));
}

/// Copies in a calmer network, all of it first. A step must never lead back to where an earlier one
/// left: `calm` is as calm as can be.
pub(crate) fn calmer<S: Shrinks>(
    scenario: &S,
    calm: &Conditions,
    of: fn(&mut S) -> &mut Conditions,
) -> Vec<S> {
    let steps: [fn(&mut Conditions, &Conditions); 8] = [
        |one, calm| *one = calm.clone(),
        |one, _| one.loss_percent = 0,
        |one, _| one.duplicate_percent = 0,
        |one, _| one.reorder_percent = 0,
        |one, _| one.corrupt_permille = 0,
        |one, _| one.spell_us = 0,
        |one, _| one.jitter_us = 0,
        |one, calm| one.base_us = calm.base_us.clone(),
    ];
    steps.into_iter().map(|step| with(scenario, |s| step(of(s), calm))).collect()
}

/// Half the time for faults, without those that began later; and each fault for half as long.
pub(crate) fn shorter<S: Shrinks>(
    scenario: &S,
    of: fn(&mut S) -> (&mut Duration, &mut Schedule),
) -> Vec<S> {
    const LEAST: Duration = Duration::from_millis(100);
    let (phase, schedule) = {
        let mut copy = scenario.clone();
        let (phase, schedule) = of(&mut copy);
        (*phase, schedule.clone())
    };
    let half_phase = |s: &mut S| {
        let (phase, schedule) = of(s);
        *phase = half(*phase);
        let end = Time(0) + *phase;
        schedule.retain(|(at, _)| *at < end);
    };
    let mut simpler = Vec::new();
    simpler.extend((phase >= 2 * LEAST).then(|| with(scenario, half_phase)));
    for (index, (_, fault)) in schedule.iter().enumerate() {
        let halved = halved(fault);
        simpler.extend(halved.map(|fault| with(scenario, |s| of(s).1[index].1 = fault)));
    }
    simpler
}

/// In whole microseconds: a file has no others.
fn half(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).expect("a run is minutes") / 2)
}

/// The fault for half as long; `None` when that is next to nothing.
fn halved(fault: &Fault) -> Option<Fault> {
    let mut shorter = fault.clone();
    let span = shorter.span_mut()?;
    *span = half(*span);
    (*span >= Duration::from_millis(10)).then_some(shorter)
}

/// A scenario's file: what it is and how it fails in a comment, then the scenario.
#[must_use]
pub fn file_of<S: Shrinks>(shrunk: &Shrunk<S>) -> String {
    let mut text = String::new();
    if let Some(Failure { oracle, text: complaint, .. }) = S::failure(&shrunk.report) {
        let one_line = complaint.replace('\n', " ");
        text.push_str(&format!("# Breaks '{oracle}': {one_line}\n"));
    }
    text.push_str(&format!("# {}.\n\n", shrunk.scenario.size()));
    text + &shrunk.scenario.to_toml()
}

#[cfg(test)]
mod tests;
