//! State that the engine may read.

use super::messages::encode;
use super::runs;
use super::state::Chained;
use crate::pacemaker::longest_pause;
use crate::{
    IgnoredCounts, Message, Occupancy, ProtocolStatus, ProtocolView, SignedStatement, Statement,
};
use bytes::Bytes;
use quorate_types::{BlockId, BodyRef, Payload, ReplicaId, View};
use std::collections::BTreeSet;
use std::time::Duration;

impl ProtocolView for Chained {
    fn status(&self) -> ProtocolStatus {
        ProtocolStatus {
            view: self.view,
            leader: self.leader(),
            view_changes: self.view_changes,
            certificate_bytes: encode(&self.high_qc.certificate).len() as u64,
            ..ProtocolStatus::default()
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
        (0..views).map(|ahead| self.coming_leader(ahead)).collect()
    }

    /// The next leader orders what this one passed over.
    fn has_stable_leader(&self) -> bool {
        false
    }

    fn judges_leader(&self) -> bool {
        false
    }

    fn pause_max(&self) -> Duration {
        let may_pause = self.leads() && self.leader_failures.may_pause();
        if may_pause { longest_pause(self.config.timeout) } else { Duration::ZERO }
    }

    fn tip(&self) -> BlockId {
        self.tree.root().id
    }

    /// After the end nothing is missing: what it was behind of is void, or on its disk.
    fn has_block(&self, id: BlockId) -> bool {
        self.has_ended()
            || self.tree.contains(id)
            || self.decided.values().any(|decided| *decided == id)
    }

    fn may_vote(&self, id: BlockId) -> bool {
        self.tree.get(id).is_some_and(|block| block.view >= self.view)
    }

    fn undecided_bodies(&self) -> BTreeSet<BodyRef> {
        self.tree.bodies().copied().collect()
    }

    fn tail(&self, after: BlockId, target: BlockId) -> Option<Vec<Bytes>> {
        if self.tree.root().id != after {
            return None;
        }
        let path = self.tree.path(target)?;
        Some(path.iter().map(|block| Bytes::from(encode(block.as_ref()))).collect())
    }

    /// The highest certificate that this replica knows stands in for a message that shows none.
    fn rests_on(&self, message: &Message) -> Option<(BlockId, Bytes)> {
        let qc = message.chained()?.rests_on().unwrap_or(&self.high_qc);
        Some((qc.id, Bytes::from(encode(qc))))
    }

    fn checkpoint_every(&self) -> Option<u64> {
        None
    }

    fn record_id(&self, record: &Bytes) -> Option<BlockId> {
        runs::record_id(record)
    }

    fn record_payload(&self, record: &Bytes) -> Option<Payload> {
        runs::record_payload(record)
    }

    fn accounts_for(&self, statement: &Statement) -> bool {
        self.accounts_for_statement(statement)
    }

    fn certified_statements(&self, signer: ReplicaId) -> Vec<SignedStatement> {
        self.statements_certified_by(signer)
    }

    fn servable(&self, records: &[Bytes]) -> usize {
        runs::servable(records, self.verifier.rules())
    }
}
