//! Asking more members when an answer is late.

use super::{Session, SessionEffect, UnderWay};
use quorate_crypto::Bitmap;
use quorate_types::{ReplicaId, Time};

/// Most copies of unanswered requests that go to others than the member that was asked, as long as
/// they are under way: a full window is at most doubled.
const COPIES_MAX: usize = Session::WINDOW as usize;

/// How far an attempt was widened: to nobody, to as many as make an honest one certain, to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Widening {
    stage: Stage,
    /// Time of the next step, unless there is none.
    due: Option<Time>,
    /// Copies that were sent to others.
    copies: usize,
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
        self.copies > 0
    }

    /// The attempt is over: those that follow ask one member each.
    pub(super) fn end(&mut self) {
        (self.due, self.copies) = (None, 0);
    }
}

impl Session {
    /// An attempt that begins now, with one member. Where all are asked anyway there is nobody left
    /// to ask.
    pub(super) fn widening_from(&self, now: Time) -> Widening {
        let due = (!self.config.send_to_all).then(|| now + self.pace.late_after());
        Widening { stage: Stage::One, due, copies: 0 }
    }

    /// Asks more members for what is late: the rest of so many that one of them is honest, then
    /// all. Not where a replica has complained of too much, nor more than so many copies at once:
    /// what waits then is asked for again when its wait is over.
    pub(super) fn widen(&mut self, now: Time) {
        let is_due = |(_, under_way): &(&u64, &UnderWay)| {
            under_way.widening.due.is_some_and(|due| due <= now)
        };
        let due: Vec<u64> =
            self.under_way.iter().filter(is_due).map(|(sequence, _)| *sequence).collect();
        let late_after = self.pace.late_after();
        for sequence in due {
            let under_way = &self.under_way[&sequence];
            let (stage, to) = self.next_stage(now, under_way);
            let may_be_sent = !self.pace.was_slowed(now) && self.copies() + to.len() <= COPIES_MAX;
            let Some(under_way) = self.under_way.get_mut(&sequence) else { continue };
            if !may_be_sent {
                under_way.widening.due = Some(now + late_after);
                continue;
            }
            let due = (stage != Stage::All).then(|| now + late_after);
            under_way.widening =
                Widening { stage, due, copies: under_way.widening.copies + to.len() };
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
        let mut weak = Bitmap::new(self.config.committee.size());
        let answered = &under_way.answered;
        let others = others.filter(|member| !answered.contains(member.index()));
        weak.insert(under_way.asked.index());
        let is_of_weak = |member: &ReplicaId| {
            let is_needed = !self.config.committee.includes_honest(&weak);
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
        self.under_way.values().map(|under_way| under_way.widening.copies).sum()
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
            self.left_home |= asked == self.home;
        }
        let (retry_at, widening) = (now + self.pace.timeout(), self.widening_from(now));
        for under_way in self.under_way.values_mut() {
            let is_left = under_way.asked == asked
                && under_way.refusals == 0
                && under_way.answers.is_empty()
                && !under_way.widening.is_begun();
            if is_left {
                (under_way.asked, under_way.sent_at, under_way.retry_at) = (next, now, retry_at);
                under_way.widening = widening;
                let request = under_way.request.clone();
                self.effects.push_back(SessionEffect::Send { to: next, request });
            }
        }
    }

    /// New requests go to the first member again, once it was heard or has been passed over for
    /// long enough.
    pub(super) fn go_home(&mut self, now: Time) {
        if self.left_home && !self.members.is_passed_over(now, self.home) {
            self.target = self.home;
            self.left_home = false;
        }
    }
}
