//! Urgent frames on their way, taken up by spans.
//!
//! With hundreds of validators most of a run's happenings are single votes coming in. A scene may say
//! that what reaches a validator within a span of time is taken up at the span's end, in the order in
//! which it came: one happening and one turn of each station for all of it. A frame is late by less than
//! a span; the receiving threads' work is the same. Spans of no length leave everything as it is.

use super::frames::Frame;
use super::{Nanos, nanos};
use quorate_types::Peer;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Frames by receiver and by the end of their span.
#[derive(Debug)]
pub(crate) struct Coming {
    span: Nanos,
    to: Vec<BTreeMap<Nanos, Arrivals>>,
}

/// Frames with the moments at which they are there.
type Arrivals = Vec<(Nanos, Rc<Frame>)>;

impl Coming {
    pub(crate) fn new(members: usize, span: Duration) -> Self {
        Self { span: nanos(span), to: (0..members).map(|_| BTreeMap::new()).collect() }
    }

    /// Whether a frame to a validator is taken up with others.
    pub(crate) fn is_by_spans(&self, frame: &Frame) -> bool {
        self.span > 0 && frame.is_urgent() && matches!(frame.peer, Peer::Replica(_))
    }

    /// A frame will be there at `at`; when it is taken up, if nothing else was by then.
    pub(crate) fn put(&mut self, to: usize, at: Nanos, frame: Rc<Frame>) -> Option<Nanos> {
        let end = at.next_multiple_of(self.span);
        let arrivals = self.to[to].entry(end).or_default();
        arrivals.push((at, frame));
        (arrivals.len() == 1).then_some(end)
    }

    /// What came in the span that ends now, in its order.
    pub(crate) fn take(&mut self, to: usize, now: Nanos) -> Vec<Rc<Frame>> {
        let mut arrivals = self.to[to].remove(&now).unwrap_or_default();
        arrivals.sort_by_key(|(at, _)| *at);
        arrivals.into_iter().map(|(_, frame)| frame).collect()
    }
}
