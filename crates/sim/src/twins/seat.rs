//! One machine, and what its host keeps for it.

use super::disk::Disk;
use super::ground::{EpochGround, TIMEOUT};
use super::plan::Plan;
use bytes::Bytes;
use quorate_consensus::{
    Input, Liveness, Output, ProposeRequest, Protocol, ProtocolConfig, VerifiedRun, Verifier,
};
use quorate_crypto::{Policy, hash_parts};
use quorate_types::machine::{Halt, Recovery};
use quorate_types::{
    BlockId, BodyRef, Height, Machine, Payload, PayloadHeader, Recipients, ReplicaId, Time, View,
};
use std::sync::Arc;
use std::time::Duration;

/// Proposals of one leader in one view, where the protocol sets no bound itself.
const PROPOSALS_MAX: u64 = 2;

/// Outcome of one turn of a machine.
#[derive(Debug)]
pub(super) enum SeatEffect {
    Send(Recipients, Box<quorate_consensus::Message>),
    Decided { block: BlockId, header: PayloadHeader },
    Halted(Halt),
}

/// A machine in its place.
pub(super) struct Seat {
    plan: Arc<Plan>,
    ground: Arc<EpochGround>,
    pub(super) number: usize,
    pub(super) member: ReplicaId,
    pub(super) machine: Protocol,
    pub(super) verifier: Arc<Verifier>,
    /// A block that it lacks.
    pub(super) behind: Option<BlockId>,
    disk: Disk,
    request: Option<ProposeRequest>,
    /// The last view that it proposed in, and how much.
    proposed: (View, u64),
}

impl Seat {
    /// A machine before its first input, over what its host keeps.
    pub(super) fn new(
        number: usize,
        plan: &Arc<Plan>,
        ground: &Arc<EpochGround>,
        disk: Disk,
    ) -> Self {
        let member = plan.member(number);
        let verifier = ground.verifier();
        Self {
            plan: Arc::clone(plan),
            ground: Arc::clone(ground),
            number,
            member,
            machine: machine(member, plan, ground, &verifier),
            verifier,
            behind: None,
            disk,
            request: None,
            proposed: (View(0), 0),
        }
    }

    pub(super) fn view(&self) -> View {
        self.machine.state().view()
    }

    /// Loses everything but what its host keeps.
    pub(super) fn restart(&mut self, now: Time) -> Vec<SeatEffect> {
        self.verifier = self.ground.verifier();
        self.machine = machine(self.member, &self.plan, &self.ground, &self.verifier);
        (self.behind, self.request) = (None, None);
        self.start(now)
    }

    /// ★ Of what its host keeps, records of epochs before are not shown to it.
    pub(super) fn start(&mut self, now: Time) -> Vec<SeatEffect> {
        let own = self.ground.start.own_part(self.disk.recovery());
        let Recovery { safety, slots, decided, .. } = own;
        let recovered = Input::Recovered {
            safety,
            slots,
            executed: None,
            decided: decided.into_iter().map(|record| record.bytes).collect(),
            stored: self.disk.stored.clone(),
        };
        let mut said = self.feed(now, recovered);
        said.extend(self.feed(now, Input::Work(true)));
        said
    }

    /// Leaves its place: what its host keeps.
    pub(super) fn leave(self) -> Disk {
        self.disk
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
            Output::Persist(record) => self.disk.persist(record),
            Output::Combine(job) => self.machine.handle(now, Input::Combined(job.run())),
            Output::RequestPayload(request) => self.request = Some(request),
            Output::RequestBodies { block, bodies, .. } => {
                self.disk.stored.extend(bodies);
                self.machine.handle(now, Input::Stored(block));
            }
            Output::Decided(decided) => {
                let (block, header) = (decided.block, decided.payload.header);
                self.disk.append(header.height, decided.record);
                said.push(SeatEffect::Decided { block, header });
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
        self.disk.stored.extend(bodies.iter().copied());
        let payload = Payload::new(request.height, stamp, bodies);
        let ends = self.plan.ends_in(request.view) && !request.nothing;
        if ends { payload.ending_epoch(digest) } else { payload }
    }

    /// Records of this epoch, oldest first.
    fn records(&self) -> Vec<Bytes> {
        let own = self.disk.decided_after(self.ground.start.height());
        own.iter().map(|record| record.bytes.clone()).collect()
    }

    /// Run of blocks that it has for a machine that decided `after` at `height` and lacks `target`.
    pub(super) fn serve(&self, to: &Self, target: BlockId) -> Option<VerifiedRun> {
        let (records, known) = (self.records(), to.records().len());
        let after = to.machine.state().tip();
        let height = Height(self.ground.start.height().0 + known as u64);
        let (decided, tail) = match records.get(known..) {
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
    ground: &EpochGround,
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
