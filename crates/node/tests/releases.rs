//! Releases of locked coins from end to end: authorities, each with a validator beside it, payers
//! and their committee, over TLS and real disks in one process.

use crate::common::{self, get, wait_until};
use quorate_crypto::{IdentitySecret, KeyFile, StoredKeys};
use quorate_engine::{ProtocolKind, Settings};
use quorate_ledger::payments::ReleaseService;
use quorate_node::payments::{
    Authority, AuthorityConfig, PayClient, PayFeed, PayTestnet, PayTestnetPlan, PreparedOrder,
    ReleaseCommittee, Start, read_network,
};
use quorate_node::ports::free_ports;
use quorate_node::transport::Limits;
use quorate_node::{NodeConfig, Validator};
use quorate_payments::committee::Ordered;
use quorate_payments::release::{
    self, Cause, Decision, Freeze, Held, ReleaseStep, Report, Standing,
};
use quorate_payments::{
    Coin, Endowment, Equivocation, Network, Origin, Output, PaymentOutcome, Transaction, Verdict,
};
use quorate_storage::Durability;
use quorate_types::ReplicaId;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Four authorities and four validators beside them; Mallory has coins worth 1 to 4.
struct Net {
    testnet: PayTestnet,
    network: Arc<Network>,
    authorities: Vec<Option<Authority>>,
    validators: Vec<Option<Validator>>,
    committee: ReleaseCommittee,
    runtime: Runtime,
    _folder: TempDir,
}

impl Net {
    fn start(protocol: ProtocolKind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let endow = |value| Endowment { owner: mallory().public().to_string(), value };
        let plan = PayTestnetPlan {
            base_port: free_ports(16).unwrap(),
            durability: Durability::Os,
            genesis: (1..=4).map(endow).collect(),
            committee: Some(Settings { protocol, ..Settings::default() }),
            ..PayTestnetPlan::default()
        };
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan).unwrap();
        let network = Arc::new(read_network(&testnet.network).unwrap());
        let file = testnet.network.with_file_name(ReleaseCommittee::FILE);
        let mut net = Self {
            network,
            authorities: (0..4).map(|_| None).collect(),
            validators: (0..4).map(|_| None).collect(),
            committee: ReleaseCommittee::connect(&file).unwrap().with_timeout(common::TIMEOUT),
            runtime: Runtime::new().unwrap(),
            testnet,
            _folder: folder,
        };
        (0..4).for_each(|index| net.start_authority(index));
        (0..4).for_each(|index| net.start_validator(index));
        net
    }

    fn start_authority(&mut self, index: usize) {
        let config = AuthorityConfig::load(&self.testnet.configs[index][0]).unwrap();
        let keys = config.load_keys(&mut |_| None).unwrap();
        self.authorities[index] = Some(Authority::start(&config, &keys, Start::Again).unwrap());
    }

    fn stop_authority(&mut self, index: usize) {
        self.authorities[index] = None;
    }

    fn start_validator(&mut self, index: usize) {
        let path = &self.testnet.committee.as_ref().expect("planned").configs[index];
        let config = NodeConfig::load(path).unwrap();
        let service = Box::new(ReleaseService::new(Arc::clone(&self.network)));
        let validator = Validator::start_with(&config, service, Limits::default()).unwrap();
        self.validators[index] = Some(validator);
    }

    fn stop_validator(&mut self, index: usize) {
        self.validators[index].take().expect("it runs").stop().unwrap();
    }

    /// Mallory's coin of this value.
    fn coin(&self, value: u64) -> Coin {
        let outputs = self.network.genesis_outputs();
        let mut worth = outputs.filter(|(_, output)| output.value == value);
        let (id, output) = worth.next().expect("one of each");
        Coin { id, output, origin: Origin::Genesis }
    }

    fn spend(&self, coin: &Coin, payee: u8) -> Transaction {
        let outputs = vec![Output { owner: person(payee).public(), value: coin.output.value }];
        Transaction::spend(&self.network, &mallory(), std::slice::from_ref(coin), outputs)
    }

    /// Shows a transaction to one authority alone, which votes for it.
    fn show(&self, transaction: &Transaction, authority: u16) {
        let verdict = self.runtime.block_on(async {
            let place = (ReplicaId(authority), 0);
            let mut feed = PayFeed::open(&self.network, &mallory(), place).unwrap();
            feed.sender()(&PreparedOrder::new(transaction));
            feed.answer().await.expect("an answer").verdict
        });
        assert!(matches!(verdict, Verdict::Vote(_)), "{verdict:?}");
    }

    fn pay(&self, transaction: &Transaction) -> PaymentOutcome {
        let paying = async {
            let client = PayClient::start(Arc::clone(&self.network), &mallory()).unwrap();
            let paying = client.pay(Arc::new(transaction.clone()));
            tokio::time::timeout(common::TIMEOUT, paying).await.expect("an outcome")
        };
        self.runtime.block_on(paying)
    }

    fn is_certified(&self, transaction: &Transaction) -> bool {
        matches!(self.pay(transaction), PaymentOutcome::Certified(_))
    }

    fn freeze(&self, coins: &[Coin]) {
        let freeze = Freeze::by_owner(&self.network, &mallory(), coins.to_vec());
        assert_eq!(self.committee.submit(&ReleaseStep::Freeze(freeze)).unwrap(), Ok(vec![]));
    }

    fn standing(&self, coin: &Coin) -> Standing {
        self.committee.standing(coin.id).unwrap()
    }

    /// Waits until so many authorities' reports of a coin are counted.
    fn await_reports(&self, coin: &Coin, count: usize) {
        wait_until("reports are counted", || self.standing(coin).reports.len() == count);
    }

    fn await_decision(&self, coin: &Coin) -> Decision {
        wait_until("a decision", || self.standing(coin).decision.is_some());
        self.standing(coin).decision.expect("decided")
    }

    /// What an authority's status says of releases.
    fn followed(&self, authority: usize) -> Value {
        let http = self.authorities[authority].as_ref().expect("it runs").http_address();
        let status: Value = serde_json::from_str(&get(http, "/status").1).unwrap();
        status["releases"].clone()
    }

    /// Waits until these authorities have followed all that was ordered.
    fn await_followers(&self, authorities: &[usize]) {
        let ordered = self.committee.ordered(0, 100).unwrap().len() as u64;
        for one in authorities {
            wait_until("the order is followed", || {
                let status = self.followed(*one);
                status["followed"] == ordered && status["unreported"] == 0
            });
        }
    }

    fn authority_keys(&self, index: usize) -> KeyFile {
        keys(&self.testnet.configs[index][0].with_file_name("key.toml"))
    }
}

fn person(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

fn mallory() -> IdentitySecret {
    person(7)
}

fn keys(path: &Path) -> KeyFile {
    match StoredKeys::read(path).unwrap() {
        StoredKeys::Open(keys) => keys,
        StoredKeys::Sealed(_) => panic!("a testnet's keys are open"),
    }
}

/// A payer shows two transactions over one coin to different authorities, and loses a payment that
/// one authority alone has seen. That one is down, and its key lies; another restarts in between.
#[test]
fn a_double_spend_is_decided_over_a_liar_and_a_restart() {
    let mut net = Net::start(ProtocolKind::Jolteon);
    let (twice, lost) = (net.coin(3), net.coin(4));
    let (first, second, gone) = (net.spend(&twice, 1), net.spend(&twice, 2), net.spend(&lost, 1));
    net.show(&first, 0);
    net.show(&second, 1);
    net.show(&gone, 3);
    net.stop_authority(3);
    net.freeze(&[twice.clone(), lost.clone()]);
    net.stop_authority(1);
    net.await_reports(&twice, 2);
    net.start_authority(1);
    assert_eq!(net.await_decision(&lost), Decision::Refund, "nobody who reports has seen it");
    net.await_reports(&twice, 3);
    let standing = net.standing(&twice);
    assert_eq!(standing.decision, None, "either may be certified with the fourth's vote");
    assert!(!standing.is_stuck(net.network.committee().weights()));

    let core = first.core(net.network.id());
    let (tx, liar) = (core.id, net.authority_keys(3).identity);
    let lie = Report::sign(&net.network, &liar, ReplicaId(3), twice.id, Held::For(core));
    let decided = net.committee.submit(&ReleaseStep::Report(lie)).unwrap();
    assert_eq!(decided, Ok(vec![(twice.id, Decision::Spend(tx))]));
    net.await_followers(&[0, 1, 2]);
    assert!(net.is_certified(&first), "the second's voter follows");
    let refused = PaymentOutcome::Released(twice.id, Decision::Spend(tx));
    assert_eq!(net.pay(&second), refused);
    let back = Transaction::refund(&net.network, &mallory(), &lost);
    assert!(net.is_certified(&back));
    assert_eq!(net.pay(&gone), PaymentOutcome::Released(lost.id, Decision::Refund));
    let ordered = net.committee.ordered(0, 100).unwrap();
    let [Ordered::Release(release::Ordered::Freeze { owner, coins }), decided @ ..] = &ordered[..]
    else {
        panic!("{ordered:?}")
    };
    let is_decided = |one: &Ordered| matches!(one, Ordered::Release(release::Ordered::Decided(_)));
    assert!(decided.len() == 2 && decided.iter().all(is_decided), "{ordered:?}");
    let mut frozen = [twice.id, lost.id];
    frozen.sort();
    assert_eq!((*owner, &coins[..]), (mallory().public(), &frozen[..]));
}

/// Four authorities that were split evenly stay so: no protocol can tell the two payments apart.
#[test]
fn an_even_split_of_four_stays_locked_and_the_standing_says_so() {
    let net = Net::start(ProtocolKind::Pbft);
    let coin = net.coin(3);
    let (first, second) = (net.spend(&coin, 1), net.spend(&coin, 2));
    (0..2).for_each(|authority| net.show(&first, authority));
    (2..4).for_each(|authority| net.show(&second, authority));
    let network = net.network.id();
    let proof = Equivocation { first: first.core(network), second: second.core(network) };
    let freeze = Freeze { coins: vec![coin.clone()], cause: Cause::Equivocation(Box::new(proof)) };
    assert_eq!(net.committee.submit(&ReleaseStep::Freeze(freeze)).unwrap(), Ok(vec![]));
    net.await_reports(&coin, 4);
    let standing = net.standing(&coin);
    assert_eq!(standing.decision, None);
    assert!(standing.is_stuck(net.network.committee().weights()));
    net.await_followers(&[0, 1, 2, 3]);
    let status = net.followed(0);
    assert_eq!(status["undecided"], 1, "{status}");
    let undecided = net.pay(&net.spend(&net.coin(4), 1));
    assert!(matches!(undecided, PaymentOutcome::Certified(_)), "the other coins are not frozen");
}

/// The committee is away: coins are paid with, and whatever was frozen is reported once it is back.
#[test]
fn payments_go_on_without_the_committee() {
    let mut net = Net::start(ProtocolKind::Jolteon);
    let (lost, later) = (net.coin(3), net.coin(4));
    let half = net.spend(&lost, 1);
    net.show(&half, 3);
    net.stop_authority(0);
    net.stop_authority(1);
    net.freeze(std::slice::from_ref(&lost));
    net.await_reports(&lost, 2);
    (0..4).for_each(|index| net.stop_validator(index));
    net.start_authority(0);
    net.start_authority(1);
    wait_until("it is said that the committee is away", || {
        let status = net.followed(0);
        status["reachable"] == false && status["trouble"].is_string()
    });
    assert!(net.is_certified(&net.spend(&later, 1)));
    (0..4).for_each(|index| net.start_validator(index));
    let tx = half.id(net.network.id());
    assert_eq!(net.await_decision(&lost), Decision::Spend(tx), "it alone may be certified");
    net.await_followers(&[0, 1, 2, 3]);
    assert_eq!(net.followed(0)["reachable"], true);
    assert!(net.is_certified(&half));
}

/// What breaks a rule without any order is not ordered, and the caller is told.
#[test]
fn a_step_that_is_not_admitted_is_not_ordered() {
    let net = Net::start(ProtocolKind::Sbft);
    let coin = net.coin(1);
    let foreign = Freeze::by_owner(&net.network, &person(1), vec![coin.clone()]);
    let refused = net.committee.submit(&ReleaseStep::Freeze(foreign)).unwrap();
    let reason =
        "neither the coins' owner signed the wish, nor is it proven to have spent them twice";
    assert_eq!(refused, Err(reason.to_owned()));
    net.freeze(std::slice::from_ref(&coin));
    assert_eq!(net.committee.ordered(0, 1).unwrap().len(), 1);
    assert_eq!(net.committee.ordered(1, 1).unwrap(), []);
}
