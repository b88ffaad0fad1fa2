//! A session's questions about the state: put to one member after the other until an answer passes.

use super::{CheckAnswer, SessionConfig, SessionEffect, Told};
use crate::message::{Answered, Question};
use bytes::Bytes;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::Proven;
use quorate_types::{ReplicaId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most questions under way.
const UNDER_WAY_MAX: usize = 1_024;
/// Each member is asked so often.
const ROUNDS: usize = 2;
/// For so long a learner that did not answer in time is not asked.
const PASSED_OVER: Duration = Duration::from_secs(10);

/// The questions that are not answered yet.
#[derive(Debug)]
pub(super) struct Asking {
    members: usize,
    /// It is asked before members are, unless it was silent lately.
    learner: Option<ReplicaId>,
    learner_silent_until: Time,
    retry_after: Duration,
    check: CheckAnswer,
    next_id: u64,
    under_way: BTreeMap<u64, UnderWay>,
    effects: VecDeque<SessionEffect>,
}

#[derive(Debug)]
struct UnderWay {
    tag: u64,
    question: Bytes,
    /// The member that is asked before the others.
    first: ReplicaId,
    asked: ReplicaId,
    attempts: usize,
    retry_at: Time,
    /// What the member that was asked last said.
    reason: String,
}

fn place(index: usize) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("members are few"))
}

impl Asking {
    pub(super) fn new(config: &SessionConfig) -> Self {
        Self {
            members: config.committee.size(),
            learner: config.learner.then(|| place(config.committee.size())),
            learner_silent_until: Time(0),
            retry_after: config.retry_after,
            check: config.check_answer,
            next_id: 0,
            under_way: BTreeMap::new(),
            effects: VecDeque::new(),
        }
    }

    pub(super) fn ask(&mut self, now: Time, tag: u64, question: Bytes, first: ReplicaId) {
        if self.under_way.len() >= UNDER_WAY_MAX {
            self.tell(tag, Err("too many questions are under way".to_owned()));
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let under_way = UnderWay {
            tag,
            question,
            first,
            asked: self.learner.filter(|_| self.learner_silent_until <= now).unwrap_or(first),
            attempts: 0,
            retry_at: now,
            reason: "no member answered".to_owned(),
        };
        self.under_way.insert(id, under_way);
        self.put(now, id);
    }

    fn tell(&mut self, tag: u64, result: Result<(Proven, ExecutionCertificate), String>) {
        self.effects.push_back(SessionEffect::Answered(Told { tag, result }));
    }

    /// Asks the member whose turn it is.
    fn put(&mut self, now: Time, id: u64) {
        let Some(under_way) = self.under_way.get_mut(&id) else { return };
        if under_way.attempts == ROUNDS * self.members {
            let UnderWay { tag, reason, .. } = self.under_way.remove(&id).expect("looked at");
            self.tell(tag, Err(reason));
            return;
        }
        if under_way.attempts > 0 {
            under_way.asked = if Some(under_way.asked) == self.learner {
                under_way.first
            } else {
                place((under_way.asked.index() + 1) % self.members)
            };
        }
        under_way.attempts += 1;
        under_way.retry_at = now + self.retry_after;
        let question = Question { id, question: under_way.question.clone() };
        self.effects.push_back(SessionEffect::Ask { to: under_way.asked, question });
    }

    pub(super) fn on_answered(&mut self, now: Time, from: ReplicaId, answered: Answered) {
        let Answered { id, result } = answered;
        let Some(under_way) = self.under_way.get_mut(&id).filter(|u| u.asked == from) else {
            return;
        };
        let checked = result.and_then(|(proven, certificate)| {
            (self.check)(&under_way.question, &certificate.header, &proven)
                .map(|()| (proven, certificate))
        });
        match checked {
            Ok(answer) => {
                let tag = under_way.tag;
                self.under_way.remove(&id);
                self.tell(tag, Ok(answer));
            }
            Err(reason) => {
                under_way.reason = reason;
                self.put(now, id);
            }
        }
    }

    /// Questions that are not answered in time go to the next member.
    pub(super) fn due(&mut self, now: Time) {
        let due = self.under_way.iter().filter(|(_, under_way)| under_way.retry_at <= now);
        let due: Vec<(u64, ReplicaId)> = due.map(|(id, u)| (*id, u.asked)).collect();
        if due.iter().any(|(_, asked)| Some(*asked) == self.learner) {
            self.learner_silent_until = now + PASSED_OVER;
        }
        let due = due.into_iter().map(|(id, _)| id);
        due.for_each(|id| self.put(now, id));
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.under_way.values().map(|under_way| under_way.retry_at).min()
    }

    pub(super) fn poll(&mut self) -> Option<SessionEffect> {
        self.effects.pop_front()
    }
}
