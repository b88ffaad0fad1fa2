//! Whose requests and queries real validators take, and how many of them.

use crate::common::door::{Door, open_gateway_to_all};
use crate::common::{Net, TIMEOUT, edit, edit_committee, json, quorate, stderr, stdout, wait_for};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile};
use quorate_gateway::{CallError, ClientConfig, Connection, KvClient, KvError, check_answer};
use quorate_lab::http;
use quorate_ledger::kv::Operation;
use quorate_node::config::load_committee;
use quorate_node::ports::free_ports;
use quorate_types::{Committee, ReplicaId};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

fn committee(net: &Net) -> Arc<Committee> {
    let file = net.folder().join("committee.toml");
    Arc::new(load_committee(&file, KeyCache::On).expect("a committee"))
}

/// A client of the key-value store with a new session, which `vouching` vouches for.
fn client(net: &Net, vouching: Option<&IdentitySecret>) -> KvClient {
    let config = Connection::config(committee(net), ReplicaId(0), check_answer);
    let config = ClientConfig { call_timeout: TIMEOUT, ..config };
    let config = vouching.map_or(config.clone(), |key| config.vouched_by(key));
    KvClient::new(Connection::open(&config).expect("threads"))
}

fn metric(net: &Net, member: usize, sample: &str) -> Option<f64> {
    let text = http::get(&net.http[member], "/metrics", Duration::from_secs(10)).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    value.parse().ok()
}

fn start(more: &[&str], prepare: impl FnOnce(&[std::path::PathBuf])) -> Net {
    let net = Net::start_with(4, "ed25519", &[&["--service", "kv"], more].concat(), prepare);
    net.wait_connected();
    net
}

/// Writes that nobody turned away.
async fn expect_write(store: &KvClient, key: &'static str) {
    store.put(key, "value").await.expect("it is let in");
}

async fn expect_turned_away(store: &KvClient) {
    let read = store.get_certified("known").await.expect_err("a stranger reads");
    let written = store.put("strange", "value").await.expect_err("a stranger writes");
    for error in [read, written] {
        let KvError::Call(CallError::TurnedAway(reason)) = &error else { panic!("{error}") };
        assert!(reason.contains("it lets in listed clients alone"), "{reason}");
    }
}

/// Has every validator read its files again.
fn hang_up(net: &Net) {
    for process in (0..net.http.len()).filter_map(|index| net.processes.id(index)) {
        let process = Pid::from_raw(process.cast_signed()).expect("a process");
        kill_process(process, Signal::HUP).expect("told");
    }
}

fn list(net: &Net, keys: &[&IdentitySecret]) {
    let line = |key: &&IdentitySecret| format!("[[clients]]\nkey = \"{}\"\n", key.public());
    let text: String = keys.iter().map(line).collect();
    for config in &net.configs {
        fs::write(config.with_file_name("clients.toml"), &text).expect("written");
    }
    hang_up(net);
}

#[test]
fn strangers_with_the_committee_file_neither_write_nor_read() {
    let gateway = format!("127.0.0.1:{}", free_ports(1).expect("a free port"));
    let net = start(&["--clients", "listed"], |configs| open_gateway_to_all(&configs[1], &gateway));
    let key = net.folder().join("client/key.toml");
    let listed = KeyFile::read(&key).expect("keys").identity;
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let known = client(&net, Some(&listed));
        expect_write(&known, "known").await;
        known.get_certified("known").await.expect("a read");
        expect_turned_away(&client(&net, None)).await;
        let self_made = IdentitySecret::from_seed([9; 32]);
        expect_turned_away(&client(&net, Some(&self_made))).await;
        expect_write(&known, "again").await;
    });
    wait_for("it to be counted", || {
        let refused = metric(&net, 0, "quorate_connections_cut_total{reason=\"not-listed\"}");
        refused.filter(|count| *count > 0.0)
    });
    the_command_uses_the_key(&net, &key);
    a_gateway_beside_a_member_needs_no_list(&gateway);
}

/// `quorate kv` takes the key that the testnet made, another by `--key`, and says why it is not let
/// in.
fn the_command_uses_the_key(net: &Net, key: &Path) {
    let folder = net.folder();
    let place = folder.to_str().expect("a plain path");
    assert_eq!(json(&["kv", "--net", place, "--json", "put", "a", "b"])["changed"], true);
    let file = folder.join("committee.toml");
    let apart = ["kv", "--committee", file.to_str().expect("plain"), "put", "a", "c"];
    let strange = quorate(&apart);
    assert_eq!(strange.status.code(), Some(1));
    assert!(stderr(&strange).contains("no member lets this client in"), "{}", stderr(&strange));
    let named = quorate(&[&apart[..], &["--key", key.to_str().expect("plain")]].concat());
    assert!(named.status.success(), "{}", stderr(&named));
}

fn a_gateway_beside_a_member_needs_no_list(address: &str) {
    let door = Door { address: address.to_owned(), token: None };
    wait_for("the gateway to be connected", || {
        (door.get("/v1/status").json(200)["members_connected"] == 4).then_some(())
    });
    door.ask("PUT", "/v1/kv/gate", "way").json(200);
}

#[test]
fn a_list_that_changes_lets_in_and_cuts_without_a_restart() {
    let net = start(&["--clients", "listed"], |_| {});
    let [first, second] = [1, 2].map(|seed| IdentitySecret::from_seed([seed; 32]));
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (one, two) = (client(&net, Some(&first)), client(&net, Some(&second)));
        expect_turned_away(&one).await;
        list(&net, &[&first]);
        until_let_in(&one).await;
        expect_turned_away(&two).await;
        list(&net, &[&second]);
        until_let_in(&two).await;
        until_turned_away(&one).await;
        for config in &net.configs {
            fs::write(config.with_file_name("clients.toml"), "no list").expect("written");
        }
        hang_up(&net);
        expect_write(&two, "still there").await;
    });
    assert!(net.looks().iter().all(Option::is_some), "nobody ended of a signal");
}

/// Returns `true` if members do not let the client in, whether or not the write was under way then.
fn is_refusal(error: &KvError) -> bool {
    matches!(error, KvError::Call(CallError::TurnedAway(_) | CallError::CutOff(_)))
}

async fn until_let_in(store: &KvClient) {
    while let Err(error) = store.put("listed", "value").await {
        assert!(is_refusal(&error), "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_turned_away(store: &KvClient) {
    loop {
        match store.put("listed", "value").await {
            Err(error) if is_refusal(&error) => return,
            Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Two members of four have a write, and are no quorum, when its client is struck off their lists.
#[test]
fn what_is_under_way_when_its_client_is_struck_off_may_take_effect() {
    let mut net = start(&["--clients", "listed"], |_| {});
    let [first, second] = [1, 2].map(|seed| IdentitySecret::from_seed([seed; 32]));
    list(&net, &[&first, &second]);
    let runtime = Runtime::new().expect("a runtime");
    let (one, two) = (client(&net, Some(&first)), client(&net, Some(&second)));
    runtime.block_on(until_let_in(&one));
    runtime.block_on(until_let_in(&two));

    (2..4).for_each(|index| net.processes.kill(index).expect("killed"));
    let put = |key: &'static str| Operation::put(key, vec![b'v'; 50_000]).encode();
    let write = one.connection().begin(put("under-way")).expect("it is let in");
    wait_for("a member to have it", || {
        let bytes = ["quorate_mempool_bytes", "quorate_bodies_bytes"];
        let holds = |sample: &str| metric(&net, 0, sample).is_some_and(|now| now > 50_000.0);
        bytes.iter().any(|sample| holds(sample)).then_some(())
    });
    list(&net, &[&second]);
    let error = runtime.block_on(write.finish()).expect_err("there is no quorum");
    assert!(matches!(error, CallError::CutOff(_)), "{error}");
    assert!(error.to_string().contains("may take effect"), "{error}");
    // What begins now is not sent, and said to be refused.
    let error = one.connection().begin(put("too-late")).expect_err("it is not let in");
    assert!(matches!(error, CallError::TurnedAway(_)), "{error}");

    (2..4).for_each(|index| net.processes.start_one(index).expect("started"));
    let read = |key: &'static str| runtime.block_on(two.get(key)).expect("a read");
    wait_for("it to take effect", || read("under-way"));
    assert_eq!(read("too-late"), None);
}

#[test]
fn what_the_service_does_not_admit_is_refused_before_it_is_ordered() {
    let net = start(&["--clients", "service"], |_| {});
    let runtime = Runtime::new().expect("a runtime");
    let executed = runtime.block_on(async {
        let store = client(&net, None);
        expect_write(&store, "first").await;
        let nonsense = bytes::Bytes::from_static(&[0xff; 9]);
        let error = store.connection().execute(nonsense).await.expect_err("no operation");
        let CallError::NotAdmitted(reason) = &error else { panic!("{error}") };
        assert!(!reason.is_empty());
        // Its number goes to the next one: nobody waits for it.
        for _ in 0..100 {
            expect_write(&store, "next").await;
        }
        101
    });
    net.wait_level(executed);
    let refused =
        |member| metric(&net, member, "quorate_requests_refused_total{reason=\"not-admitted\"}");
    let refusing = |member: &usize| refused(*member).is_some_and(|count| count > 0.0);
    wait_for("two to have refused it, of whom one is honest", || {
        ((0..4).filter(refusing).count() >= 2).then_some(())
    });
}

#[test]
fn validators_say_whom_they_let_in_and_refuse_a_list_that_is_not_there() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let folder = folder.to_str().expect("a plain path");
    let port = free_ports(8).expect("free ports").to_string();
    let written = quorate(&["testnet", folder, "--base-port", &port]);
    assert!(stdout(&written).contains("Clients: any client may write and read."));
    let config = place.path().join("net/validator-0/config.toml");
    edit_committee(&config, "clients = \"open\"", "clients = \"listed\"");
    let started = quorate(&["run", "--config", config.to_str().expect("plain")]);
    assert_eq!(started.status.code(), Some(2));
    assert!(stderr(&started).contains("cannot read list of clients"), "{}", stderr(&started));
}

#[test]
fn a_client_is_held_to_its_rate_and_told() {
    let net = start(&[], |configs| {
        for config in configs {
            edit(config, "client_requests_per_second = 0", "client_requests_per_second = 5");
        }
    });
    let refused = |member| metric(&net, member, "quorate_requests_refused_total{reason=\"rate\"}");
    let runtime = Runtime::new().expect("a runtime");
    let store = client(&net, None);
    wait_for("a member to tell it", || {
        // A session that is told to slow down does, and everything gets done.
        runtime.block_on(write_at_once(&store));
        (0..4).any(|member| refused(member).is_some_and(|count| count > 0.0)).then_some(())
    });
    runtime.block_on(expect_write(&client(&net, None), "another's"));
}

/// Writes that do not wait for one another, so far apart that none shares the request of another.
async fn write_at_once(store: &KvClient) {
    let write = |number| {
        let store = store.clone();
        tokio::spawn(async move {
            tokio::time::sleep(number * Duration::from_millis(5)).await;
            expect_write(&store, "fast").await;
        })
    };
    let writes: Vec<_> = (0..10).map(write).collect();
    for write in writes {
        write.await.expect("written");
    }
}

/// As by `systemctl reload` right after `systemctl start`. It waits for its configuration, a pipe,
/// while it is told.
#[test]
fn a_validator_that_is_to_read_again_while_it_starts_goes_on() {
    let place = tempfile::tempdir().expect("a folder");
    let (folder, base) = (place.path().join("net"), free_ports(8).expect("free ports").to_string());
    let folder = folder.to_str().expect("a plain path");
    let written = json(&["testnet", folder, "-n", "4", "--base-port", &base, "--json"]);
    let config = PathBuf::from(written["configs"][0].as_str().expect("a path"));
    let pipe = config.with_file_name("pipe.toml");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let mut validator = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["run", "--json", "--exit-with-parent", "--config"])
        .arg(&pipe)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    // This end opens once the validator has opened the other.
    let mut near = fs::OpenOptions::new().write(true).open(&pipe).expect("opened");
    kill_process(Pid::from_child(&validator), Signal::HUP).expect("told");
    near.write_all(&fs::read(&config).expect("read")).expect("it lives");
    drop(near);
    let mut says = String::new();
    let said = validator.stdout.take().expect("piped");
    BufReader::new(said).read_line(&mut says).expect("read");
    assert!(says.starts_with('{'), "it ended");
    drop(validator.stdin.take());
    assert!(validator.wait().expect("it ends").success());
}
