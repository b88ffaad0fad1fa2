use super::{CHAIN_BYTES_MAX, ChainPiggyback, Truncation};
use crate::testing::body;
use bytes::Bytes;
use quorate_types::{Height, ReplicaId};

/// A piggyback of three members with blocks up to this height, one body each.
fn piggyback(truncation: Truncation, heights: u64) -> ChainPiggyback {
    let mut piggyback = ChainPiggyback::new(truncation, 3);
    for height in 1..=heights {
        let record = Bytes::from(height.to_le_bytes().to_vec());
        piggyback.decided(Height(height), record, vec![body(0, height, 30)]);
    }
    piggyback
}

fn first_and_count(piggyback: &mut ChainPiggyback) -> (u64, usize, usize) {
    let (first, records, bodies) = piggyback.cut();
    (first.0, records.len(), bodies.len())
}

#[test]
fn everything_travels_when_nothing_is_cut() {
    let mut whole = piggyback(Truncation::Off, 9);
    whole.learn(&[Height(7); 3]);
    assert_eq!(first_and_count(&mut whole), (1, 9, 9));
    assert!(whole.precedes(false) && whole.heights().is_empty());
    let ids = ChainPiggyback::new(Truncation::Ids, 3);
    assert!(!ids.travels() && !ids.precedes(true));
}

#[test]
fn what_everybody_executed_is_cut() {
    let mut piggyback = piggyback(Truncation::Heights, 9);
    assert!(piggyback.precedes(true) && !piggyback.precedes(false));
    piggyback.learn(&[Height(4), Height(6), Height(0)]);
    assert_eq!(first_and_count(&mut piggyback), (1, 9, 9), "one of them may have nothing");
    piggyback.executed(ReplicaId(2), Height(5));
    assert_eq!(first_and_count(&mut piggyback), (5, 5, 5));
    // Nobody unlearns, and what somebody else heard counts.
    piggyback.learn(&[Height(8), Height(2), Height(8)]);
    assert_eq!(piggyback.heights(), [Height(8), Height(6), Height(8)]);
    assert_eq!(first_and_count(&mut piggyback), (7, 3, 3));
}

#[test]
fn memory_and_frames_are_bounded() {
    let mut piggyback = ChainPiggyback::new(Truncation::Off, 3);
    let record = Bytes::from(vec![0; CHAIN_BYTES_MAX / 4]);
    for height in 1..=9 {
        piggyback.decided(Height(height), record.clone(), Vec::new());
    }
    assert_eq!(first_and_count(&mut piggyback), (6, 4, 0), "the newest that fit");
}

#[test]
fn a_gap_begins_a_new_chain() {
    let mut piggyback = piggyback(Truncation::Off, 4);
    piggyback.decided(Height(9), Bytes::from_static(b"after a snapshot"), Vec::new());
    assert_eq!(first_and_count(&mut piggyback), (9, 1, 0));
}
