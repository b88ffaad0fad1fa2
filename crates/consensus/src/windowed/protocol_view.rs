//! State that the engine may read.

use super::collectors;
use super::rules::CHECKPOINT_EVERY;
use super::state::Windowed;
use super::values::{DecidedSlot, encode};
use crate::pacemaker::longest_pause;
use crate::{
    IgnoredCounts, Message, Occupancy, ProtocolStatus, ProtocolView, SignedStatement, Statement,
};
use bytes::Bytes;
use quorate_types::{BlockId, BodyRef, Payload, ReplicaId, View};
use std::collections::BTreeSet;
use std::time::Duration;

impl ProtocolView for Windowed {
    fn status(&self) -> ProtocolStatus {
        let proof = self.last_record.as_ref().map(|record| &record.proof.certificate.certificate);
        ProtocolStatus {
            view: self.view,
            leader: self.primary(),
            view_changes: self.view_changes,
            certificate_bytes: proof.map_or(0, |proof| encode(proof).len() as u64),
            fast_decisions: self.paths.fast,
            slow_decisions: self.paths.slow,
        }
    }

    fn ignored(&self) -> &IgnoredCounts {
        &self.ignored
    }

    fn occupancy(&self) -> Vec<Occupancy> {
        self.collections()
    }

    fn view(&self) -> View {
        self.view
    }

    fn upcoming_leaders(&self, views: u64) -> Vec<ReplicaId> {
        let members = self.members();
        let ahead = |ahead| View(self.view.0.saturating_add(ahead));
        (0..views).map(|views| collectors::primary(ahead(views), members)).collect()
    }

    fn has_stable_leader(&self) -> bool {
        true
    }

    fn judges_leader(&self) -> bool {
        self.takes_part() && !self.is_primary()
    }

    /// Not before the view's first own slot is decided: others have waited long enough for that.
    fn pause_max(&self) -> Duration {
        let may_pause = self.is_primary() && self.takes_part() && self.decided > self.base;
        if may_pause { longest_pause(self.config.timeout) } else { Duration::ZERO }
    }

    /// Id of the last delivered value, or of the genesis.
    fn tip(&self) -> BlockId {
        self.tip
    }

    /// Of decided values only the last two windows' deliveries are known, of others none. After the
    /// end nothing is missing.
    fn has_block(&self, id: BlockId) -> bool {
        self.has_ended() || self.recent.contains(&id.0)
    }

    /// The value must be waiting for its bodies.
    fn may_vote(&self, id: BlockId) -> bool {
        let current = Some((self.view, id.0));
        self.window.after(self.decided).any(|(_, slot)| slot.proposed == current && !slot.is_stored)
    }

    fn undecided_bodies(&self) -> BTreeSet<BodyRef> {
        let slots = self.window.after(self.decided);
        let payloads = slots.flat_map(|(_, slot)| slot.payloads.values());
        payloads.flat_map(|payload| &payload.bodies).copied().collect()
    }

    fn tail(&self, _after: BlockId, _target: BlockId) -> Option<Vec<Bytes>> {
        None
    }

    fn rests_on(&self, _message: &Message) -> Option<(BlockId, Bytes)> {
        None
    }

    fn checkpoint_every(&self) -> Option<u64> {
        Some(CHECKPOINT_EVERY)
    }

    fn record_id(&self, record: &Bytes) -> Option<BlockId> {
        DecidedSlot::decode(record).map(|slot| slot.id())
    }

    fn record_payload(&self, record: &Bytes) -> Option<Payload> {
        DecidedSlot::decode(record).map(|slot| slot.payload)
    }

    fn accounts_for(&self, statement: &Statement) -> bool {
        self.accounts_for_statement(statement)
    }

    fn certified_statements(&self, signer: ReplicaId) -> Vec<SignedStatement> {
        self.statements_certified_by(signer)
    }

    /// Every slot's record proves itself.
    fn servable(&self, records: &[Bytes]) -> usize {
        records.len()
    }
}
