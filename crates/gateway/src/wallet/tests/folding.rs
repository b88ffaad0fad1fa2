//! Books that are folded: the same wallet, in a short book and an archive.

use super::network::{key, network, secret};
use super::{ANNE, BOB, ISSUER, Place, TIMEOUT, free, mark, order, pay};
use crate::wallet::mark::{Extent, Mark};
use crate::wallet::{Backup, HistoryLine, Order, Orderer, Purpose, Wallet, WalletError};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The order of Anne's payment of a number.
fn numbered(number: u64) -> Order {
    Order { memo: Some(format!("order {number}")), ..pay(BOB, 1 + number) }
}

fn key_of(number: u64) -> String {
    format!("key {number}")
}

/// Makes Anne's payments of these numbers, each final.
fn pay_numbered(place: &Place, wallet: &mut Wallet, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let begun = wallet.begin(&numbered(number), Some(&key_of(number))).expect("begun");
        let outcome = place.authorities.outcome(&begun.transaction).expect("an outcome");
        let ended = wallet.end(begun.id, outcome).expect("stored");
        assert_eq!(ended.state.name(), "certified");
    }
}

/// Checks that a wallet made the first so many payments, knows them by their keys, and goes on.
fn check(place: &Place, wallet: &mut Wallet, payments: u64) {
    let lines = wallet.history().expect("read");
    let memos = lines.iter().filter(|line| line.kind == "pay").filter_map(|line| line.memo.clone());
    let expected: Vec<_> = (0..payments).map(|number| format!("order {number}")).collect();
    assert_eq!(memos.collect::<Vec<_>>(), expected);
    let paid: u64 = (1..=payments).sum();
    assert_eq!((free(wallet), wallet.unfinished().len()), (u128::from(1_000 - paid), 0));
    for number in 0..payments {
        let again = wallet.begin(&numbered(number), Some(&key_of(number))).expect("the same");
        assert_eq!(again.order, numbered(number));
        assert!(wallet.receipt(&again).is_some());
        let other = wallet.begin(&pay(BOB, 999), Some(&key_of(number)));
        assert!(matches!(other, Err(WalletError::KeyTaken { payment, .. }) if payment == again.id));
    }
    assert_eq!(free(wallet), u128::from(1_000 - paid), "nothing was begun");
    assert_eq!(wallet.receive_genesis().expect("known"), 0);
    pay_numbered(place, wallet, payments..payments + 1);
}

/// A file beside a book, by the beginning of its extension.
fn beside(book: &Path, extension: &str) -> PathBuf {
    let folder = fs::read_dir(book.parent().expect("a folder")).expect("read");
    let start = book.with_extension(extension).display().to_string();
    let mut paths = folder.map(|entry| entry.expect("read").path());
    paths.find(|path| path.display().to_string().starts_with(&start)).expect("it is there")
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("read") {
        let path = entry.expect("read").path();
        let copy = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy_folder(&path, &copy),
            false => drop(fs::copy(&path, copy).expect("copied")),
        }
    }
}

/// Anne's wallet alone in a folder, with 1000 of the genesis.
fn anne_alone() -> (Place, PathBuf) {
    let place = Place::new(&[(ANNE, 1_000)]).folding();
    let book = place.folder.path().join("here").join("wallet");
    fs::create_dir(book.parent().expect("a folder")).expect("made");
    Wallet::create(&book, key(ANNE)).expect("made");
    place.open_at(&book, ANNE).expect("a wallet").receive_genesis().expect("stored");
    (place, book)
}

#[test]
fn a_book_stays_short_and_the_wallet_knows_everything() {
    let (place, book) = anne_alone();
    let mut lengths = Vec::new();
    for rounds in 1..=3 {
        let mut anne = place.open_at(&book, ANNE).expect("a wallet");
        pay_numbered(&place, &mut anne, 11 * (rounds - 1)..11 * rounds - 1);
        check(&place, &mut anne, 11 * rounds - 1);
        assert!(anne.state.entries.len() < 8, "{} lines", anne.state.entries.len());
        let kept = anne.state.clone();
        drop(anne);
        assert_eq!(place.open_at(&book, ANNE).expect("a wallet").state, kept);
        lengths.push(fs::metadata(&book).expect("there").len());
    }
    assert!(lengths[2] < lengths[0] + lengths[0] / 2, "{lengths:?}");
    let refused =
        place.open_at(&book, ANNE).expect("a wallet").begin(&order(Purpose::Consolidate), None);
    assert!(matches!(refused, Err(WalletError::NothingToConsolidate)));
}

/// ★ What was ordered and spent long ago is known for ever.
fn the_archive_is_asked() {
    let place = Place::new(&[(ANNE, 1_000), (BOB, 5)]).folding();
    let (mut anne, mut bob) = (place.create(ANNE), place.create(BOB));
    pay_numbered(&place, &mut anne, 0..1);
    let payment = anne.begin(&numbered(0), Some(&key_of(0))).expect("the same");
    let receipt = anne.receipt(&payment).expect("certified");
    assert_eq!(bob.receive(&receipt).expect("taken").added, 1);
    place.apply(&mut bob, &order(Purpose::Redeem { value: 6 })).expect("redeemed");
    pay_numbered(&place, &mut anne, 1..9);
    for _ in 0..6 {
        let payment = place.apply(&mut anne, &pay(BOB, 7)).expect("paid");
        bob.receive(&anne.receipt(&payment).expect("certified")).expect("taken");
        place.apply(&mut bob, &order(Purpose::Redeem { value: 7 })).expect("redeemed");
    }
    assert_eq!(bob.receive(&receipt).expect("it holds").added, 0);
    let again = anne.begin(&numbered(0), Some(&key_of(0))).expect("the same");
    assert_eq!(again.id, payment.id);
}

#[test]
fn what_was_ordered_and_spent_long_ago_is_known() {
    the_archive_is_asked();
}

#[test]
fn a_wallet_that_forgets_its_archive_is_noticed() {
    assert_noticed(Mutant::PayForgetArchived, the_archive_is_asked);
}

/// What somebody may pay within a day is counted, so their payments of the day stay.
#[test]
fn payments_that_a_limit_counts_stay_in_the_book() {
    let place = Place::new(&[(ANNE, 1_000)]).folding();
    let mut anne = place.create(ANNE);
    let till = Orderer { name: "till".into(), limits: None };
    for number in 0..9 {
        let begun = anne.begin_for(&numbered(number), None, Some(&till)).expect("begun");
        let outcome = place.authorities.outcome(&begun.transaction).expect("an outcome");
        anne.end(begun.id, outcome).expect("stored");
    }
    assert_eq!(anne.state.payments().count(), 9);
}

/// A fold of a wallet of twelve payments, the second one: its files before it and after.
struct Fold {
    place: Place,
    /// Folder of the wallet before.
    former: PathBuf,
    /// The book after.
    book: PathBuf,
    renewed: Vec<u8>,
    extents: [Extent; 2],
    archive: OsString,
    archives: [Vec<u8>; 2],
}

impl Fold {
    fn new() -> Self {
        let (mut place, book) = anne_alone();
        let (here, folding) = (book.parent().expect("a folder"), place.folding);
        pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 0..6);
        place.folding.lines_min = usize::MAX;
        pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 6..12);
        let former = place.folder.path().join("former");
        copy_folder(here, &former);
        place.folding = folding;
        drop(place.open_at(&book, ANNE).expect("a wallet"));
        let extents = [former.as_path(), here].map(|folder| {
            let said = Mark::open(&folder.join("wallet"), false).expect("opened").1;
            said.expect("marked").book
        });
        assert_ne!(extents[0], extents[1], "it was folded");
        let archive = beside(&book, "archive-").file_name().expect("a name").to_owned();
        let archives =
            [former.as_path(), here].map(|folder| fs::read(folder.join(&archive)).expect("read"));
        assert!(archives[1].starts_with(&archives[0]) && archives[1].len() > archives[0].len());
        let renewed = fs::read(&book).expect("read");
        Self { former, renewed, extents, archive, archives, place, book }
    }

    /// Opens the wallet as it was before the fold, with what was written of that, in part.
    fn kill(&self, what: &str, write: impl Fn(&Path)) {
        let folder = self.place.folder.path().join("killed");
        copy_folder(&self.former, &folder);
        write(&folder);
        let mut anne = self.place.open_at(&folder.join("wallet"), ANNE).expect(what);
        check(&place_again(&self.place), &mut anne, 12);
        drop(anne);
        fs::remove_dir_all(&folder).expect("removed");
    }

    fn write_archive(&self, folder: &Path) {
        fs::write(folder.join(&self.archive), &self.archives[1]).expect("written");
    }

    /// Everything up to the mark that names either book.
    fn write_either_mark(&self, folder: &Path) {
        self.write_archive(folder);
        let (mut mark, _) = Mark::open(&folder.join("wallet"), false).expect("opened");
        mark.write_either(self.extents[0], self.extents[1]).expect("written");
    }

    /// Everything up to the new book in its place.
    fn write_book(&self, folder: &Path) {
        self.write_either_mark(folder);
        fs::write(folder.join("wallet"), &self.renewed).expect("written");
    }
}

/// A fold is interrupted after any of its writes, or in the midst of one: the wallet is the same.
#[test]
fn a_wallet_killed_in_a_fold_loses_nothing() {
    let fold = Fold::new();
    let [old, new] = &fold.archives;
    for cut in (old.len()..new.len()).step_by(211).chain([new.len()]) {
        fold.kill("in the archive", |folder| {
            fs::write(folder.join(&fold.archive), &new[..cut]).expect("written");
        });
    }
    for cut in (0..fold.renewed.len()).step_by(499).chain([fold.renewed.len()]) {
        fold.kill("in the new book", |folder| {
            fold.write_archive(folder);
            fs::write(folder.join("wallet.new"), &fold.renewed[..cut]).expect("written");
        });
    }
    fold.kill("before the new book has its name", |folder| fold.write_either_mark(folder));
    fold.kill("before the mark", |folder| fold.write_book(folder));
    fold.kill("before the index", |folder| {
        fold.write_book(folder);
        fs::copy(mark::path_of(&fold.book), mark::path_of(&folder.join("wallet"))).expect("copied");
    });
    fold.kill("without an index", |folder| {
        fold.write_book(folder);
        fs::remove_dir_all(beside(&folder.join("wallet"), "index-")).expect("removed");
    });
    fold.kill("with an index that is ahead", |folder| {
        let index = beside(&folder.join("wallet"), "index-");
        fs::remove_dir_all(&index).expect("removed");
        copy_folder(&beside(&fold.book, "index-"), &index);
    });
}

/// The same network, whose authorities know nothing.
fn place_again(place: &Place) -> Place {
    let again = Place::new(&[(ANNE, 1_000)]);
    assert_eq!(again.network.id(), place.network.id());
    again
}

/// ★ An archive that is not the one that the book goes on from is refused, and left as it is.
fn another_archive_is_refused() {
    let (place, book) = anne_alone();
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 0..6);
    let archive = beside(&book, "archive-");
    let older = fs::read(&archive).expect("read");
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 6..12);
    let newer = fs::read(&archive).expect("read");
    assert!(newer.len() > older.len());
    let (elsewhere, theirs) = anne_alone();
    pay_numbered(&elsewhere, &mut elsewhere.open_at(&theirs, ANNE).expect("a wallet"), 0..14);
    let foreign = fs::read(beside(&theirs, "archive-")).expect("read");
    assert!(foreign.len() >= newer.len());
    for (bytes, what) in [
        (&older[..], "older"),
        (&newer[..newer.len() - 1], "cut short"),
        (&[][..], "emptied"),
        (&foreign[..], "another"),
    ] {
        fs::write(&archive, bytes).expect("written");
        let refused = place.open_at(&book, ANNE).expect_err(what);
        assert!(matches!(refused, WalletError::Archive { .. }), "{what}: {refused}");
        assert_eq!(fs::read(&archive).expect("read"), bytes, "{what}: it was left as it is");
    }
    fs::remove_file(&archive).expect("removed");
    let refused = place.open_at(&book, ANNE).expect_err("without it");
    assert!(matches!(refused, WalletError::Archive { .. }), "{refused}");
    fs::write(&archive, &newer).expect("written");
    check(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 12);
}

#[test]
fn an_archive_that_is_not_the_books_is_not_opened() {
    another_archive_is_refused();
}

#[test]
fn a_wallet_that_opens_another_archive_is_noticed() {
    assert_noticed(Mutant::PayOpenOtherArchive, another_archive_is_refused);
}

/// A line that was altered is damage where it is read, and the wallet opens without it.
#[test]
fn a_damaged_line_of_the_archive_is_never_taken_for_a_missing_one() {
    let (place, book) = anne_alone();
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 0..9);
    let archive = beside(&book, "archive-");
    let mut bytes = fs::read(&archive).expect("read");
    // In the second line: the first one is the genesis.
    let at = bytes.windows(7).position(|part| part == b"order 1").expect("it is there");
    bytes[at] ^= 1;
    fs::write(&archive, &bytes).expect("written");
    let mut anne = place.open_at(&book, ANNE).expect("a wallet");
    let refused = anne.begin(&numbered(1), Some(&key_of(1))).expect_err("damaged");
    assert!(matches!(refused, WalletError::Archive { .. }), "{refused}");
    assert!(matches!(anne.history(), Err(WalletError::Archive { .. })));
    pay_numbered(&place, &mut anne, 9..10);
}

#[test]
fn a_backup_has_the_archive_too() {
    let (place, book) = anne_alone();
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 0..9);
    let file = place.folder.path().join("backup");
    let saved = place.open_at(&book, ANNE).expect("a wallet").backup(None).expect("made");
    saved.write(&file).expect("written");
    let backup = Backup::read(&file).expect("a backup");
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 9..15);
    let memos = |wallet: &Wallet| {
        let lines: Vec<HistoryLine> = wallet.history().expect("read");
        lines.into_iter().filter_map(|line| line.memo).count()
    };
    let elsewhere = place.folder.path().join("elsewhere").join("wallet");
    fs::create_dir(elsewhere.parent().expect("a folder")).expect("made");
    Wallet::restore(&elsewhere, &secret(ANNE), Some(&backup)).expect("made");
    assert_eq!(memos(&place.open_at(&elsewhere, ANNE).expect("a wallet")), 9);
    // What is there goes on from the backup, though it was folded since.
    let kept = Wallet::restore(&book, &secret(ANNE), Some(&backup)).expect("made");
    assert_eq!(memos(&place.open_at(&book, ANNE).expect("a wallet")), 15);
    fs::rename(kept.expect("one was there"), &book).expect("renamed");
    let behind = place.open_at(&book, ANNE).expect_err("the mark is the restored one's");
    assert!(matches!(behind, WalletError::Behind { .. }), "{behind}");
    // Without the archive the book alone is restored.
    fs::remove_file(beside(&elsewhere, "archive-")).expect("removed");
    Wallet::restore(&elsewhere, &secret(ANNE), None).expect("made");
    let rest = memos(&place.open_at(&elsewhere, ANNE).expect("a wallet"));
    assert!((1..9).contains(&rest), "{rest}");
}

/// A book that goes on from the backup has the backup's archive, where its own is lost: callers'
/// keys are in it.
#[test]
fn a_lost_archive_comes_back_from_a_backup() {
    let (place, book) = anne_alone();
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 0..9);
    let lines = |wallet: &Wallet| wallet.history().expect("read").len();
    let wallet = place.open_at(&book, ANNE).expect("a wallet");
    let (saved, before) = (wallet.backup(None).expect("made"), lines(&wallet));
    drop(wallet);
    fs::remove_file(beside(&book, "archive-")).expect("removed");
    Wallet::restore(&book, &secret(ANNE), Some(&saved)).expect("made");
    assert_eq!(lines(&place.open_at(&book, ANNE).expect("a wallet")), before);
}

/// Another network's wallet of the same key has an archive of its own.
#[test]
fn a_folded_wallet_is_one_networks() {
    let (place, book) = anne_alone();
    pay_numbered(&place, &mut place.open_at(&book, ANNE).expect("a wallet"), 0..9);
    let other = Wallet::open(&book, network("other", &[]), secret(ANNE)).expect_err("refused");
    assert!(matches!(other, WalletError::OtherNetwork { .. }));
    let till = place.open_at(&book, ISSUER).expect_err("another key");
    assert!(matches!(till, WalletError::OtherOwner { .. }));
    let mut anne = place.open_at(&book, ANNE).expect("a wallet");
    assert!(anne.request(5, None, TIMEOUT, None).is_ok());
    check(&place, &mut anne, 9);
}
