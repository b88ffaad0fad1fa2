//! A payer: it shows a transaction to all authorities until a quorum's votes are a certificate.
//!
//! * A transaction is durable before it is sent first ([`PayerEffect::Store`]), so that a payer
//!   that crashes sends the same one again: a second one over the same coins would lock them for
//!   good.
//! * Silence and [`Verdict::Busy`] mean again later; what is sent again is the same bytes.
//! * Votes are counted together ([`PayerEffect::Count`]); those of an authority that sent a bad one
//!   are checked alone from then on.
//! * Refusals that an honest authority is among end it: the transaction is invalid. Refusals for a
//!   taken input end it when those who did not refuse are no quorum. The end of an input's release
//!   ends it when an honest authority is among those who say so; until there is one, it waits.
//! * A transaction that a release was decided for ([`PayerEvent::Claim`]) waits for authorities
//!   that are locked for another: they vote once they follow the decision.

use crate::release::Decision;
use crate::wire::{Answer, Verdict};
use crate::{
    Counted, Equivocation, Invalid, Network, OutputId, Transaction, TxCertificate, TxId, Vote,
};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::Bitmap;
use quorate_types::{Machine, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// First wait before authorities that did not answer are asked again; twice as long each time.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Longest wait before authorities are asked again.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(8);

/// Input of a payer.
#[derive(Debug)]
pub enum PayerEvent {
    /// Pay this: valid, signed, and of this payer's network.
    Pay(Arc<Transaction>),
    /// As [`PayerEvent::Pay`], of what the release of its inputs was decided for. One that is under
    /// way goes on as this.
    Claim(Arc<Transaction>),
    /// The answer to [`PayerEffect::Store`].
    Stored(TxId),
    /// An authority's answer, as its channel proved.
    Answer {
        /// Authority that answered, as its channel proved.
        from: ReplicaId,
        /// Answer to the transaction.
        answer: Answer,
    },
    /// The answer to [`PayerEffect::Count`].
    Counted(TxId, Counted),
}

/// Effect that a payer requires of its host.
#[derive(Debug)]
pub enum PayerEffect {
    /// Make this transaction durable, then answer [`PayerEvent::Stored`].
    Store(Arc<Transaction>),
    /// Show it to an authority: to the shard of its payer.
    Send {
        /// Authority that is shown the transaction.
        to: ReplicaId,
        /// Transaction, as it was stored.
        transaction: Arc<Transaction>,
    },
    /// Make a certificate off the machine, then answer [`PayerEvent::Counted`].
    Count(CountJob),
    /// The payment has ended, with this outcome.
    Done(TxId, PaymentOutcome),
}

/// Votes to count, off the machine.
#[derive(Clone, Debug)]
pub struct CountJob {
    /// Transaction that the votes are for.
    pub tx: TxId,
    /// Votes by the authorities that gave them.
    pub votes: Vec<(ReplicaId, Vote)>,
    /// Authorities that sent bad votes before: theirs are checked alone.
    pub suspects: Bitmap,
}

impl CountJob {
    /// Counts the votes, and checks the certificate. Pure.
    #[must_use]
    pub fn run(&self, network: &Network) -> Counted {
        network.votes().count(self.tx, &self.votes, &self.suspects)
    }
}

/// Outcome of a payment, which is final.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PaymentOutcome {
    /// Final: the certificate convinces anybody, offline.
    Certified(Box<TxCertificate>),
    /// The transaction will never be certified: an honest authority found it invalid.
    Refused(Invalid),
    /// So many authorities are locked for another transaction of the same payer that this one
    /// waits for nothing but liars, or a [release](crate::release). With the proof that the payer
    /// signed both, where one was shown.
    Conflicting(Option<Box<Equivocation>>),
    /// An input of it was released otherwise, so that it will never be certified.
    Released(OutputId, Decision),
}

/// Machine of a payer. Payments are independent of each other; hundreds may be under way.
#[derive(Debug)]
pub struct Payer {
    network: Arc<Network>,
    under_way: BTreeMap<TxId, Payment>,
    suspects: Bitmap,
    effects: VecDeque<PayerEffect>,
}

/// A payment under way.
#[derive(Debug)]
struct Payment {
    transaction: Arc<Transaction>,
    votes: BTreeMap<ReplicaId, Vote>,
    /// True while votes are being counted.
    counting: bool,
    /// True if the release of its inputs was decided for it, so that no lock is for ever.
    is_due: bool,
    invalid: BTreeMap<ReplicaId, Invalid>,
    locked: BTreeSet<usize>,
    released: BTreeMap<ReplicaId, (OutputId, Decision)>,
    proof: Option<Box<Equivocation>>,
    retry_after: Duration,
    /// Time at which the authorities that did not answer are asked again; none before the
    /// transaction is stored.
    ask_at: Option<Time>,
}

impl Payer {
    /// A payer with nothing to pay.
    #[must_use]
    pub fn new(network: Arc<Network>) -> Self {
        let suspects = Bitmap::new(network.committee().size());
        Self { network, under_way: BTreeMap::new(), suspects, effects: VecDeque::new() }
    }

    /// Number of payments under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn on_pay(&mut self, transaction: Arc<Transaction>, is_due: bool) {
        let tx = transaction.id(self.network.id());
        if let Some(payment) = self.under_way.get_mut(&tx) {
            payment.is_due |= is_due;
            return;
        }
        let payment = Payment {
            transaction: Arc::clone(&transaction),
            votes: BTreeMap::new(),
            counting: false,
            is_due,
            invalid: BTreeMap::new(),
            locked: BTreeSet::new(),
            released: BTreeMap::new(),
            proof: None,
            retry_after: RETRY_AFTER,
            ask_at: None,
        };
        self.under_way.insert(tx, payment);
        self.effects.push_back(PayerEffect::Store(transaction));
    }

    fn on_stored(&mut self, now: Time, tx: TxId) {
        if self.under_way.get(&tx).is_some_and(|payment| payment.ask_at.is_none()) {
            self.ask(now, tx);
        }
    }

    /// Shows it to everybody who did not vote: those too that are locked for another one, for its
    /// release may be decided for this one.
    fn ask(&mut self, now: Time, tx: TxId) {
        let payment = self.under_way.get_mut(&tx).expect("the caller found it");
        payment.ask_at = Some(now + payment.retry_after);
        payment.retry_after = (payment.retry_after * 2).min(RETRY_AFTER_MAX);
        for to in self.network.committee().members() {
            if !payment.votes.contains_key(&to) {
                let transaction = Arc::clone(&payment.transaction);
                self.effects.push_back(PayerEffect::Send { to, transaction });
            }
        }
    }

    fn on_answer(&mut self, from: ReplicaId, Answer { tx, verdict }: Answer) {
        if !self.network.committee().contains(from) {
            return;
        }
        let Some(payment) = self.under_way.get_mut(&tx) else { return };
        match verdict {
            Verdict::Vote(vote) => {
                payment.votes.entry(from).or_insert(vote);
                payment.locked.remove(&from.index());
                self.count(tx);
            }
            Verdict::Invalid(invalid) => {
                payment.invalid.insert(from, invalid);
                self.end_if_decided(tx);
            }
            Verdict::Locked { first, .. } => {
                payment.locked.insert(from.index());
                let second = payment.transaction.core(self.network.id());
                let shown = first.map(|first| Equivocation { first: *first, second });
                let proof = shown.filter(|shown| shown.is_proven(&self.network)).map(Box::new);
                payment.proof = payment.proof.take().or(proof);
                self.end_if_decided(tx);
            }
            Verdict::Released { input, decision } => {
                payment.released.insert(from, (input, decision));
                self.end_if_released(tx, (input, decision));
            }
            Verdict::Busy | Verdict::Undecided { .. } | Verdict::Closed => {}
        }
    }

    fn end_if_released(&mut self, tx: TxId, end: (OutputId, Decision)) {
        let committee = self.network.committee();
        let agree = self.under_way[&tx].released.iter().filter(|(_, said)| **said == end);
        let agree = agree.map(|(one, _)| one.index());
        if committee.includes_honest(&Bitmap::from_indices(committee.size(), agree)) {
            self.end(tx, PaymentOutcome::Released(end.0, end.1));
        }
    }

    fn count(&mut self, tx: TxId) {
        let payment = self.under_way.get_mut(&tx).expect("the caller found it");
        let committee = self.network.committee();
        let voters = payment.votes.keys().map(|voter| voter.index());
        let voters = Bitmap::from_indices(committee.size(), voters);
        if payment.counting || committee.weight_of(&voters) < committee.quorum() {
            return;
        }
        payment.counting = true;
        let votes = payment.votes.iter().map(|(voter, vote)| (*voter, vote.clone())).collect();
        let suspects = self.suspects.clone();
        self.effects.push_back(PayerEffect::Count(CountJob { tx, votes, suspects }));
    }

    fn on_counted(&mut self, tx: TxId, counted: Counted) {
        let Some(payment) = self.under_way.get_mut(&tx) else { return };
        payment.counting = false;
        if let Some(certificate) = counted.certificate {
            return self.end(tx, PaymentOutcome::Certified(Box::new(certificate)));
        }
        for bad in counted.bad {
            self.suspects.insert(bad);
            payment.votes.retain(|voter, _| voter.index() != bad);
        }
        self.count(tx);
    }

    fn end_if_decided(&mut self, tx: TxId) {
        let payment = &self.under_way[&tx];
        let committee = self.network.committee();
        let refused = payment.invalid.keys().map(|one| one.index());
        if committee.includes_honest(&Bitmap::from_indices(committee.size(), refused)) {
            let reason = payment.invalid.values().next().expect("some refused").clone();
            return self.end(tx, PaymentOutcome::Refused(reason));
        }
        if payment.is_due {
            return;
        }
        let locked = payment.locked.iter().copied();
        let locked = committee.weight_of(&Bitmap::from_indices(committee.size(), locked));
        let left = committee.weights().total() - locked;
        // Without a proof some may lie; so many as a quorum do not.
        if payment.proof.is_some() && left < committee.quorum() || locked >= committee.quorum() {
            let proof = payment.proof.clone();
            self.end(tx, PaymentOutcome::Conflicting(proof));
        }
    }

    fn end(&mut self, tx: TxId, outcome: PaymentOutcome) {
        self.under_way.remove(&tx);
        self.effects.push_back(PayerEffect::Done(tx, outcome));
    }
}

impl Machine for Payer {
    type Input = PayerEvent;
    type Effect = PayerEffect;

    fn handle(&mut self, now: Time, input: PayerEvent) {
        match input {
            PayerEvent::Pay(transaction) => self.on_pay(transaction, false),
            PayerEvent::Claim(transaction) => self.on_pay(transaction, true),
            PayerEvent::Stored(tx) => self.on_stored(now, tx),
            PayerEvent::Answer { from, answer } => self.on_answer(from, answer),
            PayerEvent::Counted(tx, counted) => self.on_counted(tx, counted),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        let is_due = |payment: &Payment| payment.ask_at.is_some_and(|at| at <= now);
        let due = self.under_way.iter().filter(|(_, payment)| is_due(payment));
        for tx in due.map(|(tx, _)| *tx).collect::<Vec<_>>() {
            self.ask(now, tx);
        }
    }

    fn poll(&mut self) -> Option<PayerEffect> {
        self.effects.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        self.under_way.values().filter_map(|payment| payment.ask_at).min()
    }
}

#[cfg(test)]
mod tests;
