//! Payments in virtual time: authorities, payers and thieves under the eyes of oracles.
//!
//! Start with [`Scenario`], which is everything that a run depends on, and [`run`]. `world` hosts
//! the two machines of `quorate_payments`; `host` is an authority's shard with a disk, `payer` a
//! wallet, `thief` whoever tries to have more than is theirs, `liar` an authority that may say
//! anything, `committee` the order of releases. `books` judges: it knows what is owned and what was
//! promised, and shares no code with what it judges. [`model`] is a test of its own: one authority
//! against plain maps, for a million transactions.

mod books;
mod changes;
mod committee;
mod host;
mod liar;
pub mod model;
mod payer;
mod scenario;
mod shrink;
mod test_network;
mod thief;
mod world;

pub use books::Violation;
pub use changes::AuthorityChange;
pub use liar::Behaviour;
pub use payer::Mishap;
pub use scenario::Scenario;
pub use shrink::Size;
pub use test_network::TestNetwork;

use crate::Failure;
use crate::campaign::each_seed;
use crate::mutants::Active;
use quorate_crypto::Digest;
use quorate_crypto::stand_in::StandIns;
use quorate_types::Time;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// Result of a run, with its verdict.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seed of its scenario.
    pub seed: u64,
    /// The hash of all events.
    pub trace_hash: Digest,
    /// Number of events processed.
    pub events: u64,
    /// Duration in the world's time.
    pub virtual_time: Time,
    /// Payments of honest payers that became certificates.
    pub certified: u64,
    /// Payments of thieves that did.
    pub thieves_certified: u64,
    /// Votes refused because an input was taken, each with a proof that its payer signed two.
    pub conflicts: u64,
    /// Orders refused as invalid.
    pub invalid: u64,
    /// Coins that were frozen, honest payers' and others'.
    pub frozen: u64,
    /// Those of them whose release was decided.
    pub decided: u64,
    /// Refunds of honest payers that became certificates.
    pub refunded: u64,
    /// Coins that honest payers lost by signing twice without knowing.
    pub lost: u64,
    /// Number of faults tried, by kind.
    pub tried: BTreeMap<&'static str, u64>,
    /// First property that did not hold, if any.
    pub verdict: Result<(), Failure>,
}

/// Runs a scenario to its end. A panic in a machine is a failure like any other.
#[must_use]
pub fn run(scenario: &Scenario) -> Report {
    let _active = Active::set(scenario.mutant);
    let _stand_ins = (!scenario.real_signatures).then(StandIns::begin);
    let mut world = World::new(scenario);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let verdict = outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation { oracle: "panic", text: text.unwrap_or_default() })
    });
    let mut report = world.report();
    report.verdict = verdict.map_err(|Violation { oracle, text }| Failure {
        oracle,
        text,
        state: scenario.describe(),
        replay: scenario.replay(),
    });
    report
}

/// Runs the scenarios that `draw` makes of `seeds`, as [`run_many`](crate::run_many) does.
pub fn run_many(
    seeds: Range<u64>,
    threads: usize,
    draw: impl Fn(u64) -> Scenario + Sync,
    progress: impl FnMut(&Report),
) -> Vec<Report> {
    each_seed(seeds, threads, |seed| run(&draw(seed)), progress)
}

#[cfg(test)]
mod tests;
