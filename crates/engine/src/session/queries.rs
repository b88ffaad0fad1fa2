//! A session's queries of the state: each goes to one member after the other until an answer
//! passes.

use super::pace::AnswerTime;
use super::{CallResult, CheckAnswer, ClientConfig, SessionEffect};
use crate::message::{Query, QueryResponse};
use bytes::Bytes;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::Proven;
use quorate_types::{ReplicaId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most queries under way.
const UNDER_WAY_MAX: usize = 1_024;
/// Attempts at each member before the caller gets an error.
const ROUNDS: usize = 2;
/// Time for which a learner that did not answer in time is not asked.
const PASSED_OVER: Duration = Duration::from_secs(10);

/// Queries that are not answered yet, by number.
#[derive(Debug)]
pub(super) struct Queries {
    members: usize,
    /// Learner that is asked before members are, unless it was silent lately.
    learner: Option<ReplicaId>,
    learner_silent_until: Time,
    retry_after: Duration,
    times: AnswerTime,
    check: CheckAnswer,
    next_id: u64,
    under_way: BTreeMap<u64, UnderWay>,
    effects: VecDeque<SessionEffect>,
}

#[derive(Debug)]
struct UnderWay {
    tag: u64,
    query: Bytes,
    /// Member that gets it before the others.
    first: ReplicaId,
    asked: ReplicaId,
    attempts: usize,
    started: Time,
    /// Member that was asked before other members, and when.
    first_asked: Option<(ReplicaId, Time)>,
    retry_at: Time,
    /// Reason that the member that was asked last gave.
    reason: String,
}

/// Place of the learner, behind the members.
fn learner_of(config: &ClientConfig) -> Option<ReplicaId> {
    config.learner.as_ref().map(|_| member(config.committee().size()))
}

fn member(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("members are few"))
}

impl Queries {
    pub(super) fn new(config: &ClientConfig) -> Self {
        Self {
            members: config.committee().size(),
            learner: learner_of(config),
            learner_silent_until: Time(0),
            retry_after: config.retry_after,
            times: AnswerTime::default(),
            check: config.check_answer.clone(),
            next_id: 0,
            under_way: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    pub(super) fn start(&mut self, now: Time, tag: u64, query: Bytes, first: ReplicaId) {
        if self.under_way.len() >= UNDER_WAY_MAX {
            self.answer(tag, Err("too many queries are under way".to_owned()));
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.begin(now, id, (tag, query), first);
    }

    /// Goes on with another committee: asks it everything that is under way, from `first` on.
    pub(super) fn enter(&mut self, now: Time, config: &ClientConfig, first: ReplicaId) {
        (self.members, self.learner) = (config.committee().size(), learner_of(config));
        self.effects.retain(|effect| matches!(effect, SessionEffect::Return { .. }));
        for (id, UnderWay { tag, query, .. }) in std::mem::take(&mut self.under_way) {
            self.begin(now, id, (tag, query), first);
        }
    }

    fn begin(&mut self, now: Time, id: u64, (tag, query): (u64, Bytes), first: ReplicaId) {
        let under_way = UnderWay {
            tag,
            query,
            first,
            asked: self.learner.filter(|_| self.learner_silent_until <= now).unwrap_or(first),
            attempts: 0,
            started: now,
            first_asked: None,
            retry_at: now,
            reason: "no member answered".to_owned(),
        };
        self.under_way.insert(id, under_way);
        self.send(now, id);
    }

    fn answer(&mut self, tag: u64, result: Result<(Proven, ExecutionCertificate), String>) {
        let result = CallResult::Answered(result);
        self.effects.push_back(SessionEffect::Return { tag, result });
    }

    /// Sends the query to the member whose turn it is.
    fn send(&mut self, now: Time, id: u64) {
        let Some(under_way) = self.under_way.get_mut(&id) else { return };
        if under_way.attempts == ROUNDS * self.members {
            let UnderWay { tag, reason, .. } = self.under_way.remove(&id).expect("looked at");
            self.answer(tag, Err(reason));
            return;
        }
        if under_way.attempts > 0 {
            under_way.asked = if Some(under_way.asked) == self.learner {
                under_way.first
            } else {
                member((under_way.asked.index() + 1) % self.members)
            };
        }
        // The first one may be dead: the second is asked as soon as an answer is late.
        let is_first = under_way.attempts == 0;
        under_way.attempts += 1;
        under_way.retry_at =
            now + if is_first { self.times.late_after(self.retry_after) } else { self.retry_after };
        if Some(under_way.asked) != self.learner {
            under_way.first_asked.get_or_insert((under_way.asked, now));
        }
        let query = Query { id, query: under_way.query.clone() };
        self.effects.push_back(SessionEffect::Query { to: under_way.asked, query });
    }

    /// Takes an answer. Returns the member that was asked before other members and when, if another
    /// one's answer passes.
    pub(super) fn on_response(
        &mut self,
        now: Time,
        from: ReplicaId,
        answered: QueryResponse,
    ) -> Option<(ReplicaId, Time)> {
        let QueryResponse { id, result } = answered;
        let under_way = self.under_way.get_mut(&id).filter(|u| u.asked == from)?;
        let checked = result.and_then(|(proven, certificate)| {
            self.check.check(&under_way.query, &certificate.header, &proven)?;
            Ok((proven, certificate))
        });
        match checked {
            Ok(answer) => {
                let (tag, first_asked) = (under_way.tag, under_way.first_asked);
                self.times.measured(now.since(under_way.started));
                self.under_way.remove(&id);
                self.answer(tag, Ok(answer));
                first_asked.filter(|(first, _)| *first != from)
            }
            Err(reason) => {
                under_way.reason = reason;
                self.send(now, id);
                None
            }
        }
    }

    /// Sends queries that are not answered in time to the next member.
    pub(super) fn retry(&mut self, now: Time) {
        let due = self.under_way.iter().filter(|(_, under_way)| under_way.retry_at <= now);
        let due: Vec<(u64, ReplicaId)> = due.map(|(id, u)| (*id, u.asked)).collect();
        if due.iter().any(|(_, asked)| Some(*asked) == self.learner) {
            self.learner_silent_until = now + PASSED_OVER;
        }
        let due = due.into_iter().map(|(id, _)| id);
        due.for_each(|id| self.send(now, id));
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.under_way.values().map(|under_way| under_way.retry_at).min()
    }

    pub(super) fn poll(&mut self) -> Option<SessionEffect> {
        self.effects.pop_front()
    }
}
