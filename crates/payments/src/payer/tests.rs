use super::*;
use crate::testing::{ALICE, BOB, MALLORY, TestNetwork, replica, to};
use crate::{Core, PayScheme};

struct Scene {
    testnet: TestNetwork,
    tx: Arc<Transaction>,
    payer: Payer,
}

impl Scene {
    /// A payment that was handed in.
    fn new(scheme: PayScheme) -> Self {
        let testnet = TestNetwork::with(scheme, 4, 1);
        let tx = Arc::new(testnet.spend(MALLORY, &testnet.endowed(MALLORY), &[to(BOB, 12)]));
        let mut payer = Payer::new(Arc::clone(&testnet.network));
        payer.handle(Time(0), PayerEvent::Pay(Arc::clone(&tx)));
        Self { testnet, tx, payer }
    }

    /// A payment that was stored and sent.
    fn sent() -> Self {
        let mut scene = Self::new(PayScheme::Plain);
        assert!(matches!(scene.payer.poll(), Some(PayerEffect::Store(_))));
        scene.payer.handle(Time(0), PayerEvent::Stored(scene.id()));
        assert_eq!(scene.asked(), [0, 1, 2, 3]);
        scene
    }

    fn id(&self) -> TxId {
        self.tx.id(self.testnet.network.id())
    }

    fn answer(&mut self, from: usize, verdict: Verdict) {
        let answer = Answer { tx: self.id(), verdict };
        self.payer.handle(Time(0), PayerEvent::Answer { from: replica(from), answer });
    }

    fn vote(&mut self, from: usize) {
        let vote = self.testnet.vote(from, &self.tx);
        self.answer(from, Verdict::Vote(vote));
    }

    /// Somebody's vote for something else.
    fn bad_vote(&mut self, from: usize) {
        let other = self.testnet.spend(ALICE, &self.testnet.endowed(ALICE), &[to(BOB, 60)]);
        let vote = self.testnet.vote(from, &other);
        self.answer(from, Verdict::Vote(vote));
    }

    /// Core of another transaction of the same payer.
    fn conflict(&self) -> Core {
        let coins = &self.testnet.endowed(MALLORY)[..1];
        self.testnet.spend(MALLORY, coins, &[to(ALICE, 5)]).core(self.testnet.network.id())
    }

    fn locked(&mut self, from: usize, first: Option<Core>) {
        let input = self.tx.locks()[0];
        self.answer(from, Verdict::Locked { input, first: first.map(Box::new) });
    }

    /// Counts once, as it is asked to.
    fn count(&mut self) -> CountJob {
        let Some(PayerEffect::Count(job)) = self.payer.poll() else { panic!("votes to count") };
        let counted = job.run(&self.testnet.network);
        self.payer.handle(Time(0), PayerEvent::Counted(job.tx, counted));
        job
    }

    /// Authorities that are sent the transaction now.
    fn asked(&mut self) -> Vec<usize> {
        let mut asked = Vec::new();
        while let Some(effect) = self.payer.poll() {
            let PayerEffect::Send { to, transaction } = effect else { panic!("sends: {effect:?}") };
            assert_eq!(transaction, self.tx, "the same bytes");
            asked.push(to.index());
        }
        asked
    }

    fn outcome(&mut self) -> Option<PaymentOutcome> {
        match self.payer.poll()? {
            PayerEffect::Done(tx, outcome) => {
                assert_eq!((tx, self.payer.under_way()), (self.id(), 0));
                Some(outcome)
            }
            other => panic!("the end: {other:?}"),
        }
    }
}

#[test]
fn nothing_is_sent_before_it_is_stored() {
    let mut scene = Scene::new(PayScheme::Plain);
    let first = scene.payer.poll();
    assert!(matches!(first, Some(PayerEffect::Store(ref tx)) if **tx == *scene.tx), "{first:?}");
    assert!(scene.payer.poll().is_none());
    scene.payer.handle_timeout(Time(60_000_000));
    assert_eq!((scene.asked(), scene.payer.next_timeout()), (vec![], None));
    let tx = scene.id();
    scene.payer.handle(Time(0), PayerEvent::Stored(tx));
    assert_eq!(scene.asked(), [0, 1, 2, 3]);
}

#[test]
fn a_quorum_of_votes_ends_it_under_every_scheme() {
    for scheme in PayScheme::ALL {
        let mut scene = Scene::new(scheme);
        scene.payer.poll();
        for from in [3, 0] {
            scene.vote(from);
        }
        assert!(scene.payer.poll().is_none(), "two are too few");
        scene.vote(1);
        scene.count();
        let Some(PaymentOutcome::Certified(certificate)) = scene.outcome() else {
            panic!("certified")
        };
        let verdict = scene.testnet.network.votes().verify(&[(scene.id(), &certificate)]);
        assert_eq!(verdict, [true]);
    }
}

/// Twice as long each time, and only those who did not answer.
#[test]
fn the_silent_are_asked_again_with_the_same_bytes() {
    let mut scene = Scene::sent();
    scene.vote(2);
    scene.answer(1, Verdict::Busy);
    let mut at = 0;
    for wait_ms in [500, 1_000, 2_000, 4_000, 8_000, 8_000] {
        at += wait_ms * 1_000;
        assert_eq!(scene.payer.next_timeout(), Some(Time(at)));
        scene.payer.handle_timeout(Time(at - 1));
        assert_eq!(scene.asked(), [] as [usize; 0]);
        scene.payer.handle_timeout(Time(at));
        assert_eq!(scene.asked(), [0, 1, 3]);
    }
}

/// Handing it in again, as after a restart, neither forgets votes nor stops the asking.
#[test]
fn the_same_payment_twice_is_one() {
    let mut scene = Scene::sent();
    scene.vote(0);
    let tx = Arc::clone(&scene.tx);
    scene.payer.handle(Time(0), PayerEvent::Pay(tx));
    assert_eq!((scene.asked(), scene.payer.under_way()), (vec![], 1));
    assert_eq!(scene.payer.next_timeout(), Some(Time(500_000)), "it is still asked for");
    scene.vote(1);
    scene.vote(2);
    scene.count();
    assert!(matches!(scene.outcome(), Some(PaymentOutcome::Certified(_))));
}

#[test]
fn a_payer_that_restarts_stores_and_sends_what_it_had_stored() {
    let Scene { testnet, tx, .. } = Scene::sent();
    let mut scene = Scene { payer: Payer::new(Arc::clone(&testnet.network)), testnet, tx };
    let tx = Arc::clone(&scene.tx);
    scene.payer.handle(Time(9), PayerEvent::Pay(tx));
    assert!(matches!(scene.payer.poll(), Some(PayerEffect::Store(_))));
    let tx = scene.id();
    scene.payer.handle(Time(9), PayerEvent::Stored(tx));
    assert_eq!(scene.asked(), [0, 1, 2, 3]);
}

#[test]
fn a_bad_vote_costs_a_count_and_its_sender_is_watched() {
    let mut scene = Scene::sent();
    scene.bad_vote(1);
    scene.vote(0);
    scene.vote(2);
    assert!(scene.count().suspects.is_empty());
    assert!(scene.payer.poll().is_none(), "two good ones are too few");
    scene.vote(3);
    assert!(scene.count().suspects.contains(1));
    assert!(matches!(scene.outcome(), Some(PaymentOutcome::Certified(_))));
}

#[test]
fn votes_that_come_while_others_are_counted_are_counted_next() {
    let mut scene = Scene::sent();
    scene.bad_vote(0);
    scene.vote(1);
    scene.vote(2);
    let Some(PayerEffect::Count(job)) = scene.payer.poll() else { panic!("votes to count") };
    scene.vote(3);
    assert!(scene.payer.poll().is_none(), "one count at a time");
    let counted = job.run(&scene.testnet.network);
    scene.payer.handle(Time(0), PayerEvent::Counted(job.tx, counted));
    assert_eq!(scene.count().votes.len(), 3);
    assert!(matches!(scene.outcome(), Some(PaymentOutcome::Certified(_))));
}

#[test]
fn a_voter_is_heard_once_and_only_if_it_is_an_authority() {
    let mut scene = Scene::sent();
    for from in [0, 0, 0, 1, 1, 4, 65_535] {
        let vote = scene.testnet.vote(from.min(3), &scene.tx);
        scene.answer(from, Verdict::Vote(vote));
    }
    assert!(scene.payer.poll().is_none());
}

#[test]
fn f_plus_1_refusals_end_it() {
    let mut scene = Scene::sent();
    scene.answer(3, Verdict::Invalid(Invalid::ZeroValue));
    scene.answer(3, Verdict::Invalid(Invalid::Overflow));
    assert_eq!(scene.outcome(), None, "one may lie");
    scene.answer(2, Verdict::Invalid(Invalid::ZeroValue));
    assert_eq!(scene.outcome(), Some(PaymentOutcome::Refused(Invalid::ZeroValue)));
}

/// One liar says so; whoever else votes makes a quorum.
#[test]
fn one_liar_that_speaks_of_a_conflict_stops_nothing() {
    let mut scene = Scene::sent();
    scene.locked(0, None);
    assert_eq!(scene.outcome(), None);
    for from in 1..4 {
        scene.vote(from);
    }
    scene.count();
    assert!(matches!(scene.outcome(), Some(PaymentOutcome::Certified(_))));
}

#[test]
fn a_conflict_that_is_proven_ends_it_when_the_rest_is_no_quorum() {
    let mut scene = Scene::sent();
    let first = scene.conflict();
    scene.locked(0, Some(first.clone()));
    assert_eq!(scene.outcome(), None, "three are left");
    scene.locked(1, None);
    let Some(PaymentOutcome::Conflicting(Some(proof))) = scene.outcome() else {
        panic!("it is over")
    };
    assert!(proof.is_proven(&scene.testnet.network));
    assert_eq!((proof.first, proof.second.id), (first, scene.id()));
}

#[test]
fn without_a_proof_it_takes_a_quorum_of_refusals() {
    let mut scene = Scene::sent();
    let mut forged = scene.conflict();
    forged.outputs = quorate_crypto::Digest::ZERO;
    for (from, shown) in [(0, None), (1, Some(forged))] {
        scene.locked(from, shown);
        assert_eq!(scene.outcome(), None, "they may lie");
    }
    scene.locked(2, None);
    assert_eq!(scene.outcome(), Some(PaymentOutcome::Conflicting(None)));
}

#[test]
fn answers_for_nothing_that_is_under_way_are_ignored() {
    let mut scene = Scene::sent();
    let answer = Answer { tx: scene.conflict().id, verdict: Verdict::Busy };
    scene.payer.handle(Time(0), PayerEvent::Answer { from: replica(0), answer });
    let id = scene.conflict().id;
    scene.payer.handle(Time(0), PayerEvent::Stored(id));
    let counted = Counted { certificate: None, bad: vec![0] };
    scene.payer.handle(Time(0), PayerEvent::Counted(id, counted));
    assert!(scene.payer.poll().is_none());
}

/// Nothing follows from an authority that awaits a decision: it is asked again.
#[test]
fn a_payment_under_release_waits_for_the_decision() {
    let mut scene = Scene::sent();
    let input = scene.tx.locks()[0];
    for from in 0..4 {
        scene.answer(from, Verdict::Undecided { input });
        assert_eq!(scene.outcome(), None);
    }
    scene.payer.handle_timeout(Time(500_000));
    assert_eq!(scene.asked(), [0, 1, 2, 3]);
    for from in 0..3 {
        scene.vote(from);
    }
    scene.count();
    assert!(matches!(scene.outcome(), Some(PaymentOutcome::Certified(_))));
}

#[test]
fn a_release_ends_a_payment_when_an_honest_authority_says_how() {
    let mut scene = Scene::sent();
    let (input, other) = (scene.tx.locks()[0], scene.conflict().id);
    scene.answer(0, Verdict::Released { input, decision: Decision::Spend(other) });
    scene.answer(3, Verdict::Released { input, decision: Decision::Refund });
    assert_eq!(scene.outcome(), None, "one of them lies, and perhaps both");
    scene.answer(1, Verdict::Released { input, decision: Decision::Refund });
    assert_eq!(scene.outcome(), Some(PaymentOutcome::Released(input, Decision::Refund)));
}

/// Authorities that have not followed a decision yet say what they are locked for, as before it.
#[test]
fn what_was_decided_for_waits_for_those_that_are_locked_for_another() {
    let Scene { testnet, tx, .. } = Scene::new(PayScheme::Plain);
    let mut scene = Scene { payer: Payer::new(Arc::clone(&testnet.network)), testnet, tx };
    let tx = Arc::clone(&scene.tx);
    scene.payer.handle(Time(0), PayerEvent::Claim(tx));
    assert!(matches!(scene.payer.poll(), Some(PayerEffect::Store(_))));
    let tx = scene.id();
    scene.payer.handle(Time(0), PayerEvent::Stored(tx));
    assert_eq!(scene.asked(), [0, 1, 2, 3]);
    for from in 1..4 {
        let first = scene.conflict();
        scene.locked(from, Some(first));
        assert_eq!(scene.outcome(), None);
    }
    scene.payer.handle_timeout(Time(500_000));
    assert_eq!(scene.asked(), [0, 1, 2, 3]);
    for from in 1..4 {
        scene.vote(from);
    }
    scene.count();
    assert!(matches!(scene.outcome(), Some(PaymentOutcome::Certified(_))));
}

#[test]
fn a_payment_under_way_is_claimed_from_the_decision_on() {
    let mut scene = Scene::sent();
    scene.vote(0);
    let tx = Arc::clone(&scene.tx);
    scene.payer.handle(Time(0), PayerEvent::Claim(tx));
    assert_eq!((scene.asked(), scene.payer.under_way()), (vec![], 1));
    for from in [1, 2] {
        let first = scene.conflict();
        scene.locked(from, Some(first));
        assert_eq!(scene.outcome(), None);
    }
}
