use super::*;
use std::collections::{BTreeMap, BTreeSet};

const EPOCH: Epoch = Epoch(1);

#[test]
fn collectors_are_distinct_and_the_primary_is_last() {
    for members in [1, 2, 4, 6, 9, 209] {
        for redundancy in [0, 1, 2, 8] {
            for slot in 1..50 {
                let (view, slot) = (View(slot % 7), Height(slot));
                let drawn = collectors(EPOCH, view, slot, members, redundancy);
                let expected = (members - 1).min(redundancy as usize + 1) + 1;
                assert_eq!(drawn.len(), expected, "{members} {redundancy}");
                assert_eq!(drawn.last(), Some(&primary(view, members)));
                let mut sorted = drawn.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), drawn.len());
            }
        }
    }
}

#[test]
fn everybody_but_the_primary_is_first_about_as_often() {
    let mut first: BTreeMap<ReplicaId, u32> = BTreeMap::new();
    for slot in 0..7_000 {
        let drawn = collectors(EPOCH, View(0), Height(slot), 8, 1);
        *first.entry(drawn[0]).or_default() += 1;
    }
    assert!(!first.contains_key(&ReplicaId(0)));
    assert_eq!(first.len(), 7);
    assert!(first.values().all(|count| (850..1_150).contains(count)), "{first:?}");
}

/// All members must draw the same.
#[test]
fn golden_draws() {
    let drawn = |view, slot| {
        collectors(EPOCH, View(view), Height(slot), 7, 1)
            .into_iter()
            .map(|m| m.0)
            .collect::<Vec<_>>()
    };
    assert_eq!([drawn(1, 1), drawn(1, 2), drawn(2, 1)], GOLDEN);
}

const GOLDEN: [[u16; 3]; 3] = [[5, 0, 1], [3, 0, 1], [5, 3, 2]];

/// Paper 002, E-collectors: drawn for each height, and the leader last, whoever that is.
#[test]
fn execution_collectors_are_drawn_for_each_height() {
    for members in [1, 2, 4, 9] {
        for height in 1..50 {
            let leader = ReplicaId(u16::try_from(height).expect("few") % members);
            let members = usize::from(members);
            let drawn = execution_collectors(EPOCH, Height(height), members, 1, leader);
            assert_eq!(drawn.len(), (members - 1).min(2) + 1, "{members}");
            assert_eq!(drawn.last(), Some(&leader));
            let distinct: BTreeSet<&ReplicaId> = drawn.iter().collect();
            assert_eq!(distinct.len(), drawn.len());
        }
    }
    let drawn = |height| execution_collectors(EPOCH, Height(height), 7, 1, ReplicaId(1));
    let firsts: BTreeSet<ReplicaId> = (1..100).map(|height| drawn(height)[0]).collect();
    assert_eq!(firsts.len(), 6, "everybody but the leader");
}

/// A redundancy beyond all members draws all of them.
#[test]
fn no_more_are_drawn_than_there_are() {
    assert_eq!(collectors(EPOCH, View(1), Height(1), 4, u64::MAX).len(), 4);
}
