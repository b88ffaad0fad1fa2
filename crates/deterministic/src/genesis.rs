//! Keys and committees for simulated runs, from their seed.

use crate::rng::Rng;
use quorate_crypto::{KeyCache, KeyFile, SchemeKind};
use quorate_types::{
    AgreedSettings, Committee, CommitteeFile, Epoch, Groups, Member, Weights, deal_keys,
};

/// The wall clock at the beginning of a run, in milliseconds since the Unix epoch: 2030-03-17.
pub const WALL_ORIGIN_MS: u64 = 1_900_000_000_000;

/// Members' keys and the committee of them, with addresses that nobody connects to.
///
/// # Panics
/// When the scheme needs members of one weight and they are not.
#[must_use]
pub fn members(
    seed: u64,
    scheme: SchemeKind,
    cache: KeyCache,
    weights: &Weights,
) -> (Vec<KeyFile>, Committee) {
    let (keys, groups) = member_keys(seed, scheme, weights);
    let file = committee_file(seed, scheme, &keys, groups, weights);
    let committee = Committee::load_simulated(&file, cache).expect("fresh keys are sound");
    (keys, committee)
}

/// Members' keys; where a dealer made the voting keys (threshold schemes), its groups.
///
/// # Panics
/// As [`members`].
#[must_use]
pub fn member_keys(
    seed: u64,
    scheme: SchemeKind,
    weights: &Weights,
) -> (Vec<KeyFile>, Option<Groups>) {
    let mut rng = Rng::new(seed, "keys", 0);
    let mut keys: Vec<KeyFile> =
        (0..weights.members()).map(|_| KeyFile::from_seed(scheme, &rng.bytes32())).collect();
    let groups = (scheme == SchemeKind::BlsThreshold).then(|| {
        let dealing = deal_keys(weights, &rng.bytes32()).expect("members of one weight");
        for (keys, dealt) in keys.iter_mut().zip(dealing.secrets) {
            keys.voting = dealt;
        }
        Groups::from(&dealing.groups)
    });
    (keys, groups)
}

/// Keys of learners, by their number.
#[must_use]
pub fn learner_keys(seed: u64, scheme: SchemeKind, learners: usize) -> Vec<KeyFile> {
    let mut rng = Rng::new(seed, "learner keys", 0);
    (0..learners).map(|_| KeyFile::from_seed(scheme, &rng.bytes32())).collect()
}

/// The file of a committee of these keys, which founds its network. Its settings are the defaults,
/// and nobody reads them: replicas here are given theirs.
#[must_use]
pub fn committee_file(
    seed: u64,
    scheme: SchemeKind,
    keys: &[KeyFile],
    groups: Option<Groups>,
    weights: &Weights,
) -> CommitteeFile {
    let members = keys.iter().zip(weights.each()).enumerate();
    let members = members.map(|(port, (keys, weight))| Member {
        weight: *weight,
        ..Member::new(&keys.public(), format!("sim:{port}"))
    });
    CommitteeFile {
        name: format!("sim {seed}"),
        network: None,
        epoch: Epoch(0),
        scheme: scheme.to_string(),
        redundancy: weights.redundant_members(),
        settings: AgreedSettings::default(),
        groups,
        from_state: None,
        members: members.collect(),
    }
}
