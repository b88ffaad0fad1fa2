//! From one epoch to the next, as validators go.

use super::{Committee, LINK, SimEvent, failures_of};
use crate::crash_points::host::CrashHost;
use crate::crash_points::shared::Shared;
use crate::epoch::{Ended, EpochConfig};
use quorate_engine::host::leaving::{self, AtTheEnd};
use quorate_storage::StorageError;
use quorate_types::{HandedOver, Time};
use std::sync::Arc;
use std::time::Duration;

/// Time in which a host starts again in its next epoch.
const RESTART: Duration = Duration::from_millis(1);

/// Shortest time between two answers to one host that comes with an earlier epoch.
const SHOW_EVERY: Duration = Duration::from_millis(50);

impl Committee {
    /// The change is brought to every member of the epoch that it ends.
    pub(in crate::crash_points) fn bring(&mut self, shared: &Shared) {
        let Some(change) = &shared.change else { return };
        for host in 0..self.seats.len() {
            let seat = self.seats[host].as_ref();
            if seat.is_some_and(|seat| is_first_and_member(&seat.host.epoch, host)) {
                self.deliver(host, shared.client(), change.content.clone());
            }
        }
    }

    /// Returns `true` if a change is to come, and the subject is not beyond it.
    pub(in crate::crash_points) fn waits_for_change(&mut self) -> bool {
        let first = self.shared.first.number();
        self.shared.change.is_some() && self.subject().epoch.number() == first
    }

    /// Two hosts of different epochs find that out: the one that is in the later shows the other
    /// how its epoch ended.
    pub(super) fn meet(&mut self, one: usize, other: usize) {
        let now = self.now;
        let in_first = self.seat(one).host.epoch.number() < self.seat(other).host.epoch.number();
        let (earlier, later) = if in_first { (one, other) } else { (other, one) };
        let seat = self.seat(later);
        let last = seat.shown_at.get(&earlier);
        if seat.is_starting || last.is_some_and(|last| now.since(*last) < SHOW_EVERY) {
            return;
        }
        let Some(step) = seat.host.epoch.steps.last().cloned() else { return };
        seat.shown_at.insert(earlier, now);
        self.schedule(now + LINK, SimEvent::Shown(earlier, step));
    }

    pub(super) fn hear_of_end(&mut self, host: usize, step: Arc<HandedOver>) {
        let since = self.now;
        if self.is_cut_off(host) {
            return;
        }
        let seat = self.seat(host);
        let is_its = seat.ended.is_none() && seat.host.failure.is_none();
        if is_its && seat.host.epoch.check(&step).is_ok() {
            seat.ended = Some(Ended { step, since, is_own: false });
            let timeout = seat.host.epoch.settings.timeout();
            self.schedule(since + timeout, SimEvent::Succeed(host));
        }
    }

    pub(super) fn hand_over(&mut self, host: usize, step: Arc<HandedOver>) {
        let since = self.now;
        let seat = self.seat(host);
        seat.host.hands_over(&step);
        seat.ended = Some(Ended { step, since, is_own: true });
        self.schedule(since, SimEvent::Succeed(host));
    }

    /// Goes on to the next epoch, once it is time.
    pub(super) fn succeed(&mut self, host: usize) {
        let now = self.now;
        let seat = self.seat(host);
        let Some(known) = seat.ended.clone().filter(|_| seat.host.failure.is_none()) else {
            return;
        };
        let epoch = Arc::clone(&seat.host.epoch);
        let next = self.shared.begin(&epoch, &known.step);
        let identity = self.shared.identity(host);
        let at_the_end = AtTheEnd {
            is_own: known.is_own,
            has_state: self.seat(host).host.executed() >= known.step.header.height,
            leaves: leaving::leaves(&epoch.committee, &known.step.file, &identity),
            is_served: self.is_served(host, &known.step),
        };
        let have_begun = || self.has_begun(&next);
        match known.waits(now, epoch.settings.timeout(), at_the_end, have_begun) {
            Some(waits) => self.schedule(now + waits, SimEvent::Succeed(host)),
            None => self.cross(host, &next),
        }
    }

    fn has_begun(&self, next: &EpochConfig) -> bool {
        let has_entered = |(_, host): &(usize, &CrashHost)| {
            host.epoch.number() == next.number() && host.executed() >= next.begins_after()
        };
        next.is_quorum(self.hosts().filter(has_entered).map(|(number, _)| number))
    }

    fn is_served(&self, host: usize, step: &HandedOver) -> bool {
        let Some(seat) = &self.seats[host] else { return false };
        let epoch = &seat.host.epoch;
        let leavers = leaving::leavers(&epoch.committee, &step.file);
        let leavers: Vec<usize> = leavers.filter_map(|member| epoch.host_of(member)).collect();
        let is_there = |(number, leaver): &(usize, &CrashHost)| {
            *number != host
                && leavers.contains(number)
                && leaver.epoch.number() == epoch.number()
                && !self.is_cut_off(*number)
        };
        !self.is_cut_off(host) && self.hosts().any(|leaver| is_there(&leaver))
    }

    fn hosts(&self) -> impl Iterator<Item = (usize, &CrashHost)> {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(number, seat)| Some((number, &seat.as_ref()?.host)))
    }

    /// ★ Ends a host's start with everything durable, notes how its epoch ended, and only then
    /// begins the next.
    fn cross(&mut self, host: usize, next: &Arc<EpochConfig>) {
        let now = self.now;
        if let Err(error) = self.end_and_open(host, next, now) {
            self.seat(host).host.failure = Some(error);
        }
    }

    fn end_and_open(
        &mut self,
        host: usize,
        next: &Arc<EpochConfig>,
        now: Time,
    ) -> Result<(), StorageError> {
        let (shared, chronicle) = (Arc::clone(&self.shared), self.chronicle.clone());
        let seat = self.seat(host);
        seat.host.end(now)?;
        seat.disks.epochs.note(next);
        seat.host.show(now, "note of the hand-over");
        let plan = failures_of(&seat.plan, seat.past.len() + 1);
        let start = (host, Arc::clone(next));
        let (opened, recovery) =
            CrashHost::open_in(&shared, start, &seat.disks, &plan, &chronicle)?;
        let former = std::mem::replace(&mut seat.host, opened);
        seat.past.push(former.faults().clone());
        seat.host.observer = former.observer;
        (seat.is_starting, seat.armed, seat.ended) = (true, None, None);
        self.schedule(now + RESTART, SimEvent::Start(host, Box::new(recovery)));
        Ok(())
    }
}

fn is_first_and_member(epoch: &EpochConfig, host: usize) -> bool {
    epoch.steps.is_empty() && epoch.seat(host).is_some()
}
