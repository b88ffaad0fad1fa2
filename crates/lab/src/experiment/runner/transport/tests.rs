use super::*;

fn setup() -> Setup {
    Setup {
        runner: crate::experiment::RunnerKind::Transport,
        validators: 2,
        message_commands: 10,
        tx_bytes: 100,
        rate: 200,
        warmup_s: 0,
        duration_s: 1,
        drain_s: 20,
        ..Setup::default()
    }
}

fn run(setup: &Setup) -> Measured {
    Transport.run(setup, &AtomicBool::new(false)).unwrap()
}

#[test]
fn messages_say_which_they_are() {
    let filler = Bytes::from_static(b"....");
    let frame = frame(MESSAGE_TAG, 1_234_567, 2, &filler);
    let whole: Vec<u8> = frame.0.concat();
    assert_eq!(whole[..4], u32::to_le_bytes(11 + 4), "the length counts what follows it");
    assert_eq!(parse(&whole[4..]), Some((1_234_567, 2)));
    assert_eq!(parse(&whole[4..12]), None, "cut short");
}

/// Real sockets, TLS and threads: each message finds its way and is answered.
#[test]
fn messages_between_members_are_answered() {
    for validators in [2, 4] {
        let measured = run(&Setup { validators, keep_latencies: true, ..setup() });
        let number = |name: &str| measured.numbers[name];
        assert_eq!(number("offered_tps"), 200.0);
        assert_eq!(number("failed_share"), 0.0, "{measured:?}");
        assert_eq!(number("message_bytes"), 1_011.0);
        assert!(number("goodput_tps") > 0.0 && number("latency_message_mean_ms") > 0.0);
        let kept: Kept = serde_json::from_value(measured.details[Kept::NAME].clone()).unwrap();
        let counted = (0..kept.over_time.intervals.len()).map(|i| kept.over_time.count(i));
        assert_eq!(counted.sum::<u64>(), 200);
        let known = |name: &String| crate::experiment::metrics::find(name).is_some();
        assert!(measured.numbers.keys().all(known), "{measured:?}");
    }
}

/// More than a queue holds at once: what does not fit is dropped, and counts as failed.
#[test]
fn what_the_queue_drops_has_failed() {
    let flood = Setup { message_commands: 40_000, rate: 2_000, drain_s: 0, ..setup() };
    let measured = run(&flood);
    assert!(measured.numbers["failed_share"] > 0.0, "{measured:?}");
}

#[test]
fn an_interrupted_point_ends() {
    let ended = Transport.run(&setup(), &AtomicBool::new(true));
    assert_eq!(ended, Err(RunError::Interrupted));
}
