//! Validators that lost their bodies, or were away for longer than anybody keeps blocks.

use crate::common::{self, Cluster, TIMEOUT, client, wait_until};
use bytes::Bytes;
use quorate_engine::Settings;
use quorate_node::transport::Limits;
use quorate_node::{CallResult, TestnetPlan, Validator};
use quorate_types::Height;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations under way at once: a load that is never idle and never more than the machine can
/// take.
const UNDER_WAY: u64 = 64;

/// Keeps a client busy on a thread of its own for as long as `work` takes; what it comes to.
fn under_load<T>(cluster: &Cluster, operation_bytes: usize, work: impl FnOnce() -> T) -> T {
    let client = client(cluster, 2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let submit = |tag: u64| {
                let mut operation = tag.to_le_bytes().to_vec();
                operation.resize(operation_bytes.max(8), 7);
                client.submit((tag % 2) as usize, tag, Bytes::from(operation)).unwrap();
            };
            (0..UNDER_WAY).for_each(submit);
            let mut next = UNDER_WAY;
            while !done.load(Ordering::Relaxed) {
                let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
                assert!(matches!(completion.result, CallResult::Completed(_)));
                submit(next);
                next += 1;
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn executed(validator: &Validator) -> Height {
    validator.shown().now().replica.executed
}

/// It was away while the others went on: it comes to where they were when it came back.
fn catches_up(cluster: &Cluster, index: usize) {
    let others = executed(&cluster.validators[0]);
    wait_until("it catches up", || executed(&cluster.validators[index]) >= others);
}

/// With another one stopped nothing is decided without this one's votes.
fn votes_count(cluster: &mut Cluster) {
    cluster.validators.remove(0).stop().unwrap();
    common::expect_progress(cluster, 20);
}

/// ★ Bodies may be lost, promises may not: with the log of promises there it votes again.
#[test]
fn a_validator_whose_bodies_were_wiped_rejoins_under_load_and_votes() {
    let mut cluster = Cluster::start(4);
    common::expect_progress(&cluster, 50);
    cluster.stop_one(3);
    under_load(&cluster, 200, || {
        let before = executed(&cluster.validators[0]);
        wait_until("the others go on", || executed(&cluster.validators[0]).0 > before.0 + 20);
    });
    std::fs::remove_dir_all(cluster.data(3).join("bodies")).unwrap();
    let returned = under_load(&cluster, 200, || {
        let returned = cluster.start_again(3).unwrap();
        let others = executed(&cluster.validators[0]);
        wait_until("it catches up", || executed(&returned) >= others);
        returned
    });
    cluster.validators.push(returned);
    assert!(cluster.validators[3].shown().summary.signs);
    catches_up(&cluster, 3);
    votes_count(&mut cluster);
    cluster.stop();
}

/// The blocks that it lacks are gone everywhere: it takes the state over and goes on from there.
#[test]
fn a_validator_that_was_away_for_too_long_installs_a_snapshot_and_votes() {
    let settings = Settings { snapshot_every: 16, ..Settings::default() };
    let plan = TestnetPlan { settings, ..TestnetPlan::default() };
    let mut cluster = Cluster::plan(plan, Limits::default());
    cluster.configure(|config| config.retention_bytes = 1024 * 1024);
    for index in 0..4 {
        cluster.start_one(index);
    }
    common::expect_progress(&cluster, 50);
    let left_at = executed(&cluster.validators[3]);
    cluster.stop_one(3);
    under_load(&cluster, 8_000, || {
        wait_until("everybody gives its blocks up", || {
            let oldest = |validator: &Validator| validator.shown().now().oldest_height;
            cluster.validators.iter().all(|validator| oldest(validator) > left_at.next())
        });
    });
    let returned = under_load(&cluster, 200, || {
        let returned = cluster.start_again(3).unwrap();
        let others = executed(&cluster.validators[0]);
        wait_until("it catches up", || executed(&returned) >= others);
        returned
    });
    let status = returned.shown().now();
    assert!(status.replica.snapshots_installed > 0, "{status:?}");
    cluster.validators.push(returned);
    catches_up(&cluster, 3);
    wait_until("it agrees with the others", || {
        let shown = |index: usize| cluster.validators[index].shown().now().replica;
        shown(3).executed == shown(0).executed && shown(3).root == shown(0).root
    });
    votes_count(&mut cluster);
    let kept: Vec<u64> = cluster.validators.iter().map(|v| v.shown().now().log_bytes).collect();
    cluster.stop();
    assert!(kept.iter().all(|bytes| *bytes > 0), "{kept:?}");
}
