//! Many plans, on several threads.

use super::ground::Ground;
use super::plan::Plan;
use super::run::{Outcome, run};
use crate::mutants::{Active, Mutant};
use crate::oracles::Violation;
use crate::replay;
use quorate_consensus::ProtocolKind;
use quorate_crypto::{Digest, hash_parts};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Plans that a thread takes at once.
const CHUNK: u64 = 64;

/// Most broken plans that are kept.
const FOUND_MAX: usize = 20;

/// A plan that broke a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The protocol that the machines ran.
    pub protocol: ProtocolKind,
    /// Plan that breaks it.
    pub plan: Plan,
    /// Property that it breaks.
    pub violation: Violation,
}

impl Found {
    /// The command that runs it again.
    #[must_use]
    pub fn replay(&self, mutant: Option<Mutant>) -> String {
        let (protocol, mutant) = (replay::protocol(self.protocol), replay::mutant(mutant));
        let changes = if self.plan.next.is_some() { " --changes" } else { "" };
        let number = self.plan.number;
        format!("quorate sim --twins-scenarios 1 --from {number}{changes}{protocol}{mutant}")
    }
}

/// Result of many plans. The same plans give the same, on any number of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Campaign {
    /// Number of plans run.
    pub plans: u64,
    /// Plans in which a property was broken.
    pub broken: u64,
    /// Heights decided, over all plans.
    pub heights: u64,
    /// Number of views entered.
    pub views: u64,
    /// Number of timers that fired.
    pub rings: u64,
    /// Number of messages that arrived.
    pub messages: u64,
    /// The first broken plans.
    pub found: Vec<Found>,
    traces: BTreeMap<u64, Digest>,
}

impl Campaign {
    /// One hash over all that happened.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let traces: Vec<u8> = self.traces.values().flat_map(|trace| trace.0).collect();
        hash_parts("quorate v1 twins campaign", &[&traces])
    }

    fn add(&mut self, protocol: ProtocolKind, plan: &Plan, outcome: Outcome) {
        self.plans += 1;
        self.heights += outcome.decided;
        self.views += outcome.view.0;
        self.rings += u64::from(outcome.rings);
        self.messages += u64::from(outcome.messages);
        if let Err(violation) = outcome.verdict {
            self.broken += 1;
            self.found.push(Found { protocol, plan: plan.clone(), violation });
        }
    }

    fn join(&mut self, other: Self) {
        self.plans += other.plans;
        self.broken += other.broken;
        self.heights += other.heights;
        self.views += other.views;
        self.rings += other.rings;
        self.messages += other.messages;
        self.found.extend(other.found);
        self.found.sort_by_key(|found| found.plan.number);
        self.found.truncate(FOUND_MAX);
        self.traces.extend(other.traces);
    }
}

/// Runs the plans that `draw` makes of these numbers, with a rule left out if one is named.
/// `progress` hears of each part as it is done.
///
/// # Panics
/// When there is a mutant and the crate was built without the feature `mutants`.
pub fn run_plans(
    numbers: Range<u64>,
    threads: usize,
    mutant: Option<Mutant>,
    draw: fn(u64) -> Plan,
    ground: impl Fn() -> Ground + Sync,
    mut progress: impl FnMut(&Campaign),
) -> Campaign {
    let next = AtomicU64::new(numbers.start);
    let (sender, parts) = mpsc::channel();
    let work = |sender: mpsc::Sender<Campaign>| {
        let _active = Active::set(mutant);
        let ground = ground();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let end = numbers.end.min(start.saturating_add(CHUNK));
            if start >= end || sender.send(run_part(start..end, draw, &ground)).is_err() {
                return;
            }
        }
    };
    let mut all = Campaign::default();
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        for part in parts {
            progress(&part);
            all.join(part);
        }
    });
    all
}

fn run_part(numbers: Range<u64>, draw: fn(u64) -> Plan, ground: &Ground) -> Campaign {
    let mut part = Campaign::default();
    let start = numbers.start;
    let mut traces = Vec::new();
    for number in numbers {
        let plan = Arc::new(draw(number));
        let outcome = run_plan(&plan, ground);
        traces.extend(outcome.trace.0);
        part.add(ground.protocol(), &plan, outcome);
    }
    part.traces.insert(start, hash_parts("quorate v1 twins part", &[&traces]));
    part
}

/// Runs one plan. A panic in a machine is a failure like any other.
#[must_use]
pub fn run_plan(plan: &Arc<Plan>, ground: &Ground) -> Outcome {
    let outcome = catch_unwind(AssertUnwindSafe(|| run(plan, ground)));
    outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Outcome {
            decided: 0,
            view: quorate_types::View(0),
            rings: 0,
            messages: 0,
            trace: Digest::ZERO,
            verdict: Err(Violation { oracle: "panic", text: text.unwrap_or_default() }),
        }
    })
}
