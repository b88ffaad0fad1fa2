//! Everything that a run of payments depends on, from one seed.

use super::liar::Behaviour;
use crate::faults::{self, Fault, Schedule};
use crate::mutants::Mutant;
use crate::network::Conditions;
use quorate_deterministic::Rng;
use quorate_payments::PayScheme;
use quorate_types::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed that it was drawn from.
    pub seed: u64,
    /// Scheme by which authorities vote.
    pub scheme: PayScheme,
    /// Real signatures, or stand-ins that cost next to nothing.
    pub real_signatures: bool,
    /// Number of authorities, faulty ones included.
    pub authorities: usize,
    /// Number of shards of each authority.
    pub shards: u16,
    /// Behaviour of each authority, by index.
    pub behaviours: Vec<Behaviour>,
    /// Honest payers; the first issues.
    pub payers: usize,
    /// Owners that sign whatever may bring them money.
    pub thieves: usize,
    /// Times at which payers want to pay, each with the payer.
    pub wishes: Vec<(Time, usize)>,
    /// Times at which thieves act, each with the thief.
    pub crimes: Vec<(Time, usize)>,
    /// Conditions of the network's links.
    pub conditions: Conditions,
    /// Faults of authorities' hosts and links.
    pub schedule: Schedule,
    /// Times at which payers crash, each with the payer and for how long.
    pub payer_crashes: Vec<(Time, usize, Duration)>,
    /// Time for which things go wrong.
    pub fault_phase: Duration,
    /// Within which time everything under way must be over once nothing goes wrong any more.
    pub liveness_bound: Duration,
    /// The rule that is left out.
    pub mutant: Option<Mutant>,
}

impl Scenario {
    /// Draws everything that a seed determines.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed, "payments", 0);
        let scheme = match rng.below(8) {
            0..=3 => PayScheme::Plain,
            4 | 5 => PayScheme::Merkle,
            6 => PayScheme::Bls,
            _ => PayScheme::BlsThreshold,
        };
        let authorities = if rng.one_in(3) { 7 } else { 4 };
        let shards = if rng.one_in(3) { 2 } else { 1 };
        let is_bls = matches!(scheme, PayScheme::Bls | PayScheme::BlsThreshold);
        let mut scenario = Self {
            seed,
            scheme,
            real_signatures: rng.one_in(if is_bls { 32 } else { 4 }),
            authorities,
            shards,
            behaviours: vec![Behaviour::Honest; authorities],
            payers: rng.index(3) + 2,
            thieves: rng.index(3),
            wishes: Vec::new(),
            crimes: Vec::new(),
            conditions: Conditions {
                base_us: 100..=*rng.choose(&[1_000, 5_000, 50_000]),
                jitter_us: *rng.choose(&[0, 500, 5_000, 20_000]),
                loss_percent: rng.perhaps(&(1..=30)),
                duplicate_percent: rng.perhaps(&(1..=50)),
                reorder_percent: rng.perhaps(&(1..=30)),
                corrupt_permille: rng.perhaps(&(1..=20)),
                spell_us: 0,
            },
            schedule: Vec::new(),
            payer_crashes: Vec::new(),
            fault_phase: Duration::from_secs(4),
            liveness_bound: Duration::from_secs(60),
            mutant: None,
        };
        scenario.draw_behaviours(&mut rng);
        scenario.draw_load(&mut rng);
        let (hosts, phase) = (scenario.hosts(), scenario.fault_phase);
        scenario.schedule = faults::draw(&mut rng, hosts, scenario.endpoints(), phase);
        scenario
    }

    /// With this rule left out.
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    /// With as many of this behaviour as are tolerated.
    #[must_use]
    pub fn with_faulty(mut self, behaviour: Behaviour) -> Self {
        self.behaviours.fill(Behaviour::Honest);
        let tolerated = (self.authorities - 1) / 3;
        self.behaviours[..tolerated].fill(behaviour);
        self
    }

    /// Processes of all authorities.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.authorities * usize::from(self.shards)
    }

    /// Number of hosts, payers and thieves together.
    #[must_use]
    pub fn endpoints(&self) -> usize {
        self.hosts() + self.payers + self.thieves
    }

    /// Number of faults that are tried, by kind.
    #[must_use]
    pub fn tried(&self) -> BTreeMap<&'static str, u64> {
        let mut tried = BTreeMap::new();
        let mut count = |kind, by: usize| *tried.entry(kind).or_default() += by as u64;
        self.schedule
            .iter()
            .map(|(_, fault)| fault)
            .map(Fault::kind)
            .for_each(|kind| count(kind, 1));
        let faulty = self.behaviours.iter().filter(|behaviour| **behaviour != Behaviour::Honest);
        faulty.for_each(|behaviour| count(behaviour.name(), 1));
        count("crashes of payers", self.payer_crashes.len());
        count("acts of thieves", self.crimes.len());
        tried
    }

    pub(super) fn describe(&self) -> String {
        let Self { scheme, authorities, shards, behaviours, payers, thieves, .. } = self;
        format!(
            "{authorities} authorities of {shards} shards, {scheme}, {behaviours:?}; {payers} payers, \
             {thieves} thieves"
        )
    }

    fn draw_behaviours(&mut self, rng: &mut Rng) {
        let tolerated = (self.authorities as u64 - 1) / 3;
        for _ in 0..rng.perhaps(&(1..=tolerated)) {
            let authority = rng.index(self.authorities);
            self.behaviours[authority] = *rng.choose(&Behaviour::FAULTY);
        }
    }

    fn draw_load(&mut self, rng: &mut Rng) {
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        for _ in 0..rng.between(&(8..=24)) {
            self.wishes.push((Time(rng.below(phase_us)), rng.index(self.payers)));
        }
        for thief in 0..self.thieves {
            for _ in 0..rng.between(&(6..=20)) {
                self.crimes.push((Time(rng.below(phase_us)), thief));
            }
        }
        for _ in 0..rng.perhaps(&(1..=4)) {
            let at = Time(rng.below(phase_us));
            let down = rng.span(&(1_000..=800_000));
            self.payer_crashes.push((at, rng.index(self.payers), down));
        }
    }
}
