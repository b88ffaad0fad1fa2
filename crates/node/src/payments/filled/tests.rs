use super::*;
use crate::payments::authority::open_stopped;
use crate::payments::{PayTestnet, PayTestnetPlan, recover};
use quorate_storage::LogConfig;
use quorate_types::Epoch;

fn sizes(inputs: u64) -> Vec<u64> {
    SpentFill::new(inputs).runs.iter().map(|run| run.end - run.start).collect()
}

#[test]
fn runs_have_the_sizes_that_moves_leave() {
    const MOVE: u64 = HOT_INPUTS as u64;
    assert!(sizes(0).is_empty());
    assert_eq!(sizes(7), [7]);
    assert_eq!(sizes(4 * MOVE), [4 * MOVE]);
    assert_eq!(sizes(13 * MOVE + 7), [8 * MOVE + 7, 4 * MOVE, MOVE]);
}

/// What is filled is spent, and nothing else; and nothing waits to be merged.
#[test]
fn what_is_filled_is_spent_at_a_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let fill = SpentFill { runs: vec![0..40, 40..60, 60..70] };
    fill.write(folder.path(), &Owner::nobody()).expect("writes");
    let disk = RealDisk::open(&folder.path().join(SPENT_FOLDER)).expect("opens");
    let runs = Runs::open(Box::new(disk), &Owner::nobody()).expect("opens");
    assert!(!runs.is_merge_due());
    drop(runs);
    let locks = recover(folder.path(), &Owner::nobody(), LogConfig::default()).expect("opens");
    assert_eq!((locks.next(), locks.spent().len(), locks.spent().hot_len()), (0, 70, 0));
    for number in 0..70 {
        let input = fill.input(number);
        let found = locks.spent().get(input).expect("looks up").expect("is spent");
        assert_eq!((found.tx, found.sequence), (input.tx, number));
        let other = OutputId { index: 1, ..input };
        assert_eq!(locks.spent().get(other), Ok(None));
    }
}

#[test]
fn an_authority_starts_over_what_was_filled_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let testnet = PayTestnet::create(&folder.path().join("net"), &PayTestnetPlan::default());
    let config = AuthorityConfig::load(&testnet.expect("writes").configs[0][0]).expect("loads");
    let keys = config.load_keys(&mut |_| None).expect("opens");
    SpentFill::new(70).write_for(&config, &keys).expect("writes");
    let mut stopped = open_stopped(&config, &keys, Epoch(u64::MAX)).expect("opens");
    assert_eq!(stopped.locks().spent().len(), 70);
}
