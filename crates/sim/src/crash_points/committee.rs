//! A small committee in virtual time: links that always take the same, nothing lost but by the
//! script.

use super::chronicle::SharedChronicle;
use super::disks::{Disks, LogKind};
use super::host::{CrashHost, Turn, Work};
use super::offers::content_of;
use super::shared::Shared;
use bytes::Bytes;
use quorate_storage::{Fault, StorageError};
use quorate_types::machine::Recovery;
use quorate_types::{Peer, Recipients, ReplicaId, Time};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const LINK: Duration = Duration::from_millis(1);

/// Events from outside a committee: clients' frames and cuts of links.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// Frames of clients, and whom they reach.
    pub(super) requests: Vec<(Time, ReplicaId, Peer, Bytes)>,
    /// Members that neither hear nor are heard for a while, in microseconds.
    pub(super) cut_off: Vec<(ReplicaId, Range<u64>)>,
}

enum SimEvent {
    Frame(ReplicaId, Peer, Bytes),
    Work(ReplicaId, Work),
    Timer(ReplicaId),
    Start(ReplicaId, Box<Recovery>),
}

/// The members and what is under way between them.
pub(super) struct Committee {
    script: Script,
    pub(super) now: Time,
    queue: BTreeMap<(Time, u64), SimEvent>,
    scheduled: u64,
    hosts: Vec<Option<CrashHost>>,
    armed: Vec<Option<Time>>,
}

impl Committee {
    /// Members that all start at this time, from these disks. A member that has none is not there.
    ///
    /// # Errors
    /// When a member's disks do not open.
    pub(super) fn start(
        shared: &Arc<Shared>,
        disks: &[Option<Disks>],
        plan: (ReplicaId, &[(LogKind, Fault)]),
        chronicle: &SharedChronicle,
        now: Time,
        script: Script,
    ) -> Result<Self, StorageError> {
        let mut committee = Self {
            script,
            now,
            queue: BTreeMap::new(),
            scheduled: 0,
            hosts: disks.iter().map(|_| None).collect(),
            armed: vec![None; disks.len()],
        };
        for (at, to, from, content) in committee.script.requests.clone() {
            committee.schedule(at, SimEvent::Frame(to, from, content));
        }
        for (id, disks) in (0..).map(ReplicaId).zip(disks) {
            let Some(disks) = disks else { continue };
            let plan = if id == plan.0 { plan.1 } else { &[] };
            let (host, recovery) = CrashHost::open(shared, id, disks, plan, chronicle)?;
            committee.hosts[id.index()] = Some(host);
            committee.schedule(now, SimEvent::Start(id, Box::new(recovery)));
        }
        Ok(committee)
    }

    pub(super) fn host(&mut self, id: ReplicaId) -> &mut CrashHost {
        self.hosts[id.index()].as_mut().expect("a member that takes part")
    }

    /// A frame arrives right now.
    pub(super) fn deliver(&mut self, to: ReplicaId, from: Peer, content: Bytes) {
        self.turn(to, |host, now| host.deliver(now, from, content));
    }

    /// Lets everything happen that is due until then, as long as `go_on` says so.
    pub(super) fn run(&mut self, until: Time, go_on: &mut dyn FnMut(&mut Self) -> bool) {
        while let Some(entry) = self.queue.first_entry() {
            let (at, _) = *entry.key();
            if at > until {
                break;
            }
            self.now = at;
            match entry.remove() {
                SimEvent::Frame(to, from, content) => {
                    if !self.is_cut_off(to) {
                        self.deliver(to, from, content);
                    }
                }
                SimEvent::Start(id, found) => self.turn(id, |host, now| host.start(now, *found)),
                SimEvent::Work(id, work) => self.turn(id, |host, now| host.finish(now, work)),
                SimEvent::Timer(id) => {
                    self.armed[id.index()] = None;
                    self.turn(id, |host, now| match host.next_timeout() {
                        Some(due) if due <= now => host.wake(now),
                        _ => Turn::default(),
                    });
                }
            }
            if !go_on(self) {
                return;
            }
        }
        self.now = until;
    }

    fn turn(&mut self, id: ReplicaId, act: impl FnOnce(&mut CrashHost, Time) -> Turn) {
        let now = self.now;
        let Some(host) = &mut self.hosts[id.index()] else { return };
        let turn = act(host, now);
        for (after, work) in turn.later {
            self.schedule(now + after, SimEvent::Work(id, work));
        }
        if !self.is_cut_off(id) {
            for (to, message) in turn.released {
                self.send(id, to, &content_of(&message));
            }
        }
        self.arm(id);
    }

    fn send(&mut self, from: ReplicaId, to: Recipients, content: &Bytes) {
        for member in (0..self.hosts.len()).map(|i| ReplicaId(u16::try_from(i).expect("few"))) {
            let meant = match to {
                Recipients::All => member != from,
                Recipients::One(one) => member == one,
                Recipients::Client(_) => false,
            };
            if meant && self.hosts[member.index()].is_some() {
                let frame = SimEvent::Frame(member, Peer::Replica(from), content.clone());
                self.schedule(self.now + LINK, frame);
            }
        }
    }

    fn arm(&mut self, id: ReplicaId) {
        let due = self.hosts[id.index()].as_ref().and_then(CrashHost::next_timeout);
        let Some(due) = due.map(|due| due.max(Time(self.now.0 + 1))) else { return };
        if self.armed[id.index()].is_none_or(|armed| due < armed) {
            self.armed[id.index()] = Some(due);
            self.schedule(due, SimEvent::Timer(id));
        }
    }

    fn is_cut_off(&self, id: ReplicaId) -> bool {
        self.script.cut_off.iter().any(|(who, when)| *who == id && when.contains(&self.now.0))
    }

    fn schedule(&mut self, at: Time, what: SimEvent) {
        self.queue.insert((at, self.scheduled), what);
        self.scheduled += 1;
    }
}
