//! Records that a wallet keeps with its authorities, and questions about its coins: how a wallet
//! whose disk is lost is made again from its key.
//!
//! A [`WalletRecord`] is what an authority stores for a key: a transaction that it sent, which
//! travels with its order, or coins that it took in. Both prove themselves, so that an authority
//! can leave them out and can make up nothing; what authorities need not know (memo, time, the
//! owner's name for it) is a [`Note`] that only the wallet reads.
//!
//! ★ An authority stores a record for the key that the channel proved and no other, and only with a
//! valid order of that key or with coins that exist and belong to it: strangers fill no disks.

use crate::change::Change;
use crate::{
    Coin, Core, Invalid, Locked, LookupFailed, Network, OutputId, SpentSet, Transaction, TxId,
};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, IdentityKey};
use quorate_types::{Epoch, ReplicaId};
use std::collections::{BTreeMap, BTreeSet};

/// Words of a wallet to itself, as a rule sealed: opaque to authorities.
pub type Note = Vec<u8>;

/// Most bytes of a note.
pub const NOTE_BYTES_MAX: usize = 4 * 1024;

/// Most inputs, transactions, or names of records, in one request.
pub const REQUEST_ITEMS_MAX: usize = 256;

/// Most coins of one transaction.
const COINS_MAX: usize = Transaction::OUTPUTS_MAX;

/// Direction of a record's money.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum RecordKind {
    /// The wallet sent the transaction.
    Sent,
    /// The wallet took in coins of the transaction.
    Received,
}

/// Name of a wallet's record: at most one of each kind for a transaction.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct RecordName {
    /// Direction of the money.
    pub kind: RecordKind,
    /// Transaction that the record is about.
    pub tx: TxId,
}

/// Content of a record, which proves itself.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum RecordContent {
    /// A transaction of the wallet, as authorities were shown it.
    Sent(Box<Transaction>),
    /// Coins of one transaction that the wallet took in.
    Received(Vec<Coin>),
}

/// Record of a wallet: as an authority stores it and, of a transaction, in place of its bare order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct WalletRecord {
    /// Part that proves itself.
    pub content: RecordContent,
    /// Part that only the wallet reads.
    pub note: Note,
}

/// Request of a wallet about what belongs to its key, and about what it goes by.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum WalletRequest {
    /// Asks whether these inputs are locked: at most [`REQUEST_ITEMS_MAX`].
    Coins(Vec<OutputId>),
    /// Asks for the records behind this name, in the order of their names.
    Records {
        /// Name after which to go on; none for the first.
        after: Option<RecordName>,
    },
    /// Asks to store a record of coins that came in.
    Store(Box<WalletRecord>),
    /// Asks to remove records that the wallet does not need any more: at most
    /// [`REQUEST_ITEMS_MAX`].
    Remove(Vec<RecordName>),
    /// Asks for the changes to the epochs after this one, in their order. Nothing of them is
    /// believed but what [`Network::succeed`] proves.
    Changes {
        /// Epoch after which to go on.
        after: Epoch,
    },
    /// Asks whether certificates of epochs that have ended count for these transactions: at most
    /// [`REQUEST_ITEMS_MAX`].
    Counting(Vec<TxId>),
    /// Asks, for an authority of the next epoch, for a part of a closing report.
    Report(ReportPart),
}

/// Part of a closing report ([`change`](crate::change)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReportPart {
    /// Epoch that the report ended.
    pub ended: Epoch,
    /// Index of its authority in that epoch.
    pub authority: ReplicaId,
    /// Shard whose locks it has.
    pub shard: u16,
    /// 0 for what the authority signed and the leaves of its chunks; n + 1 for chunk n.
    pub part: u32,
}

/// State of an input at one authority.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum CoinStatus {
    /// The input is locked for no transaction.
    Free,
    /// The input is locked.
    Locked {
        /// Transaction that it is locked for.
        tx: TxId,
        /// That transaction as its payer signed it; `None` where the authority has pruned it.
        core: Option<Box<Core>>,
    },
    /// The input is locked for nothing, and is or was under [release](crate::release): it can be
    /// had back as that decides, and not be spent.
    Frozen,
    /// One of several transactions may have taken the input in an earlier epoch: which one, or
    /// none, later reports of that epoch's end may say.
    Contested,
}

impl CoinStatus {
    /// State of an input for `asker`, to whom no other key's transaction is shown. `read` reads a
    /// transaction back by the number of its lock.
    ///
    /// # Errors
    /// When the input cannot be looked up, or `read` fails.
    pub fn of<E: From<LookupFailed>>(
        input: OutputId,
        spent: &SpentSet,
        asker: IdentityKey,
        read: impl FnOnce(u64) -> Result<Option<Core>, E>,
    ) -> Result<Self, E> {
        let Some(Locked { tx, sequence }) = spent.get(input)? else {
            let is_frozen = spent.frozen().contains(input);
            return Ok(match is_frozen {
                true => Self::Frozen,
                false if spent.is_contested(input)? => Self::Contested,
                false => Self::Free,
            });
        };
        let core = read(sequence)?.filter(|core| core.payer == asker);
        Ok(Self::Locked { tx, core: core.map(Box::new) })
    }

    /// State of an input of `owner`'s by what authorities said of it (★): free when a quorum says
    /// so, and none showed a transaction of this key that took it. `None` while nothing follows.
    #[must_use]
    pub fn agreed(
        network: &Network,
        owner: IdentityKey,
        input: OutputId,
        said: &[(ReplicaId, &Self)],
    ) -> Option<Self> {
        let committee = network.committee();
        let bitmap =
            |who: &BTreeSet<usize>| Bitmap::from_indices(committee.size(), who.iter().copied());
        let mut unproven: BTreeMap<TxId, BTreeSet<usize>> = BTreeMap::new();
        for (from, status) in said {
            let Self::Locked { tx, core } = status else { continue };
            // One authority that shows what we signed is enough: we did sign it.
            if core.as_ref().is_some_and(|core| core.is_of(network, owner, *tx, input)) {
                return Some(Self::Locked { tx: *tx, core: None });
            }
            unproven.entry(*tx).or_default().insert(from.index());
        }
        let named = unproven.into_iter().find(|(_, who)| committee.includes_honest(&bitmap(who)));
        if let Some((tx, _)) = named {
            return Some(Self::Locked { tx, core: None });
        }
        let frozen = said.iter().filter(|(_, status)| **status == Self::Frozen);
        if committee.includes_honest(&bitmap(&frozen.map(|(from, _)| from.index()).collect())) {
            return Some(Self::Frozen);
        }
        // Those who know of a lock or a release, or of several transactions that may have taken it,
        // do not count, whatever they can show of it.
        let is_counted = mutants::active(Mutant::PayFreeByFewer);
        let free = said.iter().filter(|(_, status)| is_counted || **status == Self::Free);
        let free = bitmap(&free.map(|(from, _)| from.index()).collect());
        (committee.weight_of(&free) >= committee.quorum()).then_some(Self::Free)
    }

    /// Transaction that a quorum of authorities is locked for, by what they said of one input. No
    /// other one over that input is ever certified.
    #[must_use]
    pub fn taken_by_quorum(network: &Network, said: &[(ReplicaId, &Self)]) -> Option<TxId> {
        let committee = network.committee();
        let mut named: BTreeMap<TxId, BTreeSet<usize>> = BTreeMap::new();
        for (from, status) in said {
            if let Self::Locked { tx, .. } = status {
                named.entry(*tx).or_default().insert(from.index());
            }
        }
        let is_quorum = |who: &BTreeSet<usize>| {
            let who = Bitmap::from_indices(committee.size(), who.iter().copied());
            committee.weight_of(&who) >= committee.quorum()
        };
        named.into_iter().find(|(_, who)| is_quorum(who)).map(|(tx, _)| tx)
    }
}

/// Reply of an authority to a [`WalletRequest`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum WalletReply {
    /// States of the inputs that were asked about, in their order.
    Coins(Vec<CoinStatus>),
    /// Records, in the order of their names.
    Records {
        /// Records as they are stored.
        records: Vec<WalletRecord>,
        /// True where others follow.
        more: bool,
    },
    /// It is done, durably.
    Done,
    /// It is not done, and asking again will not change that.
    Refused(RecordRefusal),
    /// Changes, in the order of their epochs: as many as a reply has room for, and one at least
    /// where the authority knows one.
    Changes(Vec<Change>),
    /// Whether certificates of ended epochs count here for the transactions that were asked about,
    /// in their order.
    Counting(Vec<bool>),
    /// Part of a report; `None` where there is none here.
    Report(Option<Vec<u8>>),
}

/// Reason that an authority does not do what a wallet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum RecordRefusal {
    /// Too many items, or too long a note.
    #[error("the request is larger than an authority allows")]
    TooLarge,
    /// The coins are not all of one transaction and of the key, or do not exist.
    #[error("the record's coins are not this key's, or do not exist")]
    NotYours,
    /// The key's records take all of their room.
    #[error("the records of this key take all the room that an authority gives them")]
    Full,
}

/// A request or reply with the number by which they belong together.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Numbered<T> {
    /// The asker's own count.
    pub number: u64,
    /// Request or reply of this number.
    pub content: T,
}

impl WalletRecord {
    /// Name of the record; `None` for a record of no coins.
    #[must_use]
    pub fn name(&self, network: &Network) -> Option<RecordName> {
        match &self.content {
            RecordContent::Sent(transaction) => {
                Some(RecordName { kind: RecordKind::Sent, tx: transaction.id(network.id()) })
            }
            RecordContent::Received(coins) => {
                let tx = coins.first()?.id.tx;
                Some(RecordName { kind: RecordKind::Received, tx })
            }
        }
    }

    /// Checks everything that the record proves (★): a transaction that `owner` signed, whose
    /// inputs exist; or coins of `owner`'s that exist.
    #[must_use]
    pub fn is_genuine(&self, network: &Network, owner: IdentityKey) -> bool {
        match &self.content {
            RecordContent::Sent(transaction) => transaction.is_genuine(network, owner),
            RecordContent::Received(coins) => are_coins_of(coins, network, owner),
        }
    }
}

impl WalletRequest {
    /// Checks what needs nothing but the request, the network and whose channel it came by (★).
    ///
    /// # Errors
    /// Why an authority does not do it.
    pub fn check(&self, network: &Network, from: IdentityKey) -> Result<(), RecordRefusal> {
        match self {
            Self::Coins(inputs) if inputs.len() > REQUEST_ITEMS_MAX => Err(RecordRefusal::TooLarge),
            Self::Remove(names) if names.len() > REQUEST_ITEMS_MAX => Err(RecordRefusal::TooLarge),
            Self::Counting(names) if names.len() > REQUEST_ITEMS_MAX => {
                Err(RecordRefusal::TooLarge)
            }
            Self::Store(record) if record.note.len() > NOTE_BYTES_MAX => {
                Err(RecordRefusal::TooLarge)
            }
            Self::Store(record) => match &record.content {
                RecordContent::Received(coins) if are_coins_of(coins, network, from) => Ok(()),
                // A transaction's record travels with its order.
                _ => Err(RecordRefusal::NotYours),
            },
            _ => Ok(()),
        }
    }
}

fn are_coins_of(coins: &[Coin], network: &Network, owner: IdentityKey) -> bool {
    let Some(first) = coins.first() else { return false };
    let is_own = |coin: &Coin| {
        let is_owner = coin.output.owner == owner || mutants::active(Mutant::PayKeepAnybodysRecord);
        coin.id.tx == first.id.tx && is_owner
    };
    let ascending = coins.windows(2).all(|pair| pair[0].id < pair[1].id);
    coins.len() <= COINS_MAX
        && ascending
        && coins.iter().all(is_own)
        && coins.iter().all(|coin| coin.check(network).is_ok())
}

impl Transaction {
    /// Checks that `owner` signed this transaction, and everything that an authority checks of it.
    #[must_use]
    pub fn is_genuine(&self, network: &Network, owner: IdentityKey) -> bool {
        let is_valid = || -> Result<bool, Invalid> {
            self.check_form(network)?;
            let items: Vec<_> = self.certificates().map(|(input, one)| (input.tx, one)).collect();
            let verdicts = network.votes().verify(&items);
            Ok(verdicts.into_iter().all(|is_good| is_good))
        };
        self.payer == owner
            && self.core(network.id()).is_genuine(network)
            && is_valid().unwrap_or(false)
    }

    /// Coins that it spends or gives back, with the proofs that it shows of them.
    #[must_use]
    pub fn spent_coins(&self) -> Vec<Coin> {
        let inputs = match &self.source {
            crate::Source::Spend(inputs) => inputs.as_slice(),
            crate::Source::Refund(input) => std::slice::from_ref(input),
            crate::Source::Issue { .. } => return Vec::new(),
        };
        let coin = |input: &crate::Input| Coin {
            id: input.id,
            output: crate::Output { owner: self.payer, value: input.value },
            origin: input.origin.clone(),
        };
        inputs.iter().map(coin).collect()
    }
}

#[cfg(test)]
mod tests;
