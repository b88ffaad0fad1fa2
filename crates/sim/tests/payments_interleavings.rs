//! Every order in which four authorities can be shown two conflicting transactions, with nobody
//! faulty and with one authority that votes for everything: never two certificates.
//!
//! What an authority does depends on the order in which it is shown things, and on nothing that
//! others are shown; the orders are enumerated all the same, delivery by delivery, so that this is
//! found and not assumed: 8 deliveries in 8! orders.

use quorate_crypto::Bitmap;
use quorate_crypto::stand_in::StandIns;
use quorate_payments::{
    Authority, AuthorityEffect, AuthorityEvent, Coin, Lock, OrderVerifier, Origin, Output,
    PayScheme, SpentSet, Transaction, TxId, Verdict, Vote, check_orders,
};
use quorate_sim::payments::TestNetwork;
use quorate_types::{Machine, ReplicaId, Time};
use std::sync::Arc;

const AUTHORITIES: usize = 4;
const OWNER: usize = 1;

/// An authority whose host does everything at once.
struct AuthorityHost {
    verifier: OrderVerifier,
    machine: Authority,
    log: Vec<Lock>,
}

impl AuthorityHost {
    fn new(setup: &TestNetwork) -> Self {
        let spent = Arc::new(SpentSet::default());
        let machine = Authority::new(&setup.network, Arc::clone(&spent), 0);
        let verifier = OrderVerifier::new(Arc::clone(&setup.network), 0, spent);
        Self { verifier, machine, log: Vec::new() }
    }

    fn show(&mut self, setup: &TestNetwork, me: usize, tx: &Transaction) -> Option<Vote> {
        let looked = check_orders(vec![(0, tx.clone())], &self.verifier);
        self.machine.handle(Time(0), AuthorityEvent::Orders(looked));
        let mut vote = None;
        while let Some(effect) = self.machine.poll() {
            match effect {
                AuthorityEffect::Persist(locks) => self.log.extend(locks),
                AuthorityEffect::Sign(job) => {
                    let signed = job.run(&setup.network, &setup.keys[me].voting, replica(me));
                    self.machine.handle(Time(0), AuthorityEvent::Signed(signed));
                }
                AuthorityEffect::Read(sequence) => {
                    let lock = self.log.iter().find(|lock| lock.sequence == sequence).cloned();
                    self.machine.handle(Time(0), AuthorityEvent::Read { sequence, lock });
                }
                AuthorityEffect::Answer { answer, .. } => match answer.verdict {
                    Verdict::Vote(one) => vote = Some(one),
                    other => assert!(matches!(other, Verdict::Locked { .. }), "{other:?}"),
                },
                AuthorityEffect::Evidence(proof) => {
                    assert!(proof.is_proven(&setup.network));
                }
                AuthorityEffect::PersistReleases(_)
                | AuthorityEffect::Report(..)
                | AuthorityEffect::Closed(_) => {
                    unreachable!("no committee orders releases here")
                }
                AuthorityEffect::Stop(failed) => panic!("{failed}"),
            }
        }
        vote
    }
}

fn replica(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("few"))
}

struct Search {
    setup: TestNetwork,
    pair: [Transaction; 2],
    /// Votes for either on any, whoever makes them.
    liar: Option<usize>,
    orders: u64,
    certified: [u64; 2],
}

impl Search {
    fn new(liar: Option<usize>) -> Self {
        let setup = TestNetwork::new(3, PayScheme::Plain, AUTHORITIES, 1, 3);
        let secret = &setup.owners[OWNER];
        let mut coins = setup.network.genesis_outputs();
        let (id, output) = coins.find(|(_, one)| one.owner == secret.public()).expect("endowed");
        let coin = Coin { id, output, origin: Origin::Genesis };
        let pair = [0, 2].map(|payee| {
            let to = Output { owner: setup.owners[payee].public(), value: output.value };
            Transaction::spend(&setup.network, secret, std::slice::from_ref(&coin), vec![to])
        });
        drop(coins);
        Self { setup, pair, liar, orders: 0, certified: [0; 2] }
    }

    /// All orders of what is left to deliver: bit `2 * authority + transaction`.
    fn explore(&mut self, delivered: &mut Vec<usize>) {
        if delivered.len() == 2 * AUTHORITIES {
            return self.judge(delivered);
        }
        for delivery in 0..2 * AUTHORITIES {
            if !delivered.contains(&delivery) {
                delivered.push(delivery);
                self.explore(delivered);
                delivered.pop();
            }
        }
    }

    fn judge(&mut self, order: &[usize]) {
        let mut hosts: Vec<AuthorityHost> =
            (0..AUTHORITIES).map(|_| AuthorityHost::new(&self.setup)).collect();
        let mut votes: [Vec<(ReplicaId, Vote)>; 2] = Default::default();
        for delivery in order {
            let (one, which) = (delivery / 2, delivery % 2);
            let tx = &self.pair[which];
            let vote = if self.liar == Some(one) {
                let secret = &self.setup.keys[one].voting;
                let id = tx.id(self.setup.network.id());
                Some(self.setup.network.votes().sign(secret, replica(one), &[id]).remove(0))
            } else {
                hosts[one].show(&self.setup, one, tx)
            };
            votes[which].extend(vote.map(|vote| (replica(one), vote)));
        }
        let ids: [TxId; 2] = [0, 1].map(|which| self.pair[which].id(self.setup.network.id()));
        let certified = [0, 1].map(|which| {
            let suspects = Bitmap::new(AUTHORITIES);
            self.setup.network.votes().count(ids[which], &votes[which], &suspects).certificate
        });
        assert!(certified.iter().flatten().count() < 2, "two certificates by {order:?}");
        for (count, certificate) in self.certified.iter_mut().zip(&certified) {
            *count += u64::from(certificate.is_some());
        }
        self.orders += 1;
    }
}

/// Of 8! orders; and how many end with either certified, alike for both.
fn all_orders(liar: Option<usize>) -> (u64, [u64; 2]) {
    let _stand_ins = StandIns::begin();
    let mut search = Search::new(liar);
    search.explore(&mut Vec::new());
    (search.orders, search.certified)
}

/// Of 16 ways in which four see one first, five give one of them three votes or more.
#[test]
fn two_conflicting_transactions_never_both_have_certificates() {
    assert_eq!(all_orders(None), (40_320, [40_320 / 16 * 5; 2]));
}

/// The liar votes for both: of 8 ways in which three see one first, either has two or more in four.
#[test]
fn nor_with_one_authority_that_signs_everything() {
    assert_eq!(all_orders(Some(2)), (40_320, [40_320 / 2; 2]));
}

#[test]
fn two_certificates_are_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    let test = || {
        let _stand_ins = StandIns::begin();
        Search::new(None).judge(&[0, 1, 2, 3, 4, 5, 6, 7]);
    };
    assert_noticed(Mutant::PayNoLocks, test);
}
