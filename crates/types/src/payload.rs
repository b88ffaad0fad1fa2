//! Payload that a protocol orders: a small header over the digests of bodies that travel on their
//! own.

use crate::{BodyRef, Height};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, hash_parts};

/// The part of a payload that a block's id covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PayloadHeader {
    /// The position this payload takes if it is decided: one more than its parent's.
    pub height: Height,
    /// The proposer's wall clock in milliseconds since the Unix epoch, monotone along the chain.
    pub proposed_at_ms: u64,
    /// The hash over [`Payload::bodies`].
    pub payload_root: Digest,
    /// Digest of the change of epoch that this payload orders: its block is the epoch's last.
    pub change: Option<Digest>,
}

/// A header with what it commits to.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Payload {
    /// Header, which the block's id covers.
    pub header: PayloadHeader,
    /// The bodies in the order in which they execute.
    pub bodies: Vec<BodyRef>,
}

impl Payload {
    /// Most bodies in one payload.
    pub const BODIES_MAX: usize = 1_024;

    /// A payload over `bodies`.
    #[must_use]
    pub fn new(height: Height, proposed_at_ms: u64, bodies: Vec<BodyRef>) -> Self {
        let payload_root = Self::root(&bodies);
        let header = PayloadHeader { height, proposed_at_ms, payload_root, change: None };
        Self { header, bodies }
    }

    /// The payload that ends the epoch by this change, after its bodies.
    #[must_use]
    pub fn ending_epoch(mut self, change: Digest) -> Self {
        self.header.change = Some(change);
        self
    }

    /// Name of the body that is the change of epoch which it orders, if it does.
    #[must_use]
    pub fn change(&self) -> Option<BodyRef> {
        self.header.change.map(BodyRef::of_change)
    }

    /// Returns `true` if its height is the last of its epoch once it is decided.
    #[must_use]
    pub fn ends_epoch(&self) -> bool {
        self.header.change.is_some()
    }

    /// Returns `true` if the header commits to these bodies, no more than the limit and none twice.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.bodies.len() <= Self::BODIES_MAX
            && Self::root(&self.bodies) == self.header.payload_root
            && self.has_no_repeats()
    }

    /// Returns `true` if it orders nothing, neither bodies nor the end of the epoch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty() && !self.ends_epoch()
    }

    fn root(bodies: &[BodyRef]) -> Digest {
        let encoded = borsh::to_vec(bodies).expect("encoding into memory cannot fail");
        hash_parts("quorate v1 payload root", &[&encoded])
    }

    fn has_no_repeats(&self) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        self.bodies.iter().all(|body| seen.insert(body))
    }
}
