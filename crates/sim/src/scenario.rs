//! Everything that a run depends on, drawn from one seed.

pub mod changes;
pub(crate) mod text;
mod weights;

use self::changes::PlannedChange;
use crate::byzantine::Behaviour;
use crate::faults::{self, Fault, Schedule};
use crate::forms;
use crate::mutants::Mutant;
use crate::network::{Conditions, Cuts};
use crate::oracles::{
    Acknowledged, Agreement, Audit, Availability, Borders, Caps, Departures, ExactlyOnce,
    FairChecks, FalseAccusations, Halting, Oracle, Prefix, Progress, Quorums, Restored, Slots,
    Together, Wiped,
};
use crate::replay;
use quorate_crypto::{Policy, SchemeKind};
use quorate_deterministic::Rng;
use quorate_engine::{Availability as Proof, ProtocolKind, Settings, Truncation};
use quorate_storage::{ExecutorConfig, LogConfig};
use quorate_types::{Time, Weights, as_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Durations of the work beside the machine, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Durations {
    /// A sync of the log.
    #[serde(with = "forms::range")]
    pub sync_us: RangeInclusive<u64>,
    /// Time to execute a block.
    #[serde(with = "forms::range")]
    pub execute_us: RangeInclusive<u64>,
    /// Time to combine shares.
    #[serde(with = "forms::range")]
    pub combine_us: RangeInclusive<u64>,
    /// Time to read back.
    #[serde(with = "forms::range")]
    pub read_us: RangeInclusive<u64>,
    /// Time to check a signature or a certificate that arrives. Where it is none, checks are made
    /// at once and nothing is held against whoever lies, so that its later lies are heard too.
    #[serde(with = "forms::range", default = "no_time")]
    pub check_us: RangeInclusive<u64>,
}

fn no_time() -> RangeInclusive<u64> {
    0..=0
}

fn is_none(micros: &u64) -> bool {
    *micros == 0
}

impl Durations {
    /// Returns `true` if checks take time.
    #[must_use]
    pub fn prices_checks(&self) -> bool {
        *self.check_us.end() > 0
    }
}

/// Factor by which the fault phase is longer than what its faults are drawn for.
const SPREAD: u32 = 6;

/// Time for which links are bad before they are fair for as long.
const SPELL_US: RangeInclusive<u64> = 500_000..=4_000_000;

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// All draws during the run come from it.
    #[serde(with = "as_text")]
    pub seed: u64,
    /// Members of the committee.
    pub replicas: usize,
    /// Number of learners beside them.
    pub learners: usize,
    /// Weight of each member's vote; the tolerated faults follow from it.
    #[serde(with = "as_text")]
    pub weights: Weights,
    /// The voting scheme; identities are always Ed25519.
    #[serde(with = "as_text")]
    pub scheme: SchemeKind,
    /// The settings of all replicas.
    pub settings: Settings,
    /// The log of all replicas.
    pub log: LogConfig,
    /// The executor of all replicas.
    pub executor: ExecutorConfig,
    /// Number of clients that submit operations.
    pub clients: usize,
    /// Operations that they submit while there are faults.
    pub operations: usize,
    /// Conditions of the links while there are faults.
    pub conditions: Conditions,
    /// Links that are cut for ever.
    #[serde(skip_serializing_if = "Cuts::is_none")]
    pub cuts: Cuts,
    /// Durations of the hosts' own work.
    pub durations: Durations,
    /// Microseconds on each member's clock to a second.
    pub clock_rates: Vec<u64>,
    /// Longest pace that hosts set for leaders, now and then another, in microseconds; 0 where they
    /// set none.
    #[serde(skip_serializing_if = "is_none")]
    pub pace_us_max: u64,
    /// Behaviour of each member, by index.
    pub behaviours: Vec<Behaviour>,
    /// Faults with their times.
    #[serde(with = "text::schedule")]
    pub schedule: Schedule,
    /// Changes of committee, in the order in which they are brought.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PlannedChange>,
    /// Time for which faults go on.
    #[serde(with = "forms::micros", rename = "fault_phase_us")]
    pub fault_phase: Duration,
    /// Time after them in which everything must be done.
    #[serde(with = "forms::micros", rename = "liveness_bound_us")]
    pub liveness_bound: Duration,
    /// More members are faulty than is tolerated, see [`Scenario::is_beyond_tolerance`].
    pub excessive: bool,
    /// A rule that is left out.
    #[serde(with = "forms::mutant", skip_serializing_if = "Option::is_none")]
    pub mutant: Option<Mutant>,
    /// Arguments of the command line, besides the seed, that draw the same.
    #[serde(skip)]
    pub options: Vec<String>,
    /// The file that it was read from: it cannot be drawn from its seed.
    #[serde(skip)]
    pub file: Option<String>,
}

impl Scenario {
    /// A scenario in which nothing goes wrong.
    #[must_use]
    pub fn calm(seed: u64, replicas: usize) -> Self {
        Self {
            seed,
            replicas,
            learners: 0,
            weights: Weights::equal(replicas),
            scheme: SchemeKind::Stub,
            settings: Settings {
                timeout_ms: 400,
                batch_delay_ms: 2,
                // Clocks that run a tenth fast or slow for a minute are seconds apart.
                clock_drift_max_ms: 60_000,
                leader_reputation: false,
                ..Settings::default()
            },
            log: LogConfig { segment_bytes: 64 * 1024, ..LogConfig::default() },
            executor: ExecutorConfig { durable_every: 4, ..ExecutorConfig::default() },
            clients: 2,
            operations: 40,
            conditions: Conditions {
                base_us: 500..=5_000,
                jitter_us: 500,
                loss_percent: 0,
                duplicate_percent: 0,
                reorder_percent: 0,
                corrupt_permille: 0,
                spell_us: 0,
            },
            cuts: Cuts::default(),
            durations: Durations {
                sync_us: 50..=2_000,
                execute_us: 20..=1_000,
                combine_us: 10..=500,
                read_us: 20..=1_000,
                check_us: no_time(),
            },
            clock_rates: vec![1_000_000; replicas],
            pace_us_max: 0,
            behaviours: vec![Behaviour::Honest; replicas],
            schedule: Schedule::new(),
            changes: Vec::new(),
            fault_phase: Duration::from_secs(1),
            liveness_bound: Duration::from_secs(60),
            excessive: false,
            mutant: None,
            options: Vec::new(),
            file: None,
        }
    }

    /// The scenario of a seed: each fault with a chance of one half. In a quarter of the seeds
    /// members weigh differently.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let replicas = Self::drawn_replicas(&mut Rng::new(seed, "scenario", 0));
        let weights = weights::draw(&mut Rng::new(seed, "weights", 0), replicas);
        let scenario = Self::draw(seed, weights);
        if scenario.weights.are_equal() { scenario } else { scenario.noting_weights() }
    }

    /// The scenario of a seed over a committee with these weights, whatever the seed would draw.
    #[must_use]
    pub fn weighted(seed: u64, weights: Weights) -> Self {
        Self::draw(seed, weights).noting_weights()
    }

    fn drawn_replicas(rng: &mut Rng) -> usize {
        *rng.choose(&[4, 4, 4, 4, 5, 6, 7, 7, 8, 10, 13])
    }

    fn draw(seed: u64, weights: Weights) -> Self {
        let mut rng = Rng::new(seed, "scenario", 0);
        // Drawn again, so that the draws after it are the same whoever chose the weights.
        let _ = Self::drawn_replicas(&mut rng);
        let replicas = weights.members();
        let mut scenario = Self::calm(seed, replicas);
        scenario.weights = weights;
        scenario.scheme = if rng.one_in(64) { SchemeKind::Ed25519 } else { SchemeKind::Stub };
        scenario.fault_phase = rng.span(&(4_000_000..=10_000_000));
        scenario.operations = usize::try_from(rng.between(&(400..=800))).expect("few");
        scenario.clients = usize::try_from(rng.between(&(1..=4))).expect("few");
        scenario.draw_settings(&mut rng);
        // From a stream of its own, so that all other draws are as they were without it.
        if !scenario.settings.inline_bodies && Rng::new(seed, "availability", 0).one_in(3) {
            scenario.settings.availability = Proof::Certified;
        }
        scenario.settings.execution_certificates = Rng::new(seed, "certificates", 0).one_in(3);
        scenario.draw_checks();
        scenario.draw_paces();
        scenario.draw_heartbeat();
        scenario.draw_conditions(&mut rng);
        scenario.draw_behaviours(&mut rng);
        if rng.coin() {
            let rates = (0..replicas).map(|_| rng.between(&(900_000..=1_100_000)));
            scenario.clock_rates = rates.collect();
        }
        if rng.one_in(4) {
            scenario.draw_storm(&mut rng);
        }
        let hosts = scenario.hosts();
        let endpoints = hosts + scenario.clients;
        scenario.schedule.extend(faults::draw(&mut rng, hosts, endpoints, scenario.fault_phase));
        let mut retention = Rng::new(seed, "retention", 0);
        if retention.one_in(4) {
            scenario.draw_retention(&mut retention);
        }
        if Rng::new(seed, "too many", 0).one_in(10) {
            scenario = scenario.with_too_many_faulty();
        } else {
            scenario.draw_lost_disk();
        }
        scenario.draw_forgetting();
        scenario.draw_suspensions();
        scenario.schedule.sort_by_key(|(at, _)| *at);
        scenario.spread_out();
        scenario
    }

    /// In half of the scenarios checks take time, up to what a pairing takes.
    fn draw_checks(&mut self) {
        let mut rng = Rng::new(self.seed, "checks", 0);
        if rng.coin() {
            self.durations.check_us = 10..=*rng.choose(&[50, 200, 1_000, 2_000]);
        }
    }

    /// In a quarter of the scenarios hosts set paces, up to what no view could bear.
    fn draw_paces(&mut self) {
        let mut rng = Rng::new(self.seed, "paces", 0);
        if rng.one_in(4) {
            self.pace_us_max = *rng.choose(&[2_000, 20_000, 1_000_000]);
        }
    }

    /// In one of eight scenarios the committee owes heights though there is nothing to order.
    fn draw_heartbeat(&mut self) {
        let mut rng = Rng::new(self.seed, "heartbeat", 0);
        if rng.one_in(8) {
            self.settings.heartbeat_ms = *rng.choose(&[200, 1_000]);
        }
    }

    /// In one of eight scenarios machines are suspended, for longer than members' clocks may be
    /// apart; these run as they should otherwise.
    fn draw_suspensions(&mut self) {
        let mut rng = Rng::new(self.seed, "suspensions", 0);
        if !rng.one_in(8) {
            return;
        }
        let (hosts, phase) = (self.hosts(), self.fault_phase);
        faults::draw_suspensions(&mut rng, &mut self.schedule, hosts, phase);
        self.schedule.retain(|(_, fault)| !matches!(fault, Fault::ClockStep { .. }));
        self.clock_rates.fill(1_000_000);
        self.settings.clock_drift_max_ms = 500;
    }

    /// As many faults over a longer time, so that the committee decides between them; and links
    /// that are bad in spells. Fewer operations do: most heights hold one bundle.
    fn spread_out(&mut self) {
        self.fault_phase *= SPREAD;
        self.schedule.iter_mut().for_each(|(at, _)| at.0 *= u64::from(SPREAD));
        self.operations /= 2;
        self.conditions.spell_us = Rng::new(self.seed, "spells", 0).between(&SPELL_US);
    }

    /// With more members faulty than is tolerated: as many as are, and one more.
    #[must_use]
    fn with_too_many_faulty(mut self) -> Self {
        let mut rng = Rng::new(self.seed, "one too many", 0);
        while self.faulty_weight() <= self.weights.faulty_max() {
            let honest: Vec<usize> = (0..self.replicas)
                .filter(|member| self.behaviours[*member] == Behaviour::Honest)
                .collect();
            let member = *rng.choose(&honest);
            // No second machines: schedules know the hosts by now.
            let behaviour = *rng.choose(&Behaviour::FAULTY);
            let twin = behaviour == Behaviour::Twin;
            self.behaviours[member] = if twin { Behaviour::DoubleVote } else { behaviour };
        }
        self.excessive = true;
        self.liveness_bound = Duration::from_secs(5);
        self
    }

    /// In one of eight scenarios a member loses its whole disk, if that is still tolerated.
    fn draw_lost_disk(&mut self) {
        let mut rng = Rng::new(self.seed, "lost disk", 0);
        if !rng.one_in(8) {
            return;
        }
        let left = self.weights.faulty_max().saturating_sub(self.faulty_weight());
        let may_fail: Vec<usize> = (0..self.replicas)
            .filter(|member| self.behaviours[*member] == Behaviour::Honest)
            .filter(|member| self.weights.of(*member) <= left)
            .collect();
        if may_fail.is_empty() {
            return;
        }
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        let (host, at) = (*rng.choose(&may_fail), Time(rng.below(phase_us)));
        let down = rng.span(&(1_000..=800_000));
        self.schedule.push((at, Fault::Wipe { host, down }));
    }

    /// Restarts now and then those that forget in a restart.
    fn draw_forgetting(&mut self) {
        let mut rng = Rng::new(self.seed, "forgetting", 0);
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        for host in 0..self.replicas {
            if self.behaviours[host] == Behaviour::Amnesiac {
                for _ in 0..rng.between(&(1..=4)) {
                    let at = Time(rng.below(phase_us));
                    let down = rng.span(&(1_000..=50_000));
                    self.schedule.push((at, Fault::Crash { host, down }));
                }
            }
        }
    }

    /// With next to no log kept for others, frequent snapshots, replicas that are away for long,
    /// and one whose bodies are lost.
    #[must_use]
    pub fn with_retention(mut self) -> Self {
        self.draw_retention(&mut Rng::new(self.seed, "little is kept", 0));
        self.schedule.sort_by_key(|(at, _)| *at);
        self.options.push("--retention".to_owned());
        self
    }

    /// Some seconds long, with half of the load, the same faults in it and links that are always
    /// bad: for tests that run many.
    #[must_use]
    pub fn short(mut self) -> Self {
        const PARTS: u32 = 4 * SPREAD;
        self.fault_phase = Duration::from_micros(
            u64::try_from((self.fault_phase / PARTS).as_micros()).expect("seconds"),
        );
        self.operations /= 2;
        self.conditions.spell_us = 0;
        self.schedule.iter_mut().for_each(|(at, _)| at.0 /= u64::from(PARTS));
        self.options.push("--short".to_owned());
        self
    }

    /// With the committee running this protocol. Where it counts heads, weights that differ are
    /// drawn again; where redundancy is of use, some committees have it, and where it orders in
    /// slots, others than two are under way at once. Before any other change.
    #[must_use]
    pub fn running(self, protocol: ProtocolKind) -> Self {
        let weights = weights::fitting(protocol, self.seed, &self.weights);
        let redrawn = weights != self.weights;
        let mut scenario = if redrawn { Self::draw(self.seed, weights) } else { self };
        scenario.settings.protocol = protocol;
        let takes_shares = protocol.check_scheme(SchemeKind::BlsThreshold) == Ok(());
        if takes_shares && Rng::new(scenario.seed, "threshold keys", 0).one_in(3) {
            scenario.scheme = SchemeKind::BlsThreshold;
        }
        if protocol.windowed_rules().is_some() {
            let mut rng = Rng::new(scenario.seed, "slots under way", 0);
            scenario.settings.concurrent_slots = *rng.choose(&[1, 2, 2, 8]);
        }
        if !scenario.excessive {
            scenario.liveness_bound = scenario.usual_bound();
        }
        scenario
    }

    /// A minute. A member that weighs nearly a third leads nearly each third view, and of a round
    /// of some hundred views few have an honest leader before and after: chained HotStuff, which
    /// decides after three certificates in a row, was seen to wait for 74 s then.
    fn usual_bound(&self) -> Duration {
        let are_equal = self.weights == Weights::equal(self.replicas);
        let is_rare = self.settings.protocol == ProtocolKind::HotStuff && !are_equal;
        Duration::from_secs(if is_rare { 300 } else { 60 })
    }

    /// With leaders passed over whose last turns came to nothing.
    #[must_use]
    pub fn with_leader_reputation(mut self) -> Self {
        self.settings.leader_reputation = true;
        self.options.push("--leader-reputation".to_owned());
        self
    }

    /// With the settings of ablation studies drawn as well: turns of several views, small blocks,
    /// requests ordered twice, chains that travel.
    #[must_use]
    pub fn with_ablations(mut self) -> Self {
        let mut rng = Rng::new(self.seed, "ablations", 0);
        let settings = &mut self.settings;
        settings.leader_tenure = rng.between(&(1..=3));
        settings.comparison.block_operations_max = *rng.choose(&[0, 1, 5, 50]);
        if settings.comparison.block_operations_max == 1 {
            // Each is a height of its own, with two syncs of a slow disk.
            self.operations = self.operations.min(100);
        }
        settings.comparison.filter_requests = rng.coin();
        settings.shorten_failed_turns = rng.coin();
        settings.timeout_growth = *rng.choose(&[25, 50, 100]);
        if rng.coin() {
            settings.inline_bodies = true;
            settings.availability = Proof::Stored;
            settings.comparison.truncation = *rng.choose(&[Truncation::Heights, Truncation::Off]);
        }
        self.options.push("--ablations".to_owned());
        self
    }

    /// With a rule left out.
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    /// With twins in place of whatever Byzantine members there are: as many as are tolerated.
    #[must_use]
    pub fn with_twins(self) -> Self {
        let mut scenario = self.with_faulty(Behaviour::Twin);
        scenario.options.push("--twins".to_owned());
        scenario
    }

    /// With this behaviour in place of whatever Byzantine members there are: as many as are
    /// tolerated.
    #[must_use]
    pub fn with_faulty(mut self, behaviour: Behaviour) -> Self {
        self.behaviours = weights::fill_budget(&self.weights, behaviour);
        // Members that lose what they promised would be one too many.
        self.schedule.retain(|(_, fault)| !fault.loses_promises());
        self.excessive = false;
        self.liveness_bound = self.usual_bound();
        // The second machines of twins that are no more.
        let hosts = self.hosts();
        self.schedule.retain(|(_, fault)| fault.host().is_none_or(|host| host < hosts));
        self
    }

    /// As [`Scenario::with_faulty`], as the command line has it.
    #[must_use]
    pub fn lying(self, behaviour: Behaviour) -> Self {
        let mut scenario = self.with_faulty(behaviour);
        scenario.options.push(format!("--behaviour {behaviour}"));
        scenario
    }

    /// With slow disks and power cuts of the whole committee on top of whatever else goes wrong.
    #[must_use]
    pub fn with_storm(mut self) -> Self {
        self.draw_storm(&mut Rng::new(self.seed, "storm", 0));
        self.schedule.sort_by_key(|(at, _)| *at);
        self.options.push("--storm".to_owned());
        self
    }

    /// With a learner that comes late, goes now and then, and may lose its disk.
    #[must_use]
    pub fn with_learner(mut self) -> Self {
        let mut rng = Rng::new(self.seed, "learner", 0);
        let host = self.hosts();
        self.learners = 1;
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        let late = Fault::Crash { host, down: rng.span(&(0..=phase_us / 2)) };
        self.schedule.push((Time(20_000), late));
        for _ in 0..rng.below(3) {
            let (at, down) = (Time(rng.below(phase_us)), rng.span(&(1_000..=800_000)));
            let loses = rng.one_in(3);
            let fault =
                if loses { Fault::Wipe { host, down } } else { Fault::Crash { host, down } };
            self.schedule.push((at, fault));
        }
        self.schedule.sort_by_key(|(at, _)| *at);
        self.options.push("--learner".to_owned());
        self
    }

    /// With changes of committee in a third of the seeds, unless more members are faulty than is
    /// tolerated: other members, indices, weights, protocols and settings. After any other change.
    #[must_use]
    pub fn with_changes(mut self) -> Self {
        let mut rng = Rng::new(self.seed, "changes", 0);
        if rng.one_in(3) && !self.excessive {
            self.learners = self.learners.max(usize::from(rng.coin()));
            self.changes = changes::draw(&self, &mut rng);
            // Epochs begin after the faults too, and each takes some views.
            self.liveness_bound = self.liveness_bound.max(Duration::from_secs(300));
        }
        self.options.push("--changes".to_owned());
        self
    }

    /// The weights are part of the command, so that whoever reads it sees them.
    fn noting_weights(mut self) -> Self {
        self.options.push(format!("--weights {}", self.weights));
        self
    }

    /// The command that runs it again.
    #[must_use]
    pub fn replay(&self) -> String {
        if let Some(file) = &self.file {
            return format!("quorate sim --replay {file}");
        }
        let options = self.options.iter().map(|option| format!(" {option}"));
        let (rest, mutant) = (options.collect::<String>(), replay::mutant(self.mutant));
        let protocol = replay::protocol(self.settings.protocol);
        format!("quorate sim --seed {}{protocol}{rest}{mutant}", self.seed)
    }

    /// Oracles that judge its whole run, over all epochs.
    pub(crate) fn oracles(&self) -> Vec<Box<dyn Oracle>> {
        let sizes = self.changes.iter().map(|change| change.members.len());
        let members = sizes.chain([self.replicas]).max().expect("the first committee");
        let caps = Caps::new(&self.settings, members);
        if self.is_beyond_tolerance() {
            return vec![Box::new(Halting::default()), Box::new(Wiped::default()), Box::new(caps)];
        }
        vec![
            Box::new(Wiped::default()),
            Box::new(FalseAccusations::default()),
            Box::new(Restored::default()),
            Box::new(Borders::default()),
            Box::new(Agreement::default()),
            Box::new(Prefix::default()),
            Box::new(ExactlyOnce::default()),
            Box::new(caps),
            Box::new(FairChecks::new(self.liars())),
            Box::new(Acknowledged::default()),
            Box::new(Progress::default()),
        ]
    }

    /// Oracles that judge what members of one epoch say, by their indices in it: these are correct,
    /// and weigh so much.
    pub(crate) fn oracles_of_epoch(
        &self,
        settings: &Settings,
        weights: &Weights,
        correct: Vec<bool>,
    ) -> Vec<Box<dyn Oracle>> {
        let redundant = usize::try_from(weights.redundant_members()).expect("few");
        let rules = settings.protocol.windowed_rules();
        let members = weights.members();
        let slots = Slots::new(members, redundant, rules.is_some_and(|rules| rules.fast_path));
        if self.is_beyond_tolerance() {
            return vec![Box::new(Audit::of_members()), Box::new(slots.of_members())];
        }
        vec![
            Box::new(Departures::new(correct)),
            Box::new(Together::new(members)),
            Box::new(Audit::default()),
            Box::new(slots),
            Box::new(Quorums::new(weights.each())),
            Box::new(Availability::new(settings.availability)),
        ]
    }

    /// Total weight of the members that do not behave, or lose what they promised to keep.
    #[must_use]
    pub fn faulty_weight(&self) -> u64 {
        let members: Vec<usize> = (0..self.replicas).collect();
        self.faulty_weight_of(&members, &self.weights)
    }

    /// The same, of a committee of these hosts.
    pub(crate) fn faulty_weight_of(&self, members: &[usize], weights: &Weights) -> u64 {
        let loses = |host: usize| {
            let own = |(_, fault): &&(Time, Fault)| fault.host() == Some(host);
            self.schedule.iter().filter(own).any(|(_, fault)| fault.loses_promises())
        };
        let is_faulty = |host: usize| self.behaviour(host) != Behaviour::Honest || loses(host);
        let places = members.iter().enumerate().filter(|(_, host)| is_faulty(**host));
        places.map(|(place, _)| weights.of(place)).sum()
    }

    /// Behaviour of a host: learners are honest.
    pub(crate) fn behaviour(&self, host: usize) -> Behaviour {
        self.behaviours.get(host).copied().unwrap_or_default()
    }

    /// Number of members that are not correct.
    fn liars(&self) -> u32 {
        let liars = self.correct().iter().filter(|is_correct| !**is_correct).count();
        u32::try_from(liars).expect("few")
    }

    fn correct(&self) -> Vec<bool> {
        self.behaviours.iter().map(|behaviour| *behaviour == Behaviour::Honest).collect()
    }

    /// Returns `true` if more is wrong with its members than is tolerated: neither agreement nor
    /// progress is promised, and correct members must still not contradict themselves, panic, nor
    /// go on after halting.
    #[must_use]
    pub fn is_beyond_tolerance(&self) -> bool {
        self.excessive
    }

    /// Kinds of faults and of behaviours in it, and how many of each.
    #[must_use]
    pub fn tried(&self) -> BTreeMap<&'static str, u64> {
        let mut tried = BTreeMap::new();
        let mut count = |kind| *tried.entry(kind).or_default() += 1;
        self.schedule.iter().for_each(|(_, fault)| count(fault.kind()));
        let behaviours = self.behaviours.iter().filter(|b| **b != Behaviour::Honest);
        behaviours.for_each(|behaviour| count(behaviour.name()));
        self.changes.iter().for_each(|_| count("changes of committee"));
        if self.excessive {
            count("scenarios beyond tolerance");
        }
        let Conditions { loss_percent, duplicate_percent, reorder_percent, .. } = self.conditions;
        let conditions = [
            ("lossy networks", loss_percent),
            ("duplicating networks", duplicate_percent),
            ("reordering networks", reorder_percent),
            ("corrupting networks", self.conditions.corrupt_permille),
        ];
        conditions.iter().filter(|(_, of)| *of > 0).for_each(|(kind, _)| count(kind));
        if self.pace_us_max > 0 {
            count("hosts that set paces");
        }
        tried
    }

    /// Machines of members and learners: the members', the second ones of twins, the learners'.
    pub(crate) fn hosts(&self) -> usize {
        self.replicas + self.twins() + self.learners
    }

    pub(crate) fn twins(&self) -> usize {
        self.behaviours.iter().filter(|behaviour| **behaviour == Behaviour::Twin).count()
    }

    fn draw_settings(&mut self, rng: &mut Rng) {
        let settings = &mut self.settings;
        settings.timeout_ms = rng.between(&(100..=600));
        settings.batch_delay_ms = rng.between(&(0..=10));
        settings.batch_bytes = *rng.choose(&[1_024, 4_096, 500_000]);
        settings.vote_wait_ms = rng.perhaps(&(1..=20));
        settings.inline_bodies = rng.one_in(4);
        settings.verify = *rng.choose(&[Policy::Each, Policy::Batch, Policy::Aggregate]);
        self.executor.durable_every = rng.between(&(1..=12));
        // Every start reads whole segments.
        self.log.segment_bytes = *rng.choose(&[16 * 1024, 64 * 1024, 128 * 1024]);
    }

    fn draw_conditions(&mut self, rng: &mut Rng) {
        let conditions = &mut self.conditions;
        conditions.base_us = 100..=*rng.choose(&[1_000, 1_000, 5_000, 10_000, 50_000]);
        conditions.jitter_us = *rng.choose(&[0, 500, 5_000, 20_000]);
        conditions.loss_percent = rng.perhaps(&(1..=30));
        conditions.duplicate_percent = rng.perhaps(&(1..=50));
        conditions.reorder_percent = rng.perhaps(&(1..=30));
        conditions.corrupt_permille = rng.perhaps(&(1..=20));
    }

    /// Slow disks and an unreliable mains: what was said and not yet durable is lost, again and
    /// again.
    fn draw_storm(&mut self, rng: &mut Rng) {
        self.durations.sync_us = 1_000..=rng.between(&(5_000..=80_000));
        self.settings.timeout_ms = rng.between(&(200..=600));
        self.executor.durable_every = rng.between(&(1..=2));
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        for _ in 0..rng.between(&(2..=8)) {
            let at = Time(rng.below(phase_us));
            let down = rng.span(&(1_000..=50_000));
            self.schedule.push((at, Fault::PowerCut { down }));
        }
    }

    /// Little is kept: whoever was away needs a snapshot. Lost bodies count as a fault of their
    /// owner, who promised to keep them: it and the Byzantine members together are no more than are
    /// tolerated.
    fn draw_retention(&mut self, rng: &mut Rng) {
        // Certified bodies and next to nothing kept do not go together (ADR 11): what one honest
        // member stored and gave up after executing it, nobody can fetch, and nobody else vouches
        // for its snapshot.
        self.settings.availability = Proof::Stored;
        self.log.segment_bytes = *rng.choose(&[2_048, 4_096, 16 * 1024]);
        self.log.retention_bytes = 2 * self.log.segment_bytes;
        self.settings.snapshot_every = rng.between(&(4..=12));
        self.executor.durable_every = rng.between(&(1..=4));
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        let honest: Vec<usize> = (0..self.replicas)
            .filter(|member| self.behaviours[*member] == Behaviour::Honest)
            .collect();
        let left = self.weights.faulty_max().saturating_sub(self.faulty_weight());
        let fits = |host: &usize| self.weights.of(*host) <= left;
        let may_fail: Vec<usize> = honest.iter().copied().filter(fits).collect();
        if !may_fail.is_empty() {
            let host = *rng.choose(&may_fail);
            for _ in 0..rng.between(&(1..=2)) {
                let at = Time(rng.below(phase_us));
                let down = rng.span(&(1_000..=400_000));
                self.schedule.push((at, Fault::WipeBodies { host, down }));
            }
        }
        let host = *rng.choose(&honest);
        let at = Time(rng.below(phase_us / 4));
        let down = rng.span(&(phase_us / 2..=phase_us));
        self.schedule.push((at, Fault::Crash { host, down }));
        // Lost bodies are asked for again and again, of everybody, before a snapshot is.
        self.liveness_bound = self.liveness_bound.max(Duration::from_secs(300));
        for member in 0..self.replicas {
            let lies = !self.behaviours[member].says_what_its_machine_says();
            if lies && rng.coin() {
                self.behaviours[member] = Behaviour::BadServer;
            }
        }
    }

    fn draw_behaviours(&mut self, rng: &mut Rng) {
        let tolerated = (self.replicas as u64 - 1) / 3;
        for _ in 0..rng.perhaps(&(1..=tolerated)) {
            let member = rng.index(self.replicas);
            self.behaviours[member] = *rng.choose(&Behaviour::FAULTY);
        }
        // From a stream of its own, so that all other draws are as they were without it.
        if Rng::new(self.seed, "misers", 0).coin() {
            let slow = self.behaviours.iter_mut().filter(|it| **it == Behaviour::SlowLeader);
            slow.for_each(|behaviour| *behaviour = Behaviour::MiserlyLeader);
        }
        if !self.weights.are_equal() {
            let mut rng = Rng::new(self.seed, "weighted faults", 0);
            weights::keep_budget(&self.weights, &mut self.behaviours, &mut rng);
        }
    }
}

#[cfg(test)]
mod tests;
