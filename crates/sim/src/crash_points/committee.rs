//! A small committee in virtual time: links that always take the same, nothing lost but by the
//! script.

mod border;

use super::chronicle::SharedChronicle;
use super::disks::{DiskFailure, Disks, LogKind};
use super::host::{CrashHost, Turn, Work};
use super::offers::content_of;
use super::shared::Shared;
use crate::epoch::Ended;
use bytes::Bytes;
use quorate_storage::disk::Faults;
use quorate_storage::{Fault, StorageError};
use quorate_types::machine::Recovery;
use quorate_types::{Epoch, HandedOver, Peer, Recipients, Time};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const LINK: Duration = Duration::from_millis(1);

/// Events from outside a committee: clients' frames and cuts of links.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// Frames of clients, and the hosts that they reach.
    pub(super) requests: Vec<(Time, usize, Peer, Bytes)>,
    /// Hosts that neither hear nor are heard for a while, in microseconds.
    pub(super) cut_off: Vec<(usize, Range<u64>)>,
}

enum SimEvent {
    /// A client's frame.
    Request(usize, Peer, Bytes),
    /// A frame from a host to another, over a connection of an epoch.
    Frame {
        from: usize,
        to: usize,
        epoch: Epoch,
        content: Bytes,
    },
    /// Work that a host began in this start is done.
    Work(usize, usize, Work),
    Timer(usize),
    Start(usize, Box<Recovery>),
    /// A host is shown how its epoch ended.
    Shown(usize, Arc<HandedOver>),
    /// A host looks whether it may go on to the next epoch.
    Succeed(usize),
}

/// A host's place in the committee.
struct Seat {
    host: CrashHost,
    /// It has opened its disks and not started.
    is_starting: bool,
    /// Its disks.
    disks: Disks,
    /// Its failures of disks, by its starts.
    plan: Vec<DiskFailure>,
    /// Counts of what its disks were asked in earlier starts.
    past: Vec<[Faults; 2]>,
    armed: Option<Time>,
    /// How its epoch ended.
    ended: Option<Ended>,
    /// Time at which each other host was last shown by it that its epoch is over.
    shown_at: BTreeMap<usize, Time>,
}

/// The hosts and what is under way between them.
pub(super) struct Committee {
    shared: Arc<Shared>,
    chronicle: SharedChronicle,
    script: Script,
    pub(super) now: Time,
    queue: BTreeMap<(Time, u64), SimEvent>,
    scheduled: u64,
    seats: Vec<Option<Seat>>,
}

impl Committee {
    /// Hosts that all start at this time, from these disks. A host that has none is not there.
    /// `plan` is how the subject's disks fail.
    ///
    /// # Errors
    /// When a host's disks do not open.
    pub(super) fn start(
        shared: &Arc<Shared>,
        disks: &[Option<Disks>],
        plan: &[DiskFailure],
        chronicle: &SharedChronicle,
        now: Time,
        script: Script,
    ) -> Result<Self, StorageError> {
        let mut committee = Self {
            shared: Arc::clone(shared),
            chronicle: chronicle.clone(),
            script,
            now,
            queue: BTreeMap::new(),
            scheduled: 0,
            seats: disks.iter().map(|_| None).collect(),
        };
        for (at, to, from, content) in committee.script.requests.clone() {
            committee.schedule(at, SimEvent::Request(to, from, content));
        }
        for (number, disks) in disks.iter().enumerate() {
            let Some(disks) = disks.clone() else { continue };
            let plan = if number == shared.subject { plan.to_vec() } else { Vec::new() };
            let first = failures_of(&plan, 0);
            let (host, recovery) = CrashHost::open(shared, number, &disks, &first, chronicle)?;
            committee.seats[number] = Some(Seat {
                host,
                is_starting: true,
                disks,
                plan,
                past: Vec::new(),
                armed: None,
                ended: None,
                shown_at: BTreeMap::new(),
            });
            committee.schedule(now, SimEvent::Start(number, Box::new(recovery)));
        }
        Ok(committee)
    }

    fn seat(&mut self, host: usize) -> &mut Seat {
        self.seats[host].as_mut().expect("a host that takes part")
    }

    /// The host whose steps are looked at.
    pub(super) fn subject(&mut self) -> &mut CrashHost {
        &mut self.seat(self.shared.subject).host
    }

    /// Counts of what the subject's disks were asked, by its starts.
    pub(super) fn faults(&mut self) -> Vec<[Faults; 2]> {
        let seat = self.seat(self.shared.subject);
        seat.past.iter().chain([seat.host.faults()]).cloned().collect()
    }

    /// A frame arrives right now.
    pub(super) fn deliver(&mut self, to: usize, from: Peer, content: Bytes) {
        self.turn(to, |host, now| host.deliver(now, from, content));
    }

    /// A client asks every host that is a member of its epoch.
    pub(super) fn ask_members(&mut self, client: Peer, content: &Bytes) {
        for host in 0..self.seats.len() {
            let seat = self.seats[host].as_ref();
            if seat.is_some_and(|seat| seat.host.epoch.seat(host).is_some()) {
                self.deliver(host, client, content.clone());
            }
        }
    }

    /// Lets everything happen that is due until then, as long as `go_on` says so.
    pub(super) fn run(&mut self, until: Time, go_on: &mut dyn FnMut(&mut Self) -> bool) {
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= until) {
            self.now = entry.key().0;
            let what = entry.remove();
            self.apply(what);
            if !go_on(self) {
                return;
            }
        }
        self.now = until;
    }

    fn apply(&mut self, what: SimEvent) {
        match what {
            SimEvent::Request(to, from, content) => {
                if !self.is_cut_off(to) {
                    self.deliver(to, from, content);
                }
            }
            SimEvent::Frame { from, to, epoch, content } => self.pass_on(from, to, epoch, content),
            SimEvent::Start(host, found) => {
                self.seat(host).is_starting = false;
                self.turn(host, |host, now| host.start(now, *found));
            }
            SimEvent::Work(host, start, work) => {
                if self.seat(host).past.len() == start {
                    self.turn(host, |host, now| host.finish(now, work));
                }
            }
            SimEvent::Timer(host) => {
                self.seat(host).armed = None;
                self.turn(host, |host, now| match host.next_timeout() {
                    Some(due) if due <= now => host.wake(now),
                    _ => Turn::default(),
                });
            }
            SimEvent::Shown(to, step) => self.hear_of_end(to, step),
            SimEvent::Succeed(host) => self.succeed(host),
        }
    }

    fn turn(&mut self, host: usize, act: impl FnOnce(&mut CrashHost, Time) -> Turn) {
        let now = self.now;
        let seat = self.seats[host].as_mut().filter(|seat| !seat.is_starting);
        let Some(seat) = seat else { return };
        let turn = act(&mut seat.host, now);
        let start = seat.past.len();
        for (after, work) in turn.later {
            self.schedule(now + after, SimEvent::Work(host, start, work));
        }
        if !self.is_cut_off(host) {
            for (to, message) in turn.released {
                self.send(host, to, &content_of(&message));
            }
        }
        self.arm(host);
        if let Some(step) = turn.handed_over {
            self.hand_over(host, step);
        }
    }

    /// Whom a sender means is by the members of its epoch.
    fn send(&mut self, from: usize, to: Recipients, content: &Bytes) {
        let epoch = Arc::clone(&self.seat(from).host.epoch);
        for other in (0..self.seats.len()).filter(|other| *other != from) {
            let peer = self.shared.peer_in(&epoch, other);
            let is_meant = match to {
                Recipients::All => peer.replica().is_ok(),
                Recipients::One(member) => peer == Peer::Replica(member),
                Recipients::Client(client) => peer == Peer::Learner(client),
            };
            if is_meant && self.seats[other].is_some() {
                let (epoch, content) = (epoch.number(), content.clone());
                let frame = SimEvent::Frame { from, to: other, epoch, content };
                self.schedule(self.now + LINK, frame);
            }
        }
    }

    /// A frame arrives, unless its receiver is in another epoch.
    fn pass_on(&mut self, from: usize, to: usize, epoch: Epoch, content: Bytes) {
        if self.is_cut_off(to) {
            return;
        }
        let present = Arc::clone(&self.seat(to).host.epoch);
        if present.number() == epoch {
            self.deliver(to, self.shared.peer_in(&present, from), content);
        } else {
            self.meet(from, to);
        }
    }

    fn arm(&mut self, host: usize) {
        let now = self.now;
        let Some(seat) = &mut self.seats[host] else { return };
        let Some(due) = seat.host.next_timeout().map(|due| due.max(Time(now.0 + 1))) else {
            return;
        };
        if seat.armed.is_none_or(|armed| due < armed) {
            seat.armed = Some(due);
            self.schedule(due, SimEvent::Timer(host));
        }
    }

    fn is_cut_off(&self, host: usize) -> bool {
        self.script.cut_off.iter().any(|(who, when)| *who == host && when.contains(&self.now.0))
    }

    fn schedule(&mut self, at: Time, what: SimEvent) {
        self.queue.insert((at, self.scheduled), what);
        self.scheduled += 1;
    }
}

/// Failures of the disks in this start.
fn failures_of(plan: &[DiskFailure], start: usize) -> Vec<(LogKind, Fault)> {
    let its = plan.iter().filter(|failure| failure.start == start);
    its.map(|failure| (failure.log, failure.fault.clone())).collect()
}
