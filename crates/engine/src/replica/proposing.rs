//! What a leader orders, and what is held against one that passes bodies over.

use super::Replica;
use crate::bodies::PAYLOAD_BYTES_MAX;
use quorate_consensus::Input;
use quorate_crypto::Bitmap;
use quorate_types::{Body, BodyRef, Machine, Payload, Time};
use std::collections::BTreeSet;

/// A leader that orders younger bodies, or none, leaves none waiting for so many view timeouts: within
/// them what was announced to it, it has.
const OVERTAKING_PATIENCE: u32 = 4;

/// What may be proposed.
#[derive(Default)]
struct Chosen {
    bodies: Vec<BodyRef>,
    /// When the first of them arrived.
    first: Option<Time>,
    /// When the first may be proposed of those that may not be yet.
    later: Option<Time>,
}

impl Replica {
    /// Hands the protocol what it may propose, if it wishes to and there is anything to say.
    pub(super) fn propose(&mut self, now: Time) {
        self.propose_at = None;
        let Some(wish) = &self.wish else { return };
        let carried: BTreeSet<BodyRef> = wish.carried.iter().copied().collect();
        let Chosen { bodies, first, later } =
            if wish.nothing { Chosen::default() } else { self.choose_bodies(now, &carried) };
        self.propose_at = later;
        if bodies.is_empty() && !wish.at_once {
            return;
        }
        let company = self.batching.waits(bodies.len(), wish.concurrent);
        let until = first.zip(company).map(|(since, wait)| since + wait);
        if let Some(until) = until.filter(|until| now < *until) {
            self.propose_at = Some(later.map_or(until, |later| later.min(until)));
            return;
        }
        self.batching.saw(self.bodies.pending_count().saturating_sub(carried.len()));
        let stamp = wish.stamp_floor_ms.max(self.config.wall_origin_ms + now.as_millis());
        let payload = Payload::new(wish.height, stamp, bodies);
        let (view, parent) = (wish.view, wish.parent);
        (self.wish, self.propose_at) = (None, None);
        self.feed(now, Input::Payload { view, parent, payload });
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
            .take(Payload::BODIES_MAX)
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

    /// A payload was decided that passes over what has been pending here for so long that every honest
    /// leader had it: the protocol is told.
    pub(super) fn mind_order(&mut self, now: Time, decided: &Payload) {
        if !self.protocol.keeps_its_leader() || !self.config.signs || self.sync.is_behind() {
            return;
        }
        let patience = OVERTAKING_PATIENCE * self.config.settings.timeout();
        let since = self.view_since;
        let (committee, own) = (self.config.verifier.committee(), self.config.id);
        let is_shared = |announced: &Bitmap| {
            let mut waits_at = announced.clone();
            waits_at.insert(own.index());
            committee.includes_honest(&waits_at)
        };
        if self.bodies.are_overtaken(now, decided, since, patience, is_shared) {
            self.protocol.handle(now, Input::Overtaken);
        }
    }
}
