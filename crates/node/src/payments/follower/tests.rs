//! What a shard does of the order.

use super::*;
use crate::payments::{PayTestnet, PayTestnetPlan, read_network, read_network_file};
use quorate_crypto::mutants::assert_noticed;
use quorate_crypto::{IdentityKey, IdentitySecret, KeyFile, hash};
use quorate_payments::change::Change;
use quorate_payments::release::{Decision, Held};
use quorate_payments::{AuthorityEntry, NetworkFile, TxId};

const ME: ReplicaId = ReplicaId(1);

fn network() -> Arc<Network> {
    file().1
}

/// A network of two shards, and its file.
fn file() -> (NetworkFile, Arc<Network>) {
    let folder = tempfile::tempdir().unwrap();
    let plan = PayTestnetPlan { shards: 2, ..PayTestnetPlan::default() };
    let testnet = PayTestnet::create(&folder.path().join("net"), &plan).unwrap();
    let network = Arc::new(read_network(&testnet.network).unwrap());
    (read_network_file(&testnet.network, network.epoch()).unwrap(), network)
}

/// Somebody whom this shard votes for.
fn owner(network: &Network, shard: u16) -> IdentityKey {
    let keys = (0..).map(|seed| IdentitySecret::from_seed([seed; 32]).public());
    keys.take(64).find(|key| network.shard_of(key) == shard).expect("one of many")
}

fn coin(number: u8) -> OutputId {
    OutputId { tx: TxId(hash(&[number])), index: 0 }
}

fn decide(decided: Decided) -> Ordered {
    Ordered::Release(release::Ordered::Decided(decided))
}

fn report(network: &Network, coin: OutputId) -> Report {
    Report::sign(network, &IdentitySecret::from_seed([9; 32]), ME, coin, Held::Free)
}

fn freeze(owner: IdentityKey, coins: &[u8]) -> Ordered {
    let coins = coins.iter().copied().map(coin).collect();
    Ordered::Release(release::Ordered::Freeze { owner, coins })
}

#[test]
fn what_is_ordered_goes_to_the_authority_and_ends_its_reports() {
    let network = network();
    let mut follower = Follower::new(&network, ME, 0);
    let frozen = follower.take(freeze(owner(&network, 0), &[1, 2]));
    assert!(matches!(frozen, Some(AuthorityEvent::Freeze(coins)) if coins == [coin(1), coin(2)]));
    follower.on_report(report(&network, coin(1)));
    follower.on_report(report(&network, coin(2)));
    assert_eq!(follower.reports.len(), 2);
    let decided = vec![(coin(1), Decision::Refund), (coin(7), Decision::Refund)];
    let told = follower.take(decide(decided.clone()));
    assert!(matches!(told, Some(AuthorityEvent::Decided(own)) if own == decided[..1]));
    assert_eq!(follower.reports.keys().collect::<Vec<_>>(), [&coin(2)]);
    assert_eq!(follower.next, 2);
    follower.on_report(report(&network, coin(1)));
    assert_eq!(follower.reports.len(), 1, "it has ended");
    assert!(follower.take(decide(decided)).is_none());
}

/// ★ It does not know what another shard has locked for that shard's owners.
#[test]
fn a_shard_reports_nothing_of_another_shards_owners() {
    let network = network();
    let mut follower = Follower::new(&network, ME, 0);
    assert!(follower.take(freeze(owner(&network, 1), &[1])).is_none());
    follower.on_report(report(&network, coin(1)));
    assert!(follower.reports.is_empty());
    assert!(follower.take(decide(vec![(coin(1), Decision::Refund)])).is_none());
    assert_eq!(follower.next, 2, "its number is taken all the same");
}

#[test]
fn a_report_that_was_counted_is_of_no_use_any_more() {
    let network = network();
    let follower = Follower::new(&network, ME, 0);
    let mut standing = Standing { epoch: network.epoch(), ..Standing::default() };
    standing.reports.insert(ReplicaId(0), None);
    assert!(!follower.is_counted(standing.clone()));
    standing.reports.insert(ME, None);
    assert!(follower.is_counted(standing.clone()));
    let former = Standing { epoch: Epoch(0), ..standing };
    assert!(!follower.is_counted(former), "it is of an epoch that ended");
    let decided = Standing { decision: Some(Decision::Refund), ..Standing::default() };
    assert!(follower.is_counted(decided), "it holds for ever");
}

/// A change by which the first authority gets new keys, and the network after it.
fn next_of(file: &NetworkFile, network: &Network) -> (Change, Arc<Network>) {
    let mut next = file.next_epoch(network.id());
    let keys = KeyFile::from_seed(network.scheme().keys(), &[77; 32]);
    let addresses = next.authorities[0].addresses.clone();
    next.authorities[0] = AuthorityEntry::new(&keys.public(), addresses);
    let loaded = network.load_next(&next).expect("a sound file");
    (Change::draft(next), Arc::new(loaded))
}

/// ★ Of what was ordered before its epoch an authority of the epoch knows nothing: it would report
/// coins as free that its predecessors had locked, or that were decided for.
#[test]
fn what_was_ordered_in_another_epoch_is_not_for_this_one() {
    let (file, founding) = file();
    let (change, next) = next_of(&file, &founding);
    let owner = owner(&founding, 0);
    let mut follower = Follower::new(&next, ME, 0);
    let change = || Ordered::Change(ChangeStep::Change(Box::new(change.clone())));
    let decided = vec![(coin(1), Decision::Refund)];
    assert!(follower.take(freeze(owner, &[1])).is_none());
    assert!(follower.take(decide(decided)).is_none());
    assert!(follower.take(change()).is_none(), "it begins this epoch, and ends none");
    let frozen = follower.take(freeze(owner, &[2]));
    assert!(matches!(frozen, Some(AuthorityEvent::Freeze(coins)) if coins == [coin(2)]));

    let mut former = Follower::new(&founding, ME, 0);
    assert!(former.take(freeze(owner, &[1])).is_some());
    former.on_report(report(&founding, coin(1)));
    let ended = former.take(change());
    assert!(matches!(ended, Some(AuthorityEvent::Close(_))), "{ended:?}");
    assert!(former.reports.is_empty(), "its release ended with the epoch");
    assert!(former.take(freeze(owner, &[2])).is_none());
}

/// Each shard says once what it locked, and that it votes, and again until it is ordered.
#[test]
fn a_border_is_told_until_it_is_ordered() {
    let (file, founding) = file();
    let (change, next) = next_of(&file, &founding);
    let identity = IdentitySecret::from_seed([9; 32]);
    let mut former = Follower::new(&founding, ME, 0);
    assert_eq!(former.border_step(&identity), None);
    former.take(Ordered::Change(ChangeStep::Change(Box::new(change.clone()))));
    let digest = change.next.digest();
    let of_shard = |shard| Closing::sign(&founding, &identity, (ME, shard), digest, (0, &[]));
    former.closing = Some(of_shard(0));
    let told = Some(ChangeStep::Closing(of_shard(0)));
    assert_eq!(former.border_step(&identity), told);
    former.take(Ordered::Change(ChangeStep::Closing(of_shard(1))));
    assert_eq!(former.border_step(&identity), told, "that was the other shard's");
    former.take(Ordered::Change(ChangeStep::Closing(of_shard(0))));
    assert_eq!(former.border_step(&identity), None);

    let mut follower = Follower::new(&next, ME, 0);
    assert_eq!(follower.border_step(&identity), None, "its epoch has not begun in the order");
    follower.take(Ordered::Change(ChangeStep::Change(Box::new(change))));
    let entered = Entered::sign(&next, &identity, (ME, 0));
    assert_eq!(follower.border_step(&identity), Some(ChangeStep::Entered(entered)));
    follower.take(Ordered::Change(ChangeStep::Entered(entered)));
    assert_eq!(follower.border_step(&identity), None);
}

#[test]
fn broken_rules_are_noticed() {
    let former: fn() = what_was_ordered_in_another_epoch_is_not_for_this_one;
    assert_noticed(Mutant::PayFollowFormerEpoch, former);
    assert_noticed(Mutant::PayReportOfOtherShard, a_shard_reports_nothing_of_another_shards_owners);
}
