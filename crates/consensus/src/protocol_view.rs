//! Questions about a protocol's state that its driver may ask beside inputs and outputs.
//!
//! Each family of machines answers them once. Nothing here changes a machine, and nothing names a
//! vote: a driver that fetches, proposes or releases needs only blocks, bodies, records as bytes,
//! and the order in which members lead.

use crate::{IgnoredCounts, Message, Occupancy, SignedStatement, Statement};
use bytes::Bytes;
use quorate_types::{BlockId, BodyRef, Payload, ReplicaId, View};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Read-only state of a protocol machine.
pub trait ProtocolView: fmt::Debug {
    /// Figures for status pages and metrics.
    fn status(&self) -> ProtocolStatus;

    /// Number of ignored messages since the start, by kind and reason.
    fn ignored(&self) -> &IgnoredCounts;

    /// How full the machine's collections are, between two inputs.
    fn occupancy(&self) -> Vec<Occupancy>;

    /// View that the machine is in, or that it moves to.
    fn view(&self) -> View;

    /// Leaders of the current view and of those after it, `views` of them, if no view fails.
    fn upcoming_leaders(&self, views: u64) -> Vec<ReplicaId>;

    /// Returns `true` if one leader stays until it fails.
    fn has_stable_leader(&self) -> bool;

    /// Returns `true` if the view has begun and another member leads it that stays until it fails:
    /// what it passes over and how long it lets bodies wait has to be judged here.
    fn judges_leader(&self) -> bool;

    /// Longest time for which this member, as a leader, may hold its next proposal back without
    /// putting its view at risk (ADR 48); zero where it must not, for others may wait for it less
    /// than usual.
    fn pause_max(&self) -> Duration;

    /// Id of the last decided block, or of the genesis.
    fn tip(&self) -> BlockId;

    /// Returns `true` if this block is undecided here, or was decided not long ago.
    fn has_block(&self, id: BlockId) -> bool;

    /// Returns `true` if a vote for this block could still be cast.
    fn may_vote(&self, id: BlockId) -> bool;

    /// Bodies that undecided blocks order: a vote for such a block says that they stay.
    fn undecided_bodies(&self) -> BTreeSet<BodyRef>;

    /// Undecided blocks after the last decided one, which must be `after`, up to `target`; `None`
    /// where they are not known, and in protocols whose slots do not name a parent.
    fn tail(&self, after: BlockId, target: BlockId) -> Option<Vec<Bytes>>;

    /// Certified block that a message of this machine rests on, and its certificate, for
    /// [`check_certified`](crate::check_certified); `None` where messages rest on no blocks.
    fn rests_on(&self, message: &Message) -> Option<(BlockId, Bytes)>;

    /// Heights from one certified state to the next that the machine needs to move its window;
    /// `None` where it has none.
    fn checkpoint_every(&self) -> Option<u64>;

    /// Id of the block in a decided record; `None` for bytes that are no record.
    fn record_id(&self, record: &Bytes) -> Option<BlockId>;

    /// Payload that a decided record orders; `None` for bytes that are no record.
    fn record_payload(&self, record: &Bytes) -> Option<Payload>;

    /// ★ Returns `true` if the machine's promises account for a statement of this replica: it made
    /// it, or it will never make one that contradicts it. What is durable before a signature leaves
    /// always does; records older than the signature do not.
    fn accounts_for(&self, statement: &Statement) -> bool;

    /// Newest statements of a member that certificates here prove; a few.
    fn certified_statements(&self, signer: ReplicaId) -> Vec<SignedStatement>;

    /// Number of these decided records, oldest first, that can be served together: the last of
    /// them must carry a proof of its own.
    fn servable(&self, records: &[Bytes]) -> usize;
}

/// Figures of a protocol machine for status pages and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolStatus {
    /// View that it is in, or that it moves to.
    pub view: View,
    /// Leader of that view.
    pub leader: ReplicaId,
    /// Views entered by a timeout certificate since the start.
    pub view_changes: u64,
    /// The bytes of the highest certificate's signature and bitmap.
    pub certificate_bytes: u64,
    /// Heights that were decided fast since the start, where there is a fast path.
    pub fast_decisions: u64,
    /// Those that took the slow one.
    pub slow_decisions: u64,
}
