//! The bodies that this replica holds, waits for, and may propose.
//!
//! A body becomes *pending* once it is stored: it may be proposed, and it counts as work. Deciding
//! it ends that; executing it drops it from memory. Bodies that a proposal or a decision names and
//! that are not here are *wanted*: after a moment's grace (they are usually on their way, unless
//! they were ordered long ago) they are asked for, first of whoever must have them, then of
//! everybody in turn. Reaching a quorum drops nothing.

mod asking;
mod lateness;
mod pending;
mod sizes;

use crate::frames::NAMES_MAX;
use crate::silence::Silence;
use asking::{FETCH_RETRY, HEARSAY_MAX};
use lateness::Lateness;
use pending::Pending;
use quorate_consensus::Occupancy;
use quorate_crypto::Bitmap;
use quorate_types::{BlockId, Body, BodyRef, Height, Payload, ReplicaId, Time};
pub(crate) use sizes::QUESTION_NAMES_MAX;
use sizes::UsualSizes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of bodies that one payload orders at most. Between continents there are some seven views a
/// second: this times that bounds what a committee orders.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Pending bodies are announced no more often than this, and not before they waited as long: their
/// author had that time to send them.
pub(crate) const ANNOUNCE_EVERY: Duration = Duration::from_millis(500);
/// No author has more than this part of a view to send what the view's proposal names.
const GRACE_PART_OF_VIEW: u32 = 4;
/// Waiting bodies of one author that a judgement of a primary looks at.
const WAITING_MAX: usize = 64;
/// Decided names remembered, so that a late copy does not become pending again.
const DECIDED_KEPT: usize = 65_536;

/// Reason for which a body is wanted. The lesser is the more urgent: of decided bodies that of the
/// lowest height, without which nothing above executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// A block decided long ago orders it: it must come, and nobody is sending it.
    Overdue(Height),
    /// A decided block orders it: it must come.
    Decided(Height),
    /// A proposal names it: needed while that block may be decided.
    Proposed,
    /// A member says that it holds it.
    Hearsay,
    /// On disk since an earlier run and perhaps never decided.
    Own,
}

impl Need {
    fn is_overdue(self) -> bool {
        matches!(self, Self::Overdue(_))
    }

    /// Returns `true` if nothing executes without it.
    fn is_decided(self) -> bool {
        matches!(self, Self::Overdue(_) | Self::Decided(_))
    }
}

#[derive(Debug)]
struct Want {
    need: Need,
    source: ReplicaId,
    since: Time,
    attempts: u32,
    /// Of whom it was asked last, and when.
    asked: Option<(ReplicaId, Time)>,
    ask_at: Time,
}

impl Want {
    /// Returns `true` if nothing here waits for it.
    fn is_optional(&self) -> bool {
        self.need >= Need::Hearsay
    }

    /// One member at a time; a body without which nothing executes is asked of ever more of them,
    /// so that in a large committee too it is soon known that nobody has it.
    fn asks_at_once(&self) -> u32 {
        if self.need.is_decided() { (self.attempts / 3).max(1) } else { 1 }
    }
}

/// The book of bodies.
#[derive(Debug)]
pub(crate) struct Bodies {
    id: ReplicaId,
    members: u16,
    author_bytes_max: usize,
    /// Time for which a vote waits for an author at most.
    vote_grace_max: Duration,
    vote_retry: Duration,
    /// In memory: being stored, pending, or decided and waiting to execute.
    held: BTreeMap<BodyRef, Held>,
    held_bytes: usize,
    author_bytes: BTreeMap<ReplicaId, usize>,
    pending: Pending,
    arrivals: u64,
    wanted: BTreeMap<BodyRef, Want>,
    /// Names that each member announced last and that are not wanted yet.
    heard: BTreeMap<ReplicaId, VecDeque<BodyRef>>,
    /// Some of them may be wanted now.
    has_hearsay_room: bool,
    /// Who left what must come unanswered.
    silence: Silence,
    /// Each author's own: one that is always late delays nobody else's bodies.
    lateness: BTreeMap<ReplicaId, Lateness>,
    /// What they usually send at once.
    sizes: UsualSizes,
    /// Blocks that wait for bodies.
    waiting: BTreeMap<BlockId, Waiting>,
    decided: BTreeSet<BodyRef>,
    decided_order: VecDeque<BodyRef>,
    /// Those of `decided` that were executed: on disk, not in memory.
    executed: BTreeSet<BodyRef>,
    /// On disk since an earlier run, not in memory.
    recovered: BTreeSet<BodyRef>,
}

/// A block that waits for bodies.
#[derive(Debug)]
struct Waiting {
    missing: BTreeSet<BodyRef>,
    /// Of those that are stored.
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    body: Arc<Body>,
    stored: bool,
    arrival: u64,
    since: Time,
    /// Time from which on it was missed before it came.
    wanted: Option<Time>,
    /// Members who said that it waits at theirs too.
    announced: Bitmap,
}

/// Action to get wanted bodies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Request bodies of a member.
    Request(ReplicaId, Vec<BodyRef>),
    /// Read it back from the own disk.
    Load(BodyRef),
}

impl Bodies {
    /// A store of bodies without any.
    #[must_use]
    pub(crate) fn new(id: ReplicaId, members: usize, author_bytes_max: usize) -> Self {
        Self {
            id,
            members: u16::try_from(members).expect("committees are limited to 1,024"),
            author_bytes_max,
            vote_grace_max: FETCH_RETRY,
            vote_retry: FETCH_RETRY,
            held: BTreeMap::new(),
            held_bytes: 0,
            author_bytes: BTreeMap::new(),
            pending: Pending::default(),
            arrivals: 0,
            wanted: BTreeMap::new(),
            heard: BTreeMap::new(),
            has_hearsay_room: false,
            silence: Silence::default(),
            lateness: BTreeMap::new(),
            sizes: UsualSizes::default(),
            waiting: BTreeMap::new(),
            decided: BTreeSet::new(),
            decided_order: VecDeque::new(),
            executed: BTreeSet::new(),
            recovered: BTreeSet::new(),
        }
    }

    /// The same, where views time out after so long: an author that makes its bodies late must not
    /// end those that name them.
    pub(crate) fn in_views_of(self, timeout: Duration) -> Self {
        let vote_grace_max = timeout / GRACE_PART_OF_VIEW;
        Self { vote_grace_max, vote_retry: FETCH_RETRY.min(timeout / 2), ..self }
    }

    /// The same, where what a proposal names is asked for without waiting for its author, unless
    /// there `is` a grace.
    pub(crate) fn with_grace(self, is: bool) -> Self {
        let vote_grace_max = if is { self.vote_grace_max } else { Duration::ZERO };
        Self { vote_grace_max, ..self }
    }

    /// These are on disk since an earlier run.
    pub(crate) fn recover(&mut self, stored: Vec<BodyRef>) {
        self.recovered.extend(stored);
    }

    /// These were executed in an earlier run: no late copy becomes pending.
    pub(crate) fn recall(&mut self, names: &[BodyRef]) {
        self.decide(names);
        for name in names {
            if self.recovered.remove(name) {
                self.executed.insert(*name);
            }
        }
    }

    /// Makes pending again what an earlier run stored and nobody decided since: an author that is
    /// gone cannot send it again, and what is pending nowhere is never ordered and stays on disk
    /// for ever.
    pub(crate) fn revive(&mut self, now: Time) {
        let undecided: Vec<BodyRef> =
            self.recovered.iter().filter(|name| !self.decided.contains(name)).copied().collect();
        for name in undecided {
            let source = self.spread(&name);
            self.wanted.entry(name).or_insert(Want {
                need: Need::Own,
                source,
                since: now,
                attempts: 0,
                asked: None,
                ask_at: now,
            });
        }
    }

    /// The member to ask first for a body that everybody should have: another one for each body.
    pub(crate) fn spread(&self, name: &BodyRef) -> ReplicaId {
        ReplicaId(u16::from(name.digest.0[0]) % self.members)
    }

    /// Time at which the oldest of these bodies came, of those that are in memory and were not
    /// decided before.
    pub(crate) fn oldest_arrival(&self, names: &[BodyRef]) -> Option<Time> {
        let undecided = names.iter().filter(|name| !self.decided.contains(name));
        undecided.filter_map(|name| Some(self.held.get(name)?.since)).min()
    }

    /// Authors of these bodies, with the times at which they came: of those that are pending.
    pub(crate) fn arrivals(&self, names: &[BodyRef]) -> impl Iterator<Item = (ReplicaId, Time)> {
        let undecided = names.iter().filter(|name| !self.decided.contains(name));
        let held = undecided.filter_map(|name| self.held.get(name));
        held.filter(|held| held.stored).map(|held| (held.body.reference.author, held.since))
    }

    /// The same of those that are pending at enough members (`is_shared`) and came before a time,
    /// but for those that are decided now. Of each author the oldest are looked at, at most
    /// [`WAITING_MAX`]: nobody's hide behind another's.
    pub(crate) fn left_waiting(
        &self,
        decided: &Payload,
        before: Time,
        is_shared: impl Fn(&Bitmap) -> bool,
    ) -> impl Iterator<Item = (ReplicaId, Time)> {
        let ordered: BTreeSet<BodyRef> = decided.bodies.iter().copied().collect();
        let authors = (0..self.members).map(ReplicaId);
        let oldest = authors.flat_map(move |author| {
            let held = self.pending.names_of(author).filter_map(|name| self.held.get(name));
            held.take_while(move |held| held.since < before).take(WAITING_MAX)
        });
        let left = oldest.filter(move |held| !ordered.contains(&held.body.reference));
        let shared = left.filter(move |held| is_shared(&held.announced));
        shared.map(|held| (held.body.reference.author, held.since))
    }

    /// Returns `true` if a block orders it and it is not here.
    pub(crate) fn is_needed(&self, name: &BodyRef) -> bool {
        self.wanted.get(name).is_some_and(|want| want.need <= Need::Proposed)
    }

    /// Number of times that it was asked for.
    pub(crate) fn attempts(&self, name: &BodyRef) -> u32 {
        self.wanted.get(name).map_or(0, |want| want.attempts)
    }

    /// Takes a body that came from `from`; `true` if it is new and must be stored. Unless a block
    /// names it, an author may have only so many undecided bytes here; unasked, a member may send
    /// only its own bodies.
    pub(crate) fn take(&mut self, now: Time, from: ReplicaId, body: &Arc<Body>) -> bool {
        let name = body.reference;
        if name.author == from {
            self.observe_lateness(now, &name);
        }
        let need = self.wanted.get(&name).map(|want| want.need);
        if name.author == from || need.is_some_and(Need::is_decided) {
            self.sizes.observe(body);
        }
        // Others' bodies are sent to those who ask.
        if need.is_some() || name.author != from {
            self.silence.heard(from);
        }
        if self.held.contains_key(&name) || (self.decided.contains(&name) && need.is_none()) {
            return false;
        }
        let used = self.author_bytes.get(&name.author).copied().unwrap_or(0);
        let within_quota = used + body.raw.len() <= self.author_bytes_max;
        let welcome = match need {
            Some(Need::Overdue(_) | Need::Decided(_) | Need::Proposed) => true,
            Some(Need::Hearsay | Need::Own) => within_quota,
            None => within_quota && name.author == from,
        };
        if welcome {
            self.hold(now, Arc::clone(body));
        }
        welcome
    }

    /// The author's copy is here: what is asked for too early arrives twice.
    fn observe_lateness(&mut self, now: Time, name: &BodyRef) {
        let wanted = match self.wanted.get(name) {
            Some(want) if want.need.is_overdue() => return,
            want => want.map(|want| want.since),
        };
        let fetched = || self.held.get(name).and_then(|held| held.wanted);
        let late = match wanted.or_else(fetched) {
            Some(since) => now.since(since),
            None if self.held.contains_key(name) => return,
            None => Duration::ZERO,
        };
        self.lateness.entry(name.author).or_default().observe(late);
    }

    /// Holds a body in memory, not yet stored; once.
    pub(crate) fn hold(&mut self, now: Time, body: Arc<Body>) {
        let name = body.reference;
        if self.held.contains_key(&name) {
            return;
        }
        // Here, if not yet stored: asking again would bring it twice.
        let wanted = self.wanted.remove(&name);
        self.has_hearsay_room |= wanted.as_ref().is_some_and(Want::is_optional);
        let wanted = wanted.filter(|want| !want.need.is_overdue());
        let wanted = wanted.map(|want| want.since);
        self.held_bytes += body.raw.len();
        *self.author_bytes.entry(name.author).or_default() += body.raw.len();
        let arrival = self.arrivals;
        self.arrivals += 1;
        let announced = Bitmap::new(usize::from(self.members));
        self.held
            .insert(name, Held { body, stored: false, arrival, since: now, wanted, announced });
    }

    /// The body is durable: it is pending unless decided already, or a change of committee. Returns
    /// the blocks that waited for nothing else.
    pub(crate) fn stored(&mut self, name: BodyRef) -> Vec<BlockId> {
        let Some(held) = self.held.get_mut(&name) else {
            return Vec::new();
        };
        held.stored = true;
        if !self.decided.contains(&name) && !name.is_change() {
            self.pending.insert(held.arrival, name);
        }
        self.available(&[name])
    }

    /// These need not be here for a vote. Returns the blocks that waited for nothing else; what was
    /// wanted for their sake is wanted no longer.
    pub(crate) fn covered(&mut self, names: &[BodyRef]) -> Vec<BlockId> {
        for name in names {
            if self.wanted.get(name).is_some_and(|want| want.need == Need::Proposed) {
                self.wanted.remove(name);
            }
        }
        self.available(names)
    }

    fn available(&mut self, found: &[BodyRef]) -> Vec<BlockId> {
        for block in self.waiting.values_mut() {
            for name in found {
                if block.missing.remove(name) {
                    block.bytes += bytes_of(&self.held, name);
                }
            }
        }
        let waited = self.waiting.len();
        self.waiting.retain(|_, block| block.bytes <= PAYLOAD_BYTES_MAX);
        if self.waiting.len() < waited {
            self.forget_proposed();
        }
        let is_ready = |block: &Waiting| block.missing.is_empty();
        let ready: Vec<BlockId> =
            self.waiting.iter().filter(|(_, block)| is_ready(block)).map(|(id, _)| *id).collect();
        self.waiting.retain(|_, block| !is_ready(block));
        ready
    }

    /// A proposal names these bodies: `true` when all are stored; otherwise the block waits and
    /// [`Bodies::stored`] names it later. One that names more bytes than any honest leader would
    /// waits for ever, and for nothing: what it names may have been decided long ago, and is on the
    /// disk.
    pub(crate) fn require(
        &mut self,
        now: Time,
        block: BlockId,
        names: &[BodyRef],
        source: ReplicaId,
    ) -> bool {
        let missing: BTreeSet<BodyRef> =
            names.iter().copied().filter(|name| !self.is_stored(name)).collect();
        for name in &missing {
            self.want(now, *name, source, Need::Proposed);
        }
        let here = names.iter().filter(|name| !missing.contains(*name));
        let bytes = here.map(|name| bytes_of(&self.held, name)).sum();
        if missing.is_empty() {
            return bytes <= PAYLOAD_BYTES_MAX;
        }
        self.waiting.insert(block, Waiting { missing, bytes });
        false
    }

    /// Lets go what nobody can need any more: blocks that may not be voted for wait no longer, nor
    /// does what only they named; and decided bodies that no height `needs` leave memory.
    pub(crate) fn tidy(
        &mut self,
        may_vote: impl Fn(BlockId) -> bool,
        needs: impl Fn(&BodyRef) -> bool,
    ) {
        self.waiting.retain(|block, _| may_vote(*block));
        self.forget_proposed();
        let done: Vec<BodyRef> = self
            .held
            .iter()
            .filter(|(name, held)| held.stored && self.decided.contains(name) && !needs(name))
            .map(|(name, _)| *name)
            .collect();
        self.executed(&done);
    }

    /// Wants no longer what only blocks named that wait no longer.
    fn forget_proposed(&mut self) {
        let waiting = &self.waiting;
        self.wanted.retain(|name, want| {
            want.need != Need::Proposed
                || waiting.values().any(|block| block.missing.contains(name))
        });
    }

    pub(crate) fn occupancy(&self) -> [Occupancy; 6] {
        let members = usize::from(self.members);
        let hearsay = self.hearsay().values().sum();
        let heard = self.heard.values().map(VecDeque::len).sum();
        [
            Occupancy::new("wanted", hearsay, HEARSAY_MAX * members),
            Occupancy::new("heard", heard, NAMES_MAX * members),
            Occupancy::new("lateness", self.lateness.len(), members),
            Occupancy::new("sizes", self.sizes.len(), members),
            self.silence.occupancy(self.members),
            Occupancy::new("decided", self.decided.len(), DECIDED_KEPT),
        ]
    }

    /// These are decided: no longer pending.
    pub(crate) fn decide(&mut self, names: &[BodyRef]) {
        for name in names {
            if let Some(held) = self.held.get(name) {
                self.pending.remove(held.arrival);
            }
            if self.decided.insert(*name) {
                self.decided_order.push_back(*name);
            }
        }
        while self.decided_order.len() > DECIDED_KEPT {
            if let Some(oldest) = self.decided_order.pop_front() {
                self.decided.remove(&oldest);
                self.executed.remove(&oldest);
            }
        }
    }

    /// All of a block's bodies, if all are stored.
    #[must_use]
    pub(crate) fn collect(&self, names: &[BodyRef]) -> Option<Vec<Arc<Body>>> {
        names
            .iter()
            .map(|name| self.held.get(name).filter(|h| h.stored).map(|h| Arc::clone(&h.body)))
            .collect()
    }

    /// A body in memory.
    #[must_use]
    pub(crate) fn get(&self, name: &BodyRef) -> Option<&Arc<Body>> {
        self.held.get(name).map(|held| &held.body)
    }

    /// These were executed, or skipped by a snapshot: out of memory, and wanted no longer.
    pub(crate) fn executed(&mut self, names: &[BodyRef]) {
        for name in names {
            self.wanted.remove(name);
            let Some(held) = self.held.remove(name) else {
                continue;
            };
            // Where it came when its name was forgotten among those decided.
            self.pending.remove(held.arrival);
            self.held_bytes -= held.body.raw.len();
            if let Some(bytes) = self.author_bytes.get_mut(&name.author) {
                *bytes -= held.body.raw.len();
            }
            if self.decided.contains(name) {
                self.executed.insert(*name);
            }
        }
    }

    /// Pending bodies in the order of their arrival, each with its time.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (&Arc<Body>, Time)> {
        let held = self.pending.names().filter_map(|name| self.held.get(name));
        held.map(|held| (&held.body, held.since))
    }

    /// What members said of their own places is of a time that is over: what waits there still they
    /// say again.
    pub(crate) fn forget_announcements(&mut self) {
        let members = usize::from(self.members);
        self.held.values_mut().for_each(|held| held.announced = Bitmap::new(members));
        self.heard.clear();
    }

    /// A member says that a body waits at its own place.
    pub(crate) fn announced(&mut self, name: &BodyRef, by: ReplicaId) {
        if let Some(held) = self.held.get_mut(name) {
            held.announced.insert(by.index());
        }
    }

    /// Members that said so.
    pub(crate) fn announced_by(&self, name: &BodyRef) -> Option<&Bitmap> {
        self.held.get(name).map(|held| &held.announced)
    }

    /// Authors that a payload passes over, each with the time for which its oldest body waits: one
    /// that has been pending here for longer than `limit`, counted from `since` at the earliest,
    /// while the payload orders nothing, or something younger. Leaders take what is pending in the
    /// order of its arrival, and within that time all have it. Only what waits at enough members
    /// counts (`is_shared`): what was decided while this one was away is pending here alone.
    pub(crate) fn passed_over(
        &self,
        now: Time,
        decided: &Payload,
        since: Time,
        limit: Duration,
        is_shared: impl Fn(&Bitmap) -> bool,
    ) -> Vec<(ReplicaId, Duration)> {
        let before = now - limit;
        // Asked with each decision, and nearly always with nothing so old.
        let oldest = self.pending.names().next().and_then(|name| self.held.get(name));
        if before <= since || oldest.is_none_or(|oldest| oldest.since >= before) {
            return Vec::new();
        }
        let arrivals = decided.bodies.iter().filter_map(|name| Some(self.held.get(name)?.since));
        let youngest = arrivals.max();
        let mut waiting = BTreeMap::new();
        for (author, at) in self.left_waiting(decided, before, is_shared) {
            waiting.entry(author).or_insert(at.max(since));
        }
        let is_passed = |at: &Time| {
            decided.is_empty() || youngest.is_some_and(|youngest| youngest > *at + limit)
        };
        let passed = waiting.into_iter().filter(|(_, at)| is_passed(at));
        passed.map(|(author, at)| (author, now.since(at))).collect()
    }

    /// Pending bodies that arrived before `since`, for an announcement.
    #[must_use]
    pub(crate) fn pending_since(&self, since: Time, max: usize) -> Vec<BodyRef> {
        self.pending
            .names()
            .copied()
            .filter(|name| self.held.get(name).is_some_and(|held| held.since <= since))
            .take(max)
            .collect()
    }

    /// Returns `true` if it was decided, not long ago.
    pub(crate) fn is_decided(&self, name: &BodyRef) -> bool {
        self.decided.contains(name)
    }

    /// Number of bodies that are stored and not decided.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns `true` if any body is stored and not decided.
    #[must_use]
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes of bodies in memory.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    fn is_on_disk(&self, name: &BodyRef) -> bool {
        self.recovered.contains(name) || self.executed.contains(name)
    }

    /// Returns `true` if it is in memory and durable.
    pub(crate) fn is_stored(&self, name: &BodyRef) -> bool {
        self.held.get(name).is_some_and(|held| held.stored)
    }
}

fn bytes_of(held: &BTreeMap<BodyRef, Held>, name: &BodyRef) -> usize {
    held.get(name).map_or(0, |held| held.body.raw.len())
}

#[cfg(test)]
mod tests;
