//! The links of all sessions to the members of one epoch, and the checks of what comes back.

use super::start_thread;
use crate::NodeError;
use crate::metrics::Metrics;
use crate::pool::{MessageSink, Pool};
use crate::tls::Dialer;
use crate::transport::Limits;
use crate::transport::cuts::Cuts;
use crate::transport::detour::Detours;
use crate::transport::emulated::Ways;
use crate::transport::frames::IngressContext;
use crate::transport::hello::Hello;
use crate::transport::outbound::{Link, OnLater, Refusals};
use crate::transport::outbox::{Full, Outbox};
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use quorate_engine::{ClientConfig, Incoming, ReplyGate, SessionSpec, Verifier};
use quorate_types::{Committee, HandedOver, Lane, Peer, ReplicaId, Verified};
use quorate_wan::Topology;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Checked replies that wait for the sessions' thread.
const REPLIES_MAX: usize = 4_096;

/// Steps to a next epoch that wait for the sessions' thread. Beyond them one is dropped: whoever
/// shows it does so again at the next attempt to connect.
const STEPS_MAX: usize = 16;

/// A checked message for one session.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) session: usize,
    pub(super) from: ReplicaId,
    pub(super) message: Verified<Incoming>,
}

/// The end of this epoch as a member shows it, unchecked.
pub(super) type Shown = (ReplicaId, HandedOver);

/// What the links of all epochs have in common.
pub(super) struct Wiring {
    runtime: Handle,
    emulation: Option<Topology>,
    metrics: Arc<Metrics>,
}

/// The links of one epoch, and what they bring. They end when it is dropped, and what was not taken
/// goes with them.
pub(super) struct Links {
    /// Queues by session, then by member; a learner's comes last.
    pub(super) outboxes: Vec<Vec<Arc<Outbox>>>,
    pub(super) replies: Receiver<Heard>,
    pub(super) steps: Receiver<Shown>,
    /// By session, then by member.
    ups: Vec<Vec<Arc<AtomicBool>>>,
    refusals: Arc<Refusals>,
    _tasks: JoinSet<()>,
}

impl Wiring {
    pub(super) fn new(runtime: Handle, emulation: Option<Topology>) -> Self {
        Self { runtime, emulation, metrics: Arc::new(Metrics::new()) }
    }

    /// Begins to connect the sessions to the committee in force.
    pub(super) fn connect(&self, config: &ClientConfig) -> Result<Links, NodeError> {
        let refusals = Refusals::new(Arc::clone(config.committee()));
        self.connect_with(config, refusals)
    }

    /// As [`Wiring::connect`], in the place of the links of the epoch before.
    pub(super) fn reconnect(
        &self,
        config: &ClientConfig,
        former: &Links,
    ) -> Result<Links, NodeError> {
        let refusals = former.refusals.following(Arc::clone(config.committee()));
        self.connect_with(config, refusals)
    }

    fn connect_with(&self, config: &ClientConfig, refusals: Refusals) -> Result<Links, NodeError> {
        let ((heard, replies), (show, steps)) = (bounded(REPLIES_MAX), bounded(STEPS_MAX));
        let refusals = Arc::new(refusals);
        let on_later: OnLater = Arc::new(move |member, ended| {
            let _ = show.try_send((member, ended.step.clone()));
        });
        let epoch = Connecting {
            wiring: self,
            config,
            pool: self.start_pool(config)?,
            heard,
            refusals: Arc::clone(&refusals),
            on_later,
        };
        let sessions = config.sessions.iter().enumerate();
        let links: Result<Vec<Vec<Link>>, NodeError> =
            sessions.map(|(index, spec)| epoch.links(index, spec)).collect();
        let links = links?;
        let of_all = links.iter().map(|of_one| of_one.iter());
        let outboxes = of_all.clone().map(|of| of.map(|link| Arc::clone(&link.outbox)).collect());
        let size = config.committee().size();
        let ups = of_all.map(|of| of.take(size).map(|link| Arc::clone(&link.up)).collect());
        let (outboxes, ups) = (outboxes.collect(), ups.collect());
        let mut tasks = JoinSet::new();
        for link in links.into_iter().flatten() {
            tasks.spawn_on(link.run(), &self.runtime);
        }
        Ok(Links { outboxes, replies, steps, ups, refusals, _tasks: tasks })
    }

    fn start_pool(&self, config: &ClientConfig) -> Result<Pool, NodeError> {
        let verifier = Arc::new(Verifier::for_client(Arc::clone(config.committee())));
        let (pool, workers) =
            Pool::without_combining(&verifier, &self.metrics, config.check_threads);
        for worker in workers {
            start_thread("check-replies", worker)?;
        }
        Ok(pool)
    }

    /// The emulated way between a session and a member, where there is one: whoever joins an
    /// emulated network later has no place in it.
    fn ways(&self, spec: &SessionSpec, peer: ReplicaId) -> Option<Ways> {
        let wan = self.emulation.as_ref().filter(|wan| peer.index() < wan.members())?;
        Some(Ways::of_client(wan, spec.first, peer))
    }
}

impl Links {
    /// By session, then by member: whether the link is up.
    pub(super) fn ups(&self) -> Vec<Vec<Arc<AtomicBool>>> {
        self.ups.clone()
    }

    /// Reason that members give for not letting the client in, in this epoch and those after it.
    pub(super) fn turned_away(&self) -> watch::Receiver<Option<&'static str>> {
        self.refusals.reason()
    }
}

/// What the links of one epoch share.
struct Connecting<'a> {
    wiring: &'a Wiring,
    config: &'a ClientConfig,
    pool: Pool,
    heard: Sender<Heard>,
    refusals: Arc<Refusals>,
    on_later: OnLater,
}

impl Connecting<'_> {
    /// A session's links in member order, then one to the learner.
    fn links(&self, session: usize, spec: &SessionSpec) -> Result<Vec<Link>, NodeError> {
        let dialer = Dialer::new(&spec.identity)?;
        let committee: &Committee = self.config.committee();
        let limits = Limits::default();
        let gate = Mutex::new(ReplyGate::new(Arc::clone(self.config.committee())));
        let metrics = &self.wiring.metrics;
        let sink = Arc::new(SessionSink { session, gate, heard: self.heard.clone() });
        let ingress = IngressContext::new(self.pool.clone(), sink, Arc::clone(metrics), limits);
        let hello = Hello::to(committee, Lane::Client);
        let mut links = Vec::with_capacity(committee.size() + 1);
        let members = committee.members().map(|peer| {
            let key = committee.identity(peer).expect("a member has a key");
            let address = committee.address(peer).expect("a member has an address");
            (peer, *key, address, self.wiring.ways(spec, peer))
        });
        let beyond = u16::try_from(committee.size()).expect("members are few");
        let learner = self.config.learner.as_ref();
        let learner = learner
            .map(|learner| (ReplicaId(beyond), learner.identity, learner.address.as_str(), None));
        for (peer, key, address, ways) in members.chain(learner) {
            let drops = metrics.drops(Peer::Replica(peer), Lane::Client);
            links.push(Link {
                peer,
                address: address.to_owned(),
                tls: dialer.to(key)?,
                hello: Hello { voucher: spec.voucher, ..hello },
                outbox: Arc::new(Outbox::new(1_024, 32 << 20, Full::DropOldest, drops)),
                up: Arc::default(),
                replies: Some(ingress.clone()),
                metrics: Arc::clone(metrics),
                timeouts: (limits.handshake, limits.write),
                ways,
                on_connect: None,
                detours: Detours::default(),
                over: Arc::default(),
                cuts: Cuts::default(),
                refusals: Some(Arc::clone(&self.refusals)),
                on_later: Some(Arc::clone(&self.on_later)),
            });
        }
        Ok(links)
    }
}

#[derive(Debug)]
struct SessionSink {
    session: usize,
    gate: Mutex<ReplyGate>,
    heard: Sender<Heard>,
}

impl MessageSink for SessionSink {
    fn message(&self, from: Peer, _urgent: bool, message: Verified<Incoming>) -> bool {
        let Peer::Replica(from) = from else {
            return true;
        };
        if let Incoming::Reply(reply) = &*message {
            self.gate.lock().passed(from, reply);
        }
        self.heard.send(Heard { session: self.session, from, message }).is_ok()
    }

    fn has_room(&self, _urgent: bool) -> bool {
        self.heard.len() < REPLIES_MAX / 2
    }

    fn wants(&self, content: &[u8]) -> bool {
        self.gate.lock().wants(content)
    }
}
