use super::{Counts, Fate, LatencyMs, Recorder, Schedule};
use std::time::{Duration, Instant};

fn schedule() -> Schedule {
    Schedule {
        start: Instant::now(),
        rate: 1_000,
        warmup: Duration::from_secs(2),
        window: Duration::from_secs(3),
    }
}

#[test]
fn marks_and_times_are_one() {
    let schedule = schedule();
    assert_eq!(schedule.due(1_500), schedule.start + Duration::from_millis(1_500));
    assert_eq!(schedule.due_by(schedule.start + Duration::from_millis(1_500)), 1_500);
    assert_eq!(schedule.due_by(schedule.start + Duration::from_secs(60)), 5_000);
    assert_eq!((schedule.first_counted(), schedule.end()), (2_000, 5_000));
}

#[test]
fn latency_runs_from_the_scheduled_time() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    for mark in 2_000..2_100 {
        // All of them are answered at one moment, as after a stall.
        let at = schedule.due(2_100);
        recorder.record(mark, Fate::Done { at, refused: mark == 2_000 });
    }
    recorder.record(2_100, Fate::NotTaken);
    assert_eq!(recorder.counted, Counts { done: 100, refused: 1, dropped: 1 });
    let latency = recorder.latency();
    assert!((99.9..=100.1).contains(&latency.max), "{latency:?}");
    assert!((49.0..=51.0).contains(&latency.p50), "{latency:?}");
}

#[test]
fn the_warm_up_is_counted_apart() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    let done = Fate::Done { at: schedule.due(1_999) + Duration::from_millis(7), refused: false };
    recorder.record(1_999, done);
    assert_eq!(recorder.counted, Counts::default());
    assert_eq!(recorder.warmup.done, 1);
    assert_eq!(recorder.latency(), LatencyMs::default());
    assert!((6.9..=7.1).contains(&recorder.lately().p50));
    assert_eq!(recorder.lately(), LatencyMs::default());
}

#[test]
fn everything_over_time_adds_up() {
    let schedule = schedule();
    let mut recorder = Recorder::new(schedule);
    for mark in 0..schedule.end() {
        let at = schedule.due(mark) + Duration::from_millis(30);
        recorder.record(mark, Fate::Done { at, refused: false });
    }
    let over_time = recorder.over_time();
    assert_eq!(over_time.offered.iter().sum::<u64>(), schedule.end());
    assert_eq!(over_time.answered.iter().sum::<u64>(), schedule.end());
    let counted = schedule.end() - schedule.first_counted();
    assert_eq!(over_time.distribution_us.iter().map(|entry| entry.1).sum::<u64>(), counted);
    let intervals = over_time.latency.intervals.len();
    assert_eq!(over_time.offered.len(), intervals);
    let due: Vec<u64> = (0..intervals).map(|index| over_time.latency.count(index)).collect();
    assert!(due.iter().zip(&over_time.offered).all(|(a, b)| a.abs_diff(*b) <= 1), "{due:?}");
    assert!(over_time.distribution_us.windows(2).all(|pair| pair[0].0 < pair[1].0));
}
