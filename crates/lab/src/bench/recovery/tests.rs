use super::Series;
use quorate_report::results::FaultEvent;
use quorate_report::results::beside::Recovery;

fn event(at_s: f64) -> FaultEvent {
    FaultEvent { at_s, kind: "kill".to_owned(), validator: Some(2), link_to: None, change: None }
}

/// 100 operations an interval of 100 ms, but for some; the warm-up takes one second.
fn recover(dips: &[(usize, u64)], events: &[f64], smooth: usize) -> Vec<Recovery> {
    let mut answered = vec![100; 100];
    dips.iter().for_each(|&(index, count)| answered[index] = count);
    let series =
        Series { answered: &answered, interval_ms: 100, warmup_ms: 1_000, load_ms: 10_000, smooth };
    let events: Vec<FaultEvent> = events.iter().map(|at| event(*at)).collect();
    series.recoveries(&events, 500)
}

#[test]
fn the_time_runs_from_the_event_to_the_first_good_interval_after_the_dip() {
    // At 3.05 s into the window: in interval 40. Answers under way still come in 40 and 41.
    let found = recover(&[(42, 50), (43, 0), (44, 0), (45, 79), (46, 80)], &[3.05], 1);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].before_tps, found[0].lowest_tps), (1_000.0, 0.0));
    assert_eq!(found[0].seconds, Some(0.55), "to the beginning of interval 46");
    assert_eq!(found[0].view_timeouts, Some(1.1));
    let text = found[0].describe();
    assert_eq!(
        text,
        "kill 2 at 3.05 s: back at 80 % after 0.6 s (1.1 view timeouts), 0 tx/s at the lowest, then \
         100 % of before"
    );
}

/// A change that waited for the epoch before it may come when the load is over.
#[test]
fn nothing_is_told_of_what_comes_after_the_load() {
    assert_eq!(recover(&[], &[9.0], 1), []);
    assert_eq!(recover(&[], &[8.9], 1).len(), 1);
}

#[test]
fn no_dip_is_no_recovery() {
    let found = recover(&[(20, 0)], &[3.0], 1);
    assert_eq!(found[0].seconds, Some(0.0));
    assert!(
        found[0].describe().ends_with("never below 80 %, then 105 % of before"),
        "{}",
        found[0].describe()
    );
}

#[test]
fn what_does_not_come_back_says_so() {
    let dips: Vec<_> = (45..100).map(|index| (index, 10)).collect();
    let found = recover(&dips, &[3.0], 1);
    assert_eq!((found[0].seconds, found[0].lowest_tps), (None, 100.0));
    assert!(found[0].describe().contains("not back at 80 % in time"));
}

#[test]
fn the_next_event_ends_the_wait() {
    let found = recover(&[(40, 0), (41, 0), (42, 0)], &[3.0, 3.2], 1);
    assert_eq!(found[0].seconds, None);
    // The two seconds before the second event hold the first one's dip.
    assert_eq!((found[1].before_tps, found[1].seconds), (900.0, Some(0.1)));
}

#[test]
fn bursts_are_smoothed() {
    let bursts: Vec<_> = (0..50).map(|index| (2 * index, 0)).collect();
    assert_eq!(recover(&bursts, &[3.0], 2)[0].seconds, Some(0.0));
    assert!(recover(&bursts, &[3.0], 1)[0].seconds > Some(0.0));
}

#[test]
fn nothing_before_is_nothing_to_compare_with() {
    let all: Vec<_> = (0..100).map(|index| (index, 0)).collect();
    assert_eq!(recover(&all, &[3.0], 1), []);
}
