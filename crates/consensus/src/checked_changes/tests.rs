use super::*;
use quorate_crypto::hash;

const SIGNER: ReplicaId = ReplicaId(2);

fn name(number: u64) -> ChangeName {
    (SIGNER, hash(&number.to_le_bytes()))
}

fn begin(changes: &mut CheckedChanges, number: u64) -> Option<Result<(), Rejected>> {
    changes.begin(View(1), View(2), name(number))
}

#[test]
fn what_was_checked_is_known() {
    let mut changes = CheckedChanges::default();
    assert_eq!(begin(&mut changes, 1), None);
    assert_eq!(begin(&mut changes, 1), None, "the check is under way");
    changes.end(name(1), Ok(()));
    assert_eq!(begin(&mut changes, 1), Some(Ok(())));
    assert_eq!(begin(&mut changes, 2), None);
    changes.end(name(2), Err(Rejected::BelowThreshold));
    assert_eq!(begin(&mut changes, 2), Some(Err(Rejected::BelowThreshold)));
}

/// A member that sends ever different ones has few of them checked; others lose nothing by it.
#[test]
fn few_of_each_member_are_checked() {
    let mut changes = CheckedChanges::default();
    let checked = (0..10_000).filter(|number| begin(&mut changes, *number).is_none());
    assert_eq!(checked.count(), CHANGES_MAX);
    let other = (ReplicaId(3), name(1).1);
    assert_eq!(changes.begin(View(1), View(2), other), None);
    assert_eq!(changes.of[&SIGNER].len(), CHANGES_MAX);
}

#[test]
fn those_that_a_new_view_names_are_checked() {
    let mut changes = CheckedChanges::default();
    for number in 0..1_000 {
        begin(&mut changes, number);
        changes.want(BTreeSet::from([name(10_000 + number)]));
        assert_eq!(begin(&mut changes, 10_000 + number), None);
        assert!(changes.of[&SIGNER].len() <= 2 * CHANGES_MAX);
    }
    assert_eq!(begin(&mut changes, 20_000), Some(Err(Rejected::TooFarAhead)));
}

#[test]
fn views_that_are_over_count_no_more() {
    let mut changes = CheckedChanges::default();
    (0..100).for_each(|number| drop(begin(&mut changes, number)));
    assert!(begin(&mut changes, 100).is_some());
    assert_eq!(changes.begin(View(3), View(3), name(100)), None);
    assert_eq!(changes.of[&SIGNER].len(), 1);
}

/// Those that are checked for a new view take nothing from what is known, up to as many again.
#[test]
fn what_a_new_view_names_leaves_the_others_known() {
    let mut changes = CheckedChanges::default();
    let few = CHANGES_MAX as u64;
    for number in 0..2 * few {
        changes.want(BTreeSet::from([name(number)]));
        assert_eq!(begin(&mut changes, number), None);
        changes.end(name(number), Ok(()));
    }
    for number in 0..2 * few {
        assert_eq!(begin(&mut changes, number), Some(Ok(())), "{number}");
    }
    changes.want(BTreeSet::from([name(2 * few)]));
    assert_eq!(begin(&mut changes, 2 * few), None);
    assert_eq!(begin(&mut changes, 0), Some(Err(Rejected::TooFarAhead)), "the oldest made room");
    assert_eq!(begin(&mut changes, 1), Some(Ok(())));
}
