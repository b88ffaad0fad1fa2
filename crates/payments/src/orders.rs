//! Checking orders before an authority's machine sees them: many at a time, since signatures of many
//! cost a fraction of each alone.

use crate::spent::{SpentSet, Standing};
use crate::transaction::owner_statement;
use crate::{Core, Invalid, Network, Transaction, TxId};
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{bad_items, verify_batch};
use quorate_types::{Peer, Rejected, Verified, Verify};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Certified transactions remembered, in each of two generations.
const CERTIFIED_MAX: usize = 65_536;

/// What checking needs: the network, the shard, what is locked, and what was checked before.
#[derive(Debug)]
pub struct OrderVerifier {
    network: Arc<Network>,
    shard: u16,
    spent: Arc<SpentSet>,
    certified: Mutex<Certified>,
}

/// Names of transactions of which a certificate was seen and checked: that they are certified is a fact,
/// whichever certificate is shown next.
#[derive(Debug, Default)]
struct Certified {
    young: BTreeSet<TxId>,
    old: BTreeSet<TxId>,
}

impl Certified {
    fn contains(&self, id: &TxId) -> bool {
        self.young.contains(id) || self.old.contains(id)
    }

    fn add(&mut self, id: TxId) {
        if self.young.len() >= CERTIFIED_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id);
    }
}

/// An order that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// Valid, and its payer signed it: to be voted for unless an input is taken.
    Valid(Core),
    /// Its inputs are locked for it already, so it was found valid before.
    Again(TxId),
    /// An input is locked for another transaction, and the payer of both signed this one too.
    Late(Core),
    /// Refused.
    Invalid(TxId, Invalid),
}

/// Orders that arrived together, looked at together. In their order, each with the ticket that it came
/// with.
#[derive(Clone, Debug)]
pub struct Orders(Vec<(u64, Looked)>);

impl Orders {
    /// What was found, in the order of arrival.
    #[must_use]
    pub fn into_vec(self) -> Vec<(u64, Looked)> {
        self.0
    }
}

impl OrderVerifier {
    /// A verifier for one shard, which looks at `spent` to spare itself what was checked before.
    #[must_use]
    pub fn new(network: Arc<Network>, shard: u16, spent: Arc<SpentSet>) -> Self {
        Self { network, shard, spent, certified: Mutex::default() }
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Looks at orders, in three steps of rising cost: form and hashes, payers' signatures, certificates.
    fn look(&self, orders: Vec<(u64, Transaction)>) -> Vec<(u64, Looked)> {
        let mut seen: Vec<Seen> = orders.into_iter().map(|one| self.begin(one)).collect();
        self.check_payers(&mut seen);
        self.check_certificates(&mut seen);
        seen.into_iter().map(|one| (one.ticket, one.finish())).collect()
    }

    fn begin(&self, (ticket, tx): (u64, Transaction)) -> Seen {
        let core = tx.core(self.network.chain());
        let invalid = self.form(&tx).err();
        let standing = self.spent.standing(core.id, &core.locks);
        Seen { ticket, tx, core, standing, invalid }
    }

    fn form(&self, tx: &Transaction) -> Result<(), Invalid> {
        let shard = self.network.shard_of(&tx.payer);
        if shard != self.shard && !mutants::active(Mutant::PayAnyShard) {
            return Err(Invalid::WrongShard(shard));
        }
        tx.check_form(&self.network)
    }

    fn check_payers(&self, seen: &mut [Seen]) {
        if mutants::active(Mutant::PayAnyOwner) {
            return;
        }
        let open: Vec<usize> = indices(seen, Seen::is_new_to_us);
        let statements: Vec<Vec<u8>> =
            open.iter().map(|at| owner_statement(&self.network, seen[*at].core.id)).collect();
        let numbers: Vec<usize> = (0..open.len()).collect();
        let bad = bad_items(&numbers, |part| {
            let item = |at: &usize| {
                let one = &seen[open[*at]];
                (one.core.payer, &statements[*at][..], one.core.signature)
            };
            verify_batch(&part.iter().map(item).collect::<Vec<_>>()).is_ok()
        });
        for at in bad {
            seen[open[at]].invalid = Some(Invalid::OwnerSignature);
        }
    }

    /// Of orders whose inputs are free; the others are voted for, or never will be.
    fn check_certificates(&self, seen: &mut [Seen]) {
        if mutants::active(Mutant::PayTrustCertificates) {
            return;
        }
        let open = indices(seen, |one| one.is_open() && one.standing == Standing::Free);
        let mut claims = Vec::new();
        let known = self.certified.lock();
        for at in open {
            for (input, certificate) in seen[at].tx.certificates() {
                if !known.contains(&input.tx) {
                    claims.push((at, input, certificate));
                }
            }
        }
        drop(known);
        let items: Vec<_> = claims.iter().map(|(_, input, one)| (input.tx, *one)).collect();
        let verdicts = self.network.votes().verify(&items);
        let mut refused = Vec::new();
        let mut known = self.certified.lock();
        for ((at, input, _), is_good) in claims.into_iter().zip(verdicts) {
            if is_good {
                known.add(input.tx);
            } else {
                refused.push((at, input));
            }
        }
        drop(known);
        for (at, input) in refused {
            seen[at].invalid = Some(Invalid::Certificate(input));
        }
    }
}

/// An order being looked at.
struct Seen {
    ticket: u64,
    tx: Transaction,
    core: Core,
    standing: Standing,
    invalid: Option<Invalid>,
}

impl Seen {
    fn is_open(&self) -> bool {
        self.invalid.is_none()
    }

    /// Whether its payer's signature was never checked.
    fn is_new_to_us(&self) -> bool {
        self.is_open() && self.standing != Standing::Mine
    }

    fn finish(self) -> Looked {
        match (self.invalid, self.standing) {
            (Some(invalid), _) => Looked::Invalid(self.core.id, invalid),
            (None, Standing::Free) => Looked::Valid(self.core),
            (None, Standing::Mine) => Looked::Again(self.core.id),
            (None, Standing::Taken(..)) => Looked::Late(self.core),
        }
    }
}

fn indices(seen: &[Seen], keep: impl Fn(&Seen) -> bool) -> Vec<usize> {
    seen.iter().enumerate().filter(|(_, one)| keep(one)).map(|(at, _)| at).collect()
}

impl Verify for Orders {
    /// Each with a ticket of the host's: whom to answer.
    type Raw = Vec<(u64, Transaction)>;
    type Verifier = OrderVerifier;

    /// Never fails as a whole: each order has its own verdict.
    fn verify(raw: Self::Raw, _from: Peer, verifier: &OrderVerifier) -> Result<Self, Rejected> {
        Ok(Self(verifier.look(raw)))
    }
}

/// [`Verified::check`] for orders of several payers at once.
#[must_use]
pub fn look(orders: Vec<(u64, Transaction)>, verifier: &OrderVerifier) -> Verified<Orders> {
    let nobody = Peer::Client(quorate_types::ClientId(verifier.network.issuer()));
    Verified::check(orders, nobody, verifier).expect("orders are refused one by one")
}

#[cfg(test)]
mod tests;
