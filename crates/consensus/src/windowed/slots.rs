//! The window: what is known of each slot under way.

use super::collecting::Collecting;
use super::messages::{Path, Place, PrePrepare, Proof, SlotCertificate, digest_of};
use super::records::SlotRecord;
use super::rules::WINDOW;
use quorate_crypto::Digest;
use quorate_types::machine::{Record, RecordKind};
use quorate_types::{Epoch, Height, Payload, Time, View};
use std::collections::BTreeMap;

/// Values kept of one slot that nobody has voted for or certified: what more a faulty primary makes
/// up is not looked at.
const VALUES_MAX: usize = 4;

/// What is known of a slot.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// What the primary of this view wants here; it gets a vote once its bodies are stored.
    pub(super) proposed: Option<(View, Digest)>,
    /// The primary's own words, to show them to who missed them and to convict it.
    pub(super) pre_prepare: Option<PrePrepare>,
    /// The last value that got a vote (★ durable before the vote leaves).
    pub(super) accepted: Option<(View, Digest)>,
    /// A vote for it may leave: its bodies are stored here.
    pub(super) is_stored: bool,
    /// Of the highest view (★ durable before the vote to commit leaves).
    pub(super) prepared: Option<SlotCertificate>,
    pub(super) proof: Option<Proof>,
    /// When the own last vote left, until its certificate came.
    pub(super) voted_at: Option<Time>,
    /// Values by their digests.
    pub(super) payloads: BTreeMap<Digest, Payload>,
    /// By view: this one's, and the next one's, whose votes may come before it begins.
    pub(super) collecting: BTreeMap<View, Collecting>,
}

impl Slot {
    /// The value that is decided, if it is here.
    pub(super) fn decided(&self) -> Option<(&Proof, &Payload)> {
        let proof = self.proof.as_ref()?;
        Some((proof, self.payloads.get(&proof.certificate.at.digest)?))
    }

    /// The values that somebody may need.
    fn named(&self) -> impl Iterator<Item = Digest> {
        let of = |place: &Place| place.digest;
        [
            self.proposed.map(|(_, digest)| digest),
            self.accepted.map(|(_, digest)| digest),
            self.prepared.as_ref().map(|prepared| of(&prepared.at)),
            self.proof.as_ref().map(|proof| of(&proof.certificate.at)),
        ]
        .into_iter()
        .flatten()
    }

    /// Values that are known by their digests alone.
    pub(super) fn lacking(&self) -> impl Iterator<Item = Digest> {
        self.named().filter(|digest| !self.payloads.contains_key(digest))
    }

    /// Takes a value that somebody may need.
    pub(super) fn keep(&mut self, payload: Payload) {
        let named: Vec<Digest> = self.named().collect();
        while self.payloads.len() >= VALUES_MAX {
            let surplus = self.payloads.keys().find(|digest| !named.contains(digest)).copied();
            let Some(surplus) = surplus else { break };
            self.payloads.remove(&surplus);
        }
        self.payloads.insert(digest_of(&payload), payload);
    }

    /// What of it must never be forgotten.
    pub(super) fn record(&self, epoch: Epoch, slot: Height) -> Record {
        let promised = self
            .accepted
            .map(|(_, digest)| digest)
            .into_iter()
            .chain(self.prepared.as_ref().map(|prepared| prepared.at.digest));
        let mut payloads: Vec<&Payload> =
            promised.filter_map(|digest| self.payloads.get(&digest)).collect();
        payloads.dedup();
        let record = SlotRecord {
            epoch,
            slot,
            accepted: self.accepted,
            prepared: self.prepared.clone(),
            payloads: payloads.into_iter().cloned().collect(),
        };
        record.encode()
    }
}

/// The record that a slot's promises replace: that of the slot a window before it, which is stable.
pub(super) fn record_kind(slot: Height) -> RecordKind {
    RecordKind::Slot(u8::try_from(slot.0 % WINDOW).expect("a window of 256"))
}

/// Slots beyond the last stable one.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) stable: Height,
    slots: BTreeMap<Height, Slot>,
}

impl Window {
    /// Whether a slot is under way: neither forgotten nor too far.
    pub(super) fn covers(&self, slot: Height) -> bool {
        self.stable < slot && slot.0 <= self.stable.0 + WINDOW
    }

    /// A slot under way.
    pub(super) fn get(&self, slot: Height) -> Option<&Slot> {
        self.slots.get(&slot)
    }

    /// A slot under way that something is known of.
    pub(super) fn get_mut(&mut self, slot: Height) -> Option<&mut Slot> {
        self.slots.get_mut(&slot)
    }

    /// A slot under way, from now on known of; `None` outside the window.
    pub(super) fn open(&mut self, slot: Height) -> Option<&mut Slot> {
        self.covers(slot).then(|| self.slots.entry(slot).or_default())
    }

    /// All of which something is known, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Height, &Slot)> {
        self.slots.iter().map(|(slot, known)| (*slot, known))
    }

    /// All of which something is known, ascending.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Height, &mut Slot)> {
        self.slots.iter_mut().map(|(slot, known)| (*slot, known))
    }

    /// Those after this one.
    pub(super) fn after(&self, slot: Height) -> impl Iterator<Item = (Height, &Slot)> {
        self.slots.range(slot.next()..).map(|(slot, known)| (*slot, known))
    }

    /// Those after this one.
    pub(super) fn after_mut(&mut self, slot: Height) -> impl Iterator<Item = (Height, &mut Slot)> {
        self.slots.range_mut(slot.next()..).map(|(slot, known)| (*slot, known))
    }

    /// The votes that this replica gathers for a slot in a view.
    pub(super) fn collecting(&mut self, view: View, slot: Height) -> Option<&mut Collecting> {
        self.slots.get_mut(&slot)?.collecting.get_mut(&view)
    }

    /// The last slot that anything is known of.
    pub(super) fn last(&self) -> Height {
        self.slots.last_key_value().map_or(self.stable, |(slot, _)| *slot)
    }

    /// Everything up to here is forgotten.
    pub(super) fn forget(&mut self, stable: Height) {
        self.stable = stable;
        self.slots = self.slots.split_off(&stable.next());
    }
}

/// How many slots each path decided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paths {
    pub(super) fast: u64,
    pub(super) slow: u64,
}

impl Paths {
    pub(super) fn count(&mut self, path: Path) {
        match path {
            Path::Fast => self.fast += 1,
            Path::Slow => self.slow += 1,
        }
    }
}
