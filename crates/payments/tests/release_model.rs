//! ADR 26, every order of it: votes, freezes, reports, lies, certificates and decisions over a coin
//! or two and the transactions that spend them, with one Byzantine authority. The log has ordered
//! the freezes; who executes them when is open. What is decided, and
//! what an honest authority votes for, is the production code's word; the model only says what may
//! happen next.
//!
//! What is left out cannot help a liar: signatures (nobody forges), the log's own workings (an
//! ordered step is the same to all), messages (a vote counts as soon as it was given, and whoever
//! wants collects it). The Byzantine authority votes for everything, and reports what it likes.

use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, IdentityKey, Signature};
use quorate_payments::release::{Decision, Docket, Held, MemoryDocket, Releases, Standing};
use quorate_payments::{Core, CoreKind, Lock, LockStatus, OutputId, ReleaseEntry, SpentSet, TxId};
use quorate_types::{ReplicaId, Weights};
use stateright::{Checker, Model, Property};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// A coin, by its number.
type Coin = u8;

/// Transaction over coins of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Tx {
    /// One of those that the payer signed.
    Signed(u8),
    /// A coin goes back to its owner.
    Refund(Coin),
}

/// Coins, the transactions that their owner signed, and authorities of which the last is Byzantine.
#[derive(Clone)]
struct Release {
    weights: Weights,
    coins: Coin,
    /// Coins that each of the signed transactions takes.
    signed: Vec<Vec<Coin>>,
    /// Rule of the production code that is left out.
    left_out: Option<Mutant>,
}

const FAULTY: usize = 1;

const OWNER: IdentityKey = IdentityKey([1; 32]);

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Honest {
    /// Transactions that it locked, in order.
    locks: Vec<Tx>,
    /// Coins whose freeze it executed, and their decisions where it executed those.
    executed: BTreeMap<Coin, Option<Decision>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    honest: Vec<Honest>,
    docket: MemoryDocket,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// A transaction reaches an honest authority.
    Show(usize, Tx),
    /// An honest authority executes the freeze.
    Freeze(usize, Coin),
    /// The log orders an honest authority's report.
    Report(usize, Coin),
    /// The log orders the Byzantine authority's.
    Lie(Coin, Option<u8>),
    /// The log orders a certificate.
    ShowCertificate(u8),
    /// An honest authority executes the decision.
    Decide(usize, Coin),
}

fn name(coin: Coin) -> OutputId {
    OutputId { tx: TxId(Digest([coin; 32])), index: 0 }
}

fn replica(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("few"))
}

fn sure<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
    }
}

impl Release {
    fn new(authorities: usize, coins: Coin, signed: &[&[Coin]]) -> Self {
        let signed = signed.iter().map(|locks| locks.to_vec()).collect();
        Self { weights: Weights::equal(authorities), coins, signed, left_out: None }
    }

    fn honest(&self) -> usize {
        self.weights.members() - FAULTY
    }

    fn transactions(&self) -> impl Iterator<Item = Tx> {
        let signed = (0u8..).take(self.signed.len()).map(Tx::Signed);
        signed.chain((0..self.coins).map(Tx::Refund))
    }

    fn takes(&self, tx: Tx) -> Vec<Coin> {
        match tx {
            Tx::Signed(number) => self.signed[usize::from(number)].clone(),
            Tx::Refund(coin) => vec![coin],
        }
    }

    fn core(&self, tx: Tx) -> Core {
        let (mark, kind) = match tx {
            Tx::Signed(number) => (100 + number, CoreKind::Spend),
            Tx::Refund(coin) => (200 + coin, CoreKind::Refund),
        };
        Core {
            id: TxId(Digest([mark; 32])),
            payer: OWNER,
            locks: self.takes(tx).into_iter().map(name).collect(),
            kind,
            outputs: Digest::ZERO,
            signature: Signature([0; 64]),
        }
    }

    /// What an honest authority has locked and frozen, as it keeps it.
    fn spent(&self, one: &Honest) -> SpentSet {
        let spent = SpentSet::default();
        for (coin, decision) in &one.executed {
            spent.frozen().apply(match decision {
                None => ReleaseEntry::Freeze(name(*coin)),
                Some(decision) => ReleaseEntry::Decide(name(*coin), *decision),
            });
        }
        for (sequence, tx) in (0..).zip(&one.locks) {
            spent.lock(&Lock { sequence, core: self.core(*tx) });
        }
        spent
    }

    fn is_certified(&self, state: &State, tx: Tx) -> bool {
        let votes = state.honest.iter().filter(|one| one.locks.contains(&tx)).count();
        // The faulty one votes for refunds that nobody decided, too.
        (votes + FAULTY) as u64 >= self.weights.quorum()
    }

    /// Transaction that a coin is locked for at an honest authority.
    fn held(&self, one: &Honest, coin: Coin) -> Held {
        let first = one.locks.iter().find(|tx| self.takes(**tx).contains(&coin));
        first.map_or(Held::Free, |tx| Held::For(self.core(*tx)))
    }

    fn is_two(&self, state: &State) -> bool {
        let mut taken = BTreeSet::new();
        let certified = self.transactions().filter(|tx| self.is_certified(state, *tx));
        certified.flat_map(|tx| self.takes(tx)).any(|coin| !taken.insert(coin))
    }

    /// Everybody reported the first coin, and nothing is decided of it.
    fn is_stuck(&self, state: &State) -> bool {
        let standing = sure(state.docket.coin(name(0)));
        standing.reports.len() == self.weights.members() && standing.decision.is_none()
    }

    fn report(&self, docket: &mut MemoryDocket, from: usize, coin: Coin, held: &Held) {
        let mut releases = Releases::new(docket, &self.weights);
        let _ = sure(releases.report(replica(from), name(coin), held));
    }

    /// The same state with honest authorities in an order of their own: who is who makes no
    /// difference.
    fn sorted(&self, state: State) -> State {
        let standings = (0..self.coins).map(|coin| sure(state.docket.coin(name(coin))));
        let standings: Vec<Standing> = standings.collect();
        let reports = |at: usize| -> Vec<_> {
            standings.iter().map(|one| one.reports.get(&replica(at)).copied()).collect()
        };
        let mut honest: Vec<_> =
            (0..).zip(state.honest).map(|(at, one)| (one, reports(at))).collect();
        honest.sort();
        let mut docket = state.docket;
        for (coin, mut standing) in (0..).zip(standings.clone()) {
            standing.reports.retain(|from, _| from.index() == self.honest());
            let sorted = honest.iter().map(|(_, reports)| reports[usize::from(coin)]);
            let named = sorted.enumerate().filter_map(|(at, said)| Some((replica(at), said?)));
            standing.reports.extend(named);
            sure(docket.set_coin(name(coin), &standing));
        }
        State { honest: honest.into_iter().map(|(one, _)| one).collect(), docket }
    }
}

impl Model for Release {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let honest = vec![Honest::default(); self.honest()];
        let mut docket = MemoryDocket::default();
        for coin in 0..self.coins {
            sure(Releases::new(&mut docket, &self.weights).freeze(name(coin), OWNER));
        }
        vec![State { honest, docket }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // On whatever thread of the checker's this is.
        mutants::set(self.left_out);
        let standing = |coin| sure(state.docket.coin(name(coin)));
        for (at, one) in state.honest.iter().enumerate() {
            let spent = self.spent(one);
            let votes = |tx: &Tx| {
                use LockStatus::{Due, Free, Own};
                matches!(spent.status(&self.core(*tx)), Ok(Free | Due | Own))
                    && !one.locks.contains(tx)
            };
            actions.extend(self.transactions().filter(votes).map(|tx| Action::Show(at, tx)));
            for coin in 0..self.coins {
                let standing = standing(coin);
                let executed = one.executed.get(&coin);
                match executed {
                    None => actions.push(Action::Freeze(at, coin)),
                    Some(None) if standing.decision.is_some() => {
                        actions.push(Action::Decide(at, coin));
                    }
                    Some(_) => {}
                }
                let is_open = standing.decision.is_none() && executed.is_some();
                if is_open && !standing.reports.contains_key(&replica(at)) {
                    actions.push(Action::Report(at, coin));
                }
            }
        }
        for coin in 0..self.coins {
            let standing = standing(coin);
            let is_open = standing.decision.is_none();
            if is_open && !standing.reports.contains_key(&replica(self.honest())) {
                let lies = (0u8..).take(self.signed.len());
                let lies = lies.filter(|tx| self.takes(Tx::Signed(*tx)).contains(&coin));
                actions.push(Action::Lie(coin, None));
                actions.extend(lies.map(|tx| Action::Lie(coin, Some(tx))));
            }
        }
        let signed = (0u8..).take(self.signed.len());
        let certified = signed.filter(|tx| self.is_certified(state, Tx::Signed(*tx)));
        let news = |tx: &u8| {
            let known = sure(state.docket.transaction(self.core(Tx::Signed(*tx)).id));
            !known.is_some_and(|known| known.certified)
        };
        actions.extend(certified.filter(news).map(Action::ShowCertificate));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        mutants::set(self.left_out);
        let mut next = state.clone();
        match action {
            Action::Show(at, tx) => next.honest[at].locks.push(tx),
            Action::Freeze(at, coin) => {
                next.honest[at].executed.insert(coin, None);
            }
            Action::Report(at, coin) => {
                let held = self.held(&state.honest[at], coin);
                self.report(&mut next.docket, at, coin, &held);
            }
            Action::Lie(coin, said) => {
                let held = said.map_or(Held::Free, |tx| Held::For(self.core(Tx::Signed(tx))));
                self.report(&mut next.docket, self.honest(), coin, &held);
            }
            Action::ShowCertificate(tx) => {
                let core = self.core(Tx::Signed(tx));
                let mut releases = Releases::new(&mut next.docket, &self.weights);
                let _ = sure(releases.certified(&core));
            }
            Action::Decide(at, coin) => {
                let decision = sure(state.docket.coin(name(coin))).decision;
                next.honest[at].executed.insert(coin, decision);
            }
        }
        Some(self.sorted(next))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            if 2 * (self.weights.quorum() - self.weights.faulty_max()) > self.weights.total() {
                Property::always("decided once all reported", |model: &Self, state: &State| {
                    !model.is_stuck(state)
                })
            } else {
                Property::sometimes("two stay possible for ever", Self::is_stuck)
            },
            Property::always(NEVER_TWO, |model: &Self, state: &State| !model.is_two(state)),
            Property::sometimes("a stuck one is certified", |model: &Self, state: &State| {
                let followed = |one: &Honest, tx: &Tx| {
                    let taken = model.takes(*tx);
                    one.locks
                        .iter()
                        .take_while(|other| *other != tx)
                        .any(|other| model.takes(*other).iter().any(|coin| taken.contains(coin)))
                };
                let mut certified =
                    model.transactions().filter(|tx| model.is_certified(state, *tx));
                certified.any(|tx| {
                    matches!(tx, Tx::Signed(_))
                        && state
                            .honest
                            .iter()
                            .any(|one| one.locks.contains(&tx) && followed(one, &tx))
                })
            }),
            Property::sometimes("a refund is certified", |model: &Self, state: &State| {
                (0..model.coins).any(|coin| model.is_certified(state, Tx::Refund(coin)))
            }),
        ]
    }
}

const NEVER_TWO: &str = "never two certificates";

/// Every state that can be reached, and what was found on the way.
fn explored(model: Release) -> impl Checker<Release> {
    model.checker().threads(2).spawn_bfs().join()
}

/// One coin, two transactions that spend it.
fn one_coin(authorities: usize) -> Release {
    Release::new(authorities, 1, &[&[0], &[0]])
}

/// Two coins, one transaction of both, and one of the second alone.
fn two_coins() -> Release {
    Release::new(4, 2, &[&[0, 1], &[1]])
}

#[test]
fn a_release_never_makes_two_certificates_and_gives_coins_back() {
    explored(one_coin(4)).assert_properties();
}

#[test]
fn five_authorities_decide_once_all_reported() {
    explored(one_coin(5)).assert_properties();
}

#[test]
fn a_transaction_of_two_coins_is_decided_for_both() {
    explored(two_coins()).assert_properties();
}

#[test]
fn broken_rules_are_caught() {
    use Mutant::{PayRefundSetsFree, PayReleaseMostReported, PayReleaseUnheard, PayVoteOverFrozen};
    let broken = [PayRefundSetsFree, PayReleaseMostReported, PayReleaseUnheard, PayVoteOverFrozen];
    for rule in broken {
        let model = Release { left_out: Some(rule), ..one_coin(4) };
        assert!(explored(model).discovery(NEVER_TWO).is_some(), "{rule:?}");
    }
    let rule = Mutant::PayReleaseOneInput;
    let model = Release { left_out: Some(rule), ..two_coins() };
    assert!(explored(model).discovery(NEVER_TWO).is_some(), "{rule:?}");
}
