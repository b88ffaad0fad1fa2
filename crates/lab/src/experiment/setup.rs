//! Everything that decides one point of an experiment.

use crate::ServiceKind;
use crate::load::{SendTo, Shape};
use quorate_consensus::ProtocolKind;
use quorate_crypto::SchemeKind;
use quorate_engine::Settings;
use quorate_ledger::evm::mix;
use quorate_model::Profile;
use quorate_payments::PayScheme;
use quorate_storage::Durability;
use quorate_types::{Body, ReplicaId, Weights, WeightsError, as_text};
use quorate_wan::{Emulation, EmulationError, Topology};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Kind of runner that measures a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerKind {
    /// A committee in virtual time, every operation at its price.
    #[default]
    Simulated,
    /// A committee of real processes on this machine.
    Processes,
    /// Certificates alone, made and checked on this machine.
    Certificates,
    /// The transport alone: messages between members of this machine, without replicas.
    Transport,
    /// Votes for payments and their certificates alone, made and checked on this machine.
    Votes,
    /// Payment authorities: real processes on this machine.
    Payments,
    /// The set of what an authority locked, in memory.
    SpentSet,
}

/// Number of members that are not in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Absent {
    /// This many of them.
    Count(u16),
    /// As the word says.
    Word(AbsentWord),
}

/// Number in words; see [`Absent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbsentWord {
    /// As many as the smallest quorum leaves out.
    Quorum,
}

/// Everything that decides one point. In a file its fields stand beside one another: `base` gives
/// values for all points, a preset and the matrix override them. All of it is in the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Kind of runner that measures it.
    #[serde(rename = "how")]
    pub runner: RunnerKind,
    /// Members of the committee, 1 to 1,000.
    pub validators: u16,
    /// Number of them beyond what faults ask for: `c` of `n = 3f+2c+1`. Committees.
    pub redundancy: u16,
    /// The voting scheme: `ed25519`, `bls`, or `bls-threshold` where the protocol takes it.
    #[serde(with = "as_text")]
    pub scheme: SchemeKind,
    /// AWS regions, given to the members in turn; none for one local network.
    pub regions: Vec<String>,
    /// Without regions: the one-way delay between any two members, in milliseconds.
    pub delay_ms: u64,
    /// Megabits a second on each link between two hosts; 0 for no limit.
    pub bandwidth_mbit: u64,
    /// `true` if delays vary as they were measured to.
    pub jitter: bool,
    /// Operations offered per second, by all clients together.
    pub rate: u64,
    /// Moments at which they are offered: `fixed`, `poisson`, or, simulated, `closed`: each of
    /// `sessions` clients sends a request of `request_operations`, and the next one when it is
    /// answered; `rate` means nothing then.
    pub load: Shape,
    /// Operations of a request in a closed loop.
    pub request_operations: u16,
    /// Bytes of an operation.
    pub tx_bytes: usize,
    /// Failure that a vote survives: of the machine (`fsync`) or of the process (`os`).
    pub durability: Durability,
    /// Service that is replicated: `log`, `noop`, `kv` or, simulated, `evm`. A simulated state is
    /// always that of `noop`, and costs what `kv` or `evm` would where that is named.
    #[serde(with = "as_text")]
    pub service: ServiceKind,
    /// Keys that are written, in random order, with the key-value store. Real processes.
    pub keys: u64,
    /// `true` if every key is put once before the load, in batches. Real processes with the
    /// key-value store.
    pub fill: bool,
    /// Kinds of transactions with the EVM ledger: `mixed` or `transfers`. Real processes.
    #[serde(with = "as_text")]
    pub mix: mix::Shape,
    /// `true` if the highest rate that is kept up with is searched for, from `rate` on, and
    /// measured. Real processes.
    pub find_max: bool,
    /// `true` if a validator is killed after the load and its start is timed. Real processes.
    pub time_restart: bool,
    /// `true` if what the machine could do at most is measured first. Real processes.
    pub bounds: bool,
    /// The last so many members crash.
    pub crashed: u16,
    /// `true` if those who crash are spread over the committee instead, counted from the last.
    /// Simulated.
    pub crashed_apart: bool,
    /// `true` if the leader of the first view crashes too. Simulated.
    pub leader_crashes: bool,
    /// Moment at which they do, in seconds into the measured window; simulated ones may before it,
    /// down to minus the warm-up.
    pub crash_at_s: f64,
    /// Seconds of load before those that count.
    pub warmup_s: u64,
    /// Length of the measured window, in seconds.
    pub duration_s: u64,
    /// Validators that get a request: `one`, and the next when it is silent; `all` at once; or,
    /// simulated, first the `leader` of the first view.
    pub send_to: SendTo,
    /// Most seconds to wait after the load for late answers. Real processes, and the transport.
    pub drain_s: u64,
    /// `true` if the result keeps latencies over time and by percentile ([`super::Kept`]), for heat
    /// maps and cumulative figures. Committees and the transport.
    pub keep_latencies: bool,
    /// Client sessions; 0 lets the rate decide. A session sends at most 64 requests before the
    /// first is answered, and what waits then shares a request: many sessions mean small requests.
    /// Committees.
    pub sessions: u64,
    /// Time that a client waits for operations to share a request, in milliseconds.
    pub bundle_delay_ms: u64,
    /// The price list of a simulated point: the name of one that comes along, or a file's name.
    pub prices: String,
    /// Speed of a simulated core, as a share of the price list's: 0.01 to 10. An instance without
    /// CPU credits has less than 1.
    pub core_speed: f64,
    /// Behaviour of simulated validators: `quorate`, or `reference`: as the implementation behind
    /// paper 000 does, whatever the settings say of batches, timeouts, checks, keys and durability
    /// ([`quorate_model::Scene::as_reference`]).
    pub profile: Profile,
    /// Cores of a simulated host.
    pub cores: u16,
    /// Megabits a second that a simulated host sends; 0 for no limit.
    pub uplink_mbit: u64,
    /// Megabits a second that a simulated host receives; 0 for no limit.
    pub downlink_mbit: u64,
    /// Packets lost between simulated hosts, of a million.
    pub packet_loss_ppm: u64,
    /// `true` if simulated connections begin as wide as their receivers let them, and not in slow
    /// start: a point needs a shorter warm-up.
    pub warm_connections: bool,
    /// `true` if a simulated point's window is as long as asked for even while its figures are in
    /// doubt: for what was measured like that, whatever it was.
    pub fixed_window: bool,
    /// Milliseconds in which a simulated load grows to its rate at the beginning; 0 for all of it
    /// at once.
    pub ramp_ms: u64,
    /// Milliseconds of the offered rate that may be under way before a simulated point is given up
    /// as more than the committee takes; 0 for any number.
    pub give_up_ms: u64,
    /// Validators that share a simulated host.
    pub validators_per_host: u16,
    /// Microseconds within which everything that reaches a simulated validator is handled together,
    /// which is less exact and quicker with hundreds of them; 0 for each by itself.
    pub take_up_us: u64,
    /// `true` if a simulated point makes and checks real signatures, instead of stand-ins at a
    /// price.
    pub real_signatures: bool,
    /// Members that are not in a certificate: a number, or `quorum` for as many as the smallest
    /// quorum leaves out. Certificates only.
    pub absent: Absent,
    /// `true` if a certificate carries its signers' keys instead of a bitmap. Certificates only.
    pub keys_inside: bool,
    /// Time for which each operation on certificates is repeated, in milliseconds.
    pub measure_ms: u64,
    /// Commands in a message, each of `tx_bytes`; `rate` is that of messages. The transport only.
    pub message_commands: u64,
    /// Voting scheme of payment authorities: `plain`, `merkle`, `bls` or `bls-threshold`. Votes and
    /// payments.
    pub pay_scheme: PayScheme,
    /// `true` for all authorities at their highest rate, and then at twice that; else for one of
    /// them by itself, and then all at half of what they may come to. Payments only.
    pub overload: bool,
    /// Processes that each payment authority shares its payers among. Payments only.
    pub shards: u16,
    /// Transactions under one signature in a Merkle tree of votes. Votes only.
    pub leaves: u32,
    /// Threads that insert. The spent set only.
    pub threads: u16,
    /// Decides every draw. Repeats count up from it.
    pub seed: u64,
    /// The replicas' settings, by their names in a validator's configuration.
    #[serde(flatten)]
    pub settings: Settings,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            runner: RunnerKind::default(),
            validators: 4,
            redundancy: 0,
            scheme: SchemeKind::Ed25519,
            regions: Vec::new(),
            delay_ms: 0,
            bandwidth_mbit: 0,
            jitter: true,
            rate: 1_000,
            load: Shape::Fixed,
            request_operations: 1,
            tx_bytes: 512,
            durability: Durability::Fsync,
            service: ServiceKind::Log,
            keys: 100_000,
            fill: false,
            mix: mix::Shape::default(),
            find_max: false,
            time_restart: false,
            bounds: false,
            crashed: 0,
            crashed_apart: false,
            leader_crashes: false,
            crash_at_s: 0.0,
            warmup_s: 2,
            duration_s: 10,
            send_to: SendTo::One,
            drain_s: 10,
            keep_latencies: false,
            sessions: 0,
            bundle_delay_ms: 20,
            prices: "this-machine".to_owned(),
            core_speed: 1.0,
            profile: Profile::Quorate,
            cores: 2,
            uplink_mbit: 5_000,
            downlink_mbit: 5_000,
            packet_loss_ppm: 0,
            warm_connections: false,
            fixed_window: false,
            ramp_ms: 0,
            give_up_ms: 0,
            validators_per_host: 1,
            take_up_us: 0,
            real_signatures: false,
            absent: Absent::Word(AbsentWord::Quorum),
            keys_inside: false,
            measure_ms: 100,
            message_commands: 1,
            pay_scheme: PayScheme::Plain,
            overload: false,
            shards: 1,
            leaves: 64,
            threads: 1,
            seed: 1,
            settings: Settings::default(),
        }
    }
}

/// Fields that are no part of a point's key at their defaults, so that points from before there
/// were such fields keep theirs.
const ADDED_LATER: [&str; 15] = [
    "keys",
    "fill",
    "mix",
    "find_max",
    "time_restart",
    "bounds",
    "overload",
    "packet_loss_ppm",
    "warm_connections",
    "fixed_window",
    "ramp_ms",
    "give_up_ms",
    "fetch_grace",
    "sealing",
    "block_bodies_max",
];

/// Ranges of a setup: name, value, least, most.
type Range = (&'static str, u64, u64, u64);

impl Setup {
    /// The names of all fields.
    ///
    /// # Panics
    /// Never: a setup is a table of plain data.
    #[must_use]
    pub fn fields() -> Vec<String> {
        let value = serde_json::to_value(Self::default()).expect("plain data");
        value.as_object().expect("a table").keys().cloned().collect()
    }

    /// Checks ranges and what contradicts itself.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn validate(&self) -> Result<(), String> {
        self.validate_scheme()?;
        for (name, value, least, most) in self.ranges() {
            if !(least..=most).contains(&value) {
                return Err(format!("'{name}' is {value}; it must be {least} to {most}"));
            }
        }
        self.validate_clients()?;
        let earliest =
            if self.runner == RunnerKind::Simulated { -(self.warmup_s as f64) } else { 0.0 };
        if !(earliest..=self.duration_s as f64).contains(&self.crash_at_s) {
            return Err(format!("'crash_at_s' must be {earliest} to {}", self.duration_s));
        }
        if !(0.01..=10.0).contains(&self.core_speed) {
            return Err(format!("'core_speed' is {}; it must be 0.01 to 10", self.core_speed));
        }
        if !self.settings.comparison.signatures
            && (self.runner == RunnerKind::Processes || self.real_signatures)
        {
            return Err(
                "'signatures' may be false of simulated points without real ones".to_owned()
            );
        }
        self.validate_transport()?;
        self.validate_processes()?;
        self.settings.validate().map_err(|error| error.to_string())?;
        self.topology().map(drop).map_err(|error| error.to_string())
    }

    fn validate_scheme(&self) -> Result<(), String> {
        let is_committee = matches!(self.runner, RunnerKind::Simulated | RunnerKind::Processes);
        match self.scheme {
            SchemeKind::Ed25519 | SchemeKind::Bls => {}
            SchemeKind::BlsThreshold if is_committee => {}
            _ => return Err("'scheme' is ed25519 or bls, or bls-threshold of a committee".into()),
        }
        let weights = self.checked_weights().map_err(|error| error.to_string())?;
        if !is_committee {
            return Ok(());
        }
        let is_three_chain = self.settings.protocol == ProtocolKind::HotStuff;
        if self.profile == Profile::Reference && is_three_chain {
            return Err("with chained HotStuff 'profile' is reference-three-chain".into());
        }
        if self.profile == Profile::ReferenceThreeChain && !is_three_chain {
            return Err("'profile' reference-three-chain is of chained HotStuff".into());
        }
        let fits = self.settings.protocol.check_committee(&weights, self.scheme);
        fits.map_err(|error| error.to_string())
    }

    fn validate_clients(&self) -> Result<(), String> {
        let is_simulated = self.runner == RunnerKind::Simulated;
        if self.load == Shape::Closed && !(is_simulated && self.sessions > 0) {
            return Err("'load' is closed of simulated points with 'sessions' alone".to_owned());
        }
        if (self.crashed_apart || self.leader_crashes) && !is_simulated {
            return Err(
                "'crashed_apart' and 'leader_crashes' are of simulated points alone".to_owned()
            );
        }
        if self.send_to == SendTo::Leader && !is_simulated {
            return Err("'send_to' is leader of simulated points alone".to_owned());
        }
        Ok(())
    }

    fn validate_processes(&self) -> Result<(), String> {
        if (self.find_max || self.bounds) && self.runner != RunnerKind::Processes {
            return Err("'find_max' and 'bounds' are of real processes alone".to_owned());
        }
        if self.find_max && (self.crashed > 0 || self.time_restart) {
            return Err("'find_max' is for a committee in which nobody crashes".to_owned());
        }
        if self.overload && self.runner != RunnerKind::Payments {
            return Err("'overload' is of payments alone".to_owned());
        }
        let is_processes = self.runner == RunnerKind::Processes;
        if self.fill && !(is_processes && self.service == ServiceKind::Kv) {
            return Err("'fill' is of real processes with the service 'kv' alone".to_owned());
        }
        if self.time_restart && !(is_processes && self.validators >= 4) {
            return Err("'time_restart' is of four real processes or more".to_owned());
        }
        Ok(())
    }

    fn validate_transport(&self) -> Result<(), String> {
        let bytes = self.message_commands.saturating_mul(self.tx_bytes as u64);
        if self.runner != RunnerKind::Transport {
            return Ok(());
        }
        if bytes > Body::BYTES_MAX as u64 {
            let most = Body::BYTES_MAX;
            return Err(format!("a message of {bytes} bytes: the transport takes {most} at most"));
        }
        if self.validators < 2 {
            return Err("'validators' is 1; the transport needs somebody to send to".to_owned());
        }
        Ok(())
    }

    fn ranges(&self) -> [Range; 22] {
        let n = u64::from(self.validators);
        let faulty = self.weights().faulty_max();
        [
            ("validators", n, 1, 1_000),
            ("rate", self.rate, 1, 10_000_000),
            ("request_operations", u64::from(self.request_operations), 1, 256),
            ("tx_bytes", self.tx_bytes as u64, 1, 65_536),
            ("keys", self.keys, 1, 1_000_000_000),
            ("duration_s", self.duration_s, 1, 86_400),
            ("warmup_s", self.warmup_s, 0, 86_400),
            ("drain_s", self.drain_s, 0, 3_600),
            ("sessions", self.sessions, 0, 1_000),
            ("message_commands", self.message_commands, 1, 100_000),
            ("crashed", u64::from(self.crashed), 0, faulty),
            ("bundle_delay_ms", self.bundle_delay_ms, 0, 10_000),
            ("cores", u64::from(self.cores), 1, 1_024),
            ("packet_loss_ppm", self.packet_loss_ppm, 0, 500_000),
            ("ramp_ms", self.ramp_ms, 0, 86_400_000),
            ("give_up_ms", self.give_up_ms, 0, 86_400_000),
            ("validators_per_host", u64::from(self.validators_per_host), 1, 1_000),
            ("absent", self.absentees() as u64, 0, n.saturating_sub(1)),
            ("measure_ms", self.measure_ms, 1, 60_000),
            ("shards", u64::from(self.shards), 1, 16),
            ("leaves", u64::from(self.leaves), 1, 65_536),
            ("threads", u64::from(self.threads), 1, 256),
        ]
    }

    /// The members' weights: 1 each.
    ///
    /// # Panics
    /// When the setup is not valid.
    #[must_use]
    pub fn weights(&self) -> Weights {
        self.checked_weights().expect("validated")
    }

    fn checked_weights(&self) -> Result<Weights, WeightsError> {
        // Nobody is no committee, as validation says.
        let equal = Weights::equal(usize::from(self.validators).max(1));
        equal.with_redundancy(u64::from(self.redundancy))
    }

    /// Number of members that are not in a certificate.
    #[must_use]
    pub fn absentees(&self) -> usize {
        match self.absent {
            Absent::Count(count) => usize::from(count),
            Absent::Word(AbsentWord::Quorum) => {
                let weights = self.weights();
                weights.total().saturating_sub(weights.quorum()) as usize
            }
        }
    }

    /// The network between the members, as a validator's configuration names it.
    #[must_use]
    pub fn emulation(&self) -> Emulation {
        Emulation {
            regions: self.regions.clone(),
            delay_ms: self.delay_ms,
            bandwidth_mbit: self.bandwidth_mbit,
            jitter: self.jitter,
        }
    }

    /// The network between the members.
    ///
    /// # Errors
    /// When a region is unknown or a value leaves its range.
    pub fn topology(&self) -> Result<Topology, EmulationError> {
        self.emulation().topology(usize::from(self.validators))
    }

    /// Members of the committee that crash.
    pub fn victims(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        let (all, crashed, apart) = (self.validators, self.crashed, self.crashed_apart);
        (0..crashed).map(move |turn| {
            let step = u32::from(turn) * u32::from(all) / u32::from(crashed);
            let back = if apart { u16::try_from(step).expect("fewer than members") } else { turn };
            ReplicaId(all - 1 - back)
        })
    }

    /// Warm-up and measured window together.
    #[must_use]
    pub fn load_span(&self) -> Duration {
        Duration::from_secs(self.warmup_s + self.duration_s)
    }

    /// As plain data, by field.
    ///
    /// # Panics
    /// Never: a setup is plain data.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain data")
    }

    /// Fields that two points share exactly when they are repeats of one another, or the same.
    #[must_use]
    pub fn without_seed(&self) -> String {
        Self { seed: 0, ..self.clone() }.to_json().to_string()
    }

    /// The name under which a point's result is kept: a hash of everything that decides it.
    #[must_use]
    pub fn key(&self) -> String {
        let (mut fields, default) = (self.to_json(), Self::default().to_json());
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|name, value| {
                !ADDED_LATER.contains(&name.as_str()) || *value != default[name]
            });
        }
        let mut text = fields.to_string();
        if self.prices.ends_with(".toml") {
            // What a file says counts, not what it is called; one that is not there is refused
            // later.
            text += &std::fs::read_to_string(&self.prices).unwrap_or_default();
        }
        let digest = quorate_crypto::hash(text.as_bytes());
        digest.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
