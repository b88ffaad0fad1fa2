//! Bodies that wait for room in a socket, where their author takes back what a quorum has.
//!
//! The sender writes one frame after the other to each peer. One is in its socket, which is as wide
//! as the congestion window, when those before it will have left within a round trip; until then it
//! waits here, and does not leave if meanwhile nobody waits for its acknowledgement.

use crate::frames::Frame;
use crate::jobs::Destination;
use crate::links::ConnectionId;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Frames that wait, by connection.
#[derive(Debug, Default)]
pub(crate) struct Outboxes(BTreeMap<ConnectionId, VecDeque<(Destination, Rc<Frame>)>>);

impl Outboxes {
    pub(crate) fn push(&mut self, id: ConnectionId, to: Destination, frame: Rc<Frame>) {
        self.0.entry(id).or_default().push_back((to, frame));
    }

    /// Takes out the frame that has waited longest.
    pub(crate) fn pop(&mut self, id: ConnectionId) -> Option<(Destination, Rc<Frame>)> {
        let waiting = self.0.get_mut(&id)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.0.remove(&id);
        }
        first
    }

    /// Returns `true` if something waits for this connection.
    pub(crate) fn holds(&self, id: ConnectionId) -> bool {
        self.0.contains_key(&id)
    }
}
