//! Authorities that may say anything.

mod closings;

use quorate_crypto::{Digest, KeyFile, Share};
use quorate_deterministic::Rng;
use quorate_payments::release::{Held, Report};
use quorate_payments::{
    Answer, Coin, CoinStatus, Core, Invalid, Network, Origin, Output, OutputId, RecordContent,
    Transaction, TxId, Verdict, Vote, WalletRecord, WalletReply, WalletRequest,
};
use quorate_types::ReplicaId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Transactions that are remembered for a coin.
const SEEN_MAX: usize = 4;

/// Behaviour of an authority, honest or in one way faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// Follows the protocol in all it does.
    Honest,
    /// Takes every order and never answers.
    Silent,
    /// It votes for whatever it is shown.
    SignsEverything,
    /// It says one thing to one payer and another to the next.
    TwoFaced,
    /// It answers with votes that are none.
    BadVotes,
}

impl Behaviour {
    /// All but the honest one.
    pub const FAULTY: [Self; 4] =
        [Self::Silent, Self::SignsEverything, Self::TwoFaced, Self::BadVotes];

    /// Name for several of its kind, in statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest authorities",
            Self::Silent => "silent authorities",
            Self::SignsEverything => "authorities that sign everything",
            Self::TwoFaced => "two-faced authorities",
            Self::BadVotes => "authorities with bad votes",
        }
    }
}

/// Answer of a faulty authority to an order, if any.
pub(super) fn answer(
    behaviour: Behaviour,
    network: &Network,
    keys: &KeyFile,
    me: ReplicaId,
    tx: &Transaction,
    rng: &mut Rng,
) -> Option<Answer> {
    let id = tx.id(network.id());
    let vote = |id: TxId| network.votes().sign(&keys.voting, me, &[id]).remove(0);
    let verdict = match behaviour {
        Behaviour::Honest | Behaviour::Silent => return None,
        Behaviour::SignsEverything => Verdict::Vote(vote(id)),
        Behaviour::TwoFaced => match rng.below(4) {
            0 => Verdict::Vote(vote(id)),
            1 => Verdict::Busy,
            2 => Verdict::Invalid(Invalid::OwnerSignature),
            _ => {
                let input = *tx.locks().first()?;
                let first = rng.coin().then(|| Box::new(tx.core(network.id())));
                Verdict::Locked { input, first }
            }
        },
        Behaviour::BadVotes => Verdict::Vote(match rng.below(3) {
            0 => vote(TxId(Digest(rng.bytes32()))),
            1 => Vote::Share(Share(rng.bytes32().repeat(rng.index(5)))),
            _ => spoilt(vote(id), rng),
        }),
    };
    Some(Answer { tx: id, verdict })
}

/// A vote with one bit that is not as it was.
fn spoilt(mut vote: Vote, rng: &mut Rng) -> Vote {
    let (Vote::Share(share) | Vote::Merkle(quorate_payments::MerkleVote { signature: share, .. })) =
        &mut vote;
    let at = rng.index(share.0.len());
    share.0[at] ^= 1 << rng.below(8);
    vote
}

/// What faulty authorities were shown, and may name where it hurts.
#[derive(Debug, Default)]
pub(super) struct Seen {
    orders: BTreeMap<OutputId, Vec<(Core, Transaction)>>,
}

impl Seen {
    pub(super) fn add(&mut self, network: &Network, tx: &Transaction) {
        let core = tx.core(network.id());
        for lock in &core.locks {
            let orders = self.orders.entry(*lock).or_default();
            if orders.len() < SEEN_MAX && orders.iter().all(|(known, _)| known.id != core.id) {
                orders.push((core.clone(), tx.clone()));
            }
        }
    }

    /// A transaction over a coin, if any was shown.
    fn over(&self, coin: OutputId, rng: &mut Rng) -> Option<&(Core, Transaction)> {
        self.orders.get(&coin).map(|orders| rng.choose(orders))
    }

    /// Reports of a faulty authority about a frozen coin: its own, several, or another's.
    pub(super) fn reports(
        &self,
        network: &Network,
        keys: &KeyFile,
        me: ReplicaId,
        coin: OutputId,
        rng: &mut Rng,
    ) -> Vec<Report> {
        let count = rng.index(3);
        let report = |_| {
            let held = self.lie(network, keys, coin, rng);
            let size = network.committee().size();
            let other = ReplicaId(u16::try_from(rng.index(size)).expect("few"));
            let authority = if rng.one_in(4) { other } else { me };
            Report::sign(network, &keys.identity, authority, coin, held)
        };
        (0..count).map(report).collect()
    }

    fn lie(&self, network: &Network, keys: &KeyFile, coin: OutputId, rng: &mut Rng) -> Held {
        match rng.below(8) {
            0 | 1 => Held::Free,
            2 => Held::Pruned(TxId(Digest(rng.bytes32()))),
            // A transaction over the coin, signed with a key of its own.
            3 | 4 => {
                let output = Output { owner: keys.identity.public(), value: 1 };
                let coin = Coin { id: coin, output, origin: Origin::Genesis };
                let theft = Transaction::spend(network, &keys.identity, &[coin], vec![output]);
                Held::For(theft.core(network.id()))
            }
            _ => match self.over(coin, rng) {
                Some((core, _)) if rng.one_in(4) => Held::Pruned(core.id),
                Some((core, _)) => Held::For(core.clone()),
                None => Held::Free,
            },
        }
    }

    /// Reply of a faulty authority to a wallet, if any: what it keeps is nobody's or somebody
    /// else's, what is locked is free, and what is free is locked.
    pub(super) fn reply(
        &self,
        behaviour: Behaviour,
        request: &WalletRequest,
        rng: &mut Rng,
    ) -> Option<WalletReply> {
        if behaviour == Behaviour::Silent {
            return None;
        }
        match request {
            WalletRequest::Coins(inputs) => {
                let state = |input: &OutputId| match self.over(*input, rng) {
                    Some((core, _)) if rng.one_in(3) => {
                        CoinStatus::Locked { tx: core.id, core: Some(Box::new(core.clone())) }
                    }
                    None if rng.one_in(3) => {
                        CoinStatus::Locked { tx: TxId(Digest(rng.bytes32())), core: None }
                    }
                    _ => CoinStatus::Free,
                };
                Some(WalletReply::Coins(inputs.iter().map(state).collect()))
            }
            WalletRequest::Records { .. } => {
                let all = self.orders.values().flatten().map(|(_, tx)| tx);
                let some = all.filter(|_| rng.one_in(4)).cloned();
                let record = |tx| WalletRecord {
                    content: RecordContent::Sent(Box::new(tx)),
                    note: Vec::new(),
                };
                let records = some.map(record).collect();
                Some(WalletReply::Records { records, more: false })
            }
            WalletRequest::Store(_)
            | WalletRequest::Remove(_)
            | WalletRequest::Changes { .. }
            | WalletRequest::Counting(_) => Some(WalletReply::Done),
            WalletRequest::Report(_) => Some(WalletReply::Report(None)),
        }
    }
}
