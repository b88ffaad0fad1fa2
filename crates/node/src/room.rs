//! The thread that looks after the room on the disk.
//!
//! Nothing tells a process that room came or went, so that this thread alone looks every now and
//! then; it tells the machine, and the log of every change.

use crate::NodeError;
use crate::machine::EventSender;
use crate::threads::Threads;
use quorate_storage::{Room, RoomFigures, RoomLevel, StorageError};
use quorate_types::Event;
use std::time::Duration;

/// Pause between two looks. What may be written meanwhile is what the threshold leaves room for.
const PAUSE: Duration = Duration::from_millis(250);

/// Pause where there is ample room: that is what goes for nothing where little happens.
const PAUSE_AMPLE: Duration = Duration::from_secs(1);

/// Room beyond the threshold that is ample: no validator writes as much in the pause.
const AMPLE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Starts the thread that looks until [`Room::stop`]. From now on writers wait.
pub(crate) fn spawn_watch(
    threads: &mut Threads,
    room: &Room,
    events: &EventSender,
) -> Result<(), NodeError> {
    let (room, events) = (room.clone(), events.clone());
    room.wait_from_now_on();
    threads.spawn("room", move || {
        watch(&room, &events);
        Ok(())
    })
}

fn watch(room: &Room, events: &EventSender) {
    let mut was_low = false;
    let mut figures = room.figures();
    while room.rest(pause(&figures)) {
        figures = room.look();
        let is_low = figures.level > RoomLevel::Enough;
        if is_low != was_low {
            was_low = is_low;
            log(&figures);
            events.answer(Event::DiskNearlyFull(is_low));
        }
    }
}

fn pause(figures: &RoomFigures) -> Duration {
    let is_ample = figures.free_bytes.saturating_sub(figures.low_bytes) >= AMPLE_BYTES;
    if is_ample && figures.level == RoomLevel::Enough { PAUSE_AMPLE } else { PAUSE }
}

fn log(figures: &RoomFigures) {
    let RoomFigures { level, free_bytes, low_bytes, reserve_bytes, .. } = *figures;
    if level == RoomLevel::Enough {
        tracing::info!(free_bytes, reserve_bytes, "the disk has room again: clients are served");
    } else {
        tracing::warn!(
            free_bytes,
            low_bytes,
            reserve_bytes,
            "the disk is nearly full: clients are refused, and what may go is deleted"
        );
    }
}

/// Starts a thread that writes. One that was stopped while it waited for room has lost nothing that
/// anybody was told of: what it was to write is as if it had not been asked for.
pub(crate) fn spawn(
    threads: &mut Threads,
    name: &'static str,
    room: &Room,
    work: impl FnOnce() -> Result<(), StorageError> + Send + 'static,
) -> Result<(), NodeError> {
    let room = room.clone();
    threads.spawn(name, move || Ok(without_what_waited(&room, work())?))
}

/// What a thread that writes came to, but for want of room where nobody waits any more.
fn without_what_waited(room: &Room, result: Result<(), StorageError>) -> Result<(), StorageError> {
    match result {
        Err(error) if room.gave_up() && error.is_full() => {
            tracing::warn!(%error, "stopped while the disk is full: what waited is not written");
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn it_looks_less_often_where_there_is_ample_room() {
        let low_bytes = 1024;
        let figures = |level, free_bytes| RoomFigures {
            level,
            free_bytes,
            low_bytes,
            reserve_bytes: 0,
            needed_bytes: 0,
        };
        let ample = AMPLE_BYTES + low_bytes;
        for (level, free_bytes, expected) in [
            (RoomLevel::Enough, ample, PAUSE_AMPLE),
            (RoomLevel::Enough, ample - 1, PAUSE),
            (RoomLevel::Low, ample, PAUSE),
            (RoomLevel::Out, 0, PAUSE),
        ] {
            assert_eq!(pause(&figures(level, free_bytes)), expected, "{level:?}, {free_bytes}");
        }
    }

    /// A thread that was stopped while it waited may fail otherwise too.
    #[test]
    fn only_want_of_room_is_no_failure_of_whoever_stopped() {
        let room = Room::unwatched();
        let full = || StorageError::Full { action: "write", file: "log".to_owned() };
        assert_eq!(without_what_waited(&room, Err(full())), Err(full()), "nobody has stopped");
        let attempt = || Err(io::Error::from(io::ErrorKind::StorageFull));
        let failed: io::Result<()> = room.when_there_is(("log", 1), attempt);
        assert!(failed.is_err() && room.gave_up());
        assert_eq!(without_what_waited(&room, Err(full())), Ok(()));
        let (file, reason) = ("log".to_owned(), "input/output error".to_owned());
        let broken = StorageError::Io { action: "sync", file, reason };
        assert_eq!(without_what_waited(&room, Err(broken.clone())), Err(broken));
        assert_eq!(without_what_waited(&room, Ok(())), Ok(()));
    }
}
