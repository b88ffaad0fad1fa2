//! The sessions on their thread, from epoch to epoch.

use super::links::{Heard, Links, Shown, Wiring};
use super::{Completion, Current, Operations, Submission};
use crate::NodeError;
use crate::clock::{Clock, unix_ms};
use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, Sender, select};
use quorate_crypto::KeyCache;
use quorate_engine::{CallResult, ClientConfig, Message, Session, SessionEffect, SessionEvent};
use quorate_types::{HandedOverError, History, Machine, ReplicaId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events taken in before their effects are applied.
const RUN_MAX: usize = 1_024;

/// Interval at which the thread wakes with nothing due; long enough to cost nothing.
const IDLE: Duration = Duration::from_secs(3_600);

pub(super) struct Driver {
    config: Arc<ClientConfig>,
    sessions: Vec<Session>,
    /// Next timeout of each session.
    due: Vec<Option<Time>>,
    wiring: Wiring,
    links: Links,
    /// Who showed a false end of this epoch.
    liars: BTreeSet<ReplicaId>,
    /// Last time at which this epoch was in force for certain.
    known_ms: u64,
    current: Arc<ArcSwap<Current>>,
    completed: Sender<Completion>,
    clock: Clock,
}

impl Driver {
    pub(super) fn new(
        config: &ClientConfig,
        (wiring, links): (Wiring, Links),
        current: Arc<ArcSwap<Current>>,
        completed: Sender<Completion>,
    ) -> Self {
        let config = Arc::new(config.clone());
        let count = config.sessions.len();
        let known_ms = config.history.known_ms().unwrap_or_else(unix_ms);
        let session = |index| Session::new(Arc::clone(&config), index);
        Self {
            sessions: (0..count).map(session).collect(),
            config,
            due: vec![None; count],
            wiring,
            links,
            liars: BTreeSet::new(),
            known_ms,
            current,
            completed,
            clock: Clock::start(),
        }
    }

    /// Serves one epoch after the other, until it is stopped.
    pub(super) fn run(mut self, submissions: &Receiver<Submission>, stopped: &Receiver<()>) {
        while let Some(history) = self.serve(submissions, stopped) {
            if let Err(error) = self.follow(history) {
                tracing::error!(%error, "the client stays in an epoch that has ended; trying again");
            }
        }
    }

    /// Serves this epoch. Returns the history up to the next one once a member shows the step to
    /// it, or `None` when the client is stopped.
    fn serve(
        &mut self,
        submissions: &Receiver<Submission>,
        stopped: &Receiver<()>,
    ) -> Option<History> {
        let (replies, steps) = (self.links.replies.clone(), self.links.steps.clone());
        loop {
            let mut next = None;
            select! {
                recv(submissions) -> submission => self.submit(self.clock.now(), submission.ok()?),
                recv(replies) -> heard => self.hear(self.clock.now(), heard.ok()?),
                recv(steps) -> shown => next = self.check(shown.ok()?),
                recv(stopped) -> _ => return None,
                default(self.time_left()) => {}
            }
            // Events that have queued meanwhile, replies first: they make room.
            let now = self.clock.now();
            replies.try_iter().take(RUN_MAX).for_each(|heard| self.hear(now, heard));
            submissions.try_iter().take(RUN_MAX).for_each(|item| self.submit(now, item));
            self.fire_timers(now);
            self.apply_effects();
            if next.is_some() {
                return next;
            }
        }
    }

    /// ★ Nobody is believed: what a quorum of this epoch did not sign is no end of it, nor is what
    /// its members sign when their keys are not trusted any more.
    fn check(&mut self, (member, step): Shown) -> Option<History> {
        let mut history = History::clone(&self.config.history).known_at(self.known_ms);
        match history.follow(step, unix_ms(), KeyCache::On) {
            Ok(()) => Some(history),
            Err(error @ HandedOverError::TooOld { .. }) => {
                self.become_outdated(error);
                None
            }
            Err(error) => {
                if self.liars.insert(member) {
                    tracing::warn!(%member, %error, "a member shows a false end of this epoch");
                }
                None
            }
        }
    }

    /// Lets callers know why this epoch is the last one that the client reaches.
    fn become_outdated(&self, reason: HandedOverError) {
        let current = self.current.load();
        if current.outdated.as_ref() == Some(&reason) {
            return;
        }
        tracing::warn!(error = %reason, "an end of this epoch is not believed");
        let outdated = Some(reason);
        self.current.store(Arc::new(Current { outdated, ..Current::clone(&current) }));
    }

    /// Goes on with the committee in force after this history. Whatever can fail does so before
    /// anything is changed.
    fn follow(&mut self, history: History) -> Result<(), NodeError> {
        let config = Arc::new(self.config.following(history));
        let links = self.wiring.reconnect(&config, &self.links)?;
        let epoch = config.committee().epoch();
        tracing::info!(%epoch, "the client follows its network to the next epoch");
        let now = self.clock.now();
        for (session, due) in self.sessions.iter_mut().zip(&mut self.due) {
            session.enter(now, Arc::clone(&config));
            *due = Some(now);
        }
        let (history, ups) = (Arc::clone(&config.history), links.ups());
        self.known_ms = history.known_ms().unwrap_or_else(unix_ms);
        self.current.store(Arc::new(Current { history, ups, outdated: None }));
        (self.config, self.links) = (config, links);
        self.liars.clear();
        Ok(())
    }

    fn submit(&mut self, now: Time, Submission { session, operations }: Submission) {
        let event = match operations {
            Operations::One(tag, operation) => SessionEvent::Submit { tag, operation },
            Operations::Many(operations) => SessionEvent::SubmitMany(operations),
            Operations::Query(tag, query) => SessionEvent::Query { tag, query },
        };
        self.sessions[session].handle(now, event);
        self.due[session] = Some(now);
    }

    fn hear(&mut self, now: Time, Heard { session, from, message }: Heard) {
        self.sessions[session].handle(now, SessionEvent::Message { from, message });
        self.due[session] = Some(now);
    }

    /// Fires the timers of every session that had an input or whose timeout has come.
    fn fire_timers(&mut self, now: Time) {
        for (machine, due) in self.sessions.iter_mut().zip(&mut self.due) {
            if due.is_some_and(|due| due <= now) {
                machine.handle_timeout(now);
                *due = machine.next_timeout();
            }
        }
    }

    fn apply_effects(&mut self) {
        let at = Instant::now();
        let mut is_answered = false;
        for (session, machine) in self.sessions.iter_mut().enumerate() {
            let outboxes = &self.links.outboxes[session];
            while let Some(effect) = machine.poll() {
                match effect {
                    SessionEffect::Send { to, request } => {
                        let frame = Message::Request(request).frame();
                        if self.config.send_to_all {
                            let members = outboxes.iter().take(self.config.committee().size());
                            members.for_each(|member| member.push(frame.clone()));
                        } else {
                            outboxes[to.index()].push(frame);
                        }
                    }
                    SessionEffect::Query { to, query } => {
                        outboxes[to.index()].push(Message::Query(query).frame());
                    }
                    SessionEffect::Return { tag, result } => {
                        is_answered |= matches!(result, CallResult::Completed(_));
                        // Fails only when the client has ended.
                        let _ = self.completed.send(Completion { session, tag, at, result });
                    }
                }
            }
        }
        if is_answered {
            self.hear_from_the_epoch();
        }
    }

    /// Members of this epoch have just executed something. Whoever is not trusted any more says
    /// nothing by that.
    fn hear_from_the_epoch(&mut self) {
        let now_ms = unix_ms();
        if self.config.committee().trusting_period().covers(self.known_ms, now_ms) {
            self.known_ms = now_ms;
        }
    }

    fn time_left(&self) -> Duration {
        let now = self.clock.now();
        self.due.iter().flatten().min().map_or(IDLE, |due| due.since(now))
    }
}
