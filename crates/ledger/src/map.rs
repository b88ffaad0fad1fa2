//! An authenticated map: ordered keys and values under one hash, for services to keep their state
//! in.
//!
//! The entries lie in the service's [`State`](quorate_types::service::State) under `k` ‖ key, and a
//! `Tree` over all of them follows each block's changes. Its root depends on what the map holds
//! alone, not on its history. What it holds, and what it does not, is proven to whoever knows the
//! root.

pub(crate) mod bits;
pub(crate) mod entries;
pub(crate) mod hashes;
mod proof;
mod tree;
mod writer;

pub use bits::KEY_BYTES_MAX;
pub use proof::{PROOF_BYTES_MAX, ProofError, ProvenRange, value_hash, verify_get, verify_range};
pub(crate) use tree::Tree;
#[cfg(test)]
pub(crate) use tree::expected_root;
#[cfg(feature = "evm")]
pub(crate) use tree::{UPDATES_MAX, Version};
pub(crate) use writer::MapWriter;
