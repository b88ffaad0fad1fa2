//! Bound by signatures and hashes alone: the same work as an authority's, without network, disk and
//! threads.

use crate::stopwatch::microseconds;
use quorate_crypto::{Bitmap, IdentitySecret, VotingSecret, verify_batch};
use quorate_payments::{Network, Output, Transaction, TxCertificate, TxId};
use quorate_types::ReplicaId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Number of transactions checked together.
const BATCH: usize = 256;

/// Prices of one transaction with one input and two outputs on one core, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The input's certificate, in a batch.
    pub certificate_us: f64,
    /// The payer's signature, in a batch, with what is hashed.
    pub payer_us: f64,
    /// Time of a vote, in microseconds.
    pub vote_us: f64,
}

impl Bound {
    /// Transactions a second on one core.
    #[must_use]
    pub fn tx_s(&self) -> f64 {
        1e6 / (self.certificate_us + self.payer_us + self.vote_us)
    }
}

/// Measures the prices here and now, with a network's own keys.
#[must_use]
pub fn bound_of(network: &Network, secrets: &[VotingSecret]) -> Bound {
    let span = Duration::from_millis(150);
    let votes = network.votes();
    let batches: Vec<Vec<(TxId, TxCertificate)>> =
        (0..4).map(|batch| certificates(network, secrets, batch)).collect();
    let ids: Vec<TxId> = batches[0].iter().map(|(id, _)| *id).collect();
    let me = ReplicaId(0);
    let vote_us = microseconds(3, span, || votes.sign(&secrets[0], me, &ids)) / BATCH as f64;
    let mut next = 0;
    let certificate_us = microseconds(3, span, || {
        next += 1;
        let batch = &batches[next % batches.len()];
        let items: Vec<_> = batch.iter().map(|(id, certificate)| (*id, certificate)).collect();
        assert!(votes.verify(&items).into_iter().all(|is_good| is_good), "prepared certificates");
    }) / BATCH as f64;
    Bound { certificate_us, payer_us: payer_us(network, span), vote_us }
}

/// The payers' signatures in a batch, every key another; and the hashes of one transaction.
fn payer_us(network: &Network, span: Duration) -> f64 {
    let payers = (0..BATCH).map(|index| {
        let mut seed = [0xa5; 32];
        seed[..8].copy_from_slice(&(index as u64).to_le_bytes());
        IdentitySecret::from_seed(seed)
    });
    let statement = [7; 92];
    let items: Vec<_> =
        payers.map(|payer| (payer.public(), &statement[..], payer.sign(&statement))).collect();
    let signature = microseconds(3, span, || verify_batch(&items)) / BATCH as f64;
    let payer = IdentitySecret::from_seed([1; 32]);
    let outputs = vec![Output { owner: payer.public(), value: 1 }; 2];
    let transaction = Transaction::issue(network, &payer, 1, outputs);
    signature + microseconds(3, span, || transaction.id(network.id()))
}

fn certificates(
    network: &Network,
    secrets: &[VotingSecret],
    batch: u64,
) -> Vec<(TxId, TxCertificate)> {
    let votes = network.votes();
    let ids: Vec<TxId> = (0..BATCH as u64)
        .map(|index| TxId(quorate_crypto::hash(&(batch * BATCH as u64 + index).to_le_bytes())))
        .collect();
    let quorum = usize::try_from(network.committee().quorum()).expect("a few");
    let signed: Vec<_> = network
        .committee()
        .members()
        .zip(secrets)
        .take(quorum)
        .map(|(me, secret)| (me, votes.sign(secret, me, &ids)))
        .collect();
    let suspects = Bitmap::new(network.committee().size());
    let certificate = |(at, id): (usize, &TxId)| {
        let of_id: Vec<_> = signed.iter().map(|(me, all)| (*me, all[at].clone())).collect();
        let counted = votes.count(*id, &of_id, &suspects);
        (*id, counted.certificate.expect("a quorum of good votes"))
    };
    ids.iter().enumerate().map(certificate).collect()
}
