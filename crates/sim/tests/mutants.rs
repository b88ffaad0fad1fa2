//! The proof that the oracles see: for every rule that a scenario can break, leaving it out is
//! noticed within a few seeds, and the failure says how to see it again.
//!
//! Not here, for no member of a scenario forges what they guard against: `ChainedUnboundedTc`,
//! `ChainedTcMaximum`, `AcceptWrongChunk`, `AvailableBelowWeak`, `AvailableByNumber`, and the rules
//! of damaged disks and of what is deleted from them. Their crates test them at the surface.

use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::faults::Fault;
use quorate_sim::mutants::Active;
use quorate_sim::mutants::Mutant;
use quorate_sim::scenario::changes::PlannedChange;
use quorate_sim::shrink::{Shrinks, Size, file_of, shrink};
use quorate_sim::twins::{Ground, Plan, PlanFile, PlanSize, run_plan, run_plans, shrink_plan};
use quorate_sim::{Scenario, payments, run};
use quorate_types::Time;
use std::sync::Arc;
use std::time::Duration;

/// In one of these many seeds an oracle complains, and does not when the rule is kept.
#[track_caller]
fn is_noticed(protocol: ProtocolKind, mutant: Mutant, seeds: u64, draw: fn(u64) -> Scenario) {
    let draw = |seed| draw(seed).running(protocol);
    let failure = (0..seeds).find_map(|seed| {
        let failure = run(&draw(seed).with_mutant(mutant)).verdict.err()?;
        run(&draw(seed)).verdict.ok()?;
        assert!(failure.replay.starts_with(&format!("quorate sim --seed {seed} ")));
        Some(failure)
    });
    let failure = failure.unwrap_or_else(|| panic!("{mutant:?} was not noticed in {seeds} seeds"));
    assert!(failure.replay.contains(&format!("--mutant {mutant:?}")), "{}", failure.replay);
}

macro_rules! noticed {
    ($protocol:ident: $($name:ident: $mutant:ident in $seeds:literal of $draw:expr;)*) => {$(
        #[test]
        fn $name() {
            is_noticed(ProtocolKind::$protocol, Mutant::$mutant, $seeds, $draw);
        }
    )*};
}

fn short(seed: u64) -> Scenario {
    Scenario::from_seed(seed).short()
}

fn storm(seed: u64) -> Scenario {
    short(seed).with_twins().with_storm()
}

/// Many views time out, and some of their successors' leaders make use of it.
fn stale(seed: u64) -> Scenario {
    let mut scenario = short(seed).with_faulty(Behaviour::StaleLeader);
    scenario.conditions.loss_percent = 20;
    scenario
}

/// Members that make certificates of their own votes alone.
fn forged(seed: u64) -> Scenario {
    short(seed).with_faulty(Behaviour::Forger)
}

/// Three light members of seven, who are within what may fail.
fn light(seed: u64) -> Scenario {
    Scenario::weighted(seed, "4,4,4,4,1,1,1".parse().expect("sound weights")).short()
}

/// They agree on what to tell the clients.
fn liars(seed: u64) -> Scenario {
    let mut scenario = light(seed);
    scenario.behaviours.fill(Behaviour::Honest);
    scenario.behaviours[4..].fill(Behaviour::FalseReplies);
    scenario
}

/// Next to nothing is kept, and some of those that serve snapshots make them up.
fn bad_servers(seed: u64) -> Scenario {
    short(seed).with_faulty(Behaviour::BadServer).with_retention()
}

/// More members than may fail are suspended one after the other, for longer than clocks may differ.
/// A quorum then takes the proposals of the two whose clocks are last; these do not lead one after
/// the other, as a decision needs.
fn suspended(seed: u64) -> Scenario {
    let mut scenario = Scenario::calm(seed, 4);
    scenario.fault_phase = Duration::from_secs(12);
    scenario.settings.clock_drift_max_ms = 500;
    for (host, at) in [1, 2, 0].into_iter().zip(1..) {
        let lasts = Duration::from_secs(2 * at);
        scenario.schedule.push((Time(1_000_000 * at), Fault::Suspend { host, lasts }));
    }
    scenario
}

/// One member's disk is copied, and the copy is put back after it has run on: everything that it
/// signed in between reached somebody.
fn restored(seed: u64) -> Scenario {
    let mut scenario = Scenario::calm(seed, 4);
    let (host, down) = (usize::try_from(seed % 4).expect("few"), Duration::from_millis(50));
    scenario.schedule.push((Time(300_000), Fault::CopyDisk { host, down }));
    scenario.schedule.push((Time(900_000), Fault::PutBack { host, down }));
    scenario
}

/// The same members go on to another epoch.
fn changing(seed: u64) -> Scenario {
    let mut scenario = Scenario::calm(seed, 4);
    scenario.changes.push(PlannedChange::of(&scenario, Duration::from_millis(300)));
    scenario
}

/// One of them comes late, and another lies about how the epoch ended.
fn deceived(seed: u64) -> Scenario {
    let mut scenario = changing(seed);
    scenario.behaviours[1] = Behaviour::BadServer;
    scenario.fault_phase = Duration::from_secs(3);
    let down = Duration::from_millis(2_500);
    scenario.schedule.push((Time(100_000), Fault::Crash { host: 3, down }));
    scenario
}

#[test]
fn an_old_copy_is_told_whatever_the_protocol() {
    for protocol in ProtocolKind::ALL {
        for seed in 0..4 {
            let verdict = run(&restored(seed).running(protocol)).verdict;
            assert_eq!(verdict.map_err(|failure| failure.to_string()), Ok(()), "{protocol}");
        }
    }
}

noticed! {
    Jolteon:
    an_old_copy_that_asks_nobody: SignWithoutWitnesses in 8 of restored;
    wall_clocks_that_stood_still: WallClockOnce in 1 of suspended;
    promises_of_the_epoch_before: RecoverFormerEpoch in 2 of changing;
    a_hand_over_with_another_header: HandOverOtherHeader in 16 of deceived;
    a_certificate_of_many_light_members: CertificateCountsHeads in 40 of light;
    shares_of_many_light_members: TallyCountsHeads in 40 of light;
    replies_of_many_light_members: WeakCountsHeads in 40 of liars;
    a_snapshot_that_one_member_made_up: InstallUnvouched in 60 of bad_servers;
    a_second_vote_in_one_view: ChainedDoubleVote in 20 of short;
    a_vote_after_a_timeout: ChainedVoteAfterTimeout in 20 of short;
    a_vote_without_a_durable_promise: ChainedVoteBeforePersist in 100 of storm;
    promises_forgotten_in_a_restart: ChainedAmnesia in 20 of short;
    a_timeout_certificate_forgotten_in_a_restart: ChainedForgetTc in 30 of short;
    a_block_that_extends_too_little: JolteonStaleJustify in 4000 of stale;
    a_decision_delivered_newest_first: ChainedNewestFirst in 20 of short;
    a_certificate_of_few: SkipThreshold in 40 of short;
    a_vote_without_the_bodies: VoteWithoutBodies in 40 of short;
    a_body_acknowledged_before_it_is_stored: AcknowledgeBeforeStored in 20 of short;
    a_host_that_sends_early: HostSendsEarly in 40 of short;
    a_group_without_a_sync: SkipSync in 20 of short;
    a_segment_without_a_name: SkipDirectorySync in 20 of short;
    a_record_without_its_checksum: AcceptTornRecord in 100 of short;
    sessions_forgotten: ForgetSessions in 40 of short;
    a_request_executed_twice: ExecuteTwice in 40 of short;
    state_and_height_apart: SplitCommit in 40 of short;
    a_reply_of_one_that_lost_its_promises: AnswerUnsigned in 60 of short;
}

noticed! {
    HotStuff:
    a_certificate_that_never_moves: HotStuffStuckHighQc in 20 of short;
}

noticed! {
    HotStuffBasic:
    a_decision_after_two_phases: BasicDecideOnPreCommit in 20 of short;
}

noticed! {
    Pbft:
    a_commit_without_its_certificate_on_disk: WindowedCommitBeforePersist in 100 of storm;
    promises_about_slots_forgotten: WindowedAmnesia in 20 of short;
    a_proof_of_few: SkipThreshold in 12 of forged;
}

noticed! {
    Sbft:
    a_vote_for_a_slot_without_a_durable_promise: WindowedVoteBeforePersist in 100 of storm;
    fast_promises_about_slots_forgotten: WindowedAmnesia in 20 of short;
}

/// A planted mutant is found, shrunk, and fails in the same way when its file is run: same verdict,
/// same events.
#[test]
fn a_planted_mutant_is_found_shrunk_and_replayed() {
    let draw = |seed| short(seed).with_mutant(Mutant::ChainedAmnesia);
    let found = (0..20).find_map(|seed| Some((draw(seed), run(&draw(seed)).verdict.err()?)));
    let (scenario, failure) = found.expect("it is noticed in a few seeds");
    let shrunk = shrink(&scenario, failure.oracle, |step| step.runs < 400).expect("it fails");
    let (before, after) = (Size::of(&scenario), Size::of(&shrunk.scenario));
    assert!(after.faults < before.faults || before.faults == 0, "{before} to {after}");
    assert!(after.operations < before.operations, "{before} to {after}");
    let replayed = run(&Scenario::from_toml(&file_of(&shrunk)).expect("its own file"));
    assert_eq!(replayed.trace_hash, shrunk.report.trace_hash);
    let said = |report: &quorate_sim::Report| {
        report.verdict.clone().map_err(|failure| (failure.oracle, failure.text))
    };
    assert_eq!(said(&replayed), said(&shrunk.report));
    assert_eq!(said(&replayed).expect_err("it still fails").0, failure.oracle);
    // The cause is the rule, not what is left of the scenario.
    let kept = Scenario { mutant: None, ..shrunk.scenario };
    assert_eq!(run(&kept).verdict, Ok(()));
}

/// As the swarm's: a planted mutant is found, shrunk, and its file fails in the same way; without
/// the mutant nothing is wrong with what is left.
#[test]
fn a_mutant_found_by_twins_is_shrunk_and_replayed() {
    for mutant in [Mutant::ChainedDoubleVote, Mutant::ChainedNewestFirst] {
        let plan = twins_shrink(mutant, Plan::draw);
        assert!(plan.next.is_none());
    }
}

/// What two epochs are needed for keeps both.
#[test]
fn a_mutant_found_at_a_border_is_shrunk_and_replayed() {
    let plan = twins_shrink(Mutant::RecoverFormerEpoch, Plan::draw_changing);
    let next = plan.next.as_ref().expect("both epochs are needed");
    assert!(plan.views.is_empty() && next.plan.views.is_empty(), "{plan}");
    assert_eq!((next.protocol, next.replays), (None, false), "{plan}");
}

/// The smallest plan that shows that the rule is left out.
fn twins_shrink(mutant: Mutant, draw: fn(u64) -> Plan) -> Arc<Plan> {
    let ground = Ground::of(ProtocolKind::Jolteon);
    let of_thread = || Ground::of(ProtocolKind::Jolteon);
    let campaign = run_plans(0..500, 2, Some(mutant), draw, of_thread, |_| ());
    let found = campaign.found.first().expect("it is noticed");
    let (drawn, oracle) = (&found.plan, found.violation.oracle);
    let shrunk = shrink_plan(drawn, Some(mutant), oracle, &ground).expect("it fails");
    let (before, after) = (PlanSize::of(drawn), PlanSize::of(&shrunk.file.plan));
    assert!(after.views < before.views && after.obstacles < before.obstacles, "{after}");
    let file = PlanFile::from_toml(&shrunk.to_text()).expect("its own file");
    assert_eq!(file, shrunk.file);
    let plan = Arc::new(file.plan);
    let replayed = {
        let _active = Active::set(file.mutant);
        run_plan(&plan, &ground)
    };
    assert_eq!(replayed, shrunk.outcome);
    assert_eq!(replayed.verdict.expect_err("it still fails").oracle, oracle);
    assert_eq!(run_plan(&plan, &ground).verdict, Ok(()), "the cause is the rule");
    plan
}

#[track_caller]
fn twins_notice(
    protocol: ProtocolKind,
    mutant: Mutant,
    plans: u64,
    draw: fn(u64) -> Plan,
    oracle: &str,
) {
    let ground = || Ground::of(protocol);
    let campaign = run_plans(0..plans, 2, Some(mutant), draw, ground, |_| ());
    let found = campaign.found.iter().any(|found| found.violation.oracle == oracle);
    assert!(found, "{mutant:?} breaks no {oracle} in {plans} plans: {:?}", campaign.found.first());
}

macro_rules! noticed_by_twins {
    (
        $protocol:ident, $draw:ident:
        $($name:ident: $mutant:ident breaks $oracle:literal in $plans:literal;)*
    ) => {$(
        #[test]
        fn $name() {
            let (protocol, mutant) = (ProtocolKind::$protocol, Mutant::$mutant);
            twins_notice(protocol, mutant, $plans, Plan::$draw, $oracle);
        }
    )*};
}

noticed_by_twins! {
    Jolteon, draw:
    twins_notice_a_second_vote_in_one_view: ChainedDoubleVote breaks "audit" in 500;
    twins_notice_a_vote_after_a_timeout: ChainedVoteAfterTimeout breaks "audit" in 500;
    twins_notice_promises_forgotten_in_a_restart: ChainedAmnesia breaks "audit" in 500;
    twins_notice_a_vote_that_is_not_durable: ChainedVoteBeforePersist breaks "audit" in 4_000;
    twins_notice_a_timeout_that_is_not_durable: ChainedTimeoutBeforePersist breaks "audit" in 4_000;
    twins_notice_a_proposal_that_is_not_durable: ChainedProposeBeforePersist breaks "audit" in 4_000;
    twins_notice_a_decision_delivered_newest_first: ChainedNewestFirst breaks "prefix" in 500;
    twins_notice_a_view_entered_without_a_certificate: ChainedEnterUncertified breaks "conduct" in 500;
    twins_notice_a_void_block_delivered: DeliverBeyondStop breaks "void" in 2_000;
    twins_notice_a_vote_after_the_stop_block: SignAfterStop breaks "after the end" in 500;
}

noticed_by_twins! {
    Pbft, draw:
    twins_notice_promises_about_slots_forgotten: WindowedAmnesia breaks "slots" in 500;
    twins_notice_a_second_value_for_a_slot: WindowedAcceptTwice breaks "slots" in 500;
    twins_notice_a_view_change_that_is_not_durable: WindowedChangeBeforePersist breaks "slots" in 2_000;
    twins_notice_a_commit_that_is_not_durable: WindowedCommitBeforePersist breaks "slots" in 2_000;
    twins_notice_a_vote_after_the_stop_slot: SignAfterStop breaks "after the end" in 500;
}

noticed_by_twins! {
    Sbft, draw:
    twins_notice_a_fast_vote_that_is_not_durable: WindowedVoteBeforePersist breaks "slots" in 2_000;
    twins_notice_a_second_fast_value_for_a_slot: WindowedAcceptTwice breaks "slots" in 500;
}

noticed_by_twins! {
    HotStuffBasic, draw:
    twins_notice_a_second_vote_for_a_block: ChainedDoubleVote breaks "audit" in 500;
    twins_notice_a_basic_promise_forgotten: ChainedAmnesia breaks "audit" in 500;
    twins_notice_a_phase_forgotten_in_a_restart: BasicForgetPhase breaks "audit" in 500;
    twins_notice_a_decision_by_two_phases: BasicDecideOnPreCommit breaks "progress" in 50;
}

noticed_by_twins! {
    Jolteon, draw_changing:
    twins_notice_promises_of_the_epoch_before: RecoverFormerEpoch breaks "conduct" in 10;
    twins_notice_a_hand_over_with_another_header: HandOverOtherHeader breaks "hand-over" in 200;
    twins_notice_a_void_block_in_two_epochs: DeliverBeyondStop breaks "void" in 100;
    twins_notice_a_vote_behind_a_border: SignAfterStop breaks "after the end" in 10;
    twins_notice_promises_forgotten_behind_a_border: ChainedAmnesia breaks "audit" in 500;
}

noticed_by_twins! {
    Pbft, draw_changing:
    twins_notice_slots_of_the_epoch_before: RecoverFormerEpoch breaks "conduct" in 10;
    twins_notice_a_slot_behind_a_border: SignAfterStop breaks "after the end" in 10;
    twins_notice_a_second_value_behind_a_border: WindowedAcceptTwice breaks "slots" in 500;
}

/// As [`is_noticed`], of payments.
#[track_caller]
fn is_missed_by_payers(mutant: Mutant, seeds: u64) {
    let draw = payments::Scenario::from_seed;
    let failure = (0..seeds).find_map(|seed| {
        let failure = payments::run(&draw(seed).with_mutant(mutant)).verdict.err()?;
        payments::run(&draw(seed)).verdict.ok()?;
        let replay = format!("quorate sim --payments --seed {seed} --mutant {mutant:?}");
        assert_eq!(failure.replay, replay);
        Some(failure)
    });
    assert!(failure.is_some(), "{mutant:?} was not noticed in {seeds} seeds");
}

macro_rules! missed_by_payers {
    ($($name:ident: $mutant:ident in $seeds:literal;)*) => {$(
        #[test]
        fn $name() {
            is_missed_by_payers(Mutant::$mutant, $seeds);
        }
    )*};
}

missed_by_payers! {
    votes_for_outputs_that_payers_name: PayVoteNamedOutputs in 400;
    locks_by_a_name_that_others_share: PayLockByName in 400;
    votes_without_locks: PayNoLocks in 400;
    locks_by_halves: PayPartialLock in 400;
    votes_before_locks_are_durable: PayVoteBeforePersist in 400;
    repeated_transactions_refused: PayRefuseRepeats in 400;
    outputs_worth_more_than_inputs: PayInflate in 400;
    sums_that_wrap_around: PayOverflow in 400;
    inputs_named_twice: PayDuplicateInputs in 400;
    owners_that_did_not_sign: PayAnyOwner in 400;
    inputs_without_certificates: PayTrustCertificates in 400;
    inputs_that_no_transaction_made: PayTrustPath in 400;
    votes_of_two_shards: PayAnyShard in 400;
    roots_of_anybody: PayRootOfAnybody in 400;
    issues_by_anybody: PayAnyIssuer in 400;
    votes_over_frozen_coins: PayVoteOverFrozen in 400;
    reports_before_freezes_are_durable: PayReportBeforePersist in 400;
    refunded_coins_that_are_free: PayRefundSetsFree in 400;
    refunds_to_anybody: PayRefundToAnybody in 400;
    releases_by_a_majority: PayReleaseMostReported in 800;
    releases_input_by_input: PayReleaseOneInput in 400;
    releases_to_whoever_signed: PayReleaseToAnybody in 400;
    silence_taken_for_nothing: PayReleaseUnheard in 400;
    freezes_by_anybody: PayFreezeByAnybody in 400;
    reports_in_anothers_name: PayReportByAnybody in 400;
    votes_after_the_report_of_all_locks: PayVoteAfterClosing in 400;
    closings_that_are_not_durable: PayCloseBeforePersist in 400;
    closings_in_anothers_name: PayCloseForAnybody in 400;
    decisions_left_out_of_the_report: PayCloseUndecided in 400;
    the_first_of_two_candidates_taken: PayUnionTakesOne in 400;
    certificates_under_leaked_keys: PayTrustFormerEpochs in 400;
    one_report_taken_for_an_honest_word: PayAdmitOnOneReport in 400;
    inherited_locks_that_are_not_checked: PayTrustInherited in 400;
}

/// As the swarm's: found, shrunk, and its file fails in the same way; without the mutant nothing is
/// wrong with what is left.
#[test]
fn a_mutant_that_payers_miss_is_shrunk_and_replayed() {
    let draw = |seed| payments::Scenario::from_seed(seed).with_mutant(Mutant::PayReleaseUnheard);
    let found =
        (0..100).find_map(|seed| Some((draw(seed), payments::run(&draw(seed)).verdict.err()?)));
    let (scenario, failure) = found.expect("it is noticed in a few seeds");
    let shrunk = shrink(&scenario, failure.oracle, |step| step.runs < 400).expect("it fails");
    let (before, after) = (scenario.size(), shrunk.scenario.size());
    assert!(after.faults < before.faults || before.faults == 0, "{before} to {after}");
    let fewer = after.payments + after.crimes < before.payments + before.crimes;
    assert!(fewer, "{before} to {after}");
    let read = payments::Scenario::from_toml(&file_of(&shrunk)).expect("its own file");
    let replayed = payments::run(&read);
    assert_eq!(replayed.trace_hash, shrunk.report.trace_hash);
    assert_eq!(replayed.verdict.expect_err("it still fails").oracle, failure.oracle);
    let kept = payments::Scenario { mutant: None, ..shrunk.scenario };
    assert_eq!(payments::run(&kept).verdict, Ok(()));
}
