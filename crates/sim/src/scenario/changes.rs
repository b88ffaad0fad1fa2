//! Changes of committee in a scenario: the next epoch's members, weights and settings, and when a
//! client brings them.

use super::Scenario;
use crate::byzantine::Behaviour;
use crate::forms;
use quorate_deterministic::Rng;
use quorate_engine::{Availability as Proof, ProtocolKind, Settings};
use quorate_types::{AgreedSettings, Weights, as_text};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A change that a client brings, signed by all who are to sign it, until its epoch is over. It is
/// of the epoch that is the last when it is brought first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedChange {
    /// Time at which it is brought first.
    #[serde(with = "forms::micros", rename = "at_us")]
    pub at: Duration,
    /// Member that it is brought to first, by its index; the others follow in turn.
    pub brought_to: usize,
    /// It is brought even while another waits to be ordered: of two for one epoch, the first that
    /// is ordered takes effect.
    #[serde(default)]
    pub races: bool,
    /// Hosts of the next members, by their index there. A host that is left out becomes a learner.
    pub members: Vec<usize>,
    /// Weight of each of them.
    #[serde(with = "as_text")]
    pub weights: Weights,
    /// Hosts that lose power at the border: just before they note that the next epoch has begun, or
    /// just after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashes: Vec<usize>,
    /// Settings of the next epoch.
    pub settings: AgreedSettings,
}

impl PlannedChange {
    /// A change of nothing but the epoch.
    #[must_use]
    pub fn of(scenario: &Scenario, at: Duration) -> Self {
        Self {
            at,
            brought_to: 0,
            races: false,
            members: (0..scenario.replicas).collect(),
            weights: scenario.weights.clone(),
            crashes: Vec::new(),
            settings: scenario.settings.agreed(),
        }
    }

    /// Without other hosts than the first ones, all of whom weigh the same.
    pub(crate) fn keep_first(&mut self, hosts: usize) {
        let mut members = self.members.clone();
        members.retain(|host| *host < hosts);
        if members.len() < self.members.len() && !members.is_empty() {
            self.weights = Weights::equal(members.len());
            self.members = members;
        }
        self.crashes.retain(|host| *host < hosts);
    }

    /// Checks that the committee of a scenario can become this one.
    ///
    /// # Errors
    /// In words: what does not fit.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        let hosts = scenario.hosts();
        let seconds = scenario.replicas..scenario.replicas + scenario.twins();
        let mut members = self.members.clone();
        members.sort_unstable();
        members.dedup();
        ensure(members.len() == self.members.len(), "a change names each host once")?;
        let is_known = |host: &usize| *host < hosts && !seconds.contains(host);
        ensure(members.iter().all(is_known), "a change names hosts there are")?;
        ensure(self.crashes.iter().all(|host| *host < hosts), "hosts there are crash")?;
        ensure(self.weights.members() == members.len(), "weights has an entry for each member")?;
        let mut settings = scenario.settings.clone();
        settings.agree(&self.settings).map_err(|error| error.to_string())?;
        settings.validate().map_err(|error| error.to_string())?;
        let fits = settings.protocol.check_committee(&self.weights, scenario.scheme);
        fits.map_err(|error| error.to_string())?;
        let faulty = scenario.faulty_weight_of(&self.members, &self.weights);
        let is_tolerated = scenario.excessive || faulty <= self.weights.faulty_max();
        ensure(is_tolerated, "no more members of a next committee are faulty than it tolerates")
    }
}

/// Changes for a scenario: one, two or three.
pub(crate) fn draw(scenario: &Scenario, rng: &mut Rng) -> Vec<PlannedChange> {
    let phase_us = u64::try_from(scenario.fault_phase.as_micros()).expect("seconds");
    let count = if rng.coin() { 1 } else { rng.between(&(2..=3)) };
    let mut times: Vec<u64> = (0..count).map(|_| rng.below(phase_us)).collect();
    times.sort_unstable();
    let mut before = PlannedChange::of(scenario, Duration::ZERO);
    let mut changes = Vec::new();
    for at in times {
        before = draw_one(scenario, &before, Duration::from_micros(at), rng);
        changes.push(before.clone());
    }
    changes
}

/// A change after the one before it. Each part is left as it was where what was drawn does not fit.
fn draw_one(
    scenario: &Scenario,
    before: &PlannedChange,
    at: Duration,
    rng: &mut Rng,
) -> PlannedChange {
    let members: Vec<usize> = (0..scenario.hosts()).collect();
    let start = PlannedChange {
        at,
        brought_to: rng.index(scenario.replicas),
        races: rng.one_in(4),
        crashes: members.iter().copied().filter(|_| rng.one_in(4)).collect(),
        ..before.clone()
    };
    let parts: [fn(&Scenario, &mut PlannedChange, &mut Rng); 5] =
        [draw_member, draw_order, draw_weights, draw_protocol, draw_settings];
    parts.into_iter().fold(start, |change, part| {
        let mut next = change.clone();
        if rng.coin() {
            part(scenario, &mut next, rng);
        }
        if next.check(scenario).is_ok() { next } else { change }
    })
}

/// A learner takes a member's place, or a place of its own, or a member leaves.
fn draw_member(scenario: &Scenario, change: &mut PlannedChange, rng: &mut Rng) {
    let is_outside = |host: &usize| !change.members.contains(host);
    let seconds = scenario.replicas..scenario.replicas + scenario.twins();
    let outside: Vec<usize> =
        (0..scenario.hosts()).filter(is_outside).filter(|host| !seconds.contains(host)).collect();
    let place = rng.index(change.members.len());
    let leaves = scenario.behaviour(change.members[place]) == Behaviour::Honest;
    match outside.first() {
        Some(_) if rng.one_in(3) => {
            change.members.insert(place, *rng.choose(&outside));
            change.weights = Weights::equal(change.members.len());
        }
        Some(_) if leaves => change.members[place] = *rng.choose(&outside),
        _ if leaves && change.members.len() > 4 => {
            change.members.remove(place);
            change.weights = Weights::equal(change.members.len());
        }
        _ => {}
    }
}

/// Members have other indices.
fn draw_order(_: &Scenario, change: &mut PlannedChange, rng: &mut Rng) {
    for place in (1..change.members.len()).rev() {
        change.members.swap(place, rng.index(place + 1));
    }
}

fn draw_weights(_: &Scenario, change: &mut PlannedChange, rng: &mut Rng) {
    let each = change.members.iter().map(|_| rng.between(&(1..=5))).collect();
    if let Ok(weights) = Weights::new(each) {
        change.weights = weights;
    }
}

fn draw_protocol(_: &Scenario, change: &mut PlannedChange, rng: &mut Rng) {
    change.settings.protocol = rng.choose(&ProtocolKind::ALL).to_string();
}

fn draw_settings(scenario: &Scenario, change: &mut PlannedChange, rng: &mut Rng) {
    let settings = &mut change.settings;
    settings.leader_reputation = rng.coin();
    settings.execution_certificates = rng.coin();
    settings.snapshot_every = *rng.choose(&[4, 12, Settings::default().snapshot_every]);
    // Certified bodies and next to nothing kept do not go together (ADR 11).
    let keeps_log = scenario.log.retention_bytes > 4 * scenario.log.segment_bytes;
    if keeps_log && !settings.inline_bodies {
        settings.availability = rng.choose(&[Proof::Stored, Proof::Certified]).to_string();
    }
}
