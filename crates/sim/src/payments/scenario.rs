//! Everything that a run of payments depends on, from one seed.

mod changes;

use super::changes::AuthorityChange;
use super::liar::Behaviour;
use super::payer::Mishap;
use crate::faults::{self, Fault, Schedule};
use crate::mutants::Mutant;
use crate::network::{Conditions, Network as Links};
use crate::scenario::text::{self, TextError};
use crate::{forms, replay};
use quorate_deterministic::Rng;
use quorate_payments::PayScheme;
use quorate_types::as_text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that a run depends on. Times are microseconds of the world's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed that it was drawn from, and that all draws during the run come from.
    #[serde(with = "as_text")]
    pub seed: u64,
    /// Scheme by which authorities vote.
    pub scheme: PayScheme,
    /// Real signatures, or stand-ins that cost next to nothing.
    pub real_signatures: bool,
    /// Number of authorities that the network is founded with, faulty ones included.
    pub authorities: usize,
    /// Number of shards of each authority.
    pub shards: u16,
    /// Behaviour of each authority of any epoch, by number.
    pub behaviours: Vec<Behaviour>,
    /// Honest payers; the first issues.
    pub payers: usize,
    /// Owners that sign whatever may bring them money.
    pub thieves: usize,
    /// Times at which payers want to pay, each with the payer.
    pub wishes: Vec<(u64, usize)>,
    /// Times at which thieves act, each with the thief.
    pub crimes: Vec<(u64, usize)>,
    /// Conditions of the network's links.
    pub conditions: Conditions,
    /// Faults of authorities' hosts and links.
    #[serde(with = "text::schedule")]
    pub schedule: Schedule,
    /// Times at which payers crash, each with the payer and for how long.
    pub payer_crashes: Vec<(u64, usize, u64)>,
    /// Times at which payers make backups, each with the payer.
    pub backups: Vec<(u64, usize)>,
    /// Times at which payers lose their books, each with the payer, for how long it is down, and
    /// what it goes on from.
    pub mishaps: Vec<(u64, usize, u64, Mishap)>,
    /// Time after which an honest payer asks for the release of what it pays with.
    #[serde(with = "forms::micros", rename = "patience_us")]
    pub patience: Duration,
    /// Longest time until a step is ordered.
    pub order_us: u64,
    /// Longest time until each host executes what was ordered next.
    pub follow_us: Vec<u64>,
    /// Time for which things go wrong.
    #[serde(with = "forms::micros", rename = "fault_phase_us")]
    pub fault_phase: Duration,
    /// Within which time everything under way must be over once nothing goes wrong any more.
    #[serde(with = "forms::micros", rename = "liveness_bound_us")]
    pub liveness_bound: Duration,
    /// Changes of the authorities, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AuthorityChange>,
    /// The rule that is left out.
    #[serde(with = "forms::mutant", default, skip_serializing_if = "Option::is_none")]
    pub mutant: Option<Mutant>,
    /// The file that it was read from: it cannot be drawn from its seed.
    #[serde(skip)]
    pub file: Option<String>,
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
            backups: Vec::new(),
            mishaps: Vec::new(),
            patience: Duration::from_secs(20),
            order_us: 10_000,
            follow_us: vec![10_000; authorities * usize::from(shards)],
            fault_phase: Duration::from_secs(4),
            liveness_bound: Duration::from_secs(120),
            changes: Vec::new(),
            mutant: None,
            file: None,
        };
        scenario.draw_behaviours(&mut rng);
        scenario.draw_load(&mut rng);
        scenario.draw_releases(&mut Rng::new(seed, "payment releases", 0));
        let mut border = Rng::new(seed, "payment changes", 0);
        scenario.draw_changes(&mut border);
        let (hosts, phase) = (scenario.hosts(), scenario.fault_phase);
        scenario.schedule = faults::draw(&mut rng, hosts, scenario.endpoints(), phase);
        scenario.draw_crashes_at_borders(&mut border);
        scenario
    }

    /// With this rule left out.
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    /// With as many of this behaviour as are tolerated, and one epoch.
    #[must_use]
    pub fn with_faulty(mut self, behaviour: Behaviour) -> Self {
        self.remove_changes();
        self.behaviours.fill(Behaviour::Honest);
        let tolerated = (self.authorities - 1) / 3;
        self.behaviours[..tolerated].fill(behaviour);
        self
    }

    /// Command that runs it again.
    #[must_use]
    pub fn replay(&self) -> String {
        match &self.file {
            Some(file) => format!("quorate sim --replay {file}"),
            None => {
                let mutant = replay::mutant(self.mutant);
                format!("quorate sim --payments --seed {}{mutant}", self.seed)
            }
        }
    }

    /// Returns `true` if a file is meant to be one of payments, and not of a committee.
    #[must_use]
    pub fn is_file(text: &str) -> bool {
        text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("payers"))
    }

    /// As a file that [`Scenario::from_toml`] reads back: the same run, event for event.
    ///
    /// # Panics
    /// Never: every scenario can be written.
    #[must_use]
    pub fn to_toml(&self) -> String {
        text::write(self)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it is no scenario or its parts do not fit together.
    pub fn from_toml(text: &str) -> Result<Self, TextError> {
        text::read(text, Self::check)
    }

    fn check(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        let hosts = self.hosts();
        let is_payer = |payer: &usize| *payer < self.payers;
        let mut payers = self.wishes.iter().map(|(_, payer)| payer);
        let mut crashing = self.payer_crashes.iter().map(|(_, payer, _)| payer);
        let mut suffering = self.mishaps.iter().map(|(_, payer, ..)| payer);
        let mut saving = self.backups.iter().map(|(_, payer)| payer);
        ensure(self.authorities >= 1 && self.shards >= 1, "there is an authority with a shard")?;
        ensure(self.payers >= 2, "there are two payers, of whom one pays the other")?;
        let authorities = self.all_authorities();
        ensure(self.behaviours.len() == authorities, "behaviours has each authority")?;
        ensure(self.follow_us.len() == hosts, "follow_us has each shard of each authority")?;
        ensure(payers.all(is_payer) && crashing.all(is_payer), "only payers pay and crash")?;
        ensure(suffering.all(is_payer) && saving.all(is_payer), "only payers have books to lose")?;
        let mut thieves = self.crimes.iter().map(|(_, thief)| thief);
        ensure(thieves.all(|thief| *thief < self.thieves), "only thieves commit crimes")?;
        ensure(self.endpoints() <= Links::ENDPOINTS_MAX, "at most 64 endpoints")?;
        let mut faults = self.schedule.iter().map(|(_, fault)| fault);
        let known = |fault: &Fault| fault.host().is_none_or(|host| host < hosts);
        ensure(faults.all(known), "faults befall hosts there are")?;
        self.check_changes()
    }

    /// Number of authorities that do not behave.
    pub(super) fn faulty(&self) -> usize {
        self.behaviours.iter().filter(|behaviour| **behaviour != Behaviour::Honest).count()
    }

    /// Processes of all authorities of any epoch.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.all_authorities() * usize::from(self.shards)
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
        count("changes of authorities", self.changes.len());
        count("lost authorities", self.changes.iter().filter(|one| one.lost.is_some()).count());
        self.mishaps.iter().for_each(|(.., mishap)| count(mishap.name(), 1));
        tried
    }

    pub(super) fn describe(&self) -> String {
        let Self { scheme, shards, behaviours, payers, thieves, .. } = self;
        let epochs = self.epochs();
        format!(
            "authorities {epochs:?} of {shards} shards, {scheme}, {behaviours:?}; {payers} payers, \
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
            self.wishes.push((rng.below(phase_us), rng.index(self.payers)));
        }
        for thief in 0..self.thieves {
            for _ in 0..rng.between(&(6..=20)) {
                // Some after all else: decisions come late.
                self.crimes.push((rng.below(2 * phase_us), thief));
            }
        }
        for _ in 0..rng.perhaps(&(1..=4)) {
            let (at, down) = (rng.below(phase_us), rng.between(&(1_000..=800_000)));
            self.payer_crashes.push((at, rng.index(self.payers), down));
        }
    }

    /// How payers lose their books, and how fast releases go.
    fn draw_releases(&mut self, rng: &mut Rng) {
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        for _ in 0..rng.perhaps(&(1..=3)) {
            // Some when nothing else goes wrong any more, and releases are over.
            let (at, down) = (rng.below(2 * phase_us), rng.between(&(1_000..=800_000)));
            let (payer, mishap) = (rng.index(self.payers), *rng.choose(&Mishap::ALL));
            self.mishaps.push((at, payer, down, mishap));
            self.backups.push((rng.below(at.max(1)), payer));
        }
        self.patience = Duration::from_millis(*rng.choose(&[300, 1_500, 6_000, 20_000]));
        self.order_us = *rng.choose(&[5_000, 50_000, 1_000_000]);
        let slowest = *rng.choose(&[5_000, 100_000, 2_000_000]);
        self.follow_us.fill_with(|| rng.between(&(1_000..=slowest)));
    }
}
