//! Rules of PBFT and SBFT, one test each, named after the rule and with its section: inputs in,
//! outputs out.

mod bounds;
mod certificates;
mod chaos;
mod checkpoints;
mod cluster;
mod collecting;
mod costs;
mod encodings;
mod epochs;
mod fast_path;
mod harness;
mod ignored;
mod new_views;
mod normal_case;
mod proposing;
mod protocol_view;
mod recovery;
mod retransmission;
mod runs;
mod signed_statements;
mod view_changes;
mod waits;

use super::values::encode;
use super::*;
use crate::{Input, Liveness, Output, ProposalKey, ProtocolConfig, ProtocolKind, Verifier};
use bytes::Bytes;
use quorate_crypto::{Bitmap, Dealing, KeyCache, KeyFile, Policy, SchemeKind, VotingSecret, hash};
use quorate_types::{
    AgreedSettings, Anchor, BlockId, Committee, CommitteeFile, Epoch, EpochId, Groups, Height,
    Kind, Machine, Member, Payload, Peer, Purpose, Rejected, ReplicaId, Time, Verified, Verify,
    View, Weights, deal_keys,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const MEMBERS: u8 = 4;

fn keys(member: u8) -> KeyFile {
    KeyFile::from_seed(SchemeKind::Ed25519, &[member; 32])
}

fn verifier(protocol: ProtocolKind) -> Arc<Verifier> {
    verifier_of(protocol, MEMBERS, 0)
}

fn verifier_of(protocol: ProtocolKind, members: u8, redundancy: u64) -> Arc<Verifier> {
    verifier_with(protocol, &committee_file(members, redundancy))
}

/// Epoch of a committee of four.
fn epoch() -> EpochId {
    verifier(ProtocolKind::Pbft).committee().epoch_id()
}

/// Of an epoch that begins after this height.
fn verifier_after(protocol: ProtocolKind, anchor: Anchor) -> Arc<Verifier> {
    let committee = Committee::load(&committee_file(MEMBERS, 0), KeyCache::Off);
    let committee = Arc::new(committee.expect("a sound committee"));
    let verifier = Verifier::new(committee, protocol, ProposalKey::Identity);
    Arc::new(verifier.starting_after(anchor))
}

fn verifier_with(protocol: ProtocolKind, file: &CommitteeFile) -> Arc<Verifier> {
    let committee = Committee::load(file, KeyCache::Off).expect("a sound committee");
    Arc::new(Verifier::new(Arc::new(committee), protocol, ProposalKey::Identity))
}

fn committee_file(members: u8, redundancy: u64) -> CommitteeFile {
    let member = |index: u8| Member::new(&keys(index).public(), String::new());
    CommitteeFile {
        name: "windowed".into(),
        network: None,
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        redundancy,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..members).map(member).collect(),
    }
}

fn dealing(members: usize, redundancy: u64) -> Dealing {
    let weights = Weights::equal(members).with_redundancy(redundancy).expect("3f + 2c + 1");
    deal_keys(&weights, &[7; 32]).expect("members of one weight")
}

/// The same committee, with keys that were dealt.
fn dealt_committee_file(members: u8, redundancy: u64) -> CommitteeFile {
    let dealing = dealing(usize::from(members), redundancy);
    let mut file = committee_file(members, redundancy);
    file.scheme = SchemeKind::BlsThreshold.to_string();
    file.groups = Some(Groups::from(&dealing.groups));
    for (member, secret) in file.members.iter_mut().zip(&dealing.secrets) {
        member.voting = secret.public().to_string();
    }
    file
}

/// Voting secret of a member of the committee.
fn voting(committee: &Committee, member: u8) -> VotingSecret {
    if !committee.splits_keys() {
        return keys(member).voting;
    }
    let redundancy = committee.weights().redundant_members();
    dealing(committee.size(), redundancy).secrets.swap_remove(usize::from(member))
}

fn config(verifier: &Arc<Verifier>, id: u8) -> ProtocolConfig {
    ProtocolConfig {
        id: ReplicaId(u16::from(id)),
        identity: Arc::new(keys(id).identity),
        voting: Arc::new(voting(verifier.committee(), id)),
        verifier: Arc::clone(verifier),
        timeout: Duration::from_secs(1),
        vote_wait: Duration::ZERO,
        policy: Policy::Aggregate,
        clock_drift_max_ms: 1_000,
        wall_origin_ms: 0,
        signs: true,
        liveness: Liveness::default(),
    }
}

fn replica(verifier: &Arc<Verifier>, id: u8) -> Windowed {
    machine(config(verifier, id))
}

fn machine(config: ProtocolConfig) -> Windowed {
    let rules = config.verifier.protocol().windowed_rules().expect("a windowed protocol");
    Windowed::new(config, rules)
}

#[test]
fn each_rule_left_out_is_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    let checks: [(Mutant, fn()); 27] = [
        (Mutant::WindowedAcceptTwice, normal_case::one_value_gets_a_vote),
        (Mutant::WindowedVoteBeforePersist, normal_case::a_vote_follows_its_record),
        (Mutant::VoteWithoutBodies, normal_case::a_vote_waits_for_its_bodies),
        (Mutant::WindowedProposeBeforePersist, proposing::a_pre_prepare_follows_its_record),
        (Mutant::WindowedFillNewView, new_views::slots_of_the_new_view_are_not_the_primarys),
        (Mutant::ViewChangeAnyEvidence, view_changes::evidence_is_checked),
        (Mutant::ViewChangeWithoutValue, view_changes::a_prepared_report_has_its_value),
        (Mutant::WindowedCommitWithoutValue, normal_case::a_vote_to_commit_waits_for_the_value),
        (Mutant::WindowedCommitBeforePersist, normal_case::a_vote_to_commit_follows_its_record),
        (Mutant::WindowedForgetStable, checkpoints::a_window_moves_once_that_is_durable),
        (Mutant::WindowedChangeBeforePersist, view_changes::a_view_change_follows_its_record),
        (Mutant::WindowedActBeforeNewView, new_views::nothing_counts_before_the_view_has_begun),
        (Mutant::NewViewToAnyClaim, new_views::one_claim_makes_no_null_slots),
        (Mutant::NewViewByOldChanges, new_views::only_view_changes_into_the_view_count),
        (Mutant::NewViewByFew, new_views::a_new_view_names_as_many_as_are_honest),
        (Mutant::PrePrepareOfAnybody, certificates::a_pre_prepare_comes_from_its_primary_alone),
        (Mutant::SuspicionOfOne, view_changes::what_f_1_members_suspect_all_do),
        (
            Mutant::LeaveByFewSuspicions,
            view_changes::a_view_ends_when_as_many_suspect_as_are_honest,
        ),
        (Mutant::FastProofByQuorum, certificates::a_fast_proof_takes_all_but_the_redundant),
        (Mutant::WindowedForgetBase, recovery::slots_of_the_new_view_stay_its_own),
        (Mutant::WindowedAmnesia, recovery::an_accepted_value_stays_accepted),
        (Mutant::DeliverBeyondStop, epochs::slots_behind_the_stop_are_void),
        (Mutant::SignAfterStop, epochs::nothing_is_signed_after_the_stop),
        (Mutant::ProposeBeyondStop, epochs::nothing_is_proposed_behind_a_stop),
        (Mutant::FollowTheStop, epochs::a_run_ends_with_the_stop),
        (Mutant::EpochFromZero, epochs::a_view_change_begins_after_the_anchor),
        (Mutant::WindowedSayWithoutBodies, recovery::a_vote_waits_for_bodies_that_were_lost),
    ];
    for (mutant, test) in checks {
        assert_noticed(mutant, test);
    }
}
