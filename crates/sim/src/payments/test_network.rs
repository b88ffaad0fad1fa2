//! The network of a run: keys, file, owners.

use quorate_crypto::{IdentitySecret, KeyFile};
use quorate_deterministic::{Rng, genesis};
use quorate_payments::{AuthorityEntry, Endowment, Network, NetworkFile, PayScheme};
use quorate_types::{Epoch, Weights};
use std::sync::Arc;

/// Coins that each owner begins with, and what each is worth: alike, so that some can stand for
/// others.
const ENDOWMENTS: usize = 6;
const VALUE: u64 = 100;

/// A network, its authorities' keys and its owners' secrets.
#[derive(Debug)]
pub struct TestNetwork {
    /// Network file, as members know it.
    pub network: Arc<Network>,
    /// Keys of each authority.
    pub keys: Vec<KeyFile>,
    /// The owners; the first issues.
    pub owners: Vec<IdentitySecret>,
    file: NetworkFile,
}

impl TestNetwork {
    /// Draws everything that a seed determines.
    ///
    /// # Panics
    /// When there are more authorities than a committee has members.
    #[must_use]
    pub fn new(
        seed: u64,
        scheme: PayScheme,
        authorities: usize,
        shards: u16,
        owners: usize,
    ) -> Self {
        let (keys, groups) =
            genesis::member_keys(seed, scheme.keys(), &Weights::equal(authorities));
        let mut rng = Rng::new(seed, "owners", 0);
        let owners: Vec<IdentitySecret> =
            (0..owners).map(|_| IdentitySecret::from_seed(rng.bytes32())).collect();
        let entry = |(number, keys): (usize, &KeyFile)| {
            let addresses = (0..shards).map(|shard| format!("sim:{number}.{shard}"));
            AuthorityEntry::new(&keys.public(), addresses.collect())
        };
        let endow = |owner: &IdentitySecret| {
            let endowment = Endowment { owner: owner.public().to_string(), value: VALUE };
            std::iter::repeat_n(endowment, ENDOWMENTS)
        };
        let file = NetworkFile {
            name: format!("sim {seed}"),
            network: None,
            epoch: Epoch(0),
            scheme,
            shards,
            issuer: owners[0].public().to_string(),
            groups,
            genesis: owners.iter().flat_map(endow).collect(),
            authorities: keys.iter().enumerate().map(entry).collect(),
        };
        let network = Arc::new(Network::load(&file).expect("fresh keys are sound"));
        Self { network, keys, owners, file }
    }

    /// The network as somebody knows it who has seen nothing yet.
    pub(super) fn stranger(&self) -> Network {
        Network::load(&self.file).expect("it was loaded before")
    }
}
