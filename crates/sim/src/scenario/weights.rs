//! Weights of a scenario's committee, and who may be faulty among members that weigh differently.

use crate::byzantine::Behaviour;
use quorate_consensus::ProtocolKind;
use quorate_deterministic::Rng;
use quorate_types::Weights;

/// Weights for a committee: in three of four draws all weigh the same.
pub(super) fn draw(rng: &mut Rng, members: usize) -> Weights {
    let equal = Weights::equal(members);
    if !rng.one_in(4) {
        return equal;
    }
    let each = match rng.below(3) {
        0 => one_heavy(rng, members),
        1 => (0..members).map(|_| rng.between(&(1..=5))).collect(),
        _ => (0..members).map(|_| rng.between(&(1..=100))).collect(),
    };
    // A quorum in one hand is refused: rare enough to go without.
    Weights::new(each).unwrap_or(equal)
}

/// Weights as a protocol can take them: equal ones where it counts heads, with redundancy for half
/// of the committees whose size has room for it where it has a fast path.
pub(super) fn fitting(protocol: ProtocolKind, seed: u64, weights: &Weights) -> Weights {
    if protocol.check_weights(weights) == Ok(()) && protocol.windowed_rules().is_none() {
        return weights.clone();
    }
    let equal = Weights::equal(weights.members());
    let wants = Rng::new(seed, "redundancy", 0).coin();
    let tolerated = equal.faulty_max();
    let redundant = equal.clone().with_redundancy(u64::from(wants));
    redundant
        .ok()
        .filter(|redundant| redundant.faulty_max() == tolerated)
        .filter(|redundant| protocol.check_weights(redundant) == Ok(()))
        .unwrap_or(equal)
}

/// Somebody weighs up to twice what all others weigh together, the most that is allowed.
fn one_heavy(rng: &mut Rng, members: usize) -> Vec<u64> {
    let mut each = vec![1; members];
    let heavy = rng.index(members);
    each[heavy] = rng.between(&(2..=2 * (members as u64 - 1)));
    each
}

/// As many members with this behaviour as may fail, the first ones that fit.
pub(super) fn fill_budget(weights: &Weights, behaviour: Behaviour) -> Vec<Behaviour> {
    let mut budget = weights.faulty_max();
    let take = |weight: &u64| {
        let fits = *weight <= budget;
        budget -= if fits { *weight } else { 0 };
        if fits { behaviour } else { Behaviour::Honest }
    };
    weights.each().iter().map(take).collect()
}

/// Behaviours were drawn by heads: who is too heavy becomes honest. With a chance of one half the
/// rest of the budget is spent, on more members than heads would allow if they are light.
pub(super) fn keep_budget(weights: &Weights, behaviours: &mut [Behaviour], rng: &mut Rng) {
    let mut budget = weights.faulty_max();
    for (behaviour, weight) in behaviours.iter_mut().zip(weights.each()) {
        if *behaviour == Behaviour::Honest {
            continue;
        }
        match budget.checked_sub(*weight) {
            Some(left) => budget = left,
            None => *behaviour = Behaviour::Honest,
        }
    }
    if !rng.coin() {
        return;
    }
    let start = rng.index(behaviours.len());
    for turn in 0..behaviours.len() {
        let member = (start + turn) % behaviours.len();
        let left = budget.checked_sub(weights.of(member));
        if let (Behaviour::Honest, Some(left)) = (behaviours[member], left) {
            budget = left;
            behaviours[member] = *rng.choose(&Behaviour::FAULTY_IF_WEIGHTED);
        }
    }
}
