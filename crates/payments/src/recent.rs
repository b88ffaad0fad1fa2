//! Facts that are remembered while there is room for them.

use quorate_crypto::Digest;

/// Slots to begin with.
const SLOTS_MIN: usize = 64;

/// Values by name, of which a newer one may take an older one's place: for what can be found out
/// again, at some cost. A look-up touches one place in memory.
///
/// Names are hashes. Whoever finds two that share a slot makes one of them forgotten, no more.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    slots: Vec<Option<(Digest, V)>>,
    used: usize,
    slots_max: usize,
}

impl<V> Recent<V> {
    /// Nothing yet, and room for some half of `slots_max`, a power of two, before much is
    /// forgotten.
    pub(crate) fn new(slots_max: usize) -> Self {
        assert!(slots_max.is_power_of_two(), "slots are a power of two");
        Self { slots: Vec::new(), used: 0, slots_max }
    }

    pub(crate) fn get(&self, name: &Digest) -> Option<&V> {
        let (found, value) = self.slots.get(self.slot(name))?.as_ref()?;
        (found == name).then_some(value)
    }

    pub(crate) fn put(&mut self, name: Digest, value: V) {
        if self.used >= self.slots.len() / 2 && self.slots.len() < self.slots_max {
            self.grow();
        }
        let slot = self.slot(&name);
        let before = self.slots[slot].replace((name, value));
        self.used += usize::from(before.is_none());
    }

    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).clamp(SLOTS_MIN.min(self.slots_max), self.slots_max);
        let grown = (0..slots).map(|_| None).collect();
        self.used = 0;
        for (name, value) in std::mem::replace(&mut self.slots, grown).into_iter().flatten() {
            self.put(name, value);
        }
    }

    fn slot(&self, name: &Digest) -> usize {
        let word = u64::from_le_bytes(*name.0.first_chunk().expect("a hash has 32 bytes"));
        // The lowest bits: there are fewer slots than a word has values.
        word as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests;
