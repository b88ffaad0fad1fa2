//! What the others hold of a member's own signatures, asked before it signs anything (★).
//!
//! A data folder that was put back from a copy, or a machine that was cloned, promises less than
//! its key has signed. Nothing in the folder says so; the other members can. Each keeps, of every
//! other, the newest statement of each kind and the newest [`OwnQuestion`]s that it signed
//! ([`Witnessed`]). A member that starts asks all for these, and acts on its records only once
//! members that weigh `weak`, one of them honest, have answered and nothing contradicts them.
//!
//! Two things contradict. A **statement** of its own that its records do not account for: they are
//! durable before a signature leaves, so they are older than the signature. And a **question** of
//! its own that another process asked: each start takes a number of its own, durable before the
//! question leaves, so a question with this number or a later one is of another copy of the folder.
//! Answers go to the member's address; whoever runs a clone elsewhere gets none and signs nothing,
//! and the one at the address learns of the clone. Either way the key signs no more in this
//! network.
//!
//! The question is asked again after [`ASK_EVERY`] heights and a while, and what comes by itself (a
//! certificate, a statement passed on) is looked at likewise: two that run at once find out. And it
//! is asked again by whoever may have missed what idle members say once: just after it began to
//! act, when it stood still, when its disk was full. A machine that was put back with its memory
//! stood still too.
//!
//! What it cannot show: statements that no honest member among those who answered holds, such as a
//! vote that only its collector saw; the last certificates stand in for most of these. And it is no
//! replacement for the log: members that all restart at once hold what their own records prove.

pub(crate) mod question;

use crate::frames::OWN_STATEMENTS_MAX;
use crate::{Message, ReplicaConfig, SignedEvidence};
use question::{OwnQuestion, OwnSignaturesAnswer, QUESTIONS_MAX};
use quorate_consensus::{Occupancy, SignedStatement, Statement};
use quorate_crypto::Bitmap;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{Committee, Height, ReplicaId, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Heights after which the question is asked again.
pub(crate) const ASK_EVERY: u64 = 128;

/// It is not asked again before so many times the wait of one that asks anew: what all answer has
/// certificates to check.
const ASK_PAUSES: u32 = 16;

/// Newest signatures of one other member, for it to ask for.
#[derive(Debug, Default)]
struct Witnessed {
    /// By kind of statement.
    statements: BTreeMap<usize, SignedStatement>,
    /// Those with the highest numbers, at most [`QUESTIONS_MAX`], each with the time of its last
    /// answer: two processes with one key do not keep each other's answers away.
    questions: Vec<(OwnQuestion, Option<Time>)>,
    /// Time of the last answer to one with a lower number.
    answered_at: Option<Time>,
}

impl Witnessed {
    /// Keeps it if it is the newest; what conflicts with one that is, is evidence.
    fn keep(&mut self, signer: ReplicaId, signed: SignedStatement) -> Option<SignedEvidence> {
        let kind = signed.statement.kind();
        let Some(known) = self.statements.get_mut(&kind) else {
            self.statements.insert(kind, signed);
            return None;
        };
        if known.statement.position() < signed.statement.position() {
            *known = signed;
            return None;
        }
        SignedEvidence::of_statements(signer, [known, &signed])
    }

    /// Of more than fit, the oldest start goes, and the one that takes its place is answered no
    /// earlier than it would have been.
    fn keep_question(&mut self, question: OwnQuestion) {
        if self.questions.iter().any(|(known, _)| *known == question) {
            return;
        }
        let oldest = self.questions.get(QUESTIONS_MAX - 1);
        let answered_at = oldest.and_then(|(_, answered_at)| *answered_at);
        self.questions.push((question, answered_at));
        self.questions.sort_by_key(|(known, _)| std::cmp::Reverse(known.start()));
        self.questions.truncate(QUESTIONS_MAX);
    }

    /// Time of the last answer to the question of this start.
    fn answered_at(&mut self, start: (u64, u64)) -> &mut Option<Time> {
        let known = self.questions.iter_mut().find(|(known, _)| known.start() == start);
        known.map_or(&mut self.answered_at, |(_, answered_at)| answered_at)
    }
}

/// Whether the others' word is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessState {
    /// It asks nobody: it signs nothing, or its host has it not ask.
    #[default]
    Unasked,
    /// It asked, and signs nothing until enough have answered.
    Waiting,
    /// Enough have answered, and nothing contradicts its records.
    Clear,
    /// Something contradicts its records: it signs no more.
    Contradicted,
}

/// Progress of the question after its own signatures, for status pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WitnessStatus {
    /// Whether the others' word is in.
    pub state: WitnessState,
    /// Weight of the other members that have answered since the start.
    pub answered: u64,
    /// Weight that it takes.
    pub needed: u64,
    /// What contradicts its records, in words; empty while nothing does.
    pub contradiction: String,
}

/// A member's question after its own signatures, and what it holds of the others'.
#[derive(Debug)]
pub(crate) struct OwnSignatures {
    id: ReplicaId,
    committee: Arc<Committee>,
    retry: Duration,
    question: Option<OwnQuestion>,
    state: WitnessState,
    answered: Bitmap,
    contradiction: String,
    ask_at: Option<Time>,
    asked_height: Height,
    asked_time: Time,
    witnessed: BTreeMap<ReplicaId, Witnessed>,
}

impl OwnSignatures {
    pub(crate) fn new(config: &ReplicaConfig) -> Self {
        let committee = Arc::clone(config.verifier.committee());
        Self {
            id: config.id,
            retry: config.settings.timeout() / 4,
            question: None,
            state: WitnessState::Unasked,
            answered: Bitmap::new(committee.size()),
            contradiction: String::new(),
            ask_at: None,
            asked_height: Height(0),
            asked_time: Time(0),
            witnessed: BTreeMap::new(),
            committee,
        }
    }

    /// ★ Begins to ask with the number of this start. A committee of one has nobody to ask.
    pub(crate) fn begin(&mut self, now: Time, config: &ReplicaConfig, incarnation: u64) {
        if !config.signs || !config.asks_witnesses {
            return;
        }
        let started_ms = config.wall_origin_ms.saturating_add(now.as_millis());
        let verifier = config.verifier.consensus();
        let question = OwnQuestion::signed(&config.identity, verifier, incarnation, started_ms);
        self.question = Some(question);
        self.ask_at = Some(now);
        self.state = WitnessState::Waiting;
        self.clear_if_answered();
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.state == WitnessState::Waiting
    }

    /// Weight of others without whose word nothing is signed (★): `weak`, so that an honest one is
    /// among them; or as much as answers without the faulty ones, where this member weighs so much
    /// that the others are fewer.
    fn needed(&self) -> u64 {
        let others = self.committee.weights().total() - self.committee.weight(self.id);
        self.committee.weak().min(others.saturating_sub(self.committee.faulty_max()))
    }

    fn clear_if_answered(&mut self) {
        let enough = self.committee.weight_of(&self.answered) >= self.needed();
        if self.is_waiting() && (enough || mutants::active(Mutant::SignWithoutWitnesses)) {
            self.state = WitnessState::Clear;
            self.ask_at = None;
        }
    }

    /// The question, when it is due: while it waits, and every so many heights.
    pub(crate) fn due(&mut self, now: Time, decided: Height) -> Option<Message> {
        let is_active = self.state == WitnessState::Clear
            && decided.0 >= self.asked_height.0.saturating_add(ASK_EVERY)
            && now.since(self.asked_time) >= self.retry * ASK_PAUSES;
        if !is_active && self.ask_at.is_none_or(|at| at > now) {
            return None;
        }
        (self.asked_height, self.asked_time) = (decided, now);
        self.ask_at = self.is_waiting().then(|| now + self.retry);
        self.question.clone().map(Message::OwnQuestion)
    }

    /// Asks once more in a while, of who signs: it may have missed what others say once, and their
    /// answers come with what they decided last.
    pub(crate) fn ask_again(&mut self, now: Time) {
        if self.state == WitnessState::Clear {
            self.ask_at = self.question.is_some().then(|| now + self.retry);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.ask_at
    }

    /// Keeps what another member signed, to show it when it asks; and returns what contradicts the
    /// newest that it signed of this kind, its proof unchecked.
    pub(crate) fn keep(
        &mut self,
        signer: ReplicaId,
        signed: SignedStatement,
    ) -> Option<SignedEvidence> {
        self.witnessed.entry(signer).or_default().keep(signer, signed)
    }

    /// Another start of a member under the number of this one.
    pub(crate) fn twin_of(&self, asker: ReplicaId, start: &OwnQuestion) -> Option<SignedEvidence> {
        let mut known = self.witnessed.get(&asker)?.questions.iter();
        known.find_map(|(known, _)| SignedEvidence::of_starts(asker, [known, start]))
    }

    /// Answer to a member's question, with what certificates prove of it besides; `None` for one
    /// that asks faster than whoever waits does, for an answer is much longer than a question.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        (asker, question): (ReplicaId, OwnQuestion),
        certified: impl FnOnce() -> Vec<SignedStatement>,
    ) -> Option<Message> {
        let asked = question.start();
        let pause = self.retry / 2;
        let known = self.witnessed.entry(asker).or_default();
        known.keep_question(question);
        let answered_at = known.answered_at(asked);
        if answered_at.is_some_and(|at| now.since(at) < pause) {
            return None;
        }
        *answered_at = Some(now);
        let known_questions = known.questions.iter().map(|(question, _)| question);
        let questions = known_questions.filter(|it| it.incarnation >= asked.0).cloned().collect();
        let mut statements: Vec<_> = known.statements.values().cloned().collect();
        statements.extend(certified());
        statements.truncate(OWN_STATEMENTS_MAX);
        let answer = OwnSignaturesAnswer { signer: asker, asked, questions, statements };
        Some(Message::OwnSignatures(answer))
    }

    /// ★ Takes an answer in: what contradicts the own records, if anything does.
    pub(crate) fn take(
        &mut self,
        from: ReplicaId,
        answer: &OwnSignaturesAnswer,
        accounts_for: impl Fn(&Statement) -> bool,
    ) -> Result<(), String> {
        let Some(own) = self.question.as_ref().filter(|_| answer.signer == self.id) else {
            return Ok(());
        };
        let is_anothers =
            |it: &&OwnQuestion| it.incarnation >= own.incarnation && it.start() != own.start();
        let ignored = mutants::active(Mutant::IgnoreTwin);
        if let Some(other) = answer.questions.iter().find(is_anothers).filter(|_| !ignored) {
            return Err(format!(
                "another process signed with this key as of start {}, and this one is start {}: \
                 this folder is an old copy, or another holder of the key runs",
                other.incarnation, own.incarnation
            ));
        }
        for SignedStatement { statement, .. } in &answer.statements {
            contradicts(statement, &accounts_for)?;
        }
        if answer.asked == own.start() {
            self.answered.insert(from.index());
            self.clear_if_answered();
        }
        Ok(())
    }

    pub(crate) fn contradicted(&mut self, contradiction: String) {
        self.state = WitnessState::Contradicted;
        self.contradiction = contradiction;
        self.ask_at = None;
    }

    pub(crate) fn status(&self) -> WitnessStatus {
        WitnessStatus {
            state: self.state,
            answered: self.committee.weight_of(&self.answered),
            needed: self.needed(),
            contradiction: self.contradiction.clone(),
        }
    }

    pub(crate) fn occupancy(&self) -> [Occupancy; 3] {
        let statements = self.witnessed.values().map(|known| known.statements.len());
        let questions = self.witnessed.values().map(|known| known.questions.len());
        [
            Occupancy::new("witnessed", self.witnessed.len(), self.committee.size()),
            Occupancy::of_fullest("statements", statements, Statement::KINDS),
            Occupancy::of_fullest("questions", questions, QUESTIONS_MAX),
        ]
    }
}

/// ★ A statement of this member that its records do not account for contradicts them.
pub(crate) fn contradicts(
    statement: &Statement,
    accounts_for: impl Fn(&Statement) -> bool,
) -> Result<(), String> {
    if accounts_for(statement) || mutants::active(Mutant::SignBelowWitnesses) {
        return Ok(());
    }
    Err(format!(
        "this key signed {statement}, which the records of this process do not account for: its \
         folder is an old copy, or another holder of the key runs"
    ))
}

#[cfg(test)]
mod tests;
