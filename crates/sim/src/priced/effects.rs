//! What comes of jobs when their service ends.

use super::Profile;
use super::cast::Outgoing;
use super::frames::Frame;
use super::stage::{Happening, Stage};
use super::stations::{Class, Job, Kind, Place};
use quorate_crypto::Digest;
use quorate_engine::{Incoming, Message};
use quorate_storage::{Durability, Entry};
use quorate_types::machine::{CombineOutcome, Executed, Task};
use quorate_types::{Effect, Event, Height, Lane, Peer, Recipients, ReplicaId};
use std::ops::Range;
use std::rc::Rc;

/// What leaves when a service ends.
pub(crate) enum Done {
    Sent(Place, Rc<Frame>),
    Spread(Range<usize>, Rc<Frame>),
    Taken(Rc<Frame>),
    /// What passed, and whether it is urgent.
    Checked(Vec<Event<Incoming>>, Class),
    Combined(Box<CombineOutcome>),
    Outs(Vec<Out>),
    Executed(Rc<Executed>),
    Snapshot(Height),
    Written,
    Client(Vec<(ReplicaId, Rc<Frame>)>),
    Nothing,
    /// A property was broken.
    Broken(String),
}

/// An effect of the machine, ready to be carried out.
pub(crate) enum Out {
    Send(Outgoing),
    Effect(Box<Effect<Message>>),
}

/// Bytes of bodies in one group of the log at most (`node::log`).
const GROUP_BULK_BYTES_MAX: usize = 1024 * 1024;

/// Bulk bytes under way to one peer, from the sender's queue (32 MiB) to the receiver's check (6 MiB):
/// what comes on top is dropped, as the sender's outbox drops it.
const UNDER_WAY_BYTES_MAX: usize = 38 * 1024 * 1024;

/// Members to whom a frame is sent in one turn, where arrivals are taken up by spans.
const SPREAD: usize = 32;

/// The store is durable every so many heights, as by default.
const DURABLE_EVERY: u64 = 256;

impl Stage {
    pub(crate) fn release(&mut self, member: usize, kind: Kind, done: Done) -> Result<(), String> {
        if !self.cast.validators[member].alive && kind != Kind::Client {
            return Ok(());
        }
        match done {
            Done::Sent(to, frame) => self.leave(member, to, frame),
            Done::Spread(range, frame) => {
                for to in range.filter(|to| *to != member) {
                    self.leave(member, Place::Validator(to), Rc::clone(&frame));
                }
            }
            Done::Taken(frame) => {
                let kind = if frame.is_urgent() { Kind::Votes } else { Kind::Checks };
                let class = if frame.is_urgent() { Class::Urgent } else { Class::Bulk };
                self.queue(member, kind, class, Job::Check(frame));
            }
            Done::Checked(events, class) => {
                self.queue(member, Kind::Machine, class, Job::Tell(events));
            }
            Done::Combined(outcome) => self.answer(member, Event::Combined(*outcome)),
            Done::Outs(outs) => {
                for out in outs {
                    self.carry(member, out)?;
                }
                self.start_log(member);
                self.arm(member);
            }
            Done::Executed(executed) => {
                let height = executed.height();
                self.answer(member, Event::Executed((*executed).clone()));
                if height.0.is_multiple_of(DURABLE_EVERY) {
                    self.answer(member, Event::Durable(height));
                }
            }
            Done::Snapshot(height) => {
                let kept = &mut self.cast.validators[member].snapshots;
                kept.push(height);
                let first = kept.len().saturating_sub(2);
                let kept = kept.split_off(first);
                self.cast.validators[member].snapshots.clone_from(&kept);
                self.answer(member, Event::Snapshotted(kept));
            }
            Done::Written => self.sync(member),
            Done::Client(sends) => {
                for (to, frame) in sends {
                    self.leave(member, Place::Validator(to.index()), frame);
                }
                self.arm_client(member);
            }
            Done::Nothing => {}
            Done::Broken(text) => return Err(text),
        }
        Ok(())
    }

    /// What waits for records is held back.
    fn carry(&mut self, member: usize, out: Out) -> Result<(), String> {
        let waits = match &out {
            Out::Send(outgoing) => outgoing.frame.lane.waits_for_barrier(),
            Out::Effect(effect) => matches!(**effect, Effect::Task(_)),
        };
        let gate = &mut self.cast.validators[member].gate;
        let out = if waits { gate.hold(out) } else { Some(out) };
        out.map_or(Ok(()), |out| self.let_go(member, out))
    }

    fn let_go(&mut self, member: usize, out: Out) -> Result<(), String> {
        let effect = match out {
            Out::Send(outgoing) => {
                self.send(member, &outgoing);
                return Ok(());
            }
            Out::Effect(effect) => *effect,
        };
        let validator = &mut self.cast.validators[member];
        match effect {
            Effect::Persist(record) => validator.gate.persist(record),
            Effect::Append(record) => validator.gate.append(record),
            Effect::Certified(_) => {}
            Effect::Release(release) => validator.gate.release(release),
            Effect::Store(body) => {
                self.ledger.store(&body);
                if self.profile == Profile::Reference {
                    let name = body.reference;
                    self.answer(member, Event::Stored(name));
                    return Ok(());
                }
                validator.log_bytes += body.raw.len();
                validator.gate.store(body);
            }
            Effect::Read(request) => {
                let answer = self.ledger.read(&request);
                self.answer(member, Event::Read(answer));
            }
            Effect::Combine(job) => {
                self.queue(member, Kind::Votes, Class::Answer, Job::Combine(Box::new(job)));
            }
            Effect::Task(Task::Execute(block)) => {
                let lives = validator.lives;
                if self.book.committed(self.now, member, lives, &block) {
                    self.milestones.decided(self.now);
                }
                self.queue(member, Kind::Execution, Class::Answer, Job::Execute(block));
            }
            Effect::Task(Task::Snapshot(height)) => {
                self.queue(member, Kind::Execution, Class::Answer, Job::Snapshot(height));
            }
            Effect::Task(Task::Ask(_)) => {
                return Err(format!("validator {member} was asked by nobody"));
            }
            Effect::Task(Task::Stage(_) | Task::Unstage(_) | Task::Install(_)) => {
                return Err(format!("validator {member} was given a snapshot that nobody has"));
            }
            Effect::Halt(halt) => return Err(format!("validator {member} halted: {halt}")),
            Effect::Send { .. } => unreachable!("sends are encoded before"),
        }
        Ok(())
    }

    fn answer(&mut self, member: usize, event: Event<Incoming>) {
        self.queue(member, Kind::Machine, Class::Answer, Job::Tell(vec![event]));
    }

    /// Hands a frame to the network's threads, once for each that it goes to.
    fn send(&mut self, member: usize, outgoing: &Outgoing) {
        let frame = &outgoing.frame;
        match outgoing.to {
            Recipients::All if self.coming.is_by_spans(frame) => {
                let members = self.cast.validators.len();
                for from in (0..members).step_by(SPREAD) {
                    let to = from..members.min(from + SPREAD);
                    let job = Job::Spread { to, frame: Rc::clone(frame) };
                    self.queue(member, Kind::Net, Class::Urgent, job);
                }
            }
            Recipients::All => {
                for to in (0..self.cast.validators.len()).filter(|to| *to != member) {
                    self.send_one(member, Place::Validator(to), frame);
                }
            }
            Recipients::One(to) => self.send_one(member, Place::Validator(to.index()), frame),
            Recipients::Client(client) => {
                if let Some((place, _)) = self.client_of(client) {
                    self.send_one(member, Place::Client(place), frame);
                }
            }
        }
    }

    fn send_one(&mut self, member: usize, to: Place, frame: &Rc<Frame>) {
        let class = if frame.lane == Lane::Bulk { Class::Bulk } else { Class::Urgent };
        if class == Class::Bulk && !self.enter(member, to.index(), frame.bytes) {
            return;
        }
        self.queue(member, Kind::Net, class, Job::Send { to, frame: Rc::clone(frame) });
    }

    /// Whether there is room for bulk bytes to a peer.
    fn enter(&mut self, from: usize, to: usize, bytes: usize) -> bool {
        let under_way = &mut self.under_way[from * self.cast.validators.len() + to];
        if *under_way > 0 && *under_way + bytes > UNDER_WAY_BYTES_MAX {
            self.dropped += 1;
            return false;
        }
        *under_way += bytes;
        true
    }

    /// Bulk bytes reached the receiver's check, or nobody.
    pub(crate) fn left(&mut self, frame: &Frame, to: usize) {
        if frame.lane == Lane::Bulk {
            self.under_way[frame.from * self.cast.validators.len() + to] -= frame.bytes;
        }
    }

    /// A frame leaves its host.
    fn leave(&mut self, member: usize, to: Place, frame: Rc<Frame>) {
        if matches!(frame.peer, Peer::Replica(_)) {
            let validator = &mut self.cast.validators[member];
            validator.sent_bytes += frame.bytes as u64;
            validator.sent_frames += frame.each().count() as u64;
        }
        let at = self.lines.send(self.now, member, to.index(), frame.lane, frame.bytes);
        match to {
            Place::Validator(to) if self.coming.is_by_spans(&frame) => {
                if let Some(at) = self.coming.put(to, at, frame) {
                    self.agenda.schedule(at, Happening::TakeUp { member: to });
                }
            }
            _ => self.agenda.schedule(at, Happening::Arrive { to, frame }),
        }
    }

    /// Begins a group of the log, unless one is under way.
    pub(crate) fn start_log(&mut self, member: usize) {
        let validator = &mut self.cast.validators[member];
        let Some(entries) = validator.gate.begin_in_turn(GROUP_BULK_BYTES_MAX) else { return };
        let bodies = entries.iter().map(|entry| match entry {
            Entry::Body(body) => body.raw.len(),
            _ => 0,
        });
        let bodies: usize = bodies.sum();
        let records = entries.iter().map(|entry| match entry {
            Entry::Record(record) => record.bytes.len(),
            Entry::Decided(record) => record.bytes.len(),
            Entry::Body(_) | Entry::Release(_) => 0,
        });
        let bytes = bodies + records.sum::<usize>();
        validator.group = (bodies, bytes);
        let job = Job::Write { entries: entries.len(), bytes };
        self.queue(member, Kind::Log, Class::Answer, job);
    }

    /// A group is written: its sync waits for the host's disk.
    fn sync(&mut self, member: usize) {
        if self.durability == Durability::Os {
            self.agenda.schedule(self.now, Happening::Synced { member });
            return;
        }
        let bytes = self.cast.validators[member].group.1;
        let log = self.prices.log;
        let takes = log.sync_us * 1e3 + bytes as f64 * 1e3 / log.disk_mb_s.max(1e-6);
        let host = self.host(member);
        let disk = &mut self.disks[host];
        *disk = (*disk).max(self.now) + takes as u64;
        let at = *disk;
        self.agenda.schedule(at, Happening::Synced { member });
    }

    /// A group is durable.
    pub(crate) fn synced(&mut self, member: usize) -> Result<(), String> {
        let validator = &mut self.cast.validators[member];
        if !validator.alive {
            return Ok(());
        }
        let opened = validator.gate.finish();
        validator.log_bytes -= validator.group.0;
        for out in opened.released {
            self.let_go(member, out)?;
        }
        for body in opened.stored {
            self.answer(member, Event::Stored(body));
        }
        self.start_log(member);
        self.serve(member, Kind::Machine);
        Ok(())
    }

    /// The state that all executed alike, for the trace.
    pub(crate) fn root(&self) -> (Height, Digest) {
        self.ledger.last()
    }
}
