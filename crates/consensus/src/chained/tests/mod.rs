//! One test for each rule of the specification, at the machine's surface: inputs in, outputs out.
//!
//! A ★ rule's test is a function that returns what it found, so that the table at the end can leave
//! the rule out and see that the test notices.

mod catching_up;
mod certificates;
mod chaos;
mod checks;
mod collecting;
mod costs;
mod encodings;
mod epochs;
mod found_by_simulation;
pub(crate) mod harness;
mod reading;
mod reputation;
mod restart;
mod runs;
mod signed_statements;
mod timing;
pub(crate) mod voting;
mod weights;

/// Each rule that can be left out, with the check that notices.
#[test]
fn every_rule_left_out_is_noticed() {
    use crate::chained::tests::harness::{Row, unnoticed};
    use quorate_crypto::mutants::Mutant;

    let table: [Row; 28] = [
        (Mutant::VoteWithoutBodies, catching_up::check_no_vote_is_repeated_without_its_bodies),
        (Mutant::AnchorUndecided, catching_up::check_an_anchor_is_decided),
        (Mutant::SkipThreshold, certificates::check_qc_needs_a_quorum),
        (Mutant::SkipThreshold, certificates::check_tc_needs_a_quorum_of_distinct_signers),
        (Mutant::CertificateCountsHeads, weights::check_qc_weighs_its_signers),
        (Mutant::CertificateCountsHeads, weights::check_tc_weighs_its_signers),
        (Mutant::TallyCountsHeads, weights::check_votes_are_combined_by_weight),
        (Mutant::WeakCountsHeads, weights::check_timeouts_make_join_by_weight),
        (Mutant::EpochByNumber, certificates::check_certificates_name_the_hand_over),
        (Mutant::ChainedUnboundedTc, certificates::check_tc_bounds_what_it_reports),
        (Mutant::ChainedTcMaximum, certificates::check_tc_shows_the_highest),
        (Mutant::JolteonStaleJustify, certificates::check_block_extends_what_its_tc_reports),
        (Mutant::ChainedDoubleVote, voting::check_one_vote_a_view),
        (Mutant::ChainedDoubleVote, restart::check_a_vote_survives_a_restart),
        (Mutant::ChainedVoteAfterTimeout, timing::check_no_vote_after_a_timeout),
        (Mutant::ChainedVoteBeforePersist, voting::check_nothing_leaves_before_it_is_durable),
        (Mutant::ChainedProposeBeforePersist, voting::check_nothing_leaves_before_it_is_durable),
        (Mutant::ChainedTimeoutBeforePersist, voting::check_nothing_leaves_before_it_is_durable),
        (Mutant::ChainedEnterUncertified, timing::check_no_view_without_a_certificate),
        (Mutant::ChainedAmnesia, restart::check_a_vote_survives_a_restart),
        (Mutant::ChainedForgetTc, restart::check_a_timeout_certificate_survives_a_restart),
        (Mutant::ChainedCommitGap, voting::check_commit_needs_consecutive_views),
        (Mutant::ChainedNewestFirst, voting::check_commit_needs_consecutive_views),
        (Mutant::VoteWithoutBodies, voting::check_vote_needs_the_bodies),
        (Mutant::DeliverBeyondStop, epochs::check_delivery_ends_at_the_stop),
        (Mutant::SignAfterStop, epochs::check_nothing_is_signed_after_the_stop),
        (Mutant::LadenAfterStop, epochs::check_what_follows_a_stop_orders_nothing),
        (Mutant::FollowTheStop, epochs::check_a_run_ends_with_the_stop),
    ];
    assert_eq!(unnoticed(&table), Vec::<String>::new(), "rules that no check would miss");
}
