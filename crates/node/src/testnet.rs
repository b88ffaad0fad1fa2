//! Writes the files of a whole committee: `committee.toml`, and a folder for each validator and
//! learner with `key.toml` (readable by its owner alone) and a commented `config.toml`.

mod existing;
mod places;

pub use existing::{ExistingKeys, ExistingKeysError};
pub use places::{HostNames, Layout};

use crate::config::genesis_digest;
use crate::{Archive, ClientPolicy, ClientsFile, LearnerAddress, ListedClient, NodeConfig};
use places::GENESIS;
use quorate_crypto::{
    Dealing, KeyError, KeyFile, KeyFileError, Passphrase, SchemeKind, SealCost, VotingSecret,
};
use quorate_engine::{Settings, SettingsError, UnfitProtocol};
use quorate_storage::Durability;
use quorate_types::{
    AgreedSettings, Committee, CommitteeError, CommitteeFile, Epoch, Groups, Member, Weights,
    WeightsError, deal_keys,
};
use quorate_wan::{Emulation, EmulationError};
use rustls::crypto::ring;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The file's name of a payment network, beside the committee's that orders its releases.
pub(crate) const NETWORK: &str = "network.toml";

/// Name of a validator's list of clients, beside its configuration.
const CLIENTS: &str = "clients.toml";

/// Plan of a new test network.
#[derive(Clone, Debug)]
pub struct TestnetPlan {
    /// A name for people; part of the network's identity.
    pub name: String,
    /// Number of members, 1 to [`Committee::MEMBERS_MAX`].
    pub members: usize,
    /// Number of learners beside them, which follow without a vote.
    pub learners: usize,
    /// The members' voting weights, as many as there are members; `None` for 1 each.
    pub weights: Option<Weights>,
    /// Number of members beyond those that faults alone ask for (`c` of `n = 3f+2c+1`).
    pub redundancy: u64,
    /// Voting scheme of the committee.
    pub scheme: SchemeKind,
    /// The members' keys, if they are not to be new. The committee file gives them another name and
    /// other addresses: what they sign here counts nowhere else. Members, weights, redundancy and
    /// scheme are then as it says, and members whose keys are not at hand get no key file.
    pub keys: Option<Arc<ExistingKeys>>,
    /// Passphrase under which all key files are sealed; `None` leaves them in the clear.
    pub passphrase: Option<Passphrase>,
    /// The address that all listen on.
    pub host: String,
    /// Hosts of their own for all, in the place of `host`: each then listens on `base_port` for
    /// peers and clients, and on [`HostNames`]' ports.
    pub names: Option<HostNames>,
    /// Member `i` listens on this port plus `i`, and serves HTTP on this plus `members` plus `i`.
    /// The learners' ports follow in the same way.
    pub base_port: u16,
    /// Failures that a vote survives.
    pub durability: Durability,
    /// Bytes of log that each keeps for members that fell behind; `None` for the usual.
    pub retention_bytes: Option<u64>,
    /// Past states that each keeps.
    pub archive: Archive,
    /// Name of the replicated service.
    pub service: String,
    /// The genesis file's text, where the service has one.
    pub genesis: Option<String>,
    /// Version of the service's rules that it begins by.
    pub execution_version: u64,
    /// Folders of the members. A learner's is `learner-0` in all.
    pub layout: Layout,
    /// Gives each member a gateway, on this port plus twice `members` and `learners` plus its
    /// index; in [`Layout::Volumes`] each learner too, on the ports that follow.
    pub gateways: bool,
    /// Clients that members let in. Where that is listed ones, the plan makes keys for one.
    pub clients: ClientPolicy,
    /// Settings of all replicas.
    pub settings: Settings,
    /// A network to emulate between them, for laboratories.
    pub emulation: Option<Emulation>,
}

impl Default for TestnetPlan {
    fn default() -> Self {
        Self {
            name: "testnet".into(),
            members: 4,
            learners: 0,
            weights: None,
            redundancy: 0,
            scheme: SchemeKind::Ed25519,
            keys: None,
            passphrase: None,
            host: "127.0.0.1".into(),
            names: None,
            base_port: 7_000,
            durability: Durability::Fsync,
            retention_bytes: None,
            archive: Archive::default(),
            service: "ordered-log".into(),
            genesis: None,
            execution_version: AgreedSettings::default().execution_version,
            layout: Layout::default(),
            gateways: false,
            clients: ClientPolicy::default(),
            settings: Settings::default(),
            emulation: None,
        }
    }
}

/// Paths of a test network's files.
#[derive(Clone, Debug)]
pub struct Testnet {
    /// The folder of it all.
    pub directory: PathBuf,
    /// Path of the committee file.
    pub committee: PathBuf,
    /// The configuration files in member order.
    pub configs: Vec<PathBuf>,
    /// The HTTP addresses in member order.
    pub http: Vec<String>,
    /// The gateways' addresses in member order, where they have gateways.
    pub gateways: Vec<String>,
    /// Learners in index order.
    pub learners: Vec<NewLearner>,
    /// Key file of the client on all members' lists, where they have lists.
    pub client_key: Option<PathBuf>,
}

/// A learner that was written.
#[derive(Clone, Debug)]
pub struct NewLearner {
    /// Path of its configuration file.
    pub config: PathBuf,
    /// Address at which clients find it.
    pub address: LearnerAddress,
}

/// Reason that a test network was not written.
#[derive(Debug, thiserror::Error)]
pub enum TestnetError {
    /// There is something in the folder.
    #[error("{path} is not empty; name a new folder, or remove this one if its keys and data are of no use any more", path = path.display())]
    NotEmpty {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The mark of new keys could not be written.
    #[error("{0}")]
    Mark(String),
    /// A size that no committee has.
    #[error("a committee has 1 to {max} members, not {0}", max = Committee::MEMBERS_MAX)]
    Size(usize),
    /// More or fewer weights than members.
    #[error("{weights} weights for {members} members: give one a member")]
    Weights {
        /// Number of weights given.
        weights: usize,
        /// Number of members planned.
        members: usize,
    },
    /// Existing keys of more or fewer members.
    #[error("there are existing keys of {keys} members, and the testnet has {members}")]
    Existing {
        /// Members of the committee that the keys are of.
        keys: usize,
        /// Number of members planned.
        members: usize,
    },
    /// Weights or keys that the protocol does not support.
    #[error(transparent)]
    Unfit(#[from] UnfitProtocol),
    /// Members that do not make the redundancy that was asked for.
    #[error(transparent)]
    Redundancy(#[from] WeightsError),
    /// The ports do not fit.
    #[error(
        "{members} members{} need the ports {base} to {last}; choose a base port from 1 to {highest}", and_learners(*learners)
    )]
    Ports {
        /// Number of members planned.
        members: usize,
        /// Number of learners planned.
        learners: usize,
        /// First port of the network.
        base: u16,
        /// The last port that they would need.
        last: usize,
        /// The highest base port that works.
        highest: usize,
    },
    /// A port that hosts with names use otherwise.
    #[error(
        "port {0} is not for peers: choose another than 0, {http} (status and metrics) and {gateway} \
         (gateway)", http = HostNames::HTTP_PORT, gateway = HostNames::GATEWAY_PORT
    )]
    TakenPort(u16),
    /// A setting out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A network that cannot be.
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    /// Keys were not made.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// Keys were not dealt.
    #[error(transparent)]
    Dealing(#[from] CommitteeError),
    /// A key file was not written.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The file system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// Operation on the file, as a verb for the message.
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Testnet {
    /// Writes the files of a new committee with new keys into `directory`, which must be empty or
    /// absent.
    ///
    /// # Errors
    /// When the plan is impossible or the file system refuses.
    pub fn create(directory: &Path, plan: &TestnetPlan) -> Result<Self, TestnetError> {
        plan.check()?;
        Self::write(claim(directory)?, plan)
    }

    /// Writes the files of a new committee beside what is in `directory`.
    pub(crate) fn create_in(directory: &Path, plan: &TestnetPlan) -> Result<Self, TestnetError> {
        plan.check()?;
        Self::write(directory.to_owned(), plan)
    }

    fn write(directory: PathBuf, plan: &TestnetPlan) -> Result<Self, TestnetError> {
        let dealing = plan.deal()?;
        let mut members = Vec::with_capacity(plan.members);
        let mut configs = Vec::with_capacity(plan.members);
        let mut http = Vec::with_capacity(plan.members);
        let mut learners = Vec::with_capacity(plan.learners);
        let mut gateways = Vec::new();
        let beside = plan.layout.of_learners();
        if let Some(genesis) = plan.genesis.as_ref().filter(|_| plan.layout.genesis() == GENESIS) {
            write(&directory.join(plan.layout.shared(GENESIS)), genesis)?;
        }
        for index in 0..plan.learners {
            let folder = directory.join(Layout::learner(index));
            let identity = plan.learner_keys(&folder.join(beside.key()))?.identity.public();
            let config = folder.join(beside.config());
            write(&config, &plan.learner_config(index).to_toml())?;
            let address = LearnerAddress { identity, address: plan.learner_address(index) };
            learners.push(NewLearner { config, address });
        }
        let client = plan.client_keys(&directory)?;
        let known = learners.iter().map(|learner| learner.address.identity.to_string());
        let known: Vec<String> = known.collect();
        for index in 0..plan.members {
            let folder = directory.join(plan.layout.member(index));
            let dealt = dealing.as_ref().map(|dealing| dealing.secrets[index].clone());
            members.push(plan.place_member(index, &folder.join(plan.layout.key()), dealt)?);
            let config = NodeConfig { learners: known.clone(), ..plan.config(index) };
            http.push(config.http.clone());
            gateways.extend(config.gateway.clone());
            let path = folder.join(plan.layout.config());
            write(&path, &config.to_toml())?;
            configs.push(path);
            if let Some((_, list)) = &client {
                write(&folder.join(plan.layout.clients()), list)?;
            }
        }
        for learner in &learners {
            if let Some((_, list)) = &client {
                write(&learner.config.with_file_name(CLIENTS), list)?;
            }
        }
        let client_key = client.map(|(key, _)| key);
        let committee = directory.join(plan.layout.shared(Layout::COMMITTEE));
        let existing = plan.keys.as_ref().and_then(|keys| keys.committee.groups.clone());
        let groups = dealing.map(|dealing| Groups::from(&dealing.groups)).or(existing);
        write(&committee, &plan.committee(members, groups))?;
        Ok(Self { directory, committee, configs, http, gateways, learners, client_key })
    }
}

impl TestnetPlan {
    fn check(&self) -> Result<(), TestnetError> {
        if let Some(existing) = &self.keys
            && existing.committee.members.len() != self.members
        {
            let (keys, members) = (existing.committee.members.len(), self.members);
            return Err(TestnetError::Existing { keys, members });
        }
        if self.members == 0 || self.members > Committee::MEMBERS_MAX {
            return Err(TestnetError::Size(self.members));
        }
        if let Some(weights) = &self.weights
            && weights.members() != self.members
        {
            let (weights, members) = (weights.members(), self.members);
            return Err(TestnetError::Weights { weights, members });
        }
        self.settings.protocol.check_committee(&self.weights()?, self.scheme)?;
        self.check_ports()?;
        if let Some(emulation) = &self.emulation {
            emulation.topology(self.members)?;
        }
        Ok(self.settings.validate()?)
    }

    fn check_ports(&self) -> Result<(), TestnetError> {
        let (members, learners, base) = (self.members, self.learners, self.base_port);
        if let Some(names) = &self.names {
            let named = (names.members.len(), names.learners.len());
            assert_eq!(named, (members, learners), "a name for each");
            let taken = [HostNames::HTTP_PORT, HostNames::GATEWAY_PORT];
            return match base == 0 || taken.contains(&base) {
                true => Err(TestnetError::TakenPort(base)),
                false => Ok(()),
            };
        }
        let asked = if self.layout == Layout::Volumes { learners } else { 0 };
        let ports = 2 * (members + learners) + if self.gateways { members + asked } else { 0 };
        let last = usize::from(base) + ports - 1;
        if base == 0 || last > usize::from(u16::MAX) {
            let highest = usize::from(u16::MAX) + 1 - ports;
            return Err(TestnetError::Ports { members, learners, base, last, highest });
        }
        Ok(())
    }

    fn weights(&self) -> Result<Weights, WeightsError> {
        let weights = self.weights.clone().unwrap_or_else(|| Weights::equal(self.members));
        weights.with_redundancy(self.redundancy)
    }

    /// Threshold keys for all members, if that is how they vote. Whoever writes a testnet is
    /// trusted: its files are all here for a moment.
    fn deal(&self) -> Result<Option<Dealing>, TestnetError> {
        if self.scheme != SchemeKind::BlsThreshold || self.keys.is_some() {
            return Ok(None);
        }
        let mut seed = Zeroizing::new([0; 32]);
        system_random(&mut seed[..]);
        Ok(Some(deal_keys(&self.weights()?, &seed)?))
    }

    /// Writes a member's keys, and gives its entry.
    fn place_member(
        &self,
        index: usize,
        file: &Path,
        dealt: Option<VotingSecret>,
    ) -> Result<Member, TestnetError> {
        let Some(existing) = &self.keys else {
            return Ok(self.member(index, &self.member_keys(file, dealt)?));
        };
        if let Some(keys) = &existing.keys[index] {
            self.write_keys(file, keys)?;
        }
        Ok(Member {
            address: self.member_address(index),
            ..existing.committee.members[index].clone()
        })
    }

    fn member(&self, index: usize, keys: &KeyFile) -> Member {
        let weight = self.weights.as_ref().map_or(1, |weights| weights.of(index));
        Member { weight, ..Member::new(&keys.public(), self.member_address(index)) }
    }

    fn member_keys(
        &self,
        file: &Path,
        dealt: Option<VotingSecret>,
    ) -> Result<KeyFile, TestnetError> {
        let keys = match dealt {
            Some(voting) => {
                let own = KeyFile::generate(SchemeKind::Ed25519, &mut system_random)?;
                KeyFile { voting, ..own }
            }
            None => KeyFile::generate(self.scheme, &mut system_random)?,
        };
        self.write_keys(file, &keys)?;
        Ok(keys)
    }

    /// Writes a new key file, sealed if the plan says so.
    fn write_keys(&self, file: &Path, keys: &KeyFile) -> Result<(), TestnetError> {
        make_folder(file.parent().unwrap_or(Path::new(".")))?;
        let cost = SealCost::default();
        match &self.passphrase {
            Some(passphrase) => keys.write_sealed(file, passphrase, cost, &mut system_random)?,
            None => keys.write(file)?,
        }
        Ok(())
    }

    /// A learner has no vote, and is dealt no share of one.
    fn learner_keys(&self, file: &Path) -> Result<KeyFile, TestnetError> {
        let is_dealt = self.scheme == SchemeKind::BlsThreshold;
        let scheme = if is_dealt { SchemeKind::Ed25519 } else { self.scheme };
        let keys = KeyFile::generate(scheme, &mut system_random)?;
        self.write_keys(file, &keys)?;
        Ok(keys)
    }

    /// Keys of a first client and the list that names it, where members let in listed clients.
    fn client_keys(&self, directory: &Path) -> Result<Option<(PathBuf, String)>, TestnetError> {
        if self.clients != ClientPolicy::Listed {
            return Ok(None);
        }
        let folder = directory.join("client");
        let keys = KeyFile::generate(SchemeKind::Ed25519, &mut system_random)?;
        let key = write_keys(&folder, keys)?.identity.public().to_string();
        let file = ClientsFile { clients: vec![ListedClient { key, name: "client".into() }] };
        let list = toml::to_string(&file).expect("a plain struct is a table");
        let list = format!(
            "# Clients that this validator lets in; it reads them again on SIGHUP.\n{list}"
        );
        Ok(Some((folder.join("key.toml"), list)))
    }

    fn learner_config(&self, index: usize) -> NodeConfig {
        let layout = self.layout.of_learners();
        let has_gateway = self.gateways && layout == Layout::Volumes;
        let listen = match &self.names {
            Some(_) => format!("0.0.0.0:{}", self.base_port),
            None => self.learner_address(index),
        };
        NodeConfig {
            learner: true,
            listen: Some(listen),
            http: self.http_address(2 * self.members + self.learners + index),
            gateway: has_gateway.then(|| self.gateway_address(self.members + index)),
            emulation: None,
            committee: layout.named_shared(Layout::COMMITTEE),
            genesis: self.genesis.as_ref().map(|_| layout.named_shared(self.layout.genesis())),
            ..self.config(index)
        }
    }

    fn config(&self, index: usize) -> NodeConfig {
        let layout = self.layout;
        let committee = layout.named_shared(Layout::COMMITTEE);
        let is_mounted = layout == Layout::Volumes;
        let data = if is_mounted { Layout::DATA } else { "data" };
        let default = NodeConfig::new(committee, layout.named_key(), data.into());
        let passphrase = Path::new(Layout::PASSPHRASE);
        let passphrase = self.passphrase.as_ref().map(|_| layout.named(passphrase));
        let asks_token = is_mounted && self.gateways && self.service == "kv";
        NodeConfig {
            key_notes: is_mounted.then(|| Layout::NOTES.into()),
            passphrase_file: passphrase.filter(|_| is_mounted),
            listen: self.names.as_ref().map(|_| format!("0.0.0.0:{}", self.base_port)),
            http: self.http_address(self.members + index),
            retention_bytes: self.retention_bytes.unwrap_or(default.retention_bytes),
            archive: self.archive,
            durability: self.durability,
            comparison: !self.settings.comparison.departures().is_empty(),
            service: self.service.clone(),
            genesis_digest: self.genesis_digest(),
            genesis: self.genesis.as_ref().map(|_| layout.named_shared(layout.genesis())),
            clients: self.clients,
            gateway: self.gateways.then(|| self.gateway_address(index)),
            // Plain HTTP, for whatever the cluster lets reach it.
            http_insecure: self.names.is_some(),
            gateway_insecure: self.gateways && self.names.is_some(),
            gateway_open: self.gateways && self.names.is_some() && self.service == "evm",
            gateway_token_file: asks_token.then(|| layout.named(Path::new(Layout::TOKEN))),
            replica: self.settings.clone(),
            emulation: self.emulation.clone(),
            cut_links: None,
            ..default
        }
    }

    fn member_address(&self, index: usize) -> String {
        match &self.names {
            Some(names) => format!("{}:{}", names.members[index], self.base_port),
            None => self.address(index),
        }
    }

    fn learner_address(&self, index: usize) -> String {
        match &self.names {
            Some(names) => format!("{}:{}", names.learners[index], self.base_port),
            None => self.address(2 * self.members + index),
        }
    }

    fn http_address(&self, offset: usize) -> String {
        match &self.names {
            Some(_) => format!("0.0.0.0:{}", HostNames::HTTP_PORT),
            None => self.address(offset),
        }
    }

    fn gateway_address(&self, index: usize) -> String {
        match &self.names {
            Some(_) => format!("0.0.0.0:{}", HostNames::GATEWAY_PORT),
            None => self.address(2 * (self.members + self.learners) + index),
        }
    }

    fn address(&self, offset: usize) -> String {
        format!("{}:{}", self.host, usize::from(self.base_port) + offset)
    }

    fn committee(&self, members: Vec<Member>, groups: Option<Groups>) -> String {
        let file = CommitteeFile {
            name: self.name.clone(),
            network: None,
            epoch: Epoch(1),
            scheme: self.scheme.to_string(),
            redundancy: self.redundancy,
            settings: self.agreed(),
            groups,
            from_state: None,
            members,
        };
        committee_text(&file)
    }

    fn genesis_digest(&self) -> Option<String> {
        self.genesis.as_deref().map(|text| genesis_digest(&self.service, text))
    }

    /// What all members say alike.
    fn agreed(&self) -> AgreedSettings {
        AgreedSettings {
            service: self.service.clone(),
            genesis_digest: self.genesis_digest(),
            execution_version: self.execution_version,
            clients: self.clients.to_string(),
            ..self.settings.agreed()
        }
    }
}

/// A committee file as it is written: what it says, under a comment that says what it is.
///
/// # Panics
/// Never: a committee file is a table.
#[must_use]
pub fn committee_text(file: &CommitteeFile) -> String {
    let content = toml::to_string(file).expect("a plain struct is a table");
    format!(
        "# A Quorate committee. Every member and every client holds the same bytes: the hash of\n\
         # names, epoch, keys, weights and settings is the network's identity. Addresses may change\n\
         # without changing it.\n\
         #\n\
         # [settings] is what all members have alike; what is each one's own is in its config.toml.\n\
         # `quorate config reference` explains both.\n\
         #\n\
         # A member's `weight` (1 if absent) is what its vote counts. When weights differ, members of\n\
         # less than a third of the total may fail, certificates need more than two thirds, and each\n\
         # member leads in proportion. The total is at most {most}, and nobody may hold more than\n\
         # twice what all others hold together: that would be a quorum by itself.\n\
         {content}",
        most = Weights::TOTAL_MAX,
    )
}

fn and_learners(learners: usize) -> String {
    if learners == 0 { String::new() } else { format!(" and {learners} learners") }
}

/// Fresh randomness from the operating system.
///
/// # Panics
/// When the system has none: no key made without it would be secret.
pub fn system_random(bytes: &mut [u8]) {
    let provider = ring::default_provider();
    provider.secure_random.fill(bytes).expect("the operating system gives randomness");
}

pub(crate) fn claim(directory: &Path) -> Result<PathBuf, TestnetError> {
    make_folder(directory)?;
    let mut entries =
        std::fs::read_dir(directory).map_err(|source| failed("list", directory, source))?;
    if entries.next().is_some() {
        return Err(TestnetError::NotEmpty { path: directory.to_owned() });
    }
    std::path::absolute(directory).map_err(|source| failed("resolve", directory, source))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), TestnetError> {
    std::fs::create_dir_all(path).map_err(|source| failed("make the folder", path, source))
}

pub(crate) fn write_keys(folder: &Path, keys: KeyFile) -> Result<KeyFile, TestnetError> {
    make_folder(folder)?;
    keys.write(&folder.join("key.toml"))?;
    Ok(keys)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), TestnetError> {
    make_folder(path.parent().unwrap_or(Path::new(".")))?;
    std::fs::write(path, text).map_err(|source| failed("write", path, source))
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> TestnetError {
    TestnetError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
