use super::*;
use quorate_crypto::mutants::assert_noticed;
use tempfile::TempDir;

fn open_in(folder: &TempDir, network: u8) -> Mark {
    let key = folder.path().join("key.toml");
    Mark::beside(&key, (NetworkId([network; 32]), 2), Durability::Fsync).expect("opens")
}

fn open(folder: &TempDir) -> Mark {
    open_in(folder, 1)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// As an authority begins: the operator's word, then what was found.
fn start(mark: &Mark, start: Start, found: Option<u64>) -> Result<(), NodeError> {
    mark.check_start(start, found.is_some(), Path::new("data"))?;
    mark.check(found.unwrap_or(0))
}

#[test]
fn fewer_locks_than_marked_are_refused() {
    let folder = folder();
    open(&folder).begin(7).expect("writes");
    for found in [7, 8] {
        assert!(start(&open(&folder), Start::Again, Some(found)).is_ok());
    }
    for found in [Some(6), Some(0), None] {
        let refused = start(&open(&folder), Start::Again, found);
        let Err(NodeError::LocksLost { marked: 7, found: counted, .. }) = refused else {
            panic!("{found:?}: {refused:?}")
        };
        assert_eq!(counted, found.unwrap_or(0));
    }
    std::fs::write(open(&folder).slots.path(), "seven").expect("writes");
    let refused = start(&open(&folder), Start::Again, Some(7));
    assert!(matches!(refused, Err(NodeError::LocksLost { .. })), "not our writing: {refused:?}");
}

/// ★ With mark and locks both gone, nobody but the operator knows.
#[test]
fn the_first_start_is_the_operators_word() {
    let folder = folder();
    let refused = start(&open(&folder), Start::Again, None);
    assert!(matches!(refused, Err(NodeError::NeverStarted { .. })), "{refused:?}");
    assert!(start(&open(&folder), Start::First, None).is_ok());
    assert!(start(&open(&folder), Start::Again, Some(5)).is_ok(), "the mark alone is gone");
    let again = start(&open(&folder), Start::First, Some(5));
    assert!(matches!(again, Err(NodeError::StartedBefore { .. })), "{again:?}");
    open(&folder).begin(0).expect("writes");
    assert!(start(&open(&folder), Start::Again, None).is_ok(), "new keys, and their mark");
    let again = start(&open(&folder), Start::First, None);
    assert!(matches!(again, Err(NodeError::StartedBefore { .. })), "{again:?}");
    let other = start(&open_in(&folder, 9), Start::Again, None);
    assert!(matches!(other, Err(NodeError::NeverStarted { .. })), "another network: {other:?}");
}

/// ★ What was advanced to is refused to be less, from the first lock on.
#[test]
fn every_vote_that_left_is_counted() {
    let folder = folder();
    let mut mark = open(&folder);
    mark.begin(0).expect("writes");
    for locks in 1..6 {
        mark.advance(locks).expect("writes");
        let refused = start(&open(&folder), Start::Again, Some(locks - 1));
        assert!(matches!(refused, Err(NodeError::LocksLost { .. })), "{locks}: {refused:?}");
        assert!(start(&open(&folder), Start::Again, Some(locks)).is_ok());
    }
}

#[test]
fn a_mark_that_is_not_written_is_missed() {
    assert_noticed(Mutant::PayUnmarkedVotes, every_vote_that_left_is_counted);
    assert_noticed(Mutant::PayStartUnasked, the_first_start_is_the_operators_word);
}
