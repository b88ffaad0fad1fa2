//! Payments over TLS and real disks: authorities and payers as they run, in one process.

use quorate_crypto::{IdentitySecret, KeyFile, StoredKeys};
use quorate_node::payments::{
    Authority, AuthorityConfig, PayClient, PayTestnet, PayTestnetPlan, ReleaseFeed, Start,
    read_network,
};
use quorate_node::ports::free_ports;
use quorate_node::{NodeError, Shutdown};
use quorate_payments::release::{Decided, Decision, Freeze, MemoryDocket, ReleaseStep, Releases};
use quorate_payments::{
    Coin, CoinStatus, Network, Output, OutputId, PayReceipt, PayScheme, PaymentOutcome,
    RecordContent, RecordRefusal, Transaction, TxCertificate, WalletRecord, WalletReply,
    WalletRequest,
};
use quorate_types::ReplicaId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Longest wait for an outcome.
const WAIT: Duration = Duration::from_secs(60);

/// A network in a folder that goes away with it.
struct Net {
    testnet: PayTestnet,
    network: Arc<Network>,
    authorities: Vec<Vec<Option<Authority>>>,
    issuer: IdentitySecret,
    runtime: Runtime,
    _folder: TempDir,
}

impl Net {
    fn start(scheme: PayScheme, shards: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let base_port = free_ports(8 * shards).expect("free ports");
        let plan = PayTestnetPlan { scheme, shards, base_port, ..PayTestnetPlan::default() };
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan).expect("written");
        let network = Arc::new(read_network(&testnet.network).expect("a network"));
        let issuer = keys(&testnet.issuer).identity;
        let runtime = Runtime::new().expect("a runtime");
        let mut net =
            Self { testnet, network, authorities: Vec::new(), issuer, runtime, _folder: folder };
        for index in 0..4 {
            let shards = (0..usize::from(shards)).map(|_| None).collect();
            net.authorities.push(shards);
            net.start_authority(index).expect("starts");
        }
        net
    }

    fn start_authority(&mut self, index: usize) -> Result<(), NodeError> {
        for (shard, path) in self.testnet.configs[index].iter().enumerate() {
            let config = AuthorityConfig::load(path).expect("a configuration");
            let keys = config.load_keys(&mut |_| None)?;
            self.authorities[index][shard] = Some(Authority::start(&config, &keys, Start::Again)?);
        }
        Ok(())
    }

    /// Drops an authority, all shards of it.
    fn stop_authority(&mut self, index: usize) {
        self.authorities[index].iter_mut().for_each(|shard| *shard = None);
    }

    fn client(&self, key: &IdentitySecret) -> PayClient {
        let _inside = self.runtime.enter();
        PayClient::start(Arc::clone(&self.network), key).expect("starts")
    }

    fn pay(&self, key: &IdentitySecret, transaction: &Transaction) -> PaymentOutcome {
        let client = self.client(key);
        let paying = client.pay(Arc::new(transaction.clone()));
        self.runtime
            .block_on(async { tokio::time::timeout(WAIT, paying).await })
            .expect("an outcome within a minute")
    }

    fn certified(&self, key: &IdentitySecret, transaction: &Transaction) -> TxCertificate {
        match self.pay(key, transaction) {
            PaymentOutcome::Certified(certificate) => *certificate,
            other => panic!("{other:?}"),
        }
    }

    /// Issues 100 units to somebody.
    fn issue(&self, serial: u64, owner: &IdentitySecret) -> Vec<Coin> {
        let outputs = vec![Output { owner: owner.public(), value: 100 }];
        let issue = Transaction::issue(&self.network, &self.issuer, serial, outputs);
        let certificate = self.certified(&self.issuer, &issue);
        issue.coins(self.network.id(), &certificate)
    }

    fn spend(&self, owner: &IdentitySecret, coins: &[Coin], to: &IdentitySecret) -> Transaction {
        let outputs = vec![
            Output { owner: to.public(), value: 40 },
            Output { owner: owner.public(), value: 60 },
        ];
        Transaction::spend(&self.network, owner, coins, outputs)
    }
}

fn keys(path: &Path) -> KeyFile {
    match StoredKeys::read(path).expect("a key file") {
        StoredKeys::Open(keys) => keys,
        StoredKeys::Sealed(_) => panic!("a testnet's keys are open"),
    }
}

fn owner(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

#[test]
fn every_scheme_pays_over_tls_and_its_receipt_verifies_offline() {
    for scheme in PayScheme::ALL {
        let net = Net::start(scheme, 1);
        let (alice, bob) = (owner(1), owner(2));
        let coins = net.issue(1, &alice);
        let payment = net.spend(&alice, &coins, &bob);
        let certificate = net.certified(&alice, &payment);
        let coins = payment.coins(net.network.id(), &certificate);
        let receipt = PayReceipt { coins: vec![coins[0].clone()], memo: None };
        let paid = receipt.check(&net.network).expect("a good receipt");
        assert_eq!((paid.value, paid.payee), (40, bob.public()), "{scheme}");
    }
}

#[test]
fn shards_are_processes_of_their_own_owners() {
    let net = Net::start(PayScheme::Plain, 2);
    let shards: Vec<u16> = (1..9).map(|seed| net.network.shard_of(&owner(seed).public())).collect();
    assert!(shards.contains(&0) && shards.contains(&1), "{shards:?}");
    for seed in 1..9 {
        let (alice, bob) = (owner(seed), owner(seed + 50));
        let coins = net.issue(u64::from(seed), &alice);
        let payment = net.spend(&alice, &coins, &bob);
        net.certified(&alice, &payment);
    }
}

#[test]
fn a_double_spend_is_refused_with_evidence_that_is_served() {
    let net = Net::start(PayScheme::Plain, 1);
    let (alice, bob, carol) = (owner(1), owner(2), owner(3));
    let coins = net.issue(1, &alice);
    let first = net.spend(&alice, &coins, &bob);
    net.certified(&alice, &first);
    let second = net.spend(&alice, &coins, &carol);
    let PaymentOutcome::Conflicting(Some(proof)) = net.pay(&alice, &second) else {
        panic!("a double spend was not refused with a proof")
    };
    assert!(proof.is_proven(&net.network));
    assert_eq!(proof.first.id, first.id(net.network.id()));
    // Whoever refused had kept the proof before it answered; two refusals leave no quorum, and end
    // it.
    let serving = net.authorities.iter().filter(|shards| {
        let authority = shards[0].as_ref().expect("it runs");
        get(authority.http_address(), "/evidence").contains(&alice.public().to_string())
    });
    assert!(serving.count() >= 2);
}

#[test]
fn a_lock_survives_a_restart_and_a_payment_an_authority_that_is_away() {
    let mut net = Net::start(PayScheme::Merkle, 1);
    let (alice, bob, carol) = (owner(1), owner(2), owner(3));
    let coins = net.issue(1, &alice);
    net.stop_authority(3);
    let first = net.spend(&alice, &coins, &bob);
    let certificate = net.certified(&alice, &first);
    for index in 0..3 {
        net.stop_authority(index);
    }
    for index in 0..4 {
        net.start_authority(index).expect("starts again");
    }
    // The lost answer's payment is voted for again; another one over the coin is not.
    assert_eq!(certificate.signers().count(), net.certified(&alice, &first).signers().count());
    let second = net.spend(&alice, &coins, &carol);
    assert!(matches!(net.pay(&alice, &second), PaymentOutcome::Conflicting(Some(_))));
}

#[test]
fn an_authority_that_lost_its_locks_does_not_start() {
    let mut net = Net::start(PayScheme::Plain, 1);
    let alice = owner(1);
    // Of three, a quorum is all.
    net.stop_authority(3);
    net.issue(1, &alice);
    net.stop_authority(0);
    let data = net.testnet.configs[0][0].with_file_name("data-0");
    std::fs::remove_dir_all(data).expect("removed");
    let refused = net.start_authority(0);
    assert!(
        matches!(refused, Err(NodeError::LocksLost { marked: 1, found: 0, .. })),
        "{refused:?}"
    );
}

/// Half a payment is lost with its wallet. Its owner has the coin frozen; an authority restarts in
/// the middle; what comes back is money. (Who orders it is the test: steps as bytes, one after the
/// other.)
#[test]
fn a_coin_of_a_lost_payment_comes_back_to_its_owner() {
    let mut net = Net::start(PayScheme::Plain, 1);
    let (alice, bob) = (owner(1), owner(2));
    let coin = net.issue(1, &alice).remove(0);
    let mut order = Order { network: Arc::clone(&net.network), docket: MemoryDocket::default() };
    let freeze = Freeze::by_owner(&net.network, &alice, vec![coin.clone()]);
    assert_eq!(order.take(&ReleaseStep::Freeze(freeze)), []);
    let feeds = |net: &Net| -> Vec<ReleaseFeed> {
        net.authorities
            .iter()
            .map(|shards| shards[0].as_ref().expect("it runs").releases())
            .collect()
    };
    let report = |feed: &ReleaseFeed| {
        feed.freeze(vec![coin.id]);
        ReleaseStep::Report(feed.reports().recv().expect("a report"))
    };
    assert_eq!(order.take(&report(&feeds(&net)[0])), []);
    net.stop_authority(0);
    net.start_authority(0).expect("starts again");
    assert_eq!(order.take(&report(&feeds(&net)[1])), []);
    let decided = order.take(&report(&feeds(&net)[2]));
    assert_eq!(decided, [(coin.id, Decision::Refund)]);
    feeds(&net).iter().for_each(|feed| feed.decided(decided.clone()));
    let back = Transaction::refund(&net.network, &alice, &coin);
    let certificate = net.certified(&alice, &back);
    let returned = back.coins(net.network.id(), &certificate);
    let lost = net.spend(&alice, std::slice::from_ref(&coin), &bob);
    let outcome = net.pay(&alice, &lost);
    assert_eq!(outcome, PaymentOutcome::Released(coin.id, Decision::Refund));
    net.certified(&alice, &net.spend(&alice, &returned, &bob));
}

/// The order that everybody follows.
struct Order {
    network: Arc<Network>,
    docket: MemoryDocket,
}

impl Order {
    fn take(&mut self, step: &ReleaseStep) -> Decided {
        let step = ReleaseStep::open(&self.network, &step.encode()).expect("a sound step");
        let weights = self.network.committee().weights();
        let Ok(result) = Releases::new(&mut self.docket, weights).apply(&step);
        result.expect("a step in its place")
    }
}

/// ★ Every vote that left is counted beside the key: a folder that lacks the last one is too old.
#[test]
fn an_authority_whose_locks_were_set_back_by_one_does_not_start() {
    let mut net = Net::start(PayScheme::Plain, 1);
    let (alice, bob) = (owner(1), owner(2));
    net.stop_authority(3);
    let coins = net.issue(1, &alice);
    net.stop_authority(0);
    let data = net.testnet.configs[0][0].with_file_name("data-0/locks");
    let older = copies(&data);
    net.start_authority(0).expect("nothing is missing");
    let payment = net.spend(&alice, &coins, &bob);
    net.certified(&alice, &payment);
    net.stop_authority(0);
    for (path, bytes) in older {
        std::fs::write(path, bytes).expect("set back");
    }
    let refused = net.start_authority(0);
    assert!(
        matches!(refused, Err(NodeError::LocksLost { marked: 2, found: 1, .. })),
        "{refused:?}"
    );
}

/// ★ Where mark and locks are gone alike, nobody but the operator knows that there were none.
#[test]
fn an_authority_without_mark_and_locks_starts_on_its_operators_word_alone() {
    let mut net = Net::start(PayScheme::Plain, 1);
    net.stop_authority(0);
    let path = &net.testnet.configs[0][0];
    let folder = path.parent().expect("a folder");
    std::fs::remove_dir_all(folder.join("data-0")).expect("removed");
    for (file, _) in copies(folder) {
        if file.extension().is_some_and(|name| name == "locks") {
            std::fs::remove_file(file).expect("removed");
        }
    }
    let config = AuthorityConfig::load(path).expect("a configuration");
    let keys = config.load_keys(&mut |_| None).expect("keys");
    let refused = Authority::start(&config, &keys, Start::Again).err();
    assert!(matches!(refused, Some(NodeError::NeverStarted { .. })), "{refused:?}");
    assert!(!folder.join("data-0").exists(), "and nothing was begun");
    drop(Authority::start(&config, &keys, Start::First).expect("starts"));
    let again = Authority::start(&config, &keys, Start::First).err();
    assert!(matches!(again, Some(NodeError::StartedBefore { .. })), "{again:?}");
    drop(Authority::start(&config, &keys, Start::Again).expect("starts again"));
}

/// The files of a folder, with what is in them.
fn copies(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
    files.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect()
}

#[test]
fn an_authority_stops_when_it_is_told_to() {
    let mut net = Net::start(PayScheme::Plain, 1);
    let authority = net.authorities[0][0].take().expect("it runs");
    let shutdown = Shutdown::new();
    shutdown.trigger();
    assert!(authority.wait(&shutdown).is_ok());
}

/// What an authority keeps of its payers is told to whoever shows its token.
#[test]
fn status_and_evidence_are_for_those_who_show_the_token() {
    use std::os::unix::fs::PermissionsExt;
    let mut net = Net::start(PayScheme::Plain, 1);
    net.stop_authority(0);
    let token = net.testnet.configs[0][0].with_file_name("token");
    std::fs::write(&token, "a-token-of-the-operator\n").expect("written");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&token, mode).expect("set");
    let config = AuthorityConfig::load(&net.testnet.configs[0][0]).expect("a configuration");
    let config = AuthorityConfig { http_token_file: Some(token), ..config };
    let keys = config.load_keys(&mut |_| None).expect("keys");
    let authority = Authority::start(&config, &keys, Start::Again).expect("starts");
    let asked = |path, token: &str| {
        let field = format!("Authorization: Bearer {token}\r\n");
        let answer = get_with(authority.http_address(), path, &field);
        answer.split(' ').nth(1).map(str::to_owned)
    };
    for path in ["/status", "/metrics", "/evidence"] {
        assert_eq!(asked(path, "a-token-of-the-operator").as_deref(), Some("200"), "{path}");
        assert_eq!(asked(path, "a-token-of-somebody").as_deref(), Some("401"), "{path}");
        assert!(get(authority.http_address(), path).starts_with("HTTP/1.1 401"), "{path}");
    }
    assert!(get(authority.http_address(), "/healthz").starts_with("HTTP/1.1 200"));
}

fn get(address: std::net::SocketAddr, path: &str) -> String {
    get_with(address, path, "")
}

/// The answer to a request with more fields in its head, each with its end of a line.
fn get_with(address: std::net::SocketAddr, path: &str, fields: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: it\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn ask(net: &Net, client: &PayClient, request: &WalletRequest) -> Vec<WalletReply> {
    let ask = |index: u16| client.ask(ReplicaId(index), request.clone());
    let asking = async { [ask(0).await, ask(1).await, ask(2).await, ask(3).await] };
    let asking = async { tokio::time::timeout(WAIT, asking).await };
    net.runtime.block_on(asking).expect("all answer within a minute").to_vec()
}

fn records(replies: &[WalletReply]) -> Vec<usize> {
    let count = |reply: &WalletReply| match reply {
        WalletReply::Records { records, .. } => records.len(),
        other => panic!("{other:?}"),
    };
    replies.iter().map(count).collect()
}

/// ★ Whoever votes has the record, for the key that paid and no other, over a restart too.
#[test]
fn authorities_keep_what_a_wallet_needs_and_tell_its_key_alone() {
    let mut net = Net::start(PayScheme::Plain, 1);
    let (alice, bob) = (owner(1), owner(2));
    let coins = net.issue(1, &alice);
    let payment = net.spend(&alice, &coins, &bob);
    let (own, other) = (net.client(&alice), net.client(&bob));
    let all = WalletRequest::Records { after: None };
    // Bob shows it with a note of his: voted for, and not recorded.
    let note = Some(b"of Bob's".to_vec());
    let paying = other.pay_recorded(Arc::new(payment.clone()), note);
    let outcome = net.runtime.block_on(async { tokio::time::timeout(WAIT, paying).await });
    assert!(matches!(outcome, Ok(PaymentOutcome::Certified(_))), "{outcome:?}");
    assert_eq!(records(&ask(&net, &own, &all)), [0; 4]);

    let paying = own.pay_recorded(Arc::new(payment.clone()), Some(b"a note".to_vec()));
    let outcome = net.runtime.block_on(async { tokio::time::timeout(WAIT, paying).await });
    let Ok(PaymentOutcome::Certified(certificate)) = outcome else { panic!("{outcome:?}") };
    let received = payment.coins(net.network.id(), &certificate)[..1].to_vec();
    let note = b"to Bob".to_vec();
    let record = WalletRecord { content: RecordContent::Received(received), note };
    let store = WalletRequest::Store(Box::new(record.clone()));
    assert_eq!(ask(&net, &other, &store), vec![WalletReply::Done; 4]);
    let refused = WalletReply::Refused(RecordRefusal::NotYours);
    assert_eq!(ask(&net, &own, &store), vec![refused; 4]);

    for index in 0..4 {
        net.stop_authority(index);
        net.start_authority(index).expect("starts");
    }
    let sent = WalletRecord {
        content: RecordContent::Sent(Box::new(payment.clone())),
        note: b"a note".to_vec(),
    };
    for reply in ask(&net, &own, &all) {
        // At least the quorum that voted before the outcome was known.
        let WalletReply::Records { records, more: false } = reply else { panic!("{reply:?}") };
        assert!(records.is_empty() || records == [sent.clone()], "{records:?}");
    }
    let have = records(&ask(&net, &own, &all)).into_iter().filter(|count| *count == 1).count();
    assert!(have >= 3, "{have}");
    let kept = WalletReply::Records { records: vec![record], more: false };
    assert_eq!(ask(&net, &other, &all), vec![kept; 4]);

    let coins_of = WalletRequest::Coins(vec![coins[0].id, OutputId { index: 9, ..coins[0].id }]);
    let tx = payment.id(net.network.id());
    let core = Some(Box::new(payment.core(net.network.id())));
    let state = |core| WalletReply::Coins(vec![CoinStatus::Locked { tx, core }, CoinStatus::Free]);
    let told = |replies: Vec<WalletReply>, expected| {
        replies.into_iter().filter(|reply| *reply == expected).count()
    };
    assert!(told(ask(&net, &own, &coins_of), state(core)) >= 3);
    assert!(told(ask(&net, &other, &coins_of), state(None)) >= 3, "it is not Bob's");
}
