//! The packaged dashboard and alerts speak of the metrics that there are.

use super::*;
use quorate_consensus::{Evidence, Ignored, MessageKind, Misbehaviour, Rule};
use quorate_types::{ReplicaId, View};
use std::collections::BTreeSet;

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/quorate-validators.json");
const ALERTS: &str = include_str!("../../../../packaging/prometheus/quorate-alerts.yml");

/// Exported, and deliberately not on the dashboard.
const NOT_SHOWN: &[&str] = &[
    // Counted for the laboratory's reports; bytes say it better.
    "quorate_frames_received",
    "quorate_frames_sent",
];

/// One duplicate vote, and one leader that proposed two blocks.
fn status() -> Status {
    let mut status = Status::default();
    status.ignored.count(MessageKind::Vote, Ignored::Duplicate);
    let (first, second) = (quorate_crypto::hash(b"one"), quorate_crypto::hash(b"other"));
    status.misbehaviour.count(&Misbehaviour {
        member: ReplicaId(2),
        rule: Rule::Equivocation,
        evidence: Evidence::Conflict { view: View(7), first, second },
    });
    status
}

fn printed() -> String {
    let metrics = Metrics::new();
    metrics.describe(&Identity {
        member: ReplicaId(0),
        version: "0",
        chain: String::new(),
        service: String::new(),
        durability: String::new(),
        weight: 1,
        members: 4,
        weight_total: 4,
        quorum: 3,
    });
    // Families show themselves once they have a member.
    metrics.drops(Peer::Replica(ReplicaId(1)), Lane::Bulk).inc();
    metrics.rejected(Peer::Replica(ReplicaId(1)), &Rejected::Stale);
    metrics.cut("test");
    metrics.barred(Peer::Replica(ReplicaId(1)));
    metrics.check_waited(Peer::Replica(ReplicaId(1)), Duration::from_millis(1));
    metrics.commit_took(Duration::from_millis(1));
    let host = HostFigures {
        peers: vec![(ReplicaId(1), true)],
        outboxes: vec![(Lane::Bulk, 1, 1)],
        events: vec![("bulk", 1)],
        ..HostFigures::default()
    };
    metrics.print(&status(), &host)
}

/// The names of all metrics, without the endings that samples have.
fn exported(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    names.filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

/// The names of samples, as queries use them.
fn samples(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split(['{', ' ']).next()?.to_owned())).collect()
}

/// Every word of a text that begins as our metrics do.
fn named(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c| !word(c)).filter(|word| word.starts_with("quorate_"));
    words.map(str::to_owned).collect()
}

/// The queries of a dashboard, of all its panels and variables.
fn queries(value: &serde_json::Value, found: &mut String) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if ["expr", "definition", "query"].contains(&key.as_str()) => {
                        found.push_str(text);
                        found.push('\n');
                    }
                    _ => queries(value, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

fn dashboard_queries() -> String {
    let mut found = String::new();
    queries(&serde_json::from_str(DASHBOARD).expect("the dashboard is JSON"), &mut found);
    found
}

#[test]
fn every_metric_on_the_dashboard_is_exported() {
    let samples = samples(&printed());
    let shown = named(&dashboard_queries());
    assert!(shown.len() > 20, "{shown:?}");
    let unknown: Vec<_> = shown.difference(&samples).collect();
    assert!(unknown.is_empty(), "the dashboard asks for {unknown:?}; there are {samples:?}");
}

#[test]
fn every_exported_metric_is_on_the_dashboard_or_left_out_on_purpose() {
    let shown = named(&dashboard_queries());
    let is_shown = |name: &String| {
        shown.iter().any(|shown| {
            let ending = shown.strip_prefix(name.as_str());
            ending.is_some_and(|e| ["", "_total", "_bucket", "_sum", "_count"].contains(&e))
        })
    };
    for name in exported(&printed()) {
        let left_out = NOT_SHOWN.contains(&name.as_str());
        assert!(
            is_shown(&name) != left_out,
            "{name}: put it on packaging/grafana/quorate-validators.json or into NOT_SHOWN, not both"
        );
    }
}

#[test]
fn every_metric_in_the_alerts_is_exported() {
    let samples = samples(&printed());
    let expressions: String =
        ALERTS.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let asked = named(&expressions);
    assert!(asked.len() > 8, "{asked:?}");
    let unknown: Vec<_> = asked.difference(&samples).collect();
    assert!(unknown.is_empty(), "the alerts ask for {unknown:?}; there are {samples:?}");
}

#[test]
fn metric_names_say_their_unit() {
    for name in exported(&printed()) {
        let gauge_of_time =
            name.ends_with("_ms") || name.ends_with("_mb") || name.ends_with("_kib");
        assert!(!gauge_of_time, "{name}: Prometheus counts in seconds and bytes");
    }
}

#[test]
fn the_host_is_described() {
    let text = printed();
    for line in [
        "quorate_committee_quorum 3",
        "quorate_committee_weight 4",
        "quorate_peers_connected 1",
        "quorate_peer_connected{peer=\"r1\"} 1",
        "quorate_outbox_bytes{lane=\"bulk\"} 1",
        "quorate_queue_events{queue=\"bulk\"} 1",
        "quorate_messages_ignored_total{message=\"vote\",reason=\"duplicate\"} 1",
        "quorate_misbehaviour_total{peer=\"r2\",rule=\"equivocation\"} 1",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line}\n{text}");
    }
    let now = Process::now();
    assert!(now.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{now:?}");
    assert!(now.open_files.is_some_and(|files| files > 2), "{now:?}");
}

#[test]
fn the_disk_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("log")).unwrap();
    std::fs::write(folder.path().join("log/segment"), [0; 4_096]).unwrap();
    std::fs::write(folder.path().join("state"), [0; 100]).unwrap();
    let disk = Disk::of(folder.path());
    assert_eq!((disk.log_bytes, disk.state_bytes), (4_096, 100));
    assert!(disk.free_bytes.is_some_and(|bytes| bytes > 0));
}
