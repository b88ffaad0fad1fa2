//! Figures of a replica, for whoever looks at it.

use super::{Replica, Timer};
use crate::latency::LatencyCounts;
use crate::own_signatures::WitnessStatus;
use crate::refusals::RefusalCounts;
use crate::{Contributions, EvidenceLog};
use quorate_consensus::{IgnoredCounts, MisbehaviourLog};
use quorate_crypto::IdentityKey;
use quorate_types::{Height, ReplicaId, View};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Figures of a replica for status pages, metrics and the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Index in the committee, or beyond it.
    pub id: ReplicaId,
    /// View that its protocol is in.
    pub view: View,
    /// The leader of that view.
    pub leader: ReplicaId,
    /// The last decided height.
    pub decided: Height,
    /// The last executed height.
    pub executed: Height,
    /// Root at the executed height, in hex.
    pub root: String,
    /// Operations executed since genesis.
    pub operations: u64,
    /// Views left by a timeout certificate since the start.
    pub view_changes: u64,
    /// Heights decided by the votes of almost all since the start, where the protocol has a fast
    /// path.
    pub fast_decisions: u64,
    /// Heights decided by two quorums' votes since the start, where it has one.
    pub slow_decisions: u64,
    /// Bytes of the last certificate.
    pub certificate_bytes: u64,
    /// Requests waiting to be sealed or ordered, in bytes.
    pub mempool_bytes: u64,
    /// Bodies held in memory, in bytes.
    pub bodies_bytes: u64,
    /// `true` while it fetches blocks, bodies or a snapshot that it missed.
    pub syncing: bool,
    /// Progress of that, while it does.
    pub sync: SyncStatus,
    /// Snapshots installed since the start, in the place of heights that nobody keeps any more.
    pub snapshots_installed: u64,
    /// The last height whose root is certified; without execution certificates, the last of a
    /// snapshot.
    pub certified: Height,
    /// The height from which on the own state is not the committee's, if it is not: nothing is
    /// executed or answered until a snapshot replaced it.
    pub diverged: Option<Height>,
    /// Messages that broke a rule of the protocol, since the start.
    pub faults: u64,
    /// `true` if it signs; `false` for one that lost its safety records, or whose records are
    /// older than its signatures.
    pub signs: bool,
    /// `true` while bodies wait to be decided, so that views have their time.
    pub working: bool,
    /// Milliseconds that it waits, as a leader, before it proposes a height that follows others
    /// closely, because its host's threads wait for processors; 0 while they do not. Where more
    /// would put a view at risk it waits for less.
    pub pace_ms: u64,
    /// Progress of the question after its own newest signatures, before the answer to which it
    /// signs nothing.
    pub witnesses: WitnessStatus,
    /// Milliseconds until each timer that is set is due, from the last input before this was
    /// taken; 0 for one that is late.
    pub timers: BTreeMap<Timer, u64>,
    /// Clients' requests and queries that were turned away, since the start; in metrics alone.
    #[serde(skip)]
    pub refusals: RefusalCounts,
    /// Messages of the protocol that had no effect, since the start; in metrics alone.
    #[serde(skip)]
    pub ignored: IgnoredCounts,
    /// Rules of the protocol that members broke, since the start; in metrics and the log alone.
    #[serde(skip)]
    pub misbehaviour: MisbehaviourLog,
    /// What two signatures of a member prove against it, since the start; the host keeps it.
    #[serde(skip)]
    pub evidence: EvidenceLog,
    /// Members of the epochs that changes begin which wait here or were ordered, by change: the
    /// host lets them follow.
    #[serde(skip)]
    pub next_members: Vec<Arc<[IdentityKey]>>,
    /// Votes and turns of each member.
    #[serde(skip)]
    pub contributions: Contributions,
    /// Times from the arrival of the oldest body of a height to its decision; in metrics alone.
    #[serde(skip)]
    pub decision_latency: LatencyCounts,
    /// Times from the arrival of requests to their answers; in metrics alone.
    #[serde(skip)]
    pub request_latency: LatencyCounts,
}

/// Progress of a replica that fell behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncStatus {
    /// The last executed height.
    pub from: Height,
    /// The height that it is on its way to, as far as it knows.
    pub to: Height,
    /// Blocks, bodies or snapshot that it waits for, in words; empty when it misses nothing.
    pub why: String,
}

impl Replica {
    /// Figures for status pages and metrics.
    #[must_use]
    pub fn status(&self) -> Status {
        let protocol = self.protocol.state().status();
        Status {
            id: self.config.id,
            view: protocol.view,
            leader: protocol.leader,
            decided: self.schedule.decided(),
            executed: self.schedule.executed(),
            root: self.root.to_hex(),
            operations: self.operations,
            view_changes: protocol.view_changes,
            fast_decisions: protocol.fast_decisions,
            slow_decisions: protocol.slow_decisions,
            certificate_bytes: protocol.certificate_bytes,
            mempool_bytes: self.mempool.bytes() as u64,
            bodies_bytes: self.bodies.held_bytes() as u64,
            syncing: self.is_syncing(),
            sync: self.sync_status(),
            snapshots_installed: self.snapshots_installed,
            faults: self.faults,
            certified: self.execution.newest(),
            diverged: self.execution.diverged(),
            signs: self.config.signs,
            pace_ms: u64::try_from(self.pacing.pace().as_millis()).unwrap_or(u64::MAX),
            witnesses: self.own_signatures.status(),
            timers: self.timers_ms(),
            ignored: self.protocol.state().ignored().clone(),
            misbehaviour: self.misbehaviour.clone(),
            evidence: self.evidence.clone(),
            working: self.working,
            next_members: self.changes.next_members(),
            contributions: self.contributions.clone(),
            decision_latency: self.latencies.decisions.clone(),
            request_latency: self.latencies.requests.clone(),
            refusals: self.refusals,
        }
    }
}
