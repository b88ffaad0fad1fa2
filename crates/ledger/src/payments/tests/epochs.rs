//! Changes of authorities in the order, and releases over them.

use super::*;
use quorate_payments::change::{Change, ChangeStep, Closing, Entered};

/// The change by which an authority is replaced by another, and the network that it leads to.
fn replace(network: &Network, file: &NetworkFile, leaves: u8, comes: u8) -> (Step, Network) {
    let mut next = file.next_epoch(network.id());
    let entry = &mut next.authorities[usize::from(leaves)];
    *entry = AuthorityEntry::new(&authority(comes).public(), entry.addresses.clone());
    let mut change = Change::draft(next);
    let is_present =
        |one: &u8| network.committee().find(&authority(*one).identity.public()).is_some();
    let signers = (0..10).filter(is_present).chain([comes]);
    signers.for_each(|one| change.sign(network, &authority(one).identity));
    let next = network.succeed(&change).expect("all have signed");
    (Step::Change(ChangeStep::Change(Box::new(change))), next)
}

fn closing(ended: &Network, from: u8, step: &Step) -> Step {
    let Step::Change(ChangeStep::Change(change)) = step else { panic!("a change: {step:?}") };
    let (place, next) = ((ReplicaId(from.into()), 0), change.next.digest());
    let closing = Closing::sign(ended, &authority(from).identity, place, next, (0, &[]));
    Step::Change(ChangeStep::Closing(closing))
}

fn entered(network: &Network, place: u16, from: u8) -> Step {
    let place = (ReplicaId(place), 0);
    let entered = Entered::sign(network, &authority(from).identity, place);
    Step::Change(ChangeStep::Entered(entered))
}

fn refused(reason: &str) -> Result<Decided, String> {
    Err(reason.to_owned())
}

const DONE: Result<Decided, String> = Ok(Vec::new());

#[test]
pub(super) fn a_change_is_ordered_with_its_reports_and_ends_when_the_next_epoch_begins() {
    let founding = network();
    let mut replica = Replica::new(&founding);
    let (change, next) = replace(&founding, &file(), 0, 9);
    let (other, _) = replace(&founding, &file(), 1, 9);
    let early = "no change of the authorities was ordered";
    assert_eq!(replica.step(&closing(&founding, 1, &change)), refused(early));
    assert_eq!(replica.step(&entered(&next, 0, 9)), refused(early));
    assert_eq!(replica.step(&change), DONE);
    assert!(replica.step(&other).is_err(), "the first one is the one");
    let closings: Vec<Step> = (1..4).map(|one| closing(&founding, one, &change)).collect();
    assert_eq!(replica.execute(&closings), [DONE, DONE, DONE]);
    let again = "this authority reported the shard's locks before";
    assert_eq!(replica.step(&closings[0]), refused(again));
    assert_eq!(
        replica.step(&closing(&founding, 0, &other)),
        refused("no change to this network file was ordered")
    );

    let Step::Change(ChangeStep::Change(begun)) = &change else { panic!("a change") };
    let (later, third) = replace(&next, &begun.next, 1, 8);
    let waits = "epoch 2 has not begun: its authorities change once a quorum of them votes in it";
    assert_eq!(replica.step(&later), refused(waits));
    let entries = [entered(&next, 0, 9), entered(&next, 1, 1), entered(&next, 2, 2)];
    assert_eq!(replica.execute(&entries), [DONE, DONE, DONE]);
    assert!(replica.step(&entered(&next, 3, 2)).is_err(), "another's key");
    assert_eq!(replica.reopened_root(), replica.root());
    assert_eq!(replica.step(&later), DONE);
    assert_eq!(replica.step(&entered(&third, 0, 9)), DONE);
    let ordered = replica.ordered(0, 100).expect("numbered");
    let changes =
        ordered.iter().filter(|one| matches!(one, Ordered::Change(ChangeStep::Change(_))));
    assert_eq!((ordered.len(), changes.count()), (9, 2));
}

/// ★ Keys of an epoch that ended may leak once nobody needs them.
#[test]
pub(super) fn a_report_of_an_epoch_counts_until_the_next_has_begun() {
    let founding = network();
    let mut replica = Replica::new(&founding);
    let (change, next) = replace(&founding, &file(), 0, 9);
    assert_eq!(replica.step(&change), DONE);
    let closings: Vec<Step> = (1..4).map(|one| closing(&founding, one, &change)).collect();
    assert_eq!(replica.execute(&closings), [DONE, DONE, DONE]);
    let entries = [entered(&next, 0, 9), entered(&next, 1, 1)];
    assert_eq!(replica.execute(&entries), [DONE, DONE]);
    let late = closing(&founding, 0, &change);
    let begun = entered(&next, 2, 2);
    let too_late = "epoch 2 has begun: reports of the one before come too late";
    assert_eq!(replica.execute(&[begun, late])[1], refused(too_late));
}

/// A replica that begins with the state of another follows its epochs.
#[test]
fn a_state_that_is_opened_says_which_epoch_is_in_force() {
    let founding = network();
    let mut replica = Replica::new(&founding);
    let (change, next) = replace(&founding, &file(), 0, 9);
    assert_eq!(replica.step(&change), DONE);
    let admission = replica.service.admission().expect("one");
    replica.service = ReleaseService::new(Arc::clone(&founding));
    let state = replica.store.begin().unwrap();
    replica.service.open(&*state).unwrap();
    drop(state);
    let client = ClientId(secret(1).public());
    let step = Bytes::from(entered(&next, 0, 9).encode());
    let operation = || Operation { client, bytes: &step };
    assert_eq!(replica.service.admit(operation()), Ok(()));
    assert_eq!(admission.judge(operation()), Ok(()), "who judged before knows it too");
}

/// ★ What a coin was locked for at authorities of one epoch, those of the next are asked anew.
#[test]
pub(super) fn reports_of_an_epoch_end_with_it() {
    let founding = network();
    let mut replica = Replica::new(&founding);
    let coin = coins(&founding, MALLORY)[..1].to_vec();
    let first = freeze(&founding, MALLORY, &coin);
    let held = |network: &Network, from| report(network, from, coin[0].id, Held::Free);
    assert_eq!(
        replica.execute(&[first.clone(), held(&founding, 1), held(&founding, 2)]),
        [DONE, DONE, DONE]
    );
    let (change, next) = replace(&founding, &file(), 0, 9);
    assert_eq!(replica.step(&change), DONE);
    let stale = "the report is not signed by an authority of this network";
    assert_eq!(replica.step(&held(&founding, 3)), refused(stale));
    assert_eq!(replica.step(&held(&next, 3)), refused("the coin is not frozen"), "in this epoch");
    assert_eq!(replica.step(&first), DONE);
    for from in [1, 2] {
        assert_eq!(replica.step(&held(&next, from)), DONE);
    }
    let decided = vec![(coin[0].id, Decision::Refund)];
    assert_eq!(replica.step(&held(&next, 3)), Ok(decided.clone()));
    let standing = replica.standing(coin[0].id);
    assert_eq!((standing.epoch, standing.reports.len()), (Epoch(2), 3));
    let freezes = replica.ordered(0, 100).expect("numbered");
    let freezes = freezes
        .iter()
        .filter(|one| matches!(one, Ordered::Release(release::Ordered::Freeze { .. })));
    assert_eq!(freezes.count(), 2, "authorities of the next epoch are told too");
}

/// What one epoch left undecided takes no room in the next, and what it decided stays so.
#[test]
fn an_owners_room_is_its_own_again_in_the_next_epoch() {
    let founding = network();
    let mut replica = Replica::new(&founding);
    let hoard = coins(&founding, HOARDER);
    let (most, rest) = hoard.split_at(UNDECIDED_MAX as usize);
    for coins in most.chunks(Freeze::COINS_MAX) {
        assert_eq!(replica.step(&freeze(&founding, HOARDER, coins)), DONE);
    }
    let decided = (0..3).map(|from| report(&founding, from, most[0].id, Held::Free));
    let decided: Vec<Step> = decided.collect();
    assert!(replica.execute(&decided)[2].as_ref().is_ok_and(|decided| decided.len() == 1));
    let (change, _) = replace(&founding, &file(), 0, 9);
    assert_eq!(replica.step(&change), DONE);
    let before = replica.ordered(0, 100).expect("numbered").len();
    assert_eq!(replica.step(&freeze(&founding, HOARDER, &most[..1])), DONE);
    assert_eq!(replica.ordered(0, 100).expect("numbered").len(), before, "it is decided");
    assert_eq!(replica.step(&freeze(&founding, HOARDER, rest)), DONE);
}
