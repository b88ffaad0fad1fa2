use super::*;
use crate::store::{DiskStore, Store};
use quorate_crypto::mutants::{Mutant, assert_noticed};

fn said(error: redb::Error) -> StorageError {
    StorageError::State(failed(error))
}

fn of(kind: io::ErrorKind) -> redb::Error {
    redb::Error::Io(kind.into())
}

/// A full file system, a file that cannot be used, and one that is damaged are three things:
/// the last alone is made again.
#[test]
fn what_is_wrong_with_a_file_is_told_apart() {
    let full = said(of(io::ErrorKind::StorageFull));
    assert!(full.is_full() && !full.is_damaged_state(), "{full}");
    let broken = said(of(io::ErrorKind::BrokenPipe));
    assert!(!broken.is_full() && !broken.is_damaged_state(), "{broken}");
    for work in
        [|| Err(of(io::ErrorKind::InvalidData)), || panic!("page {}", 7), || panic!("a page")]
    {
        let damaged = said(guarded::<()>(work).expect_err("it is damaged"));
        assert!(damaged.is_damaged_state() && !damaged.is_full(), "{damaged}");
    }
    assert_eq!(guarded(|| Ok(7)).expect("nothing is wrong"), 7);
}

/// A file as an earlier version made it, with some owner's record or none.
fn make(path: &Path, record: Option<Vec<u8>>) {
    let database = Database::create(path).expect("made");
    let transaction = database.begin_write().expect("begun");
    let mut table = transaction.open_table(TABLE).expect("made");
    for number in 0..5_000_u32 {
        table.insert(&number.to_be_bytes()[..], &[number as u8; 90][..]).expect("put");
    }
    table.insert(&b""[..], &b""[..]).expect("put");
    drop(table);
    if let Some(record) = record {
        transaction.open_table(OWNER).expect("made").insert((), &record[..]).expect("put");
    }
    transaction.commit().expect("committed");
}

/// A file with what an earlier version wrote, and the folder that it is in.
fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("made");
    let path = folder.path().join("state");
    make(&path, Some(Owner::nobody().record(FORMAT)));
    (folder, path)
}

fn has_all(path: &Path) {
    let store = DiskStore::open(path, &Owner::nobody()).expect("opened");
    for number in 0..5_000_u32 {
        assert_eq!(store.get(&number.to_be_bytes()), Ok(Some(vec![number as u8; 90])));
    }
    assert_eq!(store.get(b""), Ok(Some(Vec::new())));
    assert!(path.is_dir() && !beside(path).exists(), "one store is left");
}

#[test]
fn what_an_earlier_version_wrote_is_taken_over() {
    let (_folder, path) = made();
    has_all(&path);
    has_all(&path);
    let mut store = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    let mut transaction = store.begin().expect("begun");
    transaction.put(b"k", b"v").expect("put");
    transaction.commit(true).expect("committed");
    drop(store);
    has_all(&path);
    let store = DiskStore::open(&path, &Owner::nobody()).expect("opened");
    assert_eq!(store.get(b"k"), Ok(Some(b"v".to_vec())), "and goes on");
}

/// ★ Wherever taking over ended: the next start has all of it.
#[test]
fn taking_over_that_was_cut_short_is_done_again() {
    // Amid the copying: there is something, or a log without its batch.
    let (_folder, path) = made();
    fs::create_dir(beside(&path)).expect("made");
    fs::write(beside(&path).join("0000000000.values"), b"some of it").expect("written");
    has_all(&path);
    let (_folder, path) = made();
    ValueLog::open(
        folder(&beside(&path), Room::unwatched()).expect("made"),
        &Owner::nobody(),
        Sizes::DEFAULT,
    )
    .expect("begun");
    has_all(&path);
    // When all was copied, and the file was there still or no more.
    for file_is_there in [true, false] {
        let (_folder, path) = made();
        let former = FormerStore::open(&path, &Owner::nobody()).expect("opened");
        former.copy_to(&beside(&path), &Owner::nobody(), &Room::unwatched()).expect("copied");
        drop(former);
        if !file_is_there {
            fs::remove_file(&path).expect("removed");
        }
        assert!(DiskStore::is_at(&path));
        has_all(&path);
    }
}

/// ★ A file that cannot be read whole stays, and nothing takes its place.
#[test]
fn a_damaged_file_is_not_taken_over() {
    let (_folder, path) = made();
    let mut bytes = fs::read(&path).expect("read");
    let pages = bytes.len() / 4_096;
    for page in 8..pages - 8 {
        bytes[page * 4_096..][..64].fill(0xff);
    }
    fs::write(&path, &bytes).expect("written");
    let error = DiskStore::open(&path, &Owner::nobody()).expect_err("damaged");
    assert!(error.is_damaged_state(), "{error}");
    assert!(path.is_file() && !beside(&path).exists(), "as it was");
}

/// ★ Where no log can be made, nothing of the file is lost.
#[test]
fn a_file_that_cannot_be_copied_stays() {
    let (_folder, path) = made();
    fs::write(beside(&path), b"in the way").expect("written");
    let error = DiskStore::open(&path, &Owner::nobody()).expect_err("no folder");
    assert!(matches!(error, StorageError::Io { action: "remove", .. }), "{error}");
    fs::remove_file(beside(&path)).expect("removed");
    has_all(&path);
}

#[test]
fn a_file_removed_before_its_copy_is_whole_is_noticed() {
    assert_noticed(Mutant::RemoveFormerEarly, a_file_that_cannot_be_copied_stays);
}

/// The first versions did not say whose a file is.
#[test]
fn a_file_without_an_owner_becomes_its_opener_s_for_good() {
    let folder = tempfile::tempdir().expect("made");
    let path = folder.path().join("state");
    make(&path, None);
    has_all(&path);
    let somebody = Owner { protocol: "pbft".into(), ..Owner::nobody() };
    let refused = DiskStore::open(&path, &somebody).expect_err("refused");
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused}");
}

#[test]
fn somebody_else_s_file_is_refused_and_one_in_use_too() {
    let (_folder, path) = made();
    let somebody = Owner { protocol: "pbft".into(), ..Owner::nobody() };
    let refused = DiskStore::open(&path, &somebody).expect_err("refused");
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused}");
    let held = Database::open(&path).expect("opened");
    let refused = DiskStore::open(&path, &Owner::nobody()).expect_err("held");
    assert_eq!(refused, StorageError::InUse { directory: path.display().to_string() });
    drop(held);
    has_all(&path);
}
