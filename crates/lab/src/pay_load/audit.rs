//! Audit of a load, from nothing but what its journal has on disk: no payment was lost, and none
//! made twice.
//!
//! * Every transaction that was begun has one outcome, and that is a certificate that verifies.
//! * No coin is an input of two transactions. Every input was made by a certified one, or came from
//!   the wallet.
//! * Each transaction's outputs are worth what its inputs are, and all that came in is there, or
//!   went back.
//! * A quorum of authorities says that what is there is free to be spent
//!   ([`states`](super::states)).

use super::book::Entry;
use quorate_crypto::IdentityKey;
use quorate_payments::{
    Network, Output, OutputId, PaymentOutcome, Transaction, TxCertificate, TxId,
};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Certificates that are checked together.
const BATCH: usize = 512;

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Transactions that were begun, those that split and gather coins too.
    pub begun: u64,
    /// Transactions of those that are certified.
    pub certified: u64,
    /// Value that the wallet paid in, in the smallest unit.
    pub value_in: u64,
    /// Value of that which was paid back to the wallet.
    pub value_back: u64,
    /// Value of that which is in coins of the payers.
    pub value_left: u64,
    /// Coins at the end of all payments, which authorities were asked about.
    pub coins_asked: usize,
    /// Everything that is not as it should be.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Returns `true` if no payment was lost and none made twice.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Something that an audit found wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// No quorum has certified it, so far.
    #[error("transaction {0} is under way: its outcome is not known yet")]
    UnderWay(TxId),
    /// It will never be certified.
    #[error("transaction {tx} was lost: {reason}")]
    Lost {
        /// Name of the transaction at fault.
        tx: TxId,
        /// Outcome that the authorities gave it.
        reason: String,
    },
    /// It was begun again, or has a second outcome.
    #[error("transaction {0} is in the journal twice")]
    Repeated(TxId),
    /// Two transactions spend one coin.
    #[error("coin {coin} was spent twice: by {first} and by {second}")]
    Twice {
        /// Coin that it takes as an input.
        coin: OutputId,
        /// Transaction that spent it first.
        first: TxId,
        /// Transaction that spent it again.
        second: TxId,
    },
    /// The coin that it spends was made by no certified transaction of another's to its payer.
    #[error("transaction {tx} spends {coin}, which its payer did not have")]
    Unfounded {
        /// Name of the transaction at fault.
        tx: TxId,
        /// Coin that it takes as an input.
        coin: OutputId,
    },
    /// Its outputs are worth something else than its inputs.
    #[error("transaction {tx} spends {inputs} and pays {outputs}")]
    Unequal {
        /// Name of the transaction at fault.
        tx: TxId,
        /// Value of its inputs.
        inputs: u64,
        /// Value of its outputs.
        outputs: u64,
    },
    /// Its certificate does not verify.
    #[error("the certificate of transaction {0} does not verify")]
    Uncertified(TxId),
    /// A receipt of the wallet's payment that proves nothing.
    #[error("a receipt of what the wallet paid does not hold: {0}")]
    Receipt(String),
    /// What came in is neither there nor went back.
    #[error("{value_in} came in, and {accounted} are accounted for")]
    Missing {
        /// Value that came in.
        value_in: u64,
        /// Value that is there, under way, or went back.
        accounted: u64,
    },
    /// A coin at the end of all payments cannot be spent.
    #[error("the authorities say that coin {0} is taken")]
    Taken(OutputId),
    /// Too few authorities answered.
    #[error("no quorum of authorities said whether coin {0} is free")]
    Unanswered(OutputId),
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a journal, entry by entry.
pub(super) struct Auditor {
    network: Arc<Network>,
    wallet: Option<IdentityKey>,
    audit: Audit,
    /// Outputs of certified transactions, and what the wallet paid in, that nothing spends.
    unspent: BTreeMap<OutputId, Output>,
    spent: BTreeMap<OutputId, TxId>,
    open: BTreeMap<TxId, Transaction>,
    ended: BTreeSet<TxId>,
    unchecked: Vec<(TxId, TxCertificate)>,
}

impl Auditor {
    /// An auditor by the keys of this network's authorities, in all epochs so far.
    pub(super) fn new(network: Arc<Network>) -> Self {
        Self {
            network,
            wallet: None,
            audit: Audit::default(),
            unspent: BTreeMap::new(),
            spent: BTreeMap::new(),
            open: BTreeMap::new(),
            ended: BTreeSet::new(),
            unchecked: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, entry: Entry) {
        match entry {
            Entry::Founded { wallet, .. } => self.wallet = Some(wallet),
            Entry::Funded(receipt) => {
                if let Err(error) = receipt.check(&self.network) {
                    self.find(Finding::Receipt(error.to_string()));
                }
                for coin in receipt.coins {
                    self.audit.value_in += coin.output.value;
                    self.unspent.insert(coin.id, coin.output);
                }
            }
            Entry::Begun(transaction) => self.on_begun(transaction),
            Entry::Ended(tx, outcome) => self.on_ended(tx, outcome),
            Entry::Returned(coins) => {
                for coin in coins {
                    if let Some(output) = self.unspent.remove(&coin) {
                        self.audit.value_back += output.value;
                    }
                }
            }
        }
    }

    fn on_begun(&mut self, transaction: Transaction) {
        let tx = transaction.id(self.network.id());
        if self.open.contains_key(&tx) || self.ended.contains(&tx) {
            return self.find(Finding::Repeated(tx));
        }
        self.audit.begun += 1;
        let mut inputs = 0;
        for coin in transaction.locks() {
            if let Some(first) = self.spent.insert(coin, tx) {
                self.find(Finding::Twice { coin, first, second: tx });
                continue;
            }
            match self.unspent.remove(&coin) {
                Some(output) if output.owner == transaction.payer => inputs += output.value,
                _ => self.find(Finding::Unfounded { tx, coin }),
            }
        }
        let outputs = value(&transaction);
        if inputs != outputs {
            self.find(Finding::Unequal { tx, inputs, outputs });
        }
        self.open.insert(tx, transaction);
    }

    fn on_ended(&mut self, tx: TxId, outcome: PaymentOutcome) {
        let Some(transaction) = self.open.remove(&tx) else {
            return self.find(Finding::Repeated(tx));
        };
        self.ended.insert(tx);
        let reason = match outcome {
            PaymentOutcome::Certified(certificate) => {
                self.audit.certified += 1;
                self.unchecked.push((tx, *certificate));
                if self.unchecked.len() >= BATCH {
                    self.check_certificates();
                }
                for (index, output) in (0..).zip(transaction.outputs) {
                    self.unspent.insert(OutputId { tx, index }, output);
                }
                return;
            }
            PaymentOutcome::Refused(invalid) => invalid.to_string(),
            PaymentOutcome::Conflicting(_) => {
                "its coins are locked for another transaction".to_owned()
            }
            PaymentOutcome::Released(coin, _) => format!("coin {coin} was released otherwise"),
        };
        self.find(Finding::Lost { tx, reason });
    }

    fn check_certificates(&mut self) {
        let unchecked = std::mem::take(&mut self.unchecked);
        let items: Vec<_> = unchecked.iter().map(|(tx, certificate)| (*tx, certificate)).collect();
        let verdicts = self.network.votes().verify(&items);
        for (tx, _) in items.iter().zip(verdicts).filter(|(_, is_good)| !is_good).map(|one| one.0) {
            self.find(Finding::Uncertified(*tx));
        }
    }

    fn find(&mut self, finding: Finding) {
        self.audit.findings.push(finding);
    }

    /// What was found, and the coins at the end of all payments: those that authorities are to be
    /// asked about.
    pub(super) fn finish(mut self) -> (Audit, BTreeMap<OutputId, Output>) {
        self.check_certificates();
        let mut accounted = self.audit.value_back;
        for output in self.unspent.values() {
            accounted += output.value;
            match self.wallet == Some(output.owner) {
                true => self.audit.value_back += output.value,
                false => self.audit.value_left += output.value,
            }
        }
        accounted += self.open.values().map(value).sum::<u64>();
        let value_in = self.audit.value_in;
        if accounted != value_in {
            self.find(Finding::Missing { value_in, accounted });
        }
        self.audit.findings.extend(self.open.keys().copied().map(Finding::UnderWay));
        (self.audit, self.unspent)
    }
}

fn value(transaction: &Transaction) -> u64 {
    transaction.outputs.iter().map(|output| output.value).sum()
}

#[cfg(test)]
mod tests;
