//! Keys and committees for a world, from its seed.

use crate::dice::Dice;
use quorate_crypto::{KeyCache, KeyFile, SchemeKind};
use quorate_types::{Committee, CommitteeFile, Epoch, Groups, Member, Weights, deal_keys};

/// The members' keys, and the committee of them.
pub(crate) fn members(
    seed: u64,
    scheme: SchemeKind,
    cache: KeyCache,
    weights: &Weights,
) -> (Vec<KeyFile>, Committee) {
    let (keys, groups) = member_keys(seed, scheme, weights);
    let committee = committee(seed, scheme, cache, &keys, groups, weights);
    (keys, committee)
}

/// The members' keys; where a dealer made the voting keys, its groups.
pub(crate) fn member_keys(
    seed: u64,
    scheme: SchemeKind,
    weights: &Weights,
) -> (Vec<KeyFile>, Option<Groups>) {
    let mut dice = Dice::new(seed, "keys", 0);
    let mut keys: Vec<KeyFile> =
        (0..weights.members()).map(|_| KeyFile::from_seed(scheme, &dice.bytes32())).collect();
    let groups = (scheme == SchemeKind::BlsThreshold).then(|| {
        let dealing = deal_keys(weights, &dice.bytes32()).expect("members of one weight");
        for (keys, dealt) in keys.iter_mut().zip(dealing.secrets) {
            keys.voting = dealt;
        }
        Groups::from(&dealing.groups)
    });
    (keys, groups)
}

/// Each learner's keys.
pub(crate) fn learner_keys(seed: u64, scheme: SchemeKind, learners: usize) -> Vec<KeyFile> {
    let mut dice = Dice::new(seed, "learner keys", 0);
    (0..learners).map(|_| KeyFile::from_seed(scheme, &dice.bytes32())).collect()
}

fn committee(
    seed: u64,
    scheme: SchemeKind,
    cache: KeyCache,
    keys: &[KeyFile],
    groups: Option<Groups>,
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
        groups,
        members: members.collect(),
    };
    Committee::load_simulated(&file, cache).expect("fresh keys are sound")
}
