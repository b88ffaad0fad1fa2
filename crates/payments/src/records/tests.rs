use super::*;
use crate::release::Decision;
use crate::testing::{ALICE, BOB, ISSUER, MALLORY, TestNetwork, key, to};
use crate::{AuthorityEvent, Verdict};
use quorate_crypto::hash;
use quorate_crypto::mutants::assert_noticed;

fn stored(coins: Vec<Coin>) -> WalletRequest {
    let record = WalletRecord { content: RecordContent::Received(coins), note: vec![1, 2] };
    WalletRequest::Store(Box::new(record))
}

#[test]
fn a_transaction_proves_itself_to_its_wallet_alone() {
    let testnet = TestNetwork::new();
    let coins = testnet.coins(&testnet.issue(1, &[to(ALICE, 9), to(ALICE, 1)]));
    let sent = testnet.spend(ALICE, &coins, &[to(BOB, 10)]);
    let record = |sent: &Transaction| WalletRecord {
        content: RecordContent::Sent(Box::new(sent.clone())),
        note: Note::new(),
    };
    assert!(record(&sent).is_genuine(&testnet.network, key(ALICE)));
    assert!(!record(&sent).is_genuine(&testnet.network, key(BOB)));
    assert_eq!(sent.spent_coins(), coins);
    let mut altered = sent.clone();
    altered.outputs[0].owner = key(MALLORY);
    assert!(!record(&altered).is_genuine(&testnet.network, key(ALICE)), "another payee");
    let mut forged = sent.clone();
    let crate::Source::Spend(inputs) = &mut forged.source else { panic!("it spends") };
    let crate::Origin::Certified(proof) = &mut inputs[0].origin else { panic!("it was issued") };
    proof.certificate = testnet.certificate_by(&sent, 0..3).expect("a quorum");
    assert!(!record(&forged).is_genuine(&testnet.network, key(ALICE)), "another's certificate");
    let name = RecordName { kind: RecordKind::Sent, tx: sent.id(testnet.network.id()) };
    assert_eq!(record(&sent).name(&testnet.network), Some(name));
}

#[test]
fn an_issue_is_a_record_of_the_issuer() {
    let testnet = TestNetwork::new();
    let record = WalletRecord {
        content: RecordContent::Sent(Box::new(testnet.issue(1, &[to(BOB, 3)]))),
        note: Note::new(),
    };
    assert!(record.is_genuine(&testnet.network, key(ISSUER)));
    assert!(!record.is_genuine(&testnet.network, key(ALICE)));
}

/// ★ Strangers fill no disks.
fn records_are_of_coins_that_exist_and_belong_to_the_key() {
    let testnet = TestNetwork::new();
    let network = &testnet.network;
    let coins = testnet.coins(&testnet.issue(1, &[to(BOB, 3), to(BOB, 4)]));
    assert_eq!(stored(coins.clone()).check(network, key(BOB)), Ok(()));
    assert_eq!(stored(testnet.endowed(ALICE)[..1].to_vec()).check(network, key(ALICE)), Ok(()));
    let refused = Err(RecordRefusal::NotYours);
    assert_eq!(stored(coins.clone()).check(network, key(MALLORY)), refused);
    assert_eq!(stored(Vec::new()).check(network, key(BOB)), refused);
    let twice = vec![coins[0].clone(), coins[0].clone()];
    assert_eq!(stored(twice).check(network, key(BOB)), refused);
    let mut richer = coins.clone();
    richer[0].output.value = 4;
    assert_eq!(stored(richer).check(network, key(BOB)), refused);
    let mixed = [&coins[..], &testnet.coins(&testnet.issue(2, &[to(BOB, 3)]))].concat();
    assert_eq!(stored(mixed).check(network, key(BOB)), refused);
    // A transaction's record comes with its order, which is checked.
    let content = RecordContent::Sent(Box::new(testnet.issue(3, &[to(BOB, 1)])));
    let sent = WalletRequest::Store(Box::new(WalletRecord { content, note: Note::new() }));
    assert_eq!(sent.check(network, key(ISSUER)), refused);
}

#[test]
fn a_record_is_of_its_key() {
    records_are_of_coins_that_exist_and_belong_to_the_key();
}

#[test]
fn keeping_records_for_anybody_is_noticed() {
    assert_noticed(
        Mutant::PayKeepAnybodysRecord,
        records_are_of_coins_that_exist_and_belong_to_the_key,
    );
}

#[test]
fn requests_are_bounded() {
    let testnet = TestNetwork::new();
    let network = &testnet.network;
    let input = OutputId { tx: TxId(hash(b"a transaction")), index: 0 };
    let name = RecordName { kind: RecordKind::Sent, tx: input.tx };
    let refused = Err(RecordRefusal::TooLarge);
    for (items, expected) in [(REQUEST_ITEMS_MAX, Ok(())), (REQUEST_ITEMS_MAX + 1, refused)] {
        assert_eq!(WalletRequest::Coins(vec![input; items]).check(network, key(BOB)), expected);
        assert_eq!(WalletRequest::Remove(vec![name; items]).check(network, key(BOB)), expected);
        let counting = WalletRequest::Counting(vec![input.tx; items]);
        assert_eq!(counting.check(network, key(BOB)), expected);
    }
    let content = RecordContent::Received(testnet.endowed(ALICE)[..1].to_vec());
    let note = vec![0; NOTE_BYTES_MAX + 1];
    let long = WalletRequest::Store(Box::new(WalletRecord { content, note }));
    assert_eq!(long.check(network, key(ALICE)), refused);
}

#[test]
fn messages_are_encoded_so() {
    let encoded = |request: WalletRequest| {
        let bytes = borsh::to_vec(&Numbered { number: 7, content: request }).expect("into memory");
        hex::encode(bytes)
    };
    let input = OutputId { tx: TxId(hash(b"a parent")), index: 3 };
    let hash = "bbc24a9120fed91a2d46fe812145c2648c02964f752c7848ab4b6fa4439c3120";
    let number = "0700000000000000";
    assert_eq!(encoded(WalletRequest::Coins(vec![input])), format!("{number}0001000000{hash}0300"));
    assert_eq!(encoded(WalletRequest::Records { after: None }), format!("{number}0100"));
    let name = RecordName { kind: RecordKind::Received, tx: input.tx };
    assert_eq!(encoded(WalletRequest::Remove(vec![name])), format!("{number}030100000001{hash}"));
    let changes = WalletRequest::Changes { after: Epoch(2) };
    assert_eq!(encoded(changes), format!("{number}040200000000000000"));
    let counting = WalletRequest::Counting(vec![input.tx]);
    assert_eq!(encoded(counting), format!("{number}0501000000{hash}"));
    let counting = borsh::to_vec(&WalletReply::Counting(vec![true])).expect("into memory");
    assert_eq!(hex::encode(counting), "050100000001");
    let reply = borsh::to_vec(&WalletReply::Refused(RecordRefusal::Full)).expect("into memory");
    assert_eq!(hex::encode(reply), "0302");
    let states =
        WalletReply::Coins(vec![CoinStatus::Free, CoinStatus::Locked { tx: input.tx, core: None }]);
    let states = borsh::to_vec(&states).expect("into memory");
    assert_eq!(hex::encode(states), format!("00020000000001{hash}00"));
}

/// A coin that went to a transaction by a release: frozen until that one is voted for, and locked
/// for it then.
#[test]
fn a_coin_that_was_released_is_not_free() {
    let testnet = TestNetwork::new();
    let coin = testnet.endowed(MALLORY)[0].clone();
    let paid = testnet.spend(MALLORY, std::slice::from_ref(&coin), &[to(BOB, 5)]);
    let tx = paid.id(testnet.network.id());
    let mut host = testnet.hosts().remove(0);
    host.execute(AuthorityEvent::Freeze(vec![coin.id]));
    host.execute(AuthorityEvent::Decided(vec![(coin.id, Decision::Spend(tx))]));
    let read = |_| -> Result<Option<Core>, LookupFailed> { Ok(None) };
    let said = CoinStatus::of(coin.id, &host.spent, key(MALLORY), read);
    assert_eq!(said, Ok(CoinStatus::Frozen));
    assert!(matches!(host.verdict(&paid), Verdict::Vote(_)));
    let said = CoinStatus::of(coin.id, &host.spent, key(MALLORY), read);
    assert_eq!(said, Ok(CoinStatus::Locked { tx, core: None }));
    let replica = quorate_types::ReplicaId;
    let (free, frozen) = (CoinStatus::Free, CoinStatus::Frozen);
    let agreed = |said: &[(ReplicaId, &CoinStatus)]| {
        CoinStatus::agreed(&testnet.network, key(MALLORY), coin.id, said)
    };
    assert_eq!(agreed(&[(replica(0), &free), (replica(1), &free), (replica(2), &frozen)]), None);
    let both = [(replica(0), &free), (replica(1), &frozen), (replica(2), &frozen)];
    assert_eq!(agreed(&both), Some(CoinStatus::Frozen), "an honest one is among them");
}
