//! Borders as a committee orders them: what is fetched, served and followed.

use super::*;
use crate::payments::NetworkChain;
use crate::payments::epochs::report::{BadChunk, ReportCopy};
use quorate_payments::ReportPart;
use quorate_payments::change::{ChangeStep, Entered, chunk_leaf, encode_chunk};
use quorate_payments::committee::Ordered;
use tokio::runtime::Runtime;

fn entry(number: u8) -> LockEntry {
    let tx = TxId(hash(&[number]));
    (tx, OutputId { tx: TxId(hash(&[number, 1])), index: 0 })
}

/// What an authority signed of a report, and its chunks.
fn parts(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let read = |name: &str| fs::read(folder.join(name)).expect("written");
    (read("closing"), read("chunk-00000000"))
}

fn closing_of(place: &Place, folder: &Path) -> Closing {
    *ClosedReport::open(folder, &place.ended()).expect("sound").closing()
}

/// ★ An authority that signs two reports has one ordered, and shows the other.
#[test]
pub(super) fn a_report_that_was_not_ordered_is_not_taken() {
    let place = Place::new();
    let first = place.report(1, &[entry(1)]);
    let ordered = closing_of(&place, &first);
    fs::remove_dir_all(&first).expect("written");
    let (second, _) = parts(&place.report(1, &[entry(2)]));
    let copy = place.folder.path().join("copy");
    let refused = ReportCopy::begin(&copy, &place.ended(), &ordered, &second).map(drop);
    let Err(PayEpochError::Report { reason, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "it is not the one that was ordered");
}

/// Whatever comes in is checked before it is kept, and a copy that was interrupted goes on.
#[test]
fn a_report_is_copied_chunk_by_chunk() {
    let place = Place::new();
    let many: Vec<LockEntry> = (0..=255).map(entry).collect();
    let folder = place.report(1, &many);
    let (ended, ordered) = (place.ended(), closing_of(&place, &folder));
    let (signed, chunk) = parts(&folder);
    let to = place.folder.path().join("copy");
    let mut copy =
        ReportCopy::begin(&to, &ended, &ordered, &signed).expect("it is the ordered one");
    assert_eq!(copy.missing(), Some(0));
    assert_eq!(copy.take(&chunk[1..]).expect("the disk works"), Err(BadChunk::Unsigned));
    assert_eq!(copy.take(&chunk).expect("the disk works"), Ok(()));
    assert_eq!(copy.missing(), None);
    drop(copy);
    ClosedReport::open(&to, &ended).expect_err("it is not whole");
    let copy = ReportCopy::begin(&to, &ended, &ordered, &signed).expect("again");
    assert_eq!(copy.missing(), None, "the chunk is there");
    copy.finish().expect("whole");
    let copied = ClosedReport::open(&to, &ended).expect("whole");
    assert_eq!(*copied.closing(), ordered);
    let entries: Result<Vec<LockEntry>, _> = copied.entries().collect();
    assert_eq!(entries.expect("sound"), sorted(&many));
}

/// ★ An authority that lies signs what is no report: it counts as never made, whoever shows it.
#[test]
pub(super) fn what_is_signed_and_no_report_is_told_apart_from_what_was_made_up() {
    let place = Place::new();
    let (ended, keys) = (place.ended(), place.identity(1));
    let sorted = sorted(&[entry(1), entry(2)]);
    let swapped = [sorted[1], sorted[0]];
    let many: Vec<LockEntry> = (0..=255).map(entry).collect();
    let forms = [
        (2, encode_chunk(&swapped)),
        (2, encode_chunk(&sorted[..1])),
        (1, encode_chunk(&sorted)),
        (2, b"no entries".to_vec()),
        (CHUNK_ENTRIES as u64 + 1, encode_chunk(&many)),
    ];
    for (form, (count, chunk)) in forms.into_iter().enumerate() {
        let leaves =
            vec![chunk_leaf(0, &chunk); usize::try_from(count).unwrap().div_ceil(CHUNK_ENTRIES)];
        let next = place.change.next.digest();
        let closing =
            Closing::sign(&ended, &keys.identity, (ReplicaId(1), 0), next, (count, &leaves));
        let signed = borsh::to_vec(&(closing, leaves)).expect("into memory");
        let to = place.folder.path().join(format!("copy-{form}"));
        let mut copy = ReportCopy::begin(&to, &ended, &closing, &signed).expect("it is signed");
        assert_eq!(copy.take(&chunk).expect("the disk works"), Err(BadChunk::Unsound), "{form}");
    }
}

/// ★ A shard that votes in an epoch, as was ordered, and has forgotten it, does not begin it again.
#[test]
pub(super) fn who_entered_and_forgot_does_not_enter_again() {
    let place = Place::new();
    let runtime = Runtime::new().expect("a runtime");
    let (founding, newcomer) = (place.ended(), &place.newcomer.identity);
    let next = founding.succeed(&place.change).expect("signed");
    let config = place.config(0);
    let succession = || {
        let mut succession =
            Succession::new(&config, newcomer, &founding, runtime.handle()).expect("its files");
        let change = Ordered::Change(ChangeStep::Change(Box::new(place.change.clone())));
        succession.take(&change).expect("signed");
        succession
    };
    assert!(succession().advance().expect("it may begin").is_none(), "nobody has reported");
    let mut again = succession();
    let entered = Entered::sign(&next, newcomer, (ReplicaId(0), 0));
    again.take(&Ordered::Change(ChangeStep::Entered(entered))).expect("signed");
    let refused = again.advance();
    let is_it = matches!(refused, Err(NodeError::PayEpoch(PayEpochError::Forgotten { .. })));
    assert!(is_it, "{refused:?}");
}

#[test]
fn reports_are_served_to_authorities_of_both_epochs_and_to_nobody_else() {
    let place = Place::new();
    let config = place.config(1);
    let (own, other) = (place.report(1, &[entry(1)]), place.report(2, &[entry(2)]));
    fs::create_dir_all(&config.data_dir).expect("its folder");
    fs::rename(&own, config.data_dir.join("report")).expect("in its place");
    let begins = place.change.next.epoch;
    let gathered = gathered_folder(&config.data_dir, begins, (ReplicaId(2), 0));
    fs::create_dir_all(gathered.parent().expect("one")).expect("made");
    fs::rename(&other, &gathered).expect("in its place");

    let shelf = ReportShelf::new(&config.data_dir, &place.ended());
    let newcomer = place.newcomer.identity.public();
    let serves = |key| {
        let chain = NetworkChain::open(&config.network).expect("readable");
        chain.has_authority(key, place.ended().epoch())
    };
    assert!(serves(place.identity(0).identity.public()), "of the epoch that ended");
    assert!(!serves(newcomer), "no change is known that names it");
    write_change(&change_beside(&config.network, begins), &place.change).expect("written");
    assert!(serves(newcomer));
    assert!(!serves(quorate_crypto::IdentitySecret::from_seed([9; 32]).public()));

    let ended = place.ended().epoch();
    let read = |authority, part| {
        let part = ReportPart { ended, authority: ReplicaId(authority), shard: 0, part };
        shelf.read(&part).expect("readable")
    };
    for (authority, folder) in [(1, config.data_dir.join("report")), (2, gathered)] {
        let (signed, chunk) = parts(&folder);
        assert_eq!(read(authority, 0), Some(signed));
        assert_eq!(read(authority, 1), Some(chunk));
        assert_eq!(read(authority, 2), None, "there is one chunk");
    }
    assert_eq!(read(3, 0), None, "it is not here");
}

/// A shard whose committee says when to begin stays in its epoch until it has begun the next.
#[test]
fn a_change_beside_the_network_file_does_not_begin_its_epoch() {
    let place = Place::new();
    let begins = place.change.next.epoch;
    let beside = change_beside(&place.testnet.network, begins);
    write_change(&beside, &place.change).expect("written");
    let by_hand = place.config(1);
    let ordered = AuthorityConfig { committee: Some("committee.toml".into()), ..by_hand.clone() };
    let epoch = |config| network_in_force(config).expect("readable").epoch();
    assert_eq!((epoch(&by_hand), epoch(&ordered)), (begins, place.ended().epoch()));
    let reports: Vec<PathBuf> = [1, 2, 3].map(|one| place.report(one, &[])).into();
    place.begin(&reports).expect("a quorum");
    assert_eq!(epoch(&ordered), begins);
}

/// ★ The committee orders changes, and does not make them.
#[test]
pub(super) fn a_change_is_followed_if_it_is_signed_and_the_one_that_is_known() {
    let place = Place::new();
    let runtime = Runtime::new().expect("a runtime");
    let (config, founding) = (place.config(1), place.ended());
    let identity = place.identity(1).identity;
    let succession =
        || Succession::new(&config, &identity, &founding, runtime.handle()).expect("its files");
    let ordered = |change: &Change| Ordered::Change(ChangeStep::Change(Box::new(change.clone())));
    let mut unsigned = place.change.clone();
    unsigned.signatures.clear();
    let refused = succession().take(&ordered(&unsigned));
    assert!(
        matches!(refused, Err(NodeError::PayEpoch(PayEpochError::Change { .. }))),
        "{refused:?}"
    );
    let beside = change_beside(&config.network, place.change.next.epoch);
    assert!(!beside.exists());

    let mut followed = succession();
    assert_eq!(followed.next(), None);
    followed.take(&ordered(&place.change)).expect("signed");
    assert_eq!(read_change(&beside).expect("written"), place.change);
    let next = followed.next().expect("the epoch has ended");
    assert_eq!((next.epoch, next.reported, next.has_begun), (2, 0, false));
    assert!(followed.is_at_border());
    succession().take(&ordered(&place.change)).expect("the same again");
    let refused = succession().take(&ordered(&place.other_change()));
    let is_it = matches!(refused, Err(NodeError::PayEpoch(PayEpochError::OtherChange { .. })));
    assert!(is_it, "{refused:?}");
}
