//! Completions of jobs, and the machine's effects behind the barrier of the log.

use super::event::SimEvent;
use super::state::State;
use crate::frames::Frame;
use crate::jobs::{Completion, Destination, Job, ReadyEffect};
use crate::nodes::Validator;
use crate::queue::Priority;
use crate::station::Station;
use crate::time::Nanos;
use quorate_engine::Incoming;
use quorate_engine::host::{Barrier, EffectPorts, GROUP_BULK_BYTES_MAX, Gated, dispatch};
use quorate_storage::Durability;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{Block, CombineJob, Entry, Executed, Halt, ReadRequest, Task};
use quorate_types::{Body, BodyRef, Event, Lane, Recipients};
use std::rc::Rc;
use std::sync::Arc;

/// The store is durable every so many heights, as by default.
const DURABLE_EVERY: u64 = 256;

/// Ports of one validator: stations that work takes its time at.
struct Ports<'a> {
    state: &'a mut State,
    member: usize,
    /// A property that a task broke.
    broken: Option<String>,
}

impl<'a> Ports<'a> {
    fn new(state: &'a mut State, member: usize) -> Self {
        Self { state, member, broken: None }
    }

    /// The error is a broken property.
    fn end(self) -> Result<(), String> {
        self.broken.map_or(Ok(()), Err)
    }

    fn validator(&mut self) -> &mut Validator {
        &mut self.state.nodes.validators[self.member]
    }
}

impl EffectPorts<Rc<Frame>> for Ports<'_> {
    type Stop = String;

    fn barrier(&mut self) -> &mut Barrier {
        &mut self.validator().barrier
    }

    fn write(&mut self, entry: Entry) -> Result<(), String> {
        match entry {
            Entry::Body(body) => self.state.store(self.member, body),
            entry => self.validator().log.push(entry),
        }
        Ok(())
    }

    fn hold(&mut self, gated: Gated<Rc<Frame>>) {
        self.validator().log.hold(gated);
    }

    fn send(&mut self, to: Recipients, _lane: Lane, frame: Rc<Frame>) {
        self.state.send(self.member, to, &frame);
    }

    fn execute(&mut self, task: Task) {
        if let Err(broken) = self.state.start_task(self.member, task) {
            self.broken.get_or_insert(broken);
        }
    }

    fn read(&mut self, request: ReadRequest) {
        let answer = self.state.execution.read(&request);
        self.state.answer(self.member, Event::Read(answer));
    }

    fn combine(&mut self, job: CombineJob) {
        let job = Job::Combine(Box::new(job));
        self.state.queue(self.member, Station::Votes, Priority::Answer, job);
    }

    fn certified(&mut self, _certificate: Box<ExecutionCertificate>) {}

    fn stop_signing(&mut self, reason: String) -> Result<(), String> {
        Err(format!("validator {} stopped signing: {reason}", self.member))
    }

    fn halt(&mut self, halt: Halt) -> Result<(), String> {
        Err(format!("validator {} halted: {halt}", self.member))
    }
}

impl State {
    /// A job's service ends: what comes of it takes effect. The error is a broken property.
    pub(crate) fn complete(
        &mut self,
        member: usize,
        station: Station,
        completion: Completion,
    ) -> Result<(), String> {
        if !self.nodes.validators[member].alive && station != Station::Client {
            return Ok(());
        }
        match completion {
            Completion::Sent(to, frame) => self.depart(member, to, frame),
            Completion::SentToRange(range, frame) => {
                for to in range.filter(|to| *to != member) {
                    self.depart(member, Destination::Validator(to), Rc::clone(&frame));
                }
            }
            Completion::Received(frame) => {
                let (station, priority) = if frame.is_urgent() {
                    (Station::Votes, Priority::Urgent)
                } else {
                    (Station::Checks, Priority::Bulk)
                };
                self.queue(member, station, priority, Job::Check(frame));
            }
            Completion::Checked(events, priority) => {
                self.queue(member, Station::Machine, priority, Job::Handle(events));
            }
            Completion::Combined(outcome) => self.answer(member, Event::Combined(*outcome)),
            Completion::Effects(effects) => return self.dispatch_all(member, effects),
            Completion::Executed(executed) => self.executed(member, &executed),
            Completion::Snapshot(height) => {
                let kept = self.nodes.validators[member].keep_snapshot(height);
                self.answer(member, Event::Snapshotted(kept));
            }
            Completion::Written => self.sync(member),
            Completion::Requests(sends) => {
                for (to, frame) in sends {
                    self.depart(member, Destination::Validator(to.index()), frame);
                }
                self.arm_client(member);
            }
            Completion::Nothing => {}
            Completion::Broken(text) => return Err(text),
        }
        Ok(())
    }

    /// Effects of one turn of the machine, in their order; then the log and the timer.
    fn dispatch_all(&mut self, member: usize, effects: Vec<ReadyEffect>) -> Result<(), String> {
        let mut ports = Ports::new(self, member);
        effects.into_iter().try_for_each(|effect| dispatch(effect, &mut ports))?;
        ports.end()?;
        self.start_log(member);
        self.arm(member);
        Ok(())
    }

    /// Hands a task to the execution's thread.
    fn start_task(&mut self, member: usize, task: Task) -> Result<(), String> {
        match task {
            Task::Execute(block) => self.commit(member, block),
            Task::Snapshot(height) => {
                let job = Job::Snapshot(height);
                self.queue(member, Station::Execution, Priority::Answer, job);
            }
            Task::Query(_) => return Err(format!("validator {member} was asked by nobody")),
            Task::HandOver(_) => return Err(format!("validator {member} was brought a change")),
            Task::Stage(_) | Task::Unstage(_) | Task::Install(_) => {
                return Err(format!("validator {member} was given a snapshot that nobody has"));
            }
        }
        Ok(())
    }

    /// A validator knows a height to be decided, has its bodies and hands it to execution.
    fn commit(&mut self, member: usize, block: Box<Block>) {
        let lives = self.nodes.validators[member].lives;
        if self.latencies.committed(self.now, member, lives, &block) {
            self.view_change.on_decided(self.now);
        }
        self.queue(member, Station::Execution, Priority::Answer, Job::Execute(block));
    }

    /// A body goes to the log; where authors wait for acknowledgements, its author hears that it is
    /// here.
    fn store(&mut self, member: usize, body: Arc<Body>) {
        self.execution.store(&body);
        let (reference, author) = (body.reference, body.reference.author.index());
        let waits = self.behaviour.waits_for_acknowledgements;
        if waits && author != member {
            let at = self.now + self.links.one_way(member, author);
            self.events.schedule(at, SimEvent::Acknowledged { body: reference });
        }
        if waits && author == member && self.acknowledgements.seal(reference) {
            self.answer(member, Event::Stored(reference));
        }
        let validator = &mut self.nodes.validators[member];
        validator.log_bytes += body.raw.len();
        validator.log.push(Entry::Body(body));
    }

    /// The log has a body.
    fn stored(&mut self, member: usize, body: BodyRef) {
        if self.behaviour.waits_for_acknowledgements && body.author.index() == member {
            self.acknowledge(body);
        } else {
            self.answer(member, Event::Stored(body));
        }
    }

    /// A body's author hears that one more member has it.
    pub(crate) fn acknowledge(&mut self, body: BodyRef) {
        let author = body.author.index();
        if self.acknowledgements.acknowledge(body) && self.nodes.validators[author].alive {
            self.answer(author, Event::Stored(body));
        }
    }

    /// A height is executed, and durable in the store every so often.
    fn executed(&mut self, member: usize, executed: &Rc<Executed>) {
        let height = executed.height();
        self.answer(member, Event::Executed((**executed).clone()));
        if height.0.is_multiple_of(DURABLE_EVERY) {
            self.answer(member, Event::Durable(height));
        }
    }

    /// Tells the machine something that it asked for.
    fn answer(&mut self, member: usize, event: Event<Incoming>) {
        self.queue(member, Station::Machine, Priority::Answer, Job::Handle(vec![event]));
    }

    /// Begins a group of the log, unless one is under way.
    fn start_log(&mut self, member: usize) {
        let validator = &mut self.nodes.validators[member];
        let Some(entries) = validator.log.begin_in_turn(GROUP_BULK_BYTES_MAX) else { return };
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
        let job = Job::Write { entries: entries.len(), bytes };
        validator.group = (bodies, bytes);
        self.queue(member, Station::Log, Priority::Answer, job);
    }

    /// A group is written: its sync waits for the host's disk.
    fn sync(&mut self, member: usize) {
        if self.durability == Durability::Os {
            self.events.schedule(self.now, SimEvent::Synced { member });
            return;
        }
        let bytes = self.nodes.validators[member].group.1;
        let log = self.prices.log;
        let written = bytes as f64 * 1e3 / log.disk_mb_s.max(1e-6);
        let takes = |us: f64| (us * 1e3 + written) as Nanos;
        let at = self.hosts.sync(
            member,
            self.now,
            takes(log.sync_us - log.sync_core_us),
            takes(log.sync_shared_us),
        );
        self.events.schedule(at, SimEvent::Synced { member });
    }

    /// A group is durable: what waited for it leaves, and the next one begins.
    pub(crate) fn synced(&mut self, member: usize) -> Result<(), String> {
        let validator = &mut self.nodes.validators[member];
        if !validator.alive {
            return Ok(());
        }
        let mut released = Vec::new();
        let written = validator.log.finish(|gated| released.push(gated));
        validator.log_bytes -= validator.group.0;
        let mut ports = Ports::new(self, member);
        for gated in released {
            gated.leave(&mut ports);
        }
        ports.end()?;
        for entry in written {
            if let Entry::Body(body) = entry {
                self.stored(member, body.reference);
            }
        }
        self.start_log(member);
        self.serve(member, Station::Machine);
        Ok(())
    }
}
