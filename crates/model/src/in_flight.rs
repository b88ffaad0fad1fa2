//! Bulk bytes in flight between members, bounded as a sender's outbox bounds them, if it does.

use crate::frames::Frame;
use quorate_types::Lane;

/// Bytes in flight to one peer where they are bounded, from the sender's queue (32 MiB) to the
/// receiver's check (6 MiB): what comes on top is dropped, as the sender's outbox drops it.
const BYTES_MAX: usize = 38 * 1024 * 1024;

/// Bulk bytes that were sent and have not reached their receiver's check.
#[derive(Debug)]
pub(crate) struct InFlight {
    members: usize,
    /// Bytes in flight to one peer at most.
    most: usize,
    /// By sender and receiver.
    bytes: Vec<usize>,
    /// Frames that found no room.
    pub(crate) dropped: u64,
}

impl InFlight {
    pub(crate) fn new(members: usize, is_bounded: bool) -> Self {
        let most = if is_bounded { BYTES_MAX } else { usize::MAX };
        Self { members, most, bytes: vec![0; members * members], dropped: 0 }
    }

    /// Takes bulk bytes to a peer in, unless there is no room for them: then the frame is dropped.
    pub(crate) fn enter(&mut self, from: usize, to: usize, bytes: usize) -> bool {
        let in_flight = &mut self.bytes[from * self.members + to];
        if *in_flight > 0 && *in_flight + bytes > self.most {
            self.dropped += 1;
            return false;
        }
        *in_flight += bytes;
        true
    }

    /// Takes a frame out that reached its receiver's check, or nobody. Only bulk counts.
    pub(crate) fn leave(&mut self, frame: &Frame, to: usize) {
        if frame.lane == Lane::Bulk {
            self.bytes[frame.from * self.members + to] -= frame.bytes;
        }
    }
}
