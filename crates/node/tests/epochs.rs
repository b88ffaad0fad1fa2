//! Real validators from one epoch of their network to the next, each in a process that goes on.

mod versions;

use crate::common::{Cluster, TIMEOUT, new_identity, wait_until};
use bytes::Bytes;
use quorate_crypto::{Bitmap, KeyFile, Policy, SchemeKind};
use quorate_engine::Bundling;
use quorate_ledger::Noop;
use quorate_node::keys::next_key_file;
use quorate_node::testnet::system_random;
use quorate_node::transport::Limits;
use quorate_node::transport::hello::{Answer, Ended};
use quorate_node::{
    CallResult, Client, ClientConfig, Epochs, NodeConfig, NodeError, SessionSpec, Shutdown,
    bring_change, run, unix_ms,
};
use quorate_types::machine::Halt;
use quorate_types::{
    Change, Committee, CommitteeFile, Epoch, HandOver, HandedOver, HandedOverError, Header, Height,
    History, Member, Purpose, ReplicaId, Service, SignedChange, SignedHandOver,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// A validator's process, as far as it is one.
struct Process {
    config: NodeConfig,
    shutdown: Shutdown,
    thread: JoinHandle<Result<(), NodeError>>,
}

impl Process {
    fn start(config: &Path) -> Self {
        Self::start_program(config, || Box::new(Noop))
    }

    /// The process of a program that has this service.
    fn start_program(
        config: &Path,
        service: impl Fn() -> Box<dyn Service> + Send + 'static,
    ) -> Self {
        let config = NodeConfig::load(config).unwrap();
        let shutdown = Shutdown::new();
        let (own, stopping) = (config.clone(), shutdown.clone());
        let serve = move || run(&own, service, &stopping);
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
        Some(change.approve(ends, member, &keys.identity))
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

/// Brings a change to the members of the epoch that it ends, one of whom takes it.
fn bring(epochs: &Epochs, change: &SignedChange) {
    let brought = bring_change(epochs.committee(), &new_identity(), change).unwrap();
    // Who was not reached may be on its way to the next epoch already.
    assert!(!brought.taken.is_empty(), "{brought:?}");
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

/// Submits operations one after the other, several at once, until it is told to stop. Returns the
/// tags of those that completed, and the number of those that were submitted.
fn submit_until(client: &Client, stop: &AtomicBool) -> (Vec<u64>, u64) {
    let (mut submitted, mut completed) = (0, Vec::new());
    while completed.len() < submitted as usize || !stop.load(Ordering::Relaxed) {
        let is_room = submitted - (completed.len() as u64) < 16;
        if is_room && !stop.load(Ordering::Relaxed) {
            let operation = Bytes::from(format!("operation {submitted}"));
            client.submit((submitted % 2) as usize, submitted, operation).unwrap();
            submitted += 1;
            continue;
        }
        let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
        assert!(matches!(completion.result, CallResult::Completed(_)), "{completion:?}");
        completed.push(completion.tag);
    }
    (completed, submitted)
}

/// Changes the protocol as all members agree, and waits until they are in the next epoch.
fn change_protocol(members: &[Process], configs: &[PathBuf], protocol: &str) {
    let epochs = members[0].epochs();
    let mut file = next_file(&epochs);
    file.settings.protocol = protocol.into();
    bring(&epochs, &change(epochs.committee(), file, configs));
    let epoch = epochs.epoch().next().0;
    wait_until("all go on", || members.iter().all(|member| member.is_in(epoch)));
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
        change_protocol(&members, configs, protocol);
        let committee = Arc::clone(members[0].epochs().committee());
        assert_eq!(committee.epoch(), Epoch(epoch));
        expect_served(&client_of(&committee), 0..20);
    }
    wait_until("all have executed all", || {
        members.iter().all(|member| member.status("operations") == Some(60.into()))
    });
    members.into_iter().for_each(Process::stop);
}

/// A client goes with its network, while operations are under way: each takes effect once, and
/// nothing that was acknowledged is lost. One that slept comes with the first epoch's file, and
/// follows over all.
#[test]
fn a_client_follows_while_it_submits() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    let sessions = [0, 1].map(|first| SessionSpec::fresh(new_identity(), ReplicaId(first)));
    let config = ClientConfig::new(Arc::clone(&cluster.committee), sessions.into());
    let client = Client::connect(&config).unwrap();
    let stop = AtomicBool::new(false);
    let (mut completed, submitted) = std::thread::scope(|scope| {
        let submitting = scope.spawn(|| submit_until(&client, &stop));
        for protocol in ["sbft", "hotstuff"] {
            change_protocol(&members, configs, protocol);
            let epoch = members[0].epochs().epoch();
            wait_until("the client follows", || client.history().committee().epoch() == epoch);
        }
        stop.store(true, Ordering::Relaxed);
        submitting.join().unwrap()
    });
    completed.sort_unstable();
    assert_eq!(completed, (0..submitted).collect::<Vec<_>>(), "each once");
    assert!(client.wait_connected(4, TIMEOUT));
    let slept = client_of(&cluster.committee);
    expect_served(&slept, 0..20);
    assert_eq!(slept.history().committee().epoch(), Epoch(3));
    assert_eq!(slept.history().steps(), members[0].epochs().steps());
    let all = submitted + 20;
    wait_until("all have executed all, once", || {
        members.iter().all(|member| member.status("operations") == Some(all.into()))
    });
    members.into_iter().for_each(Process::stop);
}

/// A client falls asleep with operations of which it does not know what became of them, and wakes
/// three epochs later with the file of the first: it sends them again with the numbers that they
/// had, and each completes once, as do those that follow.
#[test]
fn a_client_that_slept_completes_each_operation_once() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    let session = SessionSpec::fresh(new_identity(), ReplicaId(0));
    // One operation a request, so that those that are sent again are the same requests.
    let bundling = Bundling::after(Duration::from_millis(1)).at_most(1);
    let config = ClientConfig::new(Arc::clone(&cluster.committee), vec![session]);
    let config = ClientConfig { bundling, ..config };
    expect_served(&Client::connect(&config).unwrap(), 0..8);
    for protocol in ["sbft", "hotstuff", "jolteon"] {
        change_protocol(&members, configs, protocol);
    }
    let awake = Client::connect(&config).unwrap();
    expect_served(&awake, 0..24);
    assert_eq!(awake.history().committee().epoch(), Epoch(4));
    wait_until("all have executed all, once", || {
        members.iter().all(|member| member.status("operations") == Some(24.into()))
    });
    members.into_iter().for_each(Process::stop);
}

/// A member may show whatever it likes: what a quorum did not sign is no end of an epoch.
#[test]
fn a_client_follows_no_liar() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let honest: Vec<Process> = configs[1..].iter().map(|config| Process::start(config)).collect();
    let runtime = Runtime::new().unwrap();
    let liar = Liar::start(&runtime, &cluster, 0, &signed_end(&cluster, &[0], Height(1)));
    let client = client_of(&cluster.committee);
    wait_until("it was shown more than once", || liar.load(Ordering::Relaxed) > 1);
    expect_served(&client, 0..20);
    assert_eq!(client.history().committee().epoch(), Epoch(1));
    honest.into_iter().for_each(Process::stop);
}

/// All members' keys have leaked, and somebody ends the epoch with them: a client that knew it in
/// force long ago does not go on with that and says why, and one that knew it just now does.
#[test]
fn all_keys_of_an_epoch_leaked() {
    let cluster = Cluster::prepare(4, Limits::default());
    let runtime = Runtime::new().unwrap();
    let end = signed_end(&cluster, &[0, 1, 2, 3], Height(1));
    let liar = Liar::start(&runtime, &cluster, 0, &end);
    let client_since = |known_ms| {
        let history = History::new(Arc::clone(&cluster.committee)).known_at(known_ms);
        let sessions = vec![SessionSpec::fresh(new_identity(), ReplicaId(0))];
        Client::connect(&ClientConfig::after(history, sessions)).unwrap()
    };
    let now_ms = unix_ms();
    let day_ms = 86_400_000;
    let old = client_since(now_ms - 181 * day_ms);
    wait_until("it says why", || old.outdated().is_some());
    let (epoch, age_days, period_days) = (Epoch(1), 181, 180);
    assert_eq!(old.outdated(), Some(HandedOverError::TooOld { epoch, age_days, period_days }));
    let told = liar.load(Ordering::Relaxed);
    wait_until("it was shown more than once", || liar.load(Ordering::Relaxed) > told);
    assert_eq!(old.history().committee().epoch(), Epoch(1));
    let recent = client_since(now_ms - 179 * day_ms);
    wait_until("it goes on", || recent.history().committee().epoch() == Epoch(2));
    assert_eq!(recent.outdated(), None);
}

/// A validator that begins with a founding file which was out of force long ago is shown how, and
/// believes nobody: what it was given is as old as that end.
#[test]
fn an_end_of_long_ago_is_not_believed() {
    let cluster = Cluster::prepare(4, Limits::default());
    let runtime = Runtime::new().unwrap();
    let proposed_at_ms = unix_ms() - 181 * 86_400_000;
    let header = Header { height: Height(1), proposed_at_ms, ..Header::default() };
    let end = signed_end_with(&cluster, &[0, 1, 2, 3], header);
    let liar = Liar::start(&runtime, &cluster, 0, &end);
    let host = Process::start(&cluster.testnet.configs[3]);
    wait_until("it was shown more than once", || liar.load(Ordering::Relaxed) > 2);
    assert!(host.is_in(1) && !host.thread.is_finished());
    assert_eq!(host.epochs().epoch(), Epoch(1));
    host.stop();
}

/// Who leaked their keys can end an epoch in two ways: a host that is shown both believes neither.
#[test]
fn two_ends_of_an_epoch_halt_a_host() {
    let cluster = Cluster::prepare(4, Limits::default());
    // No end is believed before the other is there.
    cluster.configure(|config| config.replica.timeout_ms = 600_000);
    let runtime = Runtime::new().unwrap();
    for (member, height) in [(0, Height(1)), (1, Height(2))] {
        let end = signed_end(&cluster, &[0, 1, 2], height);
        Liar::start(&runtime, &cluster, member, &end);
    }
    let host = Process::start(&cluster.testnet.configs[3]);
    wait_until("it stops", || host.thread.is_finished());
    let halted = host.thread.join().unwrap();
    let Err(NodeError::Halted(Halt::ConflictingHandOvers { evidence, .. })) = halted else {
        panic!("{halted:?}")
    };
    assert!(evidence.contains("Height(1)") && evidence.contains("Height(2)"), "{evidence}");
    assert_eq!(Epochs::open(&host.config).unwrap().epoch(), Epoch(1));
}

/// A member that tells everybody that the epoch has ended.
struct Liar {
    tls: TlsAcceptor,
    answer: Vec<u8>,
    shown: Arc<AtomicUsize>,
}

impl Liar {
    /// Listens in the member's place; the number of those that it told.
    fn start(
        runtime: &Runtime,
        cluster: &Cluster,
        member: u16,
        end: &HandedOver,
    ) -> Arc<AtomicUsize> {
        let keys = keys_of(&cluster.testnet.configs[usize::from(member)]);
        let answer = Ended::encode(true, end);
        let shown = Arc::new(AtomicUsize::new(0));
        let tls = TlsAcceptor::from(quorate_node::tls::listener(&keys.identity).unwrap());
        let liar = Self { tls, answer, shown: Arc::clone(&shown) };
        let address = cluster.committee.address(ReplicaId(member)).unwrap().to_owned();
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
        runtime.spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                // Who hangs up meanwhile was told nothing.
                drop(liar.tell(tcp).await);
            }
        });
        shown
    }

    async fn tell(&self, tcp: tokio::net::TcpStream) -> std::io::Result<()> {
        let mut stream = self.tls.accept(tcp).await?;
        stream.read_u8().await?;
        stream.write_all(&[Answer::LaterEpoch as u8]).await?;
        stream.write_all(&self.answer).await?;
        stream.flush().await?;
        self.shown.fetch_add(1, Ordering::Relaxed);
        stream.shutdown().await
    }
}

/// The end of the first epoch at this height and now, which these members alone have signed.
fn signed_end(cluster: &Cluster, signers: &[usize], height: Height) -> HandedOver {
    let header = Header { height, proposed_at_ms: unix_ms(), ..Header::default() };
    signed_end_with(cluster, signers, header)
}

fn signed_end_with(cluster: &Cluster, signers: &[usize], header: Header) -> HandedOver {
    let (committee, configs) = (&cluster.committee, &cluster.testnet.configs);
    let epochs = Epochs::open(&NodeConfig::load(&configs[0]).unwrap()).unwrap();
    let file = next_file(&epochs);
    let content = HandOver {
        height: header.height,
        root: header.root(),
        file: file.digest(),
        ..HandOver::default()
    };
    let statement = content.statement(committee.scope());
    let share = |member: &usize| {
        let keys = keys_of(&configs[*member]);
        (*member, committee.sign(Purpose::HandOver, &keys.voting, &statement))
    };
    let shares: Vec<_> = signers.iter().map(share).collect();
    let (scheme, _) = committee.scheme(Purpose::HandOver);
    let nobody = Bitmap::new(committee.size());
    let combined = scheme.combine(&statement, &shares, &nobody, Policy::Aggregate);
    let certificate = combined.certificate.unwrap();
    HandedOver { signed: SignedHandOver { content, certificate }, header, file }
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
    bring(&epochs, &change);
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

/// The files of four members that let in so many learners, and those of the learners.
fn with_newcomers(count: usize) -> (Cluster, Vec<(PathBuf, KeyFile)>) {
    let cluster = Cluster::prepare(4, Limits::default());
    let newcomers: Vec<_> = (0..count).map(|number| learner(&cluster, number)).collect();
    let keys = newcomers.iter().map(|(_, keys)| keys.identity.public().to_string());
    let learners: Vec<String> = keys.collect();
    cluster.configure(|config| config.learners.clone_from(&learners));
    (cluster, newcomers)
}

/// Members' configurations, then the newcomers'.
fn configs_of_all(cluster: &Cluster, newcomers: &[(PathBuf, KeyFile)]) -> Vec<PathBuf> {
    let newcomers = newcomers.iter().map(|(config, _)| config.clone());
    cluster.testnet.configs.iter().cloned().chain(newcomers).collect()
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
        bring(&epochs, &change(epochs.committee(), file, configs));
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
    let (cluster, newcomers) = with_newcomers(4);
    let all = configs_of_all(&cluster, &newcomers);
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
    bring(&epochs, &change(epochs.committee(), file, &all));
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

/// Three of four are replaced by newcomers that begin when the epoch is over: those who leave are
/// there for them, and go on when the next epoch can do without.
#[test]
fn newcomers_that_come_late_are_served_by_those_who_leave() {
    let (cluster, newcomers) = with_newcomers(3);
    let configs = cluster.testnet.configs.clone();
    let mut members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    expect_served(&client_of(&cluster.committee), 0..20);
    let epochs = members[0].epochs();
    let mut file = next_file(&epochs);
    for (place, (config, keys)) in file.members[1..].iter_mut().zip(&newcomers) {
        let address = NodeConfig::load(config).unwrap().listen.unwrap();
        *place = Member::new(&keys.public(), address);
    }
    let all = configs_of_all(&cluster, &newcomers);
    bring(&epochs, &change(epochs.committee(), file, &all));
    wait_until("the one that stays is in the next epoch", || members[0].is_in(2));
    assert!(members[1..].iter().all(|leaver| leaver.is_in(1)), "nobody else has what it needs");
    let is_needed = |leaver: &Process| leaver.status("must_not_stop") == Some(true.into());
    wait_until("those who leave say so", || members[1..].iter().all(is_needed));
    members.extend(newcomers.iter().map(|(config, _)| Process::start(config)));
    wait_until("all go on", || members.iter().all(|member| member.is_in(2)));
    expect_served(&client_of(members[0].epochs().committee()), 0..20);
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
    bring(&epochs, &change(epochs.committee(), file, configs));
    wait_until("all go on", || members.iter().all(|member| member.is_in(2)));
    members.pop().unwrap().stop();
    members.push(Process::start(&configs[3]));
    members.remove(0).stop();
    let committee = Arc::clone(members[0].epochs().committee());
    expect_served(&client_of(&committee), 0..20);
    members.into_iter().for_each(Process::stop);
}

/// What no validator could run with is refused by members, whoever signed it, and before it is
/// ordered.
#[test]
fn a_change_that_no_validator_could_run_with_is_refused() {
    let cluster = Cluster::prepare(4, Limits::default());
    let configs = &cluster.testnet.configs;
    let members: Vec<Process> = configs.iter().map(|config| Process::start(config)).collect();
    wait_until("all serve", || members.iter().all(|member| member.is_in(1)));
    let epochs = members[0].epochs();
    let spoils: [fn(&mut CommitteeFile); 4] = [
        |file| file.settings.service = "kv".into(),
        |file| file.settings.clients = "nobody".into(),
        |file| file.settings.truncation = "off".into(),
        |file| file.settings.execution_version = 0,
    ];
    let reasons = [
        "'service' and 'genesis_digest' stay as they are",
        "clients",
        "'truncation'",
        "'execution_version' is 0, and version 1 executed before: it never goes back",
    ];
    for (spoil, reason) in spoils.into_iter().zip(reasons) {
        let mut file = next_file(&epochs);
        spoil(&mut file);
        let change = change(epochs.committee(), file, configs);
        let brought = bring_change(epochs.committee(), &new_identity(), &change).unwrap();
        assert!(brought.taken.is_empty() && brought.refused.len() == 4);
        assert!(brought.refused.iter().all(|(_, said)| said.contains(reason)), "{brought:?}");
    }
    members.into_iter().for_each(Process::stop);
}
