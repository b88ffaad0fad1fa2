//! Whole committees of these machines on a network that loses what a test says, and nothing else.

use super::harness::{at, change, prepared, prepared_report, value};
use super::*;
use crate::ProtocolView;
use quorate_types::machine::RecordKind;
use quorate_types::{BodyRef, Recipients};
use std::collections::{BTreeMap, VecDeque};

/// Rule for the messages of one member to another that are lost.
pub(super) type Loses = fn(u8, u8, &Message) -> bool;

/// Lie of one member: what it sends in the place of a message.
pub(super) type Lies = fn(&Verifier, u8, &Message) -> Option<Message>;

pub(super) struct Seat {
    /// Each its own: what one has checked, the others have not.
    verifier: Arc<Verifier>,
    machine: Windowed,
    decided: Vec<Bytes>,
    records: BTreeMap<RecordKind, Bytes>,
    /// View and slot that it may propose for now.
    request: Option<(View, Height)>,
    /// Message delays until it decided last.
    delays: u64,
}

/// Message on its way.
#[derive(Clone)]
pub(super) struct Envelope {
    pub(super) from: u8,
    to: u8,
    /// Number of messages, each after the one before, that led to it.
    delays: u64,
    pub(super) message: Message,
}

pub(super) struct Cluster {
    seats: Vec<Seat>,
    wire: VecDeque<Envelope>,
    now: Time,
    loses: Loses,
    lies: Lies,
    /// Slots are filled up to this one.
    until: Height,
    /// Number of messages that members sent each other, by kind.
    pub(super) sent: BTreeMap<&'static str, u64>,
    /// Bytes of those messages.
    pub(super) bytes: u64,
    /// Message delays until what happens now.
    delays: u64,
}

fn kind(message: &Message) -> &'static str {
    match message {
        Message::PrePrepare(_) => "pre-prepare",
        Message::SignShare(_) => "sign-share",
        Message::Prepare(_) => "prepare",
        Message::CommitShare(_) => "commit-share",
        Message::Proof(_) => "proof",
        Message::ViewChange(_) => "view-change",
        Message::NewView(_) => "new-view",
        _ => "help",
    }
}

impl Cluster {
    fn new(protocol: ProtocolKind, members: u8, redundancy: u64, loses: Loses) -> Self {
        Self::of(protocol, &committee_file(members, redundancy), loses)
    }

    /// With keys that were dealt.
    fn dealt(protocol: ProtocolKind, members: u8, redundancy: u64, loses: Loses) -> Self {
        Self::of(protocol, &dealt_committee_file(members, redundancy), loses)
    }

    pub(super) fn of(protocol: ProtocolKind, file: &CommitteeFile, loses: Loses) -> Self {
        let members = u8::try_from(file.members.len()).expect("few");
        let seat = |id| {
            let verifier = verifier_with(protocol, file);
            Seat {
                machine: replica(&verifier, id),
                verifier,
                decided: Vec::new(),
                records: BTreeMap::new(),
                request: None,
                delays: 0,
            }
        };
        let mut cluster = Self {
            seats: (0..members).map(seat).collect(),
            wire: VecDeque::new(),
            now: Time(0),
            loses,
            lies: |_, _, _| None,
            until: Height(0),
            sent: BTreeMap::new(),
            bytes: 0,
            delays: 0,
        };
        (0..members).for_each(|id| cluster.start(id));
        cluster.settle();
        cluster
    }

    fn start(&mut self, id: u8) {
        let seat = &mut self.seats[usize::from(id)];
        let slots = seat.records.iter().filter(|(kind, _)| **kind != RecordKind::Safety);
        let recovered = Input::Recovered {
            safety: seat.records.get(&RecordKind::Safety).cloned(),
            slots: slots.map(|(_, bytes)| bytes.clone()).collect(),
            executed: None,
            decided: seat.decided.clone(),
            stored: BTreeSet::new(),
        };
        seat.machine.handle(self.now, recovered);
        self.drain(id);
    }

    /// Loses everything but its records, and comes back.
    fn restart(&mut self, id: u8) {
        self.restart_alone(id);
        self.settle();
    }

    /// The same, while everything else stands still.
    pub(super) fn restart_alone(&mut self, id: u8) {
        let seat = &mut self.seats[usize::from(id)];
        seat.machine = replica(&seat.verifier, id);
        seat.request = None;
        self.start(id);
        let works = Input::Work(self.until > Height(0));
        self.seats[usize::from(id)].machine.handle(self.now, works);
        self.drain(id);
    }

    /// Fills slots up to this one, and lets everything arrive.
    pub(super) fn order(&mut self, until: u64) {
        self.fill(until);
        self.settle();
    }

    /// Fills slots up to this one.
    pub(super) fn fill(&mut self, until: u64) {
        self.until = Height(until);
        for id in 0..self.seats.len() as u8 {
            self.seats[usize::from(id)].machine.handle(self.now, Input::Work(true));
            self.drain(id);
        }
    }

    fn settle(&mut self) {
        while let Some(envelope) = self.wire.pop_front() {
            self.give(envelope);
        }
        self.delays = 0;
    }

    /// A message arrives.
    pub(super) fn give(&mut self, Envelope { from, to, delays, message }: Envelope) {
        let seat = &mut self.seats[usize::from(to)];
        let message = seat.verifier.protocol().windowed(message);
        let from = ReplicaId(u16::from(from));
        let checked = Verified::check(message, Peer::Replica(from), seat.verifier.as_ref());
        if let Ok(message) = checked {
            let input = Input::Message { from, message: Box::new(message) };
            seat.machine.handle(self.now, input);
            self.delays = delays;
            self.drain(to);
        }
    }

    /// Takes one of the messages that are on their way.
    pub(super) fn take(&mut self, at: usize) -> Option<Envelope> {
        self.wire.remove(at % self.wire.len().max(1))
    }

    /// Puts a message on its way once more, behind all others.
    pub(super) fn put_back(&mut self, envelope: Envelope) {
        self.wire.push_back(envelope);
    }

    /// Ids that each member decided, in order.
    pub(super) fn decided(&self) -> impl Iterator<Item = Vec<BlockId>> {
        let id = |record| DecidedSlot::decode(record).expect("a record").id();
        self.seats.iter().map(move |seat| seat.decided.iter().map(id).collect())
    }

    /// The next timer of one member rings.
    pub(super) fn ring_alone(&mut self, id: u8) {
        let machine = &mut self.seats[usize::from(id)].machine;
        if let Some(at) = machine.next_timeout() {
            self.now = at.max(self.now);
            machine.handle_timeout(self.now);
            self.drain(id);
        }
    }

    /// The next timer of anybody rings.
    fn ring(&mut self) {
        let next = self.seats.iter().filter_map(|seat| seat.machine.next_timeout()).min();
        self.now = next.expect("somebody waits").max(self.now);
        for id in 0..self.seats.len() as u8 {
            let machine = &mut self.seats[usize::from(id)].machine;
            if machine.next_timeout().is_some_and(|at| at <= self.now) {
                machine.handle_timeout(self.now);
                self.drain(id);
            }
        }
        self.settle();
    }

    /// Rings until these members decided that many slots, alike.
    #[track_caller]
    pub(super) fn reach(&mut self, members: &[u8], height: usize) {
        for _ in 0..2_000 {
            let seats = || members.iter().map(|member| &self.seats[usize::from(*member)]);
            if seats().all(|seat| seat.decided.len() >= height) {
                let ids = |seat: &Seat| -> Vec<_> {
                    let records = seat.decided[..height].iter();
                    records.map(|it| DecidedSlot::decode(it).expect("a record").id()).collect()
                };
                let all: BTreeSet<_> = seats().map(ids).collect();
                assert_eq!(all.len(), 1, "all decided the same");
                return;
            }
            self.ring();
        }
        let heights: Vec<usize> = self.seats.iter().map(|seat| seat.decided.len()).collect();
        let views: Vec<u64> = self.seats.iter().map(|seat| seat.machine.status().view.0).collect();
        panic!("{height} slots were not decided: {heights:?} in views {views:?} at {:?}", self.now);
    }

    /// Rings until these members are in this view, or wait for it.
    #[track_caller]
    fn reach_view(&mut self, members: &[u8], view: u64) {
        for _ in 0..200 {
            if members.iter().all(|member| self.status(*member).view >= View(view)) {
                return;
            }
            self.ring();
        }
        panic!("view {view} was not reached");
    }

    fn drain(&mut self, id: u8) {
        while let Some(output) = self.seats[usize::from(id)].machine.poll() {
            self.apply(id, output);
        }
        // What is to be ordered is there at once, and each value is its own.
        let until = self.until;
        let request = |seat: &mut Seat| seat.request.take_if(|(_, slot)| *slot <= until);
        while let Some((view, slot)) = request(&mut self.seats[usize::from(id)]) {
            let stamp = slot.0 + 100 * view.0;
            let payload = Payload::new(slot, stamp, Vec::<BodyRef>::new());
            let parent = self.seats[usize::from(id)].verifier.genesis();
            let input = Input::Payload { view, parent, payload };
            self.seats[usize::from(id)].machine.handle(self.now, input);
            self.drain(id);
        }
    }

    fn apply(&mut self, id: u8, output: Output) {
        let now = self.now;
        let seat = &mut self.seats[usize::from(id)];
        match output {
            Output::Send { to, message } => self.send(id, to, message.windowed().expect("ours")),
            Output::Persist(record) => drop(seat.records.insert(record.kind, record.bytes)),
            Output::Combine(job) => seat.machine.handle(now, Input::Combined(job.run())),
            Output::RequestPayload(request) => seat.request = Some((request.view, request.height)),
            Output::RequestBodies { block, .. } => seat.machine.handle(now, Input::Stored(block)),
            Output::Decided(decided) => {
                if decided.payload.header.height.0 as usize > seat.decided.len() {
                    seat.decided.push(decided.record);
                    seat.delays = self.delays;
                }
            }
            Output::Halt(halt) => panic!("{id} halted: {halt}"),
            Output::Behind { .. } | Output::Stable(_) | Output::Misbehaviour(_) => {}
        }
    }

    fn send(&mut self, from: u8, to: Recipients, message: &Message) {
        let lie = (self.lies)(&self.seats[usize::from(from)].verifier, from, message);
        let message = lie.as_ref().unwrap_or(message);
        let all: Vec<u8> = match to {
            Recipients::All => (0..self.seats.len() as u8).filter(|it| *it != from).collect(),
            Recipients::One(one) => vec![u8::try_from(one.0).expect("few")],
            Recipients::Client(_) => Vec::new(),
        };
        for to in all {
            *self.sent.entry(kind(message)).or_default() += 1;
            self.bytes += encode(message).len() as u64;
            if !(self.loses)(from, to, message) {
                let (delays, message) = (self.delays + 1, message.clone());
                self.wire.push_back(Envelope { from, to, delays, message });
            }
        }
    }

    /// Message delays until the last of them decided last.
    pub(super) fn slowest(&self) -> u64 {
        self.seats.iter().map(|seat| seat.delays).max().expect("members")
    }

    pub(super) fn status(&self, id: u8) -> crate::ProtocolStatus {
        self.seats[usize::from(id)].machine.status()
    }
}

pub(super) fn nothing(_: u8, _: u8, _: &Message) -> bool {
    false
}

/// Paper 002 assumes that messages are sent again: a collector that leaves out one replica a slot
/// would otherwise stop them all.
#[test]
fn a_collector_that_leaves_out_one_replica_a_slot_stops_nobody() {
    for protocol in [ProtocolKind::LinearPbft, ProtocolKind::Sbft] {
        let leaves_out: Loses = |_, to, message| match message {
            Message::Proof(proof) => proof.certificate.proposal.slot.0 % 4 == u64::from(to),
            _ => false,
        };
        let mut cluster = Cluster::new(protocol, 4, 0, leaves_out);
        cluster.order(20);
        cluster.reach(&[0, 1, 2, 3], 20);
    }
}

#[test]
fn a_dead_primary_is_replaced_and_its_slots_are_filled() {
    for protocol in ProtocolKind::WINDOWED {
        let silent: Loses = |from, to, message| {
            from == 1 && (to != 2 || !matches!(message, Message::PrePrepare(_)))
        };
        let mut cluster = Cluster::new(protocol, 4, 0, silent);
        cluster.order(10);
        cluster.reach(&[0, 2, 3], 10);
        assert!(cluster.status(0).view_changes >= 1, "{protocol}");
    }
}

/// A value that one member alone decided is what the next view goes on with.
#[test]
fn a_decision_that_one_member_saw_stands() {
    // Only one member learns that a slot is decided: its collector, or, without collectors, member
    // 0.
    let hides_proofs: Loses = |_, _, message| matches!(message, Message::Proof(_));
    let hides_votes: Loses = |_, to, message| matches!(message, Message::CommitShare(_)) && to != 0;
    let primary_is_dead: Loses =
        |from, _, message| from == 1 || matches!(message, Message::Status(_) | Message::Decided(_));
    let ids = |records: &[Bytes]| -> Vec<_> {
        records.iter().map(|it| DecidedSlot::decode(it).expect("a record").id()).collect()
    };
    for protocol in ProtocolKind::WINDOWED {
        let hides = if protocol == ProtocolKind::Pbft { hides_votes } else { hides_proofs };
        let mut cluster = Cluster::new(protocol, 4, 0, hides);
        cluster.order(3);
        let decided = cluster.seats.iter().map(|seat| &seat.decided);
        let seen = ids(decided.max_by_key(|decided| decided.len()).expect("four"));
        let who_saw = cluster.seats.iter().filter(|seat| !seat.decided.is_empty()).count();
        assert_eq!((who_saw, seen.is_empty()), (1, false), "{protocol}");
        cluster.loses = primary_is_dead;
        cluster.reach(&[0, 2, 3], 3);
        assert_eq!(ids(&cluster.seats[0].decided)[..seen.len()], seen, "{protocol}");
        assert!(cluster.status(0).view_changes >= 1, "{protocol}");
    }
}

#[test]
fn redundant_members_keep_the_fast_path() {
    let silent: Loses = |from, to, _| from == 5 || to == 5;
    let mut cluster = Cluster::new(ProtocolKind::Sbft, 6, 1, silent);
    cluster.order(12);
    cluster.reach(&[0, 1, 2, 3, 4], 12);
    let status = cluster.status(0);
    assert_eq!((status.fast_decisions, status.view_changes), (12, 0));

    let mut cluster = Cluster::new(ProtocolKind::Sbft, 4, 0, |from, to, _| from == 3 || to == 3);
    cluster.order(12);
    cluster.reach(&[0, 1, 2], 12);
    assert_eq!(cluster.status(0).fast_decisions, 0, "all of four are needed");
}

/// With threshold keys a vote for the fast path is a signature of its own: all of them decide at
/// once, fewer by the slow path, whose certificates a quorum's shares make.
#[test]
fn threshold_keys_serve_both_paths() {
    for (members, redundancy) in [(4, 0), (6, 1)] {
        let mut cluster = Cluster::dealt(ProtocolKind::Sbft, members, redundancy, nothing);
        cluster.order(8);
        cluster.reach(&(0..members).collect::<Vec<_>>(), 8);
        let status = cluster.status(0);
        assert_eq!((status.fast_decisions, status.slow_decisions), (8, 0));
        assert_eq!(cluster.sent.get("prepare"), None, "nothing is made for the slow path");
    }
    let silent: Loses = |from, to, _| from == 3 || to == 3;
    for protocol in ProtocolKind::WINDOWED {
        let mut cluster = Cluster::dealt(protocol, 4, 0, silent);
        cluster.order(8);
        cluster.reach(&[0, 1, 2], 8);
        let status = cluster.status(0);
        assert_eq!((status.fast_decisions, status.slow_decisions), (0, 8), "{protocol}");
    }
    let dead_primary: Loses = |from, _, _| from == 1;
    let mut cluster = Cluster::dealt(ProtocolKind::Sbft, 4, 0, dead_primary);
    cluster.order(8);
    cluster.reach(&[0, 2, 3], 8);
}

#[test]
fn everybody_restarts_in_the_middle() {
    for protocol in ProtocolKind::WINDOWED {
        // No slot is decided before.
        let mut cluster = Cluster::new(protocol, 4, 0, |_, _, message| {
            matches!(message, Message::Proof(_) | Message::CommitShare(_))
        });
        cluster.order(3);
        cluster.loses = nothing;
        (0..4).for_each(|id| cluster.restart(id));
        cluster.order(8);
        cluster.reach(&[0, 1, 2, 3], 8);
    }
}

/// Found from outside: member 0 lies. It alone shows the certificate of A, of view 1, when the
/// others have accepted other values since and restarted: the value comes with the certificate, and
/// the slot ends.
fn a_value_that_only_a_liar_shows_is_decided(protocol: ProtocolKind) {
    let mut cluster = Cluster::new(protocol, 4, 0, |from, to, message| match message {
        Message::PrePrepare(proposed) => match proposed.view.0 {
            1 => to == 3,
            2 => true,
            _ => to != 1,
        },
        Message::ViewChange(change) => change.view == View(2) && from == 1,
        Message::NewView(new_view) => new_view.view == View(4),
        Message::FetchViewChanges(..) => false,
        _ => true,
    });
    cluster.order(1);
    cluster.reach_view(&[0, 1, 2, 3], 4);
    (1..4).for_each(|id| cluster.restart(id));
    cluster.lies = |verifier, from, message| match message {
        Message::ViewChange(said) if from == 0 => {
            let report = prepared_report(prepared(verifier, at(1, 1, 101)), 101);
            let lie = change(verifier, said.view.0, 0, vec![report]);
            Some(Message::ViewChange(Box::new(lie)))
        }
        _ => None,
    };
    cluster.loses = |from, _, message| match message {
        Message::ViewChange(_) => from == 3,
        _ => from == 0,
    };
    cluster.order(4);
    cluster.reach(&[1, 2, 3], 1);
    let first = DecidedSlot::decode(&cluster.seats[1].decided[0]).expect("a record");
    assert_eq!(first.payload, value(1, 101), "{protocol}");
}

#[test]
fn pbft_ends_a_slot_whose_value_only_a_liar_shows() {
    a_value_that_only_a_liar_shows_is_decided(ProtocolKind::Pbft);
}

#[test]
fn linear_pbft_ends_a_slot_whose_value_only_a_liar_shows() {
    a_value_that_only_a_liar_shows_is_decided(ProtocolKind::LinearPbft);
}

#[test]
fn sbft_ends_a_slot_whose_value_only_a_liar_shows() {
    a_value_that_only_a_liar_shows_is_decided(ProtocolKind::LinearPbftFast);
    a_value_that_only_a_liar_shows_is_decided(ProtocolKind::Sbft);
}
