//! Looks at validator 0 of four, for tests.

use super::point::Reading;
use crate::health::{MemberContact, MemberStatus};
use crate::shown::{NodeStatus, Summary};
use quorate_engine::{Settings, Status};
use quorate_storage::{Findings, RoomFigures, RoomLevel};
use quorate_types::{Height, ReplicaId, Versions};
use std::time::Instant;

pub(super) const OTHERS: [ReplicaId; 3] = [ReplicaId(1), ReplicaId(2), ReplicaId(3)];

/// All are heard, and nothing is wrong.
pub(super) fn status() -> NodeStatus {
    let members = (0..4).map(|index| member(ReplicaId(index))).collect();
    NodeStatus {
        replica: Status { root: "00".to_owned(), signs: true, ..Status::default() },
        weight: 1,
        uptime_s: 60,
        peers_connected: 3,
        clients_connected: 2,
        log_bytes_written: 0,
        log_syncs: 0,
        log_bytes: 0,
        oldest_height: Height(1),
        disk: RoomFigures {
            level: RoomLevel::Enough,
            free_bytes: 1 << 30,
            low_bytes: 1 << 20,
            reserve_bytes: 1 << 20,
            needed_bytes: 0,
        },
        rss_mb: Some(64),
        cpu_seconds: Some(1.0),
        ready: true,
        not_ready: Vec::new(),
        heard: 4,
        heard_weight: 4,
        has_quorum: true,
        members,
        must_not_stop: false,
        given_up: Vec::new(),
        config: summary(),
    }
}

fn member(id: ReplicaId) -> MemberStatus {
    let contact =
        MemberContact { connected: true, silent: false, silence_s: 0.1, round_trip_ms: Some(1.0) };
    MemberStatus {
        id,
        weight: 1,
        votes: 75,
        certificates: 100,
        absences: 0,
        turns: 10,
        turns_failed: 0,
        contact: OTHERS.contains(&id).then_some(contact),
    }
}

fn summary() -> Summary {
    Summary {
        version: "0",
        network: "ab".to_owned(),
        epoch: 0,
        members: 4,
        weight_total: 4,
        quorum: 3,
        service: "noop".to_owned(),
        execution_version: 1,
        execution_versions: Versions::new(1, 1),
        durability: "os".to_owned(),
        replica: Settings::default(),
        signs: true,
        learner: false,
        storage: Findings::default(),
    }
}

/// Has a member be silent, connected or not.
pub(super) fn silence(status: &mut NodeStatus, id: ReplicaId, connected: bool) {
    let contact = status.members[id.index()].contact.as_mut().expect("another");
    (contact.connected, contact.silent, contact.silence_s) = (connected, true, 7.0);
    status.heard -= 1;
    status.heard_weight -= 1;
    status.has_quorum = status.heard_weight >= status.config.quorum;
}

pub(super) fn reading(at: Instant, status: NodeStatus) -> Reading {
    Reading { at, status, queues: vec![("bulk", 2), ("urgent", 3)], outbox_bytes: 7 }
}
