//! Keys and committees for a world, from its seed.

use crate::dice::Dice;
use quorate_crypto::{KeyCache, KeyFile, SchemeKind};
use quorate_types::{Committee, CommitteeFile, Epoch, Member, Weights};

/// Each member's keys.
pub(crate) fn keys(seed: u64, scheme: SchemeKind, members: usize) -> Vec<KeyFile> {
    let mut dice = Dice::new(seed, "keys", 0);
    (0..members).map(|_| KeyFile::from_seed(scheme, &dice.bytes32())).collect()
}

/// Each learner's keys.
pub(crate) fn learner_keys(seed: u64, scheme: SchemeKind, learners: usize) -> Vec<KeyFile> {
    let mut dice = Dice::new(seed, "learner keys", 0);
    (0..learners).map(|_| KeyFile::from_seed(scheme, &dice.bytes32())).collect()
}

/// The committee of these keys.
pub(crate) fn committee(
    seed: u64,
    scheme: SchemeKind,
    cache: KeyCache,
    keys: &[KeyFile],
    weights: &Weights,
) -> Committee {
    let members = keys.iter().zip(weights.each()).enumerate();
    let members = members.map(|(port, (keys, weight))| Member {
        identity: keys.identity.public().to_string(),
        voting: keys.voting.public().to_string(),
        possession: keys.voting.prove_possession().to_string(),
        address: format!("sim:{port}"),
        weight: *weight,
    });
    let file = CommitteeFile {
        name: format!("sim {seed}"),
        epoch: Epoch(0),
        scheme: scheme.to_string(),
        redundancy: weights.redundant_members(),
        members: members.collect(),
    };
    Committee::load_simulated(&file, cache).expect("fresh keys are sound")
}
