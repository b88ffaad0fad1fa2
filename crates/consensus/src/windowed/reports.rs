//! View changes received, and new views that name them (PBFT §4.4).

use super::messages::{Message, NewView, SlowReport, ViewChange};
use super::values::{PrePrepare, SlotCertificate};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::{Committee, Height, Payload, ReplicaId, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// View change with the digest by which new views name it.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) digest: Digest,
    pub(super) change: Arc<ViewChange>,
}

impl Report {
    pub(super) fn new(change: ViewChange) -> Self {
        Self { digest: change.digest(), change: Arc::new(change) }
    }

    pub(super) fn name(&self) -> (ReplicaId, Digest) {
        (self.change.signer, self.digest)
    }

    pub(super) fn message(&self) -> Message {
        Message::ViewChange(Box::new(self.change.as_ref().clone()))
    }
}

/// View changes received: bounded by members, whatever is sent.
#[derive(Debug, Default)]
pub(super) struct ViewChanges {
    /// View change for the highest view, of each member.
    pub(super) latest: BTreeMap<ReplicaId, Report>,
    /// New views that name view changes which are not here, the last of each primary: a faulty
    /// primary that makes up views delays its own views alone.
    pub(super) pending: BTreeMap<ReplicaId, NewView>,
    /// View changes that pending new views name: what a replaced one named is dropped with it.
    pub(super) named: BTreeMap<(ReplicaId, Digest), Report>,
    /// New view with which the current view began, and the view changes that it names, to send them
    /// again.
    pub(super) begun: Option<(NewView, Vec<Report>)>,
    /// Pre-prepares of the next view that came before it began here.
    pub(super) early: BTreeMap<Height, PrePrepare>,
    /// `true` once `n−f` members reached the view: its timer runs since then (PBFT §4.5.2).
    pub(super) timed: bool,
    /// Last view that this replica began as its primary.
    pub(super) led: Option<View>,
}

impl ViewChanges {
    /// Returns `true` if some member moves to this view, or its primary has begun it.
    pub(super) fn is_about_to_begin(&self, view: View) -> bool {
        self.pending.values().any(|pending| pending.view == view)
            || self.latest.values().any(|report| report.change.view == view)
    }

    /// Returns `true` if a pending new view of its view names this view change.
    pub(super) fn is_named(&self, report: &Report) -> bool {
        is_named(&self.pending, report)
    }

    /// Drops the view changes that no pending new view names any more.
    pub(super) fn drop_unnamed(&mut self) {
        let Self { pending, named, .. } = self;
        named.retain(|_, report| is_named(pending, report));
    }

    /// Names in pending new views.
    pub(super) fn names(&self) -> impl Iterator<Item = (ReplicaId, Digest)> {
        self.pending.values().flat_map(|pending| &pending.changes).copied()
    }

    /// Members that voted for a value with which the view began, if its certificate was reported.
    pub(super) fn voters(&self, slot: Height, digest: Digest) -> Option<&Bitmap> {
        let (_, named) = self.begun.as_ref()?;
        let (certificate, _) = reported_value(named, slot, digest)?;
        Some(&certificate.certificate.signers)
    }

    /// Latest view changes that are for this view.
    pub(super) fn for_view(&self, view: View) -> impl Iterator<Item = &Report> {
        self.latest.values().filter(move |report| report.change.view == view)
    }

    /// All view changes that are here, some of them twice.
    pub(super) fn all(&self) -> impl Iterator<Item = &Report> {
        let begun = self.begun.iter().flat_map(|(_, reports)| reports);
        self.latest.values().chain(self.named.values()).chain(begun)
    }

    /// Signers of view changes that a new view names and that are not here.
    pub(super) fn missing(&self, new_view: &NewView) -> Vec<ReplicaId> {
        let names = new_view.changes.iter();
        let missing = names.filter(|name| self.find(**name).is_none());
        missing.map(|(signer, _)| *signer).collect()
    }

    /// View changes that a new view names; `None` unless all are here.
    pub(super) fn named_by(&self, new_view: &NewView) -> Option<Vec<Report>> {
        new_view.changes.iter().map(|name| self.find(*name).cloned()).collect()
    }

    /// View change of a signer with a digest.
    pub(super) fn find(&self, name: (ReplicaId, Digest)) -> Option<&Report> {
        let is_it = |report: &&Report| report.name() == name;
        let latest = self.latest.get(&name.0).filter(is_it);
        let begun = || self.begun.iter().flat_map(|(_, reports)| reports).find(is_it);
        latest.or_else(|| self.named.get(&name)).or_else(begun)
    }
}

fn is_named(pending: &BTreeMap<ReplicaId, NewView>, report: &Report) -> bool {
    let of_its_view = pending.values().filter(|pending| pending.view == report.change.view);
    of_its_view.into_iter().any(|pending| pending.changes.contains(&report.name()))
}

/// Prepared certificate of a slot's value with this digest, and the value that came along.
pub(super) fn reported_value(
    named: &[Report],
    slot: Height,
    digest: Digest,
) -> Option<(&SlotCertificate, &Payload)> {
    named.iter().find_map(|report| {
        let slots = &report.change.slots;
        let at = slots.binary_search_by_key(&slot, |report| report.slot).ok()?;
        match &slots[at].slow {
            SlowReport::Prepared(certificate, value) if certificate.proposal.digest == digest => {
                Some((certificate, value))
            }
            _ => None,
        }
    })
}

/// ★ View changes into earlier views hide promises made since: a view begins with view changes into
/// that very view alone.
pub(super) fn is_of_its_view(new_view: &NewView, named: &[Report]) -> bool {
    let is_of_it = |report: &Report| report.change.view == new_view.view;
    named.iter().all(is_of_it) || mutants::active(Mutant::NewViewByOldChanges)
}

/// First view changes whose signers together are `n−f` members; `None` if there are fewer.
pub(super) fn enough<'a>(
    reports: impl Iterator<Item = &'a Report>,
    committee: &Committee,
) -> Option<Vec<&'a Report>> {
    let mut members = Bitmap::new(committee.size());
    let mut chosen = Vec::new();
    for report in reports {
        members.insert(report.change.signer.index());
        chosen.push(report);
        if committee.weight_of(&members) >= committee.weights().honest() {
            return Some(chosen);
        }
    }
    None
}
