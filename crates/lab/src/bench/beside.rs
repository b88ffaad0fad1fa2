//! What a result is judged by: computed or measured beside it.

use super::config::BenchConfig;
use super::evm::{EvmBound, Unreplicated};
use super::latencies::LatencyMs;
use super::readers::Reads;
use super::recovery::Recovery;
use super::report::Report;
use super::search::Searched;
use crate::bounds::{Bounds, Parts, Workload};
use crate::minimum::{self, Course, Minimum, Roster, Slots, Votes};
use crate::text::milliseconds;
use quorate_consensus::ProtocolKind;
use quorate_consensus::leader::{LeaderElection, RoundRobin};
use quorate_consensus::windowed::collectors::primary;
use quorate_storage::Durability;
use quorate_types::{Committee, View};
use quorate_wan::Topology;
use serde::{Deserialize, Serialize};

/// Everything that stands beside the figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// The least latency on the emulated network, where there is one.
    pub minimum: Option<LeastLatency>,
    /// Bytes that one validator wrote to its log for each operation it executed; absent when none said.
    pub logged_bytes_per_tx: Option<f64>,
    /// What the machine could do at most, unless it was not to be measured.
    pub bounds: Option<Bounds>,
    /// What the EVM ledger could execute at most, unless it was not to be measured.
    pub evm: Option<EvmBound>,
    /// What readers of the EVM ledger saw, where there were any.
    pub reads: Option<Reads>,
    /// How the highest rate was found, where it was asked for.
    pub searched: Option<Searched>,
    /// How long throughput took to recover from each thing done to a validator.
    pub recoveries: Vec<Recovery>,
}

/// The least latency that the protocol needs on the emulated network, and how near the run came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeastLatency {
    /// The least.
    #[serde(flatten)]
    pub least: Minimum,
    /// The measured median over the least median.
    pub p50_ratio: f64,
    /// The measured mean over the least mean.
    pub mean_ratio: f64,
}

impl Beside {
    /// A line for each thing that there is something to say of.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let minimum = self.minimum.iter().map(|minimum| ("least latency", minimum.describe()));
        let searched = self.searched.iter().map(|searched| ("highest rate", searched.describe()));
        let recoveries = self.recoveries.iter().map(|recovery| ("recovery", recovery.describe()));
        let bounds = self.bounds.iter().flat_map(Bounds::figures);
        let evm = self.evm.iter().flat_map(EvmBound::figures);
        let reads = self.reads.iter().map(|reads| ("reads", reads.describe()));
        minimum.chain(searched).chain(recoveries).chain(reads).chain(evm).chain(bounds).collect()
    }
}

/// What one core did alone, beside what a committee did.
pub(super) fn evm_bound(alone: Unreplicated, config: &BenchConfig, report: &Report) -> EvmBound {
    let bound_tps = alone.bound(u64::from(config.validators), cores());
    EvmBound { unreplicated: alone, bound_tps, reached: report.committed_tps / bound_tps }
}

fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// The bounds for what a run did.
pub(super) fn bounds(parts: Parts, config: &BenchConfig, report: &Report) -> Bounds {
    let logged = report.beside.logged_bytes_per_tx;
    let workload = Workload {
        validators: u64::from(config.validators),
        cores: cores(),
        tx_bytes: config.tx_bytes as u64,
        logged_bytes: logged.unwrap_or(config.tx_bytes as f64),
        synced: config.durability == Durability::Fsync,
    };
    Bounds::new(parts, &workload, report.committed_tps)
}

/// The longest stretch of a round that is computed with: uneven weights make rounds of thousands.
const TURNS_MAX: u64 = 1_024;

/// Who leads the first views, as far as they differ from the later ones.
fn turns(committee: &Committee, tenure: u64) -> Vec<usize> {
    let election = RoundRobin::new(committee.weights()).with_tenure(tenure);
    let round = election.round().min(TURNS_MAX);
    (1..=round).map(|view| election.leader(View(view)).index()).collect()
}

/// What the protocol needs at least.
fn least(network: &Topology, config: &BenchConfig, committee: &Committee) -> Minimum {
    let weights: Vec<u64> = committee.members().map(|id| committee.weight(id)).collect();
    let (quorum, weak) = (committee.quorum(), committee.weak());
    let turns = turns(committee, config.settings.leader_tenure);
    let chained = |course| {
        let roster = Roster { turns: &turns, weights: &weights, course, quorum, weak };
        minimum::chained(network, roster)
    };
    // Members of a windowed protocol all weigh the same.
    let heads = |weight: u64| weight.div_ceil(weights[0]) as usize;
    let windowed = |votes| {
        let first = View(1);
        let slots = Slots {
            primary: primary(first, committee.size()).index(),
            votes,
            quorum: heads(quorum),
            weak: heads(weak),
            certified: config.settings.certifies_execution(),
        };
        minimum::windowed(network, slots)
    };
    match config.settings.protocol {
        ProtocolKind::Jolteon => chained(Course::Views(2)),
        ProtocolKind::HotStuff => chained(Course::Views(3)),
        ProtocolKind::HotStuffBasic => chained(Course::Phases(3)),
        ProtocolKind::Pbft => windowed(Votes::ToAll),
        ProtocolKind::LinearPbft => windowed(Votes::Collected),
        ProtocolKind::LinearPbftFast | ProtocolKind::Sbft => {
            windowed(Votes::Fast(heads(committee.weights().fast())))
        }
    }
}

impl LeastLatency {
    /// For what was measured on the network that the configuration emulates; `None` without one.
    pub(super) fn of(
        config: &BenchConfig,
        committee: &Committee,
        measured: LatencyMs,
    ) -> Option<Self> {
        let network = config.topology()?;
        let least = least(&network, config, committee);
        let ratio = |measured: f64, least: f64| (measured / least * 1_000.0).round() / 1_000.0;
        (least.p50_ms > 0.0).then(|| Self {
            least,
            p50_ratio: ratio(measured.p50, least.p50_ms),
            mean_ratio: ratio(measured.mean, least.mean_ms),
        })
    }

    fn describe(&self) -> String {
        let least = &self.least;
        let wait = least.mean_ms - least.mean_without_wait_ms;
        let waiting = if least.view_ms > 0.0 {
            format!(" ({} waiting for a leader's turn)", milliseconds(wait))
        } else {
            String::new()
        };
        let (p50, ratio) = (milliseconds(least.p50_ms), self.p50_ratio);
        format!("p50 {p50} ms on this network{waiting}; measured {ratio:.2} ×")
    }
}
