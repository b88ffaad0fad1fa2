//! Keys, committees and settings that outlive every restart of a host.

use crate::epoch::EpochConfig;
use bytes::Bytes;
use quorate_crypto::{IdentityKey, KeyFile};
use quorate_storage::{ExecutorConfig, LogConfig};
use quorate_types::{ClientId, HandedOver, Peer};
use std::sync::Arc;

/// Settings that all hosts have in common, and all their keys.
pub(super) struct Shared {
    /// Host whose steps are looked at.
    pub(super) subject: usize,
    /// Keys of every host.
    pub(super) keys: Vec<KeyFile>,
    /// Epoch of a host that knows nothing.
    pub(super) first: Arc<EpochConfig>,
    /// Change that ends it, if one is brought.
    pub(super) change: Option<PlannedEnd>,
    pub(super) log: LogConfig,
    pub(super) executor: ExecutorConfig,
}

/// A change of committee, as its client brings it.
pub(super) struct PlannedEnd {
    /// Frame of the change, with all its signatures.
    pub(super) content: Bytes,
    /// Keys of the next members.
    pub(super) keys: Vec<KeyFile>,
}

impl Shared {
    pub(super) fn identity(&self, host: usize) -> IdentityKey {
        self.keys[host].identity.public()
    }

    /// What a host is to members of an epoch.
    pub(super) fn peer_in(&self, epoch: &EpochConfig, host: usize) -> Peer {
        epoch.peer(host, &self.identity(host))
    }

    /// A client with this key.
    pub(super) fn client(&self) -> Peer {
        Peer::Client(ClientId(self.identity(0)))
    }

    /// The epoch that a step leads to.
    ///
    /// # Panics
    /// When the step is none of a change that was planned.
    pub(super) fn begin(&self, ended: &EpochConfig, step: &Arc<HandedOver>) -> Arc<EpochConfig> {
        let planned = self.change.as_ref().expect("nobody else makes changes");
        let hosts: Vec<IdentityKey> =
            (0..self.keys.len()).map(|host| self.identity(host)).collect();
        let next = ended.next(step, planned.keys.clone(), &hosts);
        Arc::new(next.expect("a quorum's hand-over is sound"))
    }
}
