//! Figures that a result is judged by, from its configuration and this machine.

use super::config::BenchConfig;
use crate::bounds::{self, Workload};
use crate::minimum::{self, Course, Roster, Slots, Votes};
use quorate_consensus::ProtocolKind;
use quorate_consensus::leader::{LeaderElection, RoundRobin};
use quorate_consensus::windowed::collectors::primary;
use quorate_report::results::beside::{LeastLatency, Minimum};
use quorate_report::results::bounds::{Bounds, EvmBound, Parts, Unreplicated};
use quorate_report::{Report, results::LatencyMs};
use quorate_storage::Durability;
use quorate_types::{Committee, View};
use quorate_wan::Topology;

/// Bound of the EVM ledger: one core alone, beside a committee's run.
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
        tx_bytes: config.load.tx_bytes as u64,
        logged_bytes: logged.unwrap_or(config.load.tx_bytes as f64),
        synced: config.durability == Durability::Fsync,
    };
    bounds::bounds(parts, &workload, report.committed_tps)
}

/// The longest stretch of a round that is computed with: uneven weights make rounds of thousands.
const TURNS_MAX: u64 = 1_024;

/// Leaders of the first views, as far as they differ from the later ones.
fn turns(committee: &Committee, tenure: u64) -> Vec<usize> {
    let election = RoundRobin::new(committee.weights()).with_tenure(tenure);
    let round = election.round().min(TURNS_MAX);
    (1..=round).map(|view| election.leader(View(view)).index()).collect()
}

/// Least latency that the protocol needs.
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

/// The least latency on the network that the configuration emulates, beside what was measured;
/// `None` without such a network.
pub(super) fn least_latency(
    config: &BenchConfig,
    committee: &Committee,
    measured: LatencyMs,
) -> Option<LeastLatency> {
    let network = config.topology()?;
    let least = least(&network, config, committee);
    let ratio = |measured: f64, least: f64| (measured / least * 1_000.0).round() / 1_000.0;
    (least.p50_ms > 0.0).then(|| LeastLatency {
        least,
        p50_ratio: ratio(measured.p50, least.p50_ms),
        mean_ratio: ratio(measured.mean, least.mean_ms),
    })
}
