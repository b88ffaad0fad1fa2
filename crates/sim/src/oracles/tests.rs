//! Each oracle is shown a history that breaks its property, and complains; and one that does not.

use super::*;
use quorate_consensus as consensus;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{
    Block, Message as Statement, Phase, PhaseVote, Proposal, Qc, Tc, Timeout, Vote,
};
use quorate_consensus::leader::LeaderReputation;
use quorate_crypto::{Aggregate, Bitmap, Certificate, IdentityKey, Share, Signature};
use quorate_engine::{Acknowledgement, Availability as Proof, Settings};
use quorate_types::{Available, BlockId, ClientId, EpochId, Header, Outcome, View};

const R0: ReplicaId = ReplicaId(0);
const R1: ReplicaId = ReplicaId(1);

fn digest(number: u8) -> Digest {
    Digest([number; 32])
}

fn id(number: u8) -> BlockId {
    BlockId(digest(number))
}

fn seen(operation: &'static str) -> Seen {
    (ClientId(IdentityKey([7; 32])), Bytes::from(operation))
}

fn executed(replica: ReplicaId, height: u64, root: u8, operations: &[Seen]) -> Observation<'_> {
    let header = header(height, root);
    let (height, root, payload) = (header.height, header.root(), digest(root));
    Observation::Executed { replica, height, root, payload, operations }
}

fn complaint(oracle: &mut dyn Oracle, history: &[Observation<'_>]) -> Option<String> {
    history.iter().find_map(|observation| oracle.observe(observation).err())
}

#[track_caller]
fn accepts(oracle: &mut dyn Oracle, history: &[Observation<'_>]) {
    assert_eq!(complaint(oracle, history), None);
}

#[track_caller]
fn complains(oracle: &mut dyn Oracle, history: &[Observation<'_>], about: &str) {
    let text = complaint(oracle, history).expect("a complaint");
    assert!(text.contains(about), "complained: {text}");
}

// ---- agreement, prefix, exactly once ------------------------------------------------------------

#[test]
fn agreement_is_one_root_and_one_payload_a_height() {
    let two_roots = [executed(R0, 1, 1, &[]), executed(R1, 1, 2, &[])];
    complains(&mut Agreement::default(), &two_roots, "payload");
    let root = |root| Observation::Executed {
        replica: R0,
        height: Height(1),
        root: digest(root),
        payload: digest(9),
        operations: &[],
    };
    complains(&mut Agreement::default(), &[root(1), root(2)], "came to root");
    accepts(&mut Agreement::default(), &[executed(R0, 1, 1, &[]), executed(R1, 1, 1, &[])]);
}

fn booted(executed: &ExecutedUpTo) -> Observation<'_> {
    Observation::Booted { replica: R0, executed: Some(executed) }
}

fn header(height: u64, root: u8) -> Header {
    Header { height: Height(height), state: digest(root), ..Header::default() }
}

fn up_to(height: u64, root: u8) -> ExecutedUpTo {
    ExecutedUpTo {
        header: header(height, root),
        decided: Bytes::new(),
        operations: 0,
        recent: Vec::new(),
    }
}

#[test]
fn a_prefix_has_no_gap_and_a_crash_goes_back_to_one() {
    let execute = |height, root| executed(R0, height, root, &[]);
    let prefix = || Prefix::default();
    complains(&mut prefix(), &[execute(1, 1), execute(3, 3)], "executed h3 after h1");
    complains(&mut prefix(), &[execute(1, 1), execute(1, 1)], "executed h1 after h1");
    let (first, ahead, other) = (up_to(1, 1), up_to(3, 3), up_to(1, 9));
    let two = || [execute(1, 1), execute(2, 2)].into_iter();
    let then = |observation| two().chain([observation]).collect::<Vec<_>>();
    complains(&mut prefix(), &then(booted(&ahead)), "had executed h2 only");
    complains(&mut prefix(), &then(booted(&other)), "recovered root");
    let again = |root| [booted(&first), execute(2, root)];
    complains(&mut prefix(), &two().chain(again(9)).collect::<Vec<_>>(), "before its crash");
    accepts(&mut prefix(), &two().chain(again(2)).collect::<Vec<_>>());
}

#[test]
fn an_operation_is_executed_once_and_only_if_it_was_submitted() {
    let (a, b) = ([seen("a")], [seen("b")]);
    let twice = [seen("a"), seen("a")];
    let submitted = || Observation::Submitted { operation: &a[0].1 };
    let once = || ExactlyOnce::default();
    complains(&mut once(), &[executed(R0, 1, 1, &a)], "nobody submitted");
    complains(&mut once(), &[submitted(), executed(R0, 1, 1, &twice)], "executed one operation");
    let at_two = [submitted(), executed(R0, 1, 1, &a), executed(R0, 2, 2, &a)];
    complains(&mut once(), &at_two, "at h1 and at h2");
    let differ = [submitted(), executed(R0, 1, 1, &a), executed(R1, 1, 1, &b)];
    complains(&mut once(), &differ, "other operations at h1");
    accepts(&mut once(), &[submitted(), executed(R0, 1, 1, &a), executed(R1, 1, 1, &a)]);
}

// ---- clients ------------------------------------------------------------------------------------

fn told(height: u64, position: u64) -> Completed {
    let outcome = Outcome::Applied(Bytes::copy_from_slice(&position.to_le_bytes()));
    Completed { outcome, height: Height(height), receipt: None }
}

fn acknowledged(completed: &Completed, log: &[Seen], height: Option<u64>) -> Result<(), String> {
    let mut oracle = Acknowledged::default();
    let operation = Bytes::from("a");
    accepts(&mut oracle, &[Observation::Completed { operation: &operation, completed }]);
    accepts(&mut oracle, &[executed(R0, 1, 1, &[]), executed(R0, 2, 2, log)]);
    oracle.finish(&RunEnd { heights: vec![(R0, height.map(Height))], ..RunEnd::default() })
}

#[test]
fn an_acknowledgement_is_true_and_stays_true() {
    let log = [seen("z"), seen("a")];
    let about = |result: Result<(), String>| result.expect_err("a complaint");
    assert_eq!(acknowledged(&told(2, 1), &log, Some(2)), Ok(()));
    assert!(about(acknowledged(&told(2, 1), &log[..1], Some(2))).contains("never executed"));
    assert!(about(acknowledged(&told(1, 1), &log, Some(2))).contains("was executed at h2"));
    assert!(
        about(acknowledged(&told(2, 0), &log, Some(2))).contains("the operation at position 1")
    );
    assert!(about(acknowledged(&told(2, 1), &log, Some(1))).contains("r0 lacks h2"));
}

#[test]
fn an_operation_completes_once() {
    let (operation, completed) = (Bytes::from("a"), told(1, 0));
    let done = || Observation::Completed { operation: &operation, completed: &completed };
    complains(&mut Acknowledged::default(), &[done(), done()], "completed twice");
}

#[test]
fn progress_is_everything_done_and_everybody_there() {
    let (operation, completed) = (Bytes::from("a"), told(1, 0));
    let submitted = || Observation::Submitted { operation: &operation };
    let done = || Observation::Completed { operation: &operation, completed: &completed };
    let end = |history: &[Observation<'_>], heights: [Option<u64>; 2]| {
        let mut oracle = Progress::default();
        accepts(&mut oracle, history);
        let heights = [R0, R1].into_iter().zip(heights.map(|height| height.map(Height)));
        oracle.finish(&RunEnd { heights: heights.collect(), ..RunEnd::default() })
    };
    let about = |result: Result<(), String>| result.expect_err("a complaint");
    assert!(about(end(&[], [Some(1), Some(1)])).contains("none of 0"));
    let half = [submitted(), submitted(), done()];
    assert!(about(end(&half, [Some(1), Some(1)])).contains("1 of 2"));
    let log = [seen("a")];
    let filled = || [submitted(), done(), executed(R0, 2, 2, &log), executed(R0, 3, 3, &[])];
    assert!(about(end(&filled(), [Some(3), Some(1)])).contains("r1 is at h1, others executed h2"));
    assert!(about(end(&filled(), [Some(3), None])).contains("r1 is down"));
    assert_eq!(end(&filled(), [Some(3), Some(2)]), Ok(()));
    assert_eq!(end(&[submitted(), done()], [Some(1), Some(1)]), Ok(()));
}

// ---- caps and false accusations ---------------------------------------------------------------

#[test]
fn memory_and_frames_have_caps() {
    let settings = Settings::default();
    let check = |observation| complaint(&mut Caps::new(&settings, 4), &[observation]);
    let mempool_bytes = settings.mempool_bytes_max as u64 + 1;
    let full = Status { mempool_bytes, ..Status::default() };
    assert!(check(Observation::Shown { status: &full }).is_some_and(|t| t.contains("mempool")));
    let bodies = Status { bodies_bytes: 1 << 40, ..Status::default() };
    assert!(check(Observation::Shown { status: &bodies }).is_some_and(|t| t.contains("bodies")));
    let empty = Status::default();
    assert_eq!(check(Observation::Shown { status: &empty }), None);
    let occupied = |entries| {
        let collections = [Occupancy::new("parked", 3, 16), Occupancy::new("votes", entries, 2)];
        let occupied = Observation::Occupied { replica: R0, collections: &collections };
        complaint(&mut Caps::new(&settings, 4), &[occupied])
    };
    assert!(occupied(3).is_some_and(|text| text.contains("3 entries in 'votes', of 2")));
    assert_eq!(occupied(2), None);
    let message = Message::FetchBodies(Vec::new());
    let sent = |tag, bytes| Observation::Released { replica: R0, message: &message, tag, bytes };
    let tag = message.tag().number();
    assert!(check(sent(tag, 1 << 20)).is_some_and(|t| t.contains("tag 5")));
    assert!(check(sent(200, 1)).is_some_and(|t| t.contains("tag 200")));
    assert_eq!(check(sent(tag, 100)), None);
}

#[test]
fn correct_members_do_not_halt_and_find_nothing_wrong_with_one_another() {
    let halt = Halt::CorruptRecovery("torn".into());
    complains(
        &mut FalseAccusations::default(),
        &[Observation::Halted { replica: R0, halt: &halt }],
        "r0 halted",
    );
    let stops = Observation::StoppedSigning { replica: R0, reason: "an old copy" };
    complains(&mut FalseAccusations::default(), &[stops], "r0 stopped signing: an old copy");
    let proven = |is_correct| Observation::Proven {
        replica: R0,
        member: R1,
        rule: Rule::DoubleVote,
        is_correct,
    };
    complains(&mut FalseAccusations::default(), &[proven(true)], "r1, which is correct, broke");
    accepts(&mut FalseAccusations::default(), &[proven(false)]);
    let refused = |reason| {
        complaint(&mut FalseAccusations::default(), &[Observation::Refused { reason, tag: 1 }])
    };
    assert!(refused(&Rejected::BelowThreshold).is_some());
    assert_eq!(refused(&Rejected::Stale), None);
}

// ---- restored -----------------------------------------------------------------------------------

#[test]
fn a_member_on_an_old_copy_signs_nothing_and_finds_out() {
    let (restored, stops) = (
        Observation::Restored { replica: R0 },
        Observation::StoppedSigning { replica: R0, reason: "an old copy" },
    );
    let mut oracle = Restored::default();
    accepts(&mut oracle, &[restored]);
    let unaware = oracle.finish(&RunEnd::default()).expect_err("it never knew");
    assert!(unaware.contains("r0 runs on an old copy"), "{unaware}");
    let vote = Message::Consensus(quorate_consensus::Message::Jolteon(vote_message()));
    let sent = Observation::Released { replica: R0, message: &vote, tag: 1, bytes: 0 };
    complains(&mut oracle, &[sent], "r0 runs on an old copy and sent a vote");
    let mut clear = Status { id: R0, ..Status::default() };
    clear.witnesses.state = quorate_engine::WitnessState::Clear;
    complains(&mut oracle, &[Observation::Shown { status: &clear }], "takes no notice");
    accepts(&mut FalseAccusations::default(), &[Observation::Restored { replica: R0 }, stops]);
    accepts(&mut oracle, &[Observation::StoppedSigning { replica: R0, reason: "" }]);
    assert_eq!(oracle.finish(&RunEnd::default()), Ok(()));
}

// ---- quorums ------------------------------------------------------------------------------------

fn signed_by(each: &[u64], signers: &[usize]) -> Option<String> {
    let mut qc = certificate(3, 1);
    qc.certificate.signers = Bitmap::from_indices(each.len(), signers.iter().copied());
    let shown = Statement::Certificates { high_qc: qc, high_tc: None };
    let message = Message::Consensus(consensus::Message::Jolteon(shown));
    let released = Observation::Released { replica: R0, message: &message, tag: 1, bytes: 0 };
    complaint(&mut Quorums::new(each), &[released])
}

#[test]
fn a_certificate_weighs_a_quorum() {
    let few = signed_by(&[3, 1, 1, 1], &[1, 2, 3]).expect("three of six");
    assert!(few.contains("a certificate of v3 is signed by {1, 2, 3}: 3 of 6"), "{few}");
    assert_eq!(signed_by(&[3, 1, 1, 1], &[0, 1, 2]), None);
    assert!(signed_by(&[4, 4, 4, 4, 1, 1, 1], &[0, 1, 2]).is_some());
    for each in [[1; 4], [5; 4]] {
        assert!(signed_by(&each, &[0, 3]).is_some());
        assert_eq!(signed_by(&each, &[0, 2, 3]), None);
    }
    assert_eq!(signed_by(&[2; 6], &[0, 1, 2, 3]), None, "four equals of six are enough");
    assert!(signed_by(&[2, 1, 1, 1, 1], &[1, 2, 3, 4]).is_some());
}

#[test]
fn the_groups_of_a_timeout_certificate_weigh_a_quorum_together() {
    let group = |signers: &[usize]| Certificate {
        signers: Bitmap::from_indices(4, signers.iter().copied()),
        aggregate: Aggregate(Vec::new()),
    };
    let check = |second: &[usize]| {
        let groups = vec![(View(0), group(&[0])), (View(1), group(second))];
        let tc = Tc { view: View(4), high_qc: certificate(0, 1), groups };
        let shown = Statement::Certificates { high_qc: certificate(0, 1), high_tc: Some(tc) };
        let message = Message::Consensus(consensus::Message::Jolteon(shown));
        let released = Observation::Released { replica: R0, message: &message, tag: 1, bytes: 0 };
        complaint(&mut Quorums::new(&[3, 1, 1, 1]), &[released])
    };
    assert!(check(&[0, 1]).is_some_and(|text| text.contains("a timeout certificate of v4")));
    assert_eq!(check(&[1, 3]), None);
}

// ---- audit --------------------------------------------------------------------------------------

fn vote(view: u64, block: u8) -> Vote {
    let share = Share(vec![block]);
    let (base_view, base_id) = (View(view - 1), id(0));
    Vote { view: View(view), id: id(block), base_view, base_id, signer: R0, share }
}

fn certificate(view: u64, block: u8) -> Qc {
    let certificate = Certificate { signers: Bitmap::new(4), aggregate: Aggregate(Vec::new()) };
    Qc { view: View(view), id: id(block), base_view: View(0), base_id: id(0), certificate }
}

fn timeout(view: u64, high_qc: Qc, last_vote: Option<Vote>) -> Statement {
    let share = Share(Vec::new());
    Statement::Timeout(Timeout {
        view: View(view),
        high_qc,
        high_tc: None,
        last_vote,
        signer: R0,
        share,
    })
}

fn proposal(view: u64, stamp: u64) -> Statement {
    let payload = Payload::new(Height(1), stamp, Vec::new());
    let justify = certificate(view - 1, 1);
    let block = Block {
        epoch: EpochId::default(),
        view: View(view),
        author: R0,
        justify,
        tc: None,
        reputation: LeaderReputation::new(),
        payload,
    };
    Statement::Proposal(Proposal { block, signature: Vec::new() })
}

fn audit(history: Vec<Statement>) -> Option<String> {
    let mut oracle = Audit::default();
    history.into_iter().find_map(|statement| {
        let message = Message::Consensus(consensus::Message::Jolteon(statement));
        let released = Observation::Released { replica: R0, message: &message, tag: 1, bytes: 0 };
        oracle.observe(&released).err()
    })
}

#[track_caller]
fn audit_complains(history: Vec<Statement>, about: &str) {
    let text = audit(history).expect("a complaint");
    assert!(text.contains(about), "complained: {text}");
}

#[test]
fn one_vote_a_view() {
    audit_complains(
        vec![Statement::Vote(vote(3, 1)), Statement::Vote(vote(3, 2))],
        "voted in v3 for",
    );
    let inside = timeout(3, certificate(2, 1), Some(vote(3, 2)));
    audit_complains(vec![Statement::Vote(vote(3, 1)), inside], "voted in v3 for");
    audit_complains(
        vec![Statement::Vote(vote(5, 1)), Statement::Vote(vote(4, 2))],
        "voted in v4 (Prepare) after voting in v5",
    );
    let later = |phase, id| Statement::PhaseVote(PhaseVote { phase, vote: vote(3, id) });
    let back = vec![later(Phase::Commit, 1), later(Phase::PreCommit, 1)];
    audit_complains(back, "(PreCommit) after voting in v3 (Commit)");
    let twice = vec![later(Phase::Commit, 1), later(Phase::Commit, 2)];
    audit_complains(twice, "voted in v3 for");
    let phases =
        vec![Statement::Vote(vote(3, 1)), later(Phase::PreCommit, 1), later(Phase::Commit, 1)];
    assert_eq!(audit(phases), None);
    let again =
        vec![Statement::Vote(vote(3, 1)), Statement::Vote(vote(4, 2)), Statement::Vote(vote(3, 1))];
    assert_eq!(audit(again), None);
}

#[test]
fn no_vote_after_a_timeout() {
    let timed_out = || timeout(4, certificate(3, 1), None);
    audit_complains(vec![timed_out(), Statement::Vote(vote(4, 2))], "after its timeout of v4");
    audit_complains(vec![timed_out(), Statement::Vote(vote(3, 2))], "after its timeout of v4");
    // The vote was signed first, and says so inside the timeout; then it is sent once more.
    let inside = timeout(4, certificate(3, 1), Some(vote(4, 2)));
    assert_eq!(audit(vec![inside, Statement::Vote(vote(4, 2))]), None);
}

#[test]
fn a_lock_never_goes_back() {
    let history = vec![timeout(4, certificate(3, 1), None), timeout(5, certificate(2, 2), None)];
    audit_complains(history, "reported a certificate of v2 in v5");
    let history = vec![timeout(4, certificate(3, 1), None), timeout(3, certificate(3, 1), None)];
    audit_complains(history, "gave up v3 after v4");
}

#[test]
fn one_proposal_a_view_and_only_the_own() {
    audit_complains(vec![proposal(3, 1), proposal(3, 2)], "proposed twice in v3");
    assert_eq!(audit(vec![proposal(3, 1), proposal(3, 1), proposal(4, 2)]), None);
    let mut oracle = Audit::default();
    let message = Message::Consensus(consensus::Message::Jolteon(proposal(3, 1)));
    let foreign = Observation::Released { replica: R1, message: &message, tag: 1, bytes: 0 };
    complains(&mut oracle, &[foreign], "sent a proposal of r0");
}

#[test]
fn a_vote_needs_the_bodies_on_the_own_disk() {
    let body = BodyRef { author: R1, sequence: 1, digest: digest(1) };
    let Statement::Proposal(mut proposal) = proposal(3, 1) else { unreachable!() };
    proposal.block.payload = Payload::new(Height(1), 1, vec![body]);
    let of = |statement| Message::Consensus(consensus::Message::Jolteon(statement));
    let vote = Vote { id: proposal.block.id(), ..vote(3, 1) };
    let messages = [of(Statement::Proposal(proposal.clone())), of(Statement::Vote(vote))];
    let released = |index: usize| Observation::Released {
        replica: R0,
        message: &messages[index],
        tag: 1,
        bytes: 0,
    };
    let (proposed, voted) = (|| released(0), || released(1));
    let availability = || Availability::new(Proof::Stored);
    complains(&mut availability(), &[proposed(), voted()], "voted in v3 without");
    let stored = || Observation::Stored { replica: R0, body };
    accepts(&mut availability(), &[proposed(), stored(), voted()]);
    let lost = Observation::Kept { replica: R0, bodies: &[] };
    complains(&mut availability(), &[proposed(), stored(), lost, voted()], "voted in v3 without");
    // Where bodies are certified it is enough that another correct member stores them.
    let certified = || Availability::new(Proof::Certified);
    complains(&mut certified(), &[proposed(), voted()], "on any correct member's disk");
    let elsewhere = Observation::Stored { replica: R1, body };
    complains(&mut availability(), &[proposed(), elsewhere, voted()], "on its disk");
    let elsewhere = Observation::Stored { replica: R1, body };
    accepts(&mut certified(), &[proposed(), elsewhere, voted()]);
    // Or that the block was executed somewhere, whatever became of its bodies then; another block
    // does not help.
    let executed = |payload: &Payload| Observation::Executed {
        replica: R1,
        height: payload.header.height,
        root: digest(1),
        payload: payload_hash(payload),
        operations: &[],
    };
    let payload = &proposal.block.payload;
    accepts(&mut certified(), &[proposed(), executed(payload), voted()]);
    let again = Payload::new(Height(2), 2, payload.bodies.clone());
    complains(&mut certified(), &[proposed(), executed(&again), voted()], "any correct member's");
    complains(&mut availability(), &[proposed(), executed(payload), voted()], "on its disk");
}

#[test]
fn an_acknowledged_body_is_on_the_disk() {
    let body = BodyRef { author: R1, sequence: 7, digest: digest(1) };
    let available = Available { author: R1, sequence: 7, link: digest(2) };
    let given = Acknowledgement { available, signature: Signature([0; 64]) };
    let message = Message::Acknowledgement(given);
    let tag = message.tag().number();
    let given = || Observation::Released { replica: R0, message: &message, tag, bytes: 0 };
    let oracle = || Availability::new(Proof::Certified);
    complains(&mut oracle(), &[given()], "acknowledged r1#7, not on its disk");
    let other = BodyRef { sequence: 8, ..body };
    let elsewhere = Observation::Stored { replica: R1, body };
    let history = [Observation::Stored { replica: R0, body: other }, elsewhere, given()];
    complains(&mut oracle(), &history, "acknowledged r1#7, not on its disk");
    accepts(&mut oracle(), &[Observation::Stored { replica: R0, body }, given()]);
}

#[test]
fn one_certificate_a_view() {
    let history = vec![timeout(4, certificate(3, 1), None), timeout(5, certificate(3, 2), None)];
    audit_complains(history, "are certified");
}

#[test]
fn correct_members_must_meet_within_some_views() {
    let judge = |together, views_after| {
        let ending = RunEnd { together, views_after, ..RunEnd::default() };
        Together::new(4).finish(&ending)
    };
    assert!(judge(false, 33).expect_err("they never met").contains("33 views"));
    assert_eq!(judge(false, 32), Ok(()));
    assert_eq!(judge(true, 1_000), Ok(()));
}

#[test]
fn who_lost_its_promises_may_not_make_another() {
    let mut oracle = Wiped::default();
    let says = |oracle: &mut Wiped| {
        let message = Message::Consensus(quorate_consensus::Message::Jolteon(vote_message()));
        let released = Observation::Released { replica: R0, message: &message, tag: 1, bytes: 9 };
        oracle.observe(&released)
    };
    assert_eq!(says(&mut oracle), Ok(()));
    oracle.observe(&Observation::Wiped { replica: R0 }).expect("it may happen");
    assert!(says(&mut oracle).expect_err("it votes").contains("a vote"));
}

#[test]
fn a_halt_is_final_and_shows_its_evidence() {
    let halted = |evidence: &str| quorate_types::machine::Halt::ConflictingDecisions {
        height: Height(3),
        evidence: evidence.to_owned(),
    };
    let mut oracle = Halting::default();
    let halt = halted("nothing");
    let bare = oracle.observe(&Observation::Halted { replica: R0, halt: &halt });
    assert!(bare.expect_err("no certificate").contains("no certificate"));
    let mut oracle = Halting::default();
    let halt = halted("Qc(v4 b1 after v3) signed by {0, 1, 2}/4");
    oracle.observe(&Observation::Halted { replica: R0, halt: &halt }).expect("it has evidence");
    let again = oracle.observe(&Observation::Booted { replica: R0, executed: None });
    assert!(again.expect_err("it started").contains("after it had halted"));
}

fn vote_message() -> quorate_consensus::chained::Message {
    quorate_consensus::chained::Message::Vote(quorate_consensus::chained::Vote {
        view: quorate_types::View(2),
        id: quorate_types::BlockId(quorate_crypto::Digest([2; 32])),
        base_view: quorate_types::View(1),
        base_id: quorate_types::BlockId(quorate_crypto::Digest([1; 32])),
        signer: R0,
        share: quorate_crypto::Share(vec![7; 16]),
    })
}

/// Nobody forges in a scenario, so this is the only place where the oracle speaks.
#[test]
fn a_certificate_of_what_nobody_said_is_noticed() {
    use quorate_consensus::chained::{Message as Statement, Qc};
    use quorate_crypto::{Aggregate, Bitmap, Certificate, Digest};
    let quorate_consensus::chained::Message::Vote(vote) = vote_message() else { unreachable!() };
    let high_qc = Qc {
        view: vote.view,
        id: quorate_types::BlockId(Digest([2; 32])),
        base_view: vote.base_view,
        base_id: vote.base_id,
        certificate: Certificate {
            signers: Bitmap::from_indices(4, [0, 1, 2]),
            aggregate: Aggregate(vec![1; 16]),
        },
    };
    let mut oracle = Departures::new(vec![true, true, false, true]);
    let mut release = |statement: Statement| {
        let message = Message::Consensus(quorate_consensus::Message::Jolteon(statement));
        oracle.observe(&Observation::Released { replica: R0, message: &message, tag: 1, bytes: 9 })
    };
    let shown = Statement::Certificates { high_qc, high_tc: None };
    let refused = release(shown.clone()).expect_err("two correct members never voted");
    assert!(refused.contains("who never said so"), "{refused}");
    release(Statement::Vote(vote)).expect("a vote");
    assert_eq!(release(shown), Ok(()), "the other one collected it");
}
