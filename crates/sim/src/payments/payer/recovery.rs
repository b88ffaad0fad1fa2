//! What a wallet asks of its authorities, by the rules of wallets: records and states of coins once
//! its book was lost, and to keep the receipts of what it took in.

use super::book::{Hold, certificates};
use super::{LOOK_AFTER, LOOK_AFTER_MAX, Question, Wallet};
use crate::payments::committee::Committee;
use quorate_crypto::Bitmap;
use quorate_payments::release::ReleaseStep;
use quorate_payments::{
    Coin, CoinStatus, Numbered, OutputId, RecordContent, Transaction, TxCertificate, TxId,
    WalletRecord, WalletReply, WalletRequest,
};
use quorate_types::{ReplicaId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time that other authorities get once a quorum answered, as wallets give it.
const OTHERS: Duration = Duration::from_secs(2);

/// Something that a wallet does beside paying.
#[derive(Debug)]
pub(in crate::payments) enum Deed {
    /// Asks an authority.
    Ask(ReplicaId, Numbered<WalletRequest>),
    /// Has a step ordered.
    Submit(Box<ReleaseStep>),
    /// Signed a transaction.
    Made(Arc<Transaction>),
    /// Learned that these coins exist, of a transaction of its own.
    Paid(Vec<Coin>),
}

impl Wallet {
    /// Tells whether a look is to be scheduled, and notes that it is; after which time.
    pub(in crate::payments) fn begin_looking(&mut self) -> Option<Duration> {
        let book = &self.book;
        let is_needed = book.is_recovering
            || !book.holds.is_empty()
            || !book.blocked.is_empty()
            || !book.stored.is_empty()
            || !book.unrecorded.is_empty();
        if !self.is_up || self.is_look_due || !is_needed {
            return None;
        }
        self.is_look_due = true;
        let after = self.look_after;
        self.look_after = (after * 2).min(LOOK_AFTER_MAX);
        Some(after)
    }

    /// Looks after what it waits for, and does what is due.
    ///
    /// `committee` orders releases; whether it still does, `asks` says.
    pub(in crate::payments) fn look(
        &mut self,
        now: Time,
        committee: &Committee,
        asks: bool,
    ) -> Vec<Deed> {
        self.is_look_due = false;
        let mut deeds = self.conclude(now);
        deeds.extend(self.release(now, committee, asks));
        if !asks {
            self.try_again(now);
        }
        self.wonder();
        deeds.extend(self.ask());
        deeds
    }

    /// Makes questions of what it does not know: records first, then coins.
    fn wonder(&mut self) {
        let is_asked = |kind: fn(&WalletRequest) -> bool| {
            self.questions.iter().any(|question| kind(&question.request))
        };
        let mut requests = Vec::new();
        if self.book.is_recovering {
            if !is_asked(|request| matches!(request, WalletRequest::Records { .. })) {
                requests.push(WalletRequest::Records { after: None });
            }
        } else {
            let unasked = self.book.unasked();
            if !unasked.is_empty() && !is_asked(|one| matches!(one, WalletRequest::Coins(_))) {
                requests.push(WalletRequest::Coins(unasked));
            }
            if !is_asked(|request| matches!(request, WalletRequest::Store(_))) {
                requests.extend(self.unrecorded());
            }
        }
        for request in requests {
            self.asked += 1;
            let (number, answers) = (self.asked, BTreeMap::new());
            self.questions.push(Question { number, request, answers, until: None });
        }
    }

    /// A record of coins that came in by one transaction; forgets those that were spent.
    fn unrecorded(&mut self) -> Option<WalletRequest> {
        while let Some(tx) = self.book.unrecorded.first().copied() {
            let coins = self.book.coins.values().filter(|coin| coin.id.tx == tx);
            let coins: Vec<Coin> = coins.cloned().collect();
            if !coins.is_empty() {
                let content = RecordContent::Received(coins);
                let record = WalletRecord { content, note: Vec::new() };
                return Some(WalletRequest::Store(Box::new(record)));
            }
            self.book.unrecorded.remove(&tx);
        }
        None
    }

    fn ask(&self) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for Question { number, request, answers, .. } in &self.questions {
            let silent =
                self.network.committee().members().filter(|one| !answers.contains_key(one));
            let numbered = || Numbered { number: *number, content: request.clone() };
            deeds.extend(silent.map(|to| Deed::Ask(to, numbered())));
        }
        deeds
    }

    /// Takes an authority's reply in, where it answers what was asked.
    pub(in crate::payments) fn on_reply(
        &mut self,
        now: Time,
        from: ReplicaId,
        reply: Numbered<WalletReply>,
    ) -> Vec<Deed> {
        let Some(question) = self.questions.iter_mut().find(|one| one.number == reply.number)
        else {
            return Vec::new();
        };
        let fits = match (&question.request, &reply.content) {
            (WalletRequest::Coins(inputs), WalletReply::Coins(states)) => {
                inputs.len() == states.len()
            }
            (WalletRequest::Records { .. }, WalletReply::Records { .. })
            | (WalletRequest::Store(_), WalletReply::Done) => true,
            _ => false,
        };
        if fits {
            question.answers.insert(from, reply.content);
        }
        self.conclude(now)
    }

    /// Takes in what was answered by a quorum, and by whoever else answered soon after.
    fn conclude(&mut self, now: Time) -> Vec<Deed> {
        let committee = self.network.committee();
        let mut over = Vec::new();
        for question in &mut self.questions {
            let who = question.answers.keys().map(|one| one.index());
            let who = Bitmap::from_indices(committee.size(), who);
            if committee.weight_of(&who) < committee.quorum() {
                continue;
            }
            let until = *question.until.get_or_insert(now + OTHERS);
            let is_all = question.answers.len() == committee.size();
            if is_all || until <= now || matches!(question.request, WalletRequest::Store(_)) {
                over.push(question.number);
            }
        }
        let is_over = |question: &mut Question| over.contains(&question.number);
        let over: Vec<Question> = self.questions.extract_if(.., is_over).collect();
        let mut deeds = Vec::new();
        for Question { request, answers, .. } in over {
            self.look_after = LOOK_AFTER;
            match request {
                WalletRequest::Records { .. } => deeds.extend(self.take_records(now, answers)),
                WalletRequest::Coins(inputs) => self.take_states(&inputs, &answers),
                WalletRequest::Store(record) => {
                    let tx = record.name(&self.network).expect("it has coins").tx;
                    self.book.unrecorded.remove(&tx);
                    self.recorded.insert(tx);
                }
                WalletRequest::Remove(_)
                | WalletRequest::Changes { .. }
                | WalletRequest::Counting(_)
                | WalletRequest::Report(_) => unreachable!("it was not asked"),
            }
        }
        deeds
    }

    /// Takes in the records of a quorum: what proves itself, what is known to be final first.
    fn take_records(&mut self, now: Time, answers: BTreeMap<ReplicaId, WalletReply>) -> Vec<Deed> {
        let (network, owner) = (Arc::clone(&self.network), self.owner());
        let mut certified: BTreeMap<TxId, TxCertificate> = BTreeMap::new();
        let mut sent: BTreeMap<TxId, Transaction> = BTreeMap::new();
        let records = answers.into_values().filter_map(|reply| match reply {
            WalletReply::Records { records, .. } => Some(records),
            _ => None,
        });
        for record in records.flatten().filter(|record| record.is_genuine(&network, owner)) {
            match record.content {
                RecordContent::Sent(tx) => {
                    let spent = tx.spent_coins();
                    certified.extend(certificates(&spent).map(|(id, one)| (id, one.clone())));
                    sent.insert(tx.id(network.id()), *tx);
                }
                RecordContent::Received(coins) => {
                    for coin in coins {
                        self.book.add(coin, false);
                    }
                }
            }
        }
        let mut sent: Vec<_> = sent.into_iter().collect();
        sent.sort_by_key(|(id, _)| !certified.contains_key(id));
        let mut deeds = Vec::new();
        for (id, tx) in sent {
            self.book.regain(id, tx.clone());
            if let Some(certificate) = certified.get(&id) {
                deeds.push(Deed::Paid(self.end(&tx, certificate)));
            }
        }
        self.book.is_recovering = false;
        self.resume(now);
        deeds
    }

    /// A coin may be spent again when a quorum says that it is free.
    fn take_states(&mut self, inputs: &[OutputId], answers: &BTreeMap<ReplicaId, WalletReply>) {
        for (at, input) in inputs.iter().enumerate() {
            let said = answers.iter().filter_map(|(from, reply)| match reply {
                WalletReply::Coins(states) => Some((*from, states.get(at)?)),
                _ => None,
            });
            let said: Vec<_> = said.collect();
            let agreed = CoinStatus::agreed(&self.network, self.owner(), *input, &said);
            if self.book.holds.get(input) != Some(&Hold::Unasked) {
                continue;
            }
            match agreed {
                Some(CoinStatus::Free) => self.book.holds.remove(input),
                Some(CoinStatus::Locked { .. } | CoinStatus::Frozen) => {
                    self.book.holds.insert(*input, Hold::Locked)
                }
                Some(CoinStatus::Contested) | None => None,
            };
        }
    }
}
