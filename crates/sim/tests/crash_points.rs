//! The rules whose absence the crash points show, each within the first points that they concern.

use quorate_engine::ProtocolKind;
use quorate_sim::crash_points::{Options, Role, run};
use quorate_sim::mutants::Mutant;

/// With the rule left out of this protocol something is wrong, and this oracle says so.
#[track_caller]
fn is_noticed(protocol: ProtocolKind, mutant: Mutant, oracle: &str) {
    is_noticed_by(protocol, None, mutant, oracle);
}

/// As [`is_noticed`], at the host that has this part in a change of committee.
#[track_caller]
fn is_noticed_by(protocol: ProtocolKind, border: Option<Role>, mutant: Mutant, oracle: &str) {
    let options =
        Options { threads: 1, only: None, every: 1, protocol, border, mutant: Some(mutant) };
    let report = run(&options, |_, _| {});
    let broken = report.broken.first().unwrap_or_else(|| panic!("{mutant:?} was not noticed"));
    assert_eq!(broken.violation.oracle, oracle, "{broken}");
}

macro_rules! noticed {
    ($protocol:ident: $($name:ident: $mutant:ident by $oracle:literal;)*) => {$(
        #[test]
        fn $name() {
            is_noticed(ProtocolKind::$protocol, Mutant::$mutant, $oracle);
        }
    )*};
}

noticed! {
    Jolteon:
    a_group_without_a_sync: SkipSync by "durability";
    a_segment_without_a_name: SkipDirectorySync by "durability";
    a_record_without_its_checksum: AcceptTornRecord by "storage";
    corruption_taken_for_a_torn_end: TruncateCorruption by "corruption";
    a_sync_tried_again: RetryFailedSync by "fail-stop";
    a_failure_forgotten: GoOnAfterFailure by "fail-stop";
    a_page_cache_believed: TrustPageCache by "durability";
    state_and_height_apart: SplitCommit by "prefix";
    sessions_forgotten: ForgetSessions by "exactly once";
    a_request_executed_twice: ExecuteTwice by "exactly once";
    segments_given_up_before_the_log_says_so: PruneBeforeCommit by "storage";
    the_latest_promise_given_up: PruneLatestRecord by "durability";
    what_is_not_executed_given_up: PruneUnexecuted by "durability";
    a_host_that_sends_early: HostSendsEarly by "audit";
    a_second_vote_in_one_view: ChainedDoubleVote by "audit";
    a_vote_after_a_timeout: ChainedVoteAfterTimeout by "audit";
    a_vote_without_a_durable_promise: ChainedVoteBeforePersist by "audit";
    a_proposal_without_a_durable_promise: ChainedProposeBeforePersist by "audit";
    a_timeout_without_a_durable_promise: ChainedTimeoutBeforePersist by "audit";
    promises_forgotten_in_a_restart: ChainedAmnesia by "audit";
    a_timeout_certificate_forgotten_in_a_restart: ChainedForgetTc by "progress";
}

noticed! {
    HotStuff:
    requests_thrown_away: HotStuffDropUnlessLeading by "progress";
    a_certificate_that_never_moves: HotStuffStuckHighQc by "progress";
}

noticed! {
    Sbft:
    a_slots_vote_without_a_durable_promise: WindowedVoteBeforePersist by "slots";
    a_vote_to_decide_without_a_durable_certificate: WindowedCommitBeforePersist by "slots";
    a_slots_promises_forgotten_in_a_restart: WindowedAmnesia by "slots";
}

noticed! {
    HotStuffBasic:
    a_decision_after_two_phases: BasicDecideOnPreCommit by "progress";
}

/// Rules of the border, in every protocol, at hosts of each part named.
macro_rules! noticed_over_a_change {
    ($($name:ident: $mutant:ident by $oracle:literal at $($role:ident)+;)*) => {$(
        #[test]
        fn $name() {
            for protocol in ProtocolKind::ALL {
                $(is_noticed_by(protocol, Some(Role::$role), Mutant::$mutant, $oracle);)+
            }
        }
    )*};
}

noticed_over_a_change! {
    an_epoch_begun_before_it_is_noted: EpochUnrecorded by "borders" at Stays Joins;
    a_hand_over_without_a_durable_record: HandOverUnrecorded by "durability" at Stays Leaves;
    promises_of_the_epoch_before: RecoverFormerEpoch by "conduct" at Stays;
}

/// What a recovered replica is offered is in the words of its own protocol: in another's, nothing
/// of it would be looked at.
#[test]
fn a_second_vote_in_one_view_of_any_protocol() {
    for protocol in ProtocolKind::CHAINED {
        is_noticed(protocol, Mutant::ChainedDoubleVote, "audit");
    }
}
