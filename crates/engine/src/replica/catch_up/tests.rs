//! A replica that helps others to catch up, and one that does.

mod asking;
mod kept;
mod serving;

use crate::replica::Replica;
use crate::replica::tests::{NOW, effects};
use crate::testing::config;
use crate::testing::history::History;
use crate::{Message, Settings};
use bytes::Bytes;
use quorate_types::machine::{ExecutedUpTo, ReadAnswer, ReadItem, Recovery, Task};
use quorate_types::{Effect, Event, Header, Height, Machine, Recipients, Time};

/// Replica with this number that starts from what survived.
fn start(id: u8, settings: Settings, recovery: Recovery) -> Replica {
    let mut replica = Replica::new(config(id, settings));
    replica.handle(NOW, Event::Recovered(Box::new(recovery)));
    replica
}

/// What survives of a replica that executed a history up to this height.
fn executed(history: &History, height: u64) -> ExecutedUpTo {
    ExecutedUpTo {
        header: Header { height: Height(height), ..Header::default() },
        decided: history.record(height),
        operations: 0,
        recent: Vec::new(),
    }
}

/// What a replica asked of its host.
#[derive(Debug, Default)]
struct Asked {
    sent: Vec<(Recipients, Message)>,
    reads: Vec<Vec<ReadItem>>,
    tasks: Vec<Task>,
    others: Vec<Effect<Message>>,
}

fn take(replica: &mut Replica, asked: &mut Asked) -> Vec<(u64, Vec<ReadItem>)> {
    let mut reads = Vec::new();
    for effect in effects(replica) {
        match effect {
            Effect::Send { to, message, .. } => asked.sent.push((to, message)),
            Effect::Read(request) => {
                asked.reads.push(request.items.clone());
                reads.push((request.ticket, request.items));
            }
            Effect::Task(task) => asked.tasks.push(task),
            Effect::Halt(halt) => panic!("{halt}"),
            other => asked.others.push(other),
        }
    }
    reads
}

/// What it asks for when nothing is read.
fn asked(replica: &mut Replica) -> Asked {
    let mut asked = Asked::default();
    take(replica, &mut asked);
    asked
}

/// What it asks for until it wants nothing more read, from a disk that keeps everything from a
/// height on.
fn read(replica: &mut Replica, oldest: u64, disk: impl Fn(ReadItem) -> Option<Bytes>) -> Asked {
    let mut asked = Asked::default();
    for _ in 0..10 {
        let reads = take(replica, &mut asked);
        if reads.is_empty() {
            return asked;
        }
        for (ticket, items) in reads {
            let items = items.into_iter().map(|item| (item, disk(item))).collect();
            let answer = ReadAnswer { ticket, items, oldest: Height(oldest) };
            replica.handle(NOW, Event::Read(answer));
        }
    }
    panic!("it reads without end: {:?}", asked.reads);
}

/// Wakes the replica for its next timer; returns when that was.
fn wake(replica: &mut Replica) -> Time {
    let due = replica.next_timeout().expect("it goes on");
    replica.handle_timeout(due);
    due
}
