//! Asking others for bodies: what is wanted, of whom, when, and how much at once.
//!
//! What blocks and decisions name comes before what members only say to exist. A body that a
//! proposal names is asked of its proposer first, which has it; then of everybody in turn.

use super::lateness::{GRACE_MIN, Lateness};
use super::sizes::QUESTION_BYTES;
use super::{ANNOUNCE_EVERY, Bodies, Fetch, Need, Want};
use crate::frames::NAMES_MAX;
use quorate_types::{BodyRef, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Between the first two attempts at one body; once and twice as long again between later ones.
pub(super) const FETCH_RETRY: Duration = Duration::from_millis(500);
/// Of what blocks and decisions name.
pub(super) const FETCH_NEEDED: FetchLimits =
    FetchLimits { is_optional: false, under_way_max: 4 * QUESTION_BYTES, questions_max: 2 };
/// Of what is only said to exist.
pub(super) const FETCH_OPTIONAL: FetchLimits =
    FetchLimits { is_optional: true, under_way_max: 4 * QUESTION_BYTES, questions_max: 1 };
/// Names that an announcement made us want are dropped after this many attempts.
pub(super) const HEARSAY_ATTEMPTS: u32 = 8;
/// Most names wanted on one member's hearsay at a time.
pub(super) const HEARSAY_MAX: usize = 64;

/// Limits on asking for bodies.
pub(super) struct FetchLimits {
    /// For those that nothing here needs.
    is_optional: bool,
    /// Most bytes, by their authors' usual sizes, that are asked for and not here yet: those that
    /// arrive let the next be asked for.
    pub(super) under_way_max: usize,
    /// Most requests to one member under way, of any kind: it would drop more than two. What is
    /// wanted meanwhile shares the next.
    questions_max: usize,
}

impl FetchLimits {
    fn are_for(&self, want: &Want) -> bool {
        self.is_optional == want.is_optional()
    }
}

impl Bodies {
    /// A member says that these wait at its own place: it is asked for those that are not here, so
    /// many at a time.
    pub(crate) fn hear(&mut self, now: Time, source: ReplicaId, names: &[BodyRef]) {
        for name in names {
            self.announced(name, source);
        }
        let heard = self.heard.entry(source).or_default();
        if names.len() >= heard.len() {
            heard.clear();
        }
        heard.extend(names);
        heard.truncate(NAMES_MAX);
        self.has_hearsay_room = true;
        self.want_heard(now);
    }

    /// Wants what members announced, as far as there is room on their hearsay.
    fn want_heard(&mut self, now: Time) {
        if !std::mem::take(&mut self.has_hearsay_room) || self.heard.is_empty() {
            return;
        }
        let mut heard = std::mem::take(&mut self.heard);
        let mut wanted = self.hearsay();
        for (source, names) in &mut heard {
            let wanted = wanted.entry(*source).or_default();
            while *wanted < HEARSAY_MAX
                && let Some(name) = names.pop_front()
            {
                if self.is_news(&name) {
                    self.want_anew(now, name, *source, Need::Hearsay);
                    *wanted += 1;
                }
            }
        }
        heard.retain(|_, names| !names.is_empty());
        self.heard = heard;
    }

    /// Number of names wanted on the hearsay of each member.
    pub(super) fn hearsay(&self) -> BTreeMap<ReplicaId, usize> {
        let mut wanted = BTreeMap::new();
        for want in self.wanted.values().filter(|want| want.need == Need::Hearsay) {
            *wanted.entry(want.source).or_default() += 1;
        }
        wanted
    }

    /// Returns `true` if hearsay of this body says something that is not known here.
    fn is_news(&self, name: &BodyRef) -> bool {
        !self.held.contains_key(name)
            && !self.wanted.contains_key(name)
            && !self.decided.contains(name)
            && !self.recovered.contains(name)
    }

    /// Asks for a body that a block or a decision names, or that is on the own disk, unless it is
    /// here or asked for already.
    pub(crate) fn want(&mut self, now: Time, name: BodyRef, source: ReplicaId, need: Need) {
        if self.held.contains_key(&name) {
            return;
        }
        let known = self.wanted.get(&name).map(|want| (want.need, want.source));
        // Whoever names it has it; who was asked for it before may have made it up.
        let is_anew = known.is_none_or(|(before, asked)| {
            (before >= Need::Hearsay && need < Need::Hearsay)
                || (before == Need::Proposed && need == before && source != asked)
        });
        if is_anew {
            self.want_anew(now, name, source, need);
            return;
        }
        let ask_at = self.ask_at(now, &name, need);
        let Some(want) = self.wanted.get_mut(&name) else { return };
        want.need = want.need.min(need);
        if want.attempts == 0 {
            want.ask_at = want.ask_at.min(ask_at);
        }
    }

    fn want_anew(&mut self, now: Time, name: BodyRef, source: ReplicaId, need: Need) {
        let ask_at = self.ask_at(now, &name, need);
        let since = self.wanted.get(&name).map_or(now, |want| want.since);
        self.wanted.insert(name, Want { need, source, since, attempts: 0, asked: None, ask_at });
    }

    /// Time at which a body is asked for first: its author may be sending it.
    fn ask_at(&self, now: Time, name: &BodyRef, need: Need) -> Time {
        let grace = self.grace(name.author);
        let wait = match need {
            Need::Overdue(_) => Duration::ZERO,
            _ if self.is_on_disk(name) => Duration::ZERO,
            Need::Decided(_) | Need::Own => grace,
            Need::Proposed => grace.min(self.vote_grace_max),
            Need::Hearsay => grace.saturating_sub(ANNOUNCE_EVERY).max(GRACE_MIN),
        };
        now + wait
    }

    pub(super) fn grace(&self, author: ReplicaId) -> Duration {
        self.lateness.get(&author).map_or(GRACE_MIN, Lateness::grace)
    }

    /// A member is there again: what it left unanswered was before.
    pub(crate) fn connected(&mut self, member: ReplicaId) {
        self.silence.heard(member);
    }

    /// Requests to send now: of several members at once. What nothing here needs has bounds of its
    /// own, so that names that nobody has delay no vote.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Fetch> {
        let wanted = self.wanted.len();
        self.wanted.retain(|_, want| !want.is_optional() || want.attempts < HEARSAY_ATTEMPTS);
        self.has_hearsay_room |= self.wanted.len() < wanted;
        self.want_heard(now);
        self.note_silent(now);
        let mut fetches = self.due_of(now, &FETCH_NEEDED);
        fetches.extend(self.due_of(now, &FETCH_OPTIONAL));
        fetches
    }

    /// Notes who was asked for what must come, and has not sent it in time.
    fn note_silent(&mut self, now: Time) {
        let is_late = |want: &&Want| want.need.is_decided() && want.ask_at <= now;
        for (member, at) in self.wanted.values().filter(is_late).filter_map(|want| want.asked) {
            self.silence.missed(now, member, at);
        }
    }

    fn due_of(&mut self, now: Time, limits: &FetchLimits) -> Vec<Fetch> {
        let room = limits.under_way_max.saturating_sub(self.under_way(now, limits));
        if room == 0 || self.wanted.is_empty() {
            return Vec::new();
        }
        let needed = self.most_needed(now, limits, room);
        if needed.is_empty() {
            return Vec::new();
        }
        let mut rooms = self.rooms(now, limits);
        let others = u32::from(self.members) - u32::from(self.id.0 < self.members);
        let mut silent = self.silence.to_try(now);
        let mut asks: BTreeMap<ReplicaId, Vec<BodyRef>> = BTreeMap::new();
        let mut fetches = Vec::new();
        for name in needed {
            let Some(want) = self.wanted.get_mut(&name) else { continue };
            let on_disk = self.recovered.remove(&name) | self.executed.remove(&name);
            if on_disk {
                want.ask_at = now + FETCH_RETRY;
                fetches.push(Fetch::Load(name));
                continue;
            }
            for _ in 0..want.asks_at_once().min(others) {
                let attempt = want.attempts + 1;
                let preferred = attempt_target(self.members, attempt, want.source);
                // A proposer has what it names, however much it is asked for already. And once
                // those who answer were asked in vain, everybody is in turn.
                let is_proposers = want.need == Need::Proposed && attempt == 1;
                let member = if (is_proposers || attempt > others) && preferred != self.id {
                    Some(preferred)
                } else {
                    with_room(&mut rooms, preferred, self.sizes.of(&name))
                };
                let Some(member) = member else { break };
                want.attempts = attempt;
                let retry = if want.need == Need::Proposed { self.vote_retry } else { FETCH_RETRY };
                want.ask_at = now + retry * attempt.min(3);
                want.asked = Some((member, now));
                let names = asks.entry(member).or_default();
                // Where few are left to ask, it is one member's turn again.
                if names.last() != Some(&name) {
                    names.push(name);
                }
            }
            // Whether a silent member answers again is tried with what another is asked for, too.
            let is_asked = want.attempts == 1 && want.asked.is_some_and(|(_, at)| at == now);
            if let Some(member) = silent.take_if(|_| is_asked) {
                asks.entry(member).or_default().push(name);
                self.silence.missed(now, member, now);
            }
        }
        fetches.extend(asks.into_iter().map(|(member, names)| Fetch::Request(member, names)));
        fetches
    }

    /// Time at which [`Bodies::due`] has something; `now` tells what is under way.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        // Asked after every event, and nearly always with nothing missing.
        if self.wanted.is_empty() {
            return None;
        }
        let of = |limits: &FetchLimits| {
            let wanted = self.wanted.values().filter(|want| limits.are_for(want));
            let times = || wanted.clone().map(|want| want.ask_at);
            let first = times().min()?;
            // Whether there is room matters to what is due alone.
            let waits = first <= now
                && (self.under_way(now, limits) >= limits.under_way_max
                    || self.rooms(now, limits).is_empty());
            if waits { times().filter(|at| *at > now).min() } else { Some(first) }
        };
        [of(&FETCH_NEEDED), of(&FETCH_OPTIONAL)].into_iter().flatten().min()
    }

    /// Bytes that each member may be asked for besides, of [`QUESTION_BYTES`]; without those that
    /// have enough to do, half of that, and those that are silent, unless all are.
    fn rooms(&self, now: Time, limits: &FetchLimits) -> BTreeMap<ReplicaId, usize> {
        let members = || (0..self.members).map(ReplicaId).filter(|member| *member != self.id);
        let are_all_silent = members().all(|member| self.silence.is_suspected(member));
        let asked =
            members().filter(|member| are_all_silent || !self.silence.is_suspected(*member));
        let mut rooms: BTreeMap<_, _> = asked.map(|m| (m, QUESTION_BYTES)).collect();
        let mut requests: BTreeSet<(ReplicaId, Time)> = BTreeSet::new();
        for (name, want) in self.wanted.iter().filter(|(_, want)| want.ask_at > now) {
            let Some((member, at)) = want.asked else { continue };
            if let Some(room) = rooms.get_mut(&member).filter(|_| limits.are_for(want)) {
                *room = room.saturating_sub(self.sizes.of(name));
            }
            requests.insert((member, at));
        }
        let to = |member| requests.range((member, Time(0))..=(member, Time(u64::MAX))).count();
        rooms.retain(|member, room| {
            *room > QUESTION_BYTES / 2 && to(*member) < limits.questions_max
        });
        rooms
    }

    /// Bodies to ask for next: the most needed, and of those what was asked for least, until they
    /// fill this room.
    fn most_needed(&self, now: Time, limits: &FetchLimits, room: usize) -> Vec<BodyRef> {
        let mut due: Vec<(Need, u32, BodyRef)> = self
            .wanted
            .iter()
            .filter(|(_, want)| want.ask_at <= now && limits.are_for(want))
            .map(|(name, want)| (want.need, want.attempts, *name))
            .collect();
        due.sort_unstable();
        let mut taken = 0;
        let fits = |name: &BodyRef| {
            let fits = taken < room;
            taken += self.sizes.of(name);
            fits
        };
        due.into_iter().map(|(_, _, name)| name).take_while(fits).collect()
    }

    /// Bytes of bodies asked for whose answer may still come, by their authors' usual sizes.
    fn under_way(&self, now: Time, limits: &FetchLimits) -> usize {
        let is_under_way = |want: &Want| want.attempts > 0 && want.ask_at > now;
        let wanted = self.wanted.iter().filter(|(_, want)| limits.are_for(want));
        wanted.filter(|(_, want)| is_under_way(want)).map(|(name, _)| self.sizes.of(name)).sum()
    }
}

/// First whoever must have it, then everybody else in turn; where it is the own turn, see
/// [`with_room`].
fn attempt_target(members: u16, attempt: u32, source: ReplicaId) -> ReplicaId {
    let turn = attempt.saturating_sub(1) + u32::from(source.0);
    ReplicaId(u16::try_from(turn % u32::from(members)).expect("less than the members"))
}

/// The preferred member, or the next one that may be asked for more bytes: `rooms` leaves out this
/// one.
fn with_room(
    rooms: &mut BTreeMap<ReplicaId, usize>,
    preferred: ReplicaId,
    bytes: usize,
) -> Option<ReplicaId> {
    let next = rooms.range(preferred..).next().or_else(|| rooms.iter().next());
    let member = *next?.0;
    let room = rooms.get_mut(&member)?;
    *room = room.saturating_sub(bytes);
    if *room == 0 {
        rooms.remove(&member);
    }
    Some(member)
}
