//! The hash of everything that happened.

use quorate_crypto::Digest;
use quorate_types::Time;

/// A running hash over the events of a run, in order. Two runs of one scenario have the same; the
/// first difference in any event changes it for good.
#[derive(Debug)]
pub struct Trace {
    hasher: blake3::Hasher,
    events: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self { hasher: blake3::Hasher::new_derive_key("quorate sim trace"), events: 0 }
    }
}

impl Trace {
    /// An event is about to be processed: when, of which kind, where, and a digest of its content.
    pub fn record(&mut self, at: Time, kind: u8, place: usize, content: &[u8; 32]) {
        let mut event = [0; 49];
        event[..8].copy_from_slice(&at.0.to_le_bytes());
        event[8] = kind;
        event[9..17].copy_from_slice(&(place as u64).to_le_bytes());
        event[17..].copy_from_slice(content);
        self.hasher.update(&event);
        self.events += 1;
    }

    /// Number of events recorded.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The hash so far.
    #[must_use]
    pub fn hash(&self) -> Digest {
        Digest(*self.hasher.finalize().as_bytes())
    }
}
