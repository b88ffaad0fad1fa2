//! Starting again from what survived.

use super::messages::{Block, Vote, encode};
use super::records::{DecidedBlock, SafetyRecord};
use super::state::Chained;
use crate::block_tree::{Root, TreeBlock};
use crate::read_back::check_bodies;
use crate::{Decided, Output};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::Halt;
use quorate_types::{BlockId, BodyRef, Time, View};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Chained {
    /// Restores promises and position. Decided blocks after the executed one are decided again, for
    /// the engine to execute. The view is the one that the certificates lead to; what was said in
    /// it is said again, byte for byte.
    pub(super) fn recover(
        &mut self,
        now: Time,
        safety: Option<&Bytes>,
        executed: Option<&Bytes>,
        decided: &[Bytes],
        stored: &BTreeSet<BodyRef>,
    ) {
        if let Err(reason) = self.restore(now, safety, executed, decided) {
            self.halted = true;
            self.outputs.push_back(Output::Halt(Halt::CorruptRecovery(reason)));
            return;
        }
        if self.has_ended() {
            return;
        }
        let by_tc = self.high_tc.as_ref().map_or(View(0), |tc| tc.view);
        let view = self.view_by_qc().max(by_tc.next());
        self.enter(now, view);
        self.update_work(now);
        self.find_stored(stored);
        self.withhold_vote();
        let view = self.view;
        for said in self.said_votes().into_iter().filter(|said| said.vote.view == view) {
            self.deliver_vote(now, said);
        }
        let high_qc = self.high_qc.clone();
        self.on_qc(now, &high_qc);
    }

    /// The undecided blocks whose bodies are here. A change of epoch is asked for and checked anew
    /// (★).
    fn find_stored(&mut self, stored: &BTreeSet<BodyRef>) {
        let is_here = |block: &&Arc<Block>| {
            !block.payload.ends_epoch()
                && block.payload.bodies.iter().all(|body| stored.contains(body))
        };
        self.stored = self.tree.blocks().filter(is_here).map(|block| block.id()).collect();
    }

    /// A vote says that its block's bodies are stored (★). When they are not any more, because
    /// their files were lost, it waits until they were fetched: also a vote of an earlier view,
    /// which a timeout would show.
    fn withhold_vote(&mut self) {
        let Some(id) = self.last_voted() else { return };
        let is_lost = !self.stored.contains(&id) && !mutants::active(Mutant::VoteWithoutBodies);
        let lost = self.tree.get(id).filter(|_| is_lost);
        if let Some(block) = lost.cloned() {
            self.withheld = Some(id);
            self.request_bodies(&block);
        }
    }

    /// The bodies of the withheld vote are here again.
    pub(super) fn release_withheld_vote(&mut self, now: Time, id: BlockId) {
        if self.withheld != Some(id) {
            return;
        }
        self.withheld = None;
        for said in self.said_votes().into_iter().filter(|said| said.vote.id == id) {
            self.deliver_vote(now, said);
        }
    }

    /// The block of the last votes.
    fn last_voted(&self) -> Option<BlockId> {
        self.said_votes().last().map(|said| said.vote.id)
    }

    /// No vote that is withheld will ever be said.
    pub(super) fn forget_withheld_votes(&mut self) {
        let withheld = self.withheld;
        let is_said = |vote: &Vote| withheld != Some(vote.id);
        self.last_vote = self.last_vote.take().filter(is_said);
        self.phases.voted.votes.retain(|said| is_said(&said.vote));
    }

    /// The state of a decided height came from other members: that height is the root now, and what
    /// was decided on the way there is skipped. Promises stay as they are.
    pub(super) fn on_installed(&mut self, now: Time, record: &Bytes) {
        let record = match self.decode_decided("an installed height's record", record) {
            Ok(record) => record,
            Err(reason) => {
                self.halted = true;
                self.outputs.push_back(Output::Halt(Halt::CorruptRecovery(reason)));
                return;
            }
        };
        if record.block.payload.header.height <= self.tree.root().height {
            return;
        }
        self.decided.clear();
        self.decided.insert(record.block.view, record.block.id());
        if self.tree.contains(record.block.id()) {
            self.tree.decide(record.block.id());
        } else {
            self.tree.reset(Root::of(&record.block));
        }
        self.last_commit = Some(record.commit.clone());
        if record.block.payload.ends_epoch() {
            self.end_epoch(now);
            return;
        }
        let tree = &self.tree;
        self.stored.retain(|id| tree.get(*id).is_some());
        self.update_work(now);
        self.on_qc(now, &record.commit);
        self.unpark(now);
        self.retry_pending_commit(now);
        let high_qc = self.high_qc.clone();
        self.on_qc(now, &high_qc);
        self.request_payload();
    }

    fn restore(
        &mut self,
        now: Time,
        safety: Option<&Bytes>,
        executed: Option<&Bytes>,
        decided: &[Bytes],
    ) -> Result<(), String> {
        if let Some(executed) = executed {
            let record = self.decode_decided("the executed height's record", executed)?;
            // What was decided before it is not known by view any more.
            self.decided.clear();
            self.restore_root(now, &record);
        }
        for bytes in decided {
            let record = self.decode_decided("a decided record", bytes)?;
            if record.block.parent() != self.tree.root().id {
                return Err(format!(
                    "decided height {} does not extend the one before it",
                    record.block.payload.header.height
                ));
            }
            self.restore_root(now, &record);
            self.outputs.push_back(Output::Decided(Decided {
                block: record.block.id(),
                payload: record.block.payload.clone(),
                record: bytes.clone(),
                signers: None,
            }));
        }
        if let Some(safety) = safety.filter(|_| !mutants::active(Mutant::ChainedAmnesia)) {
            self.restore_promises(decode("the safety record", safety)?)?;
        }
        Ok(())
    }

    /// Decodes the record of a block that was decided in this epoch.
    fn decode_decided(&self, what: &str, bytes: &Bytes) -> Result<DecidedBlock, String> {
        let record: DecidedBlock = decode(what, bytes)?;
        if record.block.epoch != self.verifier.committee().epoch_id() {
            return Err(format!("{what} is of epoch {}, not of this one", record.block.epoch));
        }
        check_bodies(what, [&record.block.payload])?;
        Ok(record)
    }

    fn restore_root(&mut self, now: Time, record: &DecidedBlock) {
        self.decided.insert(record.block.view, record.block.id());
        self.tree.reset(Root::of(&record.block));
        self.last_commit = Some(record.commit.clone());
        if record.commit.outranks(&self.high_qc, self.verifier.rules()) {
            self.high_qc = record.commit.clone();
        }
        if record.block.payload.ends_epoch() {
            self.end_epoch(now);
        }
    }

    fn restore_promises(&mut self, record: SafetyRecord) -> Result<(), String> {
        if record.epoch != self.verifier.committee().epoch_id() {
            return Err(format!("the safety record is of epoch {}, not of this one", record.epoch));
        }
        let proposed = record.last_proposal.iter().map(|proposal| &proposal.block);
        let payloads = proposed.chain(&record.blocks).map(|block| &block.payload);
        check_bodies("the safety record", payloads)?;
        let rules = self.verifier.rules();
        let same = record.lock.is_some() == rules.locks;
        if !same || record.later.is_some() != rules.is_phased() {
            let protocol = self.verifier.protocol();
            return Err(format!(
                "the safety record is of another protocol than {protocol}: \
                 name the one that wrote it, or begin a new epoch"
            ));
        }
        self.voted_view = record.voted_view;
        self.last_vote = record.last_vote;
        self.timeout_view = record.timeout_view;
        self.last_proposal = record.last_proposal;
        if record.high_qc.outranks(&self.high_qc, rules) {
            self.high_qc = record.high_qc;
        }
        if let Some(lock) = record.lock.filter(|_| !mutants::active(Mutant::HotStuffForgetLock)) {
            self.lock = lock;
        }
        if let Some(later) = record.later.filter(|_| !mutants::active(Mutant::BasicForgetPhase)) {
            self.phases.voted = later;
        }
        if !mutants::active(Mutant::ChainedForgetTc) {
            self.high_tc = record.high_tc;
        }
        for block in record.blocks {
            // Votes before the last one are not in the record, but their blocks are.
            if block.view > self.high_qc.view {
                self.voted.insert(block.view, block.id());
            }
            if self.tree.contains(block.parent()) && !self.tree.contains(block.id()) {
                self.plant(Arc::new(block));
            }
        }
        Ok(())
    }
}

fn decode<T: borsh::BorshDeserialize + borsh::BorshSerialize>(
    what: &str,
    bytes: &Bytes,
) -> Result<T, String> {
    let value = borsh::from_slice(bytes).map_err(|reason| format!("{what}: {reason}"))?;
    debug_assert_eq!(encode(&value), bytes.as_ref(), "the encoding is canonical");
    Ok(value)
}
