//! Authorities that change while payments go on, as the committee behind them orders it: over TLS
//! and real disks, in one process.

use crate::common::{self, wait_until};
use crossbeam_channel::{Receiver, Sender, unbounded};
use quorate_crypto::{IdentitySecret, KeyFile, StoredKeys};
use quorate_engine::Settings;
use quorate_ledger::payments::ReleaseService;
use quorate_node::payments::{
    Authority, AuthorityConfig, PayClient, PayFeed, PayTestnet, PayTestnetPlan, PreparedOrder,
    ReleaseCommittee, Start, read_network, read_network_file, run_authority,
};
use quorate_node::ports::free_ports;
use quorate_node::transport::Limits;
use quorate_node::{NodeConfig, NodeError, Shutdown, Validator};
use quorate_payments::change::{Change, Closing, chunk_leaf};
use quorate_payments::release::{Decision, Freeze, ReleaseStep};
use quorate_payments::{
    AuthorityEntry, Coin, Endowment, Network, NetworkFile, Origin, Output, PayScheme,
    PaymentOutcome, Transaction, Verdict,
};
use quorate_storage::Durability;
use quorate_types::{Epoch, ReplicaId};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// An authority, and the epoch that it votes in from now on.
type Begun = (usize, Epoch);

/// An authority's shard that runs from epoch to epoch.
struct Running {
    shutdown: Shutdown,
    thread: JoinHandle<Result<(), NodeError>>,
}

/// Four authorities with a committee behind them; Alice has coins worth 1 to 8.
struct Net {
    testnet: PayTestnet,
    running: BTreeMap<usize, Running>,
    validators: Vec<Validator>,
    committee: ReleaseCommittee,
    runtime: Runtime,
    begun: (Sender<Begun>, Receiver<Begun>),
    _folder: TempDir,
}

impl Net {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let endow = |value| Endowment { owner: alice().public().to_string(), value };
        let plan = PayTestnetPlan {
            base_port: free_ports(18).unwrap(),
            durability: Durability::Os,
            genesis: (1..=8).map(endow).collect(),
            committee: Some(Settings::default()),
            ..PayTestnetPlan::default()
        };
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan).unwrap();
        let file = testnet.network.with_file_name(ReleaseCommittee::FILE);
        let mut net = Self {
            running: BTreeMap::new(),
            validators: Vec::new(),
            committee: ReleaseCommittee::connect(&file).unwrap().with_timeout(common::TIMEOUT),
            runtime: Runtime::new().unwrap(),
            begun: unbounded(),
            testnet,
            _folder: folder,
        };
        for path in &net.testnet.committee.as_ref().expect("planned").configs {
            let config = NodeConfig::load(path).unwrap();
            let founding = Arc::new(read_network(&net.testnet.network).unwrap());
            let service = Box::new(ReleaseService::new(founding));
            let validator = Validator::start_with(&config, service, Limits::default());
            net.validators.push(validator.unwrap());
        }
        (0..4).for_each(|index| net.run(index, &net.config_file(index)));
        net
    }

    fn config_file(&self, index: usize) -> PathBuf {
        self.testnet.directory.join(format!("authority-{index}/shard-0.toml"))
    }

    fn run(&mut self, index: usize, config: &Path) {
        let config = AuthorityConfig::load(config).unwrap();
        let keys = keys(&config.key);
        let (shutdown, begun) = (Shutdown::new(), self.begun.0.clone());
        let stop = shutdown.clone();
        let thread = std::thread::spawn(move || {
            let tell = |authority: &Authority| begun.send((index, authority.epoch())).unwrap();
            run_authority(&config, &keys, Start::Again, &stop, tell)
        });
        self.running.insert(index, Running { shutdown, thread });
    }

    fn stop(&mut self, index: usize) {
        let running = self.running.remove(&index).expect("it runs");
        running.shutdown.trigger();
        running.thread.join().unwrap().unwrap();
    }

    /// Waits until these authorities vote in an epoch.
    fn await_epoch(&self, epoch: u64, authorities: &[usize]) {
        let mut missing = authorities.to_vec();
        while !missing.is_empty() {
            let (index, begun) = self.begun.1.recv_timeout(common::TIMEOUT).expect("it begins");
            missing.retain(|one| !(*one == index && begun == Epoch(epoch)));
        }
    }

    fn network(&self) -> Arc<Network> {
        Arc::new(read_network(&self.testnet.network).unwrap())
    }

    /// Writes new keys for an authority, in a folder of their own, and its entry.
    fn newcomer(&self, index: usize, address: String) -> (KeyFile, AuthorityEntry) {
        let folder = self.testnet.directory.join(format!("authority-{index}"));
        fs::create_dir_all(&folder).unwrap();
        let seed = [100 + u8::try_from(index).unwrap(); 32];
        let keys = KeyFile::from_seed(PayScheme::Plain.keys(), &seed);
        keys.write(&folder.join("key.toml")).unwrap();
        let entry = AuthorityEntry::new(&keys.public(), vec![address]);
        (keys, entry)
    }

    /// The change from the epoch in force that `draw` makes of the network file, signed by all.
    fn change(&self, newcomer: &KeyFile, draw: impl FnOnce(&mut NetworkFile)) -> Change {
        let network = self.network();
        let file = read_network_file(&self.testnet.network, network.epoch()).unwrap();
        let mut next = file.next_epoch(network.id());
        draw(&mut next);
        let mut change = Change::draft(next);
        change.sign(&network, &newcomer.identity);
        for index in self.running.keys() {
            let config = AuthorityConfig::load(&self.config_file(*index)).unwrap();
            change.sign(&network, &keys(&config.key).identity);
        }
        change
    }

    /// Puts in the place of the report by which a stopped authority will end the second epoch one
    /// that it signs, and whose chunk is none.
    fn write_no_report(&self, index: usize, change: &Change) {
        let config = AuthorityConfig::load(&self.config_file(index)).unwrap();
        let (network, identity) = (self.network(), keys(&config.key).identity);
        let me = network.committee().find(&identity.public()).expect("an authority");
        let (chunk, next) = (b"no entries", change.next.digest());
        let leaves = vec![chunk_leaf(0, chunk)];
        let closing = Closing::sign(&network, &identity, (me, 0), next, (1, &leaves));
        let folder = config.data_dir.join("epoch-2/report");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("chunk-00000000"), chunk).unwrap();
        fs::write(folder.join("closing"), borsh::to_vec(&(closing, leaves)).unwrap()).unwrap();
    }

    fn coin(&self, value: u64) -> Coin {
        let network = self.network();
        let mut worth = network.genesis_outputs().filter(|(_, output)| output.value == value);
        let (id, output) = worth.next().expect("one of each");
        Coin { id, output, origin: Origin::Genesis }
    }

    /// Shows a transaction to one authority alone, which votes for it.
    fn show(&self, transaction: &Transaction, authority: u16) {
        let verdict = self.runtime.block_on(async {
            let place = (ReplicaId(authority), 0);
            let mut feed = PayFeed::open(&self.network(), &alice(), place).unwrap();
            feed.sender()(&PreparedOrder::new(transaction));
            feed.answer().await.expect("an answer").verdict
        });
        assert!(matches!(verdict, Verdict::Vote(_)), "{verdict:?}");
    }

    fn pay(&self, transaction: Transaction) -> PaymentOutcome {
        let paying = async {
            let client = PayClient::start(self.network(), &alice()).unwrap();
            let paying = client.pay(Arc::new(transaction));
            tokio::time::timeout(common::TIMEOUT, paying).await.expect("an outcome")
        };
        self.runtime.block_on(paying)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let running = std::mem::take(&mut self.running);
        for running in running.into_values() {
            running.shutdown.trigger();
            let _ = running.thread.join();
        }
    }
}

fn alice() -> IdentitySecret {
    IdentitySecret::from_seed([7; 32])
}

fn keys(path: &Path) -> KeyFile {
    match StoredKeys::read(path).unwrap() {
        StoredKeys::Open(keys) => keys,
        StoredKeys::Sealed(_) => panic!("a testnet's keys are open"),
    }
}

/// Pays a coin to its owner again and again, in whatever epoch is in force, until it is told to
/// stop. Returns how often, and the coin.
fn pay_on(file: &Path, mut coin: Coin, stop: &AtomicBool) -> (u64, Coin) {
    let runtime = Runtime::new().unwrap();
    let mut paid = 0;
    while !stop.load(Ordering::Relaxed) {
        let outputs = vec![coin.output];
        let network = read_network(file).unwrap();
        let payment = Transaction::spend(&network, &alice(), std::slice::from_ref(&coin), outputs);
        let payment = Arc::new(payment);
        coin = runtime.block_on(finish(file, &payment));
        paid += 1;
    }
    (paid, coin)
}

/// Shows a payment to the authorities of the epoch in force, and of the next if that ends, until it
/// is certified: the same bytes.
async fn finish(file: &Path, payment: &Arc<Transaction>) -> Coin {
    loop {
        let network = Arc::new(read_network(file).unwrap());
        let client = PayClient::start(Arc::clone(&network), &alice()).unwrap();
        let paying = client.pay(Arc::clone(payment));
        match tokio::time::timeout(Duration::from_secs(1), paying).await {
            Ok(PaymentOutcome::Certified(certificate)) => {
                return payment.coins(network.id(), &certificate).remove(0);
            }
            Ok(other) => panic!("an honest payment: {other:?}"),
            Err(_) => {}
        }
    }
}

/// Replaced after its disk was lost, then one more, while payments go on and one signs a report
/// that is none; and what an order alone can do, it does in later epochs too.
#[test]
fn authorities_change_while_payments_go_on() {
    let mut net = Net::start();
    net.await_epoch(1, &[0, 1, 2, 3]);
    let stop = Arc::new(AtomicBool::new(false));
    let (file, coin, told) = (net.testnet.network.clone(), net.coin(8), Arc::clone(&stop));
    let paying = std::thread::spawn(move || pay_on(&file, coin, &told));

    net.stop(3);
    let config = AuthorityConfig::load(&net.config_file(3)).unwrap();
    fs::remove_dir_all(&config.data_dir).expect("its disk is lost");
    fs::remove_file(&config.key).expect("and its key");
    let address = net.network().address(3, 0).expect("its shard").to_owned();
    let (newcomer, entry) = net.newcomer(3, address);
    let change = net.change(&newcomer, |next| next.authorities[3] = entry);
    net.run(3, &net.config_file(3));
    assert_eq!(net.committee.submit_change(&change).unwrap(), Ok(()));
    net.await_epoch(2, &[0, 1, 2, 3]);

    let half = net.coin(3);
    let lost = Transaction::spend(
        &net.network(),
        &alice(),
        std::slice::from_ref(&half),
        vec![half.output],
    );
    net.show(&lost, 3);
    net.stop(3);
    let freeze = Freeze::by_owner(&net.network(), &alice(), vec![half.clone()]);
    assert_eq!(net.committee.submit(&ReleaseStep::Freeze(freeze)).unwrap(), Ok(vec![]));
    wait_until("a decision", || net.committee.standing(half.id).unwrap().decision.is_some());
    let standing = net.committee.standing(half.id).unwrap();
    assert_eq!((standing.epoch, standing.decision), (Epoch(2), Some(Decision::Refund)));
    let back = Transaction::refund(&net.network(), &alice(), &half);
    assert!(matches!(net.pay(back), PaymentOutcome::Certified(_)));
    net.run(3, &net.config_file(3));
    net.await_epoch(2, &[3]);

    let port = free_ports(2).unwrap();
    let (newcomer, entry) = net.newcomer(4, format!("127.0.0.1:{port}"));
    let config = fs::read_to_string(net.config_file(3)).unwrap();
    let http = AuthorityConfig::load(&net.config_file(3)).unwrap().http;
    let config = config.replace(&http, &format!("127.0.0.1:{}", port + 1));
    fs::write(net.config_file(4), config).unwrap();
    let change = net.change(&newcomer, |next| next.authorities.push(entry));
    net.run(4, &net.config_file(4));
    net.stop(2);
    net.write_no_report(2, &change);
    net.run(2, &net.config_file(2));
    assert_eq!(net.committee.submit_change(&change).unwrap(), Ok(()));
    net.await_epoch(3, &[0, 1, 3, 4]);
    assert_eq!(net.network().committee().size(), 5);

    stop.store(true, Ordering::Relaxed);
    let (paid, coin) = paying.join().expect("no payment is lost");
    assert!(paid > 10, "{paid} payments");
    let network = net.network();
    let outputs = vec![coin.output];
    let last = Transaction::spend(&network, &alice(), std::slice::from_ref(&coin), outputs);
    assert!(matches!(net.pay(last), PaymentOutcome::Certified(_)));
    let first = net.coin(8);
    let halves = [3, 5].map(|value| Output { value, ..first.output }).to_vec();
    let again = Transaction::spend(&network, &alice(), &[first], halves);
    assert!(!matches!(net.pay(again), PaymentOutcome::Certified(_)), "it is spent, since epoch 1");
}
