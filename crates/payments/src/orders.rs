//! Checking orders before an authority's machine sees them: many at a time, since signatures of
//! many cost a fraction of each alone.

use crate::lookup::LookupFailed;
use crate::recent::Recent;
use crate::spent::{LockStatus, SpentSet};
use crate::transaction::owner_statement;
use crate::{Core, Invalid, Network, OutputId, Transaction, TxCertificate, TxId};
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{bad_items, verify_batch};
use quorate_types::{Epoch, Peer, Rejected, Verified, Verify};
use std::sync::Arc;

/// Slots for certified transactions: some seconds' at full speed.
const CERTIFIED_SLOTS: usize = 1 << 17;

/// Verifier of orders: knows the network, the shard, the locked inputs, and the certificates that
/// were checked before.
#[derive(Debug)]
pub struct OrderVerifier {
    network: Arc<Network>,
    shard: u16,
    spent: Arc<SpentSet>,
    /// Transactions of which a certificate was seen and checked, each with the epoch that it names:
    /// that they are certified in it is a fact, whichever certificate of it is shown next. That
    /// the keys of an ended epoch signed says nothing of the one in force.
    certified: Mutex<Recent<Epoch>>,
}

/// Result of checking an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedOrder {
    /// Valid, and its payer signed it: to be voted for unless an input is taken.
    Valid(Core),
    /// The order is a repetition: its inputs are locked for it, so it was found valid before.
    Repeated(TxId),
    /// An input is locked for another transaction, or under release, and its payer signed this one
    /// too.
    Late(Core),
    /// The order is refused.
    Invalid(TxId, Invalid),
    /// An input's certificate is of an earlier epoch, and too few reports of its end name the
    /// transaction that made it, so far; or of a later one than the authority's.
    Unproven(TxId, OutputId),
    /// An input could not be looked up, so that nothing may be said of the order.
    Unknown(LookupFailed),
}

/// Orders that arrived and were checked together, in their order, each with the ticket that it came
/// with.
#[derive(Clone, Debug)]
pub struct Orders(Vec<(u64, CheckedOrder)>);

impl Orders {
    /// Results of the checks, in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &CheckedOrder> {
        self.0.iter().map(|(_, checked)| checked)
    }

    /// Results of the checks, in the order of arrival, each with its order's ticket.
    #[must_use]
    pub fn into_vec(self) -> Vec<(u64, CheckedOrder)> {
        self.0
    }
}

impl OrderVerifier {
    /// A verifier for one shard. Inputs that `spent` holds for an order spare its checks: they were
    /// made before.
    #[must_use]
    pub fn new(network: Arc<Network>, shard: u16, spent: Arc<SpentSet>) -> Self {
        Self { network, shard, spent, certified: Mutex::new(Recent::new(CERTIFIED_SLOTS)) }
    }

    /// Network that the orders are of.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Checks orders in three steps of rising cost: form and hashes, payers' signatures,
    /// certificates.
    fn check(&self, orders: Vec<(u64, Transaction)>) -> Vec<(u64, CheckedOrder)> {
        let mut seen: Vec<PendingOrder> = orders.into_iter().map(|one| self.begin(one)).collect();
        self.check_payers(&mut seen);
        self.check_certificates(&mut seen);
        seen.into_iter().map(|one| (one.ticket, one.finish())).collect()
    }

    fn begin(&self, (ticket, tx): (u64, Transaction)) -> PendingOrder {
        let core = tx.core(self.network.id());
        let invalid = self.form(&tx).err();
        let status = self.spent.status(&core);
        PendingOrder { ticket, tx, core, status, invalid, unproven: None }
    }

    fn form(&self, tx: &Transaction) -> Result<(), Invalid> {
        let shard = self.network.shard_of(&tx.payer);
        if shard != self.shard && !mutants::active(Mutant::PayAnyShard) {
            return Err(Invalid::WrongShard(shard));
        }
        tx.check_form(&self.network)
    }

    fn check_payers(&self, seen: &mut [PendingOrder]) {
        if mutants::active(Mutant::PayAnyOwner) {
            return;
        }
        let open: Vec<usize> = indices(seen, PendingOrder::needs_payer_check);
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

    /// ★ Certificates of earlier epochs count where the reports of their ends say so, whoever may
    /// have signed them since. Those of later epochs cannot be told yet: their wallet is ahead of
    /// this authority, and must not hear that its payment is invalid.
    fn check_admission(&self, one: &mut PendingOrder) {
        if mutants::active(Mutant::PayTrustFormerEpochs) {
            return;
        }
        let epoch = self.network.epoch();
        let is_other = |certificate: &TxCertificate| certificate.epoch != epoch;
        let others = one.tx.certificates().filter(|(_, certificate)| is_other(certificate));
        let others = others.map(|(input, certificate)| (input, certificate.epoch));
        for (input, certified) in others.collect::<Vec<_>>() {
            if certified > epoch {
                one.unproven = Some(input);
                continue;
            }
            match self.spent.inherited().admits(input.tx) {
                Ok(true) => {}
                Ok(false) => one.unproven = Some(input),
                Err(failed) => one.status = Err(failed),
            }
        }
    }

    /// Checks the certificates of orders whose inputs are free; the others are voted for, or never
    /// will be.
    fn check_certificates(&self, seen: &mut [PendingOrder]) {
        if mutants::active(Mutant::PayTrustCertificates) {
            return;
        }
        let open = indices(seen, PendingOrder::needs_certificate_check);
        open.iter().for_each(|at| self.check_admission(&mut seen[*at]));
        let open = indices(seen, PendingOrder::needs_certificate_check);
        let mut claims = Vec::new();
        let known = self.certified.lock();
        for at in open {
            for (input, certificate) in seen[at].tx.certificates() {
                let can_tell = certificate.epoch <= self.network.epoch();
                if can_tell && known.get(&input.tx.0) != Some(&certificate.epoch) {
                    claims.push((at, input, certificate));
                }
            }
        }
        drop(known);
        let items: Vec<_> = claims.iter().map(|(_, input, one)| (input.tx, *one)).collect();
        let verdicts = self.network.votes().verify(&items);
        let mut refused = Vec::new();
        let mut known = self.certified.lock();
        for ((at, input, certificate), is_good) in claims.into_iter().zip(verdicts) {
            if is_good {
                known.put(input.tx.0, certificate.epoch);
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

/// Order under check, with the first rule that it breaks.
struct PendingOrder {
    ticket: u64,
    tx: Transaction,
    core: Core,
    status: Result<LockStatus, LookupFailed>,
    invalid: Option<Invalid>,
    /// Input whose certificate does not count yet.
    unproven: Option<OutputId>,
}

impl PendingOrder {
    fn is_open(&self) -> bool {
        self.invalid.is_none()
    }

    /// Tells whether its payer's signature was never checked here.
    fn needs_payer_check(&self) -> bool {
        self.is_open() && self.status != Ok(LockStatus::Own)
    }

    /// Tells whether it may be voted for now without ever having been checked here.
    fn needs_certificate_check(&self) -> bool {
        self.is_open() && matches!(self.status, Ok(LockStatus::Free | LockStatus::Due))
    }

    fn finish(self) -> CheckedOrder {
        match (self.invalid, self.status) {
            (_, Err(failed)) => CheckedOrder::Unknown(failed),
            (Some(invalid), _) => CheckedOrder::Invalid(self.core.id, invalid),
            (None, Ok(LockStatus::Free | LockStatus::Due)) => match self.unproven {
                Some(input) => CheckedOrder::Unproven(self.core.id, input),
                None => CheckedOrder::Valid(self.core),
            },
            (None, Ok(LockStatus::Own)) => CheckedOrder::Repeated(self.core.id),
            (None, Ok(_)) => CheckedOrder::Late(self.core),
        }
    }
}

fn indices(seen: &[PendingOrder], keep: impl Fn(&PendingOrder) -> bool) -> Vec<usize> {
    seen.iter().enumerate().filter(|(_, one)| keep(one)).map(|(at, _)| at).collect()
}

impl Verify for Orders {
    /// Transactions, each with a ticket by which the host answers its sender.
    type Raw = Vec<(u64, Transaction)>;
    type Verifier = OrderVerifier;

    /// Never fails as a whole: each order has its own verdict.
    fn verify(raw: Self::Raw, _from: Peer, verifier: &OrderVerifier) -> Result<Self, Rejected> {
        Ok(Self(verifier.check(raw)))
    }
}

/// [`Verified::check`] for orders of several payers at once.
#[must_use]
pub fn check_orders(orders: Vec<(u64, Transaction)>, verifier: &OrderVerifier) -> Verified<Orders> {
    let nobody = Peer::Client(quorate_types::ClientId(verifier.network.issuer()));
    Verified::check(orders, nobody, verifier).expect("orders are refused one by one")
}

#[cfg(test)]
mod tests;
