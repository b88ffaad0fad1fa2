use super::*;
use crate::payments::{AuthorityConfig, PayTestnet, PayTestnetPlan, read_network};
use quorate_crypto::mutants::assert_noticed;
use quorate_crypto::{KeyFile, StoredKeys};
use quorate_payments::{AuthorityEntry, NetworkFile};
use quorate_types::DAY_MS;
use std::fs;
use tempfile::TempDir;

const NOW_MS: u64 = 1_800_000_000_000;

/// A network of four in a folder, and what its authorities may sign.
struct Place {
    path: PathBuf,
    keys: Vec<KeyFile>,
    _folder: TempDir,
}

impl Place {
    /// A place whose network file is this old.
    fn aged(days: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = PayTestnetPlan::default();
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan).expect("written");
        let keys = |shards: &Vec<PathBuf>| {
            let config = AuthorityConfig::load(&shards[0]).expect("written");
            match StoredKeys::read(&config.key).expect("a key file") {
                StoredKeys::Open(keys) => keys,
                StoredKeys::Sealed(_) => panic!("a testnet's keys are open"),
            }
        };
        let keys = testnet.configs.iter().map(keys).collect();
        let place = Self { path: testnet.network, keys, _folder: folder };
        let file = File::options().append(true).open(&place.path).expect("there");
        file.set_modified(date(NOW_MS - days * DAY_MS)).expect("dated");
        place
    }

    fn follower(&self) -> NetworkFollower {
        NetworkFollower::open(&self.path).expect("a network")
    }

    /// The change after a network's epoch that replaces an authority by a newcomer of this seed,
    /// signed by the newcomer and these others.
    fn change(&self, replaced: usize, seed: u8, signers: &[usize]) -> Change {
        let network = read_network(&self.path).expect("a network");
        let text = fs::read_to_string(&self.path).expect("written");
        let file: NetworkFile = toml::from_str(&text).expect("written");
        let mut next = file.next_epoch(network.id());
        next.epoch = network.epoch().next();
        let newcomer = KeyFile::from_seed(network.scheme().keys(), &[seed; 32]);
        let addresses = next.authorities[replaced].addresses.clone();
        next.authorities[replaced] = AuthorityEntry::new(&newcomer.public(), addresses);
        let mut change = Change::draft(next);
        change.sign(&network, &newcomer.identity);
        signers.iter().for_each(|one| change.sign(&network, &self.keys[*one].identity));
        change
    }

    fn dated_ms(&self, epoch: u64) -> u64 {
        date_of(&change_beside(&self.path, Epoch(epoch)))
    }
}

fn shown(by: u16, epoch: u64) -> (Epoch, ReplicaId) {
    (Epoch(epoch), ReplicaId(by))
}

/// ★
#[test]
fn a_change_that_enough_signed_is_written_and_followed() {
    let place = Place::aged(3);
    let mut follower = place.follower();
    let few = place.change(0, 77, &[1, 2]);
    let moved = follower.take(shown(0, 1), vec![few], NOW_MS).expect("a liar's");
    assert!(!moved && !change_beside(&place.path, Epoch(2)).exists(), "two of four signed it");
    let change = place.change(0, 77, &[1, 2, 3]);
    assert!(follower.take(shown(0, 1), vec![change.clone()], NOW_MS).expect("it holds"));
    assert_eq!(follower.network().epoch(), Epoch(2));
    assert_eq!(read_network(&place.path).expect("written").epoch(), Epoch(2));
    assert_eq!(place.dated_ms(2), NOW_MS - 3 * DAY_MS, "no newer than what was known");
    // Again, and by another wallet that shares the folder.
    assert!(follower.take(shown(1, 1), vec![change.clone()], NOW_MS).expect("known"));
    assert!(place.follower().take(shown(2, 1), vec![change], NOW_MS).expect("known"));
    let folder = fs::read_dir(place.path.parent().expect("in a folder")).expect("a folder");
    let left = folder.filter(|one| {
        one.as_ref().expect("an entry").file_name().to_string_lossy().ends_with(".new")
    });
    assert_eq!(left.count(), 0, "nothing is left of writing it");
}

#[test]
fn a_wallet_that_was_asleep_for_several_epochs_goes_over_all() {
    let place = Place::aged(3);
    let first = place.change(0, 77, &[1, 2, 3]);
    let mut asleep = place.follower();
    place.follower().take(shown(0, 1), vec![first.clone()], NOW_MS).expect("it holds");
    let mut second = place.change(1, 78, &[2, 3]);
    let network = read_network(&place.path).expect("a network");
    second.next.authorities[0] = first.next.authorities[0].clone();
    let mut second = Change::draft(second.next);
    let keys = |seed| KeyFile::from_seed(network.scheme().keys(), &[seed; 32]).identity;
    [keys(77), keys(78)].iter().for_each(|key| second.sign(&network, key));
    [2, 3].iter().for_each(|one| second.sign(&network, &place.keys[*one].identity));
    fs::remove_file(change_beside(&place.path, Epoch(2))).expect("written");
    assert!(asleep.take(shown(0, 1), vec![first, second], NOW_MS).expect("both hold"));
    assert_eq!(asleep.network().epoch(), Epoch(3));
    assert_eq!(read_network(&place.path).expect("written").epoch(), Epoch(3));
}

/// ★ Keys of long ago may have leaked together. Whoever had a quorum's answers since knows better.
#[test]
fn authorities_of_long_ago_are_not_believed() {
    for (days, is_followed) in [(180, true), (181, false)] {
        let place = Place::aged(days);
        let change = place.change(0, 77, &[1, 2, 3]);
        let taken = place.follower().take(shown(0, 1), vec![change], NOW_MS);
        assert_eq!(taken.is_ok(), is_followed, "{days} days");
        if let Err(error) = taken {
            let words = error.to_string();
            assert!(matches!(error, FollowError::TooOld { age_days: 181, .. }), "{words}");
            assert!(words.contains("network.epoch-2.toml"), "{words}");
        }
        assert_eq!(change_beside(&place.path, Epoch(2)).exists(), is_followed);
    }
    let place = Place::aged(100);
    let mut follower = place.follower();
    (0..3).for_each(|from| drop(follower.take(shown(from, 1), Vec::new(), NOW_MS)));
    assert_eq!(date_of(&place.path), NOW_MS, "a quorum knows of nothing later");
    let change = place.change(0, 77, &[1, 2, 3]);
    let later_ms = NOW_MS + 150 * DAY_MS;
    assert!(place.follower().take(shown(0, 1), vec![change], later_ms).expect("known since"));
}

/// ★ One authority makes no epoch young, nor do those who are not believed any more.
#[test]
fn a_quorum_says_that_an_epoch_is_in_force() {
    let place = Place::aged(100);
    let mut follower = place.follower();
    for from in [0, 1, 1, 0] {
        let moved = follower.take(shown(from, 1), Vec::new(), NOW_MS).expect("nothing is shown");
        assert!(!moved && date_of(&place.path) == NOW_MS - 100 * DAY_MS);
    }
    let place = Place::aged(200);
    let mut follower = place.follower();
    (0..4).for_each(|from| drop(follower.take(shown(from, 1), Vec::new(), NOW_MS)));
    assert_eq!(date_of(&place.path), NOW_MS - 200 * DAY_MS);
}

#[test]
fn of_two_changes_that_hold_the_first_stays() {
    let place = Place::aged(3);
    let (first, second) = (place.change(0, 77, &[1, 2, 3]), place.change(0, 78, &[1, 2, 3]));
    let mut follower = place.follower();
    assert_eq!(follower.request(), WalletRequest::Changes { after: Epoch(1) });
    follower.take(shown(0, 1), vec![first.clone()], NOW_MS).expect("it holds");
    assert_eq!(follower.request(), WalletRequest::Changes { after: Epoch(1) }, "once more");
    for changes in [vec![second], vec![first.clone()]] {
        let refused = follower.take(shown(1, 2), changes, NOW_MS).expect_err("a fork");
        assert!(matches!(refused, FollowError::Forked { epoch: Epoch(2), .. }), "{refused}");
    }
    let network = read_network(&place.path).expect("written");
    assert_eq!(network.committee().find(&place.keys[0].identity.public()), None);
    let text = fs::read_to_string(change_beside(&place.path, Epoch(2))).expect("written");
    assert!(text.contains(&first.next.authorities[0].identity), "the first one");
}

#[test]
fn every_left_out_rule_is_noticed() {
    for (mutant, test) in [
        (Mutant::PayFollowUnsigned, a_change_that_enough_signed_is_written_and_followed as fn()),
        (Mutant::PayFollowForEver, authorities_of_long_ago_are_not_believed),
        (Mutant::PayConfirmByFewer, a_quorum_says_that_an_epoch_is_in_force),
    ] {
        assert_noticed(mutant, test);
    }
}
