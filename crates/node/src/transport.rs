//! Connections: who talks to whom, in which lane, and what happens when a queue is full.
//!
//! Members dial one another: what A sends to B travels in connections that A opened, one for each
//! of the three member lanes, so that a body never delays a vote, not even in the kernel. Clients
//! dial members, one connection each, with requests one way and replies the other.
//!
//! A learner dials members too, one bulk connection each: its questions one way, the answers the
//! other.
//!
//! ```text
//! A ──votes──────▶ B      client ──requests──▶ B
//! A ──consensus──▶ B             ◀──replies───
//! A ──bulk───────▶ B      learner ─questions──▶ B
//!                                 ◀──answers───
//! ```
//!
//! A connection opens with TLS ([`crate::tls`]), then the dialer's [`hello::Hello`] and the
//! listener's one-byte answer, then frames ([`frames`]). The identity proven by TLS is the only one
//! that a frame may claim; it says whether the other end is a member or a client, and so which
//! lanes it may open.
//!
//! # Bounds
//!
//! | what | bound | when it is full |
//! |---|---|---|
//! | votes, consensus to one member | 4,096 frames, 8, 32 MiB | the oldest goes: it is superseded |
//! | bulk to one member | 4,096 frames, 32 MiB | the newest goes: it is fetched once ordered |
//! | replies to one client | 1,024 frames, 8 MiB | the oldest goes: the client asks again |
//! | a learner's questions to one member | 64 frames, 1 MiB | the oldest goes: it asks again |
//! | answers to one learner | 4,096 frames, 32 MiB | the newest goes: the learner asks again |
//! | frames of one connection being checked | [`frames::budget`] | its reader waits |
//! | frames of all clients being checked | 32 MiB | the clients' readers wait |
//! | connections that have not proven a key | [`Limits::handshakes_max`] | the oldest gives way |
//! | connections of one peer in one lane | 1 | the older is cut: its owner restarted |
//! | probes of one member that are answered ([`contacts`]) | 10 a second | the others are not |
//! | clients | [`Limits::clients_max`] | the least recently used gives way |
//! | sessions and rate of one client | [`Limits::each_client`] | it is refused |
//! | time without a byte to a client | [`Limits::idle`] | it is cut |
//! | connections that one member has relayed by another | [`relay::RELAYED_MAX`] | refused |
//! | members that a link asks to relay ([`detour`]) | 2 at a time | then others, in turn |
//!
//! Where two members do not reach each other, what one sends to the other goes over a third
//! ([`relay`], ADR 30).
//!
//! Frames can be held back as if they had far to go ([`emulated`]), and links cut ([`cuts`]): for
//! laboratories.
//!
//! A small frame that nothing is ahead of is written by whoever sends it ([`outbox`]).
//!
//! Queued frames survive a reconnection, and a batch whose write failed is sent again, so a peer
//! may see a frame twice.

pub mod contacts;
pub mod cuts;
pub mod detour;
pub mod emulated;
pub mod endpoint;
pub mod frames;
pub mod hello;
pub mod inbound;
mod opening;
pub mod outbound;
pub mod outbox;
pub mod relay;
pub(crate) mod socket;

use crate::log::Outgoing;
use crate::metrics::Metrics;
use crate::quotas::{ClientLimits, RateLimit};
use contacts::{Contacts, LastContact};
use detour::Over;
use outbox::{Full, Outbox};
use parking_lot::RwLock;
use quorate_types::{ClientId, Lane, Peer, Recipients, ReplicaId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The lanes between members, in the order of a member's queues.
pub const MEMBER_LANES: [Lane; 3] = [Lane::Votes, Lane::Consensus, Lane::Bulk];

/// With more members than this, what goes to all of them is written by the network's threads, side
/// by side, and not by whoever sends it.
const AT_ONCE_MEMBERS_MAX: usize = 7;

/// The one lane between a member and a learner.
pub const LEARNER_LANE: Lane = Lane::Bulk;

/// Most connections of learners, of whom so many are listed: as many newcomers as there are members
/// have a place besides.
pub(crate) const fn learners_max(listed: usize, members: usize) -> usize {
    listed + members
}

const MIB: usize = 1024 * 1024;

/// Sessions that one client may have however few clients are let in: one that comes back is there
/// twice for a moment.
const SESSIONS_LEAST: usize = 8;

/// Time limits and counts of connections. The defaults are for real networks; tests have less time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time from the accepted connection to the end of the hello.
    pub handshake: Duration,
    /// Time from a frame's first byte to its last, not counting the time that we let it wait.
    pub frame: Duration,
    /// Longest time that the other end may take no byte of a write.
    pub write: Duration,
    /// Longest time without a byte to a client.
    pub idle: Duration,
    /// Connections that have not proven a key yet.
    pub handshakes_max: usize,
    /// Clients connected at once.
    pub clients_max: usize,
    /// Requests and queries a second of one client.
    pub client_requests: RateLimit,
    /// Their bytes a second.
    pub client_bytes: RateLimit,
}

impl Limits {
    /// Limits of one client: of places a quarter, or eight, for whoever has several sessions.
    #[must_use]
    pub fn each_client(&self) -> ClientLimits {
        ClientLimits {
            requests: self.client_requests,
            bytes: self.client_bytes,
            sessions_max: (self.clients_max / 4).max(SESSIONS_LEAST),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            frame: Duration::from_secs(20),
            write: Duration::from_secs(20),
            idle: Duration::from_secs(600),
            handshakes_max: 128,
            clients_max: 1_024,
            client_requests: RateLimit::default(),
            client_bytes: RateLimit::default(),
        }
    }
}

/// Queue and state of a lane to a member: whether it is up, and over whom.
type LaneTo = (Arc<Outbox>, Arc<AtomicBool>, Arc<Over>);

/// One member's queues, one for each lane.
type Outboxes = Vec<Arc<Outbox>>;

/// Queues to everybody that this validator can send to.
#[derive(Debug)]
pub struct Network {
    /// The lanes to each member: a learner has one for everything.
    lanes: &'static [Lane],
    /// Queues in member order; `None` for this validator itself.
    members: Vec<Option<Outboxes>>,
    /// Connection state of each lane, in the same order.
    connected: Vec<Vec<Arc<AtomicBool>>>,
    /// The member over which each lane goes, in the same order.
    over: Vec<Vec<Arc<Over>>>,
    clients: RwLock<BTreeMap<ClientId, Arc<Outbox>>>,
    contacts: Arc<Contacts>,
    metrics: Arc<Metrics>,
}

impl Network {
    /// Queues to `members` members, without connections; `me` is this validator, or a learner with
    /// an index beyond them.
    #[must_use]
    pub fn new(me: ReplicaId, members: usize, metrics: Arc<Metrics>) -> Self {
        let lanes = if me.index() < members { &MEMBER_LANES[..] } else { &[LEARNER_LANE] };
        let outboxes = |index| {
            let peer = ReplicaId(u16::try_from(index).expect("a committee's indices are 16 bits"));
            let outbox = |lane: &Lane| match lanes {
                [_] => learner_outbox(peer, &metrics),
                _ => member_outbox(peer, *lane, &metrics),
            };
            (peer != me).then(|| lanes.iter().map(outbox).collect())
        };
        Self {
            lanes,
            members: (0..members).map(outboxes).collect(),
            connected: (0..members)
                .map(|_| lanes.iter().map(|_| Arc::default()).collect())
                .collect(),
            over: (0..members).map(|_| lanes.iter().map(|_| Arc::default()).collect()).collect(),
            clients: RwLock::default(),
            contacts: Arc::new(Contacts::new(members)),
            metrics,
        }
    }

    /// Queues a frame for everybody that it goes to, or writes it at once where it goes to few and
    /// nothing is ahead of it. Never blocks; a full queue drops.
    pub fn send(&self, outgoing: Outgoing) {
        let Outgoing { to, lane, frame } = outgoing;
        match to {
            Recipients::All => {
                let push = if self.members.len() > AT_ONCE_MEMBERS_MAX {
                    Outbox::push
                } else {
                    Outbox::push_at_once
                };
                for outbox in
                    self.members.iter().flatten().filter_map(|own| self.of_lane(own, lane))
                {
                    push(outbox, frame.clone());
                }
            }
            Recipients::One(peer) => {
                let member = self.members.get(peer.index()).and_then(Option::as_ref);
                if let Some(outbox) = member.and_then(|own| self.of_lane(own, lane)) {
                    outbox.push_at_once(frame);
                }
            }
            Recipients::Client(client) => {
                if let Some(outbox) = self.clients.read().get(&client) {
                    outbox.push(frame);
                }
            }
        }
    }

    /// A member's queue for this lane; a learner has one for all.
    fn of_lane<'a>(&self, member: &'a Outboxes, lane: Lane) -> Option<&'a Outbox> {
        let of_lane = self.lanes.iter().position(|candidate| *candidate == lane);
        let index = of_lane.or((self.lanes.len() == 1).then_some(0))?;
        Some(&member[index])
    }

    /// Number of members with all their lanes connected.
    #[must_use]
    pub fn members_connected(&self) -> usize {
        self.connected.iter().filter(|lanes| are_up(lanes)).count()
    }

    /// Returns `true` if all lanes to this member are connected, and none over another one.
    #[must_use]
    pub fn reaches_directly(&self, member: ReplicaId) -> bool {
        let of = |index: usize| Some((self.connected.get(index)?, self.over.get(index)?));
        of(member.index()).is_some_and(|(lanes, over)| {
            are_up(lanes) && !over.iter().any(|relay| relay.is_somebody())
        })
    }

    /// Other members, each with `true` if all its lanes are connected.
    #[must_use]
    pub fn peers(&self) -> Vec<(ReplicaId, bool)> {
        let id =
            |index| ReplicaId(u16::try_from(index).expect("a committee's indices are 16 bits"));
        let members = self.members.iter().zip(&self.connected).enumerate();
        let others = members.filter(|(_, (outboxes, _))| outboxes.is_some());
        others.map(|(index, (_, lanes))| (id(index), are_up(lanes))).collect()
    }

    /// Contact with a member as of now; `None` for one that there is not.
    #[must_use]
    pub fn contact(&self, member: ReplicaId) -> Option<LastContact> {
        self.contacts.of(member)
    }

    /// Other members, with the time since each was heard; `None` for one that never was.
    pub(crate) fn silences(&self) -> Vec<(ReplicaId, Option<Duration>)> {
        let silence = |peer| {
            let contact = self.contacts.of(peer)?;
            contact.heard.then_some(contact.silence)
        };
        self.peers().into_iter().map(|(peer, _)| (peer, silence(peer))).collect()
    }

    /// Sends a probe to every member whose lane of votes is connected. A learner sends none.
    pub(crate) fn probe(&self) {
        let votes = self.lanes.iter().position(|lane| *lane == Lane::Votes);
        let members = self.members.iter().zip(&self.connected);
        for (outboxes, connected) in members.filter_map(|(own, up)| Some((own.as_ref()?, up))) {
            if let Some(votes) = votes.filter(|votes| connected[*votes].load(Ordering::Relaxed)) {
                outboxes[votes].push(self.contacts.probe());
            }
        }
    }

    /// Takes note of a frame of a member, and answers it if it is a probe; `true` if it was a probe
    /// or the answer to one.
    fn hear(&self, from: ReplicaId, content: &[u8]) -> bool {
        let Some(answer) = self.contacts.hear(from, content) else { return false };
        if let (Some(echo), Some(Some(member))) = (answer, self.members.get(from.index())) {
            self.of_lane(member, Lane::Votes).inspect(|votes| votes.push(echo));
        }
        true
    }

    /// Frames and bytes that wait to be sent, by lane, over all members.
    #[must_use]
    pub fn queued(&self) -> Vec<(Lane, usize, usize)> {
        let waiting = |index: usize| {
            let loads = self.members.iter().flatten().map(|member| member[index].load());
            loads.fold((0, 0), |(frames, bytes), load| (frames + load.0, bytes + load.1))
        };
        let lanes = self.lanes.iter().enumerate();
        lanes.map(|(index, lane)| (*lane, waiting(index).0, waiting(index).1)).collect()
    }

    /// Members that are connected in all lanes and have fewer frames than these waiting in each.
    #[cfg(feature = "liar")]
    pub(crate) fn open_to(&self, frames: usize) -> Vec<ReplicaId> {
        let has_room = |member: &ReplicaId| {
            let outboxes = self.members[member.index()].iter().flatten();
            outboxes.map(|outbox| outbox.len()).all(|waiting| waiting < frames)
        };
        let up = self.peers().into_iter().filter(|(_, is_up)| *is_up);
        up.map(|(member, _)| member).filter(has_room).collect()
    }

    /// Number of connected clients.
    #[must_use]
    pub fn clients_connected(&self) -> usize {
        self.clients.read().len()
    }

    fn lane_to(&self, peer: ReplicaId, index: usize) -> Option<LaneTo> {
        let outbox = Arc::clone(&self.members.get(peer.index())?.as_ref()?[index]);
        let up = Arc::clone(&self.connected[peer.index()][index]);
        Some((outbox, up, Arc::clone(&self.over[peer.index()][index])))
    }

    /// A queue for a client that has just connected, in the place of any other.
    fn admit_client(&self, client: ClientId) -> Arc<Outbox> {
        let drops = self.metrics.drops(Peer::Client(client), Lane::Client);
        let outbox = Arc::new(Outbox::new(1_024, 8 * MIB, Full::DropOldest, drops));
        self.clients.write().insert(client, Arc::clone(&outbox));
        outbox
    }

    /// A queue for a learner that has just connected, in the place of any other: there are few.
    fn admit_learner(&self, learner: ClientId) -> Arc<Outbox> {
        let drops = self.metrics.drops(Peer::Learner(learner), LEARNER_LANE);
        let outbox = Arc::new(Outbox::new(4_096, 32 * MIB, Full::DropNewest, drops));
        self.clients.write().insert(learner, Arc::clone(&outbox));
        outbox
    }

    fn forget_client(&self, client: ClientId, outbox: &Arc<Outbox>) {
        let mut clients = self.clients.write();
        if clients.get(&client).is_some_and(|current| Arc::ptr_eq(current, outbox)) {
            clients.remove(&client);
        }
    }
}

fn are_up(lanes: &[Arc<AtomicBool>]) -> bool {
    lanes.iter().all(|up| up.load(Ordering::Relaxed))
}

/// Queue of queries, of which a late one is worth nothing.
fn learner_outbox(peer: ReplicaId, metrics: &Metrics) -> Arc<Outbox> {
    let drops = metrics.drops(Peer::Replica(peer), LEARNER_LANE);
    Arc::new(Outbox::new(64, MIB, Full::DropOldest, drops))
}

fn member_outbox(peer: ReplicaId, lane: Lane, metrics: &Metrics) -> Arc<Outbox> {
    let (bytes_max, full) = match lane {
        Lane::Votes => (8 * MIB, Full::DropOldest),
        Lane::Consensus | Lane::Client => (32 * MIB, Full::DropOldest),
        Lane::Bulk => (32 * MIB, Full::DropNewest),
    };
    let drops = metrics.drops(Peer::Replica(peer), lane);
    Arc::new(Outbox::new(4_096, bytes_max, full, drops))
}

#[cfg(test)]
mod tests;
