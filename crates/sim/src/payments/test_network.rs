//! The network of a run: keys, file, owners.

use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_deterministic::{Rng, genesis};
use quorate_payments::change::Change;
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
    /// Numbers of the authorities over all epochs, by index.
    pub(super) members: Vec<usize>,
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
        let endow = |owner: &IdentitySecret| {
            let endowment = Endowment { owner: owner.public().to_string(), value: VALUE };
            std::iter::repeat_n(endowment, ENDOWMENTS)
        };
        let members: Vec<usize> = (0..authorities).collect();
        let file = NetworkFile {
            name: format!("sim {seed}"),
            network: None,
            epoch: Epoch(0),
            scheme,
            shards,
            issuer: owners[0].public().to_string(),
            groups,
            genesis: owners.iter().flat_map(endow).collect(),
            authorities: entries(shards, &members, &keys),
        };
        let network = Arc::new(Network::load(&file).expect("fresh keys are sound"));
        Self { network, keys, owners, members, file }
    }

    /// The network of the next epoch, whose members are these, and the change to it as all of both
    /// epochs sign it. Where a dealer makes voting keys, he makes all of them anew.
    pub(super) fn next(&self, seed: u64, members: Vec<usize>) -> (Self, Change) {
        let kind = self.file.scheme.keys();
        let keys = |number: &usize| {
            let at = self.members.iter().position(|one| one == number);
            let fresh = || Rng::new(seed, "a newcomer's keys", *number as u64).bytes32();
            at.map_or_else(|| KeyFile::from_seed(kind, &fresh()), |at| self.keys[at].clone())
        };
        let mut keys: Vec<KeyFile> = members.iter().map(keys).collect();
        let mut file = self.file.next_epoch(self.network.id());
        if kind == SchemeKind::BlsThreshold {
            let (dealt, groups) =
                genesis::member_keys(!seed ^ file.epoch.0, kind, &Weights::equal(keys.len()));
            let voting = dealt.into_iter().map(|keys| keys.voting);
            keys.iter_mut().zip(voting).for_each(|(keys, voting)| keys.voting = voting);
            file.groups = groups;
        }
        file.authorities = entries(file.shards, &members, &keys);
        let mut change = Change::draft(file.clone());
        let signers = self.keys.iter().chain(&keys);
        signers.for_each(|keys| change.sign(&self.network, &keys.identity));
        let network = Arc::new(self.network.succeed(&change).expect("all have signed"));
        let owners = self.owners.clone();
        (Self { network, keys, owners, members, file }, change)
    }

    /// A change that keeps the authorities as they are, signed by whoever likes it.
    pub(super) fn coup(&self, by: &IdentitySecret) -> Change {
        let mut change = Change::draft(self.file.next_epoch(self.network.id()));
        change.sign(&self.network, by);
        change
    }

    /// The network as somebody knows it who has seen nothing yet.
    pub(super) fn stranger(&self) -> Network {
        Network::load(&self.file).expect("it was loaded before")
    }
}

fn entries(shards: u16, members: &[usize], keys: &[KeyFile]) -> Vec<AuthorityEntry> {
    let entry = |(number, keys): (&usize, &KeyFile)| {
        let addresses = (0..shards).map(|shard| format!("sim:{number}.{shard}"));
        AuthorityEntry::new(&keys.public(), addresses.collect())
    };
    members.iter().zip(keys).map(entry).collect()
}
