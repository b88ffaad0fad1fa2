//! Who takes part: validators with their stations, clients with their sessions.

use super::effects::Out;
use super::frames::Frame;
use super::load::{Client, Company};
use super::stations::{Kind, Station};
use super::{Nanos, Scene, Work};
use crate::gate::Gate;
use crate::genesis;
use bytes::Bytes;
use quorate_crypto::counts;
use quorate_engine::{Replica, ReplicaConfig, Verifier};
use quorate_types::service::Preparation;
use quorate_types::{Committee, Recipients, ReplicaId};
use std::rc::Rc;
use std::sync::Arc;

/// The wall clock at the beginning of a scene, in milliseconds since the Unix epoch.
const ORIGIN_MS: u64 = 1_900_000_000_000;

/// A frame on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) to: Recipients,
    pub(crate) frame: Rc<Frame>,
}

/// A validator.
pub(crate) struct Validator {
    pub(crate) machine: Replica,
    pub(crate) verifier: Arc<Verifier>,
    stations: Vec<Station>,
    pub(crate) gate: Gate<Out>,
    /// Bytes of bodies that wait for the log.
    pub(crate) log_bytes: usize,
    /// Bytes of the group being written.
    pub(crate) group: (usize, usize),
    /// When its timer is set to ring, and whether it has rung and waits for the machine.
    pub(crate) armed: Option<Nanos>,
    pub(crate) tick_waits: bool,
    pub(crate) alive: bool,
    /// Lives to the end of the scene.
    pub(crate) lives: bool,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_frames: u64,
    /// The last two snapshots.
    pub(crate) snapshots: Vec<quorate_types::Height>,
}

impl Validator {
    pub(crate) fn station(&mut self, kind: Kind) -> &mut Station {
        &mut self.stations[kind as usize]
    }

    pub(crate) fn used(&self, kind: Kind) -> Nanos {
        self.stations[kind as usize].used
    }

    pub(crate) fn wakes(&self, kind: Kind) -> u64 {
        self.stations[kind as usize].wakes
    }

    /// It is gone; its client is not.
    pub(crate) fn crash(&mut self) {
        self.alive = false;
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Client) {
            self.station(kind).clear();
        }
    }
}

/// Recovers no sender, but counts one for each operation: its price is charged where the real ledger's
/// work would be done.
#[derive(Debug)]
struct Senders;

impl Preparation for Senders {
    fn prepare(&self, _: &Bytes) {
        counts::add_recovery();
    }
}

/// Everybody.
pub(crate) struct Cast {
    pub(crate) validators: Vec<Validator>,
    pub(crate) clients: Vec<Client>,
    /// The leader of the first view.
    pub(crate) leader: ReplicaId,
}

impl Cast {
    pub(crate) fn new(scene: &Scene) -> Self {
        let members = usize::from(scene.validators);
        let (scheme, settings) = (scene.scheme, &scene.settings);
        let weights = scene.weights().expect("checked before");
        let (keys, committee) = genesis::members(scene.seed, scheme, settings.key_cache, &weights);
        let committee = Arc::new(committee);
        let verifier = || {
            let committee = Arc::<Committee>::clone(&committee);
            let verifier = Verifier::new(committee, settings.protocol, settings.proposal_key);
            let recovers = scene.load.work == Work::Evm;
            let senders = recovers.then(|| Arc::new(Senders) as Arc<dyn Preparation>);
            Arc::new(verifier.with_preparation(senders))
        };
        let validators = (0..).zip(&keys).map(|(id, keys)| {
            let (id, verifier) = (ReplicaId(id), verifier());
            let machine = Replica::new(ReplicaConfig {
                id,
                identity: Arc::new(keys.identity.clone()),
                voting: Arc::new(keys.voting.clone()),
                verifier: Arc::clone(&verifier),
                settings: settings.clone(),
                wall_origin_ms: ORIGIN_MS,
                signs: true,
            });
            Validator {
                machine,
                verifier,
                stations: stations(),
                gate: Gate::default(),
                log_bytes: 0,
                group: (0, 0),
                armed: None,
                tick_waits: false,
                alive: true,
                lives: scene.crashed.iter().all(|(crashed, _)| *crashed != id),
                sent_bytes: 0,
                sent_frames: 0,
                snapshots: Vec::new(),
            }
        });
        let mut validators: Vec<Validator> = validators.collect();
        let leader = validators[0].machine.status().leader;
        validators[leader.index()].lives &= scene.leader_crashes.is_none();
        let company = Company {
            verifier: verifier(),
            leader,
            lives: validators.iter().map(|validator| validator.lives).collect(),
        };
        let clients = (0..members).map(|place| Client::new(scene, place, &company));
        Self { clients: clients.collect(), validators, leader }
    }
}

/// One of each kind, by the kind's number.
fn stations() -> Vec<Station> {
    let mut kinds = Kind::ALL;
    kinds.sort_unstable();
    kinds.into_iter().map(Station::new).collect()
}
