//! Scenes: everything that a run depends on, and what of it is refused.

use crate::prices::Prices;
use crate::profile::Profile;
use crate::workload::{Arrivals, Load, Receivers, Work};
use quorate_consensus::ProtocolKind;
use quorate_crypto::SchemeKind;
use quorate_engine::{Settings, SettingsError, UnfitProtocol};
use quorate_storage::Durability;
use quorate_types::{Committee, ReplicaId, Weights, WeightsError};
use quorate_wan::Topology;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Seed of keys, delays and arrivals.
    pub seed: u64,
    /// Members of the committee, 1 to 1,024, all of one weight.
    pub validators: u16,
    /// Redundant members, beyond what faults ask for: `c` of `n = 3f+2c+1`.
    pub redundancy: u64,
    /// Voting scheme: Ed25519, BLS or BLS with threshold keys.
    pub scheme: SchemeKind,
    /// Settings of all replicas.
    pub settings: Settings,
    /// Durability that a commit of the log waits for.
    pub durability: Durability,
    /// Regions of the members, and delays between them.
    pub topology: Topology,
    /// Machines that the members run on.
    pub host: HostProfile,
    /// Prices of operations on those machines.
    pub prices: Prices,
    /// Signatures are computed, and not priced stand-ins. The estimate repeats it; it should be the
    /// same otherwise.
    pub real_signatures: bool,
    /// Load that clients offer.
    pub load: Load,
    /// Time under load before the measurement window.
    pub warmup: Duration,
    /// Length of the measurement window: whole seconds, or the last one is taken for a whole one.
    pub duration: Duration,
    /// Times that another window may follow, twice as long, while the last one's figures are in
    /// doubt ([`Estimate::doubts`]). None does where anybody crashes in it, or once the backlog has
    /// grown in two; nor, where a run may be given up, once backlog or latency has grown in one.
    ///
    /// [`Estimate::doubts`]: crate::Estimate::doubts
    pub windows_more: u32,
    /// Time in which the load grows evenly to its rate, at the beginning; zero for all of it at
    /// once, which leaves a backlog of seconds while authors open their windows
    /// ([`quorate_engine::FlowControl`]). Not of closed loops.
    pub ramp: Duration,
    /// Operations under way, in time at the offered rate, beyond which the run is given up: it ends
    /// there with [`Doubt::GivenUp`], and rates and loads are those since the load began. At least
    /// a thousand; `None` for any number. A closed loop has no rate, and is not given up.
    ///
    /// [`Doubt::GivenUp`]: crate::Doubt::GivenUp
    pub give_up: Option<Duration>,
    /// Members that crash for good, and the time since the beginning at which they do.
    pub crashed: Vec<(ReplicaId, Duration)>,
    /// Time at which the leader of the first view crashes, if it does.
    pub leader_crashes: Option<Duration>,
    /// Urgent frames that reach a validator within so long of each other are taken up together:
    /// less exact, and quicker with hundreds of validators. Zero takes up each when it comes.
    pub take_up: Duration,
    /// Packets lost, as a share of all, 0 to 1: a frame with one comes a round trip or a timeout
    /// late, and connections' windows shrink and grow as CUBIC has it.
    pub loss: f64,
    /// Connections between hosts begin as wide as their receivers let them, as after minutes of
    /// load without a loss, and not in slow start.
    pub warm_connections: bool,
    /// Partitions of the members.
    pub partitions: Vec<Partition>,
    /// Implementation that is modelled.
    pub profile: Profile,
}

/// Machines that validators run on. All hosts are alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostProfile {
    /// Cores of a host, each as quick as the price list's.
    pub cores: u32,
    /// Megabits a second that leave a host; `None`: any.
    pub uplink_mbps: Option<f64>,
    /// Megabits a second that a host takes in; `None`: any.
    pub downlink_mbps: Option<f64>,
    /// Validators on each host, each with its client: they are given to the hosts in turn, as they
    /// are to regions. They reach each other without the host's link.
    pub validators_per_host: usize,
}

impl HostProfile {
    /// Profile of a cloud: one validator on each host.
    #[must_use]
    pub fn cloud(cores: u32, mbps: f64) -> Self {
        let mbps = Some(mbps);
        Self { cores, uplink_mbps: mbps, downlink_mbps: mbps, validators_per_host: 1 }
    }

    /// Number of hosts that so many validators take.
    #[must_use]
    pub fn hosts(&self, validators: usize) -> usize {
        validators.div_ceil(self.validators_per_host.max(1))
    }

    /// Profile of one machine for everything, as `quorate bench` has it.
    #[must_use]
    pub fn local(cores: u32, validators: u16) -> Self {
        let validators_per_host = usize::from(validators);
        Self { cores, uplink_mbps: None, downlink_mbps: None, validators_per_host }
    }
}

/// Partition of the members for a while. Nothing is lost: it arrives late.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Members on one side, by index.
    pub members: Vec<u16>,
    /// Beginning, since that of the scene.
    pub at: Duration,
    /// Length of the partition.
    pub duration: Duration,
}

impl Partition {
    /// Tells whether two members are on different sides.
    pub(crate) fn separates(&self, one: usize, other: usize) -> bool {
        let inside = |member: usize| self.members.iter().any(|one| usize::from(*one) == member);
        inside(one) != inside(other)
    }
}

/// Reason for which a scene cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SceneError {
    /// No members, or more than an index can name.
    #[error("a scene has 1 to {max} validators, this one has {0}", max = Committee::MEMBERS_MAX)]
    Validators(u16),
    /// Places for another number of members.
    #[error("the topology is for {topology} members, the scene has {validators}")]
    Topology {
        /// Number of members in the topology.
        topology: usize,
        /// Number of members in the scene.
        validators: u16,
    },
    /// Validators of different regions on one host.
    #[error(
        "{validators} validators on {hosts} hosts: the hosts must be a multiple of the regions, or two \
         regions share one; change the validators on each host"
    )]
    Hosts {
        /// Number of members in the scene.
        validators: u16,
        /// Number of their hosts.
        hosts: usize,
    },
    /// Settings that replicas refuse.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Priced signatures in a build without them.
    #[error(
        "this is a validator's build, without stand-ins for signatures: compute them \
         (--real-signatures), or use a build with the feature `lab`"
    )]
    NoStandIns,
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
        /// Name of the figure.
        what: &'static str,
        /// Value in the scene.
        value: f64,
        /// Rule for its values, in words.
        rule: &'static str,
    },
    /// A member that there is not, or a time that the run does not reach.
    #[error(
        "validator {member} cannot crash at {at:?}: there are {validators}, and the run ends at {ends:?}"
    )]
    Crash {
        /// Index of the member.
        member: u16,
        /// Time of the crash.
        at: Duration,
        /// Number of members that there are.
        validators: u16,
        /// Time at which the run ends.
        ends: Duration,
    },
    /// A rule of the protocol was broken in the run: no figure of it means anything.
    #[error("the run broke a property: {0}")]
    Broken(String),
}

impl Scene {
    /// Usual [`Scene::windows_more`]: with both a run has seven times the window asked for.
    pub const WINDOWS_MORE: u32 = 2;

    /// Scene of a cloud run of this program with every default: one t3.medium for each validator,
    /// the load of paper 000, Ed25519.
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
            windows_more: 0,
            ramp: Duration::ZERO,
            give_up: None,
            warm_connections: false,
            crashed: Vec::new(),
            leader_crashes: None,
            take_up: Duration::ZERO,
            loss: 0.0,
            partitions: Vec::new(),
            profile: Profile::Quorate,
        }
    }

    /// Same scene with the reference implementation in the place of this program.
    ///
    /// A body may be named by its author once it and 2f others have acknowledged it, and by others
    /// as soon as they have it; votes wait for the bodies that are named, which are asked for at
    /// once where they are missing, are checked singly as they arrive and certify at exactly the
    /// quorum; proposals are signed with the voting key; batches leave at 500 KB or after 100 ms,
    /// with no flow control, and wait for a peer without bound; leaders take turns, and every view
    /// times out after 5 s. There is no TLS, no sync and no execution, and sockets keep Nagle's
    /// algorithm. Clients send unsigned operations and get no answer. Hashing is SHA-512 and the
    /// store RocksDB, into which each body goes and from which it is read before a vote; both are
    /// priced.
    ///
    /// What its peers have not been sent of a body when a quorum has it, they are not sent.
    ///
    /// With chained HotStuff it is the implementation of three chains: bodies leave when they are
    /// full, 100 ms apart at least, or when a leader has none to name; a block names 31 at most, in
    /// whatever state of acknowledgement.
    ///
    /// Left out: the 100 ms for which a leader of three chains stands still after a proposal,
    /// leaders that name a body again which arrived after it was ordered and wait for 2f
    /// acknowledgements of a block before they take up another body; acknowledgements of bodies
    /// come by distance alone.
    ///
    /// Whatever the scene's settings say of these is overruled.
    #[must_use]
    pub fn as_reference(mut self) -> Self {
        self.profile = match self.settings.protocol {
            ProtocolKind::HotStuff => Profile::ReferenceThreeChain,
            _ => Profile::Reference,
        };
        self.settings = self.profile.settings(self.settings);
        self.durability = Durability::Os;
        self
    }

    /// Moments at which members crash.
    pub(crate) fn crashes(&self) -> impl Iterator<Item = Duration> + '_ {
        self.leader_crashes.into_iter().chain(self.crashed.iter().map(|(_, at)| *at))
    }

    /// Tells whether a member crashes in the measurement window, which then is of that.
    pub(crate) fn is_of_a_crash(&self) -> bool {
        self.crashes().any(|at| at >= self.warmup)
    }

    /// Weights of the members.
    pub(crate) fn weights(&self) -> Result<Weights, WeightsError> {
        Weights::equal(usize::from(self.validators)).with_redundancy(self.redundancy)
    }

    /// Refuses what cannot be run, with the reason.
    pub(crate) fn check(&self) -> Result<(), SceneError> {
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
        #[cfg(feature = "stand-ins")]
        if self.scheme == SchemeKind::Stub {
            return Err(SceneError::Scheme);
        }
        if cfg!(not(feature = "stand-ins")) && !self.real_signatures {
            return Err(SceneError::NoStandIns);
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
