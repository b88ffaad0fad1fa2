//! Four replicas in virtual time, with a client and lossy links.

use super::{client, committee, content, encoded, identity, request, voting};
use crate::{EpochStart, Incoming, Message, Replica, ReplicaConfig, Settings, Verifier};
use bytes::Bytes;
use quorate_crypto::KeyCache;
use quorate_types::machine::{
    CombineOutcome, DecidedRecord, Executed, ExecutedUpTo, ReadAnswer, ReadItem, RecordKind,
    Recovery, Task,
};
use quorate_types::{
    BodyRef, ClientId, Effect, Event, HandedOver, Header, Height, Machine, Peer, Recipients,
    ReplicaId, SignedChange, Time, Verified,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// All four members, by index.
pub(crate) const ALL: [usize; 4] = [0, 1, 2, 3];

/// One way, and of a disk.
pub(crate) const LATENCY: Duration = Duration::from_millis(1);

enum NetEvent {
    Message(Peer, Bytes),
    Stored(BodyRef),
    Combined(CombineOutcome),
    Executed(Executed),
    Read(ReadAnswer),
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) replica: Replica,
    verifier: Arc<Verifier>,
    disk: BTreeMap<BodyRef, Bytes>,
    pub(crate) appended: Vec<DecidedRecord>,
    pub(crate) executed: Vec<BodyRef>,
    /// The latest record of each kind.
    records: BTreeMap<RecordKind, Bytes>,
    /// Heights of the snapshots that it asked for.
    pub(crate) snapshots: Vec<Height>,
    /// Height below which it let go what it kept.
    pub(crate) released_below: Height,
    /// What its host was told to begin the next epoch with, and the record of it at that time.
    pub(crate) handed: Vec<(HandedOver, Option<Bytes>)>,
    /// Reason for which it signs no more.
    pub(crate) stopped: Option<String>,
}

/// Decides if a message is lost.
pub(crate) type Lost = fn(from: usize, to: usize, message: &Message) -> bool;

/// A committee and what is on its way.
pub(crate) struct Net {
    pub(crate) now: Time,
    count: u64,
    pub(crate) members: Vec<Member>,
    events: BTreeMap<(Time, u64), (usize, NetEvent)>,
    pub(crate) lost: Lost,
    pub(crate) sent: Vec<(usize, usize, Message)>,
    /// How the present epoch began, if it is not the first.
    pub(crate) begun_with: Option<HandedOver>,
}

impl Net {
    pub(crate) fn new(settings: &Settings, lost: Lost) -> Self {
        Self::of(settings, lost, false)
    }

    /// Of members that ask one another for their own signatures before they sign.
    pub(crate) fn asking(settings: &Settings, lost: Lost) -> Self {
        Self::of(settings, lost, true)
    }

    fn of(settings: &Settings, lost: Lost, asks: bool) -> Self {
        let member = |id| member(id, settings.clone(), asks);
        let (members, events) = ((0..4).map(member).collect(), BTreeMap::new());
        let sent = Vec::new();
        let mut net =
            Self { now: Time(0), count: 0, members, events, lost, sent, begun_with: None };
        for id in 0..4 {
            net.members[id].replica.handle(Time(0), Event::Recovered(Box::default()));
            net.drain(id);
        }
        net
    }

    /// All that is on a member's disk.
    pub(crate) fn disk(&self, id: usize) -> Recovery {
        let Member { records, disk, appended, .. } = &self.members[id];
        let is_slot = |kind: &RecordKind| matches!(kind, RecordKind::Slot(_));
        let slots = records.iter().filter(|(kind, _)| is_slot(kind));
        Recovery {
            safety: records.get(&RecordKind::Safety).cloned(),
            slots: slots.map(|(_, bytes)| bytes.clone()).collect(),
            incarnation: records.get(&RecordKind::Incarnation).cloned(),
            hand_over: records.get(&RecordKind::HandOver).cloned(),
            decided: appended.clone(),
            bodies: disk.keys().copied().collect(),
            ..Recovery::default()
        }
    }

    /// Starts a member again on this disk.
    pub(crate) fn restart(&mut self, id: usize, recovery: Recovery) {
        let member = &mut self.members[id];
        let config = member.replica.config().clone();
        let verifier = Arc::new(Verifier::new(committee(), &config.settings));
        member.verifier = Arc::clone(&verifier);
        member.replica = Replica::new(ReplicaConfig { verifier, signs: true, ..config });
        member.executed.clear();
        member.handed.clear();
        self.end_process(id);
        let member = &mut self.members[id];
        let height = |record: &DecidedRecord| record.height;
        let newest = recovery.decided.last().map_or(Height(0), height);
        member.appended.retain(|record| record.height <= newest);
        member.replica.handle(self.now, Event::Recovered(Box::new(recovery)));
        self.drain(id);
    }

    /// What a process had under way goes with it.
    fn end_process(&mut self, id: usize) {
        let is_message = |event: &NetEvent| matches!(event, NetEvent::Message(..));
        self.events.retain(|_, (to, event)| *to != id || is_message(event));
    }

    /// Goes on to the next epoch with all that handed over and have yet to: each on its own disk,
    /// with the state of the last height. What was on its way went with the connections.
    pub(crate) fn begin_next(&mut self) {
        self.events.clear();
        for id in 0..self.members.len() {
            let (handed, _) = self.members[id].handed.last().expect("it handed over").clone();
            let mut recovery = self.disk(id);
            recovery.executed = self.executed_at(&handed);
            self.begin(id, &handed, recovery);
        }
    }

    /// The state as the epoch before left it.
    pub(crate) fn executed_at(&self, step: &HandedOver) -> Option<ExecutedUpTo> {
        let decided = Bytes::from_static(b"of another family");
        Some(ExecutedUpTo { header: step.header, decided, operations: 0, recent: Vec::new() })
    }

    /// A member's replica in the epoch that was handed over to, which waits for its disk.
    pub(crate) fn starting(&self, id: usize, handed: &HandedOver) -> Replica {
        let next = handed.check(&committee(), KeyCache::Off).expect("a quorum handed over");
        let start = EpochStart::after(next.network(), std::slice::from_ref(handed));
        let mut settings = Settings::default();
        settings.agree(&handed.file.settings).expect("known settings");
        let verifier = Arc::new(Verifier::starting(Arc::new(next), &settings, start));
        let config = self.members[id].replica.config().clone();
        Replica::new(ReplicaConfig { verifier, settings, ..config })
    }

    /// Starts a member in the epoch that was handed over to, on this disk.
    pub(crate) fn begin(&mut self, id: usize, handed: &HandedOver, recovery: Recovery) {
        let replica = self.starting(id, handed);
        self.begun_with = Some(handed.clone());
        self.end_process(id);
        let member = &mut self.members[id];
        member.verifier = Arc::clone(&replica.config().verifier);
        member.replica = replica;
        member.handed.clear();
        member.replica.handle(self.now, Event::Recovered(Box::new(recovery)));
        self.drain(id);
    }

    /// Tells a member that its connection to another came up.
    pub(crate) fn connect(&mut self, id: usize, other: usize) {
        let other = self.members[other].id();
        self.members[id].replica.handle(self.now, Event::Connected(other));
        self.drain(id);
    }

    fn after(&mut self, span: Duration, to: usize, event: NetEvent) {
        self.count += 1;
        self.events.insert((self.now + span, self.count), (to, event));
    }

    /// A message of a member's that its replica did not send.
    pub(crate) fn forge(&mut self, after: Duration, from: ReplicaId, to: usize, message: &Message) {
        self.after(after, to, NetEvent::Message(Peer::Replica(from), content(message)));
    }

    fn send(&mut self, from: usize, to: usize, message: &Message) {
        if !(self.lost)(from, to, message) {
            let from = Peer::Replica(self.members[from].id());
            self.after(LATENCY, to, NetEvent::Message(from, content(message)));
        }
        self.sent.push((from, to, message.clone()));
    }

    pub(crate) fn submit(&mut self, to: usize, sequence: u64) {
        let customer = Peer::Client(ClientId(client().public()));
        let frame = content(&Message::Request(request(sequence, 10)));
        self.after(LATENCY, to, NetEvent::Message(customer, frame));
    }

    /// A client brings a change to a member.
    pub(crate) fn bring(&mut self, to: usize, change: &SignedChange) {
        let customer = Peer::Client(ClientId(client().public()));
        let frame = content(&Message::Change(encoded(change)));
        self.after(LATENCY, to, NetEvent::Message(customer, frame));
    }

    /// Runs until this is so, a minute at most.
    pub(crate) fn run_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let deadline = self.now + Duration::from_secs(60);
        while !is_so(self) && self.now < deadline {
            self.step();
        }
        assert!(is_so(self), "not so after a minute: {:?}", self.statuses());
    }

    fn drain(&mut self, id: usize) {
        while let Some(effect) = self.members[id].replica.poll() {
            match effect {
                Effect::Send { to: Recipients::One(to), message, .. } => {
                    self.send(id, to.index(), &message);
                }
                Effect::Send { to: Recipients::All, message, .. } => {
                    (0..4).filter(|to| *to != id).for_each(|to| self.send(id, to, &message));
                }
                Effect::Store(body) => {
                    self.members[id].disk.insert(body.reference, body.raw.clone());
                    self.after(LATENCY, id, NetEvent::Stored(body.reference));
                }
                Effect::Append(record) => self.members[id].appended.push(record),
                Effect::Persist(record) => {
                    self.members[id].records.insert(record.kind, record.bytes);
                }
                Effect::StopSigning(reason) => self.members[id].stopped = Some(reason),
                Effect::Combine(job) => {
                    self.after(LATENCY, id, NetEvent::Combined(job.run()));
                }
                Effect::Task(Task::Execute(block)) => {
                    self.members[id].executed.extend(&block.payload.bodies);
                    let header = Header { height: block.height(), ..Header::default() };
                    let (leaves, answers) = (Vec::new(), Vec::new());
                    let executed = Executed { header, leaves, answers, operations: 0 };
                    self.after(LATENCY, id, NetEvent::Executed(executed));
                }
                Effect::Release(release) => self.members[id].released_below = release.below,
                Effect::Task(Task::Snapshot(height)) => self.members[id].snapshots.push(height),
                Effect::Task(Task::HandOver(handed)) => {
                    let member = &mut self.members[id];
                    let record = member.records.get(&RecordKind::HandOver).cloned();
                    member.handed.push((*handed, record));
                }
                Effect::Read(request) => {
                    let member = &self.members[id];
                    let items = request.items.into_iter().map(|item| (item, member.read(item)));
                    let items = items.collect();
                    let answer = ReadAnswer { ticket: request.ticket, items, oldest: Height(0) };
                    self.after(LATENCY, id, NetEvent::Read(answer));
                }
                Effect::Halt(halt) => panic!("{id} halted: {halt}"),
                _ => {}
            }
        }
    }

    /// Whatever comes next: an event or a timer.
    pub(crate) fn step(&mut self) {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let timer =
            (0..4).filter_map(|id| Some((self.members[id].replica.next_timeout()?, id))).min();
        match (event, timer) {
            (at, Some((due, id))) if at.is_none_or(|at| due < at) => {
                self.now = self.now.max(due);
                self.members[id].replica.handle_timeout(self.now);
                self.drain(id);
            }
            (Some(at), _) => {
                self.now = self.now.max(at);
                let (_, (id, event)) = self.events.pop_first().expect("there is one");
                self.happen(id, event);
            }
            (None, _) => self.now = self.now + LATENCY,
        }
    }

    fn happen(&mut self, id: usize, event: NetEvent) {
        let member = &mut self.members[id];
        let event = match event {
            NetEvent::Message(from, frame) => {
                match Verified::<Incoming>::check(frame, from, &member.verifier) {
                    Ok(message) => Event::Message { from, message },
                    Err(reason) => {
                        assert!(reason.is_innocent(), "{reason}");
                        return;
                    }
                }
            }
            NetEvent::Stored(name) => Event::Stored(name),
            NetEvent::Combined(outcome) => Event::Combined(outcome),
            NetEvent::Executed(executed) => Event::Executed(executed),
            NetEvent::Read(answer) => Event::Read(answer),
        };
        member.replica.handle(self.now, event);
        self.drain(id);
    }

    /// Submits `count` requests to the first three members in turn and runs until everybody among
    /// `running` executed them all.
    pub(crate) fn serve(&mut self, count: u64, running: &[usize]) {
        self.serve_from(0, count, running);
    }

    /// The same, of requests from this number on.
    pub(crate) fn serve_from(&mut self, first: u64, count: u64, running: &[usize]) {
        for sequence in first..first + count {
            let to = usize::try_from(sequence % 3).expect("few");
            self.submit(to, sequence);
            let until = self.now + 3 * LATENCY;
            while self.now < until {
                self.step();
            }
        }
        let deadline = self.now + Duration::from_secs(60);
        while !self.is_done(running) && self.now < deadline {
            self.step();
        }
        assert!(self.is_done(running), "not done after a minute: {:?}", self.statuses());
        let first = &self.members[running[0]].executed;
        for id in running {
            assert_eq!(&self.members[*id].executed, first, "{id} executed another order");
        }
    }

    /// Returns `true` if everything that the first three members sealed is executed.
    pub(crate) fn is_done(&self, running: &[usize]) -> bool {
        let sealed: BTreeSet<BodyRef> = (0..3)
            .flat_map(|id| {
                let own = self.members[id].id();
                self.members[id].disk.keys().filter(move |name| name.author == own).copied()
            })
            .collect();
        !sealed.is_empty()
            && running.iter().all(|id| {
                let executed: BTreeSet<BodyRef> =
                    self.members[*id].executed.iter().copied().collect();
                sealed.is_subset(&executed)
            })
    }

    /// What a member executed, in its order.
    pub(crate) fn executed(&self, member: usize) -> &[BodyRef] {
        &self.members[member].executed
    }

    pub(crate) fn statuses(&self) -> Vec<crate::Status> {
        self.members.iter().map(|member| member.replica.status()).collect()
    }
}

impl Member {
    pub(crate) fn id(&self) -> ReplicaId {
        self.replica.status().id
    }

    pub(crate) fn record(&self, kind: RecordKind) -> Option<Bytes> {
        self.records.get(&kind).cloned()
    }

    fn read(&self, item: ReadItem) -> Option<Bytes> {
        match item {
            ReadItem::Body(name) => self.disk.get(&name).cloned(),
            ReadItem::Decided(height) => {
                let record = self.appended.iter().find(|record| record.height == height);
                record.map(|record| record.bytes.clone())
            }
            ReadItem::Manifest(_) | ReadItem::Chunk(..) => None,
        }
    }
}

fn member(id: u8, settings: Settings, asks_witnesses: bool) -> Member {
    let verifier = Arc::new(Verifier::new(committee(), &settings));
    let replica = Replica::new(ReplicaConfig {
        id: ReplicaId(u16::from(id)),
        identity: Arc::new(identity(id)),
        voting: Arc::new(voting(id)),
        verifier: Arc::clone(&verifier),
        settings,
        wall_origin_ms: 1_700_000_000_000,
        signs: true,
        asks_witnesses,
    });
    let (disk, appended, executed) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (records, stopped) = (BTreeMap::new(), None);
    let (snapshots, handed) = (Vec::new(), Vec::new());
    let released_below = Height(0);
    Member {
        replica,
        verifier,
        disk,
        appended,
        executed,
        records,
        snapshots,
        released_below,
        handed,
        stopped,
    }
}
