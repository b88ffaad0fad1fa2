//! When a primary fails: giving its view up, and beginning the next with what must not be lost.
//!
//! Members broadcast what they know; the next primary names exactly as many of those reports as the
//! honest can give, by digest, and everybody draws the same [`Outcome`] from them.

use super::collectors;
use super::messages::{
    FastReport, Message, NewView, Path, PrePrepare, SlotReport, SlowReport, ViewChange,
    null_operation,
};
use super::outcome::{Choice, Outcome, outcome};
use super::slots::Slot;
use super::state::Windowed;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::{Committee, Height, Kind, Recipients, ReplicaId, Time, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A view change with the hash that names it: it is large, and looked for by that.
#[derive(Clone, Debug)]
struct Report {
    digest: Digest,
    change: Arc<ViewChange>,
}

impl Report {
    fn new(change: ViewChange) -> Self {
        Self { digest: change.digest(), change: Arc::new(change) }
    }

    fn name(&self) -> (ReplicaId, Digest) {
        (self.change.signer, self.digest)
    }

    fn message(&self) -> Message {
        Message::ViewChange(Box::new(self.change.as_ref().clone()))
    }
}

/// View changes kept of each member: the last one, and what the current view began with.
#[derive(Debug, Default)]
pub(super) struct ViewChanges {
    /// Of each member the one for the highest view.
    latest: BTreeMap<ReplicaId, Report>,
    /// New views that name view changes which are not here, the last of each primary: a faulty one that
    /// makes up views stands in the way of its own alone.
    pending: BTreeMap<ReplicaId, NewView>,
    /// What they name and was fetched, or came after.
    named: BTreeMap<(ReplicaId, Digest), Report>,
    /// What the current view began with, for those who missed it.
    begun: Option<(NewView, Vec<Report>)>,
    /// What the next primary proposed before its view began here.
    pub(super) early: BTreeMap<Height, PrePrepare>,
    /// As many want the view as are honest: since then its primary is waited for.
    timed: bool,
    /// The last view that this replica began as its primary.
    led: Option<View>,
}

impl ViewChanges {
    /// Whether there is reason to think that this view begins soon.
    pub(super) fn is_about_to_begin(&self, view: View) -> bool {
        self.pending.values().any(|pending| pending.view == view)
            || self.latest.values().any(|report| report.change.view == view)
    }

    /// Those of the highest view of each member that are for this view.
    fn wanting(&self, view: View) -> impl Iterator<Item = &Report> {
        self.latest.values().filter(move |report| report.change.view == view)
    }

    /// All that are here.
    fn all(&self) -> impl Iterator<Item = &Report> {
        let begun = self.begun.iter().flat_map(|(_, reports)| reports);
        self.latest.values().chain(self.named.values()).chain(begun)
    }

    /// Whose view changes a new view names that are not here.
    fn missing(&self, new_view: &NewView) -> Vec<ReplicaId> {
        let names = new_view.changes.iter();
        let missing = names.filter(|name| self.find(**name).is_none());
        missing.map(|(signer, _)| *signer).collect()
    }

    /// What a new view names, if it is all here.
    fn named_by(&self, new_view: &NewView) -> Option<Vec<Report>> {
        new_view.changes.iter().map(|name| self.find(*name).cloned()).collect()
    }

    /// One by its signer and digest.
    fn find(&self, name: (ReplicaId, Digest)) -> Option<&Report> {
        let is_it = |report: &&Report| report.name() == name;
        let latest = self.latest.get(&name.0).filter(is_it);
        let begun = || self.begun.iter().flat_map(|(_, reports)| reports).find(is_it);
        latest.or_else(|| self.named.get(&name)).or_else(begun)
    }
}

impl Windowed {
    // ---- giving a view up -----------------------------------------------------------------------

    /// The view took too long, or its primary was convicted.
    pub(super) fn give_up(&mut self, now: Time) {
        if !self.config.signs {
            self.pacemaker.rest();
            return;
        }
        let failed = self.primary();
        self.pacemaker.failed(failed, self.verifier.committee().weights());
        self.change_view(now, self.view.next());
    }

    /// ★ From now on nothing is signed below this view.
    fn change_view(&mut self, now: Time, view: View) {
        self.view = view;
        self.changing = true;
        self.changes.pending.retain(|_, pending| pending.view >= view);
        self.changes.timed = false;
        self.pacemaker.rest();
        self.verifier.publish(view);
        self.window.iter_mut().for_each(|(_, slot)| slot.leave(view));
        if !mutants::active(Mutant::WindowedChangeBeforePersist) {
            self.persist_view();
        }
        self.want_view(now);
    }

    /// Says what it knows, to whoever leads the view that it wants.
    pub(super) fn want_view(&mut self, now: Time) {
        let report = Report::new(self.own_change());
        self.send(Recipients::All, report.message());
        self.take_report(now, report);
    }

    /// What it knows of every slot that may be forgotten by nobody.
    fn own_change(&self) -> ViewChange {
        let fast = self.rules.fast_path;
        let slots = self.window.iter().filter_map(|(slot, known)| known.report(slot, fast));
        let mut change = ViewChange {
            view: self.view,
            signer: self.id(),
            stable: self.checkpoint.clone(),
            slots: slots.collect(),
            signature: Vec::new(),
        };
        let statement = self.verifier.statement(Kind::ViewChange, &change.digest());
        change.signature = self.sign_alone(&statement);
        change
    }

    // ---- others' view changes -------------------------------------------------------------------

    /// A member gives a view up; checked.
    pub(super) fn on_view_change(&mut self, now: Time, change: ViewChange) {
        if change.signer != self.id() {
            self.take_report(now, Report::new(change));
        }
    }

    fn take_report(&mut self, now: Time, report: Report) {
        let (name, view) = (report.name(), report.change.view);
        let is_named = self.changes.pending.values().any(|pending| pending.changes.contains(&name));
        let known = self.changes.latest.get(&name.0).map(|known| known.change.view);
        if is_named {
            self.changes.named.insert(name, report.clone());
        }
        if known.is_none_or(|known| known < view) {
            self.changes.latest.insert(name.0, report);
        }
        self.join_others(now);
        self.lead_or_wait(now);
        self.begin_if_complete(now);
    }

    /// Enough members want later views that an honest one does: joins the one that as many have
    /// reached.
    fn join_others(&mut self, now: Time) {
        let wanted =
            self.changes.latest.values().map(|known| (known.change.view, known.change.signer));
        let mut later: Vec<(View, ReplicaId)> =
            wanted.filter(|(view, _)| *view > self.view).collect();
        later.sort_unstable_by(|one, other| other.cmp(one));
        let committee = self.verifier.committee();
        let mut members = Bitmap::new(committee.size());
        let reached = later.into_iter().find_map(|(view, signer)| {
            members.insert(signer.index());
            committee.includes_honest(&members).then_some(view)
        });
        if let Some(view) = reached.filter(|_| self.config.signs) {
            self.change_view(now, view);
        }
    }

    /// As many want this view as are honest: its primary begins it. The others wait for that, also
    /// when some of those are beyond it already: what they said of this view may be lost.
    fn lead_or_wait(&mut self, now: Time) {
        if !self.changing || !self.config.signs {
            return;
        }
        let committee = self.verifier.committee();
        let reached = self.changes.latest.values().filter(|known| known.change.view >= self.view);
        if !self.changes.timed && enough(reached, committee).is_some() {
            self.changes.timed = true;
            self.pacemaker.rearm(now);
        }
        let led = self.changes.led == Some(self.view);
        let chosen = enough(self.changes.wanting(self.view), committee);
        let names = chosen.map(|chosen| chosen.into_iter().map(Report::name).collect());
        if let Some(changes) = names.filter(|_| self.is_primary() && !led) {
            self.changes.led = Some(self.view);
            let mut new_view = NewView { view: self.view, changes, signature: Vec::new() };
            let statement = self.verifier.statement(Kind::NewView, &new_view.digest());
            new_view.signature = self.sign_alone(&statement);
            self.send(Recipients::All, Message::NewView(new_view.clone()));
            self.on_new_view(now, new_view);
        }
    }

    // ---- beginning a view -----------------------------------------------------------------------

    /// A primary begins its view; its signature and the number of those it names are checked.
    pub(super) fn on_new_view(&mut self, now: Time, new_view: NewView) {
        let primary = collectors::primary(new_view.view, self.members());
        let pending = self.changes.pending.get(&primary).map(|pending| pending.view);
        if self.is_to_begin(new_view.view) && pending.is_none_or(|known| known < new_view.view) {
            self.changes.pending.insert(primary, new_view);
            self.begin_if_complete(now);
            self.fetch_missing_changes();
        }
    }

    /// Whether a view is beyond the one that has begun here.
    fn is_to_begin(&self, view: View) -> bool {
        view > self.view || (view == self.view && self.changing)
    }

    /// Asks for what the new view names and is not here.
    pub(super) fn fetch_missing_changes(&mut self) {
        let questions: Vec<(View, Vec<ReplicaId>)> = self
            .changes
            .pending
            .values()
            .map(|pending| (pending.view, self.changes.missing(pending)))
            .filter(|(_, missing)| !missing.is_empty())
            .collect();
        for (view, missing) in questions {
            self.send(Recipients::All, Message::FetchViewChanges(view, missing));
        }
    }

    pub(super) fn on_fetch_view_changes(
        &mut self,
        now: Time,
        from: ReplicaId,
        view: View,
        members: &[ReplicaId],
    ) {
        if !self.helping.may_show_changes(now, from) {
            return;
        }
        let asked = |report: &&Report| {
            report.change.view == view && members.contains(&report.change.signer)
        };
        let found: BTreeMap<(ReplicaId, Digest), Report> =
            self.changes.all().filter(asked).map(|found| (found.name(), found.clone())).collect();
        for report in found.values() {
            self.send(Recipients::One(from), report.message());
        }
    }

    fn begin_if_complete(&mut self, now: Time) {
        let sound = self.changes.pending.values().filter_map(|pending| {
            let named = self.changes.named_by(pending)?;
            is_of_its_view(pending, &named).then(|| (pending.clone(), named))
        });
        let Some((new_view, named)) = sound.max_by_key(|(new_view, _)| new_view.view) else {
            return;
        };
        let changes: Vec<Arc<ViewChange>> =
            named.iter().map(|report| Arc::clone(&report.change)).collect();
        let outcome = outcome(&changes, self.verifier.committee());
        self.begin(now, new_view, named, outcome);
        let begun = self.view;
        self.changes.pending.retain(|_, pending| pending.view > begun);
        self.changes.named.clear();
    }

    /// ★ The view begins; its slots are what everybody concludes that they are.
    fn begin(&mut self, now: Time, new_view: NewView, named: Vec<Report>, outcome: Outcome) {
        self.view = new_view.view;
        self.changing = false;
        self.base = outcome.last;
        self.next = outcome.last.next();
        self.view_changes += 1;
        self.changes.begun = Some((new_view, named));
        self.verifier.publish(self.view);
        let view = self.view;
        self.window.iter_mut().for_each(|(_, slot)| slot.leave(view));
        self.wished = false;
        self.persist_view();
        self.pacemaker.enter(now);
        self.began = now;
        if let Some(stable) = outcome.stable {
            self.on_checkpoint(now, stable);
        }
        for (slot, choice) in outcome.slots {
            self.adopt(now, slot, choice);
        }
        self.take_early(now);
        self.helping.ask_by(now + self.helping.every() / 4);
    }

    fn adopt(&mut self, now: Time, slot: Height, choice: Choice) {
        let view = self.view;
        let digest = match choice {
            Choice::Decide(proof) => {
                self.on_proof(now, self.id(), proof);
                return;
            }
            Choice::Adopt(digest) => digest,
            Choice::Null => super::messages::digest_of(&null_operation(slot)),
        };
        let Some(known) = self.window.open(slot) else { return };
        if let Some(proof) = known.proof.clone() {
            // Decided here, which nobody who was asked knew.
            self.send(Recipients::All, Message::Proof(proof));
            return;
        }
        known.proposed = Some((view, digest));
        if choice == Choice::Null {
            known.keep(null_operation(slot));
        }
        self.want_bodies(slot);
    }

    /// Shows a member how this view began, or that it has not.
    pub(super) fn show_view(&mut self, to: ReplicaId) {
        let own = self.changes.latest.get(&self.id()).filter(|_| self.changing);
        let begun = self.changes.begun.as_ref().filter(|_| !self.changing);
        let begun = begun.map(|(new_view, _)| Message::NewView(new_view.clone()));
        if let Some(message) = own.map(Report::message).or(begun) {
            self.send(Recipients::One(to), message);
        }
    }
}

impl Slot {
    /// A later view is wanted: what was proposed in earlier ones gets no vote any more.
    fn leave(&mut self, view: View) {
        self.collecting = self.collecting.split_off(&view);
        self.pre_prepare = None;
        self.is_stored = false;
        if self.proposed.is_some_and(|(proposed, _)| proposed < view) {
            self.proposed = None;
        }
    }

    /// What is known of it, for the next view; nothing if that is nothing.
    fn report(&self, slot: Height, has_fast_path: bool) -> Option<SlotReport> {
        let decided = |path| {
            let proof = self.proof.as_ref().filter(|proof| proof.path == path);
            proof.map(|proof| proof.certificate.clone())
        };
        let prepared = self.prepared.clone().map(SlowReport::Prepared);
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
}

/// ★ What members said as they gave up earlier views hides what they promised since: a view begins with
/// nothing but the reports into it.
fn is_of_its_view(new_view: &NewView, named: &[Report]) -> bool {
    let is_of_it = |report: &Report| report.change.view == new_view.view;
    named.iter().all(is_of_it) || mutants::active(Mutant::NewViewByOldChanges)
}

/// Exactly as many of these as the honest weigh, if they are.
fn enough<'a>(
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
