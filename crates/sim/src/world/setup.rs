//! How a world begins: keys, committee, hosts, load.

use super::replica::{HostConfig, ReplicaHost};
use crate::byzantine::Behaviour;
use crate::dice::Dice;
use crate::genesis;
use crate::scenario::Scenario;
use quorate_crypto::KeyFile;
use quorate_types::{Committee, ReplicaId, Time};
use std::sync::Arc;

/// Each member's keys, and what they make together.
pub(super) fn committee(scenario: &Scenario) -> (Vec<KeyFile>, Arc<Committee>) {
    let Scenario { seed, scheme, weights, settings, .. } = scenario;
    let keys = genesis::keys(*seed, *scheme, scenario.replicas);
    let committee = genesis::committee(*seed, *scheme, settings.key_cache, &keys, weights);
    (keys, Arc::new(committee))
}

/// A host for each member, then a second one for each twin; and the pairs.
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
    let hosts = (0..).zip(members.chain(twins)).map(|(number, member)| {
        let config = HostConfig {
            id: ReplicaId(u16::try_from(member).expect("few members")),
            behaviour: scenario.behaviours[member],
            keys: keys[member].clone(),
            committee: Arc::clone(committee),
            settings: scenario.settings.clone(),
            log: scenario.log.clone(),
            executor: scenario.executor.clone(),
            durations: scenario.durations.clone(),
            clock_rate: scenario.clock_rates[member],
        };
        ReplicaHost::new(config, Dice::new(scenario.seed, "host", number))
    });
    (hosts.collect(), pairs)
}

/// When which client hands in an operation: bursts over the fault phase, and a few after it, so that
/// whoever missed everything hears of something.
pub(super) fn load(scenario: &Scenario, dice: &mut Dice) -> Vec<(Time, usize)> {
    let phase_us = u64::try_from(scenario.fault_phase.as_micros()).expect("seconds");
    let mut load = Vec::new();
    while load.len() < scenario.operations {
        let at = Time(dice.below(phase_us));
        let client = dice.index(scenario.clients);
        let burst = if dice.one_in(8) { dice.index(16) + 1 } else { dice.index(3) + 1 };
        load.extend(std::iter::repeat_n((at, client), burst.min(scenario.operations - load.len())));
    }
    for client in 0..scenario.clients {
        load.push((Time(phase_us + dice.between(&(1..=1_000_000))), client));
    }
    load
}
