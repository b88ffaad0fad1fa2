//! Observer of a validator: who is heard, whether there is a quorum, and whether anything moves.
//!
//! It looks once a second at what the replica shows and at when each member was last heard. What
//! changed gets a line in the log, once; `/readyz`, `/status` and `/metrics` show the rest. It
//! decides nothing.

use crate::health::{Health, Unready};
use crate::transport::Network;
use crate::transport::contacts::PROBE_INTERVAL;
use arc_swap::ArcSwap;
use quorate_engine::{GivenUp, Status};
use quorate_types::{Height, ReplicaId, Weights};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// A member from which nothing came for so long is silent: five probes.
const SILENT_AFTER: Duration = Duration::from_secs(5);
/// A committee that decides nothing for so many view timeouts is stalled, if there is work.
const STALL_TIMEOUTS: u32 = 4;
/// It is never called stalled sooner.
const STALL_MIN: Duration = Duration::from_secs(2);
/// Whoever misses something for so long is catching up: a body that is late is no reason.
const CATCHING_UP_AFTER: Duration = Duration::from_secs(2);
/// Looks that are further apart than this were not taken: the process stood still.
const STOOD_STILL_AFTER: Duration = Duration::from_secs(3);
/// Views that are given up get one line in so long.
const GIVEN_UP_EVERY: Duration = Duration::from_secs(10);

/// What there is to see at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) now: Instant,
    pub(crate) status: Arc<Status>,
    /// Other members, with the time since each was heard; `None` for one that never was.
    pub(crate) silences: Vec<(ReplicaId, Option<Duration>)>,
}

/// Observer of one validator.
#[derive(Debug)]
pub(crate) struct Observer {
    weights: Weights,
    id: ReplicaId,
    /// False for learners, and for members that were told to follow only.
    should_sign: bool,
    timeout: Duration,
    started: Instant,
    looked: Instant,
    /// When this process last went on after it had stood still, and for how long it had.
    resumed: Option<(Instant, Duration)>,
    decided: Height,
    /// Time of the last decision, or of the last look without work.
    progressed: Instant,
    syncing_since: Option<Instant>,
    last: Health,
    given_up: Complaint,
}

/// Views that were given up, as far as the log has them.
#[derive(Debug, Default)]
struct Complaint {
    last: Option<Instant>,
    logged: u64,
}

impl Observer {
    /// An observer that begins to listen now.
    pub(crate) fn new(
        weights: &Weights,
        id: ReplicaId,
        should_sign: bool,
        timeout: Duration,
        now: Instant,
    ) -> Self {
        Self {
            weights: weights.clone(),
            id,
            should_sign,
            timeout,
            started: now,
            looked: now,
            resumed: None,
            decided: Height(0),
            progressed: now,
            syncing_since: None,
            last: Health::starting(weights),
            given_up: Complaint::default(),
        }
    }

    /// Probes and looks once a second, for ever.
    pub(crate) async fn run(
        mut self,
        network: Arc<Network>,
        status: Arc<ArcSwap<Status>>,
        health: Arc<ArcSwap<Health>>,
    ) {
        let mut ticks = interval(PROBE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            network.probe();
            let silences = network.silences();
            let seen = Seen { now: Instant::now(), status: status.load_full(), silences };
            health.store(Arc::new(self.look(&seen)));
        }
    }

    /// Judges what there is to see, and logs what changed.
    pub(crate) fn look(&mut self, seen: &Seen) -> Health {
        self.notice_pause(seen.now);
        let mut health = self.hear(seen);
        health.unready = self.reasons(seen, &health);
        self.report(&health);
        self.complain(seen);
        self.last = health.clone();
        health
    }

    /// What others sent while this process stood still is not their silence.
    fn notice_pause(&mut self, now: Instant) {
        let pause = now.duration_since(self.looked);
        self.looked = now;
        if pause >= STOOD_STILL_AFTER {
            tracing::warn!(seconds = pause.as_secs(), "this process stood still");
            self.resumed = Some((now, pause));
            self.progressed += pause;
        }
    }

    fn is_member(&self) -> bool {
        self.id.index() < self.weights.members()
    }

    /// Long enough to say who is silent.
    fn has_listened(&self, now: Instant) -> bool {
        now.duration_since(self.started) >= SILENT_AFTER
    }

    /// Who is heard. A learner asks its members when it lacks something, and hears nobody else.
    fn hear(&self, seen: &Seen) -> Health {
        let mut health = Health { unready: Vec::new(), ..Health::starting(&self.weights) };
        if !self.is_member() {
            return health;
        }
        // Until what was sent meanwhile is here.
        let resumed = self.resumed.filter(|(at, _)| seen.now.duration_since(*at) < SILENT_AFTER);
        let pause = resumed.map_or(Duration::ZERO, |(_, pause)| pause);
        let is_heard = |silence: &Option<Duration>| {
            silence.is_some_and(|span| span.saturating_sub(pause) < SILENT_AFTER)
        };
        let heard = seen.silences.iter().filter(|(_, silence)| is_heard(silence));
        for member in heard.map(|(member, _)| *member).chain([self.id]) {
            health.heard += 1;
            health.heard_weight += self.weights.of(member.index());
        }
        if self.has_listened(seen.now) {
            let silent = seen.silences.iter().filter(|(_, silence)| !is_heard(silence));
            health.silent = silent.map(|(member, _)| *member).collect();
        }
        health
    }

    fn reasons(&mut self, seen: &Seen, health: &Health) -> Vec<Unready> {
        let status = &seen.status;
        let mut reasons = Vec::new();
        if self.is_member() && !health.has_quorum() {
            let listened = self.has_listened(seen.now);
            reasons.push(if listened { Unready::NoQuorum } else { Unready::Listening });
        }
        reasons.extend(self.stall(seen).map(Unready::Stalled));
        if self.is_catching_up(seen) {
            reasons.push(Unready::CatchingUp(status.sync.clone()));
        }
        if self.should_sign && !status.signs {
            reasons.push(Unready::NotSigning);
        }
        reasons.extend(status.diverged.map(Unready::Diverged));
        reasons
    }

    /// Time without a decision though there is work, once it is too long.
    fn stall(&mut self, seen: &Seen) -> Option<Duration> {
        let status = &seen.status;
        if status.decided != self.decided || !status.working {
            (self.decided, self.progressed) = (status.decided, seen.now);
        }
        let span = seen.now.duration_since(self.progressed);
        (span >= STALL_MIN.max(STALL_TIMEOUTS * self.timeout)).then_some(span)
    }

    fn is_catching_up(&mut self, seen: &Seen) -> bool {
        if !seen.status.syncing {
            self.syncing_since = None;
            return false;
        }
        let since = *self.syncing_since.get_or_insert(seen.now);
        seen.now.duration_since(since) >= CATCHING_UP_AFTER
    }

    /// One line for each change since the last look.
    fn report(&self, health: &Health) {
        let last = &self.last;
        for member in health.silent.iter().filter(|member| !last.silent.contains(member)) {
            let seconds = SILENT_AFTER.as_secs();
            tracing::warn!(%member, seconds, "a member is silent: nothing of it was heard");
        }
        for member in last.silent.iter().filter(|member| !health.silent.contains(member)) {
            tracing::info!(%member, "a member is heard again");
        }
        for reason in health.unready.iter().filter(|reason| !last.has_like(reason)) {
            if *reason != Unready::Listening {
                tracing::warn!("{}", health.words(reason));
            }
        }
        for reason in last.unready.iter().filter(|reason| !health.has_like(reason)) {
            if let Some(ending) = reason.ending() {
                tracing::info!("{ending}: {health}");
            }
        }
        if health.is_ready() != last.is_ready() {
            tracing::info!(ready = health.is_ready(), "readiness changed");
        }
    }

    /// Views that were given up since the last line, at most one line in a while: a member that
    /// leads badly must not fill the disk.
    fn complain(&mut self, seen: &Seen) {
        let contributions = &seen.status.contributions;
        let fresh = contributions.given_up_total() - self.given_up.logged;
        let is_due =
            self.given_up.last.is_none_or(|last| seen.now.duration_since(last) >= GIVEN_UP_EVERY);
        if fresh == 0 || !is_due {
            return;
        }
        let known = contributions.given_up().count();
        let shown = usize::try_from(fresh).unwrap_or(known).min(known);
        let words =
            |one: &GivenUp| format!("{} of {} ({})", one.view, one.leader, one.reason.name());
        let views: Vec<String> = contributions.given_up().skip(known - shown).map(words).collect();
        let view = seen.status.view;
        tracing::warn!(views = views.join(", "), count = fresh, now = %view, "views were given up");
        self.given_up = Complaint { last: Some(seen.now), logged: contributions.given_up_total() };
    }
}

#[cfg(test)]
mod tests;
