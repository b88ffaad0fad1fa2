use super::{OperationResult, Recorder, Schedule};
use quorate_report::results::{Counts, LatencyMs};
use std::time::{Duration, Instant};

fn schedule() -> Schedule {
    Schedule {
        start: Instant::now(),
        warmup: Duration::from_secs(2),
        window: Duration::from_secs(3),
    }
}

#[test]
fn marks_and_times_are_one() {
    let schedule = schedule();
    let moment = schedule.start + Duration::from_millis(1_500);
    assert_eq!((schedule.due(1_500_000), schedule.mark(moment)), (moment, 1_500_000));
    assert_eq!((schedule.first_counted(), schedule.end()), (2_000_000, 5_000_000));
}

#[test]
fn a_load_is_settled_when_all_was_offered_and_answered() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    recorder.offer([1_000, 3_000_000].into_iter());
    assert_eq!(recorder.offered(), 1, "the warm-up does not count");
    recorder.record(1_000, OperationResult::NotTaken);
    recorder.record(3_000_000, OperationResult::NotTaken);
    assert!(!recorder.is_settled(), "more may be offered");
    recorder.offer_no_more();
    assert!(recorder.is_settled());
    recorder.offer([3_000_001].into_iter());
    assert!(!recorder.is_settled());
}

#[test]
fn a_warmup_ends_early_at_a_whole_second_that_is_to_come() {
    let start = Instant::now().checked_sub(Duration::from_millis(1_300)).expect("some uptime");
    let [warmup, window] = [10, 3].map(Duration::from_secs);
    let mut recorder = Recorder::new(Schedule { start, warmup, window });
    recorder.offer([0, 1_299_000].into_iter());
    let schedule = recorder.end_warmup();
    let second = schedule.warmup.as_secs();
    assert!((2..10).contains(&second), "{schedule:?}");
    assert_eq!(schedule.warmup, Duration::from_secs(second));
    assert_eq!(recorder.end(), (second + 3) * 1_000_000);
    let [first, last] = [second * 1_000_000, recorder.end() - 1];
    recorder.offer([first, last].into_iter());
    for mark in [0, 1_299_000, first, last] {
        let at = schedule.due(mark) + Duration::from_micros(500);
        recorder.record(mark, OperationResult::Done { at, refused: false });
    }
    assert_eq!((recorder.counted.done, recorder.warmup.done), (2, 2));
    assert_eq!(recorder.latency().max, 0.5);
    assert!(recorder.goodput_tps() > 0.0);
    assert_eq!(recorder.end_warmup().warmup, schedule.warmup, "once it is over it stays so");
}

#[test]
fn latency_runs_from_the_scheduled_time() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    for ms in 2_000..2_100 {
        // All of them are answered at one moment, as after a stall.
        let at = schedule.due(2_100_000);
        recorder.record(ms * 1_000, OperationResult::Done { at, refused: ms == 2_000 });
    }
    recorder.record(2_100_000, OperationResult::NotTaken);
    let expected = Counts { done: 100, refused: 1, dropped: 1, unanswered: 0 };
    assert_eq!(recorder.counted, expected);
    let latency = recorder.latency();
    assert!((99.9..=100.1).contains(&latency.max), "{latency:?}");
    assert!((49.0..=51.0).contains(&latency.p50), "{latency:?}");
}

#[test]
fn the_warm_up_is_counted_apart() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    let done = OperationResult::Done {
        at: schedule.due(1_999_000) + Duration::from_millis(7),
        refused: false,
    };
    recorder.record(1_999_000, done);
    assert_eq!(recorder.counted, Counts::default());
    assert_eq!(recorder.warmup.done, 1);
    assert_eq!(recorder.latency(), LatencyMs::default());
    assert!((6.9..=7.1).contains(&recorder.lately().p50));
    assert_eq!(recorder.lately(), LatencyMs::default());
}

#[test]
fn what_the_warm_up_waits_for_is_not_forgotten() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    recorder.offer([1_000, 2_000, 3_000, 3_000_000].into_iter());
    let done = OperationResult::Done { at: schedule.due(2_000), refused: false };
    recorder.record(1_000, done);
    recorder.record(2_000, OperationResult::NotTaken);
    recorder.offer_no_more();
    assert!(!recorder.is_settled());
    let expected = Counts { done: 1, refused: 0, dropped: 1, unanswered: 1 };
    assert_eq!(recorder.whole_warmup(), expected);
    recorder.record(3_000, done);
    assert_eq!(recorder.whole_warmup(), Counts { done: 2, unanswered: 0, ..expected });
}

#[test]
fn everything_over_time_adds_up() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    for mark in (0..schedule.end()).step_by(1_000) {
        recorder.offer(std::iter::once(mark));
        let at = schedule.due(mark) + Duration::from_millis(30);
        recorder.record(mark, OperationResult::Done { at, refused: false });
    }
    let over_time = recorder.over_time();
    assert_eq!(over_time.offered.iter().sum::<u64>(), 5_000);
    assert_eq!(over_time.answered.iter().sum::<u64>(), 5_000);
    let counted = recorder.offered();
    assert_eq!(counted, 3_000);
    assert_eq!(over_time.histogram.total(), counted);
    let intervals = over_time.latency.intervals.len();
    assert_eq!(over_time.offered.len(), intervals);
    let due: Vec<u64> = (0..intervals).map(|index| over_time.latency.count(index)).collect();
    assert!(due.iter().zip(&over_time.offered).all(|(a, b)| a == b), "{due:?}");
    assert!(over_time.histogram.counts_us.windows(2).all(|pair| pair[0].0 < pair[1].0));
}
