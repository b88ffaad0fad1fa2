mod ordered;

use super::inheritance::DiskInheritance;
use super::report::ReportWriter;
use super::*;
use crate::NodeError;
use crate::payments::{PayTestnet, PayTestnetPlan, read_network, read_network_before};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Digest, KeyFile, StoredKeys, hash};
use quorate_payments::change::{CHUNK_ENTRIES, Change, Closing, Inheritance, Inherited, LockEntry};
use quorate_payments::{AuthorityEntry, OutputId, TxId};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// A network of four in a folder, and a change that replaces the first by another.
struct Place {
    testnet: PayTestnet,
    change: Change,
    newcomer: KeyFile,
    folder: TempDir,
}

fn keys(config: &AuthorityConfig) -> KeyFile {
    match StoredKeys::read(&config.key).expect("a key file") {
        StoredKeys::Open(keys) => keys,
        StoredKeys::Sealed(_) => panic!("a testnet's keys are open"),
    }
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = PayTestnetPlan::default();
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan).expect("written");
        let network = read_network(&testnet.network).expect("a network");
        let newcomer = KeyFile::from_seed(network.scheme().keys(), &[77; 32]);
        let text = fs::read_to_string(&testnet.network).expect("written");
        let file: quorate_payments::NetworkFile = toml::from_str(&text).expect("written");
        let mut next = file.next_epoch(network.id());
        let addresses = next.authorities[0].addresses.clone();
        next.authorities[0] = AuthorityEntry::new(&newcomer.public(), addresses);
        let mut change = Change::draft(next);
        change.sign(&network, &newcomer.identity);
        for of_shards in &testnet.configs[1..] {
            let config = AuthorityConfig::load(&of_shards[0]).expect("written");
            change.sign(&network, &keys(&config).identity);
        }
        Self { testnet, change, newcomer, folder }
    }

    fn ended(&self) -> Network {
        read_network_before(&self.testnet.network, self.change.next.epoch).expect("a network")
    }

    fn config(&self, authority: usize) -> AuthorityConfig {
        AuthorityConfig::load(&self.testnet.configs[authority][0]).expect("written")
    }

    fn identity(&self, authority: usize) -> KeyFile {
        keys(&self.config(authority))
    }

    /// A report of an authority with these locks, in a folder.
    fn report(&self, authority: u16, locks: &[LockEntry]) -> PathBuf {
        let keys = self.identity(usize::from(authority));
        self.report_of(&self.ended(), &self.change, (authority, &keys), locks)
    }

    /// The same, of an epoch that ends for this change.
    fn report_of(
        &self,
        ended: &Network,
        change: &Change,
        (authority, keys): (u16, &KeyFile),
        locks: &[LockEntry],
    ) -> PathBuf {
        let name = format!("report-{}-{authority}", ended.epoch());
        let folder = self.folder.path().join(name);
        let mut writer = ReportWriter::begin(&folder).expect("begins");
        for entry in sorted(locks) {
            writer.push(entry).expect("writes");
        }
        let place = (ReplicaId(authority), 0);
        let sign = |count, leaves: &[Digest]| {
            let next = change.next.digest();
            Closing::sign(ended, &keys.identity, place, next, (count, leaves))
        };
        writer.finish(sign).expect("ends");
        folder
    }

    /// The second epoch, and a change in which this newcomer replaces authority 1; both changes are
    /// beside the network file.
    fn second_change(&self, newcomer: &KeyFile) -> (Network, Change) {
        let second = self.ended().succeed(&self.change).expect("signed");
        let mut third = self.change.next.next_epoch(second.id());
        let addresses = third.authorities[1].addresses.clone();
        third.authorities[1] = AuthorityEntry::new(&newcomer.public(), addresses);
        let mut change = Change::draft(third);
        let present = [self.newcomer.clone(), self.identity(2), self.identity(3)];
        for keys in present.iter().chain([newcomer]) {
            change.sign(&second, &keys.identity);
        }
        for change in [&self.change, &change] {
            let beside = change_beside(&self.testnet.network, change.next.epoch);
            write_change(&beside, change).expect("written");
        }
        (second, change)
    }

    /// Another change to the second epoch.
    fn other_change(&self) -> Change {
        let network = self.ended();
        let mut other = self.change.clone();
        other.next.authorities[1].addresses[0] = "elsewhere.example:7".into();
        other.signatures.clear();
        for one in 1..4 {
            other.sign(&network, &self.identity(one).identity);
        }
        other.sign(&network, &self.newcomer.identity);
        other
    }

    fn begin(&self, reports: &[PathBuf]) -> Result<Begun, NodeError> {
        begin(&self.config(1), &self.identity(1), &self.change, reports)
    }

    fn inherited(&self) -> Result<DiskInheritance, PayEpochError> {
        let next = self.ended().succeed(&self.change).expect("signed");
        let config = self.config(1);
        let owner = owner_of(&next, self.identity(1).identity.public(), 0);
        DiskInheritance::open(&config.data_dir, &next, &owner)
    }
}

fn sorted(locks: &[LockEntry]) -> Vec<LockEntry> {
    let mut locks = locks.to_vec();
    locks.sort_unstable();
    locks
}

fn tx(number: u64) -> TxId {
    TxId(hash(&number.to_le_bytes()))
}

fn input(number: u64) -> OutputId {
    OutputId { tx: TxId(hash(&[&b"parent"[..], &number.to_le_bytes()].concat())), index: 3 }
}

/// Of several chunks, some of it contested: on disk as in memory.
#[test]
fn what_is_inherited_on_disk_is_what_the_rules_say() {
    let place = Place::new();
    let many = CHUNK_ENTRIES as u64 + 10;
    let common: Vec<LockEntry> = (0..many).map(|one| (tx(one / 2), input(one))).collect();
    let with = |more: &[LockEntry]| [&common[..], more].concat();
    let (first, second, half) = (tx(900_001), tx(900_002), tx(900_003));
    let coin = input(900_000);
    let reports: BTreeMap<ReplicaId, Vec<LockEntry>> = [
        (1, with(&[(first, coin)])),
        (2, with(&[(second, coin)])),
        (3, with(&[(half, input(900_009))])),
    ]
    .into_iter()
    .map(|(from, locks)| (ReplicaId(from), sorted(&locks)))
    .collect();
    let folders: Vec<PathBuf> =
        reports.iter().map(|(from, locks)| place.report(from.0, locks)).collect();
    let begun = place.begin(&folders).expect("begins");
    let expected = Begun { locked: many + 1, admitted: many / 2, contested: 1 };
    assert_eq!(begun, expected);
    let network = place.ended();
    let weights = network.committee().weights();
    let memory = Inheritance::default().after(weights, &reports).expect("a quorum");
    let disk = place.inherited().expect("whole");
    for one in [0, 1, many - 1, 900_000, 900_009, 5_000_000] {
        assert_eq!(disk.candidates(input(one)), memory.candidates(input(one)), "{one}");
    }
    for name in [tx(0), tx(many / 2 - 1), first, second, half] {
        assert_eq!(disk.admits(name), memory.admits(name), "{name}");
    }
    assert_eq!(disk.candidates(coin).map(|both| both.len()), Ok(2));
    let again = place.begin(&folders).expect_err("begun before");
    assert!(matches!(again, NodeError::PayEpoch(PayEpochError::BegunBefore { .. })), "{again}");
}

#[test]
fn an_epoch_begins_with_reports_of_a_quorum() {
    let place = Place::new();
    let folders: Vec<PathBuf> = [1, 2].map(|one| place.report(one, &[])).into();
    let error = place.begin(&folders).expect_err("two of four");
    let NodeError::PayEpoch(PayEpochError::TooFew { shard: 0, found: 2, least: 3 }) = error else {
        panic!("{error}")
    };
    let twice = [folders.clone(), vec![folders[0].clone()]].concat();
    let error = place.begin(&twice).expect_err("one of them twice");
    assert!(matches!(error, NodeError::PayEpoch(PayEpochError::Twice { .. })), "{error}");
}

/// A chunk is another than was signed, whatever it says.
#[test]
fn a_changed_chunk_is_refused() {
    let place = Place::new();
    let folders: Vec<PathBuf> = [1, 2, 3].map(|one| place.report(one, &[(tx(1), input(1))])).into();
    let other = quorate_payments::change::encode_chunk(&[(tx(2), input(1))]);
    fs::write(folders[1].join("chunk-00000000"), other).expect("writes");
    let error = place.begin(&folders).expect_err("changed");
    let NodeError::PayEpoch(PayEpochError::Report { reason, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(reason, "chunk 0 is not what was signed");
    assert!(matches!(place.inherited(), Err(PayEpochError::NotBegun { .. })), "and none is whole");
}

/// Its disks may have been lost after it voted in the epoch that it is to begin.
#[test]
fn who_lost_everything_begins_under_no_key_of_before() {
    let place = Place::new();
    let folders: Vec<PathBuf> = [1, 2, 3].map(|one| place.report(one, &[])).into();
    let config = place.config(1);
    for file in fs::read_dir(config.key.parent().expect("a folder")).expect("read") {
        let path = file.expect("read").path();
        if path.extension().is_some_and(|ending| ending == "locks") {
            fs::remove_file(path).expect("removed");
        }
    }
    let error = place.begin(&folders).expect_err("nothing is left");
    assert!(matches!(error, NodeError::PayEpoch(PayEpochError::Forgotten { .. })), "{error}");
    let newcomer = AuthorityConfig { data_dir: place.folder.path().join("new"), ..place.config(0) };
    let newcomer = AuthorityConfig { key: place.folder.path().join("new-key.toml"), ..newcomer };
    begin(&newcomer, &place.newcomer, &place.change, &folders).expect("it never voted");
}

/// The second disk that is lost is replaced like the first.
#[test]
fn a_newcomer_of_a_later_epoch_inherits_of_all_before() {
    let place = Place::new();
    let folders: Vec<PathBuf> = [1, 2, 3].map(|one| place.report(one, &[(tx(1), input(1))])).into();
    let newcomer = KeyFile::from_seed(place.ended().scheme().keys(), &[78; 32]);
    let config = AuthorityConfig {
        data_dir: place.folder.path().join("new"),
        key: place.folder.path().join("new-key.toml"),
        ..place.config(1)
    };
    let begin_second = || begin(&config, &newcomer, &place.change, &folders);
    let error = begin_second().expect_err("nobody's");
    assert!(
        matches!(error, NodeError::Authority(AuthorityConfigError::NotAnAuthority { .. })),
        "{error}"
    );
    let (second, change) = place.second_change(&newcomer);
    begin_second().expect("for what it inherits");
    let third = second.succeed(&change).expect("signed");
    let owner = owner_of(&third, newcomer.identity.public(), 0);
    let found = DiskInheritance::open(&config.data_dir, &third, &owner);
    assert!(matches!(found, Err(PayEpochError::NotBegun { epoch: Epoch(3), .. })), "{found:?}");
    let owner = owner_of(&second, newcomer.identity.public(), 0);
    let inherited = DiskInheritance::open(&config.data_dir, &second, &owner).expect("begun");
    assert_eq!(inherited.candidates(input(1)), Ok(vec![tx(1)]));
}

/// What two epochs left on disk is what it is in memory: of two transactions between which an input
/// was, the next epoch voted for one, whose certificates count then.
#[test]
fn an_input_that_was_contested_is_settled_by_the_next_border() {
    let place = Place::new();
    let (won, lost, coin) = (tx(1), tx(2), input(1));
    let weights = place.ended().committee().weights().clone();
    let locks = |reports: &[(u16, TxId)]| -> BTreeMap<ReplicaId, Vec<LockEntry>> {
        reports.iter().map(|(from, tx)| (ReplicaId(*from), vec![(*tx, coin)])).collect()
    };
    let first = [(1, won), (2, lost), (3, won)];
    let folders = first.map(|(from, tx)| place.report(from, &[(tx, coin)]));
    let memory = Inheritance::default().after(&weights, &locks(&first)).expect("a quorum");
    let newcomer = KeyFile::from_seed(place.ended().scheme().keys(), &[78; 32]);
    let config = AuthorityConfig { data_dir: place.folder.path().join("2"), ..place.config(2) };
    let keys = place.identity(2);
    begin(&config, &keys, &place.change, &folders).expect("begins");
    assert_eq!(memory.candidates(coin).map(|both| both.len()), Ok(2));
    let (ended, change) = place.second_change(&newcomer);
    let second = [(0, won), (2, won), (3, won)];
    let of = [place.newcomer.clone(), place.identity(2), place.identity(3)];
    let folders: Vec<PathBuf> = (second.iter().zip(&of))
        .map(|((from, tx), keys)| place.report_of(&ended, &change, (*from, keys), &[(*tx, coin)]))
        .collect();
    let memory = memory.after(&weights, &locks(&second)).expect("a quorum");
    begin(&config, &keys, &change, &folders).expect("begins");
    let third = ended.succeed(&change).expect("signed");
    let owner = owner_of(&third, keys.identity.public(), 0);
    let disk = DiskInheritance::open(&config.data_dir, &third, &owner).expect("whole");
    assert_eq!((memory.admits(won), memory.candidates(coin)), (Ok(true), Ok(vec![won])));
    assert_eq!((disk.admits(won), disk.candidates(coin)), (Ok(true), Ok(vec![won])));
    assert_eq!((disk.admits(lost), memory.admits(lost)), (Ok(false), Ok(false)));
}

/// ★ An honest authority makes one report: forks of a network would each begin with one of two.
#[test]
fn a_shard_is_closed_for_one_change() {
    let place = Place::new();
    let (config, keys) = (place.config(1), place.identity(1));
    let closing = close(&config, &keys, &place.change).expect("closes");
    assert_eq!(close(&config, &keys, &place.change).expect("closed"), closing);
    let error = close(&config, &keys, &place.other_change()).expect_err("it is closed");
    let NodeError::PayEpoch(PayEpochError::Report { reason, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(reason, "this shard was closed for another change, for good");
}

#[test]
fn damage_is_not_taken_for_what_was_inherited() {
    let place = Place::new();
    let folders: Vec<PathBuf> = [1, 2, 3].map(|one| place.report(one, &[])).into();
    place.begin(&folders).expect("a quorum");
    let file = inheritance::layer_folder(&place.config(1).data_dir, place.change.next.epoch);
    let file = file.join("contested");
    let mut bytes = fs::read(&file).expect("written");
    *bytes.last_mut().expect("a number") ^= 1;
    fs::write(&file, bytes).expect("written");
    let found = place.inherited();
    assert!(
        matches!(found, Err(PayEpochError::Storage(StorageError::Corrupt { .. }))),
        "{found:?}"
    );
}

#[test]
fn a_report_for_another_change_or_of_another_authority_is_refused() {
    let place = Place::new();
    let folder = place.report(1, &[]);
    let network = place.ended();
    let opened = ClosedReport::open(&folder, &network).expect("sound");
    assert_eq!(opened.closing().authority, ReplicaId(1));
    let other = place.other_change();
    let error = begin(&place.config(1), &place.identity(1), &other, &[folder]).expect_err("other");
    let NodeError::PayEpoch(PayEpochError::Report { reason, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(reason, "it ends the epoch for another change");
}

#[test]
fn changes_are_read_as_they_are_written_and_followed() {
    let place = Place::new();
    let beside = change_beside(&place.testnet.network, place.change.next.epoch);
    assert!(beside.ends_with("net/network.epoch-2.toml"), "{}", beside.display());
    write_change(&beside, &place.change).expect("written");
    assert_eq!(read_change(&beside).expect("read"), place.change);
    let network = read_network(&place.testnet.network).expect("followed");
    assert_eq!((network.epoch(), network.former_epochs()), (place.change.next.epoch, 1));
    assert!(place.ended().is_founding());
    let mut unsigned = place.change.clone();
    unsigned.signatures.clear();
    write_change(&beside, &unsigned).expect("written");
    let error = read_network(&place.testnet.network).expect_err("signed by nobody");
    assert!(error.to_string().contains("signed by 0 of the present"), "{error}");
}

#[test]
fn every_left_out_rule_is_noticed() {
    assert_noticed(Mutant::PayUnionOfFewer, an_epoch_begins_with_reports_of_a_quorum);
    assert_noticed(Mutant::PayCloseTwice, a_shard_is_closed_for_one_change);
    let entered: fn() = ordered::who_entered_and_forgot_does_not_enter_again;
    assert_noticed(Mutant::PayBeginForgotten, entered);
    assert_noticed(Mutant::PayBeginForgotten, who_lost_everything_begins_under_no_key_of_before);
    assert_noticed(Mutant::PayTrustChunks, a_changed_chunk_is_refused);
    let unsigned: fn() = ordered::a_change_is_followed_if_it_is_signed_and_the_one_that_is_known;
    assert_noticed(Mutant::PayFollowUnsigned, unsigned);
    let unsound: fn() = ordered::what_is_signed_and_no_report_is_told_apart_from_what_was_made_up;
    assert_noticed(Mutant::PayTakeUnsoundChunks, unsound);
    let unordered: fn() = ordered::a_report_that_was_not_ordered_is_not_taken;
    assert_noticed(Mutant::PayBeginWithUnordered, unordered);
    assert_noticed(Mutant::PayBeginWithNothing, what_is_inherited_on_disk_is_what_the_rules_say);
}
