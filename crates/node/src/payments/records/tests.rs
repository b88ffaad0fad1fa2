use super::*;
use quorate_crypto::hash;
use quorate_payments::{RecordContent, RecordKind, TxId};
use quorate_storage::Role;
use quorate_types::NetworkId;
use std::path::PathBuf;

fn key(seed: u8) -> IdentityKey {
    IdentityKey([seed; 32])
}

fn owner() -> Owner {
    Owner {
        formerly: Vec::new(),
        network: NetworkId([1; 32]),
        member: key(1),
        role: Role::Shard(0),
        protocol: "plain".into(),
    }
}

fn name(number: u32) -> RecordName {
    RecordName { kind: RecordKind::Received, tx: TxId(hash(&number.to_le_bytes())) }
}

fn record(bytes: usize) -> WalletRecord {
    WalletRecord { content: RecordContent::Received(Vec::new()), note: vec![7; bytes] }
}

fn change(who: u8, action: Action) -> Change {
    Change::new(Arrived::of(key(who)), action, None)
}

fn store(who: u8, number: u32, bytes: usize) -> Change {
    let record = borsh::to_vec(&record(bytes)).expect("into memory");
    change(who, Action::Store(name(number), record))
}

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        Self { _folder: folder, path }
    }

    fn open(&self) -> Records {
        Records::open(&self.path, &owner(), 10_000).expect("opened")
    }
}

fn number_of(records: &Records, who: u8) -> usize {
    let (page, more) = records.page(key(who), None).expect("read");
    assert!(!more);
    page.len()
}

#[test]
fn records_are_kept_by_key_once_and_over_a_restart() {
    let place = Place::new();
    let records = place.open();
    let changes = [store(1, 1, 10), store(1, 2, 10), store(2, 1, 10), store(1, 1, 500)];
    assert_eq!(records.apply(&changes).expect("stored"), [true; 4]);
    drop(records);
    let records = place.open();
    let (page, _) = records.page(key(1), None).expect("read");
    assert_eq!(page, [record(10), record(10)], "what is stored first stays");
    assert_eq!((number_of(&records, 2), number_of(&records, 3)), (1, 0));
}

#[test]
fn a_key_has_so_much_room_and_gets_it_back() {
    let place = Place::new();
    let records = place.open();
    assert_eq!(records.apply(&[store(1, 1, 6_000)]).expect("stored"), [true]);
    let changes = [store(1, 2, 6_000), store(2, 2, 6_000)];
    assert_eq!(records.apply(&changes).expect("stored"), [false, true], "others have their own");
    let others = change(2, Action::Remove(vec![name(1)]));
    assert_eq!(records.apply(&[others]).expect("done"), [true]);
    assert_eq!(number_of(&records, 1), 1, "nobody removes another's");
    let own = change(1, Action::Remove(vec![name(1), name(9)]));
    let changes = [own, store(1, 2, 6_000)];
    assert_eq!(records.apply(&changes).expect("stored"), [true, true]);
    assert_eq!(number_of(&records, 1), 1);
}

#[test]
fn pages_follow_one_another() {
    let place = Place::new();
    let records = Records::open(&place.path, &owner(), u64::MAX).expect("opened");
    let changes: Vec<Change> = (0..7).map(|number| store(1, number, 400_000)).collect();
    records.apply(&changes).expect("stored");
    let mut names: Vec<RecordName> = (0..7).map(name).collect();
    names.sort_unstable();
    let (first, more) = records.page(key(1), None).expect("read");
    assert_eq!((first.len(), more), (2, true));
    let (second, more) = records.page(key(1), Some(names[1])).expect("read");
    assert_eq!((second.len(), more), (2, true));
    let (last, more) = records.page(key(1), Some(names[4])).expect("read");
    assert_eq!((last.len(), more), (2, false));
    let (none, more) = records.page(key(1), Some(names[6])).expect("read");
    assert_eq!((none.len(), more), (0, false));
}
