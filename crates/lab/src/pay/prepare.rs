//! Payments made before they are measured: one input with a certificate of its own, two outputs,
//! signed.

use super::PayBenchError;
use super::place::Place;
use quorate_crypto::{Bitmap, IdentitySecret, VotingSecret};
use quorate_node::payments::PreparedOrder;
use quorate_payments::{Coin, Network, Output, Transaction, TxId, Vote};
use quorate_types::ReplicaId;
use std::thread;

/// Payers that share the payments.
const OWNERS: usize = 1_000;

/// Payments that are prepared in one go, and whose parents got one vote each authority.
const CHUNK: usize = 128;

/// An order with its transaction's name.
#[derive(Clone)]
pub(super) struct Payment {
    pub(super) tx: TxId,
    pub(super) order: PreparedOrder,
    pub(super) shard: u16,
}

/// Payments in the order in which they are sent.
pub(super) struct Prepared(pub(super) Vec<Payment>);

impl Prepared {
    pub(super) fn order_bytes(&self) -> usize {
        self.0.first().map_or(0, |one| one.order.bytes())
    }
}

/// Lots of `count` payments each. Half a second's worth of parents is in reach of each other, as it
/// would be where many pay at once: the order is not that in which parents were voted for.
pub(super) fn prepare(
    place: &Place,
    lots: usize,
    count: usize,
) -> Result<Vec<Prepared>, PayBenchError> {
    let secrets = place.voting_secrets()?;
    let owners: Vec<IdentitySecret> = (0..OWNERS).map(owner).collect();
    let total = lots * count;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = total.div_ceil(threads).next_multiple_of(CHUNK);
    let make = |first: usize| {
        let last = (first + share).min(total);
        let chunks = (first..last).step_by(CHUNK);
        let mut made = Vec::with_capacity(last.saturating_sub(first));
        for begin in chunks {
            let serials = begin..(begin + CHUNK).min(last);
            made.extend(make_chunk(
                &place.network,
                &place.issuer.identity,
                &secrets,
                &owners,
                serials,
            ));
        }
        made
    };
    let mut all: Vec<Payment> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|index| scope.spawn(move || make(index * share))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    all.truncate(total);
    scatter(&mut all);
    let mut rest = all.into_iter();
    Ok((0..lots).map(|_| Prepared(rest.by_ref().take(count).collect())).collect())
}

fn owner(index: usize) -> IdentitySecret {
    let mut seed = [0x5a; 32];
    seed[..8].copy_from_slice(&(index as u64).to_le_bytes());
    IdentitySecret::from_seed(seed)
}

/// Swaps payments with others some hundreds of places away.
fn scatter(payments: &mut [Payment]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in 0..payments.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let other = at + usize::try_from(state >> 33).expect("31 bits") % 1_000;
        if other < payments.len() {
            payments.swap(at, other);
        }
    }
}

fn make_chunk(
    network: &Network,
    issuer: &IdentitySecret,
    secrets: &[VotingSecret],
    owners: &[IdentitySecret],
    serials: std::ops::Range<usize>,
) -> Vec<Payment> {
    let parents: Vec<(usize, Transaction)> = serials
        .map(|serial| {
            let owner = serial % owners.len();
            let output = Output { owner: owners[owner].public(), value: 1_000 };
            (owner, Transaction::issue(network, issuer, serial as u64, vec![output]))
        })
        .collect();
    let ids: Vec<TxId> = parents.iter().map(|(_, parent)| parent.id(network.id())).collect();
    let quorum = usize::try_from(network.committee().quorum()).expect("a few");
    let voters = network.committee().members().zip(secrets).take(quorum);
    let votes: Vec<(ReplicaId, Vec<Vote>)> =
        voters.map(|(me, secret)| (me, network.votes().sign(secret, me, &ids))).collect();
    let suspects = Bitmap::new(network.committee().size());
    let mut made = Vec::with_capacity(ids.len());
    for (at, (owner, parent)) in parents.iter().enumerate() {
        let of_parent: Vec<_> = votes.iter().map(|(me, all)| (*me, all[at].clone())).collect();
        let counted = network.votes().count(ids[at], &of_parent, &suspects);
        let certificate = counted.certificate.expect("a quorum of good votes");
        let coins: Vec<Coin> = parent.coins(network.id(), &certificate);
        made.push(spend(network, &owners[*owner], &coins));
    }
    made
}

fn spend(network: &Network, owner: &IdentitySecret, coins: &[Coin]) -> Payment {
    let payee = quorate_crypto::IdentityKey([1; 32]);
    let outputs =
        vec![Output { owner: payee, value: 400 }, Output { owner: owner.public(), value: 600 }];
    let transaction = Transaction::spend(network, owner, coins, outputs);
    Payment {
        tx: transaction.id(network.id()),
        order: PreparedOrder::new(&transaction),
        shard: network.shard_of(&owner.public()),
    }
}
