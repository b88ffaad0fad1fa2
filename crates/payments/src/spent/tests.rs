use super::*;
use parking_lot::Mutex;
use quorate_crypto::hash;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

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
    assert_eq!(spent.get(input(1)), Ok(Some(locked(10, 0))));
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
    assert_eq!(status(10, &[1, 2]), Ok(LockStatus::Own));
    assert_eq!(status(11, &[3, 4]), Ok(LockStatus::Free));
    assert_eq!(status(11, &[3, 2]), Ok(LockStatus::Taken(input(2), locked(10, 0))));
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

/// A cold part in memory, which may stop answering.
#[derive(Debug, Default)]
struct Shelf {
    kept: Mutex<BTreeMap<OutputId, Locked>>,
    is_broken: AtomicBool,
}

impl ColdSet for Shelf {
    fn get(&self, input: OutputId) -> Result<Option<Locked>, LookupFailed> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(LookupFailed("broken".into()));
        }
        Ok(self.kept.lock().get(&input).copied())
    }

    fn len(&self) -> u64 {
        self.kept.lock().len() as u64
    }
}

impl Shelf {
    fn keep(&self, moved: &[(OutputId, Locked)]) -> Result<(), Infallible> {
        self.kept.lock().extend(moved.iter().copied());
        Ok(())
    }
}

fn over_a_shelf() -> (SpentSet, Arc<Shelf>) {
    let shelf = Arc::new(Shelf::default());
    (SpentSet::new(0, [3, 4]).over(Arc::clone(&shelf) as Arc<dyn ColdSet>), shelf)
}

fn numbered(number: u64) -> (OutputId, Locked) {
    let input = OutputId { tx: TxId(hash(&number.to_le_bytes())), index: 0 };
    (input, locked(1, number))
}

#[test]
fn what_moved_is_found_outside_and_no_longer_in_memory() {
    let (spent, shelf) = over_a_shelf();
    let all: Vec<_> = (0..100).map(numbered).collect();
    all.iter().for_each(|(input, locked)| spent.insert(*input, *locked));
    let mut moved = Vec::new();
    let keep = |items: &[_]| {
        moved.extend_from_slice(items);
        shelf.keep(items)
    };
    spent.move_out(60, keep).expect("keeps");
    let mut expected = all[..60].to_vec();
    expected.sort_by_key(|(input, _)| *input);
    assert_eq!(moved, expected, "in order, and nothing that may not be durable");
    assert_eq!((spent.hot_len(), spent.len(), spent.is_empty()), (40, 100, false));
    for (input, locked) in all {
        assert_eq!(spent.get(input), Ok(Some(locked)));
        let other = spent.locked(TxId(hash(b"other")), &[input]);
        assert_eq!(other, Ok(LockStatus::Taken(input, locked)));
    }
    assert_eq!(spent.get(numbered(100).0), Ok(None));
}

/// ★ Until the other part has them durably, they are in memory; also where it never will.
#[test]
fn nothing_leaves_memory_before_it_is_kept() {
    let (spent, _) = over_a_shelf();
    let (input, locked) = numbered(1);
    spent.insert(input, locked);
    let refused = spent.move_out(2, |_| {
        assert_eq!(spent.get(input), Ok(Some(locked)), "while it is written");
        Err("the disk is full")
    });
    assert_eq!(refused, Err("the disk is full"));
    assert_eq!((spent.get(input), spent.hot_len()), (Ok(Some(locked)), 1));
}

/// ★ What cannot be looked up is not free.
#[test]
fn a_look_up_that_fails_is_no_answer() {
    let (spent, shelf) = over_a_shelf();
    let (hot, locked) = numbered(1);
    spent.insert(hot, locked);
    shelf.is_broken.store(true, Ordering::Relaxed);
    let failed = LookupFailed("broken".into());
    assert_eq!(spent.get(hot), Ok(Some(locked)), "nothing is asked for what is in memory");
    assert_eq!(spent.locked(locked.tx, &[hot]), Ok(LockStatus::Own));
    assert_eq!(spent.get(numbered(2).0), Err(failed.clone()));
    assert_eq!(spent.locked(locked.tx, &[hot, numbered(2).0]), Err(failed));
}

/// Inputs are locked and moved by others at every moment of a look-up.
#[test]
fn a_locked_input_never_looks_free_while_it_moves() {
    let (spent, shelf) = over_a_shelf();
    let lock = |number: u64| {
        let (input, locked) = numbered(number);
        spent.insert(input, locked);
    };
    (0..1_000).for_each(lock);
    std::thread::scope(|scope| {
        let growing = scope.spawn(|| (1_000..20_000).for_each(lock));
        let moving = scope.spawn(|| {
            for sequence in (100..20_000).step_by(100) {
                spent.move_out(sequence, |moved| shelf.keep(moved)).expect("keeps");
            }
        });
        while !growing.is_finished() || !moving.is_finished() {
            for number in (0..1_000).step_by(7) {
                let (input, locked) = numbered(number);
                assert_eq!(spent.get(input), Ok(Some(locked)));
            }
        }
    });
    spent.move_out(20_000, |moved| shelf.keep(moved)).expect("keeps");
    assert_eq!((spent.hot_len(), shelf.len()), (0, 20_000));
}

/// Each rule left out is noticed by the check that stands for it.
mod mutants {
    use super::*;
    use quorate_crypto::mutants::assert_noticed;

    #[test]
    fn every_rule_about_moving_is_missed() {
        assert_noticed(Mutant::PayIgnoreCold, what_moved_is_found_outside_and_no_longer_in_memory);
        assert_noticed(Mutant::PayForgetBeforeKept, nothing_leaves_memory_before_it_is_kept);
    }
}
