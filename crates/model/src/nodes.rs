//! Nodes of a scene: validators with their stations, clients with their sessions.

use crate::clients::{Client, CommitteeView};
use crate::frames::Frame;
use crate::jobs::Job;
use crate::queue::StationQueue;
use crate::scene::Scene;
use crate::station::Station;
use crate::time::Nanos;
use crate::workload::Work;
use bytes::Bytes;
use quorate_crypto::counts;
use quorate_deterministic::genesis::{self, WALL_ORIGIN_MS};
use quorate_engine::host::{Barrier, Gated, GroupCommit, LOG_BACKLOG_BYTES_MAX, Pacer, barrier};
use quorate_engine::{Replica, ReplicaConfig, Verifier};
use quorate_types::machine::{Entry, SnapshotsOnDisk};
use quorate_types::service::Preparation;
use quorate_types::{Committee, Height, ReplicaId};
use std::rc::Rc;
use std::sync::Arc;

/// A validator: its machine, its threads, its log.
pub(crate) struct Validator {
    pub(crate) machine: Replica,
    pub(crate) verifier: Arc<Verifier>,
    stations: Vec<StationQueue<Job>>,
    /// Both halves of the barrier: what may leave at once, and what waits for the log.
    pub(crate) barrier: Barrier,
    pub(crate) log: GroupCommit<Entry, Gated<Rc<Frame>>>,
    /// Bytes of bodies that wait for the log.
    pub(crate) log_bytes: usize,
    /// Bytes of the group being written: of bodies, and of everything.
    pub(crate) group: (usize, usize),
    /// Time for which its machine's thread was ready to run and did not since the beginning, a
    /// core's waking included as in a kernel's account, and what that makes of its pace.
    pub(crate) ready: Nanos,
    pub(crate) pacer: Pacer,
    /// Time for which its timer is armed.
    pub(crate) armed: Option<Nanos>,
    /// Its timer was due, and waits for the machine.
    pub(crate) timeout_queued: bool,
    pub(crate) alive: bool,
    /// Does not crash before the end of the scene.
    pub(crate) lives: bool,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_frames: u64,
    /// Heights of the last two snapshots.
    snapshots: Vec<Height>,
}

impl Validator {
    pub(crate) fn station(&mut self, station: Station) -> &mut StationQueue<Job> {
        &mut self.stations[station as usize]
    }

    /// Core time that a station asked for since the beginning.
    pub(crate) fn used(&self, station: Station) -> Nanos {
        self.stations[station as usize].used
    }

    /// Times that a station's threads were woken since the beginning.
    pub(crate) fn wakes(&self, station: Station) -> u64 {
        self.stations[station as usize].wakes
    }

    /// Tells whether the machine takes bulk events: not while the log is far behind.
    pub(crate) fn takes_bulk(&self) -> bool {
        self.log_bytes <= LOG_BACKLOG_BYTES_MAX
    }

    /// Keeps a snapshot in the place of the last but one; returns those that are kept, which
    /// cost nothing here.
    pub(crate) fn keep_snapshot(&mut self, height: Height) -> SnapshotsOnDisk {
        self.snapshots.push(height);
        let first = self.snapshots.len().saturating_sub(2);
        self.snapshots.drain(..first);
        SnapshotsOnDisk { heights: self.snapshots.clone(), newest_bytes: 0 }
    }

    /// Ends it for good; its client goes on.
    pub(crate) fn crash(&mut self) {
        self.alive = false;
        for station in Station::ALL.into_iter().filter(|one| *one != Station::Client) {
            self.station(station).clear();
        }
    }
}

/// Preparation of transactions that recovers no sender, but counts one for each operation: its
/// price is charged where the real ledger's work would be done.
#[derive(Debug)]
struct CountedRecoveries;

impl Preparation for CountedRecoveries {
    fn prepare(&self, _: &Bytes) {
        counts::add_recovery();
    }
}

/// All nodes of a scene.
pub(crate) struct Nodes {
    pub(crate) validators: Vec<Validator>,
    pub(crate) clients: Vec<Client>,
    /// Leader of the first view.
    pub(crate) leader: ReplicaId,
}

impl Nodes {
    pub(crate) fn new(scene: &Scene) -> Self {
        let members = usize::from(scene.validators);
        let (scheme, settings) = (scene.scheme, &scene.settings);
        let weights = scene.weights().expect("checked before");
        let (keys, committee) =
            genesis::members(scene.seed, scheme, settings.comparison.key_cache, &weights);
        let committee = Arc::new(committee);
        let verifier = || {
            let committee = Arc::<Committee>::clone(&committee);
            let verifier = Verifier::new(committee, settings);
            let recovers = scene.load.work == Work::Evm;
            let senders = recovers.then(|| Arc::new(CountedRecoveries) as Arc<dyn Preparation>);
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
                wall_origin_ms: WALL_ORIGIN_MS,
                signs: true,
                // Nobody starts again in it.
                asks_witnesses: false,
            });
            let (barrier, log) = barrier();
            Validator {
                machine,
                verifier,
                stations: queues(),
                barrier,
                log,
                log_bytes: 0,
                group: (0, 0),
                ready: 0,
                pacer: Pacer::default(),
                armed: None,
                timeout_queued: false,
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
        let committee = CommitteeView {
            verifier: verifier(),
            leader,
            lives: validators.iter().map(|validator| validator.lives).collect(),
        };
        let clients = (0..members).map(|place| Client::new(scene, place, &committee));
        Self { clients: clients.collect(), validators, leader }
    }
}

impl Nodes {
    /// Number of members that make a quorum.
    pub(crate) fn quorum(&self) -> usize {
        let committee = self.validators[0].verifier.committee();
        usize::try_from(committee.quorum()).expect("members of one vote each")
    }
}

/// A queue for each station, by the station's number.
fn queues() -> Vec<StationQueue<Job>> {
    let mut stations = Station::ALL;
    stations.sort_unstable();
    stations.into_iter().map(StationQueue::new).collect()
}
