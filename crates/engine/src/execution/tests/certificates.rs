//! Which certificates are kept, and what they are made of.

use super::{AHEAD_MAX, KEPT, START, TestNetwork, block, collector, executed};
use crate::Settings;
use crate::execution::Execution;
use crate::testing::{certify_executed, config, voting};
use quorate_consensus::Rule;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::{Header, Height, ReplicaId};

fn header(height: u64) -> Header {
    Header { height: Height(height), ..Header::default() }
}

fn learnt(execution: &mut Execution) -> Vec<u64> {
    std::iter::from_fn(|| execution.poll_learnt()).map(|proof| proof.header.height.0).collect()
}

/// A certificate is passed on once; one of long ago is neither kept nor passed on.
#[test]
fn certificates_of_long_ago_are_not_kept() {
    let mut execution = TestNetwork::new().members.remove(0);
    execution.resume(START, header(5_000));
    let last_forgotten = 5_000 - KEPT as u64;
    for height in [1, last_forgotten, last_forgotten + 1, 5_001, 5_001] {
        execution.on_proof(START, ReplicaId(1), certify_executed(header(height)));
    }
    assert_eq!(learnt(&mut execution), [last_forgotten + 1, 5_001]);
    assert!(execution.certificate(Height(last_forgotten)).is_none());
    assert!(execution.certificate(Height(last_forgotten + 1)).is_some());
    assert_eq!(execution.newest(), Height(5_001));
}

#[test]
fn where_nothing_is_certified_a_certificate_is_not_kept() {
    let mut execution = Execution::new(&config(0, Settings::default()));
    execution.on_proof(START, ReplicaId(1), certify_executed(header(1)));
    assert_eq!(learnt(&mut execution), []);
    assert!(execution.certificate(Height(1)).is_none());
}

/// Where clients are answered by signed replies, what a snapshot is of is certified all the same,
/// and nothing else is signed.
#[test]
fn heights_of_snapshots_are_certified_in_any_case() {
    let settings = Settings { snapshot_every: 4, ..Settings::default() };
    let mut net = TestNetwork::with(&settings);
    for height in 1..=9 {
        net.execute(&[0, 1, 2, 3], &block(height, 0), 1);
    }
    for member in &mut net.members {
        assert_eq!(learnt(member), [4, 8]);
        assert!(member.deadline().is_none(), "nothing is asked for again");
    }
    assert!(net.replies.is_empty(), "clients have signed replies");
}

#[test]
fn the_last_certificates_are_kept() {
    let mut execution = TestNetwork::new().members.remove(0);
    let certificate = certify_executed(header(1)).certificate;
    let mut learn = |height| {
        let certificate = certificate.clone();
        let proof = ExecutionCertificate { header: header(height), certificate };
        execution.on_proof(START, ReplicaId(1), proof);
        let [_, certified] = execution.occupancy();
        let is_kept = |height| execution.certificate(Height(height)).is_some();
        (certified.entries, certified.bound, [is_kept(1), is_kept(2)])
    };
    for height in 1..KEPT as u64 {
        learn(height);
    }
    assert_eq!(learn(KEPT as u64), (KEPT, KEPT, [true, true]));
    assert_eq!(learn(KEPT as u64 + 1), (KEPT, KEPT, [false, true]));
}

/// After another state is installed what was said of later heights still counts; what was said of
/// earlier ones takes no room.
#[test]
fn a_replaced_state_forgets_what_was_said_of_earlier_heights() {
    let mut execution = TestNetwork::new().members.remove(0);
    let share = voting(1).sign(b"anything");
    for height in 3..=6 {
        let said = (Height(height), quorate_crypto::Digest::ZERO);
        execution.on_share(START, ReplicaId(1), said, share.clone());
    }
    execution.resume(START, header(5));
    assert!(execution.open.keys().eq(&[Height(5), Height(6)]));
    assert_eq!(execution.height(), Height(5));
}

/// A share over something else than it says is reported, and a good one takes its place.
#[test]
fn a_bad_share_is_reported_and_not_counted() {
    let first = collector(1);
    let [bad, good] = [(first + 1) % 4, (first + 2) % 4];
    let (member, mut net) = (ReplicaId(u16::try_from(bad).expect("few")), TestNetwork::new());
    net.execute(&[first], &block(1, 0), 1);
    let said = (Height(1), executed(&block(1, 0), 1).header.root());
    net.members[first].on_share(net.now, member, said, voting(1).sign(b"something else"));
    net.settle();
    let reported = net.members[first].output.misbehaviour.pop_front().expect("found by adding up");
    assert_eq!((reported.member, reported.rule), (member, Rule::InvalidShare));
    assert_eq!(net.members[first].output.misbehaviour.pop_front(), None);
    assert_eq!(net.newest()[first], 0);
    net.execute(&[good], &block(1, 0), 1);
    assert_eq!(net.newest(), [1; 4]);
}

/// Shares are taken for so many heights beyond the own, and for no more.
#[test]
fn shares_far_ahead_are_not_taken() {
    let mut execution = TestNetwork::new().members.remove(0);
    let share = voting(1).sign(b"anything");
    for height in [AHEAD_MAX, AHEAD_MAX + 1] {
        let said = (Height(height), quorate_crypto::Digest::ZERO);
        execution.on_share(START, ReplicaId(1), said, share.clone());
    }
    assert!(execution.open.keys().eq(&[Height(AHEAD_MAX)]));
}
