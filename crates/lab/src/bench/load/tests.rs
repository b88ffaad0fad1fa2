use super::{Answers, Load, Operations, Payload, Target};
use crate::bench::measure::{Fate, Recorder, Schedule};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A committee that answers at once, but for every tenth operation, which it does not take.
struct Echo(Sender<(u64, Fate)>);
struct Heard(Receiver<(u64, Fate)>);

impl Target for Echo {
    fn sessions(&self) -> usize {
        3
    }

    fn submit(&mut self, session: usize, operations: Operations) -> bool {
        assert!(session < 3);
        for (mark, operation) in operations {
            assert_eq!(operation.len(), 64);
            let done = Fate::Done { at: Instant::now(), refused: false };
            let fate = if mark.is_multiple_of(10) { Fate::NotTaken } else { done };
            self.0.send((mark, fate)).expect("somebody listens");
        }
        true
    }
}

impl Answers for Heard {
    fn next(&mut self, patience: Duration) -> Option<(u64, Fate)> {
        self.0.recv_timeout(patience).ok()
    }
}

#[test]
fn every_scheduled_operation_is_offered_once() {
    let schedule = Schedule {
        start: Instant::now(),
        rate: 5_000,
        warmup: Duration::ZERO,
        window: Duration::from_millis(200),
    };
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let (sender, receiver) = unbounded();
    let (echo, heard) = (Echo(sender), Heard(receiver));
    let load = Load::start(schedule, 64, 7, echo, heard, Arc::clone(&recorder));
    while recorder.lock().settled() < schedule.end() {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(load);
    let counted = recorder.lock().counted;
    assert_eq!((counted.done, counted.dropped), (900, 100));
}

#[test]
fn what_a_session_does_not_take_is_counted() {
    struct Full;
    impl Target for Full {
        fn sessions(&self) -> usize {
            1
        }
        fn submit(&mut self, _: usize, _: Operations) -> bool {
            false
        }
    }
    let window = Duration::from_millis(50);
    let schedule = Schedule { start: Instant::now(), rate: 2_000, warmup: Duration::ZERO, window };
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let (_sender, receiver) = unbounded();
    let load = Load::start(schedule, 64, 7, Full, Heard(receiver), Arc::clone(&recorder));
    while recorder.lock().settled() < schedule.end() {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(load);
    assert_eq!(recorder.lock().counted.dropped, 100);
}

#[test]
fn a_seed_decides_the_bytes() {
    let bytes = |seed| Payload::new(16, seed).take(3).collect::<Vec<_>>();
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
    assert_eq!(bytes(1).iter().map(Bytes::len).sum::<usize>(), 48);
}
