use super::*;
use quorate_storage::StorageError;

fn threads() -> (Threads, Receiver<NodeError>) {
    let (failed, failures) = unbounded();
    (Threads { failed, stopping: Arc::default(), handles: Vec::new() }, failures)
}

#[test]
fn a_thread_that_panics_or_fails_is_a_reason_to_stop() {
    let (mut threads, failures) = threads();
    threads.spawn("machine", || panic!("on purpose")).unwrap();
    assert!(matches!(failures.recv().unwrap(), NodeError::Panicked("machine")));

    let full = StorageError::Full { action: "write", file: "log-1".into() };
    let failure = full.clone();
    threads.spawn("log", move || Err(failure.into())).unwrap();
    assert!(matches!(failures.recv().unwrap(), NodeError::Storage(error) if error == full));

    threads.spawn("read", || Ok(())).unwrap();
    threads.handles.drain(..).for_each(|thread| thread.join().unwrap());
    assert!(failures.try_recv().is_err(), "an end is no failure");
}
