//! Waiting for the others' word about the own signatures, and ending all signing when it
//! contradicts the records ([`crate::own_signatures`]).

use super::{Replica, mempool, protocol};
use crate::SignedEvidence;
use crate::own_signatures::contradicts;
use crate::own_signatures::question::{OwnQuestion, OwnSignaturesAnswer};
use bytes::Bytes;
use quorate_consensus::{
    self as consensus, Evidence, Input, MessageKind, Misbehaviour, Output, Rule, Statement,
};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BodyRef, Effect, Machine, Recipients, ReplicaId, Time, Verified};
use std::collections::BTreeSet;

/// Records of a protocol that it must not act on yet.
#[derive(Debug)]
pub(super) struct ProtocolRecords {
    pub(super) safety: Option<Bytes>,
    pub(super) slots: Vec<Bytes>,
    pub(super) executed: Option<Bytes>,
    pub(super) decided: Vec<Bytes>,
    pub(super) stored: BTreeSet<BodyRef>,
}

impl ProtocolRecords {
    fn input(&self) -> Input {
        Input::Recovered {
            safety: self.safety.clone(),
            slots: self.slots.clone(),
            executed: self.executed.clone(),
            decided: self.decided.clone(),
            stored: self.stored.clone(),
        }
    }
}

impl Replica {
    /// Reads the protocol's records, and acts on them at once or when the others' word is in.
    pub(super) fn recover_protocol(&mut self, now: Time, records: ProtocolRecords) {
        self.unacted = Some(records);
        if self.own_signatures.is_waiting() {
            self.look_at_records(now);
        } else {
            self.act_on_records(now);
        }
    }

    /// ★ Until the others' word is in, the machine knows its records and nothing that it wants to
    /// do about them is done. Records that cannot be read stop it all the same.
    fn look_at_records(&mut self, now: Time) {
        let Some(records) = &self.unacted else { return };
        self.protocol.handle(now, records.input());
        while let Some(output) = self.protocol.poll() {
            if let Output::Halt(halt) = output {
                self.effects.push_back(Effect::Halt(halt));
            }
        }
    }

    /// Begins anew with the records: now what it says is said, and its timers run.
    fn act_on_records(&mut self, now: Time) {
        let Some(records) = self.unacted.take() else { return };
        self.protocol = protocol(&self.config);
        // Whether there is work was said to the machine before this one.
        self.working = false;
        self.feed(now, records.input());
        self.note_view(now);
        self.bodies.revive(now);
        self.release();
        for (from, message) in std::mem::take(&mut self.shown_meanwhile) {
            self.feed(now, Input::Message { from, message });
        }
        self.own_signatures.ask_again(now);
    }

    /// Keeps the last decision that a member showed while the protocol must not act: whoever is
    /// idle shows it once.
    pub(super) fn keep_shown(
        &mut self,
        from: ReplicaId,
        message: Box<Verified<consensus::Message>>,
    ) {
        if matches!(message.kind(), MessageKind::Certificates | MessageKind::Decided) {
            self.shown_meanwhile.insert(from, message);
        }
    }

    /// Notes what a protocol's message shows of its signer, or of this member.
    pub(super) fn witness(&mut self, now: Time, from: ReplicaId, message: &consensus::Message) {
        let (id, verifier) = (self.config.id, self.config.verifier.consensus());
        let certified = message.certified_statement(id, verifier);
        let equivocation = message.shown_equivocation(verifier);
        let own = match message.signed_statement(from, verifier) {
            Some((signer, signed)) if signer == id => Some(signed.statement),
            Some((signer, signed)) => {
                let found = self.own_signatures.keep(signer, signed);
                self.take_evidence(found);
                None
            }
            None => None,
        };
        if let Some((primary, [first, second])) = equivocation {
            self.take_evidence(SignedEvidence::of_statements(primary, [&first, &second]));
        }
        for statement in own.into_iter().chain(certified) {
            self.look_at_own(now, &statement);
        }
    }

    /// Keeps evidence if it is good and the first of its member and rule.
    fn take_evidence(&mut self, found: Option<SignedEvidence>) -> bool {
        let verifier = self.config.verifier.consensus();
        found.is_some_and(|found| self.evidence.take(found, verifier))
    }

    /// ★ A statement of this member that came from elsewhere: did this process make it?
    fn look_at_own(&mut self, now: Time, statement: &Statement) {
        if !self.config.signs || !self.config.asks_witnesses {
            return;
        }
        let state = self.protocol.state();
        let found = contradicts(statement, |statement| state.accounts_for(statement));
        if let Err(contradiction) = found {
            self.stop_signing(now, contradiction);
        }
    }

    pub(super) fn on_own_question(&mut self, now: Time, from: ReplicaId, question: OwnQuestion) {
        let number = question.incarnation;
        let found = self.own_signatures.twin_of(from, &question);
        if self.take_evidence(found) {
            let (rule, evidence) = (Rule::SharedKey, Evidence::Starts { number });
            self.note_misbehaviour(&Misbehaviour { member: from, rule, evidence });
        }
        let certified = || self.protocol.state().certified_statements(from);
        let answer = self.own_signatures.answer(now, (from, question), certified);
        if let Some(answer) = answer {
            self.send(Recipients::One(from), answer);
            self.feed(now, Input::ShowDecision { to: from });
        }
    }

    pub(super) fn on_own_signatures(
        &mut self,
        now: Time,
        from: ReplicaId,
        answer: &OwnSignaturesAnswer,
    ) {
        if !self.config.signs {
            return;
        }
        let state = self.protocol.state();
        let taken =
            self.own_signatures.take(from, answer, |statement| state.accounts_for(statement));
        match taken {
            Err(contradiction) => self.stop_signing(now, contradiction),
            Ok(()) if !self.own_signatures.is_waiting() => self.act_on_records(now),
            Ok(()) => {}
        }
    }

    /// ★ The key signs no more in this network: the host notes it for every later start, and this
    /// one goes on as a member that lost its log.
    fn stop_signing(&mut self, now: Time, contradiction: String) {
        self.config.signs = false;
        self.execution.stop_signing();
        self.checkpoints.stop_signing();
        self.hand_overs.stop_signing();
        self.certifier.stop_signing();
        // ★ What waits here would be numbered as another process numbers its own.
        if !mutants::active(Mutant::SealWithoutSigning) {
            self.mempool = mempool(&self.config, 0);
            self.unsent.clear();
        }
        self.own_signatures.contradicted(contradiction.clone());
        self.effects.push_back(Effect::StopSigning(contradiction));
        if self.unacted.is_some() {
            self.act_on_records(now);
        } else {
            self.feed(now, Input::StopSigning);
        }
    }

    pub(super) fn ask_witnesses(&mut self, now: Time) {
        if let Some(question) = self.own_signatures.due(now, self.schedule.decided()) {
            self.send(Recipients::All, question);
        }
    }
}
