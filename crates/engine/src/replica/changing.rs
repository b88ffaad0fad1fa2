//! Changes of committee: brought, spread, proposed, and asked for by the blocks that order them.

use super::Replica;
use super::proposing::{CENSORSHIP_TIMEOUTS, is_shared};
use crate::changes::{NotTaken, Stop};
use crate::verify::CheckedChange;
use crate::{GivenUpFor, Message};
use bytes::Bytes;
use quorate_consensus::Input;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Body, BodyRef, ClientId, Effect, Height, Payload, Recipients, Time};
use std::sync::Arc;

impl Replica {
    /// A client brings a change: it goes to everybody, as it came. A learner has no way to them.
    pub(super) fn on_change_brought(
        &mut self,
        now: Time,
        client: ClientId,
        checked: CheckedChange,
    ) {
        if self.config.is_learner() {
            let reason = "a learner takes no changes: bring them to a member".to_owned();
            self.send(Recipients::Client(client), Message::ChangeAnswer(Err(reason)));
            return;
        }
        let body = Arc::clone(&checked.body);
        let taken = self.take_change(now, checked);
        if taken == Ok(true) {
            self.send(Recipients::All, Message::Body(Arc::clone(&body)));
        }
        let answer = taken.map(|_| body.reference.digest).map_err(|reason| reason.to_string());
        self.send(Recipients::Client(client), Message::ChangeAnswer(answer));
    }

    /// Takes a change that was checked, from whomever; `true` if it is new.
    pub(super) fn take_change(
        &mut self,
        now: Time,
        CheckedChange { body, change }: CheckedChange,
    ) -> Result<bool, NotTaken> {
        let is_needed = self.bodies.is_needed(&body.reference);
        let is_new = self.changes.take(change, self.next_height(), is_needed)?;
        if is_new {
            self.bodies.hold(now, Arc::clone(&body));
            self.effects.push_back(Effect::Store(body));
        }
        Ok(is_new)
    }

    /// A change came back from the own disk, and is checked anew. What may be ordered no more
    /// leaves it.
    pub(super) fn reload_change(&mut self, now: Time, body: &Body) {
        let checked = self.config.verifier.check_change(body.raw.clone());
        if !checked.is_ok_and(|checked| self.take_change(now, checked).is_ok()) {
            self.bodies.executed(&[body.reference]);
            self.schedule.recall(self.schedule.executed(), vec![body.reference]);
        }
    }

    /// Drops the changes whose time is over.
    pub(super) fn expire_changes(&mut self) {
        let expired = self.changes.expire(self.next_height());
        if !expired.is_empty() {
            self.bodies.executed(&expired);
            self.schedule.recall(self.schedule.executed(), expired);
        }
    }

    fn next_height(&self) -> Height {
        self.schedule.decided().next()
    }

    /// The change that the next height may order: work until it does.
    pub(super) fn due_change(&self) -> Option<Digest> {
        self.changes.due(self.next_height())
    }

    /// Notes since when in this view such a change waits.
    pub(super) fn note_due_change(&mut self, now: Time) {
        let view = self.view();
        let known = self.change_due_since.filter(|(of, _)| *of == view);
        self.change_due_since = self.due_change().map(|_| known.unwrap_or((view, now)));
    }

    /// A payload was decided. A leader that stays has had the change that waits at enough members
    /// announced to it, and orders it within as long as bodies may be passed over.
    pub(super) fn judge_by_change(&mut self, now: Time, decided: &Payload) {
        let judges = self.protocol.state().judges_leader();
        if !judges || decided.ends_epoch() || self.sync.is_behind() {
            return;
        }
        let waits = self.change_due_since.filter(|(view, _)| *view == self.view());
        let due = waits.zip(self.due_change());
        let Some(((_, since), change)) = due else { return };
        let limit = CENSORSHIP_TIMEOUTS * self.config.settings.timeout();
        let (committee, own) = (self.config.verifier.committee(), self.config.id);
        let announced = self.bodies.announced_by(&BodyRef::of_change(change));
        let is_shared = announced.is_some_and(|by| is_shared(committee, own, by));
        if is_shared && now > since + limit {
            self.suspect_primary(now, GivenUpFor::Censorship);
        }
    }

    /// Notes that a decided block ends the epoch, if it does: its change must come.
    ///
    /// ★ Nothing of the epoch is signed any more, neither bodies nor checkpoints, but for what its
    /// heights came to and what it hands over.
    pub(super) fn note_end(&mut self, payload: &Payload, block: BlockId) {
        if let Some(change) = payload.header.change {
            self.changes.end(Stop { change, height: payload.header.height, block });
            if !mutants::active(Mutant::SignAfterStop) {
                self.certifier.stop_signing();
                self.checkpoints.stop_signing();
            }
        }
    }

    /// The same of a decided record whose height was executed in an earlier run, or elsewhere.
    pub(super) fn note_end_of(&mut self, record: &Bytes) {
        let state = self.protocol.state();
        if let Some((payload, block)) = state.record_payload(record).zip(state.record_id(record)) {
            self.note_end(&payload, block);
        }
    }

    /// Returns `true` unless the payload orders a change that is not here.
    pub(super) fn has_change(&self, payload: &Payload) -> bool {
        payload.change().is_none_or(|change| self.bodies.is_stored(&change))
    }

    /// Returns `true` if this was ordered, not long ago.
    pub(super) fn is_ordered(&self, name: &BodyRef) -> bool {
        let change = self.changes.ordered().map(BodyRef::of_change);
        self.bodies.is_decided(name) || change == Some(*name)
    }

    /// All bodies of a block are here: it gets its vote unless it waits for a good change (★).
    pub(super) fn bodies_are_here(&mut self, now: Time, block: BlockId) {
        if self.changes.allow(&block) {
            self.feed(now, Input::Stored(block));
        }
    }
}
