//! One test for each rule in which basic HotStuff differs from the chained protocols.

mod encodings;
mod liveness;
mod restart;
mod rules;

use crate::ProtocolKind;
use crate::chained::tests::harness::{Check, Cluster, Keys, certificates};
use crate::chained::{Block, Message, Phase, PhaseVote, Qc};

/// Four members, none of whom has said anything.
fn four() -> Cluster {
    Cluster::running(ProtocolKind::HotStuffBasic)
}

fn certify(keys: &Keys, phase: Phase, block: &Block) -> Qc {
    keys.certify_in(phase, block, &[0, 1, 2])
}

/// The block of `view` on a certified one of any earlier view that timed out, with the timeout
/// certificate that reports it.
fn after_timeouts(keys: &Keys, view: u64, justify: &Qc, height: u64) -> Block {
    let mut block = keys.block(view, justify, height, &[]);
    block.tc = Some(keys.tc(view - 1, justify, &[(justify.view.0, &[0, 1, 2])]));
    block
}

/// Message of a leader when a phase has its votes.
fn phase_message(keys: &Keys, phase: Phase, block: &Block) -> Message {
    let qc = certify(keys, phase, block);
    match phase {
        Phase::Prepare | Phase::Commit => certificates(&qc, None),
        Phase::PreCommit => Message::PreCommitted(qc),
    }
}

/// Shows a block to a member, from its author.
fn show(cluster: &mut Cluster, to: u16, block: &Block) -> Check {
    let proposal = cluster.keys.propose(block);
    cluster.tell(to, block.author.0, proposal)
}

/// Shows what a phase's votes have come to, from the view's leader.
fn show_phase(cluster: &mut Cluster, to: u16, phase: Phase, block: &Block) -> Check {
    let message = phase_message(&cluster.keys, phase, block);
    cluster.tell(to, block.author.0, message)
}

/// The views and phases in which a member sent votes.
fn voted_in(cluster: &Cluster, id: u16) -> Vec<(u64, Phase)> {
    let place = |message: &Message| match message {
        Message::Vote(vote) => Some((vote.view.0, Phase::Prepare)),
        Message::PhaseVote(PhaseVote { phase, vote }) => Some((vote.view.0, *phase)),
        _ => None,
    };
    cluster.node(id).sent().filter_map(place).collect()
}

/// Each rule that can be left out, with the check that notices.
#[test]
fn every_rule_left_out_is_noticed() {
    use crate::chained::tests::harness::{Row, unnoticed};
    use quorate_crypto::mutants::Mutant;

    let table: [Row; 15] = [
        (Mutant::BasicVoteTwiceInPhase, rules::check_one_vote_a_phase),
        (Mutant::BasicVoteBeforePersist, rules::check_nothing_leaves_before_it_is_durable),
        (Mutant::BasicNoLock, rules::check_nothing_leaves_before_it_is_durable),
        (Mutant::BasicNoLock, rules::check_the_lock_holds),
        (Mutant::BasicPhaseUnsigned, rules::check_no_phase_passes_for_another),
        (Mutant::BasicRememberByBlock, rules::check_no_phase_passes_for_another),
        (Mutant::BasicDecideOnPreCommit, rules::check_the_third_phase_decides),
        (Mutant::BasicForgetPhase, restart::check_votes_survive_a_restart),
        (Mutant::BasicNoNewViews, rules::check_a_leader_waits_for_new_views),
        (Mutant::HotStuffVoidLock, rules::check_the_lock_holds),
        (Mutant::HotStuffForgetLock, restart::check_the_lock_survives_a_restart),
        (Mutant::HotStuffNoSalvage, liveness::check_a_withheld_decision_is_made_again),
        (Mutant::ChainedAmnesia, restart::check_the_lock_survives_a_restart),
        (Mutant::ChainedCommitGap, rules::check_the_third_phase_decides),
        (Mutant::ChainedDoubleVote, rules::check_one_vote_a_phase),
    ];
    assert_eq!(unnoticed(&table), Vec::<String>::new(), "rules that no check would miss");
}
