//! Four members that executed, and a network that a test may cut.

use super::{Checkpoints, OPEN_MAX};
use crate::testing::{committee, config, voting};
use crate::{Message, Settings};
use quorate_consensus::Rule;
use quorate_crypto::{Bitmap, hash};
use quorate_types::executed::{CheckpointCertificate, checkpoint_statement};
use quorate_types::{Header, Height, Purpose, Recipients, Rejected, ReplicaId, Time};
use std::collections::BTreeSet;
use std::time::Duration;

const EVERY: u64 = 128;

struct TestNetwork {
    now: Time,
    members: Vec<Checkpoints>,
    /// Nobody hears of these.
    dead: BTreeSet<usize>,
    made: Vec<(usize, CheckpointCertificate)>,
}

fn header(height: u64, state: u8) -> Header {
    Header { height: Height(height), state: hash(&[state]), ..Header::default() }
}

impl TestNetwork {
    fn new() -> Self {
        let new = |member| Checkpoints::new(&config(member, Settings::default()), Some(EVERY));
        let members = (0..4).map(new).collect();
        Self { now: Time(1_000_000), members, dead: BTreeSet::new(), made: Vec::new() }
    }

    /// These members come to a state.
    fn execute(&mut self, members: &[usize], height: u64, state: u8) {
        for member in members {
            self.members[*member].executed(self.now, &header(height, state));
        }
        self.settle();
    }

    fn settle(&mut self) {
        let mut busy = true;
        while busy {
            busy = false;
            for member in 0..4 {
                while let Some(job) = self.members[member].output.jobs.pop_front() {
                    busy = true;
                    self.members[member].on_combined(self.now, &job.run());
                }
                while let Some(made) = self.members[member].poll_made() {
                    self.made.push((member, made));
                }
                while let Some((to, message)) = self.members[member].output.outbox.pop_front() {
                    busy = true;
                    assert_eq!(to, Recipients::All);
                    self.deliver(member, &message);
                }
            }
        }
    }

    fn deliver(&mut self, from: usize, message: &Message) {
        let Message::CheckpointShare(height, root, share) = message else {
            panic!("{message:?}");
        };
        for to in (0..4).filter(|to| *to != from) {
            if !self.dead.contains(&from) && !self.dead.contains(&to) {
                let sender = ReplicaId(u16::try_from(from).expect("few"));
                let said = (*height, *root);
                self.members[to].on_share(self.now, sender, said, share.clone());
            }
        }
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.members.iter_mut().for_each(|member| member.due(self.now));
        self.settle();
    }
}

#[test]
fn a_quorum_keeps_every_so_many_heights() {
    let mut net = TestNetwork::new();
    net.execute(&[0, 1, 2, 3], EVERY - 1, 1);
    assert!(net.made.is_empty(), "none is due");
    net.execute(&[0, 1], EVERY, 1);
    assert!(net.made.is_empty(), "two are no quorum");
    net.execute(&[2], EVERY, 1);
    assert!(!net.made.is_empty());
    for (_, made) in &net.made {
        assert_eq!((made.height, made.root), (Height(EVERY), header(EVERY, 1).root()));
        assert_eq!(made.check(&committee()), Ok(()));
    }
    assert!(net.members.iter_mut().all(|member| member.take_diverged().is_none()));
}

/// Shares that were lost are sent again while a height is open, and no longer.
#[test]
fn shares_are_sent_until_a_quorum_has_come() {
    let mut net = TestNetwork::new();
    net.dead.extend([1, 2, 3]);
    net.execute(&[0, 1, 2], EVERY, 1);
    assert!(net.made.is_empty() && net.members[0].deadline().is_some());
    net.dead.clear();
    net.wait(Settings::default().timeout());
    assert!(net.made.iter().any(|(member, _)| *member == 0));
    assert_eq!(net.members[0].deadline(), None);
}

/// ★ Another root than the certified one is the wrong state.
fn check_a_wrong_state_is_noticed() {
    let mut net = TestNetwork::new();
    net.execute(&[3], EVERY, 9);
    net.execute(&[0, 1, 2], EVERY, 1);
    assert_eq!(net.members[3].take_diverged(), Some(Height(EVERY)));
    assert!((0..3).all(|member| net.members[member].take_diverged().is_none()));
}

#[test]
fn a_wrong_state_is_noticed() {
    check_a_wrong_state_is_noticed();
}

/// ★ f+1 are enough to vouch for a result, and too few to forget what led to it.
fn check_few_keep_nothing() {
    let (height, root) = (Height(EVERY), header(EVERY, 1).root());
    let committee = committee();
    let statement = checkpoint_statement(committee.scope(), height, root);
    let (scheme, _) = committee.scheme(Purpose::Checkpoint);
    let by = |signers: u8| {
        let shares: Vec<_> =
            (0..signers).map(|one| (usize::from(one), voting(one).sign(&statement))).collect();
        let combined =
            scheme.combine(&statement, &shares, &Bitmap::new(4), Settings::default().verify);
        let certificate = combined.certificate.expect("good shares");
        CheckpointCertificate { height, root, certificate }.check(&committee)
    };
    assert_eq!((by(2), by(3)), (Err(Rejected::BelowThreshold), Ok(())));
}

#[test]
fn few_keep_nothing() {
    check_few_keep_nothing();
}

/// Shares over heights that are none, or are settled, take no room.
#[test]
fn only_shares_that_may_still_be_needed_are_kept() {
    let mut net = TestNetwork::new();
    net.execute(&[0, 1, 2], EVERY, 1);
    assert!(net.made.iter().any(|(member, _)| *member == 0));
    for height in [EVERY, EVERY + 1, 2 * EVERY - 1] {
        let said = (Height(height), header(height, 1).root());
        net.members[0].on_share(net.now, ReplicaId(1), said, voting(1).sign(b"anything"));
        assert_eq!(net.members[0].occupancy().entries, 0, "{height}");
    }
    let said = (Height(2 * EVERY), header(2 * EVERY, 1).root());
    net.members[0].on_share(net.now, ReplicaId(1), said, voting(1).sign(b"anything"));
    assert_eq!(net.members[0].occupancy().entries, 1);
}

/// A share that is no signature costs no checkpoint: whoever sent it is named, and the others add
/// up.
#[test]
fn a_false_share_is_found_and_its_sender_named() {
    let mut net = TestNetwork::new();
    let said = (Height(EVERY), header(EVERY, 1).root());
    net.members[0].on_share(net.now, ReplicaId(1), said, voting(1).sign(b"anything"));
    net.dead.insert(1);
    net.execute(&[0, 2, 3], EVERY, 1);
    let (_, made) = net.made.iter().find(|(member, _)| *member == 0).expect("three agree");
    assert!(!made.certificate.signers.contains(1));
    let seen = net.members[0].output.misbehaviour.pop_front().expect("one share was false");
    assert_eq!((seen.member, seen.rule), (ReplicaId(1), Rule::InvalidShare));
    assert_eq!(net.members[0].output.misbehaviour.pop_front(), None, "once");
    assert_eq!(net.members[2].output.misbehaviour.pop_front(), None, "it was sent to one alone");
}

/// A share goes out again once a timeout has passed, and not before.
#[test]
fn a_share_is_sent_again_after_a_timeout() {
    let mut net = TestNetwork::new();
    net.execute(&[0], EVERY, 1);
    let again = net.now + Settings::default().timeout();
    let member = &mut net.members[0];
    assert_eq!(member.deadline(), Some(again));
    member.due(Time(again.0 - 1));
    assert!(member.output.outbox.pop_front().is_none());
    member.due(again);
    let (to, message) = member.output.outbox.pop_front().expect("it is due");
    let is_share = matches!(message, Message::CheckpointShare(Height(EVERY), _, _));
    assert!(to == Recipients::All && is_share, "{message:?}");
    assert_eq!(member.deadline(), Some(again + Settings::default().timeout()));
}

#[test]
fn what_is_far_away_takes_no_room() {
    let mut net = TestNetwork::new();
    for turn in 1..1_000 {
        let said = (Height(turn * EVERY), hash(b"made up"));
        net.members[0].on_share(net.now, ReplicaId(1), said, voting(1).sign(b"anything"));
    }
    assert_eq!(net.members[0].open.len(), OPEN_MAX);
}

#[test]
fn rules_left_out_are_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::CheckpointTrustOwn, check_a_wrong_state_is_noticed);
    assert_noticed(Mutant::CheckpointByFew, check_few_keep_nothing);
}

/// ★ Its records are older than its signatures: no share leaves that waited, and none is signed.
#[test]
fn a_member_that_stops_signing_shares_no_checkpoint() {
    let mut net = TestNetwork::new();
    let member = &mut net.members[0];
    member.executed(net.now, &header(EVERY, 1));
    member.stop_signing();
    assert!(member.output.outbox.pop_front().is_none(), "it had not left");
    assert_eq!(member.deadline(), None, "nothing is to be sent again");
    member.executed(net.now, &header(2 * EVERY, 1));
    member.due(net.now + Settings::default().timeout());
    assert!(member.output.outbox.pop_front().is_none() && member.deadline().is_none());
}
