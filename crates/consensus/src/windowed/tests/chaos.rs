//! Anything may be lost, repeated, reordered or restarted; then nothing is, and everything is
//! decided.

use super::cluster::{Cluster, Envelope, nothing};
use super::*;
use crate::random_draws::Rng;
use quorate_crypto::Digest;
use std::collections::BTreeMap;

type Check = Result<(), String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

/// What each member signed, across restarts: one value a view and slot, and nothing below a view
/// that it moved to.
#[derive(Default)]
struct Audit {
    proposed: BTreeMap<(u8, View, Height), Digest>,
    accepted: BTreeMap<(u8, View, Height), Digest>,
    committed: BTreeMap<(u8, View, Height), Digest>,
    decided: BTreeMap<usize, BlockId>,
}

impl Audit {
    fn hear(&mut self, envelope: &Envelope) -> Check {
        let from = envelope.from;
        let (said, proposal) = match &envelope.message {
            Message::PrePrepare(proposed) => (&mut self.proposed, proposed.proposal()),
            Message::SignShare(share) => (&mut self.accepted, share.proposal),
            Message::CommitShare(share) => (&mut self.committed, share.proposal),
            _ => return Ok(()),
        };
        let Proposal { view, slot, digest } = proposal;
        let first = *said.entry((from, view, slot)).or_insert(digest);
        ensure(first == digest, || format!("r{from} said two values in {view} at {slot}"))
    }

    /// All that any member decided at a height is one value.
    fn compare(&mut self, cluster: &Cluster) -> Check {
        for decided in cluster.decided() {
            for (height, id) in decided.into_iter().enumerate() {
                let first = *self.decided.entry(height).or_insert(id);
                ensure(first == id, || format!("two values at slot {}", height + 1))?;
            }
        }
        Ok(())
    }
}

fn step(cluster: &mut Cluster, rng: &mut Rng, audit: &mut Audit, until: &mut u64) -> Check {
    let id = u8::try_from(rng.below(4)).expect("few");
    match rng.below(100) {
        0..4 => {
            *until += 1;
            cluster.fill(*until);
        }
        4..6 => cluster.restart_alone(id),
        6..16 => cluster.ring_alone(id),
        16..26 => drop(cluster.take(rng.below(usize::MAX))),
        _ => {
            let next = rng.below(12);
            if let Some(envelope) = cluster.take(next) {
                audit.hear(&envelope)?;
                if rng.below(8) == 0 {
                    cluster.put_back(envelope.clone());
                }
                cluster.give(envelope);
            }
        }
    }
    Ok(())
}

fn check_a_run(protocol: ProtocolKind, seed: u64) -> Check {
    let mut cluster = Cluster::of(protocol, &committee_file(4, 0), nothing);
    let (mut rng, mut audit) = (Rng(seed), Audit::default());
    let mut until = 0;
    for _ in 0..600 {
        step(&mut cluster, &mut rng, &mut audit, &mut until)?;
        audit.compare(&cluster)?;
    }
    ensure(!audit.accepted.is_empty(), || "nothing was said".to_owned())?;
    // From here on nothing is lost: what is new gets decided by everybody.
    cluster.order(until + 3);
    cluster.reach(&[0, 1, 2, 3], usize::try_from(until + 3).expect("few"));
    audit.compare(&cluster)
}

#[test]
fn after_any_storm_everything_is_decided() {
    let seeds = std::env::var("CHAOS_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(20);
    let only = std::env::var("CHAOS_SEED").ok().and_then(|s| s.parse().ok());
    for seed in only.map_or(0..seeds, |seed: u64| seed..seed + 1) {
        for protocol in ProtocolKind::WINDOWED {
            if let Err(found) = check_a_run(protocol, seed) {
                let command = "cargo test -p quorate-consensus windowed::tests::chaos";
                panic!("{protocol}: {found}\nreplay: CHAOS_SEED={seed} {command}");
            }
        }
    }
}
