//! Queues of inbound urgent frames, taken up by spans.
//!
//! With hundreds of validators most of a run's events are single votes coming in. A scene may say
//! that what reaches a validator within a span of time is taken up at the span's end, in the order
//! in which it came: one event and one turn of each station for all of it. A frame is late by less
//! than a span; the receiving threads' work is the same. Spans of no length leave everything as it
//! is.

use crate::frames::Frame;
use crate::time::{Nanos, nanos};
use quorate_types::Peer;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Frames by receiver and by the end of their span.
#[derive(Debug)]
pub(crate) struct InboundQueue {
    span: Nanos,
    to: Vec<BTreeMap<Nanos, Arrivals>>,
}

/// Frames with the moments at which they are there.
type Arrivals = Vec<(Nanos, Rc<Frame>)>;

impl InboundQueue {
    pub(crate) fn new(members: usize, span: Duration) -> Self {
        Self { span: nanos(span), to: (0..members).map(|_| BTreeMap::new()).collect() }
    }

    /// Tells whether a frame to a validator is taken up with others.
    pub(crate) fn takes(&self, frame: &Frame) -> bool {
        self.span > 0 && frame.is_urgent() && matches!(frame.peer, Peer::Replica(_))
    }

    /// Adds a frame that will be there at `at`; returns the end of its span, for the first frame in
    /// it.
    pub(crate) fn put(&mut self, to: usize, at: Nanos, frame: Rc<Frame>) -> Option<Nanos> {
        let end = at.next_multiple_of(self.span);
        let arrivals = self.to[to].entry(end).or_default();
        arrivals.push((at, frame));
        (arrivals.len() == 1).then_some(end)
    }

    /// Takes out the frames of the span that ends now, in the order of their arrival.
    pub(crate) fn take(&mut self, to: usize, now: Nanos) -> Vec<Rc<Frame>> {
        let mut arrivals = self.to[to].remove(&now).unwrap_or_default();
        arrivals.sort_by_key(|(at, _)| *at);
        arrivals.into_iter().map(|(_, frame)| frame).collect()
    }
}
