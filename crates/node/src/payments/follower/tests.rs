//! What a shard does of the order.

use super::*;
use crate::payments::{PayTestnet, PayTestnetPlan, read_network};
use quorate_crypto::mutants::assert_noticed;
use quorate_crypto::{IdentityKey, IdentitySecret, hash};
use quorate_payments::TxId;
use quorate_payments::release::{Decision, Held};

const ME: ReplicaId = ReplicaId(1);

/// A network of two shards.
fn network() -> Arc<Network> {
    let folder = tempfile::tempdir().unwrap();
    let plan = PayTestnetPlan { shards: 2, ..PayTestnetPlan::default() };
    let testnet = PayTestnet::create(&folder.path().join("net"), &plan).unwrap();
    Arc::new(read_network(&testnet.network).unwrap())
}

/// Somebody whom this shard votes for.
fn owner(network: &Network, shard: u16) -> IdentityKey {
    let keys = (0..).map(|seed| IdentitySecret::from_seed([seed; 32]).public());
    keys.take(64).find(|key| network.shard_of(key) == shard).expect("one of many")
}

fn coin(number: u8) -> OutputId {
    OutputId { tx: TxId(hash(&[number])), index: 0 }
}

fn report(network: &Network, coin: OutputId) -> Report {
    Report::sign(network, &IdentitySecret::from_seed([9; 32]), ME, coin, Held::Free)
}

fn freeze(owner: IdentityKey, coins: &[u8]) -> Ordered {
    Ordered::Freeze { owner, coins: coins.iter().copied().map(coin).collect() }
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
    let told = follower.take(Ordered::Decided(decided.clone()));
    assert!(matches!(told, Some(AuthorityEvent::Decided(own)) if own == decided[..1]));
    assert_eq!(follower.reports.keys().collect::<Vec<_>>(), [&coin(2)]);
    assert_eq!(follower.next, 2);
    follower.on_report(report(&network, coin(1)));
    assert_eq!(follower.reports.len(), 1, "it has ended");
    assert!(follower.take(Ordered::Decided(decided)).is_none());
}

/// ★ It does not know what another shard has locked for that shard's owners.
#[test]
fn a_shard_reports_nothing_of_another_shards_owners() {
    let network = network();
    let mut follower = Follower::new(&network, ME, 0);
    assert!(follower.take(freeze(owner(&network, 1), &[1])).is_none());
    follower.on_report(report(&network, coin(1)));
    assert!(follower.reports.is_empty());
    assert!(follower.take(Ordered::Decided(vec![(coin(1), Decision::Refund)])).is_none());
    assert_eq!(follower.next, 2, "its number is taken all the same");
}

#[test]
fn a_report_that_was_counted_is_of_no_use_any_more() {
    let network = network();
    let follower = Follower::new(&network, ME, 0);
    let mut standing = Standing::default();
    standing.reports.insert(ReplicaId(0), None);
    assert!(!follower.is_counted(&standing));
    standing.reports.insert(ME, None);
    assert!(follower.is_counted(&standing));
    let decided = Standing { decision: Some(Decision::Refund), ..Standing::default() };
    assert!(follower.is_counted(&decided));
}

#[test]
fn broken_rules_are_noticed() {
    assert_noticed(Mutant::PayReportOfOtherShard, a_shard_reports_nothing_of_another_shards_owners);
}
