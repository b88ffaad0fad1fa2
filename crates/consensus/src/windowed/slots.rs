//! The log within the window (PBFT §4.2, between the water marks): evidence and votes of each slot
//! that is neither stable nor too far ahead.

use super::messages::{FastReport, SlotReport, SlowReport};
use super::records::SlotRecord;
use super::rules::WINDOW;
use super::slot_votes::SlotVotes;
use super::values::{Path, PrePrepare, Proof, Proposal, SlotCertificate, digest_of};
use quorate_crypto::Digest;
use quorate_types::machine::Record;
use quorate_types::{EpochId, Height, Payload, Time, View};
use std::collections::BTreeMap;

/// Payloads kept of one slot: of more that a faulty primary makes up, those without a vote or
/// certificate are dropped.
pub(super) const VALUES_MAX: usize = 4;

/// Evidence and votes of one slot.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Proposal of this view; it gets a vote once its bodies are stored.
    pub(super) proposed: Option<(View, Digest)>,
    /// Pre-prepare of this view, to send it again and to convict its primary.
    pub(super) pre_prepare: Option<PrePrepare>,
    /// Last proposal that got a vote (★ durable before the vote leaves).
    pub(super) accepted: Option<(View, Digest)>,
    /// `true` once the bodies of `proposed` are stored: a vote for it may leave.
    pub(super) is_stored: bool,
    /// Certificate of the highest view (★ durable before the vote to commit leaves).
    pub(super) prepared: Option<SlotCertificate>,
    /// Certificate of this view whose value is not here: it prepares once that comes.
    pub(super) unvalued: Option<SlotCertificate>,
    pub(super) proof: Option<Proof>,
    /// Time at which the own last vote left, until its certificate came.
    pub(super) voted_at: Option<Time>,
    /// Payloads by their digests.
    pub(super) payloads: BTreeMap<Digest, Payload>,
    /// Votes by view: of this one, and of the next, whose votes may come before it begins.
    pub(super) votes: BTreeMap<View, SlotVotes>,
}

impl Slot {
    /// Proof and payload, once both are here.
    pub(super) fn decided(&self) -> Option<(&Proof, &Payload)> {
        let proof = self.proof.as_ref()?;
        Some((proof, self.payloads.get(&proof.certificate.proposal.digest)?))
    }

    /// Digest of the value that was proposed or accepted in a view.
    pub(super) fn value_in(&self, view: View) -> Option<Digest> {
        let in_view = |known: Option<(View, Digest)>| known.filter(|(of, _)| *of == view);
        in_view(self.proposed).or(in_view(self.accepted)).map(|(_, digest)| digest)
    }

    /// Value that is decided, or else proposed or accepted in a view, if it is here.
    pub(super) fn current_value(&self, view: View) -> Option<&Payload> {
        let decided = self.proof.as_ref().map(|proof| proof.certificate.proposal.digest);
        self.payloads.get(&decided.or_else(|| self.value_in(view))?)
    }

    /// Digests that a proposal, a vote or a certificate names.
    fn referenced(&self) -> impl Iterator<Item = Digest> {
        let of = |proposal: &Proposal| proposal.digest;
        [
            self.proposed.map(|(_, digest)| digest),
            self.accepted.map(|(_, digest)| digest),
            self.prepared.as_ref().map(|prepared| of(&prepared.proposal)),
            self.unvalued.as_ref().map(|unvalued| of(&unvalued.proposal)),
            self.proof.as_ref().map(|proof| of(&proof.certificate.proposal)),
        ]
        .into_iter()
        .flatten()
    }

    /// Digests of which the payload is not here.
    pub(super) fn missing_values(&self) -> impl Iterator<Item = Digest> {
        self.referenced().filter(|digest| !self.payloads.contains_key(digest))
    }

    /// Keeps a payload, and drops surplus ones that nothing refers to.
    pub(super) fn keep(&mut self, payload: Payload) {
        let named: Vec<Digest> = self.referenced().collect();
        while self.payloads.len() >= VALUES_MAX {
            let surplus = self.payloads.keys().find(|digest| !named.contains(digest)).copied();
            let Some(surplus) = surplus else { break };
            self.payloads.remove(&surplus);
        }
        self.payloads.insert(digest_of(&payload), payload);
    }

    /// Returns `true` if a certificate of this view is here, with its value or without.
    pub(super) fn is_certified_in(&self, view: View) -> bool {
        let known = [&self.prepared, &self.unvalued].into_iter().flatten();
        known.into_iter().any(|known| known.proposal.view == view)
    }

    /// Certificate that waited for its value, once that is here.
    pub(super) fn take_valued(&mut self) -> Option<SlotCertificate> {
        let Self { unvalued, payloads, .. } = self;
        unvalued.take_if(|unvalued| payloads.contains_key(&unvalued.proposal.digest))
    }

    /// Moves to a later view: proposals of earlier ones get no vote any more.
    pub(super) fn leave(&mut self, view: View) {
        self.votes = self.votes.split_off(&view);
        self.pre_prepare = None;
        self.is_stored = false;
        self.unvalued = None;
        self.proposed = None;
    }

    /// Number of bodies in the values that a view change shows, or would once what is proposed in
    /// this view is prepared; none once it is decided.
    pub(super) fn reported_bodies(&self, view: View) -> usize {
        if self.proof.is_some() {
            return 0;
        }
        let prepared = self.prepared.as_ref().map(|prepared| prepared.proposal.digest);
        let proposed = self.value_in(view).filter(|digest| prepared != Some(*digest));
        let bodies = |digest| self.payloads.get(&digest).map_or(0, |value| value.bodies.len());
        prepared.into_iter().chain(proposed).map(bodies).sum()
    }

    /// Evidence for a view change; `None` where there is none.
    pub(super) fn report(&self, slot: Height, has_fast_path: bool) -> Option<SlotReport> {
        let decided = |path| {
            let proof = self.proof.as_ref().filter(|proof| proof.path == path);
            proof.map(|proof| proof.certificate.clone())
        };
        let prepared = self.prepared.clone().map(|prepared| {
            let value = &self.payloads[&prepared.proposal.digest];
            SlowReport::Prepared(prepared, value.clone())
        });
        let slow = decided(Path::Slow).map(SlowReport::Decided).or(prepared);
        let accepted = self.accepted.filter(|_| has_fast_path);
        let accepted = accepted.map(|(view, digest)| FastReport::Accepted(view, digest));
        let fast = decided(Path::Fast).map(FastReport::Decided).or(accepted);
        (slow.is_some() || fast.is_some()).then(|| SlotReport {
            slot,
            slow: slow.unwrap_or(SlowReport::Nothing),
            fast: fast.unwrap_or(FastReport::Nothing),
        })
    }

    /// Record of the promises about it.
    pub(super) fn record(&self, epoch: EpochId, slot: Height) -> Record {
        let promised = self
            .accepted
            .map(|(_, digest)| digest)
            .into_iter()
            .chain(self.prepared.as_ref().map(|prepared| prepared.proposal.digest));
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

/// Slots between the water marks: beyond the last stable one, at most [`WINDOW`] of them.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) stable: Height,
    slots: BTreeMap<Height, Slot>,
}

impl Window {
    /// A window of no slots yet, beyond a stable one.
    pub(super) fn after_stable(stable: Height) -> Self {
        Self { stable, slots: BTreeMap::new() }
    }

    /// Returns `true` for slots between the water marks.
    pub(super) fn covers(&self, slot: Height) -> bool {
        self.stable < slot && slot.0 <= self.stable.0.saturating_add(WINDOW)
    }

    /// Slot of which something is known.
    pub(super) fn get(&self, slot: Height) -> Option<&Slot> {
        self.slots.get(&slot)
    }

    /// Slot of which something is known, to change it.
    pub(super) fn get_mut(&mut self, slot: Height) -> Option<&mut Slot> {
        self.slots.get_mut(&slot)
    }

    /// Slot within the window, created if need be; `None` outside it.
    pub(super) fn open(&mut self, slot: Height) -> Option<&mut Slot> {
        self.covers(slot).then(|| self.slots.entry(slot).or_default())
    }

    /// All slots of which something is known, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Height, &Slot)> {
        self.slots.iter().map(|(slot, known)| (*slot, known))
    }

    /// All slots of which something is known, ascending.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Height, &mut Slot)> {
        self.slots.iter_mut().map(|(slot, known)| (*slot, known))
    }

    /// Known slots after this one, ascending.
    pub(super) fn after(&self, slot: Height) -> impl Iterator<Item = (Height, &Slot)> {
        self.slots.range(slot.next()..).map(|(slot, known)| (*slot, known))
    }

    /// Known slots after this one, ascending.
    pub(super) fn after_mut(&mut self, slot: Height) -> impl Iterator<Item = (Height, &mut Slot)> {
        self.slots.range_mut(slot.next()..).map(|(slot, known)| (*slot, known))
    }

    /// Votes that this replica collects for a slot in a view.
    pub(super) fn votes(&mut self, view: View, slot: Height) -> Option<&mut SlotVotes> {
        self.slots.get_mut(&slot)?.votes.get_mut(&view)
    }

    /// Last slot of which anything is known.
    pub(super) fn last(&self) -> Height {
        self.slots.last_key_value().map_or(self.stable, |(slot, _)| *slot)
    }

    /// Raises the low water mark and discards everything up to it (PBFT §4.3).
    pub(super) fn forget(&mut self, stable: Height) {
        self.stable = stable;
        self.slots = self.slots.split_off(&stable.next());
    }
}

/// Number of slots that each path decided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathCounts {
    pub(super) fast: u64,
    pub(super) slow: u64,
}

impl PathCounts {
    pub(super) fn count(&mut self, path: Path) {
        match path {
            Path::Fast => self.fast += 1,
            Path::Slow => self.slow += 1,
        }
    }
}
