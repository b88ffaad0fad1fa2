//! One machine, and what its host keeps for it.

use super::ground::{Ground, TIMEOUT};
use super::plan::Plan;
use bytes::Bytes;
use quorate_consensus::{
    Input, Liveness, Output, ProposeRequest, Protocol, ProtocolConfig, VerifiedRun, Verifier,
};
use quorate_crypto::{Policy, hash_parts};
use quorate_types::machine::{Halt, RecordKind};
use quorate_types::{
    BlockId, BodyRef, Height, Machine, Payload, Recipients, ReplicaId, Time, View,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Proposals of one leader in one view, where the protocol sets no bound itself.
const PROPOSALS_MAX: u64 = 2;

/// Outcome of one turn of a machine.
#[derive(Debug)]
pub(super) enum SeatEffect {
    Send(Recipients, Box<quorate_consensus::Message>),
    Decided { height: Height, block: BlockId, ends_epoch: bool },
    Halted(Halt),
}

/// A machine in its place.
pub(super) struct Seat {
    plan: Arc<Plan>,
    pub(super) number: usize,
    pub(super) member: ReplicaId,
    pub(super) machine: Protocol,
    pub(super) verifier: Arc<Verifier>,
    /// A block that it lacks.
    pub(super) behind: Option<BlockId>,
    /// The decided records, oldest first, across restarts.
    pub(super) records: Vec<Bytes>,
    safety: Option<Bytes>,
    slots: BTreeMap<RecordKind, Bytes>,
    stored: BTreeSet<BodyRef>,
    request: Option<ProposeRequest>,
    /// The last view that it proposed in, and how much.
    proposed: (View, u64),
}

impl Seat {
    /// A machine before its first input.
    pub(super) fn new(number: usize, plan: &Arc<Plan>, ground: &Ground) -> Self {
        let member = plan.member(number);
        let verifier = ground.verifier(plan);
        Self {
            plan: Arc::clone(plan),
            number,
            member,
            machine: machine(member, plan, ground, &verifier),
            verifier,
            behind: None,
            records: Vec::new(),
            safety: None,
            slots: BTreeMap::new(),
            stored: BTreeSet::new(),
            request: None,
            proposed: (View(0), 0),
        }
    }

    pub(super) fn view(&self) -> View {
        self.machine.state().view()
    }

    /// Loses everything but its records.
    pub(super) fn restart(
        &mut self,
        now: Time,
        plan: &Arc<Plan>,
        ground: &Ground,
    ) -> Vec<SeatEffect> {
        self.verifier = ground.verifier(plan);
        self.machine = machine(self.member, plan, ground, &self.verifier);
        (self.behind, self.request) = (None, None);
        self.start(now)
    }

    pub(super) fn start(&mut self, now: Time) -> Vec<SeatEffect> {
        let recovered = Input::Recovered {
            safety: self.safety.clone(),
            slots: self.slots.values().cloned().collect(),
            executed: None,
            decided: self.records.clone(),
            stored: self.stored.clone(),
        };
        let mut said = self.feed(now, recovered);
        said.extend(self.feed(now, Input::Work(true)));
        said
    }

    pub(super) fn feed(&mut self, now: Time, input: Input) -> Vec<SeatEffect> {
        self.machine.handle(now, input);
        self.drain(now)
    }

    pub(super) fn fire(&mut self, now: Time) -> Vec<SeatEffect> {
        self.machine.handle_timeout(now);
        self.drain(now)
    }

    fn drain(&mut self, now: Time) -> Vec<SeatEffect> {
        let mut said = Vec::new();
        loop {
            while let Some(output) = self.machine.poll() {
                self.apply(now, output, &mut said);
            }
            // There is always something to order.
            let Some(request) =
                self.request.take().filter(|request| self.may_propose(request.view))
            else {
                return said;
            };
            let payload = self.payload(now, &request);
            let ProposeRequest { view, parent, .. } = request;
            self.machine.handle(now, Input::Payload { view, parent, payload });
        }
    }

    /// Views in which one leader may propose without end are left by time alone, as far as plans
    /// go: it proposes a little and then nothing.
    fn may_propose(&mut self, view: View) -> bool {
        if self.proposed.0 != view {
            self.proposed = (view, 0);
        }
        self.proposed.1 += 1;
        self.proposed.1 <= PROPOSALS_MAX || self.verifier.protocol().windowed_rules().is_none()
    }

    fn apply(&mut self, now: Time, output: Output, said: &mut Vec<SeatEffect>) {
        match output {
            Output::Send { to, message } => said.push(SeatEffect::Send(to, Box::new(message))),
            Output::Persist(record) => match record.kind {
                RecordKind::Safety | RecordKind::Incarnation => self.safety = Some(record.bytes),
                RecordKind::HandOver => unreachable!("a protocol's machine hands nothing over"),
                RecordKind::Slot(_) => drop(self.slots.insert(record.kind, record.bytes)),
            },
            Output::Combine(job) => self.machine.handle(now, Input::Combined(job.run())),
            Output::RequestPayload(request) => self.request = Some(request),
            Output::RequestBodies { block, bodies, .. } => {
                self.stored.extend(bodies);
                self.machine.handle(now, Input::Stored(block));
            }
            Output::Decided(decided) => {
                let height = decided.payload.header.height;
                // After a restart it decides again what it had decided.
                if height == self.recorded().next() {
                    self.records.push(decided.record);
                }
                let ends_epoch = decided.payload.ends_epoch();
                said.push(SeatEffect::Decided { height, block: decided.block, ends_epoch });
            }
            Output::Behind { target, .. } => self.behind = Some(target),
            Output::Misbehaviour(_) | Output::Stable(_) => {}
            Output::Halt(halt) => said.push(SeatEffect::Halted(halt)),
        }
    }

    /// One body that no other machine would name.
    fn payload(&mut self, now: Time, request: &ProposeRequest) -> Payload {
        let stamp = request.stamp_floor_ms.max(now.as_millis());
        let (view, number) =
            (request.view.0.to_le_bytes(), [u8::try_from(self.number).expect("few")]);
        let digest = hash_parts("quorate sim twins body", &[&view, &number]);
        let body = BodyRef { author: self.member, sequence: request.view.0, digest };
        let bodies = if request.nothing { Vec::new() } else { vec![body] };
        self.stored.extend(bodies.iter().copied());
        let payload = Payload::new(request.height, stamp, bodies);
        let ends = self.plan.ends_in(request.view) && !request.nothing;
        if ends { payload.ending_epoch(digest) } else { payload }
    }

    /// The last height of which it has the record.
    fn recorded(&self) -> Height {
        Height(self.plan.begins_after.0 + self.records.len() as u64)
    }

    /// Run of blocks that it has for a machine that decided `after` at `height` and lacks `target`.
    pub(super) fn serve(&self, to: &Self, target: BlockId) -> Option<VerifiedRun> {
        let (after, height) = (to.machine.state().tip(), to.recorded());
        let (decided, tail) = match self.records.get(to.records.len()..) {
            Some(newer) if !newer.is_empty() => {
                (newer[..self.machine.state().servable(newer)].to_vec(), Vec::new())
            }
            _ => (Vec::new(), self.machine.state().tail(after, target)?),
        };
        let run =
            VerifiedRun::check(height, Some(after), target, &decided, &tail, &to.verifier).ok()?;
        (!run.is_empty()).then_some(run)
    }
}

fn machine(
    member: ReplicaId,
    plan: &Arc<Plan>,
    ground: &Ground,
    verifier: &Arc<Verifier>,
) -> Protocol {
    let (identity, voting) = ground.keys(member);
    let config = ProtocolConfig {
        id: member,
        identity,
        voting,
        verifier: Arc::clone(verifier),
        timeout: TIMEOUT,
        vote_wait: Duration::ZERO,
        policy: Policy::Aggregate,
        clock_drift_max_ms: u64::MAX / 4,
        wall_origin_ms: 0,
        signs: true,
        // The plan says who leads.
        liveness: Liveness::default(),
    };
    Protocol::new(config).with_leaders(Box::new(plan.as_ref().clone()))
}
