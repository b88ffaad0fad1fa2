use super::*;
use bytes::Bytes;
use quorate_types::machine::{DecidedRecord, Record, RecordKind};
use quorate_types::{Height, ReplicaId};

/// A step of a host, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Wrote,
    Synced,
    Sent(u64),
    Executed(u64),
}

/// A host of one thread whose disk syncs when it is told to.
struct Host {
    barrier: Barrier,
    log: GroupCommit<Entry, Gated>,
    done: Vec<Done>,
}

impl Host {
    fn new() -> Self {
        let (barrier, log) = barrier();
        Self { barrier, log, done: Vec::new() }
    }

    fn after(effects: impl IntoIterator<Item = Effect<Message>>) -> Self {
        let mut host = Self::new();
        host.dispatch(effects);
        host
    }

    fn dispatch(&mut self, effects: impl IntoIterator<Item = Effect<Message>>) {
        for effect in effects {
            dispatch(effect, self).expect("nothing stops it");
        }
    }

    fn sync(&mut self) {
        let group = self.log.begin().expect("something is queued").len();
        self.done.extend(std::iter::repeat_n(Done::Wrote, group));
        self.done.push(Done::Synced);
        let mut released = Vec::new();
        self.log.finish(|gated| released.push(gated));
        released.into_iter().for_each(|gated| gated.leave(self));
    }
}

impl EffectPorts for Host {
    type Stop = Halt;

    fn barrier(&mut self) -> &mut Barrier {
        &mut self.barrier
    }

    fn write(&mut self, entry: Entry) -> Result<(), Halt> {
        self.log.push(entry);
        Ok(())
    }

    fn hold(&mut self, gated: Gated) {
        self.log.hold(gated);
    }

    fn send(&mut self, _to: Recipients, _lane: Lane, message: Message) {
        let Message::FetchAvailable(mark) = message else { panic!("the tests send no other") };
        self.done.push(Done::Sent(mark));
    }

    fn execute(&mut self, task: Task) {
        let Task::Snapshot(height) = task else { panic!("the tests ask for no other") };
        self.done.push(Done::Executed(height.0));
    }

    fn read(&mut self, _request: ReadRequest) {}
    fn combine(&mut self, _job: CombineJob) {}
    fn certified(&mut self, _certificate: Box<ExecutionCertificate>) {}

    fn stop_signing(&mut self, _reason: String) -> Result<(), Halt> {
        Ok(())
    }

    fn halt(&mut self, halt: Halt) -> Result<(), Halt> {
        Err(halt)
    }
}

fn persist() -> Effect<Message> {
    let bytes = Bytes::from_static(b"a vote");
    Effect::Persist(Record { kind: RecordKind::Safety, bytes })
}

fn send(lane: Lane, mark: u64) -> Effect<Message> {
    let to = Recipients::One(ReplicaId(1));
    let waits = lane != Lane::Bulk;
    Effect::Send { to, lane, waits, message: Message::FetchAvailable(mark) }
}

fn task(height: u64) -> Effect<Message> {
    Effect::Task(Task::Snapshot(Height(height)))
}

const WAITING: [Lane; 3] = [Lane::Votes, Lane::Consensus, Lane::Client];

#[test]
fn without_promises_under_way_everything_leaves_at_once() {
    let host = Host::after(WAITING.map(|lane| send(lane, 1)).into_iter().chain([task(2)]));
    assert_eq!(host.done, [Done::Sent(1), Done::Sent(1), Done::Sent(1), Done::Executed(2)]);
}

/// ★ Nothing that may promise something leaves before the record is durable.
fn check_sends_wait() {
    for lane in WAITING {
        let mut host = Host::after([persist(), send(lane, 1), send(Lane::Bulk, 2)]);
        assert_eq!(host.done, [Done::Sent(2)], "{lane:?} waits, bulk does not");
        host.sync();
        assert_eq!(host.done[1..], [Done::Wrote, Done::Synced, Done::Sent(1)]);
        host.dispatch([send(lane, 3)]);
        assert_eq!(host.done.last(), Some(&Done::Sent(3)), "nothing is under way any more");
    }
}

/// ★ A state must not know what the log forgot.
fn check_tasks_wait() {
    let mut host = Host::after([persist(), task(1)]);
    assert_eq!(host.done, []);
    host.sync();
    assert_eq!(host.done, [Done::Wrote, Done::Synced, Done::Executed(1)]);
}

/// ★ What is being released is in its lane before anything leaves at once again.
fn check_nothing_overtakes() {
    let (mut barrier, mut log) = barrier::<Entry, u8>();
    barrier.persist();
    let Effect::Persist(record) = persist() else { unreachable!() };
    log.push(Entry::Record(record));
    assert!(barrier.must_wait());
    log.hold(1);
    log.begin().expect("a record is queued");
    let mut waited = Vec::new();
    log.finish(|_| waited.push(barrier.must_wait()));
    assert_eq!(waited, [true], "durable, but the send is not in its lane yet");
    // What came meanwhile is behind the log, and the barrier is shut until it has left.
    log.hold(2);
    assert!(barrier.must_wait());
    log.hold(3);
    let mut released = Vec::new();
    log.release_ready(|item| released.push(item));
    assert_eq!((released, barrier.must_wait()), (vec![2, 3], false));
}

#[test]
fn a_record_holds_back_every_lane_but_bulk() {
    check_sends_wait();
}

#[test]
fn a_record_holds_back_the_execution() {
    check_tasks_wait();
}

#[test]
fn a_send_does_not_overtake_one_that_is_being_released() {
    check_nothing_overtakes();
}

mod left_out {
    use super::*;

    #[test]
    fn sending_early_is_noticed() {
        mutants::assert_noticed(Mutant::HostSendsEarly, check_sends_wait);
    }

    #[test]
    fn executing_early_is_noticed() {
        mutants::assert_noticed(Mutant::HostExecutesEarly, check_tasks_wait);
    }

    #[test]
    fn overtaking_is_noticed() {
        mutants::assert_noticed(Mutant::HostSendOvertakes, check_nothing_overtakes);
    }
}

#[test]
fn an_append_keeps_its_place_and_holds_nothing_back() {
    let record = DecidedRecord { height: Height(1), bytes: Bytes::new() };
    let mut host = Host::after([Effect::Append(record), send(Lane::Votes, 1)]);
    assert_eq!(host.done, [Done::Sent(1)]);
    host.sync();
    assert_eq!(host.done, [Done::Sent(1), Done::Wrote, Done::Synced]);
}

#[test]
fn promises_asked_for_during_a_sync_share_the_next() {
    let mut host = Host::after([persist(), send(Lane::Votes, 1)]);
    host.log.begin().expect("a record is queued");
    host.dispatch([persist(), send(Lane::Votes, 2), persist(), send(Lane::Votes, 3)]);
    let mut released = 0;
    host.log.finish(|_| released += 1);
    assert_eq!(released, 1);
    host.sync();
    let sent = [Done::Sent(2), Done::Sent(3)];
    assert_eq!(host.done, [&[Done::Wrote, Done::Wrote, Done::Synced][..], &sent].concat());
}

/// For a host that keeps count of its syncs itself.
#[test]
fn what_is_held_back_leaves_in_order_and_durability_never_shrinks() {
    let (_, mut held) = Barrier::around();
    for (promises, item) in [(1, 'a'), (2, 'b'), (3, 'c')] {
        held.hold(promises, item);
    }
    let mut left = Vec::new();
    for (promises, durable, gone) in [(2, 2, "ab"), (1, 2, "ab"), (3, 3, "abc")] {
        held.durable_up_to(promises, |item| left.push(item));
        assert_eq!((held.durable(), left.iter().collect::<String>().as_str()), (durable, gone));
    }
}
