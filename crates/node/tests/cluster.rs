//! Real validators over real sockets and disks, with a real client.

use crate::common::{self, Cluster, TIMEOUT, client, wait_until};
use bytes::Bytes;
use quorate_crypto::SchemeKind;
use quorate_engine::{ProtocolKind, Settings};
use quorate_node::{CallResult, Client, ClientConfig, SessionSpec};
use quorate_types::{Outcome, ReplicaId, View};
use std::collections::BTreeSet;
use std::ops::RangeFrom;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn four_validators_execute_what_a_client_submits() {
    let cluster = Cluster::start(4);
    let client = client(&cluster, 2);
    assert!(client.wait_connected(4, TIMEOUT));
    for tag in 0..2_000 {
        client.submit(usize::from(tag % 2 == 1), tag, Bytes::from(format!("{tag}"))).unwrap();
    }
    let mut done = BTreeSet::new();
    while done.len() < 2_000 {
        let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
        let CallResult::Completed(completed) = &completion.result else {
            panic!("unexpected: {completion:?}");
        };
        assert!(matches!(completed.outcome, Outcome::Applied(_)), "unexpected: {completed:?}");
        assert!(done.insert(completion.tag), "{} completed twice", completion.tag);
    }
    wait_until("all have executed it", || cluster.all_executed(2_000));
    cluster.stop();
}

/// Shown to somebody who knows the committee and nothing else. Where a machine is too busy for a
/// certificate within its time, several answer instead: that may be so of some, and not of most.
#[track_caller]
fn expect_acknowledgements(
    cluster: &Cluster,
    client: &Client,
    tags: &mut RangeFrom<u64>,
    count: usize,
) {
    let mut proven = 0;
    for tag in tags.take(10 * count) {
        client.submit(0, tag, Bytes::from(format!("{tag}"))).unwrap();
        let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
        let CallResult::Completed(completed) = completion.result else {
            panic!("unexpected: {completion:?}");
        };
        let Some((receipt, _)) = completed.receipt else { continue };
        receipt.verify(&cluster.committee).expect("it convinces anybody");
        proven += 1;
        if proven == count {
            return;
        }
    }
    panic!("{proven} of {} acknowledgements proved themselves", 10 * count);
}

/// Two of seven are dead, and with them whoever collects for many a height: the fast path is
/// closed, shares go to the next collectors, and the client is answered as before.
#[test]
fn one_acknowledgement_is_enough_also_with_execution_collectors_dead() {
    // Of a primary that lives, and a client that is answered, nothing times out.
    let settings = Settings { timeout_ms: 4_000, ..Settings::default() };
    let settings = Settings { protocol: ProtocolKind::Sbft, ..settings };
    let mut cluster = Cluster::run(7, SchemeKind::BlsThreshold, settings);
    // What is sent again is answered by many, and proven by no one acknowledgement.
    let sessions = vec![SessionSpec::fresh(common::new_identity(), ReplicaId(0))];
    let config = ClientConfig::new(Arc::clone(&cluster.committee), sessions);
    let client = Client::connect(&ClientConfig { retry_after: TIMEOUT, ..config }).unwrap();
    assert!(client.wait_connected(7, TIMEOUT));
    let mut tags = 0..;
    wait_until("the fast path is taken", || {
        expect_acknowledgements(&cluster, &client, &mut tags, 10);
        cluster.validators[0].shown().now().replica.fast_decisions > 0
    });
    let before = cluster.validators[0].shown().now().replica;
    (5..7).rev().for_each(|index| cluster.stop_one(index));
    expect_acknowledgements(&cluster, &client, &mut tags, 30);
    wait_until("all have executed it", || cluster.all_executed(tags.start));
    let after = cluster.validators[0].shown().now().replica;
    assert!(after.slow_decisions >= before.slow_decisions + 30, "{after:?}");
    cluster.stop();
}

#[test]
fn validators_that_are_stopped_go_on_where_they_were() {
    let cluster = Cluster::start(4);
    common::expect_progress(&cluster, 100);
    let cluster = cluster.restart();
    assert!(cluster.validators.iter().all(|validator| validator.shown().summary.signs));
    common::expect_progress(&cluster, 100);
    wait_until("history is there", || cluster.all_executed(200));
    cluster.stop();
}

#[test]
fn a_validator_that_lost_its_disk_follows_and_never_signs_again() {
    let mut cluster = Cluster::start(4);
    common::expect_progress(&cluster, 10);
    cluster.stop_one(3);
    std::fs::remove_dir_all(cluster.folder.path().join("net/validator-3/data")).unwrap();
    cluster.start_one(3);
    assert!(!cluster.validators[3].shown().summary.signs);
    common::expect_progress(&cluster, 10);
    cluster.stop_one(3);
    cluster.start_one(3);
    assert!(!cluster.validators[3].shown().summary.signs, "the second start knows it too");
    cluster.stop();
}

#[test]
fn two_validators_never_share_a_folder_or_an_address() {
    let cluster = Cluster::start(1);
    let error = cluster.start_again(0).unwrap_err().to_string();
    assert!(error.contains("this validator is running already"), "{error}");
    cluster.stop();
}

#[test]
fn the_status_pages_answer() {
    let cluster = Cluster::start(1);
    common::expect_progress(&cluster, 10);
    let address = cluster.validators[0].http_address();
    let status = || -> serde_json::Value {
        let (code, body) = common::get(address, "/status");
        assert_eq!(code, 200);
        serde_json::from_str(&body).unwrap()
    };
    wait_until("all is counted", || {
        let status = status();
        status["operations"] == 10 && status["log_bytes_written"].as_u64() > Some(0)
    });
    let status = status();
    assert_eq!(status["config"]["members"], 1);
    assert!(status["rss_mb"].as_u64().unwrap() > 0, "{status}");
    assert!(status["cpu_seconds"].as_f64().is_some(), "{status}");
    let (code, body) = common::get(address, "/metrics");
    assert_eq!(code, 200);
    assert!(body.contains("quorate_operations_executed 10\n"), "{body}");
    assert!(body.contains("quorate_frames_received_total{lane=\"client\"}"), "{body}");
    assert_eq!(common::get(address, "/healthz"), (200, "ok\n".into()));
    cluster.stop();
}

#[test]
fn an_idle_committee_enters_no_view() {
    let cluster = Cluster::start(4);
    common::expect_progress(&cluster, 10);
    let views = || -> Vec<View> {
        cluster.validators.iter().map(|v| v.shown().now().replica.view).collect()
    };
    let mut before = views();
    wait_until("no payload, no rounds", || {
        std::thread::sleep(Duration::from_secs(2));
        std::mem::replace(&mut before, views()) == before
    });
    cluster.stop();
}
