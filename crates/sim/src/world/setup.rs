//! Setup of a world: keys, committee, hosts, load.

use super::replica::{HostConfig, ReplicaHost};
use crate::byzantine::Behaviour;
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

/// A host for each member, then a second one for each twin, then one for each learner; and the
/// pairs.
pub(super) fn hosts(
    scenario: &Scenario,
    keys: &[KeyFile],
    committee: &Arc<Committee>,
) -> (Vec<ReplicaHost>, Vec<(usize, usize)>) {
    let members = 0..scenario.replicas;
    let twins = members.clone().filter(|member| scenario.behaviours[*member] == Behaviour::Twin);
    let mut pairs = Vec::new();
    for (second, first) in (scenario.replicas..).zip(twins.clone()) {
        pairs.push((first, second));
    }
    let config = |index: usize, behaviour: Behaviour, keys: &KeyFile, clock_rate| HostConfig {
        id: ReplicaId(u16::try_from(index).expect("few members")),
        behaviour,
        keys: keys.clone(),
        committee: Arc::clone(committee),
        settings: behaviour.settings(scenario.settings.clone()),
        log: scenario.log.clone(),
        executor: scenario.executor.clone(),
        durations: scenario.durations.clone(),
        clock_rate,
    };
    let voters = members.chain(twins).map(|member| {
        let (behaviour, rate) = (scenario.behaviours[member], scenario.clock_rates[member]);
        config(member, behaviour, &keys[member], rate)
    });
    let learners = genesis::learner_keys(scenario.seed, scenario.scheme, scenario.learners);
    let learners = (scenario.replicas..).zip(&learners);
    let learners = learners.map(|(index, keys)| config(index, Behaviour::Honest, keys, CLOCK_RATE));
    let hosts = (0..)
        .zip(voters.chain(learners))
        .map(|(number, config)| ReplicaHost::new(config, Rng::new(scenario.seed, "host", number)));
    (hosts.collect(), pairs)
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
