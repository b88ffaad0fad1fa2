//! Bodies on their way: sealed, stored, spread, asked for and announced.

use super::{Reading, Replica, SERVED_BYTES_MAX};
use crate::bodies::{ANNOUNCE_EVERY, Fetch, QUESTION_NAMES_MAX};
use crate::frames::NAMES_MAX;
use crate::primary_delay::PrimaryDelay;
use crate::{Message, ReplicaConfig, Settings};
use quorate_consensus::Input;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::{ReadItem, Record, RecordKind};
use quorate_types::{Body, BodyRef, Effect, Peer, Recipients, ReplicaId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl Replica {
    pub(super) fn seal(&mut self, now: Time) {
        while let Some(body) = self.mempool.seal(now) {
            self.spread(now, body);
        }
    }

    /// Seals what there is where bodies are sealed on demand, for a proposal that would be empty.
    /// Returns `true` if the proposal is to wait: until that is stored, or until it may be sealed.
    pub(super) fn seal_on_demand(&mut self, now: Time) -> bool {
        if self.sealed_on_demand.is_some() {
            return true;
        }
        match self.mempool.seal_on_demand(now) {
            Ok(None) => false,
            Ok(Some(body)) => {
                self.sealed_on_demand = Some(body.reference);
                self.spread(now, body);
                true
            }
            Err(later) => {
                self.propose_at = Some(self.propose_at.map_or(later, |at| at.min(later)));
                true
            }
        }
    }

    fn spread(&mut self, now: Time, body: Body) {
        let body = Arc::new(body);
        self.bodies.hold(now, Arc::clone(&body));
        self.certifier.sealed(&body.reference);
        if self.started {
            self.disseminate(&body);
        } else {
            self.unsent.push(Arc::clone(&body));
        }
        self.effects.push_back(Effect::Store(body));
    }

    /// Bodies go to everybody as they are sealed; with inline bodies only to those who may soon
    /// carry them in a proposal.
    fn disseminate(&mut self, body: &Arc<Body>) {
        if !self.config.settings.inline_bodies {
            self.send(Recipients::All, Message::Body(Arc::clone(body)));
            return;
        }
        let mut leaders: BTreeSet<ReplicaId> =
            self.protocol.state().upcoming_leaders(3).into_iter().collect();
        leaders.remove(&self.config.id);
        for leader in leaders {
            self.send(Recipients::One(leader), Message::Body(Arc::clone(body)));
        }
    }

    pub(super) fn take_body(&mut self, now: Time, from: ReplicaId, body: &Arc<Body>) {
        if self.bodies.take(now, from, body) {
            if mutants::active(Mutant::AcknowledgeBeforeStored) {
                self.certifier.stored(now, &body.reference);
            }
            self.effects.push_back(Effect::Store(Arc::clone(body)));
        }
    }

    /// Something new is durable, and so the incarnation before it: own bodies may leave. So is what
    /// was let go of an epoch before; ★ nothing is promised about bodies before a record says so.
    pub(super) fn start(&mut self) {
        self.started = true;
        if let Some(bytes) = self.start_in_epoch.take() {
            self.effects
                .push_back(Effect::Persist(Record { kind: RecordKind::Incarnation, bytes }));
        }
        for body in std::mem::take(&mut self.unsent) {
            self.disseminate(&body);
        }
    }

    pub(super) fn on_stored(&mut self, now: Time, name: BodyRef) {
        if self.sealed_on_demand == Some(name) {
            self.sealed_on_demand = None;
        }
        if name.is_change() {
            self.changes.stored(&name.digest);
        } else {
            self.on_sealed_stored(now, name);
        }
        for block in self.bodies.stored(name) {
            self.bodies_are_here(now, block);
        }
    }

    fn on_sealed_stored(&mut self, now: Time, name: BodyRef) {
        if let Some(body) = self.bodies.get(&name).filter(|_| !self.bodies.is_decided(&name)) {
            self.mempool.note(body);
        }
        self.certifier.stored(now, &name);
    }

    pub(super) fn serve_bodies(&mut self, to: Peer, names: Vec<BodyRef>) {
        let (mut items, mut bytes) = (Vec::new(), 0);
        for name in names.into_iter().take(QUESTION_NAMES_MAX) {
            match self.bodies.get(&name).cloned() {
                Some(body) => {
                    bytes += body.raw.len();
                    if bytes <= SERVED_BYTES_MAX {
                        self.send(to.into(), Message::Body(body));
                    }
                }
                None => items.push(ReadItem::Body(name)),
            }
        }
        if !items.is_empty() {
            self.read_for(Reading::Bodies(to), items);
        }
    }

    /// Acknowledges and certifies bodies; blocks that waited for what is certified now may get a
    /// vote.
    pub(super) fn certify(&mut self, now: Time) {
        self.certifier.due(now);
        while let Some((to, message)) = self.certifier.poll() {
            self.send(to, message);
        }
        let covered = self.certifier.take_fresh();
        if !covered.is_empty() {
            for block in self.bodies.covered(&covered) {
                self.bodies_are_here(now, block);
            }
        }
    }

    pub(super) fn fetch_due(&mut self, now: Time) {
        for fetch in self.bodies.due(now) {
            match fetch {
                Fetch::Request(member, names) => {
                    self.send(Recipients::One(member), Message::FetchBodies(names));
                }
                Fetch::Load(name) => {
                    self.read_for(Reading::Own, vec![ReadItem::Body(name)]);
                }
            }
        }
    }

    /// A member stores these, and for it they are pending. When all of them are decided here, it
    /// missed that; one that may not sign cannot ask by a timeout, and everybody else may be idle.
    /// It is shown so no more often than it should announce anything.
    pub(super) fn on_announce(&mut self, now: Time, from: ReplicaId, names: &[BodyRef]) {
        self.bodies.hear(now, from, names);
        let is_due = self.shown_at.get(&from).is_none_or(|at| now.since(*at) >= ANNOUNCE_EVERY);
        if is_due && !names.is_empty() && names.iter().all(|name| self.is_ordered(name)) {
            self.shown_at.insert(from, now);
            self.feed(now, Input::ShowDecision { to: from });
        }
    }

    /// Says which bodies have been pending for long: if the author could not reach everybody, or is
    /// gone, whoever leads next must hear of them all the same.
    pub(super) fn announce_due(&mut self, now: Time) {
        if self.announce_at.is_none_or(|at| at > now) {
            return;
        }
        let every = self.announce_every();
        self.announce_at = Some(now + every);
        let mut names = self.bodies.pending_since(now - every, NAMES_MAX - 1);
        names.extend(self.due_change().map(BodyRef::of_change));
        if !names.is_empty() {
            self.send(Recipients::All, Message::Announce(names));
        }
    }

    /// Interval at which pending bodies are announced that have waited longer than a decision
    /// should take: half of the longest time of a view.
    pub(super) fn announce_every(&self) -> Duration {
        announce_every(&self.config.settings)
    }
}

fn announce_every(settings: &Settings) -> Duration {
    ANNOUNCE_EVERY.max(settings.timeout() / 2)
}

/// Nothing is known of any primary. What an author shows to all but the primary they announce to
/// it, and it fetches that and has it decided within as long again.
pub(super) fn primary_delay(config: &ReplicaConfig) -> PrimaryDelay {
    let settings = &config.settings;
    PrimaryDelay::new(config.id, settings.timeout(), 2 * announce_every(settings))
}
