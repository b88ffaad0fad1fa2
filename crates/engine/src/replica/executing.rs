//! From decided heights to answers: execution in order, certificates of what it came to, replies.

use super::Replica;
use crate::bodies::Need;
use crate::certifier_output::CertifierOutput;
use crate::message::Query;
use crate::queries::DIVERGED;
use crate::{Message, SNAPSHOT_INTERVALS_MAX};
use quorate_consensus::{Decided, Input};
use quorate_types::machine::{Block, Executed, Task};
use quorate_types::request::Answer;
use quorate_types::{BodyRef, ClientId, Effect, Height, Recipients, Reply, Time};

/// Bytes of a state from twice of which on it is written less often than every `snapshot_every`
/// heights.
const SNAPSHOT_BYTES: u64 = 128 * 1024 * 1024;

/// Number of times `snapshot_every` heights from one snapshot to the next where they have so many
/// bytes: a power of two. The log keeps the blocks of two of them, and a rescue loses those of one,
/// so there are not many.
fn snapshot_intervals(bytes: u64) -> u64 {
    SNAPSHOT_INTERVALS_MAX.min(1 << (bytes / SNAPSHOT_BYTES).max(1).ilog2())
}

impl Replica {
    pub(super) fn schedule_decided(&mut self, now: Time, decided: Decided) {
        self.keep_ancestor(&decided);
        let since = self.bodies.oldest_arrival(&decided.payload.bodies);
        let waited = since.map(|since| now.since(since));
        waited.into_iter().for_each(|waited| self.latencies.decisions.observe(waited));
        self.pacing.decided(now, waited.unwrap_or_default());
        self.heartbeat.decided(now);
        if let Some(signers) = decided.signers {
            self.contributions.certified(signers);
        }
        self.bodies.decide(&decided.payload.bodies);
        self.certifier.decided(&decided.payload.bodies);
        self.note_end(&decided.payload, decided.block);
        self.schedule.decide(decided.payload, decided.record);
    }

    pub(super) fn execute(&mut self, now: Time) {
        // Whoever just decided a height is still being sent what it orders.
        let lags = self.config.is_learner() || self.schedule.lags();
        for payload in self.schedule.upcoming() {
            let height = payload.header.height;
            let need = if lags { Need::Overdue(height) } else { Need::Decided(height) };
            for name in payload.bodies.iter().chain(&payload.change()) {
                if self.bodies.get(name).is_some() {
                    continue;
                }
                let holder = self.certifier.holder(name);
                let holder = holder.unwrap_or_else(|| self.bodies.spread(name));
                self.bodies.want(now, *name, holder, need);
            }
        }
        if self.snapshots.holds_execution() || self.execution.diverged().is_some() {
            return;
        }
        while let Some(payload) = self.schedule.next().filter(|payload| self.has_change(payload))
            && let Some(bodies) = self.bodies.collect(&payload.bodies)
        {
            let Some((payload, decided)) = self.schedule.start() else {
                return;
            };
            let height = payload.header.height;
            // What is handed over is the manifest of a snapshot that all have.
            let is_last = payload.ends_epoch();
            let block = Block { payload, bodies, decided };
            self.execution.starts(&block);
            self.effects.push_back(Effect::Task(Task::Execute(Box::new(block))));
            if is_last || self.takes_snapshot(height) {
                self.effects.push_back(Effect::Task(Task::Snapshot(height)));
            }
        }
    }

    /// Tells whether a snapshot is taken of a height that ends no epoch. Members whose newest ones
    /// are of different size take them at multiples of one another, and so have some in common.
    fn takes_snapshot(&self, height: Height) -> bool {
        let intervals = snapshot_intervals(self.snapshots_on_disk.newest_bytes);
        height.0.is_multiple_of(intervals.saturating_mul(self.config.settings.snapshot_every))
    }

    pub(super) fn on_executed(&mut self, now: Time, executed: Executed) {
        let names = self.schedule.finish(executed.height());
        self.note_executed(now, &names);
        let done: Vec<BodyRef> =
            names.into_iter().filter(|name| !self.schedule.needs(name)).collect();
        self.bodies.executed(&done);
        self.certifier.executed(&done);
        self.expire_changes();
        self.root = executed.root();
        self.operations += executed.operations;
        self.note_leader();
        self.execution.executed(now, &executed);
        self.checkpoints.executed(now, &executed.header);
        self.note_last(&executed.header);
        self.snapshots.executed();
        self.answer(executed.answers);
    }

    /// What these bodies carry waits no longer.
    fn note_executed(&mut self, now: Time, names: &[BodyRef]) {
        for body in names.iter().filter_map(|name| self.bodies.get(name)) {
            for arrival in self.mempool.executed(now, body) {
                self.latencies.requests.observe(now.since(arrival));
            }
        }
    }

    /// Keeps answers, and replies but where the height's certificate will acknowledge the request.
    fn answer(&mut self, answers: Vec<Answer>) {
        answers.iter().for_each(|answer| self.replies.keep(answer.clone()));
        let is_enabled = self.execution.is_enabled();
        let waits_for_none = |answer: &Answer| !is_enabled || answer.index.is_none();
        self.reply(answers.into_iter().filter(waits_for_none).collect());
    }

    /// Replies to requests, under one signature.
    pub(super) fn reply(&mut self, answers: Vec<Answer>) {
        if answers.is_empty() || !self.serves_clients() {
            return;
        }
        let scope = self.config.verifier.committee().scope();
        for reply in Reply::sign_all(&self.config.identity, scope, self.config.id, answers) {
            self.send(Recipients::Client(reply.client), Message::Reply(reply));
        }
    }

    pub(super) fn on_query(&mut self, client: ClientId, query: Query) {
        let refused = if !self.execution.is_enabled() {
            Some("the committee certifies no roots: set 'execution_certificates' to send queries")
        } else if self.execution.diverged().is_some() {
            Some(DIVERGED)
        } else {
            None
        };
        match refused {
            Some(reason) => self.queries.refuse(client, query.id, reason),
            None => {
                let room = self.queries.accept(client, query);
                room.unwrap_or_else(|refusal| self.refusals.count(refusal));
            }
        }
    }

    /// Does what a part that certifies asks for.
    pub(super) fn carry_out(&mut self, asked: CertifierOutput) {
        self.effects.extend(asked.jobs.into_iter().map(Effect::Combine));
        asked.misbehaviour.iter().for_each(|seen| self.note_misbehaviour(seen));
        asked.outbox.into_iter().for_each(|(to, message)| self.send(to, message));
    }

    /// Signs and collects checkpoints, and tells the protocol of those that a quorum keeps.
    pub(super) fn certify_checkpoints(&mut self, now: Time) {
        self.checkpoints.due(now);
        let asked = std::mem::take(&mut self.checkpoints.output);
        self.carry_out(asked);
        if let Some(height) = self.checkpoints.take_diverged() {
            self.execution.diverge(height);
        }
        while let Some(made) = self.checkpoints.poll_made() {
            self.feed(now, Input::Stable(Box::new(made)));
        }
    }

    /// Names the stable leader, who is asked where collectors of execution shares are silent.
    fn note_leader(&mut self) {
        let is_steady = self.protocol.state().has_stable_leader();
        self.execution.led_by(is_steady.then(|| self.protocol.state().status().leader));
    }

    /// Signs, collects and acknowledges what was executed, and answers queries about it.
    pub(super) fn certify_executed(&mut self, now: Time) {
        self.note_leader();
        self.execution.due(now);
        let asked = std::mem::take(&mut self.execution.output);
        self.carry_out(asked);
        while let Some(certificate) = self.execution.poll_learnt() {
            self.effects.push_back(Effect::Certified(Box::new(certificate)));
        }
        self.queries.settle(&self.execution);
        while let Some(job) = self.queries.poll_job() {
            self.effects.push_back(Effect::Task(Task::Query(job)));
        }
        while let Some((client, answered)) = self.queries.poll() {
            self.send(Recipients::Client(client), Message::QueryResponse(Box::new(answered)));
        }
    }
}
