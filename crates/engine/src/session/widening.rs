//! Asking more members when an answer is late.

use super::{Session, SessionEffect, UnderWay};
use quorate_crypto::Bitmap;
use quorate_types::{ReplicaId, Time};
use std::time::Duration;

/// Most copies of unanswered requests that go to others than the member that was asked, as long as
/// they are under way: a full window is at most doubled.
const COPIES_MAX: usize = Session::WINDOW as usize;

/// New requests go elsewhere for so long after one that the first member had no room for, or did
/// not answer though it said other things.
const AWAY_FOR: Duration = Duration::from_secs(10);

/// How far an attempt was widened: to nobody, to as many as make an honest one certain, to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Widening {
    stage: Stage,
    /// Time of the next step, unless there is none.
    due: Option<Time>,
    /// Others that were sent a copy.
    copies: Bitmap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    One,
    Weak,
    All,
}

impl Widening {
    /// Time at which more members are asked.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Returns `true` if others than the member that was asked have the request.
    pub(super) fn is_begun(&self) -> bool {
        self.copies.count() > 0
    }

    /// The attempt is over: those that follow ask one member each.
    pub(super) fn end(&mut self) {
        (self.due, self.copies) = (None, Bitmap::new(self.copies.members()));
    }
}

impl Session {
    /// An attempt that begins now, with one member. Where all are asked anyway there is nobody left
    /// to ask.
    pub(super) fn widening_from(&self, now: Time) -> Widening {
        let due = (!self.config.send_to_all).then(|| now + self.pace.late_after());
        Widening { stage: Stage::One, due, copies: Bitmap::new(self.config.committee().size()) }
    }

    /// Asks more members for what is late: the rest of so many that one of them is honest, then
    /// all. Not where a replica has complained of too much, nor more than so many copies at once:
    /// as many as fit are sent, and more once other requests have had their answers. What waits
    /// then is asked for again when its wait is over.
    pub(super) fn widen(&mut self, now: Time) {
        let is_due = |(_, under_way): &(&u64, &UnderWay)| {
            under_way.widening.due.is_some_and(|due| due <= now)
        };
        let due: Vec<u64> =
            self.under_way.iter().filter(is_due).map(|(sequence, _)| *sequence).collect();
        let late_after = self.pace.late_after();
        for sequence in due {
            let under_way = &self.under_way[&sequence];
            let (stage, mut to) = self.next_stage(now, under_way);
            let copies = self.copies();
            let is_slowed = self.pace.was_slowed(now);
            let room = if is_slowed { 0 } else { COPIES_MAX.saturating_sub(copies) };
            let is_whole = to.len() <= room;
            to.truncate(room);
            let Some(under_way) = self.under_way.get_mut(&sequence) else { continue };
            let Widening { stage: reached, due, copies: own } = &mut under_way.widening;
            // Where its own copies take up all the room, waiting makes none.
            let more_to_come = if is_whole { stage != Stage::All } else { own.count() < copies };
            for member in &to {
                own.insert(member.index());
            }
            *due = (is_slowed || more_to_come).then(|| now + late_after);
            if is_whole {
                *reached = stage;
            }
            let request = &under_way.request;
            self.effects.extend(
                to.into_iter().map(|to| SessionEffect::Send { to, request: request.clone() }),
            );
        }
    }

    /// The next stage, and who gets the request then: those that are passed over come last.
    fn next_stage(&self, now: Time, under_way: &UnderWay) -> (Stage, Vec<ReplicaId>) {
        let members = &self.members;
        let (passed_over, lively): (Vec<_>, Vec<_>) =
            members.others(under_way.asked).partition(|one| members.is_passed_over(now, *one));
        let others = lively.into_iter().chain(passed_over);
        let mut weak = Bitmap::new(self.config.committee().size());
        let (answered, copies) = (&under_way.answered, &under_way.widening.copies);
        let was_asked = |member: &ReplicaId| {
            answered.contains(member.index()) || copies.contains(member.index())
        };
        let others = others.filter(|member| !was_asked(member));
        weak.insert(under_way.asked.index());
        for member in copies.iter() {
            weak.insert(member);
        }
        let is_of_weak = |member: &ReplicaId| {
            let is_needed = !self.config.committee().includes_honest(&weak);
            if is_needed {
                weak.insert(member.index());
            }
            is_needed
        };
        let (first, rest): (Vec<_>, Vec<_>) = others.partition(is_of_weak);
        match under_way.widening.stage {
            Stage::One => (Stage::Weak, first),
            Stage::Weak | Stage::All => (Stage::All, rest),
        }
    }

    fn copies(&self) -> usize {
        self.under_way.values().map(|under_way| under_way.widening.copies.count()).sum()
    }

    /// Others answered what this member was asked first, at `since`: one that has said nothing
    /// since then is passed over, and what else it was asked goes to the next one, once.
    pub(super) fn compare(&mut self, now: Time, asked: ReplicaId, since: Time) {
        if !self.members.outdone(now, asked, since) {
            return;
        }
        let next = self.members.next_lively(now, asked);
        if self.target == asked {
            self.target = next;
            if asked == self.home {
                self.home_after = Some(now);
            }
        }
        let (retry_at, widening) = (now + self.pace.timeout(), self.widening_from(now));
        for under_way in self.under_way.values_mut() {
            let is_left = under_way.asked == asked
                && under_way.refusals == 0
                && under_way.answers.is_empty()
                && !under_way.widening.is_begun();
            if is_left {
                (under_way.asked, under_way.sent_at, under_way.retry_at) = (next, now, retry_at);
                under_way.widening = widening.clone();
                let request = under_way.request.clone();
                self.effects.push_back(SessionEffect::Send { to: next, request });
            }
        }
    }

    /// New requests go elsewhere, since some wait for an answer in vain. A first member that was
    /// asked and has said nothing since is passed over as if others had answered.
    pub(super) fn go_elsewhere(&mut self, now: Time, due: &[u64]) {
        if self.target == self.home {
            let asked = due.iter().map(|sequence| &self.under_way[sequence]);
            let since = asked.filter(|one| one.asked == self.home).map(|one| one.sent_at).min();
            let is_silent = since.is_some_and(|since| self.members.outdone(now, self.home, since));
            self.home_after = Some(if is_silent { now } else { now + AWAY_FOR });
        }
        self.target = self.members.next_lively(now, self.target);
    }

    /// New requests go to the first member again, once it was heard or has been passed over for
    /// long enough.
    pub(super) fn go_home(&mut self, now: Time) {
        let may_return = self.home_after.is_some_and(|after| after <= now);
        if may_return && !self.members.is_passed_over(now, self.home) {
            self.target = self.home;
            self.home_after = None;
        }
    }
}
