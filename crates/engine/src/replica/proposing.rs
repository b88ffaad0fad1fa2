//! Payloads of leaders, and the check that none passes bodies over or lets all of them wait.

use super::Replica;
use crate::GivenUpFor;
use crate::bodies::PAYLOAD_BYTES_MAX;
use quorate_consensus::{Input, ProposeRequest};
use quorate_crypto::Bitmap;
use quorate_types::{Body, BodyRef, Committee, Height, Machine, Payload, ReplicaId, Time};
use std::collections::BTreeSet;

/// A leader that orders younger bodies, or none, leaves none waiting for so many view timeouts:
/// within them what was announced to it, it has.
pub(super) const CENSORSHIP_TIMEOUTS: u32 = 4;

/// Bodies that may be proposed.
#[derive(Default)]
struct Chosen {
    bodies: Vec<BodyRef>,
    /// Time at which the first of them arrived.
    first: Option<Time>,
    /// Time at which the first may be proposed of those that may not be yet.
    later: Option<Time>,
}

impl Replica {
    /// Hands the protocol what it may propose, if it asked for it and there is anything to say.
    pub(super) fn propose(&mut self, now: Time) {
        self.propose_at = None;
        let Some(request) = &self.propose_request else { return };
        if let Some(until) = self.paused_until(request).filter(|until| now < *until) {
            self.propose_at = Some(until);
            return;
        }
        let carried: BTreeSet<BodyRef> = request.carried.iter().copied().collect();
        let Chosen { bodies, first, later } =
            if request.nothing { Chosen::default() } else { self.choose_bodies(now, &carried) };
        let change = self.changes.due(request.height).filter(|_| !request.nothing);
        self.propose_at = later;
        if bodies.is_empty() && change.is_none() && !request.nothing && self.seal_on_demand(now) {
            return;
        }
        let Some(request) = &self.propose_request else { return };
        let owes_one = request.at_once || self.owes_as_next(now, request.height);
        if bodies.is_empty() && change.is_none() && !owes_one {
            return;
        }
        let company = self.batching.waits(bodies.len(), request.concurrent);
        let until = first.zip(company).map(|(since, wait)| since + wait);
        if let Some(until) = until.filter(|until| now < *until) {
            self.propose_at = Some(later.map_or(until, |later| later.min(until)));
            return;
        }
        self.batching.saw(self.bodies.pending_count().saturating_sub(carried.len()));
        let stamp = request.stamp_floor_ms.max(self.config.wall_origin_ms + now.as_millis());
        let mut payload = Payload::new(request.height, stamp, bodies);
        if let Some(change) = change {
            payload = payload.ending_epoch(change);
        }
        let (view, parent) = (request.view, request.parent);
        (self.propose_request, self.propose_at) = (None, None);
        self.feed(now, Input::Payload { view, parent, payload });
    }

    /// Returns `true` if this height is owed, be there anything to order or not. Under a leader
    /// that stays, heights are under way beside one another, and one of them is enough.
    fn owes_as_next(&self, now: Time, height: Height) -> bool {
        let is_next = height == self.schedule.decided().next();
        self.owes_height(now) && (is_next || !self.protocol.state().has_stable_leader())
    }

    /// Time until which a payload is held back because processors are scarce; `None` where it is
    /// not, or where something waits that must not: the end of an epoch, or its beginning.
    fn paused_until(&self, request: &ProposeRequest) -> Option<Time> {
        let is_urgent = request.nothing
            || self.owes_first_height()
            || self.changes.due(request.height).is_some();
        if self.pacing.pace().is_zero() || is_urgent {
            return None;
        }
        let state = self.protocol.state();
        let stays = state.has_stable_leader();
        if stays && self.pacing.waits_are_long() {
            return None;
        }
        let since = if stays { self.requested_at } else { self.view_since };
        self.pacing.until(since, state.pause_max())
    }

    /// Pending bodies in the order of their arrival that no undecided ancestor carries.
    fn choose_bodies(&self, now: Time, carried: &BTreeSet<BodyRef>) -> Chosen {
        let most =
            if self.config.settings.inline_bodies { Body::BYTES_MAX } else { PAYLOAD_BYTES_MAX };
        let mut room = self.config.settings.block_operations_max();
        let limited = room < usize::MAX;
        let (mut bytes, mut first, mut later) = (0, None::<Time>, None::<Time>);
        let bodies = self
            .bodies
            .pending()
            .filter(|(body, _)| !carried.contains(&body.reference))
            .filter(|(body, since)| {
                let at = self.certifier.proposable_at(&body.reference, *since);
                if at > now {
                    later = Some(later.map_or(at, |first| first.min(at)));
                }
                at <= now
            })
            .take(self.config.settings.block_bodies_max())
            .take_while(|(body, _)| {
                // One body in any case: a member with a higher limit may have sealed it.
                let is_first = bytes == 0;
                bytes += body.raw.len();
                let left = room.checked_sub(if limited { body.operations() } else { 0 });
                room = left.unwrap_or(0);
                bytes <= most && (is_first || left.is_some())
            })
            .map(|(body, since)| {
                first.get_or_insert(since);
                body.reference
            })
            .collect();
        Chosen { bodies, first, later }
    }

    /// A payload was decided. If the leader is one that stays, and passes over what has been
    /// pending here for so long that every honest leader had it, or lets everything wait, the
    /// protocol is told.
    pub(super) fn judge_primary(&mut self, now: Time, decided: &Payload) {
        if !self.protocol.state().judges_leader() || self.sync.is_behind() {
            return;
        }
        let arrivals = self.bodies.arrivals(&decided.bodies);
        let since = self.primary_delay.decided(now, arrivals);
        let reason = if self.passes_over(now, since, decided) {
            GivenUpFor::Censorship
        } else if self.delays(now, decided) {
            GivenUpFor::Slowness
        } else {
            return;
        };
        self.suspect_primary(now, reason);
    }

    pub(super) fn suspect_primary(&mut self, now: Time, reason: GivenUpFor) {
        self.contributions.suspected(self.protocol.state().view(), reason);
        self.protocol.handle(now, Input::PrimarySuspected);
    }

    fn passes_over(&mut self, now: Time, since: Time, decided: &Payload) -> bool {
        let limit = CENSORSHIP_TIMEOUTS * self.config.settings.timeout();
        let (committee, own) = (self.config.verifier.committee(), self.config.id);
        let is_shared = |announced: &Bitmap| is_shared(committee, own, announced);
        let passed_over = self.bodies.passed_over(now, decided, since, limit, is_shared);
        self.primary_delay.is_censorship(now, &passed_over, committee.weights())
    }

    fn delays(&mut self, now: Time, decided: &Payload) -> bool {
        let (committee, own) = (self.config.verifier.committee(), self.config.id);
        let is_shared = |announced: &Bitmap| is_shared(committee, own, announced);
        let Some(before) = self.primary_delay.judges(now) else { return false };
        let waiting = self.bodies.left_waiting(decided, before, is_shared);
        self.primary_delay.is_too_long(now, waiting, committee.weights())
    }
}

/// Returns `true` if a body waits at members of whom one is honest, this one among them.
pub(super) fn is_shared(committee: &Committee, own: ReplicaId, announced: &Bitmap) -> bool {
    let mut waits_at = announced.clone();
    waits_at.insert(own.index());
    committee.includes_honest(&waits_at)
}
