use super::{Answer, Answers, Content, Load, Operations, Payload, Plan, Shape, Target};
use crate::load::measure::{OperationResult, Recorder, Schedule};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A committee that answers at once, but for every tenth operation, which it does not take.
struct Echo(Sender<Answer>, u64);
struct Heard(Receiver<Answer>);

impl Target for Echo {
    fn sessions(&self) -> usize {
        3
    }

    fn submit(&mut self, session: usize, operations: Operations) -> bool {
        assert!(session < 3);
        for (mark, operation) in operations {
            assert_eq!(operation.len(), 64);
            let done = OperationResult::Done { at: Instant::now(), refused: false };
            let result = if self.1.is_multiple_of(10) { OperationResult::NotTaken } else { done };
            self.1 += 1;
            self.0.send(Answer { session, mark, result }).expect("somebody listens");
        }
        true
    }
}

impl Answers for Heard {
    fn next(&mut self, timeout: Duration) -> Option<Answer> {
        self.0.recv_timeout(timeout).ok()
    }
}

fn schedule(window_ms: u64) -> Schedule {
    let window = Duration::from_millis(window_ms);
    Schedule { start: Instant::now(), warmup: Duration::ZERO, window }
}

fn plan(shape: Shape) -> Plan {
    let content = Content::Random;
    Plan { shape, rate: 5_000, outstanding: 20, content, operation_bytes: 64, seed: 7, ready: 0 }
}

/// Runs a load to its end, and returns what was recorded.
fn run(plan: Plan, window_ms: u64, target: impl Target + 'static, heard: Heard) -> Recorder {
    let schedule = schedule(window_ms);
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let load =
        Load::start(schedule, plan, Payload::new(&plan), target, heard, Arc::clone(&recorder));
    while !recorder.lock().is_settled() {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(load);
    Arc::into_inner(recorder).expect("the load has ended").into_inner()
}

#[test]
fn every_scheduled_operation_is_offered_once() {
    for shape in [Shape::Fixed, Shape::Poisson] {
        let (sender, receiver) = unbounded();
        let recorder = run(plan(shape), 200, Echo(sender, 0), Heard(receiver));
        let counted = recorder.counted;
        assert_eq!(counted.settled(), recorder.offered());
        assert_eq!(counted.dropped, recorder.offered().div_ceil(10));
        assert_eq!(recorder.over_time().offered.iter().sum::<u64>(), recorder.offered());
        if shape == Shape::Fixed {
            assert_eq!((counted.done, counted.dropped), (900, 100));
        }
    }
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
    let (_sender, receiver) = unbounded();
    let recorder = run(Plan { rate: 2_000, ..plan(Shape::Fixed) }, 50, Full, Heard(receiver));
    assert_eq!(recorder.counted.dropped, 100);
}

/// Holds what is submitted, and answers all but half of what a session may have under way.
struct Holding {
    held: Vec<Operations>,
    most: usize,
    answers: Sender<Answer>,
}

impl Target for Holding {
    fn sessions(&self) -> usize {
        self.held.len()
    }

    fn submit(&mut self, session: usize, operations: Operations) -> bool {
        self.held[session].extend(operations);
        assert!(self.held[session].len() <= self.most, "no more under way than agreed");
        for (mark, _) in self.held[session].split_off(self.most / 2) {
            let result = OperationResult::Done { at: Instant::now(), refused: false };
            self.answers.send(Answer { session, mark, result }).expect("somebody listens");
        }
        true
    }
}

#[test]
fn a_closed_loop_keeps_its_number_under_way() {
    let (answers, receiver) = unbounded();
    let target = Holding { held: vec![Vec::new(); 3], most: 20, answers };
    let schedule = schedule(600_000);
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let counting = Arc::clone(&recorder);
    let plan = plan(Shape::Closed);
    let payload = Payload::new(&plan);
    let load = Load::start(schedule, plan, payload, target, Heard(receiver), counting);
    // Until it has gone round at least once.
    while recorder.lock().offered() <= 60 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(load);
    let recorder = recorder.lock();
    let under_way = recorder.offered() - recorder.counted.settled();
    assert!((30..=60).contains(&under_way), "half or all of what three sessions may have");
}

#[test]
fn loads_have_names() {
    for name in ["fixed", "poisson", "closed"] {
        assert_eq!(name.parse::<Shape>().expect(name).to_string(), name);
    }
    let refused = "open".parse::<Shape>().expect_err("no such load").to_string();
    assert_eq!(refused, "there is no load 'open': use fixed, poisson or closed");
}

#[test]
fn a_seed_decides_the_bytes() {
    let bytes =
        |seed| Payload::new(&Plan { operation_bytes: 16, seed, ..plan(Shape::Fixed) }).take(3);
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
    assert_eq!(bytes(1).iter().map(Bytes::len).sum::<usize>(), 48);
}
