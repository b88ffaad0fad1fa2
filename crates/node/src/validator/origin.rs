//! What a validator starts from: its configuration, committee and keys.

use super::stores::Stores;
use crate::clients::ClientDoor;
use crate::clock::{Clock, WallClock};
use crate::config::HostCheck;
use crate::health::Health;
use crate::http::{Shown, StatusDoor, Summary};
use crate::keys::{self, Keyring};
use crate::metrics::{Identity, Metrics};
#[cfg(feature = "liar")]
use crate::threads::Threads;
use crate::transport::Network;
use crate::{ClientPolicy, Epochs, NodeConfig, NodeError};
use arc_swap::ArcSwap;
use quorate_crypto::KeyFile;
use quorate_engine::{ReplicaConfig, Status, Verifier};
use quorate_storage::{Owner, Role};
use quorate_types::service::Admission;
use quorate_types::{ClientId, Committee, ReplicaId, Service, Versions, put_in_force};
use quorate_wan::Topology;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Configuration, committee and keys, as the files state them.
pub(super) struct Origin {
    /// The configuration as the committee file in force has it.
    pub(super) config: NodeConfig,
    pub(super) epochs: Arc<Epochs>,
    pub(super) id: ReplicaId,
    pub(super) keys: KeyFile,
    pub(super) committee: Arc<Committee>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) wall: WallClock,
    pub(super) emulation: Option<Topology>,
    pub(super) cut_links: Option<PathBuf>,
    pub(super) learners: BTreeSet<ClientId>,
    pub(super) clients: Arc<ClientDoor>,
    /// Versions of the service that this program has.
    pub(super) versions: Versions,
    pub(super) status_door: StatusDoor,
    #[cfg(feature = "liar")]
    pub(super) voice: Option<crate::liar::Voice>,
}

/// The service's judgement of what clients send, where members ask it ahead of the order.
fn admission(
    config: &NodeConfig,
    service: &dyn Service,
) -> Result<Option<Arc<dyn Admission>>, NodeError> {
    if config.clients != ClientPolicy::Service {
        return Ok(None);
    }
    let none = || NodeError::NoAdmission(service.name().to_owned());
    service.admission().map(Some).ok_or_else(none)
}

impl Origin {
    pub(super) fn load(
        config: &NodeConfig,
        (keyring, status_door): (&Keyring, &StatusDoor),
        service: &mut dyn Service,
    ) -> Result<Self, NodeError> {
        let wall = WallClock::read(Clock::start());
        let epochs = Arc::new(Epochs::open(config)?);
        let config = epochs.configure(config, &keyring.keys().identity.public())?;
        let committee = Arc::clone(epochs.committee());
        let keys = keyring.in_force(&config, &committee, epochs.file())?;
        let id = keys::place_of(&config, &committee, epochs.file(), &keys.public())?;
        if service.name() != config.service {
            return Err(NodeError::OtherService {
                configured: config.service.clone(),
                provided: service.name().to_owned(),
            });
        }
        put_in_force(service, config.execution_version)?;
        let versions = service.versions();
        let present = epochs.file().settings.clone();
        let verifier = Verifier::starting(Arc::clone(&committee), &config.replica, epochs.start())
            .with_next_file_check(Arc::new(HostCheck { present, versions }))
            .with_preparation(service.preparation())
            .with_admission(admission(&config, &*service)?);
        let clients = Arc::new(ClientDoor::of(&config, &committee)?);
        let emulation = config.topology(committee.size())?;
        let verifier = Arc::new(verifier);
        let mut learners = config.learner_ids();
        learners.extend(epochs.former_members());
        Ok(Self {
            epochs,
            id,
            keys,
            committee,
            verifier,
            wall,
            emulation,
            cut_links: config.cut_links.clone(),
            learners,
            clients,
            status_door: status_door.clone(),
            config,
            versions,
            #[cfg(feature = "liar")]
            voice: None,
        })
    }

    /// A liar signs whatever it is told to, and asks nobody.
    fn lies(&self) -> bool {
        #[cfg(feature = "liar")]
        return self.voice.is_some();
        #[cfg(not(feature = "liar"))]
        false
    }

    #[cfg(feature = "liar")]
    pub(super) fn start_voice(
        &self,
        threads: &Threads,
        network: &Arc<Network>,
    ) -> Result<Option<crate::liar::Voice>, NodeError> {
        self.voice.as_ref().map(|voice| voice.start(threads, network)).transpose()
    }

    /// Owner of everything in the data folder.
    pub(super) fn owner(&self) -> Owner {
        let config = &self.config;
        Owner {
            formerly: self.epochs.former_parts(&self.keys.identity.public()),
            network: self.committee.network(),
            member: self.keys.identity.public(),
            role: if config.learner { Role::Learner } else { Role::Validator },
            protocol: config.replica.protocol.to_string(),
        }
    }

    pub(super) fn replica(&self, signs: bool) -> ReplicaConfig {
        ReplicaConfig {
            id: self.id,
            identity: Arc::new(self.keys.identity.clone()),
            voting: Arc::new(self.keys.voting.clone()),
            verifier: Arc::clone(&self.verifier),
            settings: self.config.replica.clone(),
            wall_origin_ms: self.wall.origin_ms(),
            signs,
            asks_witnesses: !self.lies(),
        }
    }

    pub(super) fn shown(&self, stores: &Stores) -> Shown {
        let config = &self.config;
        let metrics = Arc::new(Metrics::new());
        let network = Network::new(self.id, self.committee.size(), Arc::clone(&metrics));
        let status = Status { id: self.id, signs: stores.signs, ..Status::default() };
        let network_id = self.committee.network().to_string();
        metrics.describe(&Identity {
            member: self.id,
            version: env!("CARGO_PKG_VERSION"),
            network: network_id.clone(),
            service: config.service.clone(),
            durability: config.durability.to_string(),
            weight: self.committee.weight(self.id),
            members: self.committee.size(),
            weight_total: self.committee.weights().total(),
            quorum: self.committee.quorum(),
        });
        Shown {
            status: Arc::new(ArcSwap::from_pointee(status)),
            metrics,
            committee: Arc::clone(&self.committee),
            network: Arc::new(network),
            weight: self.committee.weight(self.id),
            summary: Summary {
                version: env!("CARGO_PKG_VERSION"),
                network: network_id,
                epoch: self.epochs.epoch().0,
                members: self.committee.size(),
                weight_total: self.committee.weights().total(),
                quorum: self.committee.quorum(),
                service: config.service.clone(),
                execution_version: config.execution_version,
                execution_versions: self.versions,
                durability: config.durability.to_string(),
                replica: config.replica.clone(),
                signs: stores.signs,
                learner: config.learner,
                storage: stores.findings.clone(),
            },
            since: Instant::now(),
            data_dir: config.data_dir.clone(),
            room: stores.room.clone(),
            queues: None,
            must_not_stop: Arc::default(),
            healthy: Arc::default(),
            health: Arc::new(ArcSwap::from_pointee(Health::starting(self.committee.weights()))),
            feed: Arc::default(),
        }
    }
}
