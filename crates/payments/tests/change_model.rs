//! ADR 42, every order of it: what four authorities voted for when an epoch ended, the report of
//! the one that is Byzantine, the reports that each authority of the next epoch begins with and
//! takes in later, and what is voted for then. Once the epoch has ended its keys are everybody's:
//! certificates of it can be had for anything. What counts, and what an honest authority votes for,
//! is the production code's word.

use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, IdentityKey, Signature};
use quorate_payments::change::{Inheritance, LockEntry};
use quorate_payments::{Core, CoreKind, Lock, LockStatus, OutputId, ReleaseEntry, SpentSet, TxId};
use quorate_types::{ReplicaId, Weights};
use stateright::{Checker, Model, Property};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A coin, and a transaction, by their numbers.
type Coin = u8;
type Tx = u8;

/// Authorities of both epochs, of which the last is Byzantine, and what the owner of the coins
/// signed.
#[derive(Clone)]
struct Border {
    weights: Weights,
    /// Coins that each of the transactions takes.
    signed: Vec<Vec<Coin>>,
    /// Rule of the production code that is left out.
    left_out: Option<Mutant>,
}

const FAULTY: usize = 1;

/// An honest authority of the epoch that ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Former {
    /// Transactions that it voted for before it closed, and reports.
    closed_with: Vec<Tx>,
    /// Those after.
    late: Vec<Tx>,
}

/// An honest authority of the next epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Next {
    /// Authorities whose reports it has read.
    read: BTreeSet<usize>,
    /// Transactions that it voted for, shown again.
    voted: BTreeSet<Tx>,
    /// Transactions whose outputs it voted to spend.
    believed: BTreeSet<Tx>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    former: Vec<Former>,
    /// Locks that the Byzantine authority reports.
    lies: BTreeSet<(Tx, Coin)>,
    next: Vec<Next>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// A transaction reaches an honest authority that has closed.
    ShowLate(usize, Tx),
    /// An authority of the next epoch reads more reports.
    Read(usize, BTreeSet<usize>),
    /// A transaction reaches it.
    Show(usize, Tx),
    /// So does one that spends an output of a transaction, with a certificate of the former epoch.
    ShowChild(usize, Tx),
}

fn coin(number: Coin) -> OutputId {
    OutputId { tx: TxId(Digest([number; 32])), index: 0 }
}

fn name(tx: Tx) -> TxId {
    TxId(Digest([100 + tx; 32]))
}

fn replica(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("few"))
}

impl Border {
    fn new(signed: &[&[Coin]]) -> Self {
        let signed = signed.iter().map(|locks| locks.to_vec()).collect();
        Self { weights: Weights::equal(4), signed, left_out: None }
    }

    fn honest(&self) -> usize {
        self.weights.members() - FAULTY
    }

    fn transactions(&self) -> impl Iterator<Item = Tx> {
        (0..).take(self.signed.len())
    }

    fn takes(&self, tx: Tx) -> &[Coin] {
        &self.signed[usize::from(tx)]
    }

    fn core(&self, tx: Tx) -> Core {
        Core {
            id: name(tx),
            payer: IdentityKey([1; 32]),
            locks: self.takes(tx).iter().copied().map(coin).collect(),
            kind: CoreKind::Spend,
            outputs: Digest::ZERO,
            signature: Signature([0; 64]),
        }
    }

    fn locked(&self, spent: SpentSet, locks: impl Iterator<Item = Tx>) -> SpentSet {
        for (sequence, tx) in (0..).zip(locks) {
            spent.lock(&Lock { sequence, core: self.core(tx) });
        }
        spent
    }

    /// Tells whether an honest authority with these locks would vote for what it had not locked.
    fn votes(&self, spent: &SpentSet, tx: Tx) -> bool {
        matches!(spent.status(&self.core(tx)), Ok(LockStatus::Free))
    }

    fn former(&self, one: &Former) -> SpentSet {
        let locks = one.closed_with.iter().chain(&one.late).copied();
        let spent = self.locked(SpentSet::default(), locks);
        spent.frozen().apply(ReleaseEntry::Close);
        spent
    }

    fn report(&self, state: &State, from: usize) -> Vec<LockEntry> {
        let mut locks: Vec<LockEntry> = match state.former.get(from) {
            Some(honest) => {
                let entries = |tx: &Tx| {
                    let tx = *tx;
                    self.takes(tx).iter().map(move |taken| (name(tx), coin(*taken)))
                };
                honest.closed_with.iter().flat_map(entries).collect()
            }
            None => state.lies.iter().map(|(tx, taken)| (name(*tx), coin(*taken))).collect(),
        };
        locks.sort_unstable();
        locks
    }

    fn inherited(&self, state: &State, read: &BTreeSet<usize>) -> Option<Inheritance> {
        let reports = read.iter().map(|from| (replica(*from), self.report(state, *from)));
        Inheritance::default().after(&self.weights, &reports.collect::<BTreeMap<_, _>>())
    }

    fn next(&self, state: &State, one: &Next) -> Option<SpentSet> {
        let inherited = self.inherited(state, &one.read)?;
        let spent = SpentSet::default().after(Arc::new(inherited));
        Some(self.locked(spent, one.voted.iter().copied()))
    }

    fn is_quorum(&self, honest: usize) -> bool {
        (honest + FAULTY) as u64 >= self.weights.quorum()
    }

    fn was_certified(&self, state: &State, tx: Tx) -> bool {
        let voted = |one: &&Former| one.closed_with.contains(&tx) || one.late.contains(&tx);
        self.is_quorum(state.former.iter().filter(voted).count())
    }

    fn is_certified(&self, state: &State, tx: Tx) -> bool {
        self.is_quorum(state.next.iter().filter(|one| one.voted.contains(&tx)).count())
    }

    /// Tells whether its outputs were spent in the next epoch, by a certificate of the former.
    fn is_believed(&self, state: &State, tx: Tx) -> bool {
        self.is_quorum(state.next.iter().filter(|one| one.believed.contains(&tx)).count())
    }

    fn is_two(&self, state: &State) -> bool {
        let takes_effect = |tx: &Tx| {
            self.was_certified(state, *tx)
                || self.is_certified(state, *tx)
                || self.is_believed(state, *tx)
        };
        let mut taken = BTreeSet::new();
        let coins = self.transactions().filter(takes_effect).flat_map(|tx| self.takes(tx));
        coins.into_iter().any(|one| !taken.insert(*one))
    }

    /// Every way in which an honest authority may have closed.
    fn closings(&self) -> Vec<Former> {
        let mut found = vec![Former::default()];
        let mut at = 0;
        while at < found.len() {
            let one = found[at].clone();
            let spent = self.locked(SpentSet::default(), one.closed_with.iter().copied());
            for tx in self.transactions().filter(|tx| self.votes(&spent, *tx)) {
                let mut more = one.clone();
                more.closed_with.push(tx);
                more.closed_with.sort_unstable();
                if !found.contains(&more) {
                    found.push(more);
                }
            }
            at += 1;
        }
        found
    }

    fn lies(&self) -> Vec<BTreeSet<(Tx, Coin)>> {
        let coins: BTreeSet<Coin> = self.signed.iter().flatten().copied().collect();
        let pairs: Vec<(Tx, Coin)> = self
            .transactions()
            .flat_map(|tx| coins.iter().map(move |taken| (tx, *taken)))
            .collect();
        let chosen = |bits: usize| {
            let is_in = |(at, _): &(usize, &(Tx, Coin))| bits >> *at & 1 == 1;
            pairs.iter().enumerate().filter(is_in).map(|(_, pair)| *pair).collect()
        };
        (0..1 << pairs.len()).map(chosen).collect()
    }
}

impl Model for Border {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        mutants::set(self.left_out);
        let closings = self.closings();
        let mut formers = vec![Vec::new()];
        for _ in 0..self.honest() {
            let with = |known: &Vec<Former>| {
                let known = known.clone();
                let may_follow = move |one: &&Former| known.last() <= Some(*one);
                let (known, closings) = (may_follow, &closings);
                closings.iter().filter(known).cloned().collect::<Vec<_>>()
            };
            formers = formers
                .iter()
                .flat_map(|known| {
                    with(known).into_iter().map(|one| [known.clone(), vec![one]].concat())
                })
                .collect();
        }
        let next = vec![Next::default(); self.honest()];
        let states = |former: Vec<Former>| {
            let next = next.clone();
            let state = move |lies| State { former: former.clone(), lies, next: next.clone() };
            self.lies().into_iter().map(state)
        };
        formers.into_iter().flat_map(states).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // On whatever thread of the checker's this is.
        mutants::set(self.left_out);
        for (at, one) in state.former.iter().enumerate() {
            let spent = self.former(one);
            let late = self.transactions().filter(|tx| self.votes(&spent, *tx));
            actions.extend(late.map(|tx| Action::ShowLate(at, tx)));
        }
        let all = self.weights.members();
        let readings = (0..1_usize << all)
            .map(|bits| (0..all).filter(|at| bits >> at & 1 == 1).collect::<BTreeSet<usize>>());
        let readings: Vec<_> =
            readings.filter(|read| self.inherited(state, read).is_some()).collect();
        for (at, one) in state.next.iter().enumerate() {
            let more = readings.iter().filter(|read| read.is_superset(&one.read));
            let more = more.filter(|read| **read != one.read);
            actions.extend(more.map(|read| Action::Read(at, read.clone())));
            let Some(spent) = self.next(state, one) else { continue };
            let again = self.transactions().filter(|tx| self.votes(&spent, *tx));
            actions.extend(again.map(|tx| Action::Show(at, tx)));
            let counts = |tx: &Tx| {
                spent.inherited().admits(name(*tx)) == Ok(true) && !one.believed.contains(tx)
            };
            let children = self.transactions().filter(counts);
            actions.extend(children.map(|tx| Action::ShowChild(at, tx)));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::ShowLate(at, tx) => next.former[at].late.push(tx),
            Action::Read(at, read) => next.next[at].read = read,
            Action::Show(at, tx) => drop(next.next[at].voted.insert(tx)),
            Action::ShowChild(at, tx) => drop(next.next[at].believed.insert(tx)),
        }
        // Who is who makes no difference there.
        next.next.sort();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NEVER_TWO, |model: &Self, state: &State| !model.is_two(state)),
            Property::sometimes("what was certified is spent", |model: &Self, state: &State| {
                let spent = |tx| model.was_certified(state, tx) && model.is_believed(state, tx);
                model.transactions().any(spent)
            }),
            Property::sometimes("what was under way is finished", |model: &Self, state: &State| {
                let voted = |tx| state.former.iter().any(|one| one.closed_with.contains(&tx));
                let finished = |tx| {
                    !model.was_certified(state, tx) && voted(tx) && model.is_certified(state, tx)
                };
                model.transactions().any(finished)
            }),
        ]
    }
}

const NEVER_TWO: &str = "never two certificates over both epochs";

/// Every state that can be reached, and what was found on the way.
fn explored(model: Border) -> impl Checker<Border> {
    model.checker().threads(2).spawn_bfs().join()
}

/// One coin, two transactions that spend it.
fn one_coin() -> Border {
    Border::new(&[&[0], &[0]])
}

#[test]
fn no_coin_is_taken_twice_over_a_border() {
    explored(one_coin()).assert_properties();
}

/// Also where the Byzantine authority reports parts of a transaction, or coins that it does not
/// take.
#[test]
fn nor_is_one_of_two_coins() {
    explored(Border::new(&[&[0, 1], &[1]])).assert_properties();
}

#[test]
fn broken_rules_are_caught() {
    use Mutant::{
        PayAdmitOnOneReport, PayUnionOfFewer, PayUnionTakesOne, PayUnionUnheard,
        PayVoteAfterClosing,
    };
    for rule in [
        PayAdmitOnOneReport,
        PayUnionOfFewer,
        PayUnionTakesOne,
        PayUnionUnheard,
        PayVoteAfterClosing,
    ] {
        let model = Border { left_out: Some(rule), ..one_coin() };
        assert!(explored(model).discovery(NEVER_TWO).is_some(), "{rule:?}");
    }
}
