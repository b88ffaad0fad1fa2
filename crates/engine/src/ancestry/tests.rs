use super::{Ancestry, CHAIN_BYTES_MAX, Truncation};
use crate::testing::body;
use bytes::Bytes;
use quorate_types::{Height, ReplicaId};

/// An ancestry of three members with blocks up to this height, one body each.
fn ancestry(truncation: Truncation, heights: u64) -> Ancestry {
    let mut ancestry = Ancestry::new(truncation, 3);
    for height in 1..=heights {
        let record = Bytes::from(height.to_le_bytes().to_vec());
        ancestry.decided(Height(height), record, vec![body(0, height, 30)]);
    }
    ancestry
}

fn first_and_count(ancestry: &mut Ancestry) -> (u64, usize, usize) {
    let (first, records, bodies) = ancestry.cut();
    (first.0, records.len(), bodies.len())
}

#[test]
fn everything_travels_when_nothing_is_cut() {
    let mut whole = ancestry(Truncation::Off, 9);
    whole.learn(&[Height(7); 3]);
    assert_eq!(first_and_count(&mut whole), (1, 9, 9));
    assert!(whole.precedes(false) && whole.heights().is_empty());
    let ids = Ancestry::new(Truncation::Ids, 3);
    assert!(!ids.travels() && !ids.precedes(true));
}

#[test]
fn what_everybody_executed_is_cut() {
    let mut ancestry = ancestry(Truncation::Heights, 9);
    assert!(ancestry.precedes(true) && !ancestry.precedes(false));
    ancestry.learn(&[Height(4), Height(6), Height(0)]);
    assert_eq!(first_and_count(&mut ancestry), (1, 9, 9), "one of them may have nothing");
    ancestry.executed(ReplicaId(2), Height(5));
    assert_eq!(first_and_count(&mut ancestry), (5, 5, 5));
    // Nobody unlearns, and what somebody else heard counts.
    ancestry.learn(&[Height(8), Height(2), Height(8)]);
    assert_eq!(ancestry.heights(), [Height(8), Height(6), Height(8)]);
    assert_eq!(first_and_count(&mut ancestry), (7, 3, 3));
}

#[test]
fn memory_and_frames_are_bounded() {
    let mut ancestry = Ancestry::new(Truncation::Off, 3);
    let record = Bytes::from(vec![0; CHAIN_BYTES_MAX / 4]);
    for height in 1..=9 {
        ancestry.decided(Height(height), record.clone(), Vec::new());
    }
    assert_eq!(first_and_count(&mut ancestry), (6, 4, 0), "the newest that fit");
}

#[test]
fn a_gap_begins_a_new_chain() {
    let mut ancestry = ancestry(Truncation::Off, 4);
    ancestry.decided(Height(9), Bytes::from_static(b"after a snapshot"), Vec::new());
    assert_eq!(first_and_count(&mut ancestry), (9, 1, 0));
}
