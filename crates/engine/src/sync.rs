//! Fetching blocks that this replica missed, from several members at once.
//!
//! One fetch is about what follows the last decided block: it goes to whoever showed the missing
//! block first, then to everybody in turn. It names what the asker has, by id, and the certified
//! block that it lacks; the answer is checked link by link before the machine sees it. Up to
//! [`AHEAD_MAX`] more go *ahead*, each to another member, about the heights after those asked for
//! already: their answers prove themselves downwards from a certificate, wait here until what is
//! below them is decided, and are taken then. A slow or silent member costs one retry of its part.
//!
//! A learner, to whom nobody shows anything, asks for whatever comes next without end: everybody in
//! turn, so that no member alone can keep it back, and every [`FOLLOW_EVERY`] while nothing is new.
//!
//! An answer also says which heights its sender keeps. Those that no longer keep what is missing
//! are remembered: when they weigh enough, the replica needs a snapshot.

use crate::message::{FetchBlocks, Kept};
use crate::silence::Silence;
use quorate_consensus::{Occupancy, VerifiedRun};
use quorate_types::{BlockId, Height, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time that an answer may take before the next member is asked.
const RETRY: Duration = Duration::from_millis(300);
/// Interval at which a learner that has everything asks for more.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);
/// Fetches of heights further on, beside the one about the next height.
const AHEAD_MAX: usize = 3;
/// Fetches under way to one member.
const PER_MEMBER_MAX: usize = 2;
/// Fetches remembered, so that late answers count.
const ASKED_MAX: usize = 16;
/// Blocks in one answer: where the next fetch begins.
pub(crate) const BLOCKS_MAX: u64 = 64;

/// Heights that are missing, and the members that were asked for them.
#[derive(Debug)]
pub(crate) struct BlockSync {
    id: ReplicaId,
    members: u16,
    missing: Option<Missing>,
    /// Whatever comes next is missing, always.
    follows: bool,
    /// The last decided height.
    here: Height,
    asked: Vec<PendingFetch>,
    /// Answers to fetches ahead, by their first height.
    ahead: BTreeMap<Height, Box<VerifiedRun>>,
    /// The newest height that a member claims to have; only decides what is asked for.
    newest: Height,
    /// Members that no longer keep the next height.
    gone: BTreeSet<ReplicaId>,
    /// Who left what was asked for unanswered.
    silence: Silence,
}

#[derive(Debug)]
struct Missing {
    /// A certified block; `None` for whatever comes next.
    target: Option<BlockId>,
    source: ReplicaId,
    ask_at: Time,
}

#[derive(Debug)]
struct PendingFetch {
    member: ReplicaId,
    request: FetchBlocks,
    until: Time,
    /// Somebody else is asked meanwhile; the answer is welcome all the same.
    late: bool,
}

impl BlockSync {
    /// State in which nothing is missing.
    #[must_use]
    pub(crate) fn new(id: ReplicaId, members: usize) -> Self {
        let members = u16::try_from(members).expect("committees are limited to 1,024");
        Self {
            id,
            members,
            missing: None,
            follows: false,
            here: Height(0),
            asked: Vec::new(),
            ahead: BTreeMap::new(),
            newest: Height(0),
            gone: BTreeSet::new(),
            silence: Silence::default(),
        }
    }

    pub(crate) fn occupancy(&self) -> [Occupancy; 4] {
        [
            Occupancy::new("asked", self.asked.len(), ASKED_MAX + usize::from(self.members)),
            Occupancy::new("ahead", self.ahead.len(), AHEAD_MAX),
            Occupancy::new("gone", self.gone.len(), usize::from(self.members)),
            self.silence.occupancy(self.members),
        ]
    }

    /// Of a learner: `id` is no member's.
    #[must_use]
    pub(crate) fn following(id: ReplicaId, members: usize) -> Self {
        let missing = Missing { target: None, source: ReplicaId(0), ask_at: Time(0) };
        Self { missing: Some(missing), follows: true, ..Self::new(id, members) }
    }

    /// A certified block is missing. A newer one replaces it as the target; the fetches under way
    /// stay.
    pub(crate) fn behind(&mut self, now: Time, target: BlockId, source: Option<ReplicaId>) {
        match &mut self.missing {
            Some(_) if self.follows => {}
            Some(missing) => missing.target = Some(target),
            None => {
                // Nobody asks itself: without a source it begins with the next member.
                let source = source.unwrap_or(self.id);
                self.missing = Some(Missing { target: Some(target), source, ask_at: now });
            }
        }
    }

    /// The fetches to send now; `has` says whether a block has come by itself.
    pub(crate) fn due(
        &mut self,
        now: Time,
        height: Height,
        tip: BlockId,
        has: impl Fn(BlockId) -> bool,
    ) -> Vec<(ReplicaId, FetchBlocks)> {
        let Some(missing) = &self.missing else { return Vec::new() };
        let is_alone = self.members == 1 && !self.follows;
        if missing.target.is_some_and(has) || is_alone {
            let silence = std::mem::take(&mut self.silence);
            *self = Self { silence, ..Self::new(self.id, usize::from(self.members)) };
            return Vec::new();
        }
        self.here = height;
        self.asked.retain(|asked| asked.request.height >= height);
        for asked in self.asked.iter_mut().filter(|asked| !asked.late && asked.until <= now) {
            asked.late = true;
            self.silence.missed(now, asked.member, asked.until - RETRY);
        }
        let surplus = self.asked.len().saturating_sub(ASKED_MAX);
        self.asked.drain(..surplus);
        self.ahead.retain(|_, run| run.heights().is_some_and(|(_, last)| last > height));
        let mut fetches = Vec::new();
        fetches.extend(self.ask_next(now, height, tip));
        while let Some(fetch) = self.ask_ahead(now, height, tip) {
            fetches.push(fetch);
        }
        fetches
    }

    fn ask_next(
        &mut self,
        now: Time,
        height: Height,
        tip: BlockId,
    ) -> Option<(ReplicaId, FetchBlocks)> {
        let missing = self.missing.as_ref()?;
        let is_it = |asked: &PendingFetch| !asked.late && asked.request.after == Some(tip);
        let is_asked = self.asked.iter().any(is_it);
        if missing.ask_at > now || is_asked {
            return None;
        }
        let member = self.from(now, missing.source);
        let next = self.next(member);
        let missing = self.missing.as_mut()?;
        missing.ask_at = now + RETRY;
        missing.source = next;
        let target = missing.target.unwrap_or(tip);
        let request = FetchBlocks { height, after: Some(tip), target };
        self.ask(now, member, request)
    }

    /// This member, or the next that answers; the next in any case where none does.
    fn from(&self, now: Time, first: ReplicaId) -> ReplicaId {
        let turn = std::iter::successors(Some(first), |member| Some(self.next(*member)));
        let others = || turn.clone().take(usize::from(self.members)).filter(|m| *m != self.id);
        let answering = others().find(|member| !self.silence.is_passed_over(now, *member));
        answering.or_else(|| others().next()).unwrap_or(first)
    }

    fn next(&self, member: ReplicaId) -> ReplicaId {
        ReplicaId((member.0 + 1) % self.members)
    }

    fn ask(
        &mut self,
        now: Time,
        member: ReplicaId,
        request: FetchBlocks,
    ) -> Option<(ReplicaId, FetchBlocks)> {
        self.asked.push(PendingFetch { member, request, until: now + RETRY, late: false });
        Some((member, request))
    }

    /// Fetches ahead that may still be answered in time.
    fn asked_ahead(&self) -> impl Iterator<Item = &PendingFetch> {
        self.asked.iter().filter(|asked| !asked.late && asked.request.after.is_none())
    }

    fn ask_ahead(
        &mut self,
        now: Time,
        height: Height,
        tip: BlockId,
    ) -> Option<(ReplicaId, FetchBlocks)> {
        let under_way = self.asked_ahead().count();
        if under_way + self.ahead.len() >= AHEAD_MAX {
            return None;
        }
        let mut from = Height(height.0 + BLOCKS_MAX);
        while self.covers(from) {
            from = Height(from.0 + BLOCKS_MAX);
        }
        let too_far = from.0 > height.0 + BLOCKS_MAX * (AHEAD_MAX as u64 + 1);
        let member = self.idlest(now, from).filter(|_| self.newest > from && !too_far)?;
        let target = self.missing.as_ref()?.target.unwrap_or(tip);
        let request = FetchBlocks { height: from, after: None, target };
        self.ask(now, member, request)
    }

    /// Returns `true` if what follows this height is here or asked for.
    fn covers(&self, height: Height) -> bool {
        let within = |first: Height| first <= height && height.0 - first.0 < BLOCKS_MAX;
        self.asked_ahead().map(|asked| asked.request.height).any(within)
            || self
                .ahead
                .values()
                .filter_map(|run| run.heights())
                .any(|(first, last)| Height(first.0.saturating_sub(1)) <= height && height < last)
    }

    /// Member to ask ahead: the one with the fewest fetches under way; one that leaves questions
    /// unanswered, or left this very part, only when there is no other.
    fn idlest(&self, now: Time, height: Height) -> Option<ReplicaId> {
        let of = |member| self.asked.iter().filter(move |asked| asked.member == member);
        let load = |member| of(member).filter(|asked| !asked.late).count();
        let failed = |member| of(member).any(|a| a.late && a.request.height == height);
        (0..self.members)
            .map(ReplicaId)
            .filter(|member| *member != self.id && !self.gone.contains(member))
            .map(|member| {
                let is_silent = self.silence.is_passed_over(now, member);
                (is_silent, failed(member), load(member), member)
            })
            .filter(|(_, _, load, _)| *load < PER_MEMBER_MAX)
            .min()
            .map(|(_, _, _, member)| member)
    }

    /// A member is there again: what it left unanswered was before.
    pub(crate) fn connected(&mut self, member: ReplicaId) {
        self.silence.heard(member);
    }

    /// Takes an answer to a fetch that was asked of its sender, late or not, also when the
    /// target has changed since: what of it goes to the protocol now. Decided blocks prove
    /// themselves; an undecided tail ends in the target of its fetch, which was certified.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        from: ReplicaId,
        request: FetchBlocks,
        kept: Kept,
        run: Box<VerifiedRun>,
    ) -> Option<Box<VerifiedRun>> {
        let is_it = |asked: &PendingFetch| asked.member == from && asked.request == request;
        let asked = self.asked.swap_remove(self.asked.iter().position(is_it)?);
        self.silence.heard(from);
        let missing = self.missing.as_mut()?;
        self.newest = kept.newest;
        if request.after.is_none() {
            self.keep_ahead(asked.request.height, run);
            return None;
        }
        if run.is_empty() {
            if self.follows && kept.newest <= request.height {
                missing.ask_at = now + FOLLOW_EVERY;
            }
            if kept.oldest > request.height.next() && kept.newest > request.height {
                let is_news = self.gone.insert(from);
                if is_news {
                    // No reason to wait before the next member is asked.
                    missing.ask_at = now;
                }
            }
            return None;
        }
        self.gone.clear();
        if !self.follows {
            missing.source = from;
        }
        missing.ask_at = now;
        Some(run)
    }

    fn keep_ahead(&mut self, height: Height, run: Box<VerifiedRun>) {
        match run.heights() {
            Some((first, _)) if first == height.next() => {
                self.ahead.insert(first, run);
                // Late answers come beside those that were asked for instead.
                while self.ahead.len() > AHEAD_MAX {
                    self.ahead.pop_last();
                }
            }
            // Nothing there: what was claimed to be newer is not asked for again for now.
            _ => self.newest = self.newest.min(height),
        }
    }

    /// A kept answer that goes on from this height, if there is one.
    pub(crate) fn take_ahead(&mut self, height: Height) -> Option<Box<VerifiedRun>> {
        let fits = |run: &VerifiedRun| {
            run.heights().is_some_and(|(first, last)| first <= height.next() && last > height)
        };
        let first = self.ahead.iter().find(|(_, run)| fits(run)).map(|(first, _)| *first)?;
        self.ahead.remove(&first)
    }

    /// Members that no longer keep what is missing.
    pub(crate) fn gone(&self) -> &BTreeSet<ReplicaId> {
        &self.gone
    }

    /// The newest height that the last answer claimed.
    pub(crate) fn newest(&self) -> Height {
        self.newest
    }

    /// The position has changed by a snapshot: ask again from there.
    pub(crate) fn jumped(&mut self, now: Time) {
        self.gone.clear();
        self.asked.clear();
        self.ahead.clear();
        if let Some(missing) = &mut self.missing {
            missing.ask_at = now;
        }
    }

    /// Time at which [`BlockSync::due`] has something.
    #[must_use]
    pub(crate) fn deadline(&self) -> Option<Time> {
        let missing = self.missing.as_ref()?;
        let under_way = || self.asked.iter().filter(|asked| !asked.late);
        // While somebody may still answer it, the fetch about the next height is not asked
        // again.
        let is_asked = under_way().any(|asked| asked.request.after.is_some());
        let ask_at = (!is_asked).then_some(missing.ask_at);
        under_way().map(|asked| asked.until).chain(ask_at).min()
    }

    /// Returns `true` if something is missing, as far as anybody said.
    #[must_use]
    pub(crate) fn is_behind(&self) -> bool {
        self.missing.is_some() && (!self.follows || self.newest > self.here)
    }
}

#[cfg(test)]
mod tests;
