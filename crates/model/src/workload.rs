//! Load that clients offer.

use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Moments at which operations are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// In an open loop, by one client beside each validator: one as long after the other.
    Fixed,
    /// In an open loop, at random moments, independent of each other.
    Poisson,
    /// In a closed loop: each session sends a request of so many operations, and the next one as
    /// soon as all of them are answered. The rate means nothing then.
    Closed(NonZeroUsize),
}

/// Validators that get a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receivers {
    /// The validator beside the client, and the next when it is silent.
    #[default]
    One,
    /// All validators at once.
    All,
    /// The leader of the first view, and the next when it is silent: whoever orders, in protocols
    /// whose leader stays.
    Leader,
}

/// Service that is replicated, as far as its price goes: the state itself is that of a service that
/// does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Operations that do nothing.
    #[default]
    Noop,
    /// Puts into the authenticated key-value store.
    Kv,
    /// Transactions of the EVM ledger, whose senders every validator recovers from their
    /// signatures.
    Evm,
}

/// Load that clients offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Operations a second, of all clients together.
    pub rate: f64,
    /// Bytes of one operation, 1 to 131,072.
    pub tx_bytes: usize,
    /// Moments at which they come.
    pub arrivals: Arrivals,
    /// Time that operations wait to share a request.
    pub bundle_delay: Duration,
    /// Sessions, given to the clients in turn; `None`: as many as the rate needs, at least one
    /// each.
    pub sessions: Option<NonZeroUsize>,
    /// Validators that get a request.
    pub receivers: Receivers,
    /// Service that operations are for.
    pub work: Work,
}
