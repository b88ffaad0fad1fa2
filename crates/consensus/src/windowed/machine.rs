//! The machine's surface: inputs, messages and timers to their handlers.

use super::messages::Message;
use super::state::Windowed;
use super::values::digest_of;
use crate::{Ignored, Input, Output, VerifiedRun};
use quorate_types::{Machine, Payload, ReplicaId, Time, Verified};

impl Windowed {
    /// Returns `true` while something is to be decided.
    pub(super) fn is_working(&self) -> bool {
        self.engine_has_work || self.has_open_slots()
    }

    /// Starts and stops timers: they run only while something is to be decided (PBFT §4.5.2).
    pub(super) fn update_work(&mut self, now: Time) {
        let working = self.is_working();
        if !self.in_view_change {
            self.pacemaker.set_working(now, working && self.config.signs);
        }
        let needs_help = working || self.in_view_change || self.later_checkpoint.is_some();
        self.retransmission.set_needed(now, needs_help);
    }

    fn on_message(&mut self, now: Time, from: ReplicaId, message: Message) {
        let kind = message.kind();
        if let Some(reason) = self.handle_message(now, from, message) {
            self.ignored.count(kind, reason);
            if reason == Ignored::FutureView {
                self.hear_of_later_view(now);
            }
        }
    }

    /// Hands a message to its handler, which returns a reason if the message changes nothing.
    fn handle_message(&mut self, now: Time, from: ReplicaId, message: Message) -> Option<Ignored> {
        match message {
            Message::PrePrepare(proposed) => self.on_pre_prepare(now, proposed),
            Message::SignShare(share) => self.on_sign_share(now, from, share),
            Message::Prepare(prepared) => {
                self.observe_collector(now, from, prepared.proposal.slot);
                self.on_prepare(now, from, prepared)
            }
            Message::CommitShare(share) => self.on_commit_share(now, from, share),
            Message::Proof(proof) => {
                self.observe_collector(now, from, proof.certificate.proposal.slot);
                self.on_proof(now, from, proof)
            }
            Message::Payload(payload) => self.on_payload(now, payload),
            Message::Decided(slot) => self.on_decided(now, from, *slot),
            Message::ViewChange(change) => self.on_view_change(now, *change),
            Message::NewView(new_view) => self.on_new_view(now, new_view),
            Message::FetchViewChanges(view, members) => {
                self.on_fetch_view_changes(now, from, view, &members)
            }
            Message::Status(status) => self.on_status(now, from, &status),
            Message::Stable(checkpoint) => self.on_checkpoint(now, checkpoint),
            Message::Suspicion(view) => self.on_suspicion(now, from, view),
            Message::Equivocation(both) => self.on_equivocation(now, *both),
        }
    }

    /// Payload of which this replica knew the digest alone.
    fn on_payload(&mut self, now: Time, payload: Payload) -> Option<Ignored> {
        if let Some(reason) = self.ignore_payload(&payload) {
            return Some(reason);
        }
        let height = payload.header.height;
        self.window.get_mut(height)?.keep(payload);
        self.request_bodies(height);
        self.prepare_valued(now, height);
        self.deliver(now);
        None
    }

    fn ignore_payload(&self, payload: &Payload) -> Option<Ignored> {
        let digest = digest_of(payload);
        let slot = self.window.get(payload.header.height);
        let is_missing = slot.is_some_and(|slot| slot.missing_values().any(|it| it == digest));
        (!is_missing).then_some(Ignored::NotNeeded)
    }

    fn handle_after_the_end(&mut self, now: Time, input: Input) {
        match input {
            Input::Message { from, message } => {
                if let Some(message) = Verified::into_inner(*message).into_windowed() {
                    self.answer_after_the_end(now, from, &message);
                }
            }
            Input::ShowDecision { to } => self.show_last_decision(to),
            _ => {}
        }
        self.drop_what_follows_a_halt();
    }

    fn drop_what_follows_a_halt(&mut self) {
        let halt = self.outputs.iter().position(|output| matches!(output, Output::Halt(_)));
        if let Some(at) = halt {
            self.outputs.truncate(at + 1);
        }
    }

    /// Steps that follow any input.
    fn settle(&mut self, now: Time) {
        if self.halted {
            self.drop_what_follows_a_halt();
            return;
        }
        if self.has_ended() {
            return;
        }
        // A value may come by whatever brings one, after its proof.
        self.deliver(now);
        self.update_work(now);
        self.request_payload();
    }
}

impl Machine for Windowed {
    type Input = Input;
    type Effect = Output;

    fn handle(&mut self, now: Time, input: Input) {
        if self.halted {
            return;
        }
        if self.has_ended() {
            self.handle_after_the_end(now, input);
            return;
        }
        match input {
            Input::Recovered { safety, slots, executed, decided, stored } => {
                self.recover(now, safety.as_ref(), &slots, executed.as_ref(), &decided, &stored);
            }
            Input::Installed(record) => self.on_installed(now, &record),
            Input::WallClock(origin_ms) => self.config.wall_origin_ms = origin_ms,
            Input::Message { from, message } => {
                if let Some(message) = Verified::into_inner(*message).into_windowed() {
                    self.on_message(now, from, message);
                }
            }
            Input::Payload { view, payload, .. } => {
                self.payload_requested = false;
                self.propose(now, view, payload);
            }
            Input::Stored(id) => self.on_stored(now, id),
            Input::Combined(outcome) => self.on_combined(now, &outcome),
            Input::Run(run) => {
                if let VerifiedRun::Windowed(run) = *run {
                    self.on_run(now, run);
                }
            }
            Input::Stable(checkpoint) => {
                self.on_checkpoint(now, *checkpoint);
            }
            Input::StopSigning => self.stop_signing(),
            Input::PrimarySuspected => self.on_primary_suspected(now),
            Input::ShowDecision { to } => self.show_last_decision(to),
            Input::Work(working) => self.engine_has_work = working,
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.halted || self.has_ended() {
            return;
        }
        self.combine_due(now);
        if self.pacemaker.is_due(now) {
            self.start_view_change(now);
        }
        self.send_status_if_due(now);
        self.settle(now);
    }

    fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        if self.halted || self.has_ended() {
            return None;
        }
        let times =
            [self.pacemaker.deadline(), self.combine_deadline(), self.retransmission.deadline()];
        times.into_iter().flatten().min()
    }
}
