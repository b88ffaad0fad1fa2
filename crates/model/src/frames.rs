//! Frames on their way, shared by all their receivers.

use crate::time::Nanos;
use bytes::Bytes;
use quorate_consensus::MessageClass;
use quorate_engine::{FrameTag, Incoming, Message};
use quorate_types::{ClientId, Lane, Peer, Verified};
use std::cell::RefCell;
use std::rc::Rc;

/// An encoded message, once for all its receivers.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The member beside whom it was sent: itself, or its client.
    pub(crate) from: usize,
    /// Authenticated sender of its channel.
    pub(crate) peer: Peer,
    pub(crate) lane: Lane,
    /// Client that it is for, if it is for one.
    pub(crate) client: Option<ClientId>,
    /// Its bytes on the wire, length prefix included.
    pub(crate) bytes: usize,
    /// Tag and what follows.
    pub(crate) content: Bytes,
    /// Frames that leave for one place in one write, as a link gathers them, or that were taken up
    /// together; then it has no content.
    parts: Vec<Rc<Self>>,
    /// Its check is the same for every receiver.
    shared_check: bool,
    /// Result and cost of the check, where they are the same for every receiver.
    checked: RefCell<Option<(Verified<Incoming>, Nanos)>>,
}

/// Tells whether a message's check needs nothing of the receiver: a body is parsed, hashed and its
/// requests' signatures checked alike everywhere; of a vote only the form is checked.
fn has_shared_check(message: &Message) -> bool {
    match message {
        Message::Body(_) => true,
        Message::Consensus(message) => MessageClass::of(message) == MessageClass::Vote,
        _ => false,
    }
}

impl Frame {
    pub(crate) fn new(
        from: usize,
        peer: Peer,
        client: Option<ClientId>,
        message: &Message,
    ) -> Rc<Self> {
        let pieces = message.frame();
        let bytes = pieces.len();
        let content = Bytes::from(pieces.0.concat()).slice(4..);
        Rc::new(Self {
            from,
            peer,
            lane: message.lane(),
            client,
            bytes,
            content,
            parts: Vec::new(),
            shared_check: has_shared_check(message),
            checked: RefCell::default(),
        })
    }

    /// Gathers frames that leave for one place in one write, or were taken up there together.
    pub(crate) fn gathered(mut parts: Vec<Rc<Self>>) -> Option<Rc<Self>> {
        if parts.len() < 2 {
            return parts.pop();
        }
        let first = &parts[0];
        let (from, peer, lane, client) = (first.from, first.peer, first.lane, first.client);
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let content = Bytes::new();
        Some(Rc::new(Self {
            from,
            peer,
            lane,
            client,
            bytes,
            content,
            parts,
            shared_check: false,
            checked: RefCell::default(),
        }))
    }

    /// Frames in it: itself, where nothing was gathered.
    pub(crate) fn each(self: &Rc<Self>) -> impl Iterator<Item = &Rc<Self>> {
        let alone = self.parts.is_empty().then_some(self);
        alone.into_iter().chain(&self.parts)
    }

    pub(crate) fn tag(&self) -> Option<FrameTag> {
        FrameTag::of(&self.content)
    }

    /// Tells whether it is checked ahead of bodies and requests.
    pub(crate) fn is_urgent(&self) -> bool {
        if let Some(first) = self.parts.first() {
            return first.is_urgent();
        }
        quorate_engine::is_urgent(self.lane, &self.content)
    }

    /// Result and cost of another receiver's check, where they are the same for all.
    pub(crate) fn known(&self) -> Option<(Verified<Incoming>, Nanos)> {
        self.checked.borrow().clone()
    }

    /// Remembers a check for the other receivers, where it is the same for all.
    pub(crate) fn remember(&self, message: &Verified<Incoming>, cost: Nanos) {
        if self.shared_check {
            *self.checked.borrow_mut() = Some((message.clone(), cost));
        }
    }
}
