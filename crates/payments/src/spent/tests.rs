use super::*;
use quorate_crypto::hash;

fn input(number: u8) -> OutputId {
    OutputId { tx: TxId(hash(&[number])), index: 0 }
}

fn locked(tx: u8, sequence: u64) -> Locked {
    Locked { tx: TxId(hash(&[tx])), sequence }
}

#[test]
fn an_input_is_locked_once_and_for_ever() {
    let spent = SpentSet::new(4, [5, 6]);
    assert_eq!((spent.len(), spent.is_empty()), (0, true));
    spent.insert(input(1), locked(10, 0));
    spent.insert(input(1), locked(11, 1));
    assert_eq!(spent.get(input(1)), Some(locked(10, 0)));
    assert_eq!((spent.len(), spent.is_empty()), (1, false));
}

#[test]
fn inputs_are_judged_all_together() {
    let spent = SpentSet::default();
    spent.insert(input(1), locked(10, 0));
    spent.insert(input(2), locked(10, 0));
    let status = |tx: u8, inputs: &[u8]| {
        let locks = inputs.iter().map(|one| input(*one)).collect();
        spent.status(&Core {
            id: locked(tx, 0).tx,
            payer: quorate_crypto::IdentityKey([1; 32]),
            locks,
            kind: CoreKind::Spend,
            outputs: Digest::ZERO,
            signature: quorate_crypto::Signature([0; 64]),
        })
    };
    assert_eq!(status(10, &[1, 2]), LockStatus::Own);
    assert_eq!(status(11, &[3, 4]), LockStatus::Free);
    assert_eq!(status(11, &[3, 2]), LockStatus::Taken(input(2), locked(10, 0)));
    let mut seen = Vec::new();
    spent.visit(|input, locked| seen.push((input, locked)));
    assert_eq!(seen.len(), 2);
}

/// Names that differ in one bit go to places that differ in many, whatever the seed; the index
/// counts.
#[test]
fn names_are_scattered_by_the_seed() {
    let place = |seed: [u64; 2], input: OutputId| Seed(seed).hash_one(Key(input));
    let seed = [0x1234_5678_9abc_def0, 0x9e37_79b9_7f4a_7c15];
    let one = input(1);
    let flipped = |byte: usize, bit: u8| {
        let mut flipped = one;
        flipped.tx.0.0[byte] ^= bit;
        place(seed, flipped)
    };
    let second = OutputId { index: 1, ..one };
    let others = [flipped(0, 1), flipped(7, 0x80), place(seed, second), place([1, seed[1]], one)];
    for other in others {
        assert!((place(seed, one) ^ other).count_ones() > 8);
    }
    assert_ne!(place([5, 1], one), place([5, 1], input(2)), "whatever the seed");
    let places: std::collections::BTreeSet<u64> = (0..=255)
        .flat_map(|name| (0..64).map(move |index| OutputId { index, ..input(name) }))
        .map(|input| place(seed, input) % (1 << 20))
        .collect();
    assert!(places.len() > 16_000, "of 16,384 some 128 share a place by chance: {}", places.len());
}

/// A checkpoint is written while votes go on: what was locked before it began is in it, however the
/// map grows meanwhile.
#[test]
fn a_visit_sees_all_that_was_locked_before_it() {
    let numbered = |number: u32| OutputId { tx: TxId(hash(&number.to_le_bytes())), index: 0 };
    let spent = SpentSet::default();
    let lock = |number: u32| spent.insert(numbered(number), locked(1, u64::from(number)));
    (0..1_000).for_each(lock);
    std::thread::scope(|scope| {
        let growing = scope.spawn(|| (1_000..100_000).for_each(lock));
        while !growing.is_finished() {
            let mut seen = 0;
            spent.visit(|_, locked| seen += usize::from(locked.sequence < 1_000));
            assert_eq!(seen, 1_000);
        }
    });
    assert_eq!(spent.len(), 100_000);
}
