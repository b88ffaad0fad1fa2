//! One test for each rule in which HotStuff differs from the other chained protocols, and for the
//! cases that its paper's listings get wrong.

mod encodings;
mod liveness;
mod restart;
mod rules;

use crate::ProtocolKind;
use crate::chained::tests::harness::{Check, Cluster, Keys, Recorded};
use crate::chained::{Block, Qc, SafetyRecord};

/// Four members, none of whom has said anything.
fn four() -> Cluster {
    Cluster::running(ProtocolKind::HotStuff)
}

/// The block of `view` on a certified one, with a timeout certificate of the view before where
/// there is a gap.
fn extend(keys: &Keys, view: u64, justify: &Qc, height: u64) -> Block {
    let mut block = keys.block(view, justify, height, &[]);
    if view != justify.view.0 + 1 {
        let reports: &[u16] = &[0, 1, 2];
        block.tc = Some(keys.tc(view - 1, justify, &[(justify.view.0, reports)]));
    }
    block
}

/// Blocks of these views, each on the one before it, the first at `height`; with their
/// certificates.
fn chain(keys: &Keys, views: &[u64], from: &Qc, height: u64) -> Vec<(Block, Qc)> {
    let mut justify = from.clone();
    let mut chain = Vec::new();
    for (height, view) in (height..).zip(views) {
        let block = extend(keys, *view, &justify, height);
        justify = keys.certify(&block);
        chain.push((block, justify.clone()));
    }
    chain
}

/// Shows a block to a member, from its author.
fn show(cluster: &mut Cluster, to: u16, block: &Block) -> Check {
    let proposal = cluster.keys.propose(block);
    cluster.tell(to, block.author.0, proposal)
}

/// The views in which a member promised to vote, each once: a vote that it collects itself is not
/// sent.
fn voted_in(cluster: &Cluster, id: u16) -> Vec<u64> {
    let promises = cluster.node(id).said.iter().filter_map(|said| match said {
        Recorded::Persist(record) => {
            Some(borsh::from_slice::<SafetyRecord>(record).expect("its own"))
        }
        Recorded::Send(..) => None,
    });
    let mut views: Vec<u64> =
        promises.filter_map(|promised| Some(promised.last_vote?.view.0)).collect();
    views.dedup();
    views
}

/// Each rule that can be left out, with the check that notices.
#[test]
fn every_rule_left_out_is_noticed() {
    use crate::chained::tests::harness::{Row, unnoticed};
    use quorate_crypto::mutants::Mutant;

    let table: [Row; 16] = [
        (Mutant::AnyProtocol, rules::check_another_protocols_messages_are_refused),
        (Mutant::HotStuffVoidLock, rules::check_no_vote_below_the_lock),
        (Mutant::HotStuffForgetLock, restart::check_a_lock_survives_a_restart),
        (Mutant::HotStuffTwoChain, rules::check_three_in_a_row_decide),
        (Mutant::ChainedCommitGap, rules::check_links_without_consecutive_views_decide_nothing),
        (Mutant::ChainedNewestFirst, rules::check_links_without_consecutive_views_decide_nothing),
        (Mutant::ChainedDoubleVote, rules::check_one_vote_a_view),
        (Mutant::ChainedAmnesia, restart::check_a_lock_survives_a_restart),
        (Mutant::HotStuffNothingDecides, rules::check_three_in_a_row_decide),
        (Mutant::HotStuffKeepNewest, rules::check_deciding_together_or_apart_is_the_same),
        (Mutant::HotStuffStuckHighQc, liveness::check_a_committee_decides),
        (Mutant::HotStuffLearnVotedOnly, rules::check_blocks_without_votes_teach),
        (Mutant::HotStuffVoteToProposer, rules::check_votes_go_to_the_next_leader),
        (Mutant::HotStuffComplainToNext, liveness::check_dead_leaders_in_a_row),
        (Mutant::HotStuffNoSalvage, liveness::check_one_crashed_leader_of_four),
        (
            Mutant::HotStuffDropLateVotes,
            liveness::check_a_hurried_withheld_certificate_is_made_again,
        ),
    ];
    assert_eq!(unnoticed(&table), Vec::<String>::new(), "rules that no check would miss");
}
