//! Everything that a run of payments depends on, from one seed.

use super::liar::Conduct;
use crate::dice::Dice;
use crate::faults::{self, Fault, Schedule};
use crate::mutants::Mutant;
use crate::network::Conditions;
use quorate_payments::PayScheme;
use quorate_types::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it was drawn from.
    pub seed: u64,
    /// How authorities vote.
    pub scheme: PayScheme,
    /// Real signatures, or stand-ins that cost next to nothing.
    pub real_signatures: bool,
    /// How many authorities there are.
    pub authorities: usize,
    /// Shards of each.
    pub shards: u16,
    /// How each authority behaves.
    pub conduct: Vec<Conduct>,
    /// Honest payers; the first issues.
    pub payers: usize,
    /// Owners that sign whatever may bring them money.
    pub thieves: usize,
    /// When which payer wants to pay.
    pub wishes: Vec<(Time, usize)>,
    /// When which thief acts.
    pub crimes: Vec<(Time, usize)>,
    /// How the network behaves.
    pub conditions: Conditions,
    /// What befalls authorities' hosts and links.
    pub schedule: Schedule,
    /// When which payer crashes, and for how long.
    pub payer_crashes: Vec<(Time, usize, Duration)>,
    /// How long things go wrong.
    pub fault_phase: Duration,
    /// Within which time everything under way must be over once nothing goes wrong any more.
    pub liveness_bound: Duration,
    /// The rule that is left out.
    pub mutant: Option<Mutant>,
}

impl Scenario {
    /// What a seed determines.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "payments", 0);
        let scheme = match dice.below(8) {
            0..=3 => PayScheme::Plain,
            4 | 5 => PayScheme::Merkle,
            6 => PayScheme::Bls,
            _ => PayScheme::BlsThreshold,
        };
        let authorities = if dice.one_in(3) { 7 } else { 4 };
        let shards = if dice.one_in(3) { 2 } else { 1 };
        let is_bls = matches!(scheme, PayScheme::Bls | PayScheme::BlsThreshold);
        let mut scenario = Self {
            seed,
            scheme,
            real_signatures: dice.one_in(if is_bls { 32 } else { 4 }),
            authorities,
            shards,
            conduct: vec![Conduct::Honest; authorities],
            payers: dice.index(3) + 2,
            thieves: dice.index(3),
            wishes: Vec::new(),
            crimes: Vec::new(),
            conditions: Conditions {
                base_us: 100..=*dice.choose(&[1_000, 5_000, 50_000]),
                jitter_us: *dice.choose(&[0, 500, 5_000, 20_000]),
                loss_percent: dice.perhaps(&(1..=30)),
                duplicate_percent: dice.perhaps(&(1..=50)),
                reorder_percent: dice.perhaps(&(1..=30)),
                corrupt_permille: dice.perhaps(&(1..=20)),
                spell_us: 0,
            },
            schedule: Vec::new(),
            payer_crashes: Vec::new(),
            fault_phase: Duration::from_secs(4),
            liveness_bound: Duration::from_secs(60),
            mutant: None,
        };
        scenario.draw_conduct(&mut dice);
        scenario.draw_load(&mut dice);
        let (hosts, phase) = (scenario.hosts(), scenario.fault_phase);
        scenario.schedule = faults::draw(&mut dice, hosts, scenario.endpoints(), phase);
        scenario
    }

    /// With this rule left out.
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    /// With as many of this conduct as are tolerated.
    #[must_use]
    pub fn with_faulty(mut self, conduct: Conduct) -> Self {
        self.conduct.fill(Conduct::Honest);
        let tolerated = (self.authorities - 1) / 3;
        self.conduct[..tolerated].fill(conduct);
        self
    }

    /// Processes of all authorities.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.authorities * usize::from(self.shards)
    }

    /// Hosts, payers, thieves.
    #[must_use]
    pub fn endpoints(&self) -> usize {
        self.hosts() + self.payers + self.thieves
    }

    /// How often each kind of fault is tried.
    #[must_use]
    pub fn tried(&self) -> BTreeMap<&'static str, u64> {
        let mut tried = BTreeMap::new();
        let mut count = |kind, by: usize| *tried.entry(kind).or_default() += by as u64;
        self.schedule
            .iter()
            .map(|(_, fault)| fault)
            .map(Fault::kind)
            .for_each(|kind| count(kind, 1));
        let faulty = self.conduct.iter().filter(|conduct| **conduct != Conduct::Honest);
        faulty.for_each(|conduct| count(conduct.name(), 1));
        count("crashes of payers", self.payer_crashes.len());
        count("acts of thieves", self.crimes.len());
        tried
    }

    pub(super) fn describe(&self) -> String {
        let Self { scheme, authorities, shards, conduct, payers, thieves, .. } = self;
        format!(
            "{authorities} authorities of {shards} shards, {scheme}, {conduct:?}; {payers} payers, \
             {thieves} thieves"
        )
    }

    fn draw_conduct(&mut self, dice: &mut Dice) {
        let tolerated = (self.authorities as u64 - 1) / 3;
        for _ in 0..dice.perhaps(&(1..=tolerated)) {
            let authority = dice.index(self.authorities);
            self.conduct[authority] = *dice.choose(&Conduct::FAULTY);
        }
    }

    fn draw_load(&mut self, dice: &mut Dice) {
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        for _ in 0..dice.between(&(8..=24)) {
            self.wishes.push((Time(dice.below(phase_us)), dice.index(self.payers)));
        }
        for thief in 0..self.thieves {
            for _ in 0..dice.between(&(6..=20)) {
                self.crimes.push((Time(dice.below(phase_us)), thief));
            }
        }
        for _ in 0..dice.perhaps(&(1..=4)) {
            let at = Time(dice.below(phase_us));
            let down = dice.span(&(1_000..=800_000));
            self.payer_crashes.push((at, dice.index(self.payers), down));
        }
    }
}
