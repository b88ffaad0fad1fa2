//! Payers of a load: their keys, all made of one, and their connections.

use super::PayLoadError;
use quorate_crypto::{Digest, IdentityKey, IdentitySecret, hash_parts};
use quorate_node::payments::PayClient;
use quorate_payments::Network;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The payers, by number. The first one is the hub: it takes the wallet's money in, and gives it
/// back.
pub(super) struct Payers {
    secrets: Vec<IdentitySecret>,
    numbers: BTreeMap<IdentityKey, usize>,
}

impl Payers {
    /// The number of the hub.
    pub(super) const HUB: usize = 0;

    /// So many payers, whose keys are hashes of this one.
    pub(super) fn new(key: &IdentitySecret, count: usize) -> Self {
        let secrets: Vec<_> = (0..count).map(|number| derived(key, "payer", number)).collect();
        let numbers = secrets.iter().map(IdentitySecret::public).zip(0..).collect();
        Self { secrets, numbers }
    }

    pub(super) fn count(&self) -> usize {
        self.secrets.len()
    }

    pub(super) fn secret(&self, number: usize) -> &IdentitySecret {
        &self.secrets[number]
    }

    pub(super) fn key(&self, number: usize) -> IdentityKey {
        self.secrets[number].public()
    }

    /// Number of the payer with this key; `None` for somebody else's.
    pub(super) fn number(&self, key: &IdentityKey) -> Option<usize> {
        self.numbers.get(key).copied()
    }
}

/// A key whose connections lead to `shard`, for questions about coins of others.
pub(super) fn asker(key: &IdentitySecret, network: &Network, shard: u16) -> IdentitySecret {
    let found = (0..).map(|number| derived(key, "asker", number));
    let mut found = found.filter(|secret| network.shard_of(&secret.public()) == shard);
    found.next().expect("there are keys of every shard")
}

fn derived(key: &IdentitySecret, role: &str, number: usize) -> IdentitySecret {
    let (seed, number) = (key.seed(), (number as u64).to_le_bytes());
    let Digest(seed) =
        hash_parts("quorate v1 payments: keys of a load", &[&*seed, role.as_bytes(), &number]);
    IdentitySecret::from_seed(seed)
}

/// Every payer's connections to the authorities of one epoch.
pub(super) struct Clients {
    network: Arc<Network>,
    clients: Vec<PayClient>,
}

impl Clients {
    /// Connects in the background, inside a tokio runtime.
    pub(super) fn connect(network: Arc<Network>, payers: &Payers) -> Result<Self, PayLoadError> {
        let start = |secret| PayClient::start(Arc::clone(&network), secret);
        let clients = payers.secrets.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { network, clients })
    }

    pub(super) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    pub(super) fn of(&self, payer: usize) -> PayClient {
        self.clients[payer].clone()
    }

    /// Number of authorities that every payer is connected to, at least.
    pub(super) fn connected(&self) -> usize {
        self.clients.iter().map(PayClient::connected).min().unwrap_or(0)
    }

    pub(super) fn sent_again(&self) -> u64 {
        self.clients.iter().map(PayClient::sent_again).sum()
    }
}
