//! Form of [`Settings`] in files and results: one flat table, whatever struct a field is in.
//!
//! Files and results name the fields beside one another, in this order. serde's `flatten` would
//! give up refusing unknown fields and naming the line of a wrong one.

use super::{Availability, Comparison, FlowControl, Sealing, Settings};
use crate::Truncation;
use quorate_consensus::{ProposalKey, ProtocolKind};
use quorate_crypto::{KeyCache, Policy};
use quorate_types::as_text;
use serde::{Deserialize, Serialize};

/// Fields of [`Settings`] and [`Comparison`] under their names.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Settings", default, deny_unknown_fields)]
pub(super) struct Table {
    protocol: ProtocolKind,
    batch_bytes: usize,
    batch_delay_ms: u64,
    block_operations_max: u64,
    block_bodies_max: u64,
    sealing: Sealing,
    filter_requests: bool,
    timeout_ms: u64,
    vote_wait_ms: u64,
    #[serde(with = "as_text")]
    verify: Policy,
    #[serde(with = "as_text")]
    key_cache: KeyCache,
    #[serde(with = "as_text")]
    proposal_key: ProposalKey,
    leader_reputation: bool,
    leader_tenure: u64,
    concurrent_slots: u64,
    shorten_failed_turns: bool,
    timeout_growth: u32,
    vote_salvage: bool,
    inline_bodies: bool,
    truncation: Truncation,
    signatures: bool,
    availability: Availability,
    execution_certificates: bool,
    heartbeat_ms: u64,
    clock_drift_max_ms: u64,
    mempool_bytes_max: usize,
    author_bytes_max: usize,
    flow_control: FlowControl,
    fetch_grace: bool,
    snapshot_every: u64,
}

impl Default for Table {
    fn default() -> Self {
        Settings::default().into()
    }
}

impl From<Settings> for Table {
    fn from(settings: Settings) -> Self {
        let comparison = settings.comparison;
        Self {
            protocol: settings.protocol,
            batch_bytes: settings.batch_bytes,
            batch_delay_ms: settings.batch_delay_ms,
            block_operations_max: comparison.block_operations_max,
            block_bodies_max: comparison.block_bodies_max,
            sealing: comparison.sealing,
            filter_requests: comparison.filter_requests,
            timeout_ms: settings.timeout_ms,
            vote_wait_ms: settings.vote_wait_ms,
            verify: settings.verify,
            key_cache: comparison.key_cache,
            proposal_key: comparison.proposal_key,
            leader_reputation: settings.leader_reputation,
            leader_tenure: settings.leader_tenure,
            concurrent_slots: settings.concurrent_slots,
            shorten_failed_turns: settings.shorten_failed_turns,
            timeout_growth: settings.timeout_growth,
            vote_salvage: comparison.vote_salvage,
            inline_bodies: settings.inline_bodies,
            truncation: comparison.truncation,
            signatures: comparison.signatures,
            availability: settings.availability,
            execution_certificates: settings.execution_certificates,
            heartbeat_ms: settings.heartbeat_ms,
            clock_drift_max_ms: settings.clock_drift_max_ms,
            mempool_bytes_max: settings.mempool_bytes_max,
            author_bytes_max: settings.author_bytes_max,
            flow_control: comparison.flow_control,
            fetch_grace: comparison.fetch_grace,
            snapshot_every: settings.snapshot_every,
        }
    }
}

impl From<Table> for Settings {
    fn from(table: Table) -> Self {
        Self {
            protocol: table.protocol,
            batch_bytes: table.batch_bytes,
            batch_delay_ms: table.batch_delay_ms,
            timeout_ms: table.timeout_ms,
            vote_wait_ms: table.vote_wait_ms,
            verify: table.verify,
            leader_reputation: table.leader_reputation,
            leader_tenure: table.leader_tenure,
            concurrent_slots: table.concurrent_slots,
            shorten_failed_turns: table.shorten_failed_turns,
            timeout_growth: table.timeout_growth,
            inline_bodies: table.inline_bodies,
            availability: table.availability,
            execution_certificates: table.execution_certificates,
            heartbeat_ms: table.heartbeat_ms,
            clock_drift_max_ms: table.clock_drift_max_ms,
            mempool_bytes_max: table.mempool_bytes_max,
            author_bytes_max: table.author_bytes_max,
            snapshot_every: table.snapshot_every,
            comparison: Comparison {
                block_operations_max: table.block_operations_max,
                block_bodies_max: table.block_bodies_max,
                sealing: table.sealing,
                filter_requests: table.filter_requests,
                key_cache: table.key_cache,
                proposal_key: table.proposal_key,
                vote_salvage: table.vote_salvage,
                truncation: table.truncation,
                signatures: table.signatures,
                flow_control: table.flow_control,
                fetch_grace: table.fetch_grace,
            },
        }
    }
}
