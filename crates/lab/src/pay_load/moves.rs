//! Transactions of a load: coins are split, paid on, and gathered again.

use super::payers::Payers;
use quorate_crypto::IdentityKey;
use quorate_payments::{Coin, Network, Output, Transaction};
use std::collections::BTreeMap;

/// The payment of a whole coin by its owner to the next of the payers: by `turn`, so that all of
/// them pay each other.
pub(super) fn pay_on(network: &Network, payers: &Payers, coin: &Coin, turn: u64) -> Transaction {
    let payer = owner(payers, coin);
    let others = payers.count() - 1;
    let step = 1 + usize::try_from(turn % others as u64).expect("a few");
    let payee = payers.key((payer + step) % payers.count());
    let outputs = vec![Output { owner: payee, value: coin.output.value }];
    Transaction::spend(network, payers.secret(payer), std::slice::from_ref(coin), outputs)
}

/// Splits of all coins that are worth more than one, for payers in turn.
pub(super) fn split(network: &Network, payers: &Payers, coins: &[Coin]) -> Vec<Transaction> {
    let mut payees = (0..payers.count()).cycle();
    let large = coins.iter().filter(|coin| coin.output.value > 1);
    let one = |coin: &Coin| {
        let output = |value| {
            let payee = payees.next().expect("an endless cycle");
            Output { owner: payers.key(payee), value }
        };
        let outputs = pieces(coin.output.value).map(output).collect();
        let secret = payers.secret(owner(payers, coin));
        Transaction::spend(network, secret, std::slice::from_ref(coin), outputs)
    };
    large.map(one).collect()
}

/// A value in as many pieces as one transaction has outputs, as equal as can be.
fn pieces(value: u64) -> impl Iterator<Item = u64> {
    let count = value.min(Transaction::OUTPUTS_MAX as u64);
    (0..count).map(move |piece| value / count + u64::from(piece < value % count))
}

/// Payments of all coins of everybody but `payee` to it, as few as can be.
pub(super) fn gather(
    network: &Network,
    payers: &Payers,
    coins: &[Coin],
    payee: IdentityKey,
) -> Vec<Transaction> {
    let mut by_owner: BTreeMap<usize, Vec<Coin>> = BTreeMap::new();
    for coin in coins.iter().filter(|coin| coin.output.owner != payee) {
        by_owner.entry(owner(payers, coin)).or_default().push(coin.clone());
    }
    let mut made = Vec::new();
    for (payer, coins) in by_owner {
        for coins in coins.chunks(Transaction::INPUTS_MAX) {
            let value = coins.iter().map(|coin| coin.output.value).sum();
            let outputs = vec![Output { owner: payee, value }];
            made.push(Transaction::spend(network, payers.secret(payer), coins, outputs));
        }
    }
    made
}

fn owner(payers: &Payers, coin: &Coin) -> usize {
    payers.number(&coin.output.owner).expect("free coins are of payers")
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_are_as_equal_as_can_be_and_lose_nothing() {
        assert_eq!(pieces(3).collect::<Vec<_>>(), [1, 1, 1]);
        let many: Vec<u64> = pieces(200).collect();
        assert_eq!((many.len(), many.iter().sum::<u64>()), (64, 200));
        assert!(many.iter().all(|piece| (3..=4).contains(piece)), "{many:?}");
    }
}
