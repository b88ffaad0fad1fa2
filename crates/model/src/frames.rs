//! Frames on their way, shared by all their receivers.

use crate::time::Nanos;
use bytes::Bytes;
use quorate_engine::{FrameTag, Incoming, Message};
use quorate_types::{BodyRef, ClientId, Lane, Peer, Verified};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// Result and cost of a check that is the same for every receiver, once there is one.
pub(crate) type SharedCheck = Rc<RefCell<Option<(Verified<Incoming>, Nanos)>>>;

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
    /// Body that it brings to everybody, as its author does once: no answer to who asked for it.
    pub(crate) spreads: Option<BodyRef>,
    /// Its bytes on the wire, length prefix included.
    pub(crate) bytes: usize,
    /// Tag and header.
    pub(crate) head: Bytes,
    /// Bodies and requests behind the header: put together with it at the first check, and no
    /// sooner, for what is on its way may be a lot.
    raw: Vec<Bytes>,
    whole: OnceCell<Bytes>,
    /// Frames that leave for one place in one write, as a link gathers them, or that were taken up
    /// together; then it has no content.
    parts: Vec<Rc<Self>>,
    /// Present where its check is the same for every receiver.
    checked: Option<SharedCheck>,
}

impl Frame {
    pub(crate) fn new(
        from: usize,
        peer: Peer,
        client: Option<ClientId>,
        message: &Message,
        checked: Option<SharedCheck>,
    ) -> Rc<Self> {
        let pieces = message.frame();
        let bytes = pieces.len();
        let mut pieces = pieces.0.into_iter();
        let head = pieces.next().expect("a length and a tag").slice(4..);
        Rc::new(Self {
            from,
            peer,
            lane: message.lane(),
            client,
            spreads: None,
            bytes,
            head,
            raw: pieces.collect(),
            whole: OnceCell::new(),
            parts: Vec::new(),
            checked,
        })
    }

    /// The same, which brings a body to everybody.
    pub(crate) fn spreading(self: Rc<Self>, body: BodyRef) -> Rc<Self> {
        let mut frame = Rc::into_inner(self).expect("nobody has it yet");
        frame.spreads = Some(body);
        Rc::new(frame)
    }

    /// Gathers frames that leave for one place in one write, or were taken up there together.
    pub(crate) fn gathered(mut parts: Vec<Rc<Self>>) -> Option<Rc<Self>> {
        if parts.len() < 2 {
            return parts.pop();
        }
        let first = &parts[0];
        let (from, peer, lane, client) = (first.from, first.peer, first.lane, first.client);
        let bytes = parts.iter().map(|part| part.bytes).sum();
        Some(Rc::new(Self {
            from,
            peer,
            lane,
            client,
            spreads: None,
            bytes,
            head: Bytes::new(),
            raw: Vec::new(),
            whole: OnceCell::new(),
            parts,
            checked: None,
        }))
    }

    /// Frames in it: itself, where nothing was gathered.
    pub(crate) fn each(self: &Rc<Self>) -> impl Iterator<Item = &Rc<Self>> {
        let alone = self.parts.is_empty().then_some(self);
        alone.into_iter().chain(&self.parts)
    }

    pub(crate) fn tag(&self) -> Option<FrameTag> {
        FrameTag::of(&self.head)
    }

    /// Tag and what follows.
    pub(crate) fn content(&self) -> Bytes {
        if self.raw.is_empty() {
            return self.head.clone();
        }
        let join = || {
            let mut whole = Vec::with_capacity(self.bytes);
            whole.extend_from_slice(&self.head);
            self.raw.iter().for_each(|piece| whole.extend_from_slice(piece));
            Bytes::from(whole)
        };
        self.whole.get_or_init(join).clone()
    }

    /// Tells whether it is checked ahead of bodies and requests.
    pub(crate) fn is_urgent(&self) -> bool {
        if let Some(first) = self.parts.first() {
            return first.is_urgent();
        }
        quorate_engine::is_urgent(self.lane, &self.head)
    }

    /// Result and cost of another receiver's check, where they are the same for all.
    pub(crate) fn known(&self) -> Option<(Verified<Incoming>, Nanos)> {
        self.checked.as_ref()?.borrow().clone()
    }

    /// Remembers a check for the other receivers, where it is the same for all.
    pub(crate) fn remember(&self, message: &Verified<Incoming>, cost: Nanos) {
        if let Some(checked) = &self.checked {
            *checked.borrow_mut() = Some((message.clone(), cost));
        }
    }
}
