//! Four members that executed, and a network that a test may cut.

mod certificates;
mod turns;

use super::{AHEAD_MAX, Execution, KEPT};
use crate::testing::{client, committee, config, request};
use crate::{Message, Settings};
use quorate_crypto::{Digest, hash, merkle};
use quorate_types::executed::{CertifiedReply, Completion, ExecutionCertificate};
use quorate_types::machine::{Block, Executed};
use quorate_types::request::Answer;
use quorate_types::{
    Body, ClientId, Header, Height, Outcome, Payload, Receipt, Recipients, ReplicaId, Request,
    Results, Time,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const START: Time = Time(1_000_000);
const LEADER: ReplicaId = ReplicaId(3);

struct TestNetwork {
    now: Time,
    members: Vec<Execution>,
    /// Nobody hears of these.
    dead: BTreeSet<usize>,
    replies: Vec<(usize, CertifiedReply)>,
    /// How many messages went from member to member.
    sent: usize,
}

impl TestNetwork {
    fn new() -> Self {
        Self::with(&Settings { execution_certificates: true, ..Settings::default() })
    }

    fn with(settings: &Settings) -> Self {
        let member = |member| {
            let mut member = Execution::new(&config(member, settings.clone()));
            member.led_by(Some(LEADER));
            member
        };
        Self {
            now: START,
            members: (0..4).map(member).collect(),
            dead: BTreeSet::new(),
            replies: Vec::new(),
            sent: 0,
        }
    }

    /// These members execute the block, with this as the state's root.
    fn execute(&mut self, members: &[usize], block: &Block, state: u8) {
        for member in members {
            self.members[*member].starts(block);
            self.members[*member].executed(self.now, &executed(block, state));
        }
        self.settle();
    }

    /// Until nobody has anything to say.
    fn settle(&mut self) {
        let mut busy = true;
        while busy {
            busy = false;
            for member in 0..4 {
                while let Some(job) = self.members[member].output.jobs.pop_front() {
                    busy = true;
                    self.members[member].on_combined(self.now, &job.run());
                }
                while let Some((to, message)) = self.members[member].output.outbox.pop_front() {
                    busy = true;
                    self.deliver(member, to, &message);
                }
            }
        }
    }

    fn deliver(&mut self, from: usize, to: Recipients, message: &Message) {
        let to: Vec<usize> = match to {
            Recipients::One(to) => vec![to.index()],
            Recipients::All => (0..4).filter(|to| *to != from).collect(),
            Recipients::Client(_) => {
                let Message::CertifiedReply(reply) = message else { panic!("{message:?}") };
                self.replies.push((from, (**reply).clone()));
                return;
            }
        };
        for to in to {
            assert_ne!(to, from, "nobody sends to itself");
            self.sent += 1;
            if self.dead.contains(&from) || self.dead.contains(&to) {
                continue;
            }
            let sender = ReplicaId(u16::try_from(from).unwrap());
            match message {
                Message::ExecutionShare(height, root, share) => {
                    let said = (*height, *root);
                    self.members[to].on_share(self.now, sender, said, share.clone());
                }
                Message::ExecutionProof(proof) => {
                    proof.check(&committee()).expect("an honest member's");
                    self.members[to].on_proof(self.now, sender, proof.clone());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.members.iter_mut().for_each(|member| member.due(self.now));
        self.settle();
    }

    fn newest(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.newest().0).collect()
    }
}

fn asked() -> Request {
    request(7, 10)
}

/// A height whose only request came by a body of this author's.
fn block(height: u64, author: u16) -> Block {
    let body = Arc::new(Body::seal(ReplicaId(author), height, &[asked()]));
    let payload = Payload::new(Height(height), 0, vec![body.reference]);
    Block { payload, bodies: vec![body], decided: bytes::Bytes::new() }
}

fn one(outcome: Outcome) -> Results {
    Results::new(vec![outcome])
}

fn results() -> Results {
    one(Outcome::Applied(bytes::Bytes::from_static(b"done")))
}

fn executed(block: &Block, state: u8) -> Executed {
    let (client, height) = (ClientId(client().public()), block.height());
    let completion =
        Completion { client, sequence: 7, request: asked().digest(), results: results().digest() };
    let leaves = vec![completion.leaf(height, 0)];
    let header = Header {
        height,
        proposed_at_ms: 5,
        state: hash(&[state]),
        sessions: Digest::ZERO,
        requests: merkle::Tree::new(&leaves).root(),
    };
    let answer = Answer { client, sequence: 7, height, results: results(), index: Some(0) };
    Executed { header, leaves, answers: vec![answer], operations: 1 }
}

fn collector(height: u64) -> usize {
    TestNetwork::new().members[0].collectors(Height(height))[0].index()
}

/// One member answers, the one that took the request; and the answer proves itself to anybody who
/// knows the committee. n − 1 shares and n − 1 proofs are sent for it.
#[test]
fn a_client_gets_one_answer_that_proves_itself() {
    for author in 0..4 {
        let mut net = TestNetwork::new();
        net.execute(&[0, 1, 2, 3], &block(1, author), 1);
        assert_eq!(net.newest(), [1; 4]);
        let [(from, reply)] = &net.replies[..] else { panic!("{:?}", net.replies) };
        assert_eq!(*from, usize::from(author));
        let collector = collector(1);
        assert_eq!(net.sent, 6, "n − 1 shares to {collector} and as many proofs");
        let receipt = Receipt { request: asked().raw().clone(), reply: reply.clone() };
        assert_eq!(receipt.verify(&committee()).map(|request| request.sequence), Ok(7));
        assert_eq!(receipt.results(), &results()[..]);
    }
}

/// Without its collector a height is certified later, and the next ones of that collector at once.
#[test]
fn a_silent_collector_is_passed_over() {
    let dead = collector(1);
    let heights: Vec<u64> = (1..40).filter(|height| collector(*height) == dead).take(2).collect();
    let alive: Vec<usize> = (0..4).filter(|member| *member != dead).collect();
    let author = u16::try_from(alive[0]).unwrap();
    let mut net = TestNetwork::new();
    net.dead.insert(dead);
    net.execute(&alive, &block(heights[0], author), 1);
    assert!(net.replies.is_empty());
    net.wait(Settings::default().timeout() / 4);
    assert_eq!(net.replies.len(), 1, "the next collector");
    net.execute(&alive, &block(heights[1], author), 1);
    assert_eq!(net.replies.len(), 2, "at once");
}

/// Where leaders take turns members are in different views, and send their shares to the same
/// collectors.
#[test]
fn without_a_steady_leader_all_know_the_same_collectors() {
    let mut net = TestNetwork::new();
    net.members.iter_mut().for_each(|member| member.led_by(None));
    for height in 1..30 {
        let lists: BTreeSet<Vec<ReplicaId>> =
            net.members.iter().map(|member| member.collectors(Height(height))).collect();
        assert_eq!(lists.len(), 1, "{lists:?}");
        let all: BTreeSet<&ReplicaId> = lists.iter().flatten().collect();
        assert_eq!(all.len(), 2, "one, and another behind it");
    }
}

/// Several heights wait for one dead collector: it alone is passed over, not whoever comes next.
#[test]
fn only_who_had_the_share_is_passed_over() {
    let dead = collector(1);
    let heights: Vec<u64> = (1..100).filter(|height| collector(*height) == dead).take(5).collect();
    let alive: Vec<usize> = (0..4).filter(|member| *member != dead).collect();
    let author = u16::try_from(alive[0]).unwrap();
    let mut net = TestNetwork::new();
    net.dead.insert(dead);
    for height in &heights {
        net.execute(&alive, &block(*height, author), 1);
    }
    net.wait(Settings::default().timeout() / 4);
    assert_eq!(net.replies.len(), heights.len());
    for member in alive {
        let collector_backoff = &net.members[member].collector_backoff;
        let is_passed_over = |other: &usize| {
            !collector_backoff.awaits(net.now, ReplicaId(u16::try_from(*other).unwrap()))
        };
        let passed_over: Vec<usize> = (0..4).filter(is_passed_over).collect();
        assert_eq!(passed_over, [dead], "by {member}");
    }
}

/// One member that is wrong, whoever it is and whenever it speaks, changes nothing, and nobody is
/// reported.
fn shares_over_different_roots_are_kept_apart() {
    for wrong in 0..4 {
        let right: Vec<usize> = (0..4).filter(|member| *member != wrong).collect();
        let mut net = TestNetwork::new();
        let author = u16::try_from(right[0]).unwrap();
        net.execute(&[wrong], &block(1, author), 9);
        net.execute(&right, &block(1, author), 1);
        // A collector that is wrong itself shows nothing.
        net.wait(Settings::default().timeout() / 4);
        assert_eq!(net.replies.len(), 1, "wrong: {wrong}");
        let reported =
            net.members.iter_mut().find_map(|member| member.output.misbehaviour.pop_front());
        assert_eq!(reported, None, "wrong: {wrong}");
    }
}

#[test]
fn shares_are_added_up_by_root() {
    shares_over_different_roots_are_kept_apart();
}

#[test]
fn sums_over_different_roots_are_missed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    let test = shares_over_different_roots_are_kept_apart;
    assert_noticed(Mutant::MixedRoots, test);
}

/// ★ Whose root is not the certified one says nothing more until its state is replaced.
fn a_wrong_member_falls_silent() {
    let mut net = TestNetwork::new();
    let author = 2;
    net.execute(&[2], &block(1, author), 9);
    net.execute(&[0, 1, 3], &block(1, author), 1);
    assert_eq!(net.members[2].diverged(), Some(Height(1)));
    assert!(net.replies.is_empty(), "its client asks again");
    net.sent = 0;
    net.members[2].executed(net.now, &executed(&block(2, author), 9));
    net.settle();
    assert_eq!(net.sent, 0);
    let header = executed(&block(3, author), 1).header;
    net.members[2].resume(net.now, header);
    assert_eq!(net.members[2].diverged(), None);
}

#[test]
fn whoever_is_wrong_falls_silent() {
    a_wrong_member_falls_silent();
}

#[test]
fn a_wrong_member_that_goes_on_is_missed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::IgnoreCertifiedRoot, a_wrong_member_falls_silent);
}

/// Whoever executes after the others learns at once that it came to the same, and answers.
#[test]
fn who_executes_last_answers_all_the_same() {
    let late = (collector(1) + 1) % 4;
    let others: Vec<usize> = (0..4).filter(|member| *member != late).collect();
    let author = u16::try_from(late).unwrap();
    let mut net = TestNetwork::new();
    net.members[late].starts(&block(1, author));
    net.execute(&others, &block(1, author), 1);
    assert!(net.replies.is_empty());
    net.execute(&[late], &block(1, author), 1);
    assert_eq!(net.replies.len(), 1);
}

/// A member that missed the proof gets it for its share; after a restart it asks in the same way.
#[test]
fn who_missed_the_proof_is_shown_it() {
    let mut net = TestNetwork::new();
    let missed = (collector(1) + 1) % 4;
    net.dead.insert(missed);
    net.execute(&[0, 1, 2, 3], &block(1, 0), 1);
    assert_eq!(net.newest()[missed], 0);
    net.dead.clear();
    net.members[missed].resume(net.now, executed(&block(1, 0), 1).header);
    net.settle();
    // The next collector is itself; then it asks everybody.
    net.wait(Settings::default().timeout() / 4);
    net.wait(Settings::default().timeout() / 4);
    assert_eq!(net.newest(), [1; 4]);
}

/// Shares over whatever heights take room for the last ones alone, though nothing is certified.
#[test]
fn what_is_far_away_takes_no_room() {
    let mut net = TestNetwork::new();
    let header = Header { height: Height(5_000), ..Header::default() };
    net.members[0].resume(net.now, header);
    let share = crate::testing::voting(1).sign(b"anything");
    for height in 0..10_000 {
        let said = (Height(height), Digest::ZERO);
        net.members[0].on_share(net.now, ReplicaId(1), said, share.clone());
    }
    let [open, _] = net.members[0].occupancy();
    assert_eq!(open.entries as u64, KEPT as u64 + AHEAD_MAX);
    assert_eq!(open.bound, open.entries, "full, and no fuller");
}

/// Found from outside: a share over a height near the end of all numbers is one that is far away.
#[test]
fn a_height_near_the_end_is_only_far_away() {
    let mut net = TestNetwork::new();
    let share = crate::testing::voting(1).sign(b"anything");
    for height in [u64::MAX - KEPT as u64, u64::MAX - 1, u64::MAX] {
        let said = (Height(height), Digest::ZERO);
        net.members[0].on_share(net.now, ReplicaId(1), said, share.clone());
    }
    assert_eq!(net.members[0].open.len(), 0);
}

/// ★ f signers prove nothing.
fn too_few_signers_prove_nothing() {
    let mut net = TestNetwork::new();
    net.execute(&[0, 1, 2, 3], &block(1, 0), 1);
    let proof = net.members[0].certificate(Height(1)).expect("certified").clone();
    assert_eq!(proof.check(&committee()), Ok(()));
    let (scheme, _) = committee().scheme(quorate_types::Purpose::Execute);
    let statement = proof.header.statement(committee().scope());
    let share = crate::testing::voting(1).sign(&statement);
    let suspects = quorate_crypto::Bitmap::new(4);
    let one = scheme.combine(&statement, &[(1, share)], &suspects, Settings::default().verify);
    let certificate = one.certificate.expect("a good share");
    let by_one = ExecutionCertificate { certificate, ..proof };
    assert_eq!(by_one.check(&committee()), Err(quorate_types::Rejected::BelowThreshold));
}

#[test]
fn one_signer_of_four_proves_nothing() {
    too_few_signers_prove_nothing();
}

#[test]
fn a_root_that_few_signed_is_missed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::ExecutedByFew, too_few_signers_prove_nothing);
}

/// Nothing in a receipt can be changed.
fn every_part_of_a_receipt_counts() {
    let mut net = TestNetwork::new();
    net.execute(&[0, 1, 2, 3], &block(1, 0), 1);
    let (_, reply) = net.replies.pop().expect("answered");
    let receipt = Receipt { request: asked().raw().clone(), reply };
    assert!(receipt.verify(&committee()).is_ok());
    let changes: [fn(&mut Receipt); 10] = [
        |r| r.request = request(8, 10).raw().clone(),
        |r| r.reply.completion.sequence += 1,
        |r| r.reply.completion.request = Digest::ZERO,
        |r| r.reply.completion.results = Digest::ZERO,
        |r| r.reply.results = one(Outcome::Refused(bytes::Bytes::from_static(b"done"))),
        |r| r.reply.path.siblings.push(Digest::ZERO),
        |r| r.reply.executed.header.height = Height(2),
        |r| r.reply.executed.header.proposed_at_ms += 1,
        |r| r.reply.executed.header.state = Digest::ZERO,
        |r| r.reply.executed.header.sessions = hash(b"others"),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut changed = receipt.clone();
        change(&mut changed);
        assert!(changed.verify(&committee()).is_err(), "change {at}");
    }
    // A leaf of the client's own making, which leads nowhere.
    let mut forged = receipt;
    forged.reply.results = one(Outcome::Applied(bytes::Bytes::from_static(b"a million")));
    forged.reply.completion.results = forged.reply.results.digest();
    assert!(forged.verify(&committee()).is_err(), "other results");
}

#[test]
fn a_changed_receipt_is_refused() {
    every_part_of_a_receipt_counts();
}

#[test]
fn a_path_that_leads_elsewhere_is_missed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::AnyPath, every_part_of_a_receipt_counts);
}
