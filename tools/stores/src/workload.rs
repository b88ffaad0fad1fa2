//! Keys, values and the order in which they change, all from numbers.

use std::collections::BTreeMap;

/// A key of a store: random, as if it were a hash.
pub(crate) type Key = [u8; 32];

/// Newest values of one checkpoint, in key order.
pub(crate) type Changes = BTreeMap<Key, Vec<u8>>;

/// Under which every checkpoint leaves its number, behind all other keys.
pub(crate) const NUMBER_KEY: Key = [0xff; 32];

/// A generator of random numbers: SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.next().to_le_bytes()[..piece.len()]);
        }
    }
}

/// The key of that number.
pub(crate) fn key(number: u64) -> Key {
    let mut key = Key::default();
    Random::new(number << 8).fill(&mut key);
    // No other key is the one of checkpoints' numbers.
    key[31] &= 0x7f;
    key
}

/// A key's value in a version: its first eight bytes say which, and the rest does not compress.
pub(crate) fn value(number: u64, version: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    Random::new(number ^ version.rotate_right(16)).fill(&mut value);
    value[..8].copy_from_slice(&version.to_le_bytes());
    value
}

/// Version that a value says that it has.
pub(crate) fn version(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
}

/// Numbers of the keys that a checkpoint changes, in the order of the updates; some come twice.
pub(crate) fn changed(checkpoint: u64, updates: u64, keys: u64) -> Vec<u64> {
    let mut random = Random::new(checkpoint << 32);
    (0..updates).map(|_| random.below(keys)).collect()
}

/// The changes of a checkpoint, its number among them.
pub(crate) fn changes(checkpoint: u64, numbers: &[u64], value_bytes: usize) -> Changes {
    let pair = |&number: &u64| (key(number), value(number, checkpoint, value_bytes));
    let mut changes: Changes = numbers.iter().map(pair).collect();
    changes.insert(NUMBER_KEY, value(0, checkpoint, value_bytes));
    changes
}
