//! Writes the files of a payment network: `network.toml`, a folder for each authority with its key
//! and a configuration for each shard, and the issuer's key; with a validator for each beside it,
//! if a committee is to order releases.

use super::mark::Mark;
use super::{AuthorityConfig, ReleaseCommittee, read_network};
use crate::testnet::{
    Layout, NETWORK, Testnet, TestnetError, TestnetPlan, claim, make_folder, system_random, write,
    write_keys,
};
use crate::{ClientPolicy, NodeError};
use quorate_crypto::{Dealing, KeyFile, SchemeKind};
use quorate_engine::Settings;
use quorate_ledger::payments::ReleaseService;
use quorate_payments::{AuthorityEntry, Endowment, Network, NetworkFile, PayScheme};
use quorate_storage::Durability;
use quorate_types::{Epoch, Groups, Weights, deal_keys};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Plan of a new payment network.
#[derive(Clone, Debug)]
pub struct PayTestnetPlan {
    /// A name for people; part of the network's identity.
    pub name: String,
    /// Number of authorities in the network.
    pub authorities: u16,
    /// Number of shards of each.
    pub shards: u16,
    /// Scheme by which the authorities vote.
    pub scheme: PayScheme,
    /// The address that all listen on.
    pub host: String,
    /// Shard `s` of authority `a` listens on this port plus `a · shards + s`, and serves HTTP that
    /// many ports above the last of those.
    pub base_port: u16,
    /// Failures that a lock survives.
    pub durability: Durability,
    /// Outputs that exist from the beginning.
    pub genesis: Vec<Endowment>,
    /// Settings of a committee that orders releases, a validator beside each authority, if there is
    /// to be one. Validator `i` listens on the port after all that authorities have plus `i`, and
    /// serves HTTP that many ports above the last of those.
    pub committee: Option<Settings>,
}

impl Default for PayTestnetPlan {
    fn default() -> Self {
        Self {
            name: "testnet".into(),
            authorities: 4,
            shards: 1,
            scheme: PayScheme::Plain,
            host: "127.0.0.1".into(),
            base_port: 7_400,
            durability: Durability::Fsync,
            genesis: Vec::new(),
            committee: None,
        }
    }
}

/// Paths of a payment network's files.
#[derive(Clone, Debug)]
pub struct PayTestnet {
    /// The folder of it all.
    pub directory: PathBuf,
    /// Path of the network file.
    pub network: PathBuf,
    /// The issuer's key file.
    pub issuer: PathBuf,
    /// The configurations by authority and shard.
    pub configs: Vec<Vec<PathBuf>>,
    /// The HTTP addresses likewise.
    pub http: Vec<Vec<String>>,
    /// Committee that orders releases, where there is one.
    pub committee: Option<Testnet>,
}

impl PayTestnet {
    /// Writes the files of a new network with new keys into `directory`, which must be empty or
    /// absent.
    ///
    /// # Errors
    /// When the plan is impossible or the file system refuses.
    pub fn create(directory: &Path, plan: &PayTestnetPlan) -> Result<Self, TestnetError> {
        plan.check()?;
        let directory = claim(directory)?;
        let dealing = plan.deal()?;
        let issuer_folder = directory.join("issuer");
        let issuer = write_keys(
            &issuer_folder,
            KeyFile::generate(SchemeKind::Ed25519, &mut system_random)?,
        )?;
        let mut authorities = Vec::new();
        let mut configs = Vec::new();
        let mut http = Vec::new();
        for index in 0..plan.authorities {
            let folder = directory.join(format!("authority-{index}"));
            make_folder(&folder)?;
            let keys = write_keys(&folder, plan.keys(usize::from(index), dealing.as_ref())?)?;
            authorities.push(plan.entry(index, &keys));
            let mut of_shards = Vec::new();
            for shard in 0..plan.shards {
                let path = folder.join(format!("shard-{shard}.toml"));
                write(&path, &plan.config(index, shard).to_toml())?;
                of_shards.push(path);
            }
            configs.push(of_shards);
            http.push((0..plan.shards).map(|shard| plan.http(index, shard)).collect());
        }
        let file = NetworkFile {
            name: plan.name.clone(),
            network: None,
            epoch: Epoch(1),
            scheme: plan.scheme,
            shards: plan.shards,
            issuer: issuer.identity.public().to_string(),
            groups: dealing.map(|dealing| Groups::from(&dealing.groups)),
            genesis: plan.genesis.clone(),
            authorities,
        };
        let network = directory.join(NETWORK);
        let text = network_text(&file);
        write(&network, &text)?;
        mark_new_keys(&network, &configs)?;
        let committee = plan.validators(text);
        let committee = committee.map(|plan| Testnet::create_in(&directory, &plan)).transpose()?;
        let issuer = issuer_folder.join("key.toml");
        Ok(Self { network, issuer, configs, http, committee, directory })
    }
}

/// Says beside keys just made that they locked nothing: nobody has to say so at the first start.
fn mark_new_keys(network: &Path, configs: &[Vec<PathBuf>]) -> Result<(), TestnetError> {
    let network = read_network(network).expect("it was written just now").id();
    for path in configs.iter().flatten() {
        let config = AuthorityConfig::load(path).expect("it was written just now");
        let failed = |error: NodeError| TestnetError::Mark(error.to_string());
        let of_shard = (network, config.shard);
        let mut mark = Mark::beside(&config.key, of_shard, config.durability).map_err(failed)?;
        mark.begin(0).map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

impl PayTestnetPlan {
    fn check(&self) -> Result<(), TestnetError> {
        if self.authorities == 0 {
            return Err(TestnetError::Size(0));
        }
        let shards_max = usize::from(Network::SHARDS_MAX);
        let (members, shards) = (usize::from(self.authorities), usize::from(self.shards));
        let validators = if self.committee.is_some() { members } else { 0 };
        let ports = 2 * (members * shards.clamp(1, shards_max) + validators);
        let last = usize::from(self.base_port) + ports - 1;
        if self.base_port == 0 || last > usize::from(u16::MAX) {
            let (base, highest) =
                (self.base_port, (usize::from(u16::MAX) + 1).saturating_sub(ports));
            return Err(TestnetError::Ports { members, learners: 0, base, last, highest });
        }
        Ok(())
    }

    /// The committee behind the authorities, as they are: as many members, with keys of their own.
    fn validators(&self, network: String) -> Option<TestnetPlan> {
        let settings = self.committee.clone()?;
        let ports = 2 * self.authorities * self.shards;
        Some(TestnetPlan {
            name: format!("{}, releases", self.name),
            members: self.authorities.into(),
            host: self.host.clone(),
            base_port: self.base_port + ports,
            durability: self.durability,
            service: ReleaseService::NAME.into(),
            genesis: Some(network),
            layout: Layout::BesideAuthorities,
            clients: ClientPolicy::Service,
            settings: Settings { execution_certificates: true, ..settings },
            ..TestnetPlan::default()
        })
    }

    fn deal(&self) -> Result<Option<Dealing>, TestnetError> {
        if self.scheme != PayScheme::BlsThreshold {
            return Ok(None);
        }
        let mut seed = Zeroizing::new([0; 32]);
        system_random(&mut seed[..]);
        Ok(Some(deal_keys(&Weights::equal(usize::from(self.authorities)), &seed)?))
    }

    fn keys(&self, index: usize, dealing: Option<&Dealing>) -> Result<KeyFile, TestnetError> {
        let Some(dealing) = dealing else {
            return Ok(KeyFile::generate(self.scheme.keys(), &mut system_random)?);
        };
        let own = KeyFile::generate(SchemeKind::Ed25519, &mut system_random)?;
        Ok(KeyFile { voting: dealing.secrets[index].clone(), ..own })
    }

    fn entry(&self, index: u16, keys: &KeyFile) -> AuthorityEntry {
        let addresses = (0..self.shards).map(|shard| self.address(index, shard));
        AuthorityEntry::new(&keys.public(), addresses.collect())
    }

    fn config(&self, index: u16, shard: u16) -> AuthorityConfig {
        let text = format!(
            "network = \"../network.toml\"\nkey = \"key.toml\"\nshard = {shard}\ndata_dir = \
             \"data-{shard}\"\nhttp = {:?}\ndurability = \"{}\"",
            self.http(index, shard),
            self.durability
        );
        let committee =
            self.committee.as_ref().map(|_| Path::new("..").join(ReleaseCommittee::FILE));
        let config = toml::from_str(&text).expect("a whole configuration");
        AuthorityConfig { committee, ..config }
    }

    fn address(&self, index: u16, shard: u16) -> String {
        self.port(u32::from(index) * u32::from(self.shards) + u32::from(shard))
    }

    fn http(&self, index: u16, shard: u16) -> String {
        let (shards, authorities) = (u32::from(self.shards), u32::from(self.authorities));
        self.port((authorities + u32::from(index)) * shards + u32::from(shard))
    }

    fn port(&self, offset: u32) -> String {
        format!("{}:{}", self.host, u32::from(self.base_port) + offset)
    }
}

fn network_text(file: &NetworkFile) -> String {
    let content = toml::to_string(file).expect("a plain struct is a table");
    format!(
        "# A Quorate payment network. Every authority and every wallet holds the same bytes: the hash of\n\
         # names, epoch, scheme, shards, issuer, genesis and keys is its identity. Addresses may change\n\
         # without changing it.\n{content}"
    )
}

#[cfg(test)]
mod tests;
