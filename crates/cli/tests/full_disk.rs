//! Real processes whose disks fill: nobody ends, clients are told, and with room all goes on.
//!
//! Each test mounts small file systems in a process of its own (`common::mounts`).

use crate::common::door::{Answer, Door, open_gateway_to_all};
use crate::common::mounts::{Ballast, free, grow, mount, with_own_mounts};
use crate::common::{self, Net, TIMEOUT, edit, edit_committee, json, wait_for};
use quorate_node::ports::free_ports;
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

const MEMBERS: u16 = 4;

const MIB: u64 = 1024 * 1024;

/// Bytes of a value.
const VALUE_BYTES: usize = 60_000;

/// Values that a member executes while it has room and others go on without it.
const WRITES: u64 = 40;

/// Four validators of the key-value store with a gateway each, little log and many snapshots, whose
/// data are where `data` says.
fn committee(data: impl Fn(usize) -> Option<String>) -> (Net, Vec<Door>) {
    committee_with(|index, config| {
        if let Some(folder) = data(index) {
            edit(config, "data_dir = \"data\"", &format!("data_dir = \"{folder}\""));
        }
    })
}

/// The same, after more was done with their configurations.
fn committee_with(prepare: impl Fn(usize, &Path)) -> (Net, Vec<Door>) {
    let base = free_ports(MEMBERS).expect("free ports");
    let door = |index| Door { address: format!("127.0.0.1:{}", base + index), token: None };
    let doors: Vec<Door> = (0..MEMBERS).map(door).collect();
    let net = Net::start_with(MEMBERS, "ed25519", &["--service", "kv"], |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 32");
        for (index, (config, door)) in configs.iter().zip(&doors).enumerate() {
            edit(config, "retention_bytes = 1073741824", "retention_bytes = 4194304");
            open_gateway_to_all(config, &door.address);
            prepare(index, config);
        }
    });
    net.wait_connected();
    for door in &doors {
        wait_for("the gateway to be open", || TcpStream::connect(&door.address).ok());
        wait_for("the gateway to be connected", || {
            (door.get("/v1/status").json(200)["members_connected"] == MEMBERS).then_some(())
        });
    }
    (net, doors)
}

fn value(key: &str) -> Vec<u8> {
    key.bytes().cycle().take(VALUE_BYTES).collect()
}

fn put(door: &Door, key: &str) -> Answer {
    door.ask("PUT", &format!("/v1/kv/{key}"), value(key))
}

/// Writes under keys of its own until it is told that the disks are full; the keys that were
/// acknowledged.
fn write_until_full(door: &Door, name: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let deadline = Instant::now() + 5 * TIMEOUT;
    for number in 0.. {
        assert!(Instant::now() < deadline, "{name} is never told that the disk is full");
        let key = format!("{name}-{number}");
        let answer = put(door, &key);
        match answer.status {
            200 => acknowledged.push(key),
            507 => {
                assert!(answer.text().contains("disk is nearly full"), "{}", answer.text());
                break;
            }
            // Slow, and nothing is promised.
            429 | 504 => {}
            other => panic!("{other}: {}", answer.text()),
        }
    }
    acknowledged
}

fn expect_all_run(net: &mut Net) {
    if let Some((index, status)) = net.processes.find_exited() {
        panic!("validator {index} ended with {status}:\n{}", net.processes.log_tail(index, 8));
    }
}

/// Room as `/status` shows it.
fn disk(http: &str) -> Value {
    let status = Door { address: http.to_owned(), token: None };
    status.get("/status").json(200)["disk"].clone()
}

fn metric(http: &str, name: &str) -> f64 {
    let page = Door { address: http.to_owned(), token: None }.get("/metrics").text();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.and_then(|value| value.parse().ok()).expect("a metric")
}

/// Asks until the write is taken.
fn put_at_last(door: &Door, key: &str) {
    wait_for("a write to be taken again", || (put(door, key).status == 200).then_some(()));
}

/// Reads each key as it was at this height or later, and its value is there.
fn expect_kept(door: &Door, keys: &[String], height: u64) {
    for key in keys {
        let answer = wait_for("a read of that height", || {
            let answer = door.get(&format!("/v1/kv/{key}"));
            height_of(&answer).filter(|at| *at >= height).map(|_| answer)
        });
        assert_eq!(answer.status, 200, "{key} was acknowledged: {}", answer.text());
        assert!(answer.body == value(key), "{key} has another value");
    }
}

/// Height whose state an answer shows; `None` for one that shows none.
fn height_of(answer: &Answer) -> Option<u64> {
    let of_absence = || serde_json::from_slice::<Value>(&answer.body).ok()?["height"].as_u64();
    answer.number("Quorate-Height").or_else(of_absence)
}

#[test]
fn four_validators_on_a_full_disk_refuse_lose_nothing_and_go_on() {
    let name = "full_disk::four_validators_on_a_full_disk_refuse_lose_nothing_and_go_on";
    with_own_mounts(name, || {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("disk");
        mount(&folder, 110);
        let data = |index| Some(format!("{}/validator-{index}", folder.display()));
        let (mut net, doors) = committee(data);
        let first = Ballast::leaving(&folder, "ballast", 60 * MIB);
        put_at_last(&doors[0], "before");
        let mut acknowledged = vec!["before".to_owned()];
        acknowledged.extend(fill(&doors, "first"));
        println!("{} writes were acknowledged before the disk was full", acknowledged.len());
        expect_all_run(&mut net);

        // Not a byte is left, and whoever writes is told.
        let second = Ballast::leaving(&folder, "more", 0);
        acknowledged.extend(fill(&doors, "full"));
        expect_all_run(&mut net);

        second.remove();
        first.remove();
        // Who has no room yet would learn of the last writes with the next one, and none follows.
        for http in &net.http {
            wait_for("it to have room", || (disk(http)["level"] != "out").then_some(()));
        }
        for (index, door) in doors.iter().enumerate() {
            let key = format!("again-{index}");
            put_at_last(door, &key);
            acknowledged.push(key);
        }
        let level = wait_for("all to have one state", || net.level());
        for door in &doors {
            expect_kept(door, &acknowledged, level.executed);
        }
        // How much is free depends on how much of the log each has kept; here it is enough.
        grow(&folder, 400);
        for http in &net.http {
            wait_for("the reserve to be back", || {
                let disk = disk(http);
                (disk["level"] != "out" && disk["reserve_bytes"] != 0).then_some(())
            });
        }
        expect_all_run(&mut net);
    });
}

/// Writes at all doors at once until each is told that the disks are full.
fn fill(doors: &[Door], name: &str) -> Vec<String> {
    thread::scope(|scope| {
        let writer =
            |(index, door)| scope.spawn(move || write_until_full(door, &format!("{name}-{index}")));
        let writers: Vec<_> = doors.iter().enumerate().map(writer).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("it wrote")).collect()
    })
}

#[test]
fn one_full_validator_of_four_costs_the_others_nothing_and_catches_up() {
    let name = "full_disk::one_full_validator_of_four_costs_the_others_nothing_and_catches_up";
    with_own_mounts(name, || {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("disk");
        mount(&folder, 110);
        let full = usize::from(MEMBERS) - 1;
        let data = |index| (index == full).then(|| folder.display().to_string());
        let (mut net, doors) = committee(data);
        let ballast = Ballast::leaving(&folder, "ballast", 10 * MIB);
        let mut written = Vec::new();
        let write = |written: &mut Vec<String>| {
            let key = format!("k{}", written.len());
            put_at_last(&doors[0], &key);
            written.push(key);
        };
        wait_for_out(&net.http[full], || write(&mut written));
        wait_until_told(&net, full, &folder);

        let executed = net.looks()[0].as_ref().expect("it answers").operations;
        (0..WRITES).for_each(|_| write(&mut written));
        expect_all_run(&mut net);
        wait_for("the others to go on", || {
            net.looks()[0].as_ref().filter(|look| look.operations >= executed + WRITES).map(drop)
        });
        // At its own door another member takes it.
        put_at_last(&doors[full], "at-its-door");

        ballast.remove();
        wait_for("it to have room", || (disk(&net.http[full])["level"] == "enough").then_some(()));
        // An idle committee says nothing unasked: it asks.
        let level = wait_for("it to catch up", || net.level());
        wait_for("it to be ready", || (readyz(&net.http[full]).status == 200).then_some(()));
        expect_kept(&doors[full], &written, level.executed);
        expect_all_run(&mut net);
    });
}

/// Its snapshots have a disk of their own, which stays full; its log's has room again.
#[test]
fn a_validator_waits_for_the_file_system_that_its_write_needs() {
    let name = "full_disk::a_validator_waits_for_the_file_system_that_its_write_needs";
    with_own_mounts(name, || {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("disk");
        mount(&folder, 110);
        let snapshots = folder.join("snapshots");
        mount(&snapshots, 4);
        let full = usize::from(MEMBERS) - 1;
        let data = |index| (index == full).then(|| folder.display().to_string());
        let (mut net, doors) = committee(data);
        let _stays = Ballast::leaving(&snapshots, "ballast", 0);
        let ballast = Ballast::leaving(&folder, "ballast", 10 * MIB);
        let mut number = 0;
        wait_for_out(&net.http[full], || {
            number += 1;
            put_at_last(&doors[0], &format!("k{number}"));
        });
        ballast.remove();
        wait_for("it to go on", || (disk(&net.http[full])["level"] != "out").then_some(()));
        put_at_last(&doors[0], "last");
        wait_for("it to catch up", || net.level());
        assert_eq!(free(&snapshots), 0, "this one is as full as it was");
        expect_all_run(&mut net);
    });
}

/// The key has a disk of its own, and with it the guard: a file system that copies what it writes
/// may have no room for what lies there already. Here what lies there is taken away.
#[test]
fn a_guard_without_room_is_waited_for() {
    let name = "full_disk::a_guard_without_room_is_waited_for";
    with_own_mounts(name, || {
        let place = tempfile::tempdir().expect("a folder");
        let keys = place.path().join("keys");
        mount(&keys, 1);
        let last = usize::from(MEMBERS) - 1;
        let (mut net, doors) = committee_with(|index, config| {
            if index == last {
                let key = keys.join("key.toml");
                fs::copy(config.with_file_name("key.toml"), &key).expect("copied");
                edit(config, "key = \"key.toml\"", &format!("key = \"{}\"", key.display()));
            }
        });
        put_at_last(&doors[0], "before");
        wait_for("all to be level", || net.level());
        let guard = fs::File::options().write(true).open(keys.join("key.guard")).expect("a guard");
        let mut ballast = Vec::new();
        while guard.metadata().expect("a file").blocks() > 0 {
            guard.set_len(0).expect("emptied");
            ballast.push(Ballast::leaving(&keys, &format!("ballast-{}", ballast.len()), 0));
        }
        let mut number = 0;
        wait_for_out(&net.http[last], || {
            number += 1;
            put_at_last(&doors[0], &format!("k{number}"));
        });
        wait_for("a line that names it", || {
            let log = net.processes.log_tail(last, 40);
            (log.contains("the disk is full") && log.contains("key.guard")).then_some(())
        });
        expect_all_run(&mut net);
        ballast.into_iter().for_each(Ballast::remove);
        wait_for("it to go on", || (disk(&net.http[last])["level"] != "out").then_some(()));
        put_at_last(&doors[0], "last");
        wait_for("it to catch up", || net.level());
        expect_all_run(&mut net);
    });
}

fn readyz(http: &str) -> Answer {
    Door { address: http.to_owned(), token: None }.get("/readyz")
}

/// Writes until this validator's disk is so full that it takes no part.
fn wait_for_out(http: &str, mut write: impl FnMut()) {
    let deadline = Instant::now() + 5 * TIMEOUT;
    while disk(http)["level"] != "out" {
        assert!(Instant::now() < deadline, "its disk never fills: {}", disk(http));
        write();
    }
}

/// A validator that waits for room says so wherever it is looked at.
fn wait_until_told(net: &Net, index: usize, folder: &Path) {
    let http = &net.http[index];
    wait_for("it not to be ready", || {
        let health = readyz(http);
        (health.status == 503 && health.text().contains("the disk is full")).then_some(())
    });
    wait_for("its metrics to say so", || (metric(http, "quorate_ready") == 0.0).then_some(()));
    wait_for("what it needs", || (metric(http, "quorate_disk_needed_bytes") > 0.0).then_some(()));
    wait_for("the reserve to be released", || {
        let is_released = metric(http, "quorate_disk_reserve_bytes") == 0.0;
        (is_released && !folder.join("reserve").exists()).then_some(())
    });
    wait_for("a line in its log", || {
        let log = net.processes.log_tail(index, 40);
        (log.contains("the disk is full") && log.contains("needed=")).then_some(())
    });
}

#[test]
fn config_check_states_the_reserve_and_what_the_disk_lacks() {
    let name = "full_disk::config_check_states_the_reserve_and_what_the_disk_lacks";
    with_own_mounts(name, || {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("disk");
        mount(&folder, 110);
        let net = place.path().join("net");
        let base = free_ports(8).expect("free ports").to_string();
        json(&["testnet", net.to_str().expect("plain"), "--base-port", &base, "--json"]);
        let config = net.join("validator-0/config.toml");
        edit(&config, "data_dir = \"data\"", &format!("data_dir = \"{}\"", folder.display()));
        let text = config.to_str().expect("plain");
        let large = common::quorate(&["config", "check", text]);
        assert_eq!(large.status.code(), Some(2), "1 GiB of log does not fit");
        edit(&config, "retention_bytes = 1073741824", "retention_bytes = 4194304");
        edit(&config, "# disk_reserve_bytes = 1", "disk_reserve_bytes = 5242880");
        let small = common::quorate(&["config", "check", text, "--allow-warnings"]);
        let said = common::stdout(&small).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(small.status.code(), Some(0), "{said}");
        assert!(said.contains("disk: ") && said.contains("reserve 0.00 more"), "{said}");
        let checked = json(&["config", "check", text, "--json", "--allow-warnings"]);
        assert_eq!(checked["files"][0]["disk"]["reserve_bytes"], 5 * MIB);
        assert!(free(&folder) > 100 * MIB, "nothing was written");
    });
}
