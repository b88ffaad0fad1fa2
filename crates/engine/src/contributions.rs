//! Counts of what each member contributes: votes in recent certificates, and turns as leader.
//!
//! Nothing here decides anything: it is what an operator asks when a committee is slow.

use quorate_crypto::Bitmap;
use quorate_types::{ReplicaId, View};
use serde::Serialize;
use std::collections::VecDeque;

/// Deciding certificates whose signers are counted, the latest ones.
const CERTIFICATES_KEPT: usize = 100;
/// Views that were given up, the latest ones, kept with their leaders.
const GIVEN_UP_KEPT: usize = 16;

/// Contribution of one member, as this replica saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contribution {
    /// Certificates with its vote among the last [`Contributions::certificates`]. Threshold
    /// certificates name their signers without proving them.
    pub votes: u32,
    /// Views that it led, since the start.
    pub turns: u64,
    /// Those of them that were given up.
    pub turns_failed: u64,
}

/// Reason for which a view was given up, as far as this replica knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivenUpFor {
    /// Its leader did not bring about a decision in time.
    Timeout,
    /// Its leader passed over what had long waited.
    Censorship,
    /// What it ordered had waited longer than this member allows.
    Slowness,
}

impl GivenUpFor {
    /// Name in logs, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Censorship => "censorship",
            Self::Slowness => "slowness",
        }
    }
}

/// View that a committee left without what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GivenUp {
    /// View that was left without a decision.
    pub view: View,
    /// Member whose turn it was.
    pub leader: ReplicaId,
    /// Reason, as far as it is known here.
    pub reason: GivenUpFor,
}

/// Contributions of all members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributions {
    members: Vec<Contribution>,
    recent: VecDeque<Bitmap>,
    given_up: VecDeque<GivenUp>,
    given_up_total: u64,
    view: View,
    leader: Option<ReplicaId>,
    suspected: Option<(View, GivenUpFor)>,
}

impl Contributions {
    /// Counts of so many members, all zero.
    pub(crate) fn new(members: usize) -> Self {
        Self { members: vec![Contribution::default(); members], ..Self::default() }
    }

    /// Takes note of a deciding certificate.
    pub(crate) fn certified(&mut self, signers: Bitmap) {
        self.count(&signers, |votes| votes + 1);
        self.recent.push_back(signers);
        if self.recent.len() > CERTIFICATES_KEPT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.count(&oldest, |votes| votes - 1);
        }
    }

    fn count(&mut self, signers: &Bitmap, change: impl Fn(u32) -> u32) {
        for member in signers.iter() {
            if let Some(member) = self.members.get_mut(member) {
                member.votes = change(member.votes);
            }
        }
    }

    /// Takes note of what the leader of this view is suspected of.
    pub(crate) fn suspected(&mut self, view: View, of: GivenUpFor) {
        self.suspected = Some((view, of));
    }

    /// Takes note of a new view and its leader; `failed` if the one before it was given up.
    pub(crate) fn entered(&mut self, view: View, leader: ReplicaId, failed: bool) {
        if self.leader.is_some() && view == self.view {
            return;
        }
        if failed && let Some(former) = self.leader {
            let suspected = self.suspected.filter(|(view, _)| *view == self.view);
            let reason = suspected.map_or(GivenUpFor::Timeout, |(_, of)| of);
            self.give_up(GivenUp { view: self.view, leader: former, reason });
        }
        if let Some(member) = self.members.get_mut(leader.index()) {
            member.turns += 1;
        }
        (self.view, self.leader) = (view, Some(leader));
    }

    fn give_up(&mut self, given_up: GivenUp) {
        if let Some(member) = self.members.get_mut(given_up.leader.index()) {
            member.turns_failed += 1;
        }
        self.given_up_total += 1;
        self.given_up.push_back(given_up);
        if self.given_up.len() > GIVEN_UP_KEPT {
            self.given_up.pop_front();
        }
    }

    /// Contributions in member order.
    #[must_use]
    pub fn members(&self) -> &[Contribution] {
        &self.members
    }

    /// Number of certificates that votes are counted in: the last 100, or fewer after a start.
    #[must_use]
    pub fn certificates(&self) -> usize {
        self.recent.len()
    }

    /// Certificates in a row, the latest ones, without this member's vote.
    #[must_use]
    pub fn absences(&self, member: ReplicaId) -> usize {
        let is_absent = |signers: &&Bitmap| !signers.contains(member.index());
        self.recent.iter().rev().take_while(is_absent).count()
    }

    /// The last views that were given up, oldest first: 16 at most.
    pub fn given_up(&self) -> impl Iterator<Item = &GivenUp> {
        self.given_up.iter()
    }

    /// Number of views that were given up since the start.
    #[must_use]
    pub fn given_up_total(&self) -> u64 {
        self.given_up_total
    }
}

#[cfg(test)]
mod tests;
