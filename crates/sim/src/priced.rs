//! A performance model: the same replicas and sessions in virtual time, where every signature, hash and
//! byte costs what a price list says, on stations that share the cores of hosts.
//!
//! A [`Scene`] is everything that a run depends on; [`run`] gives its [`Outcome`]. The swarm's world
//! ([`crate::world`]) looks for what breaks; this one for how fast it is.
//!
//! ```text
//!  client ─▶ net ─▶ lines ─▶ net ─▶ votes | checks ─▶ machine ─▶ net …
//!                                        ▲   combine ──┤  ▲ ├─▶ log ─▶ disk ─┐
//!                                        └─────────────┘  │ └─▶ execution ─┐ │
//!                                                         └────────────────┴─┘
//! ```
//!
//! Each validator has the stations of a real one (`quorate-node`'s threads), each a queue with one
//! or two servers: `net` (encryption, sockets), `votes` (checks of what is urgent, combining),
//! `checks` (bodies and requests), `machine`, `execution`, `log`; and beside it a `client`. Jobs in
//! service share the host's cores (`processor`); what leaves and comes in shares its link
//! (`lines`); groups of the log share its disk. A job is carried out when its service begins, and
//! what comes of it leaves when its service ends.
//!
//! What a job costs is counted, not assumed: `quorate-crypto` counts the operations that the job really
//! called, and the list prices them ([`Prices::of`]). Where signatures are not real they are stand-ins
//! with the same sizes and the same counts. What many receivers would compute alike (parsing and
//! checking one body, executing one height) is charged to each and computed once.
//!
//! # What is not modelled
//!
//! TCP's slow start and congestion, connections being made, the operating system's scheduler, memory,
//! snapshots' contents, retention. A crashed validator does not come back.

mod book;
mod cast;
mod coming;
mod effects;
mod frames;
mod gauges;
mod ledger;
mod lines;
mod load;
mod milestones;
mod observed;
mod outcome;
mod prices;
mod processor;
mod stage;
mod stations;
mod work;

pub use lines::Cut;
pub use milestones::ViewChange;
pub use observed::{Given, Observed, observe};
pub use outcome::{Answered, Outcome, Percentiles, Second, Signatures, Utilisation};
pub use prices::{
    BlsPrices, ClientPrices, Ed25519Prices, ExecutionPrices, HashPrices, LogPrices, MachinePrices,
    NetPrices, PerStation, Prices, PricesError, Secp256k1Prices,
};
pub use stations::Kind as Station;

use quorate_crypto::SchemeKind;
use quorate_engine::{FlowControl, Settings, SettingsError, UnfitProtocol};
use quorate_storage::Durability;
use quorate_types::{Committee, ReplicaId, Weights, WeightsError};
use quorate_wan::Topology;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Nanoseconds since the beginning of a scene.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(span: Duration) -> Nanos {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Keys, delays and arrivals come from it.
    pub seed: u64,
    /// Members of the committee, 1 to 1,024, all of one weight.
    pub validators: u16,
    /// How many of them are there beyond what faults ask for: `c` of `n = 3f+2c+1`.
    pub redundancy: u64,
    /// The voting scheme: Ed25519, BLS or BLS with threshold keys.
    pub scheme: SchemeKind,
    /// The settings of all replicas.
    pub settings: Settings,
    /// What a commit of the log waits for.
    pub durability: Durability,
    /// Where the members are.
    pub topology: Topology,
    /// What they run on.
    pub host: HostProfile,
    /// What operations cost there.
    pub prices: Prices,
    /// Whether signatures are computed, or priced stand-ins. The outcome repeats it; it should be the
    /// same otherwise.
    pub real_signatures: bool,
    /// What clients offer.
    pub load: Load,
    /// Load before the time that counts.
    pub warmup: Duration,
    /// The time that counts.
    pub duration: Duration,
    /// Members that end, and when.
    pub crashed: Vec<(ReplicaId, Duration)>,
    /// When the leader of the first view ends, if it does.
    pub leader_crashes: Option<Duration>,
    /// Urgent frames that reach a validator within so long of each other are taken up together: less
    /// exact, and quicker with hundreds of validators. Zero takes up each when it comes.
    pub take_up: Duration,
    /// Frames lost, as a share of all, 0 to 1: each comes one round trip late.
    pub loss: f64,
    /// Partitions.
    pub cuts: Vec<Cut>,
    /// Whose replica it is.
    pub profile: Profile,
}

/// What validators run on. All hosts are alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostProfile {
    /// Cores of a host, each as quick as the price list's.
    pub cores: u32,
    /// Megabits a second that leave a host; `None`: any.
    pub uplink_mbps: Option<f64>,
    /// Megabits a second that a host takes in; `None`: any.
    pub downlink_mbps: Option<f64>,
    /// Validators on each host, each with its client: they are given to the hosts in turn, as they are
    /// to regions. They reach each other without the host's link.
    pub validators_per_host: usize,
}

impl HostProfile {
    /// A cloud: one validator on each host.
    #[must_use]
    pub fn cloud(cores: u32, mbps: f64) -> Self {
        let mbps = Some(mbps);
        Self { cores, uplink_mbps: mbps, downlink_mbps: mbps, validators_per_host: 1 }
    }

    /// How many hosts so many validators take.
    #[must_use]
    pub fn hosts(&self, validators: usize) -> usize {
        validators.div_ceil(self.validators_per_host.max(1))
    }

    /// Everything on one machine, as `quorate bench` has it.
    #[must_use]
    pub fn local(cores: u32, validators: u16) -> Self {
        let validators_per_host = usize::from(validators);
        Self { cores, uplink_mbps: None, downlink_mbps: None, validators_per_host }
    }
}

/// When operations are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// In an open loop, by one client beside each validator: one as long after the other.
    Fixed,
    /// Likewise, at random moments, independent of each other.
    Poisson,
    /// In a closed loop: each session sends a request of so many operations, and the next one as soon as
    /// all of them are answered. The rate means nothing then.
    Closed(NonZeroUsize),
}

/// Who gets a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receivers {
    /// The validator beside the client, and the next when it is silent.
    #[default]
    One,
    /// All validators at once.
    All,
    /// The leader of the first view, and the next when it is silent: whoever orders, in protocols whose
    /// leader stays.
    Leader,
}

/// What is replicated, as far as its price goes: the state itself is that of a service that does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Nothing.
    #[default]
    Noop,
    /// Puts into the authenticated key-value store.
    Kv,
    /// Transactions of the EVM ledger, whose senders every validator recovers from their signatures.
    Evm,
}

/// What clients offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Operations a second, of all clients together.
    pub rate: f64,
    /// Bytes of one operation.
    pub tx_bytes: usize,
    /// When they come.
    pub arrivals: Arrivals,
    /// How long operations wait to share a request.
    pub bundle_delay: Duration,
    /// Sessions, given to the clients in turn; `None`: as many as the rate needs, at least one each.
    pub sessions: Option<NonZeroUsize>,
    /// Who gets a request.
    pub receivers: Receivers,
    /// What an operation is.
    pub work: Work,
}

/// Whose replica is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// This program.
    Quorate,
    /// The reference implementation of paper 000 and of the published AWS runs, not fitted to them:
    /// what it leaves out is said at [`Scene::as_reference`]. Its settings come from there.
    Reference,
}

/// Why a scene cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SceneError {
    /// No members, or more than an index can name.
    #[error("a scene has 1 to {max} validators, this one has {0}", max = Committee::MEMBERS_MAX)]
    Validators(u16),
    /// Places for another number of members.
    #[error("the topology is for {topology} members, the scene has {validators}")]
    Topology {
        /// Members of the topology.
        topology: usize,
        /// Members of the scene.
        validators: u16,
    },
    /// Validators of different regions on one host.
    #[error(
        "{validators} validators on {hosts} hosts: the hosts must be a multiple of the regions, or two \
         regions share one; change the validators on each host"
    )]
    Hosts {
        /// Members of the scene.
        validators: u16,
        /// Their hosts.
        hosts: usize,
    },
    /// The settings of the replicas.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The stub scheme has no price.
    #[error("the stub scheme has no price: use ed25519, bls or bls-threshold")]
    Scheme,
    /// Members that do not make the redundancy that was asked for.
    #[error(transparent)]
    Redundancy(#[from] WeightsError),
    /// A committee or keys that the protocol does not support.
    #[error(transparent)]
    Unfit(#[from] UnfitProtocol),
    /// A figure out of its range.
    #[error("{what} is {value}; it must be {rule}")]
    Range {
        /// Which.
        what: &'static str,
        /// What it says.
        value: f64,
        /// What it may be.
        rule: &'static str,
    },
    /// A member that there is not, or a time that the run does not reach.
    #[error(
        "validator {member} cannot crash at {at:?}: there are {validators}, and the run ends at {ends:?}"
    )]
    Crash {
        /// Which.
        member: u16,
        /// When.
        at: Duration,
        /// How many there are.
        validators: u16,
        /// When the run ends.
        ends: Duration,
    },
    /// A rule of the protocol was broken in the run: no figure of it means anything.
    #[error("the run broke a property: {0}")]
    Broken(String),
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Virtual time.
    pub virtual_time: Duration,
    /// Virtual time of the whole run.
    pub total: Duration,
    /// Operations committed so far.
    pub committed: u64,
}

/// Runs a scene to its end.
///
/// # Errors
/// Why it cannot be run, or that it broke a property.
pub fn run(scene: &Scene, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, SceneError> {
    scene.check()?;
    stage::Stage::new(scene).run(progress)
}

impl Scene {
    /// A cloud run of this program with every default: one t3.medium for each validator, the load of
    /// paper 000, Ed25519.
    #[must_use]
    pub fn new(topology: Topology, rate: f64, prices: Prices) -> Self {
        Self {
            seed: 1,
            validators: u16::try_from(topology.members()).expect("a committee"),
            redundancy: 0,
            scheme: SchemeKind::Ed25519,
            settings: Settings { timeout_ms: 5_000, batch_delay_ms: 100, ..Settings::default() },
            durability: Durability::Fsync,
            topology,
            host: HostProfile::cloud(1, 5_000.0),
            prices,
            real_signatures: false,
            load: Load {
                rate,
                tx_bytes: 512,
                arrivals: Arrivals::Fixed,
                bundle_delay: Duration::from_millis(50),
                sessions: None,
                receivers: Receivers::One,
                work: Work::Noop,
            },
            warmup: Duration::from_secs(5),
            duration: Duration::from_secs(20),
            crashed: Vec::new(),
            leader_crashes: None,
            take_up: Duration::ZERO,
            loss: 0.0,
            cuts: Vec::new(),
            profile: Profile::Quorate,
        }
    }

    /// The same scene with the reference implementation in the place of this program.
    ///
    /// A body counts as stored as soon as it is there; votes are checked singly as they arrive and
    /// certify at exactly the quorum; proposals are signed with the voting key; there is no TLS, no
    /// sync and no execution; batches leave at 500 KB or after 100 ms, with no flow control; views
    /// time out after 5 s. Clients send unsigned operations and get no answer. Hashing is SHA-512
    /// and the store RocksDB: the first is priced, the second is a copy.
    ///
    /// Whatever the scene's settings say of these is overruled.
    #[must_use]
    pub fn as_reference(mut self) -> Self {
        self.settings.verify = quorate_crypto::Policy::Each;
        self.settings.proposal_key = quorate_consensus::ProposalKey::Voting;
        self.settings.vote_wait_ms = 0;
        self.settings.batch_bytes = 500_000;
        self.settings.batch_delay_ms = 100;
        self.settings.timeout_ms = 5_000;
        self.settings.flow_control = FlowControl::Fixed;
        self.settings.author_bytes_max = 1 << 32;
        self.settings.mempool_bytes_max = 1 << 32;
        self.durability = Durability::Os;
        self.profile = Profile::Reference;
        self
    }

    /// What the members weigh.
    fn weights(&self) -> Result<Weights, WeightsError> {
        Weights::equal(usize::from(self.validators)).with_redundancy(self.redundancy)
    }

    fn check(&self) -> Result<(), SceneError> {
        let validators = self.validators;
        if !(1..=Committee::MEMBERS_MAX).contains(&usize::from(validators)) {
            return Err(SceneError::Validators(validators));
        }
        if self.topology.members() != usize::from(validators) {
            return Err(SceneError::Topology { topology: self.topology.members(), validators });
        }
        let (regions, hosts) = (self.topology.regions(), self.host.hosts(usize::from(validators)));
        let neighbours = regions.iter().zip(regions.iter().skip(hosts));
        if neighbours.into_iter().any(|(one, next)| one != next) {
            return Err(SceneError::Hosts { validators, hosts });
        }
        if self.scheme == SchemeKind::Stub {
            return Err(SceneError::Scheme);
        }
        self.settings.validate()?;
        self.settings.protocol.check_committee(&self.weights()?, self.scheme)?;
        let ends = self.warmup + self.duration;
        if let Some((ReplicaId(member), at)) =
            self.crashed.iter().copied().find(|(member, at)| member.0 >= validators || *at >= ends)
        {
            return Err(SceneError::Crash { member, at, validators, ends });
        }
        let range = |what, value: f64, ok: bool, rule| {
            if ok { Ok(()) } else { Err(SceneError::Range { what, value, rule }) }
        };
        let Load { rate, tx_bytes, .. } = self.load;
        range("rate", rate, rate > 0.0 && rate <= 1e7, "more than 0, at most 10,000,000")?;
        let fits = (1..=quorate_types::Request::BYTES_MAX).contains(&tx_bytes);
        range("tx_bytes", tx_bytes as f64, fits, "1 to 131072")?;
        range("loss", self.loss, (0.0..1.0).contains(&self.loss), "0 or more, less than 1")?;
        let seconds = self.duration.as_secs_f64();
        range("duration", seconds, (1.0..=3_600.0).contains(&seconds), "1 to 3600 seconds")?;
        for mbps in [self.host.uplink_mbps, self.host.downlink_mbps].into_iter().flatten() {
            range("bandwidth", mbps, mbps > 0.0, "more than 0")?;
        }
        range("cores", f64::from(self.host.cores), self.host.cores > 0, "at least 1")
    }
}

#[cfg(test)]
mod tests;
