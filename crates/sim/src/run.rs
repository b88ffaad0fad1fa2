//! One run of a scenario, and its report.

use crate::mutants::Active;
use crate::oracles::Violation;
use crate::scenario::Scenario;
use crate::world::{Reactions, World};
use quorate_crypto::Digest;
use quorate_types::{Height, Time, View};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a scenario to its end. A panic in a machine is a failure like any other.
#[must_use]
pub fn run(scenario: &Scenario) -> Report {
    let _active = Active::set(scenario.mutant);
    let mut world = World::new(scenario);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let panicked = outcome.is_err();
    let verdict = outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation { oracle: "panic", text: text.unwrap_or_default() })
    });
    let summary = world.summary();
    Report {
        seed: scenario.seed,
        trace_hash: summary.trace,
        events: summary.events,
        virtual_time: summary.now,
        decided_height: summary.height,
        completed: summary.completed,
        installed: summary.installed,
        views: summary.view,
        epochs: summary.epochs,
        reactions: world.reactions(),
        tried: scenario.tried(),
        verdict: verdict.map_err(|Violation { oracle, text }| Failure {
            oracle,
            text,
            state: if panicked { String::new() } else { world.describe() },
            replay: scenario.replay(),
        }),
    }
}

/// Result of a run, with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Seed of its scenario.
    pub seed: u64,
    /// The hash of every event.
    pub trace_hash: Digest,
    /// Number of events processed.
    pub events: u64,
    /// Duration in the world's time.
    pub virtual_time: Time,
    /// The highest height that a correct replica decided and executed.
    pub decided_height: Height,
    /// Number of operations completed.
    pub completed: u64,
    /// Snapshots that correct replicas installed instead of executing what they missed.
    pub installed: u64,
    /// The highest view of a correct replica.
    pub views: View,
    /// Number of epochs that its committee went through.
    pub epochs: u64,
    /// Effects on correct members, as far as they noticed them.
    pub reactions: Reactions,
    /// Number of times each kind of fault and of behaviour was tried.
    pub tried: BTreeMap<&'static str, u64>,
    /// First property that was broken, if any.
    pub verdict: Result<(), Failure>,
}

/// A property was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the oracle that says so.
    pub oracle: &'static str,
    /// Contradiction that it saw, in words.
    pub text: String,
    /// Status of every replica at that moment.
    pub state: String,
    /// The command that runs it again.
    pub replay: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oracle, text, state, replay } = self;
        write!(f, "{oracle}: {text}\n{state}\nto run it again: {replay}")
    }
}
