//! Connections that nobody uses, at every door of real processes that have 1,024 descriptors each.

mod common;

use common::door::{Door, open_gateway_to_all};
use common::{
    Net, TIMEOUT, edit_committee, json, quorate, stderr, stdout, wait_for, with_descriptors,
};
use quorate_crypto::IdentitySecret;
use quorate_lab::crowd::{Crowd, HALF_A_HANDSHAKE, HALF_A_HEAD, make_room_for};
use quorate_lab::http;
use quorate_node::ports::free_ports;
use quorate_node::tls::Dialer;
use quorate_node::transport::hello::Hello;
use quorate_node::transport::outbound::dial;
use quorate_types::{Lane, ReplicaId};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Descriptors of a validator.
const DESCRIPTORS: usize = 1_024;

/// Idle connections at one door.
const IDLE: usize = 4_000;

/// Connections that begin a TLS handshake and stop.
const HALF_OPEN: usize = 1_500;

/// Clients with a key of their own each, which the peer port lets in.
const CLIENTS: u64 = 1_100;

/// Longest wait for a door to let a client in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Descriptors that come and go with a validator's own work.
const OWN_WORK: usize = 24;

/// Operations that make several snapshots.
const OPERATIONS: u64 = 60;

/// One crowd at a time: the tests of this process share its descriptors.
static CROWD: Mutex<()> = Mutex::new(());

/// Raises this process's own limit, so that it can hold a crowd, and waits for its turn.
fn take_turn() -> MutexGuard<'static, ()> {
    make_room_for(3 * IDLE + HALF_OPEN).expect("room for a crowd");
    // Another test that failed leaves nothing behind that this one needs.
    CROWD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gather(crowd: &mut Crowd, address: &str, count: usize, greeting: &[u8]) {
    crowd.gather(address, count, greeting).expect("an address");
}

fn descriptors(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).expect("a process that runs").count()
}

fn expect_none_ended(net: &mut Net) {
    if let Some((index, status)) = net.processes.find_exited() {
        panic!("validator {index} ended with {status}:\n{}", net.processes.log_tail(index, 5));
    }
}

/// Nobody ended, and what validator 0 opened for others is closed again.
fn expect_recovered(net: &mut Net, before: usize) {
    expect_none_ended(net);
    let process = net.processes.id(0).expect("it runs");
    wait_for("descriptors to be closed", || {
        (descriptors(process) <= before + OWN_WORK).then_some(())
    });
}

/// Four validators of the key-value store, of which the first two have gateways.
fn committee() -> (Net, [Door; 2]) {
    let base = free_ports(2).expect("free ports");
    let doors =
        [0, 1].map(|index| Door { address: format!("127.0.0.1:{}", base + index), token: None });
    let net = Net::start_with_descriptors(DESCRIPTORS, 4, &["--service", "kv"], |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 8");
        for (config, door) in configs.iter().zip(&doors) {
            open_gateway_to_all(config, &door.address);
        }
    });
    net.wait_connected();
    for door in &doors {
        wait_for("the gateway to be open", || TcpStream::connect(&door.address).ok());
        wait_for("the gateway to be connected", || {
            (door.get("/v1/status").json(200)["members_connected"] == 4).then_some(())
        });
    }
    (net, doors)
}

/// Writes that all four validators execute, the one that is crowded included.
fn expect_work(net: &mut Net, door: &Door, crowd: &mut Crowd) {
    let executed = net.looks()[1].as_ref().expect("it answers").operations;
    let value = vec![b'v'; 60_000];
    for number in 0..OPERATIONS {
        let path = format!("/v1/kv/{number}");
        wait_for("a write to be taken", || {
            (door.ask("PUT", &path, &value).status == 200).then_some(())
        });
        if number % 20 == 0 {
            crowd.trickle();
        }
    }
    expect_none_ended(net);
    // The state that was looked at first may have lacked what was answered already.
    let level = || net.level().filter(|look| look.operations >= executed + OPERATIONS);
    wait_for("all to have executed everything", level);
}

#[test]
fn idle_connections_at_every_door_cost_a_validator_nothing() {
    let _turn = take_turn();
    let (mut net, [crowded, open]) = committee();
    let process = net.processes.id(0).expect("it runs");
    let before = descriptors(process);
    let peers = peer_address(&net);
    let mut crowd = Crowd::default();
    gather(&mut crowd, &net.http[0], IDLE / 2, b"");
    gather(&mut crowd, &net.http[0], IDLE / 2, HALF_A_HEAD);
    gather(&mut crowd, &crowded.address, IDLE / 2, b"");
    gather(&mut crowd, &crowded.address, IDLE / 2, HALF_A_HEAD);
    gather(&mut crowd, &peers, IDLE, b"");
    gather(&mut crowd, &peers, HALF_OPEN, HALF_A_HANDSHAKE);
    expect_work(&mut net, &open, &mut crowd);
    crowded.ask("PUT", "/v1/kv/late", "late").json(200);
    let status = http::get(&net.http[0], "/status", TIMEOUT).expect("an answer");
    assert!(status.contains("\"peers_connected\":3"), "{status}");
    drop(crowd);
    expect_recovered(&mut net, before);
}

fn peer_address(net: &Net) -> String {
    committee_of(net).address(ReplicaId(0)).expect("a member").to_owned()
}

fn committee_of(net: &Net) -> quorate_types::Committee {
    let file = net.folder().join("committee.toml");
    quorate_node::config::load_committee(&file, quorate_crypto::KeyCache::On).expect("a committee")
}

#[test]
fn clients_with_fresh_keys_cost_a_validator_nothing() {
    let _turn = take_turn();
    let (mut net, [_, open]) = committee();
    let before = descriptors(net.processes.id(0).expect("it runs"));
    let committee = committee_of(&net);
    let address = committee.address(ReplicaId(0)).expect("a member");
    let expected = *committee.identity(ReplicaId(0)).expect("a member");
    let hello = Hello::to(&committee, Lane::Client);
    let runtime = Runtime::new().expect("a runtime");
    let crowd: Vec<_> = (0..CLIENTS)
        .filter_map(|number| {
            let mut seed = [7; 32];
            seed[..8].copy_from_slice(&number.to_le_bytes());
            let tls = Dialer::new(&IdentitySecret::from_seed(seed)).expect("a key").to(expected);
            runtime.block_on(dial(address, tls.expect("a key"), hello, CONNECT_TIMEOUT)).ok()
        })
        .collect();
    assert!(crowd.len() > DESCRIPTORS / 4, "{} were let in", crowd.len());
    expect_work(&mut net, &open, &mut Crowd::default());
    drop((crowd, runtime));
    expect_recovered(&mut net, before);
}

/// Whatever else has taken them all: here the limit is lowered under what is open.
#[test]
fn a_validator_without_descriptors_waits_for_them() {
    let _turn = take_turn();
    let (mut net, [_, open]) = committee();
    let process = net.processes.id(0).expect("it runs");
    let process = Pid::from_raw(process.try_into().expect("an id"));
    let set = |current: u64| {
        let limit = Rlimit { current: Some(current), maximum: Some(DESCRIPTORS as u64) };
        prlimit(process, Resource::Nofile, limit).expect("set");
    };
    set(3);
    let value = vec![b'v'; 60_000];
    let mut number = 0;
    wait_for("the disk to wait", || {
        number += 1;
        open.ask("PUT", &format!("/v1/kv/{number}"), &value).json(200);
        net.processes.log_tail(0, 100).contains("waits until a file can be opened").then_some(())
    });
    expect_none_ended(&mut net);
    set(DESCRIPTORS as u64);
    expect_work(&mut net, &open, &mut Crowd::default());
}

#[test]
fn idle_connections_to_json_rpc_cost_a_validator_nothing() {
    let _turn = take_turn();
    let options = ["--service", "evm", "--durability", "os"];
    let mut net = Net::start_with_descriptors(DESCRIPTORS, 4, &options, |_| {});
    net.wait_connected();
    let before = descriptors(net.processes.id(0).expect("it runs"));
    let address = net.gateways[0].clone();
    let mut crowd = Crowd::default();
    gather(&mut crowd, &address, IDLE / 2, b"");
    gather(&mut crowd, &address, IDLE / 4, HALF_A_HEAD);
    let upgrade = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    gather(&mut crowd, &address, IDLE / 4, upgrade.as_bytes());
    let question = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    for _ in 0..20 {
        let mut door = http::Connection::open(&address, TIMEOUT).expect("a door");
        let answer = door.post("/", question).expect("an answer");
        assert!(answer.contains("0x1e5a"), "{answer}");
        crowd.trickle();
    }
    drop(crowd);
    expect_recovered(&mut net, before);
}

/// An authority of payments, killed with the test.
struct Authority(Child);

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_authority(program: &Path, config: &str) -> Authority {
    let mut command = Command::new(program);
    command.args(["pay", "run", "--config", config]).stdout(Stdio::null()).stderr(Stdio::null());
    Authority(command.spawn().expect("started"))
}

/// A quorum of three of four authorities is crowded: every payment needs one of them.
#[test]
fn idle_connections_cost_an_authority_nothing() {
    let _turn = take_turn();
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).display().to_string();
    let anne = json(&["pay", "keys", &path("anne"), "--json"]);
    let anne = anne["address"].as_str().expect("an address");
    let bob = json(&["pay", "keys", &path("bob"), "--json"]);
    let bob = bob["address"].as_str().expect("an address");
    let (base, net) = (free_ports(8).expect("free ports").to_string(), path("net"));
    let genesis = format!("{anne}=1000");
    let testnet = ["pay", "testnet", &net, "--base-port", &base, "--genesis", &genesis, "--json"];
    let testnet = json(&testnet);
    let network = testnet["network"].as_str().expect("a path");
    fs::copy(network, place.path().join("network.toml")).expect("copied");
    let configs: Vec<Vec<String>> =
        serde_json::from_value(testnet["configs"].clone()).expect("paths");
    let program = with_descriptors(place.path(), DESCRIPTORS);
    let start = |config: &String| start_authority(&program, config);
    let mut authorities: Vec<Authority> = configs.iter().flatten().map(start).collect();
    let addresses = |config: &String| {
        let text = fs::read_to_string(config).expect("a configuration");
        let http = text.lines().find_map(|line| line.strip_prefix("http = \"")).expect("a field");
        http.trim_end_matches('"').to_owned()
    };
    let doors: Vec<String> = configs.iter().flatten().map(addresses).collect();
    for door in &doors {
        wait_for("an authority", || http::get(door, "/status", TIMEOUT).ok());
    }
    let before: Vec<usize> = authorities.iter().map(|one| descriptors(one.0.id())).collect();
    let mut crowd = Crowd::default();
    for (index, http) in doors.iter().enumerate().take(3) {
        let payers = quorate_node::payments::read_network(Path::new(network)).expect("a network");
        let payers = payers.address(index, 0).expect("an address").to_owned();
        gather(&mut crowd, http, IDLE / 3, HALF_A_HEAD);
        gather(&mut crowd, &payers, IDLE / 3, b"");
        gather(&mut crowd, &payers, HALF_OPEN / 3, HALF_A_HANDSHAKE);
    }
    json(&["pay", "genesis", "-w", &path("anne"), "--json"]);
    for _ in 0..10 {
        let pay = ["pay", "send", "--to", bob, "--value", "1", "--timeout", "60"];
        let paid = quorate(&[&pay[..], &["-w", &path("anne")]].concat());
        assert!(paid.status.success(), "{}", stderr(&paid));
        crowd.trickle();
    }
    drop(crowd);
    for (authority, before) in authorities.iter_mut().zip(before) {
        assert!(authority.0.try_wait().expect("known").is_none(), "an authority ended");
        let id = authority.0.id();
        wait_for("descriptors to be closed", || {
            (descriptors(id) <= before + OWN_WORK).then_some(())
        });
    }
}

#[test]
fn too_few_descriptors_are_refused_at_the_start_and_in_checks() {
    let place = tempfile::tempdir().expect("a folder");
    let net = place.path().join("net").display().to_string();
    let base = free_ports(8).expect("free ports").to_string();
    json(&["testnet", &net, "--base-port", &base, "--json"]);
    let config = format!("{net}/validator-0/config.toml");
    let program = with_descriptors(place.path(), 128);
    for arguments in [&["run", "--config", &config][..], &["config", "check", &config]] {
        let output = Command::new(&program).args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = format!("{}{}", stdout(&output), stderr(&output));
        let said: Vec<&str> = said.split_whitespace().collect();
        assert!(said.join(" ").contains("open, and needs"), "{said:?}");
    }
    let program = with_descriptors(place.path(), DESCRIPTORS);
    let check = ["config", "check", &config, "--json", "--allow-warnings"];
    let output = Command::new(&program).args(check).output().expect("it runs");
    let checked: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let shares = &checked["files"][0]["descriptors"];
    assert_eq!(shares["limit"], DESCRIPTORS);
    let of = |kind: &str| shares[kind].as_u64().expect("a number");
    let all = ["own", "handshakes", "status", "clients", "gateway"].map(of);
    assert!(all.iter().sum::<u64>() <= DESCRIPTORS as u64 && of("clients") >= 128, "{shares}");
    let problem = checked["files"][0]["findings"].to_string();
    assert!(problem.contains("clients are let in"), "{problem}");
}
