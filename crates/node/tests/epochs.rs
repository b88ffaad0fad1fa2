//! Real validators from one epoch of their network to the next, each in a process that goes on.

mod common;

use bytes::Bytes;
use common::{Cluster, TIMEOUT, new_identity, wait_until};
use quorate_crypto::{KeyFile, SchemeKind};
use quorate_engine::{FrameTag, Message};
use quorate_ledger::Noop;
use quorate_node::keys::next_key_file;
use quorate_node::testnet::system_random;
use quorate_node::tls::Dialer;
use quorate_node::transport::Limits;
use quorate_node::transport::hello::Hello;
use quorate_node::transport::outbound::dial;
use quorate_node::{
    CallResult, Client, ClientConfig, Epochs, NodeConfig, NodeError, SessionSpec, Shutdown, run,
};
use quorate_types::{
    Approval, Change, Committee, CommitteeFile, Epoch, Height, Lane, Member, ReplicaId,
    SignedChange,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

/// A validator's process, as far as it is one.
struct Process {
    config: NodeConfig,
    shutdown: Shutdown,
    thread: JoinHandle<Result<(), NodeError>>,
}

impl Process {
    fn start(config: &Path) -> Self {
        let config = NodeConfig::load(config).unwrap();
        let shutdown = Shutdown::new();
        let (own, stopping) = (config.clone(), shutdown.clone());
        let serve = move || run(&own, || Box::new(Noop), &stopping);
        Self { config, shutdown, thread: std::thread::spawn(serve) }
    }

    fn stop(self) {
        self.shutdown.trigger();
        self.thread.join().unwrap().unwrap();
    }

    fn epochs(&self) -> Epochs {
        Epochs::open(&self.config).unwrap()
    }

    /// A field of its status, as it is now; `None` while it does not answer.
    fn status(&self, field: &str) -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(&self.config.http).ok()?;
        write!(stream, "GET /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let status: serde_json::Value = serde_json::from_str(body).ok()?;
        let place = if status.get(field).is_some() { &status } else { &status["config"] };
        Some(place[field].clone())
    }

    fn is_in(&self, epoch: u64) -> bool {
        self.status("epoch") == Some(epoch.into())
    }
}

fn keys_of(config: &Path) -> KeyFile {
    KeyFile::read(&NodeConfig::load(config).unwrap().key).unwrap()
}

/// A member's keys in the next epoch, where that names others.
fn next_keys_of(config: &Path) -> Option<KeyFile> {
    let next = next_key_file(&NodeConfig::load(config).unwrap().key);
    next.exists().then(|| KeyFile::read(&next).unwrap())
}

/// The change to this file, signed by all who may.
fn change(ends: &Committee, file: CommitteeFile, configs: &[PathBuf]) -> SignedChange {
    let (network, epoch) = (ends.network(), ends.epoch());
    let (not_before, expires) = (Height(1), Height(1_000_000));
    let change = Change { network, epoch, file, not_before, expires };
    let next = change.check(ends).unwrap();
    let keys: Vec<KeyFile> = configs.iter().map(|config| keys_of(config)).collect();
    let approve = |keys: &KeyFile| {
        let member = ends.find(&keys.identity.public())?;
        let signature = keys.identity.sign(&change.approval_statement(ends));
        Some(Approval { member, signature })
    };
    let accept = |config: &PathBuf| {
        let keys = next_keys_of(config).unwrap_or_else(|| keys_of(config));
        let member = next.find(&keys.identity.public())?;
        Some(change.accept((ends, &next), (member, Height(0)), (&keys.identity, &keys.voting)))
    };
    let approvals = keys.iter().filter_map(approve).collect();
    let acceptances = configs.iter().filter_map(accept).collect();
    SignedChange { approvals, acceptances, change }
}

/// Brings a change to a member, as a client does; the tag of what comes back.
fn bring(committee: &Committee, to: ReplicaId, change: &SignedChange) -> u8 {
    let raw = borsh::to_vec(change).unwrap();
    let frame: Vec<u8> = Message::Change(raw.into()).frame().0.concat();
    let tls = Dialer::new(&new_identity()).unwrap().to(*committee.identity(to).unwrap()).unwrap();
    let hello = Hello::to(committee, Lane::Client);
    Runtime::new().unwrap().block_on(async {
        let address = committee.address(to).unwrap();
        let mut stream = dial(address, tls, hello, Limits::default().handshake).await.unwrap();
        stream.write_all(&frame).await.unwrap();
        stream.flush().await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        head[4]
    })
}

fn client_of(committee: &Arc<Committee>) -> Client {
    let sessions = vec![SessionSpec::fresh(new_identity(), ReplicaId(0))];
    Client::connect(&ClientConfig::new(Arc::clone(committee), sessions)).unwrap()
}

fn expect_served(client: &Client, tags: std::ops::Range<u64>) {
    for tag in tags.clone() {
        client.submit(0, tag, Bytes::from(format!("operation {tag}"))).unwrap();
    }
    for _ in tags {
        let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
        assert!(matches!(completion.result, CallResult::Completed(_)), "{completion:?}");
    }
}

/// The file of the next epoch, for now with everything as it is.
fn next_file(epochs: &Epochs) -> CommitteeFile {
    let network = Some(epochs.committee().network());
    let epoch = epochs.epoch().next();
    CommitteeFile { network, epoch, ..epochs.file().clone() }
}

/// Jolteon, then SBFT, then HotStuff, by the same four: the state goes on, and so do the processes.
#[test]
fn a_committee_changes_its_protocol_while_it_serves() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    expect_served(&client_of(&cluster.committee), 0..20);
    for (epoch, protocol) in [(2, "sbft"), (3, "hotstuff")] {
        let epochs = members[0].epochs();
        let mut file = next_file(&epochs);
        file.settings.protocol = protocol.into();
        let change = change(epochs.committee(), file, configs);
        let answer = bring(epochs.committee(), ReplicaId(1), &change);
        assert_eq!(answer, FrameTag::ChangeAnswer as u8);
        wait_until("all go on", || members.iter().all(|member| member.is_in(epoch)));
        let committee = Arc::clone(members[0].epochs().committee());
        assert_eq!(committee.epoch(), Epoch(epoch));
        expect_served(&client_of(&committee), 0..20);
    }
    wait_until("all have executed all", || {
        members.iter().all(|member| member.status("operations") == Some(60.into()))
    });
    members.into_iter().for_each(Process::stop);
}

/// A member makes room for a newcomer that followed as a learner, and follows as one itself.
#[test]
fn a_learner_takes_a_members_place() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = cluster.testnet.configs.clone();
    let (newcomer, keys) = learner(&cluster, 0);
    cluster.configure(|config| config.learners = vec![keys.identity.public().to_string()]);
    let mut members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    members.push(Process::start(&newcomer));
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    expect_served(&client_of(&cluster.committee), 0..20);
    let epochs = members[0].epochs();
    let mut file = next_file(&epochs);
    let address = members[4].config.listen.clone().unwrap();
    file.members[2] = Member::new(&keys.public(), address);
    let all: Vec<PathBuf> = configs.iter().cloned().chain([newcomer]).collect();
    let change = change(epochs.committee(), file, &all);
    bring(epochs.committee(), ReplicaId(0), &change);
    wait_until("all go on", || members.iter().all(|member| member.is_in(2)));
    // One of the four that stay in turn: a quorum needs the newcomer.
    let idle = members.remove(3);
    idle.stop();
    let committee = Arc::clone(members[0].epochs().committee());
    assert_eq!(committee.find(&keys.identity.public()), Some(ReplicaId(2)));
    expect_served(&client_of(&committee), 0..20);
    wait_until("the former member follows", || {
        members[2].status("operations") == Some(40.into())
            && members[2].status("learner") == Some(true.into())
    });
    members.into_iter().for_each(Process::stop);
}

/// Configuration and keys of a learner of this committee.
fn learner(cluster: &Cluster, number: usize) -> (PathBuf, KeyFile) {
    let folder = cluster.folder.path().join(format!("newcomer-{number}"));
    std::fs::create_dir_all(&folder).unwrap();
    let keys = KeyFile::generate(SchemeKind::Ed25519, &mut system_random).unwrap();
    keys.write(&folder.join("key.toml")).unwrap();
    let ports = quorate_node::ports::free_ports(2).unwrap();
    let mut config = NodeConfig::new(
        cluster.testnet.committee.clone(),
        folder.join("key.toml"),
        folder.join("data"),
    );
    config.learner = true;
    config.listen = Some(format!("127.0.0.1:{ports}"));
    config.http = format!("127.0.0.1:{}", ports + 1);
    config.durability = quorate_storage::Durability::Os;
    let path = folder.join("config.toml");
    std::fs::write(&path, config.to_toml()).unwrap();
    (path, keys)
}

/// Who slept through two changes is shown the way, and takes its place again.
#[test]
fn a_member_that_slept_walks_the_hand_overs() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let mut members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    expect_served(&client_of(&cluster.committee), 0..20);
    members.pop().unwrap().stop();
    for epoch in [2, 3] {
        let epochs = members[0].epochs();
        let mut file = next_file(&epochs);
        file.settings.clock_drift_max_ms = 5_000 + epoch;
        bring(epochs.committee(), ReplicaId(1), &change(epochs.committee(), file, configs));
        wait_until("three go on", || members.iter().all(|member| member.is_in(epoch)));
        expect_served(&client_of(members[0].epochs().committee()), 0..20);
    }
    members.push(Process::start(&configs[3]));
    wait_until("it is in the third epoch", || members[3].is_in(3));
    wait_until("with the state", || members[3].status("operations") == Some(60.into()));
    members.remove(0).stop();
    let committee = Arc::clone(members[2].epochs().committee());
    expect_served(&client_of(&committee), 0..20);
    members.into_iter().for_each(Process::stop);
}

/// Nobody of the old committee is in the new one: the old ones stay until a quorum of the new ones
/// has begun with the state, and follow as learners then.
#[test]
fn all_members_are_replaced_at_once() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = cluster.testnet.configs.clone();
    let newcomers: Vec<_> = (0..4).map(|number| learner(&cluster, number)).collect();
    let keys = newcomers.iter().map(|(_, keys)| keys.identity.public().to_string());
    let learners: Vec<String> = keys.collect();
    cluster.configure(|config| config.learners.clone_from(&learners));
    let new_configs = newcomers.iter().map(|(config, _)| config.clone());
    let all: Vec<PathBuf> = configs.iter().cloned().chain(new_configs).collect();
    let mut members: Vec<Process> = all.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    expect_served(&client_of(&cluster.committee), 0..20);
    let epochs = members[0].epochs();
    let mut file = next_file(&epochs);
    file.members = newcomers
        .iter()
        .zip(&members[4..])
        .map(|((_, keys), process)| {
            Member::new(&keys.public(), process.config.listen.clone().unwrap())
        })
        .collect();
    bring(epochs.committee(), ReplicaId(0), &change(epochs.committee(), file, &all));
    wait_until("all go on", || members.iter().all(|member| member.is_in(2)));
    let committee = Arc::clone(members[4].epochs().committee());
    expect_served(&client_of(&committee), 0..20);
    let follows = |member: &Process| {
        member.status("learner") == Some(true.into())
            && member.status("operations") == Some(40.into())
    };
    wait_until("the former members follow", || members[..4].iter().all(follows));
    members.drain(..4).for_each(Process::stop);
    expect_served(&client_of(&committee), 0..20);
    members.into_iter().for_each(Process::stop);
}

/// Ed25519 to BLS and SBFT, with voting keys that each member made beside its own.
#[test]
fn members_change_their_voting_keys() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let mut members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    let epochs = members[0].epochs();
    let mut file = next_file(&epochs);
    for (member, config) in file.members.iter_mut().zip(configs) {
        let fresh = KeyFile::generate(SchemeKind::Bls, &mut system_random).unwrap();
        let keys = KeyFile { identity: keys_of(config).identity, voting: fresh.voting };
        keys.write(&next_key_file(&NodeConfig::load(config).unwrap().key)).unwrap();
        *member = Member::new(&keys.public(), member.address.clone());
    }
    (file.scheme, file.settings.protocol) = ("bls".into(), "sbft".into());
    bring(epochs.committee(), ReplicaId(0), &change(epochs.committee(), file, configs));
    wait_until("all go on", || members.iter().all(|member| member.is_in(2)));
    members.pop().unwrap().stop();
    members.push(Process::start(&configs[3]));
    members.remove(0).stop();
    let committee = Arc::clone(members[0].epochs().committee());
    expect_served(&client_of(&committee), 0..20);
    members.into_iter().for_each(Process::stop);
}
