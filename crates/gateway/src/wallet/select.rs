//! Selection of the coins that a payment takes.

use quorate_payments::{Coin, Transaction};

/// Coins that a payment takes, if it needs fewer, to make fewer of them: small ones first.
const TAKE: usize = 8;

/// Coins that remain free then, for payments that are made at the same time.
const LEAVE: usize = 8;

/// Reason that no coins were selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insufficient {
    /// All free coins together are worth less.
    Value {
        /// Value of all free coins.
        free: u128,
    },
    /// As many as one transaction takes are worth less.
    Count {
        /// Value of the largest of them together.
        most: u128,
    },
}

/// Coins that are worth at least `value`. The smallest single coin that is, or else the largest
/// coins; and small ones with them while enough others remain.
pub(super) fn select<'a>(
    free: impl Iterator<Item = &'a Coin>,
    value: u64,
) -> Result<Vec<&'a Coin>, Insufficient> {
    let mut coins: Vec<&Coin> = free.collect();
    coins.sort_by_key(|coin| (coin.output.value, coin.id));
    let single = coins.partition_point(|coin| coin.output.value < value);
    let mut taken = Vec::new();
    if single < coins.len() {
        taken.push(coins.remove(single));
    } else {
        let mut sum = 0u128;
        while sum < u128::from(value) {
            let Some(coin) = coins.pop() else { return Err(Insufficient::Value { free: sum }) };
            if taken.len() == Transaction::INPUTS_MAX {
                return Err(too_many(&taken, coin, &coins, value));
            }
            sum += u128::from(coin.output.value);
            taken.push(coin);
        }
    }
    let sum: u128 = taken.iter().map(|coin| u128::from(coin.output.value)).sum();
    // What a transaction spends adds up to 64 bits at most.
    let mut room = u128::from(u64::MAX).saturating_sub(sum);
    let spare = coins.len().saturating_sub(LEAVE).min(TAKE.saturating_sub(taken.len()));
    for small in coins.into_iter().take(spare) {
        let Some(left) = room.checked_sub(u128::from(small.output.value)) else { break };
        room = left;
        taken.push(small);
    }
    Ok(taken)
}

/// More than one transaction takes: either there is not enough at all, or there is in too many
/// coins.
fn too_many(taken: &[&Coin], next: &Coin, rest: &[&Coin], value: u64) -> Insufficient {
    let worth =
        |coins: &[&Coin]| -> u128 { coins.iter().map(|coin| u128::from(coin.output.value)).sum() };
    let most = worth(taken);
    let free = most + u128::from(next.output.value) + worth(rest);
    if free < u128::from(value) {
        Insufficient::Value { free }
    } else {
        Insufficient::Count { most }
    }
}

/// The smallest coins, as many as one transaction takes.
pub(super) fn smallest<'a>(free: impl Iterator<Item = &'a Coin>) -> Vec<&'a Coin> {
    let mut coins: Vec<&Coin> = free.collect();
    coins.sort_by_key(|coin| (coin.output.value, coin.id));
    coins.truncate(Transaction::INPUTS_MAX);
    coins
}

#[cfg(test)]
mod tests {
    use super::{Insufficient, select, smallest};
    use quorate_crypto::{Digest, IdentityKey};
    use quorate_payments::{Coin, Origin, Output, OutputId, TxId};

    fn coins(values: &[u64]) -> Vec<Coin> {
        let coin = |(index, value): (u16, &u64)| Coin {
            id: OutputId { tx: TxId(Digest::ZERO), index },
            output: Output { owner: IdentityKey([1; 32]), value: *value },
            origin: Origin::Genesis,
        };
        (0..).zip(values).map(coin).collect()
    }

    fn taken(values: &[u64], value: u64) -> Result<Vec<u64>, Insufficient> {
        let coins = coins(values);
        let taken = select(coins.iter(), value)?;
        Ok(taken.iter().map(|coin| coin.output.value).collect())
    }

    #[test]
    fn the_smallest_coin_that_suffices_or_the_largest_together() {
        assert_eq!(taken(&[5, 100, 7, 20], 7), Ok(vec![7]));
        assert_eq!(taken(&[5, 100, 7, 20], 8), Ok(vec![20]));
        assert_eq!(taken(&[5, 100, 7, 20], 121), Ok(vec![100, 20, 7]));
        assert_eq!(taken(&[5, 100, 7, 20], 132), Ok(vec![100, 20, 7, 5]));
        assert_eq!(taken(&[5, 100, 7, 20], 133), Err(Insufficient::Value { free: 132 }));
        assert_eq!(taken(&[], 1), Err(Insufficient::Value { free: 0 }));
        assert_eq!(taken(&[u64::MAX, u64::MAX], u64::MAX), Ok(vec![u64::MAX]));
    }

    #[test]
    fn small_coins_go_along_while_enough_remain() {
        let values: Vec<u64> = (1..=12).collect();
        assert_eq!(taken(&values, 12), Ok(vec![12, 1, 2, 3]), "8 of 12 remain");
        let values: Vec<u64> = (1..=100).collect();
        assert_eq!(taken(&values, 90), Ok(vec![90, 1, 2, 3, 4, 5, 6, 7]), "8 are taken");
        let mut values = vec![1; 20];
        values.push(u64::MAX - 1);
        assert_eq!(taken(&values, 2), Ok(vec![u64::MAX - 1, 1]), "no more than 64 bits hold");
    }

    #[test]
    fn more_coins_than_a_transaction_takes_are_told_from_too_little_money() {
        assert_eq!(taken(&[1; 64], 64).map(|taken| taken.len()), Ok(64));
        assert_eq!(taken(&[1; 65], 65), Err(Insufficient::Count { most: 64 }));
        assert_eq!(taken(&[1; 65], 66), Err(Insufficient::Value { free: 65 }));
        assert_eq!(smallest(coins(&[9; 70]).iter()).len(), 64);
    }
}
