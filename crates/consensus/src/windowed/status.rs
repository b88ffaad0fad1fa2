//! Asking for what was lost on the way, and helping those who ask.
//!
//! Paper 002 (§II) assumes a layer that sends again. Here whoever waits for something says where it
//! stands, every so often while it waits, and everybody who can shows it what it lacks. Without this a
//! collector that leaves one replica out of each slot would stop them all, one after the other.

use super::messages::{Message, Place, SignShare, Status};
use super::records::DecidedSlot;
use super::state::Windowed;
use crate::Output;
use quorate_crypto::Digest;
use quorate_types::{BlockId, Height, Recipients, ReplicaId, Time, View};
use std::collections::BTreeMap;
use std::time::Duration;

/// Slots that one answer covers.
const SLOTS_MAX: usize = 16;

/// Questions after a start, whether or not anything is known to be missing.
const QUESTIONS_AT_START: u32 = 4;

/// When to ask, and whom to answer.
#[derive(Debug)]
pub(super) struct Helping {
    every: Duration,
    needed: bool,
    /// Questions left to ask because it just started.
    starting: u32,
    ask_at: Option<Time>,
    turn: u32,
    answered: BTreeMap<ReplicaId, Time>,
    shown_changes: BTreeMap<ReplicaId, Time>,
}

impl Helping {
    /// One that asks so often while help is needed.
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            needed: false,
            starting: 0,
            ask_at: None,
            turn: 0,
            answered: BTreeMap::new(),
            shown_changes: BTreeMap::new(),
        }
    }

    /// How often it asks.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// It starts: what was decided meanwhile nobody will say unasked.
    pub(super) fn start(&mut self, now: Time) {
        self.starting = QUESTIONS_AT_START;
        self.ask_by(now);
    }

    /// Whether something is waited for.
    pub(super) fn set_needed(&mut self, now: Time, needed: bool) {
        let needed = needed || self.starting > 0;
        if needed != self.needed {
            self.needed = needed;
            self.ask_at = needed.then(|| now + self.every);
        }
    }

    /// What was waited for came; there may be more.
    pub(super) fn progressed(&mut self, now: Time) {
        self.ask_at = self.needed.then(|| now + self.every);
    }

    /// Asks no later than that.
    pub(super) fn ask_by(&mut self, at: Time) {
        self.needed = true;
        self.ask_at = Some(self.ask_at.map_or(at, |ask_at| ask_at.min(at)));
    }

    /// When to ask.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.ask_at
    }

    /// Whether it is time to ask.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.ask_at.is_some_and(|at| at <= now);
        if is_due {
            self.ask_at = self.needed.then(|| now + self.every);
            self.turn = self.turn.wrapping_add(1);
            self.starting = self.starting.saturating_sub(1);
        }
        is_due
    }

    /// Whether this member was not answered just now: who asks more often than it may gets nothing.
    fn may_answer(&mut self, now: Time, to: ReplicaId) -> bool {
        is_due_again(&mut self.answered, now, to, self.every / 8)
    }

    /// Likewise of view changes, which are large.
    pub(super) fn may_show_changes(&mut self, now: Time, to: ReplicaId) -> bool {
        is_due_again(&mut self.shown_changes, now, to, self.every / 8)
    }
}

fn is_due_again(
    answered: &mut BTreeMap<ReplicaId, Time>,
    now: Time,
    to: ReplicaId,
    every: Duration,
) -> bool {
    let is_due = answered.get(&to).is_none_or(|at| now.since(*at) >= every);
    if is_due {
        answered.insert(to, now);
    }
    is_due
}

impl Windowed {
    // ---- asking ---------------------------------------------------------------------------------

    /// Says where it stands, if it waits.
    pub(super) fn ask_due(&mut self, now: Time) {
        if self.helping.is_due(now) {
            self.fetch_missing_changes();
            self.fetch_history();
            let status = self.standing();
            self.send(Recipients::All, Message::Status(status));
        }
    }

    /// Later slots are decided, and nobody shows the next one: those who have it have it on disk.
    fn fetch_history(&mut self) {
        let next = self.decided.next();
        let is_missing = self.window.get(next).is_none_or(|slot| slot.proof.is_none());
        let later = self.window.after(next).filter_map(|(_, slot)| slot.proof.as_ref()).next();
        if let Some(proof) = later.filter(|_| is_missing) {
            let target = BlockId(proof.certificate.at.digest);
            self.outputs.push_back(Output::Behind { target, source: None });
        }
    }

    /// A slot was decided whose value is not here, though its proof is: whoever showed that has it.
    pub(super) fn ask_soon(&mut self, now: Time, from: ReplicaId, slot: Height) {
        let lacks = self.window.get(slot).is_some_and(|known| known.lacking().next().is_some());
        if lacks && from != self.id() {
            let status = self.standing();
            self.send(Recipients::One(from), Message::Status(status));
            self.helping.ask_by(now + self.helping.every());
        }
    }

    fn standing(&self) -> Status {
        let beyond = || self.window.after(self.decided);
        let has = beyond().filter(|(_, slot)| slot.proof.is_some()).map(|(slot, _)| slot);
        let lacks = beyond().flat_map(|(slot, known)| known.lacking().map(move |d| (slot, d)));
        Status {
            view: self.view,
            changing: self.changing,
            stable: self.window.stable,
            decided: self.decided,
            has: has.collect(),
            lacks: lacks.take(SLOTS_MAX).collect(),
            turn: self.helping.turn,
        }
    }

    // ---- helping --------------------------------------------------------------------------------

    /// A member waits for something.
    pub(super) fn on_status(&mut self, now: Time, from: ReplicaId, status: &Status) {
        if status.decided > self.decided {
            self.helping.ask_by(now + self.helping.every() / 4);
        }
        if !self.helping.may_answer(now, from) {
            return;
        }
        let is_before = status.view < self.view || (status.view == self.view && status.changing);
        if is_before {
            self.show_view(from);
        }
        if status.stable < self.window.stable
            && let Some(checkpoint) = self.checkpoint.clone()
        {
            self.send(Recipients::One(from), Message::Stable(checkpoint));
        }
        for (slot, digest) in status.lacks.iter().take(SLOTS_MAX) {
            let value = self.window.get(*slot).and_then(|known| known.payloads.get(digest));
            if let Some(payload) = value.cloned() {
                self.send(Recipients::One(from), Message::Payload(payload));
            }
        }
        let next = status.decided.next();
        if next <= self.decided && self.window.get(next).is_none() {
            // Only its disk has that: what is shown leads there.
            self.show_last_decision(from);
            return;
        }
        let last = self.window.last().0.min(status.decided.0 + SLOTS_MAX as u64);
        let missing = (status.decided.0 + 1..=last).map(Height);
        for slot in missing.filter(|slot| !status.has.contains(slot)) {
            self.show_slot(from, slot, status);
        }
    }

    /// What is known of a slot that a member misses.
    fn show_slot(&mut self, to: ReplicaId, slot: Height, status: &Status) {
        let Some(known) = self.window.get(slot) else { return };
        if let Some((proof, payload)) = known.decided() {
            if self.answers(slot, status.turn) {
                let decided = DecidedSlot { payload: payload.clone(), proof: proof.clone() };
                self.send(Recipients::One(to), Message::Decided(Box::new(decided)));
            }
            return;
        }
        if status.view != self.view || status.changing || !self.takes_part() {
            return;
        }
        let proposed = known.pre_prepare.clone().filter(|_| self.is_primary());
        let prepared = known.prepared.clone().filter(|known| known.at.view == self.view);
        let accepted = known.accepted.filter(|(view, _)| *view == self.view && known.is_stored);
        if let Some(proposed) = proposed {
            self.send(Recipients::One(to), Message::PrePrepare(proposed));
        }
        if let Some(prepared) = &prepared
            && self.rules.collectors
        {
            self.send(Recipients::One(to), Message::Prepare(prepared.clone()));
        }
        self.vote_again(to, slot, accepted, prepared.map(|prepared| prepared.at));
    }

    /// Whether it falls to this member to show a decided slot: to as many as include an honest one.
    fn answers(&self, slot: Height, turn: u32) -> bool {
        let members = self.members() as u64;
        let place = (slot.0 + u64::from(turn) + u64::from(self.id().0)) % members;
        place <= self.verifier.committee().faulty_max()
    }

    /// Its votes for a slot, to a collector that may have missed them.
    fn vote_again(
        &mut self,
        to: ReplicaId,
        slot: Height,
        accepted: Option<(View, Digest)>,
        prepared: Option<Place>,
    ) {
        let collects = !self.rules.collectors || self.ranked(self.view, slot).contains(&to);
        if !collects {
            return;
        }
        if let Some((view, digest)) = accepted {
            let at = Place { view, slot, digest };
            let shares = self.shares(&at);
            self.send(Recipients::One(to), Message::SignShare(SignShare { at, shares }));
        }
        if let Some(at) = prepared {
            let share = self.commit_share(&at);
            self.send(Recipients::One(to), Message::CommitShare(share));
        }
    }
}
