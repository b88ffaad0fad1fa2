//! A payment network: its authorities, their shards, who issues, and what it began with.

mod succession;

use crate::votes::{self, EpochVotes, Votes};
use crate::{Output, OutputId, PayScheme, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, IdentityKey, KeyCache, PublicKeys, hash_parts};
use quorate_types::{
    AgreedSettings, Committee, CommitteeError, CommitteeFile, Epoch, Groups, Member, NetworkId,
    Scope,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One authority, as the network file states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityEntry {
    /// Ed25519 identity key, 64 hexadecimal digits: proves its channels.
    pub identity: String,
    /// Proof that it holds the identity's secret, 128 hexadecimal digits.
    #[serde(default)]
    pub identity_proof: String,
    /// Voting key in hexadecimal.
    pub voting: String,
    /// Proof that it holds the voting key's secret; empty for Ed25519.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub possession: String,
    /// Addresses at which payers reach its shards, in shard order: `host:port`.
    pub addresses: Vec<String>,
}

impl AuthorityEntry {
    /// Entry of an authority by its public keys.
    #[must_use]
    pub fn new(keys: &PublicKeys, addresses: Vec<String>) -> Self {
        Self {
            identity: keys.identity.to_string(),
            identity_proof: keys.identity_proof.to_string(),
            voting: keys.voting.to_string(),
            possession: keys.possession.to_string(),
            addresses,
        }
    }
}

/// Money that the network begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(deny_unknown_fields)]
pub struct Endowment {
    /// Owner's identity key, 64 hexadecimal digits.
    pub owner: String,
    /// Value in the smallest unit, at least 1.
    pub value: u64,
}

/// The network file: the same bytes for every authority and every wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkFile {
    /// A name for people; part of the network's identity.
    pub name: String,
    /// Network that the file goes on. Absent in the file that founds one, whose own hash is the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkId>,
    /// The epoch in which this file is in force.
    pub epoch: Epoch,
    /// Scheme by which the authorities vote.
    pub scheme: PayScheme,
    /// Number of processes among which each authority shares its payers.
    pub shards: u16,
    /// Issuer's identity key, 64 hexadecimal digits.
    pub issuer: String,
    /// The groups' keys where voting keys come from a dealer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    /// Outputs that exist from the beginning.
    #[serde(default)]
    pub genesis: Vec<Endowment>,
    /// The authorities in index order.
    pub authorities: Vec<AuthorityEntry>,
}

/// Error in a network file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The authorities make no committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// A file of a later epoch, without the changes that lead to it.
    #[error(
        "the network file is of epoch {0}, not one that founds a network: name the founding file, \
         and the changes since"
    )]
    NotFounding(Epoch),
    /// No shards, or more than an owner can be mapped to.
    #[error("an authority has 1 to {max} shards, not {0}", max = Network::SHARDS_MAX)]
    Shards(u16),
    /// An authority without an address for each shard.
    #[error("authority {authority} states {found} addresses for {shards} shards")]
    Addresses {
        /// Index of the authority.
        authority: usize,
        /// Number of addresses that it states.
        found: usize,
        /// Number of shards, each of which needs an address.
        shards: u16,
    },
    /// A key that is none.
    #[error(
        "{what} is not an identity key of 64 hexadecimal digits that one holder alone signs under"
    )]
    Key {
        /// Description of the key's place in the file.
        what: String,
    },
    /// Genesis outputs worth nothing, or more together than 64 bits hold.
    #[error("the genesis outputs must each be worth at least 1, and together less than 2^64")]
    Genesis,
}

/// A loaded payment network: every key checked.
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    scope: Scope,
    committee: Arc<Committee>,
    scheme: PayScheme,
    shards: u16,
    issuer: IdentityKey,
    genesis: BTreeMap<OutputId, Output>,
    addresses: Vec<Vec<String>>,
    votes: Arc<dyn Votes>,
    epochs: Arc<EpochVotes>,
}

impl Network {
    /// Most shards of an authority.
    pub const SHARDS_MAX: u16 = 1_024;

    /// Loads and checks a network file.
    ///
    /// # Errors
    /// The first thing wrong with the file.
    pub fn load(file: &NetworkFile) -> Result<Self, NetworkError> {
        if file.network.is_some() {
            return Err(NetworkError::NotFounding(file.epoch));
        }
        let committee = Arc::new(Committee::load(&file.committee(), KeyCache::On)?);
        Self::with_committee(file, committee, EpochVotes::new)
    }

    /// The network of a file whose committee was loaded; `epochs` adds the votes of epochs before.
    fn with_committee(
        file: &NetworkFile,
        committee: Arc<Committee>,
        epochs: impl FnOnce(Epoch, Arc<dyn Votes>) -> EpochVotes,
    ) -> Result<Self, NetworkError> {
        if file.shards == 0 || file.shards > Self::SHARDS_MAX {
            return Err(NetworkError::Shards(file.shards));
        }
        for (authority, entry) in file.authorities.iter().enumerate() {
            let (found, shards) = (entry.addresses.len(), file.shards);
            if found != usize::from(shards) {
                return Err(NetworkError::Addresses { authority, found, shards });
            }
        }
        let total = committee.weights().total();
        assert!(
            2 * committee.quorum() > total + committee.faulty_max(),
            "two quorums share an honest authority, who saw both"
        );
        let network = file.network.unwrap_or_else(|| file.network_id(committee.network()));
        let scope = Scope { network, epoch: committee.epoch_id() };
        let issuer = parse_key("the issuer", &file.issuer)?;
        let genesis = genesis_outputs(network, &file.genesis)?;
        let own = votes::of(file.scheme, scope, &committee);
        let epochs = Arc::new(epochs(file.epoch, own));
        Ok(Self {
            name: file.name.clone(),
            scope,
            scheme: file.scheme,
            shards: file.shards,
            issuer,
            genesis,
            addresses: file.authorities.iter().map(|entry| entry.addresses.clone()).collect(),
            votes: Arc::clone(&epochs) as Arc<dyn Votes>,
            epochs,
            committee,
        })
    }

    /// Name of the network, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identifier that everything signed in this network names.
    #[must_use]
    pub fn id(&self) -> NetworkId {
        self.scope.network
    }

    /// Epoch that is in force.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.committee.epoch()
    }

    /// Returns `true` in the epoch that the network was founded with, which inherits nothing.
    #[must_use]
    pub fn is_founding(&self) -> bool {
        self.epochs.former() == 0
    }

    /// Epoch that the network was founded with.
    #[must_use]
    pub fn founding_epoch(&self) -> Epoch {
        Epoch(self.epoch().0 - self.former_epochs() as u64)
    }

    /// Number of epochs that ended before this one.
    #[must_use]
    pub fn former_epochs(&self) -> usize {
        self.epochs.former()
    }

    /// Scope of the authorities' votes: this network, in the epoch of their committee.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The authorities as a committee: keys, weights, quorum.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        &self.committee
    }

    /// Scheme by which the authorities vote.
    #[must_use]
    pub fn scheme(&self) -> PayScheme {
        self.scheme
    }

    /// Implementation of the scheme, which makes and checks votes and certificates. Certificates of
    /// former epochs are checked under their authorities' keys; whether they *count* is more than
    /// that ([`change`](crate::change)).
    #[must_use]
    pub fn votes(&self) -> &Arc<dyn Votes> {
        &self.votes
    }

    /// Implementation of the scheme that remembers nothing of what it checked: for measurements.
    #[must_use]
    pub fn votes_uncached(&self) -> Arc<dyn Votes> {
        votes::of(self.scheme, self.scope, &self.committee)
    }

    /// Number of shards of each authority.
    #[must_use]
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// The shard that votes for what `payer` spends.
    #[must_use]
    pub fn shard_of(&self, payer: &IdentityKey) -> u16 {
        let digest = hash_parts("quorate v1 payments: shard", &[&payer.0]);
        let number = u64::from_le_bytes(digest.0[..8].try_into().expect("8 bytes"));
        u16::try_from(number % u64::from(self.shards)).expect("fewer than 2^16 shards")
    }

    /// Address of an authority's shard, as `host:port`; `None` when there is no such shard.
    #[must_use]
    pub fn address(&self, authority: usize, shard: u16) -> Option<&str> {
        self.addresses.get(authority)?.get(usize::from(shard)).map(String::as_str)
    }

    /// Key that may issue money.
    #[must_use]
    pub fn issuer(&self) -> IdentityKey {
        self.issuer
    }

    /// An output that the network began with.
    #[must_use]
    pub fn genesis(&self, id: OutputId) -> Option<Output> {
        self.genesis.get(&id).copied()
    }

    /// Outputs that exist from the beginning, in the order of their names.
    pub fn genesis_outputs(&self) -> impl Iterator<Item = (OutputId, Output)> + '_ {
        self.genesis.iter().map(|(id, output)| (*id, *output))
    }
}

impl NetworkFile {
    /// The authorities as a committee file. What is signed names [`Network::id`], not this
    /// file's.
    #[must_use]
    pub fn committee(&self) -> CommitteeFile {
        let member = |entry: &AuthorityEntry| Member {
            identity: entry.identity.clone(),
            identity_proof: entry.identity_proof.clone(),
            voting: entry.voting.clone(),
            possession: entry.possession.clone(),
            address: entry.addresses.first().cloned().unwrap_or_default(),
            weight: 1,
        };
        CommitteeFile {
            name: self.name.clone(),
            network: self.network,
            epoch: self.epoch,
            scheme: self.scheme.keys().to_string(),
            redundancy: 0,
            settings: AgreedSettings::default(),
            groups: self.groups.clone(),
            from_state: None,
            members: self.authorities.iter().map(member).collect(),
        }
    }

    /// The file of the next epoch of `network`, in which nothing else differs yet.
    #[must_use]
    pub fn next_epoch(&self, network: NetworkId) -> Self {
        Self { network: Some(network), epoch: self.epoch.next(), ..self.clone() }
    }

    /// The hash of everything in the file, addresses too: what is signed to change to it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let content = borsh::to_vec(self).expect("encoding into memory cannot fail");
        hash_parts("quorate v1 payment network file", &[&content])
    }

    fn network_id(&self, committee: NetworkId) -> NetworkId {
        let genesis: Vec<_> = self.genesis.iter().map(|one| (&one.owner, one.value)).collect();
        let content = (self.scheme.to_string(), self.shards, &self.issuer, genesis);
        let content = borsh::to_vec(&content).expect("encoding into memory cannot fail");
        NetworkId(hash_parts("quorate v1 payment network", &[&committee.0, &content]).0)
    }
}

fn genesis_outputs(
    network: NetworkId,
    endowments: &[Endowment],
) -> Result<BTreeMap<OutputId, Output>, NetworkError> {
    let tx = TxId(hash_parts("quorate v1 payments: genesis", &[&network.0]));
    let mut total = 0u64;
    let mut outputs = BTreeMap::new();
    for (index, one) in endowments.iter().enumerate() {
        let owner = parse_key("a genesis owner", &one.owner)?;
        total = total.checked_add(one.value).ok_or(NetworkError::Genesis)?;
        let index = u16::try_from(index).map_err(|_| NetworkError::Genesis)?;
        if one.value == 0 {
            return Err(NetworkError::Genesis);
        }
        outputs.insert(OutputId { tx, index }, Output { owner, value: one.value });
    }
    Ok(outputs)
}

/// A key that one holder signs under: with one of small order anybody would issue or spend.
fn parse_key(what: &str, text: &str) -> Result<IdentityKey, NetworkError> {
    let key: Option<IdentityKey> =
        text.parse().ok().filter(|key: &IdentityKey| key.check().is_ok());
    key.ok_or_else(|| NetworkError::Key { what: what.to_owned() })
}

#[cfg(test)]
mod tests;
