//! How it catches up by what others send: blocks, bodies, snapshots.

use super::super::{BACKLOG_MAX, BODY_ROUNDS_MAX};
use super::{Asked, asked, executed, start, wake};
use crate::message::{Blocks, Chunk, FetchBlocks, Kept, Offer};
use crate::replica::Replica;
use crate::replica::Timer;
use crate::replica::tests::{NOW, execute_one, give, give_at};
use crate::sync::BLOCKS_MAX;
use crate::testing::history::History;
use crate::testing::{body, certify_executed};
use crate::{Message, Settings};
use bytes::Bytes;
use quorate_consensus::chained;
use quorate_crypto::{Digest, hash};
use quorate_types::machine::{DecidedRecord, Executed, Recovery, Task};
use quorate_types::{
    Body, Effect, Event, Header, Height, Machine, Manifest, Peer, Recipients, ReplicaId,
};
use std::ops::RangeInclusive;
use std::sync::Arc;

fn from(member: u16) -> Peer {
    Peer::Replica(ReplicaId(member))
}

/// Member 3, which is shown the certificate of a block of the history that it lacks.
fn behind(history: &History, target: u64) -> Replica {
    let mut replica = start(3, Settings::default(), Recovery::default());
    show(&mut replica, history, target);
    replica
}

fn show(replica: &mut Replica, history: &History, target: u64) {
    let certificates =
        chained::Message::Certificates { high_qc: history.certificate(target), high_tc: None };
    let message = quorate_consensus::Message::Jolteon(certificates);
    give(replica, from(1), &Message::Consensus(message));
}

/// Requests for blocks among what it asked for, each with the member that is asked.
fn fetches(asked: &Asked) -> Vec<(u16, FetchBlocks)> {
    let fetch = |(to, message): &(Recipients, Message)| match (to, message) {
        (Recipients::One(to), Message::FetchBlocks(request)) => Some((to.0, *request)),
        _ => None,
    };
    asked.sent.iter().filter_map(fetch).collect()
}

/// How often everybody was asked for snapshots beyond this height.
fn names(asked: &Asked, above: u64) -> usize {
    let is_it = |(to, message): &&(Recipients, Message)| {
        let is_asked = matches!(message, Message::FetchSnapshots(from) if *from == Height(above));
        *to == Recipients::All && is_asked
    };
    asked.sent.iter().filter(is_it).count()
}

/// An answer with these heights of the history, by a member that keeps others too.
fn answer(
    replica: &mut Replica,
    history: &History,
    (member, request): (u16, FetchBlocks),
    heights: RangeInclusive<u64>,
    (oldest, newest): (u64, u64),
) {
    let decided = if heights.is_empty() { Vec::new() } else { history.records(heights) };
    let kept = Kept { oldest: Height(oldest), newest: Height(newest) };
    let blocks = Blocks { request, decided, tail: Vec::new(), kept };
    give(replica, from(member), &Message::Blocks(blocks));
}

/// The one request for blocks after the last decided height.
fn next(asked: &Asked) -> (u16, FetchBlocks) {
    let all = fetches(asked);
    let mut next = all.iter().filter(|(_, request)| request.after.is_some());
    let found = next.next().unwrap_or_else(|| panic!("{asked:?}"));
    assert_eq!(next.next(), None);
    *found
}

/// Hands back what was given to the execution.
fn execute(replica: &mut Replica, asked: &Asked) -> u64 {
    let mut executed = 0;
    for task in &asked.tasks {
        let Task::Execute(block) = task else { continue };
        let header = Header { height: block.height(), ..Header::default() };
        let (leaves, answers) = (Vec::new(), Vec::new());
        replica.handle(NOW, Event::Executed(Executed { header, leaves, answers, operations: 0 }));
        executed += 1;
    }
    executed
}

#[test]
fn blocks_are_fetched_until_the_missing_one_is_here() {
    let history = History::empty(1..=9);
    let mut replica = start(3, Settings::default(), Recovery::default());
    let status = replica.status();
    assert!(!status.syncing && status.sync == crate::SyncStatus::default(), "{status:?}");
    show(&mut replica, &history, 5);
    let first = next(&asked(&mut replica));
    let expected =
        FetchBlocks { height: Height(0), after: Some(history.id(0)), target: history.id(5) };
    assert_eq!(first, (0, expected), "of a signer");
    let status = replica.status();
    assert!(status.syncing);
    assert_eq!(status.sync.why, format!("blocks after {}", Height(0)));
    answer(&mut replica, &history, first, 1..=3, (1, 9));
    let status = replica.status();
    assert_eq!((status.decided, status.executed), (Height(3), Height(0)));
    assert_eq!((status.sync.from, status.sync.to), (Height(0), Height(9)));
    assert_eq!(status.sync.why, format!("blocks after {}", Height(3)));
    let then = asked(&mut replica);
    assert_eq!(execute(&mut replica, &then), 3);
    let (member, request) = next(&then);
    assert_eq!((member, request.height, request.after), (0, Height(3), Some(history.id(3))));
    // The rest is not decided yet: it leads to the block that was certified.
    let tail = (4..=5).map(|height| history.undecided(height)).collect();
    let kept = Kept { oldest: Height(1), newest: Height(3) };
    let blocks = Blocks { request, decided: Vec::new(), tail, kept };
    give(&mut replica, from(0), &Message::Blocks(blocks));
    let status = replica.status();
    assert_eq!((status.decided, status.syncing), (Height(4), false), "{:?}", status.sync);
}

/// Parts that came before their turn are all taken once what is below them is decided.
#[test]
fn parts_ahead_are_taken_one_after_the_other() {
    let history = History::empty(1..=250);
    let mut replica = behind(&history, 240);
    let first = next(&asked(&mut replica));
    answer(&mut replica, &history, first, 1..=1, (1, 250));
    let then = asked(&mut replica);
    let (turn, ahead): (Vec<_>, Vec<_>) =
        fetches(&then).into_iter().partition(|(_, request)| request.after.is_some());
    for (member, request) in ahead.iter().rev() {
        let first = request.height.0;
        let last = (first + BLOCKS_MAX).min(240);
        answer(&mut replica, &history, (*member, *request), first + 1..=last, (1, 250));
        assert_eq!(replica.status().decided, Height(1), "not yet");
    }
    answer(&mut replica, &history, turn[0], 2..=1 + BLOCKS_MAX, (1, 250));
    assert_eq!(replica.status().decided, Height(240));
}

/// A history whose first height orders a body that nobody sent yet.
fn held_up(heights: RangeInclusive<u64>) -> (History, Arc<Body>) {
    let missing = body(0, 1, 10);
    let name = missing.reference;
    let bodies = move |height| if height == 1 { vec![name] } else { Vec::new() };
    (History::new(heights, bodies), missing)
}

/// While too many decided heights wait for bodies no more blocks are fetched; once one of them is
/// executed, they are.
#[test]
fn blocks_wait_while_bodies_are_missing() {
    let (history, missing) = held_up(1..=400);
    let mut replica = behind(&history, 390);
    let first = next(&asked(&mut replica));
    answer(&mut replica, &history, first, 1..=BACKLOG_MAX, (1, BACKLOG_MAX + 1));
    let then = next(&asked(&mut replica));
    assert_eq!(then.1.height, Height(BACKLOG_MAX), "so many may wait");
    let more = BACKLOG_MAX + 1;
    answer(&mut replica, &history, then, more..=more, (1, more));
    let status = replica.status();
    assert_eq!((status.decided, status.executed), (Height(more), Height(0)));
    assert_eq!(status.sync.why, format!("bodies of {more} decided heights"));
    assert!(!status.timers.contains_key(&Timer::FetchBlocks), "{:?}", status.timers);
    for _ in 0..5 {
        assert_eq!(fetches(&asked(&mut replica)), []);
        wake(&mut replica);
    }
    give(&mut replica, from(0), &Message::Body(Arc::clone(&missing)));
    replica.handle(NOW, Event::Stored(missing.reference));
    let ready = asked(&mut replica);
    assert_eq!(fetches(&ready), [], "they are not executed yet");
    assert!(execute(&mut replica, &ready) > 0);
    assert_eq!(next(&asked(&mut replica)).1.height, Height(more));
    // Far up the height itself is no backlog.
    let recovery = Recovery { executed: Some(executed(&history, 300)), ..Recovery::default() };
    let mut replica = start(3, Settings::default(), recovery);
    show(&mut replica, &history, 390);
    assert_eq!(next(&asked(&mut replica)).1.height, Height(300));
}

/// A decided block of an answer that comes while too much waits stays where it is.
#[test]
fn parts_ahead_wait_while_bodies_are_missing() {
    let (history, _) = held_up(1..=400);
    let mut replica = behind(&history, 390);
    let first = next(&asked(&mut replica));
    answer(&mut replica, &history, first, 1..=230, (1, 400));
    let then = asked(&mut replica);
    let (turn, ahead): (Vec<_>, Vec<_>) =
        fetches(&then).into_iter().partition(|(_, request)| request.after.is_some());
    assert_eq!(ahead[0].1.height, Height(230 + BLOCKS_MAX));
    let last = 230 + 2 * BLOCKS_MAX;
    answer(&mut replica, &history, ahead[0], 231 + BLOCKS_MAX..=last, (1, 400));
    answer(&mut replica, &history, turn[0], 231..=230 + BLOCKS_MAX, (1, 400));
    assert_eq!(replica.status().decided, Height(230 + BLOCKS_MAX), "{last} would be too far");
}

/// One member that has pruned what is missing proves nothing; two of four do. Once somebody has it
/// no snapshot is needed.
#[test]
fn snapshots_are_asked_for_while_enough_members_have_pruned() {
    let history = History::empty(1..=9);
    let mut replica = behind(&history, 8);
    let mut question = next(&asked(&mut replica));
    for expected in [0, 1] {
        answer(&mut replica, &history, question, RangeInclusive::new(1, 0), (50, 90));
        let then = asked(&mut replica);
        assert_eq!(names(&then, 0), expected);
        question = next(&then);
    }
    let status = replica.status();
    assert_eq!(status.sync.why, "a snapshot that enough members name alike; 0 answered");
    assert!(status.timers.contains_key(&Timer::FetchSnapshot), "{:?}", status.timers);
    let due = status.timers[&Timer::FetchSnapshot];
    assert_eq!(due, 1_000, "it will ask again");
    answer(&mut replica, &history, question, 1..=2, (1, 9));
    let status = replica.status();
    assert_eq!(status.sync.why, format!("blocks after {}", Height(2)));
    assert!(!status.timers.contains_key(&Timer::FetchSnapshot), "{:?}", status.timers);
}

fn chunk(index: u32) -> Bytes {
    Bytes::from(vec![u8::try_from(index).expect("few"); 10])
}

fn manifest(height: u64) -> Manifest {
    Manifest {
        service: "noop".into(),
        header: Header { height: Height(height), state: hash(b"state"), ..Header::default() },
        operations: 7,
        chunks: (0..3).map(|index| hash(&chunk(index))).collect(),
    }
}

fn offer(replica: &mut Replica, members: &[u16], later: &History) {
    let manifest = Bytes::from(manifest(64).encode());
    let offer = Offer { manifest, proof: vec![later.record(64)] };
    for member in members {
        give(replica, from(*member), &Message::Offer(offer.clone()));
    }
}

/// Requests for chunks, each with the member that is asked.
fn chunks(asked: &Asked) -> Vec<(u16, u32)> {
    let chunk = |(to, message): &(Recipients, Message)| match (to, message) {
        (Recipients::One(to), Message::FetchChunk(snapshot, index)) => {
            assert_eq!(*snapshot, manifest(64).digest());
            Some((to.0, *index))
        }
        _ => None,
    };
    asked.sent.iter().filter_map(chunk).collect()
}

fn send_chunk(replica: &mut Replica, (member, index): (u16, u32), bytes: Bytes) {
    let chunk = Chunk { snapshot: manifest(64).digest(), index, bytes };
    give(replica, from(member), &Message::Chunk(chunk));
}

/// A replica that has decided and not executed one height, and needs a snapshot.
fn pruned(history: &History, useless: Digest) -> Replica {
    let recovery = Recovery { staged: vec![useless], ..Recovery::default() };
    let mut replica = start(3, Settings::default(), recovery);
    show(&mut replica, history, 8);
    let first = next(&asked(&mut replica));
    answer(&mut replica, history, first, 1..=1, (1, 90));
    let mut then = asked(&mut replica);
    assert!(matches!(&then.tasks[..], [Task::Execute(_)]), "{:?}", then.tasks);
    for _ in 0..2 {
        let question = next(&then);
        answer(&mut replica, history, question, RangeInclusive::new(1, 0), (50, 90));
        then = asked(&mut replica);
    }
    assert_eq!(names(&then, 0), 1);
    replica
}

/// From pruned blocks over a snapshot, which a liar tries to spoil, to the blocks after it.
#[test]
fn a_snapshot_takes_the_place_of_blocks_that_are_gone() {
    let (history, later) = (History::empty(1..=9), History::empty(64..=70));
    let useless = hash(b"of an older snapshot");
    let mut replica = pruned(&history, useless);
    offer(&mut replica, &[0], &later);
    assert_eq!(chunks(&asked(&mut replica)), [], "one member vouches for nothing");
    offer(&mut replica, &[1, 2], &later);
    let first = asked(&mut replica);
    assert!(matches!(&first.tasks[..], [Task::Unstage(gone)] if *gone == [useless]), "{first:?}");
    assert_eq!(chunks(&first).len(), 3);
    let status = replica.status();
    assert_eq!(status.sync.to, Height(64));
    assert!(status.sync.why.contains("0 of 3"), "{}", status.sync.why);
    assert!(!status.timers.contains_key(&Timer::FetchBlocks), "blocks would be for nothing");
    // Two members send something else, and the third everything.
    let mut under_way = chunks(&first);
    for faults in 1..=2 {
        let (liar, index) = *under_way.iter().find(|(m, _)| *m != 0).expect("others are asked");
        send_chunk(&mut replica, (liar, index), Bytes::from_static(b"made up"));
        assert_eq!(replica.status().faults, faults);
        under_way.retain(|asked| *asked != (liar, index));
        under_way.extend(chunks(&asked(&mut replica)));
    }
    let mut staged = Vec::new();
    while let Some((member, index)) = under_way.pop() {
        send_chunk(&mut replica, (member, index), chunk(index));
        let then = asked(&mut replica);
        assert_eq!(fetches(&then), []);
        under_way.extend(chunks(&then));
        staged.extend(then.tasks);
    }
    let is_stage = |task: &Task| matches!(task, Task::Stage(_));
    assert!(staged.len() == 3 && staged.iter().all(is_stage), "none twice: {staged:?}");
    finish(replica, &later);
}

/// All chunks are staged, and height 1 is being executed.
fn finish(mut replica: Replica, later: &History) {
    let header = Header { height: Height(1), ..Header::default() };
    let (leaves, answers) = (Vec::new(), Vec::new());
    replica.handle(NOW, Event::Executed(Executed { header, leaves, answers, operations: 0 }));
    let then = asked(&mut replica);
    let [Task::Install(install)] = &then.tasks[..] else { panic!("{then:?}") };
    assert_eq!((&install.manifest, &install.decided), (&manifest(64), &later.record(64)));
    assert_eq!(replica.status().snapshots_installed, 0);
    replica.handle(NOW, Event::Installed(Box::new(executed(later, 64))));
    let after = asked(&mut replica);
    let record = DecidedRecord { height: Height(64), bytes: later.record(64) };
    let is_kept = |effect: &Effect<Message>| matches!(effect, Effect::Append(r) if *r == record);
    assert!(after.others.iter().any(is_kept), "{:?}", after.others);
    let status = replica.status();
    let found = (status.snapshots_installed, status.decided, status.executed);
    assert_eq!(found, (1, Height(64), Height(64)));
    let (_, request) = next(&after);
    assert_eq!((request.height, request.after), (Height(64), Some(later.id(64))));
    assert!(!status.timers.contains_key(&Timer::FetchSnapshot), "{:?}", status.timers);
}

/// A snapshot of a height that is in the log already is not appended to it.
#[test]
fn an_installed_height_is_logged_if_it_is_news() {
    let (history, _) = held_up(1..=9);
    for (height, is_news) in [(3, false), (5, false), (6, true)] {
        let mut replica = behind(&history, 8);
        let first = next(&asked(&mut replica));
        answer(&mut replica, &history, first, 1..=5, (1, 9));
        asked(&mut replica);
        replica.handle(NOW, Event::Installed(Box::new(executed(&history, height))));
        let others = asked(&mut replica).others;
        let appended = others.iter().any(|effect| matches!(effect, Effect::Append(_)));
        assert_eq!(appended, is_news, "{height}: {others:?}");
        let status = replica.status();
        assert_eq!((status.snapshots_installed, status.executed), (1, Height(height)));
    }
}

/// A body that nobody sends after everybody was asked so often is gone, and only a snapshot helps;
/// when it comes all the same none is needed.
#[test]
fn a_body_that_nobody_has_leads_to_a_snapshot() {
    let (history, missing) = held_up(1..=9);
    let mut replica = behind(&history, 8);
    let first = next(&asked(&mut replica));
    answer(&mut replica, &history, first, 1..=5, (1, 5));
    let is_for = |message: &Message| match message {
        Message::FetchBodies(names) => names.contains(&missing.reference),
        _ => false,
    };
    let enough = usize::try_from(4 * BODY_ROUNDS_MAX).expect("few");
    let (mut now, mut questions, mut gave_up) = (NOW, 0, false);
    for _ in 0..100 {
        let step = asked(&mut replica);
        let before = questions;
        questions += step.sent.iter().filter(|(_, message)| is_for(message)).count();
        gave_up = names(&step, 0) > 0;
        assert_eq!(gave_up, questions >= enough, "{before} questions, then {questions}");
        if gave_up {
            break;
        }
        now = wake(&mut replica).max(now);
    }
    assert!(gave_up, "after {questions} questions");
    assert!(replica.status().timers.contains_key(&Timer::FetchSnapshot));
    give_at(&mut replica, now, from(0), &Message::Body(Arc::clone(&missing)));
    replica.handle(now, Event::Stored(missing.reference));
    let status = replica.status();
    assert!(!status.timers.contains_key(&Timer::FetchSnapshot), "{:?}", status.timers);
}

/// Whose own state is not the certified one needs another, though nobody has pruned anything.
#[test]
fn a_wrong_state_is_replaced_by_a_snapshot() {
    let settings = Settings { execution_certificates: true, ..Settings::default() };
    let mut replica = start(3, settings, Recovery::default());
    execute_one(&mut replica);
    assert_eq!(names(&asked(&mut replica), 1), 0);
    assert!(!replica.status().syncing);
    let header = Header { height: Height(1), state: hash(b"another"), ..Header::default() };
    give(&mut replica, from(0), &Message::ExecutionProof(certify_executed(header)));
    assert_eq!(replica.status().diverged, Some(Height(1)));
    assert_eq!(names(&asked(&mut replica), 1), 1);
    assert!(replica.status().syncing, "by a snapshot alone");
    wake(&mut replica);
    assert!(replica.status().timers.contains_key(&Timer::FetchSnapshot), "it goes on asking");
}

/// Blocks that travel ahead of messages wait as well while bodies are missing.
#[test]
fn unasked_blocks_wait_while_bodies_are_missing() {
    use crate::message::Chain;
    use crate::{Comparison, Truncation};
    let (history, _) = held_up(1..=400);
    let comparison = Comparison { truncation: Truncation::Heights, ..Comparison::default() };
    let settings = Settings { inline_bodies: true, comparison, ..Settings::default() };
    let mut replica = start(3, settings, Recovery::default());
    let chain = |heights: RangeInclusive<u64>| {
        let kept = Kept { oldest: Height(*heights.start()), newest: Height(400) };
        let height = Height(heights.start() - 1);
        let target = history.id(*heights.end());
        let request = FetchBlocks { height, after: None, target };
        let decided = history.records(heights);
        let blocks = vec![Blocks { request, decided, tail: Vec::new(), kept }];
        let certificate = Bytes::new();
        Message::Chain(Chain { heights: Vec::new(), certificate, blocks, bodies: Vec::new() })
    };
    for (heights, decided) in [(1..=256, 256), (257..=257, 257), (258..=260, 257)] {
        give(&mut replica, from(0), &chain(heights));
        assert_eq!(replica.status().decided, Height(decided));
    }
}
