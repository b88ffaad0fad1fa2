//! Setup of a world: keys, committee, hosts, load.

use super::paces::Paces;
use super::replica::{HostConfig, ReplicaHost};
use crate::byzantine::Behaviour;
use crate::epoch::EpochConfig;
use crate::scenario::Scenario;
use quorate_crypto::KeyFile;
use quorate_deterministic::{Rng, genesis};
use quorate_types::{Committee, ReplicaId, Time};
use std::sync::Arc;

/// Microseconds on a learner's clock to a second.
const CLOCK_RATE: u64 = 1_000_000;

/// Each member's keys, and what they make together.
pub(super) fn committee(scenario: &Scenario) -> (Vec<KeyFile>, Arc<Committee>) {
    let Scenario { seed, scheme, weights, settings, .. } = scenario;
    let (keys, committee) =
        genesis::members(*seed, *scheme, settings.comparison.key_cache, weights);
    (keys, Arc::new(committee))
}

/// Members that are two machines.
fn twins(scenario: &Scenario) -> impl Iterator<Item = usize> {
    (0..scenario.replicas).filter(|member| scenario.behaviours[*member] == Behaviour::Twin)
}

/// Keys of each host: of the members, then of the second machines of twins, then of the learners;
/// and the pairs.
pub(super) fn host_keys(
    scenario: &Scenario,
    members: &[KeyFile],
) -> (Vec<KeyFile>, Vec<(usize, usize)>) {
    let pairs = (scenario.replicas..).zip(twins(scenario)).map(|(second, first)| (first, second));
    let seconds = twins(scenario).map(|member| members[member].clone());
    let learners = genesis::learner_keys(scenario.seed, scenario.scheme, scenario.learners);
    (members.iter().cloned().chain(seconds).chain(learners).collect(), pairs.collect())
}

/// A host for each of these keys, in the first epoch.
pub(super) fn hosts(
    scenario: &Scenario,
    keys: Vec<KeyFile>,
    first: &Arc<EpochConfig>,
) -> Vec<ReplicaHost> {
    let members = 0..scenario.replicas;
    let voters = members
        .chain(twins(scenario))
        .map(|member| (member, scenario.behaviours[member], scenario.clock_rates[member]));
    let learners = scenario.replicas..scenario.replicas + scenario.learners;
    let learners = learners.map(|name| (name, Behaviour::Honest, CLOCK_RATE));
    let hosts = voters.chain(learners).zip(keys).enumerate();
    let hosts = hosts.map(|(number, ((name, behaviour, clock_rate), keys))| {
        let config = HostConfig {
            number,
            name: ReplicaId(u16::try_from(name).expect("few members")),
            behaviour,
            keys,
            log: scenario.log.clone(),
            executor: scenario.executor.clone(),
            durations: scenario.durations.clone(),
            clock_rate,
            paces: Paces::new(scenario.seed, number, scenario.pace_us_max),
        };
        let rng = Rng::new(scenario.seed, "host", number as u64);
        ReplicaHost::new(config, Arc::clone(first), rng)
    });
    hosts.collect()
}

/// Times at which clients submit operations: bursts over the fault phase, and a few after it, so
/// that whoever missed everything hears of something.
pub(super) fn load(scenario: &Scenario, rng: &mut Rng) -> Vec<(Time, usize)> {
    let phase_us = u64::try_from(scenario.fault_phase.as_micros()).expect("seconds");
    let mut load = Vec::new();
    while load.len() < scenario.operations {
        let at = Time(rng.below(phase_us));
        let client = rng.index(scenario.clients);
        let burst = if rng.one_in(8) { rng.index(16) + 1 } else { rng.index(3) + 1 };
        load.extend(std::iter::repeat_n((at, client), burst.min(scenario.operations - load.len())));
    }
    // Without these nothing is said after the faults that would lead on whoever was cut off.
    let ends_with_faults = rng.one_in(4);
    for client in (0..scenario.clients).filter(|_| !ends_with_faults) {
        load.push((Time(phase_us + rng.between(&(1..=1_000_000))), client));
    }
    load
}
