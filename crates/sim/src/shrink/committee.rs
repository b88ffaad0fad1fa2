//! Simpler scenarios of a committee.

use super::{Pass, Shrinks, calmer, keep_faults_of, with, without};
use crate::byzantine::Behaviour;
use crate::network::Conditions;
use crate::run::{Failure, Report, run};
use crate::scenario::Scenario;
use crate::scenario::changes::PlannedChange;
use crate::scenario::text::TextError;
use quorate_crypto::{Digest, SchemeKind};
use quorate_types::Weights;
use serde::Serialize;
use std::fmt;

/// Size of a scenario, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Number of members, faulty ones included.
    pub replicas: usize,
    /// Members that do not behave.
    pub faulty: usize,
    /// Faults in its schedule.
    pub faults: usize,
    /// Number of operations that clients submit.
    pub operations: usize,
    /// Number of clients that submit them.
    pub clients: usize,
}

impl Size {
    /// Counts the parts of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let is_faulty = |behaviour: &&Behaviour| **behaviour != Behaviour::Honest;
        Self {
            replicas: scenario.replicas,
            faulty: scenario.behaviours.iter().filter(is_faulty).count(),
            faults: scenario.schedule.len(),
            operations: scenario.operations,
            clients: scenario.clients,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replicas, faulty, faults, operations, clients } = self;
        write!(
            f,
            "{replicas} members ({faulty} faulty), {faults} faults, {operations} operations, \
             {clients} clients"
        )
    }
}

impl Shrinks for Scenario {
    type Size = Size;
    type Report = Report;

    const PASSES: &'static [Pass<Self>] = &[
        Pass { name: "faults", propose: fewer_faults },
        Pass { name: "changes", propose: fewer_changes },
        Pass { name: "behaviours", propose: fewer_liars },
        Pass { name: "operations", propose: fewer_operations },
        Pass { name: "clients", propose: fewer_clients },
        Pass { name: "network", propose: calmer_network },
        Pass { name: "members", propose: fewer_members },
        Pass { name: "hosts", propose: calmer_hosts },
        Pass { name: "settings", propose: plainer_settings },
        Pass { name: "time", propose: shorter },
    ];

    fn size(&self) -> Size {
        Size::of(self)
    }

    fn run(&self) -> Report {
        run(self)
    }

    fn failure(report: &Report) -> Option<&Failure> {
        report.verdict.as_ref().err()
    }

    fn trace_hash(report: &Report) -> Digest {
        report.trace_hash
    }

    /// No more may be wrong with the members than before, or than is tolerated; where that was the
    /// point, it stays so.
    fn is_survivable(&self, before: &Self) -> bool {
        let excess = |scenario: &Scenario| {
            scenario.faulty_weight().saturating_sub(scenario.weights.faulty_max())
        };
        let are_sound = self.changes.iter().all(|change| change.check(self).is_ok());
        are_sound && excess(self) <= excess(before)
    }

    fn fit(&mut self) {
        let hosts = self.hosts();
        keep_faults_of(&mut self.schedule, hosts);
    }

    fn plain(&self) -> Self {
        Self { options: Vec::new(), ..self.clone() }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn replay(&self) -> String {
        Scenario::replay(self)
    }

    fn to_toml(&self) -> String {
        Scenario::to_toml(self)
    }

    fn from_file(text: &str, name: String) -> Result<Self, TextError> {
        Ok(Self { file: Some(name), ..Self::from_toml(text)? })
    }
}

fn fewer_faults(scenario: &Scenario) -> Vec<Scenario> {
    without(scenario, |s| &mut s.schedule)
}

/// None, each left out, and each with nothing but the protocol changed, or the epoch.
fn fewer_changes(scenario: &Scenario) -> Vec<Scenario> {
    let mut simpler = vec![with(scenario, |s| s.changes.clear())];
    for (place, change) in scenario.changes.iter().enumerate() {
        let plain = PlannedChange::of(scenario, change.at);
        let mut of_protocol = plain.clone();
        of_protocol.settings.protocol.clone_from(&change.settings.protocol);
        simpler.push(with(scenario, |s| drop(s.changes.remove(place))));
        for instead in [plain, of_protocol] {
            simpler.push(with(scenario, |s| s.changes[place] = instead));
        }
        simpler.push(with(scenario, |s| s.changes[place].crashes.clear()));
    }
    simpler
}

fn fewer_liars(scenario: &Scenario) -> Vec<Scenario> {
    let honest = |member: usize| with(scenario, |s| s.behaviours[member] = Behaviour::Honest);
    let lies = |member: &usize| scenario.behaviours[*member] != Behaviour::Honest;
    (0..scenario.replicas).filter(lies).map(honest).collect()
}

/// A sixteenth, a quarter, a half, three quarters, and one less.
fn fewer_operations(scenario: &Scenario) -> Vec<Scenario> {
    let all = scenario.operations;
    let counts = [all / 16, all / 4, all / 2, all * 3 / 4, all.saturating_sub(1)];
    counts.into_iter().map(|count| with(scenario, |s| s.operations = count)).collect()
}

fn fewer_clients(scenario: &Scenario) -> Vec<Scenario> {
    (1..scenario.clients).map(|count| with(scenario, |s| s.clients = count)).collect()
}

fn calmer_network(scenario: &Scenario) -> Vec<Scenario> {
    let calm = Conditions { jitter_us: 0, ..Scenario::calm(0, 1).conditions };
    calmer(scenario, &calm, |s| &mut s.conditions)
}

/// Fewer members, the first ones; and members that all weigh the same.
fn fewer_members(scenario: &Scenario) -> Vec<Scenario> {
    let first = |count: usize| {
        with(scenario, |s| {
            s.replicas = count;
            s.behaviours.truncate(count);
            s.clock_rates.truncate(count);
            let each = scenario.weights.each()[..count].to_vec();
            s.weights = Weights::new(each).unwrap_or_else(|_| Weights::equal(count));
            s.changes.iter_mut().for_each(|change| change.keep_first(count));
        })
    };
    let equal = with(scenario, |s| s.weights = Weights::equal(s.replicas));
    (4..scenario.replicas).map(first).chain([equal]).collect()
}

fn calmer_hosts(scenario: &Scenario) -> Vec<Scenario> {
    let calm = Scenario::calm(0, 1);
    vec![
        with(scenario, |s| s.clock_rates.fill(1_000_000)),
        with(scenario, |s| s.pace_us_max = 0),
        with(scenario, |s| s.durations = calm.durations.clone()),
        with(scenario, |s| s.executor = calm.executor.clone()),
        with(scenario, |s| s.log = calm.log.clone()),
        with(scenario, |s| s.scheme = SchemeKind::Stub),
    ]
}

fn plainer_settings(scenario: &Scenario) -> Vec<Scenario> {
    let calm = Scenario::calm(0, 1).settings;
    vec![
        with(scenario, |s| s.settings = calm.clone()),
        with(scenario, |s| s.settings.availability = calm.availability),
        with(scenario, |s| s.settings.execution_certificates = calm.execution_certificates),
        with(scenario, |s| {
            s.settings.comparison.truncation = calm.comparison.truncation;
            s.settings.inline_bodies = calm.inline_bodies;
        }),
        with(scenario, |s| s.settings.comparison.truncation = calm.comparison.truncation),
        with(scenario, |s| s.settings.leader_tenure = calm.leader_tenure),
        with(scenario, |s| s.settings.concurrent_slots = calm.concurrent_slots),
        with(scenario, |s| s.settings.shorten_failed_turns = calm.shorten_failed_turns),
        with(scenario, |s| s.settings.timeout_growth = calm.timeout_growth),
        with(scenario, |s| {
            s.settings.comparison.block_operations_max = calm.comparison.block_operations_max;
        }),
        with(scenario, |s| s.settings.comparison.filter_requests = calm.comparison.filter_requests),
        with(scenario, |s| s.settings.vote_wait_ms = 0),
        with(scenario, |s| s.settings.verify = calm.verify),
        with(scenario, |s| s.settings.batch_bytes = calm.batch_bytes),
        with(scenario, |s| s.settings.batch_delay_ms = calm.batch_delay_ms),
        with(scenario, |s| s.settings.timeout_ms = calm.timeout_ms),
        with(scenario, |s| s.settings.heartbeat_ms = calm.heartbeat_ms),
        with(scenario, |s| s.settings.snapshot_every = calm.snapshot_every),
    ]
}

/// With half the time for faults, changes too are left out that would come later.
fn shorter(scenario: &Scenario) -> Vec<Scenario> {
    let mut simpler = super::shorter(scenario, |s| (&mut s.fault_phase, &mut s.schedule));
    for one in simpler.iter_mut().filter(|one| one.fault_phase < scenario.fault_phase) {
        let end = one.fault_phase;
        one.changes.retain(|change| change.at < end);
    }
    simpler
}
