//! What is known of both logs' content: from where on it is whole, and what a segment still needs.

use super::*;
use crate::journal::index::Index;
use crate::journal::recover::contiguous_down;
use crate::log::{Location, Segment};

/// Some segment: whose it is does not matter here.
fn segment() -> Segment {
    let (journal, _) = open(&MemoryDisk::new()).expect("opened");
    journal.records.segment().clone()
}

fn at(segment: u64) -> Location {
    Location { segment, offset: 0, bytes: 1 }
}

#[test]
fn what_is_kept_begins_after_the_last_gap() {
    let (mut index, segment) = (Index::default(), segment());
    for (height, oldest) in [(3, 3), (4, 3), (7, 7), (8, 7), (7, 7)] {
        index.add_decided(&segment, Height(height), at(1));
        assert_eq!(index.oldest(), Height(oldest), "after {height}");
    }
    let decided = |heights: &[u64]| heights.iter().map(|height| (Height(*height), ())).collect();
    assert_eq!(contiguous_down(&decided(&[1, 3, 5, 6, 7])), Height(5));
    assert_eq!(contiguous_down(&decided(&[4])), Height(4));
    assert_eq!(contiguous_down(&decided(&[])), Height(0));
}

/// ★ A segment may go once everything in it is released: heights below the one that is named.
#[test]
fn a_segment_is_free_below_its_highest_height_alone() {
    let (mut index, segment) = (Index::default(), segment());
    let body = body(1, b"body").reference;
    index.add_decided(&segment, Height(5), at(1));
    index.add_body(&segment, body, at(1));
    assert_eq!(index.bodies_in(1, Height(9)), (Height(0), false), "it is live");
    index.release(Height(5), &[body]);
    for (below, is_free) in [(5, false), (6, true)] {
        assert_eq!(index.records_in(1, Height(below)), (Height(5), is_free), "{below}");
        assert_eq!(index.bodies_in(1, Height(below)), (Height(5), is_free), "{below}");
    }
}

#[test]
fn what_was_pruned_is_forgotten_unless_a_later_segment_has_it() {
    let (mut index, segment) = (Index::default(), segment());
    for (height, number) in [(1, 1), (2, 1), (3, 2), (2, 2), (4, 2)] {
        index.add_decided(&segment, Height(height), at(number));
    }
    index.drop_records(2);
    let kept: Vec<u64> = index.decided.keys().map(|height| height.0).collect();
    assert_eq!((kept, index.oldest()), (vec![2, 3, 4], Height(2)));
    assert_eq!(index.record_segments.keys().copied().collect::<Vec<_>>(), [2]);
    index.drop_records(2);
    assert_eq!(index.decided.len(), 3, "once");
}
