use super::super::book::Entry;
use super::{Audit, Auditor, Finding};
use quorate_crypto::{Bitmap, IdentitySecret, KeyFile, SchemeKind};
use quorate_payments::{
    AuthorityEntry, Coin, Invalid, Network, NetworkFile, Output, PayReceipt, PayScheme,
    PaymentOutcome, Transaction, TxCertificate,
};
use quorate_types::{Epoch, ReplicaId};
use std::sync::Arc;

/// A network of four with all its keys, and the journal of a load in it.
struct Load {
    network: Arc<Network>,
    keys: Vec<KeyFile>,
    entries: Vec<Entry>,
}

fn secret(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

fn output(owner: u8, value: u64) -> Output {
    Output { owner: secret(owner).public(), value }
}

const ISSUER: u8 = 100;
const WALLET: u8 = 101;
const ANNE: u8 = 1;
const BOB: u8 = 2;

impl Load {
    /// The wallet paid ten units to Anne.
    fn new() -> (Self, Vec<Coin>) {
        let keys: Vec<KeyFile> =
            (0..4).map(|seed| KeyFile::from_seed(SchemeKind::Ed25519, &[seed; 32])).collect();
        let entry = |keys: &KeyFile| AuthorityEntry::new(&keys.public(), vec!["a:1".into()]);
        let file = NetworkFile {
            name: "audited".into(),
            network: None,
            epoch: Epoch(1),
            scheme: PayScheme::Plain,
            shards: 1,
            issuer: secret(ISSUER).public().to_string(),
            groups: None,
            genesis: Vec::new(),
            authorities: keys.iter().map(entry).collect(),
        };
        let network = Arc::new(Network::load(&file).expect("a sound file"));
        let founded =
            Entry::Founded { network: network.id(), wallet: secret(WALLET).public(), payers: 2 };
        let mut load = Self { network, keys, entries: vec![founded] };
        let issue = Transaction::issue(&load.network, &secret(ISSUER), 1, vec![output(ANNE, 10)]);
        let coins = issue.coins(load.network.id(), &load.certificate(&issue));
        load.entries.push(Entry::Funded(PayReceipt { coins: coins.clone(), memo: None }));
        (load, coins)
    }

    fn certificate(&self, transaction: &Transaction) -> TxCertificate {
        let tx = transaction.id(self.network.id());
        let votes = self.network.votes();
        let vote =
            |(me, keys): (ReplicaId, &KeyFile)| (me, votes.sign(&keys.voting, me, &[tx]).remove(0));
        let given: Vec<_> = self.network.committee().members().zip(&self.keys).map(vote).collect();
        let counted = votes.count(tx, &given[..3], &Bitmap::new(4));
        counted.certificate.expect("a quorum's")
    }

    fn begin(&mut self, from: u8, coins: &[Coin], outputs: Vec<Output>) -> Transaction {
        let transaction = Transaction::spend(&self.network, &secret(from), coins, outputs);
        self.entries.push(Entry::Begun(transaction.clone()));
        transaction
    }

    fn end(&mut self, transaction: &Transaction, outcome: PaymentOutcome) {
        self.entries.push(Entry::Ended(transaction.id(self.network.id()), outcome));
    }

    /// A payment from its beginning to its certificate.
    fn pay(&mut self, from: u8, coins: &[Coin], outputs: Vec<Output>) -> Vec<Coin> {
        let transaction = self.begin(from, coins, outputs);
        let certificate = self.certificate(&transaction);
        self.end(&transaction, PaymentOutcome::Certified(Box::new(certificate.clone())));
        transaction.coins(self.network.id(), &certificate)
    }

    fn audit(&self) -> Audit {
        let mut auditor = Auditor::new(Arc::clone(&self.network));
        self.entries.iter().cloned().for_each(|entry| auditor.read(entry));
        auditor.finish().0
    }
}

#[test]
fn money_that_is_paid_on_and_back_is_accounted_for() {
    let (mut load, coins) = Load::new();
    let split = load.pay(ANNE, &coins, vec![output(ANNE, 4), output(BOB, 6)]);
    load.pay(BOB, &split[1..], vec![output(WALLET, 6)]);
    let audit = load.audit();
    assert_eq!(audit.findings, []);
    let values = (audit.value_in, audit.value_back, audit.value_left);
    assert_eq!((audit.begun, audit.certified, values), (2, 2, (10, 6, 4)));
}

#[test]
fn what_the_wallet_took_in_is_asked_about_no_more() {
    let (mut load, coins) = Load::new();
    let back = load.pay(ANNE, &coins, vec![output(WALLET, 10)]);
    load.entries.push(Entry::Returned(vec![back[0].id]));
    let mut auditor = Auditor::new(Arc::clone(&load.network));
    load.entries.iter().cloned().for_each(|entry| auditor.read(entry));
    let (audit, left) = auditor.finish();
    assert!(audit.holds() && audit.value_back == 10 && left.is_empty(), "{audit:?}");
}

#[test]
fn a_payment_without_an_outcome_is_listed() {
    let (mut load, coins) = Load::new();
    let open = load.begin(ANNE, &coins, vec![output(BOB, 10)]);
    assert_eq!(load.audit().findings, [Finding::UnderWay(open.id(load.network.id()))]);
}

#[test]
fn a_payment_that_was_refused_is_lost() {
    let (mut load, coins) = Load::new();
    let transaction = load.begin(ANNE, &coins, vec![output(BOB, 10)]);
    load.end(&transaction, PaymentOutcome::Refused(Invalid::OwnerSignature));
    let tx = transaction.id(load.network.id());
    let lost = Finding::Lost { tx, reason: Invalid::OwnerSignature.to_string() };
    let missing = Finding::Missing { value_in: 10, accounted: 0 };
    assert_eq!(load.audit().findings, [lost, missing]);
}

/// Even where both are certified, as liars' keys could have it.
#[test]
fn a_coin_that_is_spent_twice_is_found() {
    let (mut load, coins) = Load::new();
    let first = load.pay(ANNE, &coins, vec![output(BOB, 10)])[0].id.tx;
    let second = load.pay(ANNE, &coins, vec![output(ANNE, 10)])[0].id.tx;
    let findings = load.audit().findings;
    assert_eq!(findings[0], Finding::Twice { coin: coins[0].id, first, second });
    assert!(findings.contains(&Finding::Missing { value_in: 10, accounted: 20 }), "{findings:?}");
}

#[test]
fn an_outcome_that_is_there_twice_is_found() {
    let (mut load, coins) = Load::new();
    let tx = load.pay(ANNE, &coins, vec![output(BOB, 10)])[0].id.tx;
    let again = load.entries.last().expect("an outcome").clone();
    load.entries.push(again);
    assert_eq!(load.audit().findings, [Finding::Repeated(tx)]);
}

#[test]
fn a_certificate_of_another_transaction_proves_nothing() {
    let (mut load, coins) = Load::new();
    let transaction = load.begin(ANNE, &coins, vec![output(BOB, 10)]);
    let other = Transaction::issue(&load.network, &secret(ISSUER), 2, vec![output(BOB, 10)]);
    let certificate = load.certificate(&other);
    load.end(&transaction, PaymentOutcome::Certified(Box::new(certificate)));
    let tx = transaction.id(load.network.id());
    assert_eq!(load.audit().findings, [Finding::Uncertified(tx)]);
}

#[test]
fn money_from_nothing_is_found() {
    let (mut load, coins) = Load::new();
    let tx = load.pay(ANNE, &coins, vec![output(BOB, 11)])[0].id.tx;
    let unequal = Finding::Unequal { tx, inputs: 10, outputs: 11 };
    let missing = Finding::Missing { value_in: 10, accounted: 11 };
    assert_eq!(load.audit().findings, [unequal, missing]);
}

#[test]
fn a_coin_of_somebody_else_is_found() {
    let (mut load, coins) = Load::new();
    let tx = load.pay(BOB, &coins, vec![output(BOB, 10)])[0].id.tx;
    let found = load.audit().findings;
    assert_eq!(found[0], Finding::Unfounded { tx, coin: coins[0].id });
}
