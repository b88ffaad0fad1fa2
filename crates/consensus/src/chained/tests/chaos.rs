//! Anything may be lost, repeated, reordered or restarted; then nothing is, and everything is
//! decided.

use super::harness::*;
use crate::ProtocolKind;
use crate::chained::{Message, Phase, Vote};
use crate::random_draws::Rng;
use std::collections::BTreeMap;

/// Votes of an honest replica: one id a view and phase, across restarts.
#[derive(Default)]
struct Audit {
    voted: BTreeMap<(u16, u64, Phase), quorate_types::BlockId>,
    proposed: BTreeMap<u64, quorate_types::BlockId>,
    heard: usize,
}

impl Audit {
    fn hear(&mut self, envelope: &Envelope) -> Check {
        self.heard += 1;
        match &envelope.message {
            Message::Vote(vote) => self.hear_vote(envelope.from, Phase::Prepare, vote),
            Message::PhaseVote(said) => self.hear_vote(envelope.from, said.phase, &said.vote),
            Message::Proposal(proposal) => {
                let id = crate::block_tree::TreeBlock::id(&proposal.block);
                let first = *self.proposed.entry(proposal.block.view.0).or_insert(id);
                ensure(first == id, format!("two proposals in {}", proposal.block.view))
            }
            _ => Ok(()),
        }
    }

    fn hear_vote(&mut self, from: u16, phase: Phase, vote: &Vote) -> Check {
        let key = (from, vote.view.0, phase);
        let first = *self.voted.entry(key).or_insert(vote.id);
        ensure(first == vote.id, format!("r{from} voted twice in {}", vote.view))
    }
}

fn step(
    cluster: &mut Cluster,
    rng: &mut Rng,
    audit: &mut Audit,
    submitted: &mut Vec<u64>,
) -> Check {
    let id = u16::try_from(rng.below(4)).expect("few");
    match rng.below(100) {
        0..3 => {
            submitted.push(submitted.len() as u64);
            cluster.submit(submitted.len() as u64 - 1);
        }
        3..5 => cluster.restart(id),
        5..6 => cluster.restart_executed(id),
        6..16 => {
            if cluster.node(id).machine_timeout().is_some() {
                cluster.fire(id)?;
            }
        }
        16..26 => {
            let lost = rng.below(cluster.wire.len());
            cluster.wire.remove(lost);
        }
        _ => {
            let next = rng.below(cluster.wire.len().min(12));
            if let Some(envelope) = cluster.wire.remove(next) {
                audit.hear(&envelope)?;
                if rng.below(8) == 0 {
                    cluster.wire.push_back(envelope.clone());
                }
                let _ = cluster.give(envelope.to, envelope.from, envelope.message);
            }
        }
    }
    Ok(())
}

fn check_a_run(protocol: ProtocolKind, seed: u64) -> Check {
    let mut cluster = Cluster::running(protocol);
    let (mut rng, mut audit) = (Rng(seed), Audit::default());
    let mut submitted = Vec::new();
    let mut blocks: BTreeMap<u64, quorate_types::BlockId> = BTreeMap::new();
    for _ in 0..600 {
        step(&mut cluster, &mut rng, &mut audit, &mut submitted)?;
        for node in &cluster.nodes {
            for decided in &node.decided {
                let height = decided.payload.header.height.0;
                let first = *blocks.entry(height).or_insert(decided.block);
                ensure(first == decided.block, format!("two blocks at height {height}"))?;
            }
            ensure(node.halted.is_none(), format!("{:?}", node.halted))?;
        }
    }
    // From here on nothing is lost: what is new gets decided by everybody.
    for k in 1_000..1_003 {
        cluster.submit(k);
    }
    cluster.run("decisions after the storm", |c| c.all_decided(&[1_000, 1_001, 1_002]))?;
    ensure(audit.heard > 0 && !audit.voted.is_empty(), "nothing was said")?;
    cluster.ensure_agreement()
}

#[test]
fn after_any_storm_everything_is_decided() {
    let seeds = std::env::var("CHAOS_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let only = std::env::var("CHAOS_SEED").ok().and_then(|s| s.parse().ok());
    for seed in only.map_or(0..seeds, |seed: u64| seed..seed + 1) {
        for protocol in ProtocolKind::CHAINED {
            if let Err(found) = check_a_run(protocol, seed) {
                let command = "cargo test -p quorate-consensus storm";
                panic!("{protocol}: {found}\nreplay: CHAOS_SEED={seed} {command}");
            }
        }
    }
}
