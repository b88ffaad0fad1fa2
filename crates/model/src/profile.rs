//! Profiles: implementations whose replicas are modelled, and all that each does in its own way.
//!
//! A profile says every setting and every behaviour by name, if only that it is the experiment's:
//! what is new in this program is not built here before each profile has a line for it.

use quorate_consensus::ProposalKey;
use quorate_crypto::Policy;
use quorate_engine::{Availability, Comparison, FlowControl, Sealing, Settings, Truncation};
use serde::{Deserialize, Serialize};

/// Implementation whose replica is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// This program's own replica.
    Quorate,
    /// The reference implementation of paper 000 and of the published AWS runs (2-chain, version
    /// 0.3.0), not fitted to them: [`crate::Scene::as_reference`] has what it does, and what is
    /// left out.
    Reference,
    /// Its implementation of three chains (commit d771d486), whose mempool is an earlier one.
    ReferenceThreeChain,
}

/// What a profile's replicas, clients and connections do, where implementations differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Behaviour {
    /// Shares are checked one by one as they arrive, and not when they are combined.
    pub(crate) checks_shares_at_once: bool,
    /// Clients sign requests, and replicas check them.
    pub(crate) signs_requests: bool,
    /// Replicas answer clients.
    pub(crate) answers_clients: bool,
    /// Replicas execute what they decide.
    pub(crate) executes: bool,
    /// Microseconds of storing anything and nanoseconds for each byte, where that is no log.
    pub(crate) store: Option<(f64, f64)>,
    /// The same of reading a body back, each that a block names before its vote, where they are.
    pub(crate) read: Option<(f64, f64)>,
    /// A replica may name its own body once a quorum has acknowledged it.
    pub(crate) waits_for_acknowledgements: bool,
    /// An author takes a body back that a quorum has from peers to whom it did not write it yet.
    pub(crate) takes_back: bool,
    /// What waits for a peer is bounded, and bodies beyond it are dropped.
    pub(crate) bounds_outboxes: bool,
    /// Nagle's algorithm is on: sockets are as the system opens them.
    pub(crate) nagle: bool,
    /// Leaders pause where processors are scarce.
    pub(crate) paces: bool,
    /// Frames are encrypted.
    pub(crate) encrypts: bool,
    /// What a hashed byte costs, in bytes of BLAKE3.
    pub(crate) hash_byte_times: f64,
}

/// RocksDB with its defaults, one thread that puts: 0.23 ms for 25 KB, 0.59 for 205, 0.98 for 410
/// and 1.16 for 500 (means of 2,000 to 4,000; version 7.8.3, 2-core AMD EPYC, November 2026), and
/// the line through them; the same in all price lists.
const ROCKSDB: (f64, f64) = (180.0, 1.96);

/// Reading one back half a second later: 0.03 ms for 25 KB to 0.29 for 500.
const ROCKSDB_READ: (f64, f64) = (16.0, 0.55);

impl Profile {
    pub(crate) const fn behaviour(self) -> Behaviour {
        match self {
            Self::Quorate => Behaviour {
                checks_shares_at_once: false,
                signs_requests: true,
                answers_clients: true,
                executes: true,
                store: None,
                read: None,
                waits_for_acknowledgements: false,
                takes_back: false,
                bounds_outboxes: true,
                nagle: false,
                paces: true,
                encrypts: true,
                hash_byte_times: 1.0,
            },
            // Bodies are named as soon as they are stored, and nobody acknowledges any.
            Self::ReferenceThreeChain => Behaviour {
                waits_for_acknowledgements: false,
                takes_back: false,
                ..Self::Reference.behaviour()
            },
            Self::Reference => Behaviour {
                checks_shares_at_once: true,
                signs_requests: false,
                answers_clients: false,
                executes: false,
                store: Some(ROCKSDB),
                read: Some(ROCKSDB_READ),
                waits_for_acknowledgements: true,
                takes_back: true,
                bounds_outboxes: false,
                nagle: true,
                paces: false,
                encrypts: false,
                // SHA-512.
                hash_byte_times: 9.0,
            },
        }
    }

    /// Settings of the profile's replicas, where these were asked for.
    pub(crate) fn settings(self, asked: Settings) -> Settings {
        match self {
            Self::Quorate => asked,
            Self::Reference => reference(&asked),
            Self::ReferenceThreeChain => three_chain(&reference(&asked)),
        }
    }
}

/// The reference's settings: its pacemaker has one span for all views, in the published runs 5 s,
/// and a timeout says nothing but its view and its certificate. Which protocol and scheme it runs,
/// and whether it keeps the committee's key, is the experiment's.
fn reference(asked: &Settings) -> Settings {
    Settings {
        protocol: asked.protocol,
        batch_bytes: 500_000,
        batch_delay_ms: 100,
        timeout_ms: 5_000,
        vote_wait_ms: 0,
        verify: Policy::Each,
        leader_reputation: false,
        leader_tenure: 1,
        concurrent_slots: asked.concurrent_slots,
        shorten_failed_turns: false,
        timeout_growth: 0,
        inline_bodies: false,
        availability: Availability::Stored,
        execution_certificates: false,
        heartbeat_ms: 0,
        // It reads no clock of others.
        clock_drift_max_ms: asked.clock_drift_max_ms,
        // Nothing is refused for want of room.
        mempool_bytes_max: 1 << 32,
        author_bytes_max: 1 << 32,
        // Nobody executes, so nobody takes a snapshot.
        snapshot_every: asked.snapshot_every,
        comparison: Comparison {
            block_operations_max: 0,
            block_bodies_max: 0,
            sealing: Sealing::Delay,
            filter_requests: false,
            key_cache: asked.comparison.key_cache,
            proposal_key: ProposalKey::Voting,
            vote_salvage: false,
            truncation: Truncation::Ids,
            signatures: true,
            flow_control: FlowControl::Fixed,
            fetch_grace: false,
        },
    }
}

/// The settings of the reference's three chains where they differ: bodies are sealed when they are
/// full, 100 ms apart at least, or when a leader has none to name, and a block has 1,000 bytes of
/// names.
fn three_chain(reference: &Settings) -> Settings {
    let comparison =
        Comparison { block_bodies_max: 31, sealing: Sealing::Demand, ..reference.comparison };
    Settings { comparison, ..*reference }
}
