//! Change of a payment network's authorities, over TLS and real disks: one whose disk is lost is
//! replaced, and the money goes on.

use crate::common::wait_until;
use parking_lot::Mutex;
use quorate_crypto::{IdentitySecret, KeyFile, StoredKeys};
use quorate_node::NodeError;
use quorate_node::payments::{
    Authority, AuthorityConfig, Followed, NetworkFollower, PayClient, PayEpochError, PayTestnet,
    PayTestnetPlan, Start, begin, change_beside, close, follow_network, look_for_changes,
    read_network, write_change,
};
use quorate_node::ports::free_ports;
use quorate_payments::change::Change;
use quorate_payments::{
    AuthorityEntry, Coin, Network, NetworkFile, Output, PayReceipt, PayScheme, PaymentOutcome,
    Transaction, TxId, WalletReply, WalletRequest,
};
use quorate_types::{Epoch, ReplicaId};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest wait for an outcome.
const WAIT: Duration = Duration::from_secs(60);

fn keys(path: &Path) -> KeyFile {
    match StoredKeys::read(path).expect("a key file") {
        StoredKeys::Open(keys) => keys,
        StoredKeys::Sealed(_) => panic!("a testnet's keys are open"),
    }
}

fn owner(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

struct Net {
    testnet: PayTestnet,
    running: Vec<Authority>,
    runtime: Runtime,
    _folder: tempfile::TempDir,
}

impl Net {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let base_port = free_ports(8).expect("free ports");
        let plan = PayTestnetPlan { base_port, ..PayTestnetPlan::default() };
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan).expect("written");
        let runtime = Runtime::new().expect("a runtime");
        Self { testnet, running: Vec::new(), runtime, _folder: folder }
    }

    fn config(&self, authority: usize) -> AuthorityConfig {
        AuthorityConfig::load(&self.testnet.configs[authority][0]).expect("a configuration")
    }

    fn start(&mut self, authorities: &[usize]) -> Result<(), NodeError> {
        for one in authorities {
            let config = self.config(*one);
            self.running.push(Authority::start(&config, &keys(&config.key), Start::Again)?);
        }
        Ok(())
    }

    fn network(&self) -> Arc<Network> {
        Arc::new(read_network(&self.testnet.network).expect("a network"))
    }

    fn pay(&self, key: &IdentitySecret, transaction: &Transaction) -> Vec<Coin> {
        let network = self.network();
        let client = {
            let _inside = self.runtime.enter();
            PayClient::start(Arc::clone(&network), key).expect("starts")
        };
        let paying = client.pay(Arc::new(transaction.clone()));
        let outcome = self.runtime.block_on(async { tokio::time::timeout(WAIT, paying).await });
        match outcome.expect("an outcome within a minute") {
            PaymentOutcome::Certified(certificate) => transaction.coins(network.id(), &certificate),
            other => panic!("{other:?}"),
        }
    }

    fn spend(&self, from: &IdentitySecret, coins: &[Coin], to: &IdentitySecret) -> Transaction {
        let value = coins.iter().map(|coin| coin.output.value).sum();
        let outputs = vec![Output { owner: to.public(), value }];
        Transaction::spend(&self.network(), from, coins, outputs)
    }

    /// The change by which the first authority gets new keys, as its operator makes them.
    fn replace_first(&self) -> Change {
        let network = self.network();
        let text = fs::read_to_string(&self.testnet.network).expect("written");
        let file: NetworkFile = toml::from_str(&text).expect("a network file");
        let path = self.config(0).key;
        fs::remove_file(&path).expect("the old ones");
        let newcomer = KeyFile::from_seed(PayScheme::Plain.keys(), &[77; 32]);
        newcomer.write(&path).expect("new keys");
        let mut next = file.next_epoch(network.id());
        let addresses = next.authorities[0].addresses.clone();
        next.authorities[0] = AuthorityEntry::new(&newcomer.public(), addresses);
        let mut change = Change::draft(next);
        (0..4).for_each(|one| change.sign(&network, &keys(&self.config(one).key).identity));
        change
    }

    fn reports(&self, authorities: &[usize]) -> Vec<PathBuf> {
        authorities.iter().map(|one| self.config(*one).data_dir.join("report")).collect()
    }
}

#[test]
fn an_authority_whose_disk_is_lost_is_replaced_and_the_money_goes_on() {
    let mut net = Net::new();
    net.start(&[0, 1, 2, 3]).expect("all start");
    let (issuer, alice, bob) = (keys(&net.testnet.issuer).identity, owner(1), owner(2));
    let outputs = vec![Output { owner: alice.public(), value: 100 }];
    let issue = Transaction::issue(&net.network(), &issuer, 1, outputs);
    let issued = net.pay(&issuer, &issue);
    let paid = net.spend(&alice, &issued, &bob);
    let coins = net.pay(&alice, &paid);
    net.running.clear();

    fs::remove_dir_all(net.config(0).data_dir).expect("its disk is lost");
    let change = net.replace_first();
    for one in 1..4 {
        let config = net.config(one);
        let first = close(&config, &keys(&config.key), &change).expect("closes");
        let again = close(&config, &keys(&config.key), &change).expect("closes again");
        assert_eq!((first.count, first), (2, again), "what it issued and what was paid");
    }
    let former = net.network();
    let beside = change_beside(&net.testnet.network, change.next.epoch);
    write_change(&beside, &change).expect("written");
    let refused = net.start(&[1]).expect_err("it has not begun the epoch");
    assert!(matches!(refused, NodeError::PayEpoch(PayEpochError::NotBegun { .. })), "{refused}");
    let reports = net.reports(&[1, 2, 3]);
    for one in 0..4 {
        let config = net.config(one);
        let begun = begin(&config, &keys(&config.key), &change, &reports).expect("begins");
        assert_eq!((begun.locked, begun.admitted, begun.contested), (2, 2, 0));
    }
    net.start(&[0, 1, 2]).expect("all start");

    let receipt = PayReceipt { coins: coins.clone(), memo: None };
    receipt.check(&net.network()).expect("a receipt of the former epoch");
    let onward = net.spend(&bob, &coins, &alice);
    let returned = net.pay(&bob, &onward);
    let receipt = PayReceipt { coins: returned.clone(), memo: None };
    receipt.check(&net.network()).expect("one of the next");
    receipt.check(&former).expect_err("whose authorities the former does not know");
    net.pay(&alice, &net.spend(&alice, &returned, &bob));
    net.running.clear();
    net.start(&[0, 1, 2, 3]).expect("and again");
}

/// ★ A wallet's folder has the founding file alone, and authorities that run, closed or in the next
/// epoch, lead on from there. What the former epoch certified is counted by those of the next one.
#[test]
fn whoever_asks_is_led_to_the_next_epoch() {
    let mut net = Net::new();
    net.start(&[0, 1, 2, 3]).expect("all start");
    let (issuer, alice) = (keys(&net.testnet.issuer).identity, owner(1));
    let outputs = vec![Output { owner: alice.public(), value: 100 }];
    let issue = Transaction::issue(&net.network(), &issuer, 1, outputs);
    let coins = net.pay(&issuer, &issue);
    net.running.clear();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let copy = elsewhere.path().join("network.toml");
    fs::copy(&net.testnet.network, &copy).expect("copied");
    let follow = |within| {
        let following = follow_network(&copy, &alice, within);
        net.runtime.block_on(following).expect("followed").epoch()
    };
    assert_eq!(follow(Duration::from_millis(100)), Epoch(1), "nobody answers");

    fs::remove_dir_all(net.config(0).data_dir).expect("its disk is lost");
    let change = net.replace_first();
    for one in 1..4 {
        let config = net.config(one);
        close(&config, &keys(&config.key), &change).expect("closes");
    }
    let closed: Vec<Authority> = [1, 2, 3]
        .map(|one| net.config(one))
        .map(|config| {
            Authority::start(&config, &keys(&config.key), Start::Again)
                .expect("it is in epoch 1 still")
        })
        .into();
    assert_eq!(follow(WAIT), Epoch(1), "a quorum knows of no change");
    let looked = net.runtime.block_on(async {
        let follower = Arc::new(Mutex::new(NetworkFollower::open(&copy).expect("readable")));
        let network = Arc::clone(follower.lock().network());
        let client = PayClient::start(network, &alice).expect("connects");
        let ask = |to, request| {
            let client = client.clone();
            async move { client.ask(to, request).await }
        };
        look_for_changes(&follower, ask, WAIT).await.expect("followed")
    });
    assert_eq!(looked, Followed::InForce);
    let beside = change_beside(&net.testnet.network, change.next.epoch);
    write_change(&beside, &change).expect("written");
    // Authorities look beside their file ten times a second, and not for each who asks.
    wait_until("authorities know of the change", || follow(WAIT) == Epoch(2));
    assert_eq!(read_network(&copy).expect("a network").epoch(), Epoch(2));
    drop(closed);

    let reports = net.reports(&[1, 2, 3]);
    for one in 0..4 {
        let config = net.config(one);
        begin(&config, &keys(&config.key), &change, &reports).expect("begins");
    }
    net.start(&[0, 1, 2]).expect("all start");
    let client = {
        let _inside = net.runtime.enter();
        PayClient::start(net.network(), &alice).expect("starts")
    };
    let (counts, made_up) = (coins[0].id.tx, TxId(quorate_crypto::hash(b"made up")));
    for one in 0..3 {
        let asking = client.ask(ReplicaId(one), WalletRequest::Counting(vec![counts, made_up]));
        let reply = net.runtime.block_on(async { tokio::time::timeout(WAIT, asking).await });
        assert_eq!(reply, Ok(WalletReply::Counting(vec![true, false])), "authority {one}");
    }
}

/// What is left of an epoch's beginning that was not made whole is none.
#[test]
fn an_epoch_is_begun_whole_or_not() {
    let mut net = Net::new();
    let change = net.replace_first();
    for one in 1..4 {
        let config = net.config(one);
        close(&config, &keys(&config.key), &change).expect("closes");
    }
    let config = net.config(1);
    let reports = net.reports(&[1, 2, 3]);
    begin(&config, &keys(&config.key), &change, &reports).expect("begins");
    write_change(&change_beside(&net.testnet.network, change.next.epoch), &change)
        .expect("written");
    let whole = config.data_dir.join("epoch-2/inherited/contested");
    fs::rename(&whole, whole.with_extension("gone")).expect("renamed");
    let refused = net.start(&[1]).expect_err("not whole");
    assert!(matches!(refused, NodeError::PayEpoch(PayEpochError::NotBegun { .. })), "{refused}");
}
