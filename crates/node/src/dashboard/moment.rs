//! The event of a second: what `/status` says in brief, with rates and alerts.

use super::alerts::Alert;
use super::feed::VERSION;
use super::point::{Point, Reading};
use crate::health::MemberStatus;
use crate::shown::Shown;
use quorate_engine::{GivenUp, SyncStatus};
use quorate_storage::RoomFigures;
use quorate_types::{Height, ReplicaId, View};
use serde::Serialize;
use std::collections::BTreeMap;

/// Content of an event, of which `docs/OPERATING.md` says what each field means.
#[derive(Debug, Serialize)]
pub(super) struct Moment<'a> {
    version: u32,
    at_ms: u64,
    validator: Validator<'a>,
    network: NetworkFacts<'a>,
    progress: Progress<'a>,
    host: Host,
    /// Figures of the last second; none in the first one.
    point: Option<Point>,
    members: Vec<Member<'a>>,
    given_up: &'a [GivenUp],
    alerts: Vec<Alert>,
}

/// Validator that sees all of this.
#[derive(Debug, Serialize)]
struct Validator<'a> {
    id: ReplicaId,
    learner: bool,
    signs: bool,
    weight: u64,
    version: &'a str,
    uptime_s: u64,
    ready: bool,
    not_ready: &'a [String],
    must_not_stop: bool,
}

#[derive(Debug, Serialize)]
struct NetworkFacts<'a> {
    id: &'a str,
    epoch: u64,
    service: &'a str,
    execution_version: u64,
    protocol: String,
    scheme: String,
    durability: &'a str,
    weight: u64,
    quorum: u64,
}

#[derive(Debug, Serialize)]
struct Progress<'a> {
    view: View,
    leader: ReplicaId,
    decided: Height,
    executed: Height,
    certified: Height,
    operations: u64,
    view_changes: u64,
    fast_decisions: u64,
    slow_decisions: u64,
    certificate_bytes: u64,
    working: bool,
    syncing: bool,
    sync: &'a SyncStatus,
    heard: usize,
    heard_weight: u64,
    has_quorum: bool,
}

#[derive(Debug, Serialize)]
struct Host {
    disk: RoomFigures,
    log_bytes: u64,
    oldest_height: Height,
    rss_mb: Option<u64>,
    bodies_bytes: u64,
    clients: usize,
    peers: usize,
    queues: BTreeMap<&'static str, usize>,
}

/// Member of the committee.
#[derive(Debug, Serialize)]
struct Member<'a> {
    #[serde(flatten)]
    status: MemberStatus,
    address: &'a str,
}

impl<'a> Moment<'a> {
    /// What there is to say of a look.
    pub(super) fn of(
        shown: &'a Shown,
        reading: &'a Reading,
        (at_ms, point, alerts): (u64, Option<Point>, Vec<Alert>),
    ) -> Self {
        let committee = &shown.committee;
        let member = |status: &MemberStatus| Member {
            status: *status,
            address: committee.address(status.id).unwrap_or_default(),
        };
        Self {
            version: VERSION,
            at_ms,
            validator: Validator::of(reading),
            network: NetworkFacts::of(shown),
            progress: Progress::of(reading),
            host: Host::of(reading),
            point,
            members: reading.status.members.iter().map(member).collect(),
            given_up: &reading.status.given_up,
            alerts,
        }
    }

    /// The event's data: one line.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain figures")
    }
}

impl<'a> Validator<'a> {
    fn of(reading: &'a Reading) -> Self {
        let status = &reading.status;
        Self {
            id: status.replica.id,
            learner: status.config.learner,
            signs: status.config.signs && status.replica.signs,
            weight: status.weight,
            version: status.config.version,
            uptime_s: status.uptime_s,
            ready: status.ready,
            not_ready: &status.not_ready,
            must_not_stop: status.must_not_stop,
        }
    }
}

impl<'a> NetworkFacts<'a> {
    fn of(shown: &'a Shown) -> Self {
        let summary = &shown.summary;
        Self {
            id: &summary.network,
            epoch: summary.epoch,
            service: &summary.service,
            execution_version: summary.execution_version,
            protocol: summary.replica.protocol.to_string(),
            scheme: shown.committee.scheme_kind().to_string(),
            durability: &summary.durability,
            weight: summary.weight_total,
            quorum: summary.quorum,
        }
    }
}

impl<'a> Progress<'a> {
    fn of(reading: &'a Reading) -> Self {
        let (status, replica) = (&reading.status, &reading.status.replica);
        Self {
            view: replica.view,
            leader: replica.leader,
            decided: replica.decided,
            executed: replica.executed,
            certified: replica.certified,
            operations: replica.operations,
            view_changes: replica.view_changes,
            fast_decisions: replica.fast_decisions,
            slow_decisions: replica.slow_decisions,
            certificate_bytes: replica.certificate_bytes,
            working: replica.working,
            syncing: replica.syncing,
            sync: &replica.sync,
            heard: status.heard,
            heard_weight: status.heard_weight,
            has_quorum: status.has_quorum,
        }
    }
}

impl Host {
    fn of(reading: &Reading) -> Self {
        let status = &reading.status;
        Self {
            disk: status.disk,
            log_bytes: status.log_bytes,
            oldest_height: status.oldest_height,
            rss_mb: status.rss_mb,
            bodies_bytes: status.replica.bodies_bytes,
            clients: status.clients_connected,
            peers: status.peers_connected,
            queues: reading.queues.iter().copied().collect(),
        }
    }
}
