use super::*;
use alloy_consensus::TxEip1559;
use alloy_primitives::{TxKind, keccak256};
use quorate_crypto::merkle::Path;
use quorate_crypto::{Aggregate, Bitmap, Certificate, Digest, IdentitySecret};
use quorate_ledger::evm::Signer;
use quorate_types::executed::{CertifiedReply, Completion, ExecutionCertificate};
use quorate_types::{ClientId, Header, Results};

const CHAIN: u64 = 7;

fn waiting(name: &str, nonce: u64, fee: u128) -> (B256, Waiting) {
    let transaction = TxEip1559 {
        chain_id: CHAIN,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: fee,
        to: TxKind::Call(Address::ZERO),
        ..TxEip1559::default()
    };
    let raw = Signer::derived(name).0.sign(transaction);
    let transaction = Recovered::read(&raw, quorate_ledger::evm::Genesis::new(CHAIN).rules(1))
        .expect("a transaction");
    (keccak256(&raw), Waiting::new(raw, transaction))
}

fn put(content: &mut Content, name: &str, nonce: u64, fee: u128) -> Result<B256, Failure> {
    let (hash, waiting) = waiting(name, nonce, fee);
    content.insert(hash, waiting, 0).map(|()| hash)
}

fn address(name: &str) -> Address {
    Signer::derived(name).0.address()
}

#[test]
fn what_follows_without_a_gap_is_due_once() {
    let mut content = Content::default();
    for nonce in [7, 5, 6, 9] {
        put(&mut content, "one", nonce, 1).expect("taken");
    }
    put(&mut content, "another", 5, 1).expect("taken");
    let one = address("one");
    let waiting = content.nonces(one);
    let after: Vec<u64> = (4..=10).map(|nonce| next_nonce(&waiting, nonce)).collect();
    assert_eq!(after, [4, 8, 8, 8, 8, 10, 10]);
    let due = content.due(one, 5);
    let nonces = due.iter().map(|(hash, _)| content.by_hash[hash].transaction.envelope.nonce());
    assert_eq!(nonces.collect::<Vec<_>>(), [5, 6, 7]);
    assert!(content.due(one, 5).is_empty(), "they are under way");
    content.put_at(due[1].0, Stage::Held);
    assert_eq!(content.due(one, 5), [due[1].clone()], "what nobody took is sent again");
}

/// Its receipt is waited for from when it is sent until it is here no more.
#[test]
fn what_is_under_way_is_waited_for() {
    let mut content = Content::default();
    let hash = put(&mut content, "one", 4, 1).expect("taken");
    assert!(content.under_way(&hash).is_none(), "those before it may never come");
    assert_eq!(content.due(address("one"), 4).len(), 1);
    let (_, here) = content.under_way(&hash).expect("sent");
    let here = here.expect("it is here");
    assert!(here.has_changed().is_ok());
    content.put_at(hash, Stage::Applied);
    content.prune_below(address("one"), 5);
    assert!(here.has_changed().is_err(), "it is executed");
    let (_, here) = content.under_way(&hash).expect("it came just now");
    assert!(here.is_none());
    assert!(content.under_way(&B256::ZERO).is_none(), "it was sent to others, or to nobody");
}

#[test]
fn a_transaction_is_replaced_by_one_that_pays_more_and_only_before_it_is_sent() {
    let mut content = Content::default();
    let first = put(&mut content, "one", 3, 100).expect("taken");
    let refusal = |result: Result<B256, Failure>| result.expect_err("refused").message().to_owned();
    assert_eq!(refusal(put(&mut content, "one", 3, 100)), "already known");
    let underpriced = "replacement transaction underpriced";
    assert_eq!(refusal(put(&mut content, "one", 3, 110)), underpriced);
    let second = put(&mut content, "one", 3, 111).expect("taken");
    assert!(!content.by_hash.contains_key(&first));
    assert_eq!(content.due(address("one"), 3).len(), 1);
    assert_eq!(refusal(put(&mut content, "one", 3, 1_000)), underpriced);
    content.remove(second);
    assert!(content.by_sender.is_empty() && content.by_hash.is_empty());
}

#[test]
fn what_others_took_the_place_of_is_forgotten() {
    let mut content = Content::default();
    for nonce in 0..4 {
        put(&mut content, "one", nonce, 1).expect("taken");
    }
    assert_eq!(content.unsettled(), [address("one")]);
    content.prune_below(address("one"), 3);
    assert_eq!(content.by_hash.len(), 1);
    content.due(address("one"), 3);
    assert!(content.unsettled().is_empty());
    content.prune_below(address("one"), 4);
    assert_eq!(content.by_hash.len(), 1, "its answer is still to come");
}

#[test]
fn what_the_committee_executed_stays_until_the_state_has_it() {
    let mut content = Content::default();
    let one = address("one");
    let hashes = [5, 6].map(|nonce| put(&mut content, "one", nonce, 1).expect("taken"));
    content.due(one, 5);
    hashes.iter().for_each(|hash| content.apply(*hash, None));
    assert_eq!(next_nonce(&content.nonces(one), 5), 7, "their nonces are used");
    assert!(content.due(one, 5).is_empty(), "they are not sent again");
    assert_eq!(content.unsettled(), [one], "the next state is looked at");
    let again = put(&mut content, "one", 5, 1).expect_err("refused");
    assert_eq!(again.message(), "already known");
    content.prune_below(one, 6);
    assert_eq!(content.nonces(one), [6]);
    content.prune_below(one, 7);
    assert!(content.by_sender.is_empty() && content.by_hash.is_empty());
}

#[test]
fn what_the_committee_refuses_waits_or_goes() {
    let mut content = Content::default();
    let one = address("one");
    let hashes = [5, 6, 7, 8].map(|nonce| put(&mut content, "one", nonce, 1).expect("taken"));
    let due = |content: &mut Content| content.due(one, 5).len();
    assert_eq!(due(&mut content), 4);
    let reasons = [
        "nonce 5 too low, expected 6",
        "nonce 6 too high, expected 5",
        "exceeds block gas limit",
        "intrinsic gas too low: gas 20999, minimum needed 21000",
    ];
    hashes.iter().zip(reasons).for_each(|(hash, reason)| content.refuse(*hash, reason));
    assert_eq!(content.nonces(one), [5, 6, 7], "only the last can never be executed");
    assert_eq!(due(&mut content), 2, "two are sent again");
    content.prune_below(one, 6);
    assert_eq!(content.nonces(one), [6, 7]);
}

#[test]
fn those_that_wait_for_others_leave_room_for_the_rest() {
    let mut content = Content::default();
    let mut take = |sender: usize, nonce: u64| {
        put(&mut content, &sender.to_string(), nonce, 1).map_err(|full| full.message().to_owned())
    };
    assert!((0..QUEUED_MAX).all(|sender| take(sender, 1).is_ok()));
    assert_eq!(take(QUEUED_MAX, 1), Err("txpool is full".into()));
    let ready = take(QUEUED_MAX, 0).expect("it waits for nobody");
    take(QUEUED_MAX, 1).expect("and this for one that is here");
    let bytes: usize = content.by_hash.values().map(|waiting| waiting.raw.len()).sum();
    assert_eq!(content.bytes, bytes);
    content.remove(ready);
    assert!(content.bytes < bytes && content.has_room(WAITING_BYTES_MAX - bytes, false));
    assert!(!content.has_room(WAITING_BYTES_MAX, false), "of so many bytes");
    assert!(!content.has_room_in_queue(QUEUED_BYTES_MAX) && !content.has_room(1, true));
    content.drop_held_for(HELD_FOR);
    assert!(!content.has_room(1, true), "they are young");
    content.drop_held_for(Duration::ZERO);
    assert!(content.has_room(1, true) && content.by_hash.is_empty());
}

/// A receipt of a request of so many bytes and operations.
fn receipt(bytes: usize, operations: usize) -> Arc<Receipt> {
    let client = IdentitySecret::from_seed([1; 32]).public();
    let completion = Completion {
        client: ClientId(client),
        sequence: 0,
        request: Digest::ZERO,
        results: Digest::ZERO,
    };
    let certificate = Certificate { signers: Bitmap::new(4), aggregate: Aggregate(vec![]) };
    let reply = CertifiedReply {
        completion,
        results: Results::new(vec![Outcome::Applied(Bytes::new()); operations]),
        path: Path { index: 0, count: 1, siblings: vec![] },
        executed: ExecutionCertificate { header: Header::default(), certificate },
    };
    Arc::new(Receipt { request: vec![0; bytes].into(), reply })
}

#[test]
fn receipts_are_kept_by_number_and_by_bytes() {
    let hash = |number: usize| B256::left_padding_from(&number.to_be_bytes());
    let mut receipts = Receipts::default();
    let small = receipt(100, 1);
    (0..RECEIPTS + 10).for_each(|number| receipts.put(hash(number), (Arc::clone(&small), 0)));
    assert_eq!(receipts.by_hash.len(), RECEIPTS);
    assert!(!receipts.by_hash.contains_key(&hash(9)) && receipts.by_hash.contains_key(&hash(10)));
    let large = receipt(1 << 20, 4);
    for number in 0..2_000 {
        let before = receipts.bytes;
        receipts.put(hash(1 << 20 | number), (Arc::clone(&large), 0));
        receipts.put(hash(1 << 20 | number), (Arc::clone(&large), 1));
        assert!(receipts.bytes <= RECEIPTS_BYTES_MAX && receipts.bytes <= before + (1 << 19));
    }
    let part = (1 << 18) + RECEIPT_BYTES;
    assert_eq!(receipts.by_hash.len(), RECEIPTS_BYTES_MAX / part, "a quarter of a request each");
    assert_eq!(receipts.bytes, receipts.by_hash.len() * part);
    assert_eq!(receipts.order.len(), receipts.by_hash.len());
    receipts.put(hash(7), (receipt(RECEIPTS_BYTES_MAX, 1), 0));
    assert_eq!((receipts.by_hash.len(), receipts.bytes), (0, 0), "larger than all may be");
}
