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

/// View changes kept of each member: the last one, and what the current view began with.
#[derive(Debug, Default)]
pub(super) struct ViewChanges {
    /// Of each member the one for the highest view.
    latest: BTreeMap<ReplicaId, Arc<ViewChange>>,
    /// New views that name view changes which are not here, the last of each primary: a faulty one that
    /// makes up views stands in the way of its own alone.
    pending: BTreeMap<ReplicaId, NewView>,
    /// What they name and was fetched, or came after.
    named: BTreeMap<(ReplicaId, Digest), Arc<ViewChange>>,
    /// What the current view began with, for those who missed it.
    begun: Option<(NewView, Vec<Arc<ViewChange>>)>,
    /// The own one, as long as the view has not begun.
    own: Option<Arc<ViewChange>>,
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
            || self.latest.values().any(|change| change.view == view)
    }

    /// Those of the highest view of each member that are for this view.
    fn wanting(&self, view: View) -> impl Iterator<Item = &Arc<ViewChange>> {
        self.latest.values().filter(move |change| change.view == view)
    }

    /// Whose view changes a new view names that are not here.
    fn missing(&self, new_view: &NewView) -> Vec<ReplicaId> {
        let names = new_view.changes.iter();
        let missing = names.filter(|(signer, digest)| self.find(*signer, *digest).is_none());
        missing.map(|(signer, _)| *signer).collect()
    }

    /// What a new view names, if it is all here.
    fn named_by(&self, new_view: &NewView) -> Option<Vec<Arc<ViewChange>>> {
        let names = new_view.changes.iter();
        names.map(|(signer, digest)| self.find(*signer, *digest).cloned()).collect()
    }

    /// One by its signer and digest.
    fn find(&self, signer: ReplicaId, digest: Digest) -> Option<&Arc<ViewChange>> {
        let begun = self.begun.iter().flat_map(|(_, changes)| changes);
        let mut known = self.latest.values().chain(begun);
        let is_it =
            |change: &&Arc<ViewChange>| change.signer == signer && change.digest() == digest;
        self.named.get(&(signer, digest)).or_else(|| known.find(is_it))
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
        let change = Arc::new(self.own_change());
        self.changes.own = Some(Arc::clone(&change));
        self.send(Recipients::All, Message::ViewChange(Box::new(change.as_ref().clone())));
        self.take_view_change(now, change);
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
            self.take_view_change(now, Arc::new(change));
        }
    }

    fn take_view_change(&mut self, now: Time, change: Arc<ViewChange>) {
        let name = (change.signer, change.digest());
        let is_named = self.changes.pending.values().any(|pending| pending.changes.contains(&name));
        let known = self.changes.latest.get(&change.signer).map(|known| known.view);
        if is_named {
            self.changes.named.insert(name, Arc::clone(&change));
        }
        if known.is_none_or(|known| known < change.view) {
            self.changes.latest.insert(change.signer, change);
        }
        self.join_others(now);
        self.lead_or_wait(now);
        self.begin_if_complete(now);
    }

    /// Enough members want later views that an honest one does: joins the one that as many have
    /// reached.
    fn join_others(&mut self, now: Time) {
        let later = self.changes.latest.values().filter(|change| change.view > self.view);
        let mut later: Vec<(View, ReplicaId)> =
            later.map(|change| (change.view, change.signer)).collect();
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
        let wants_it_or_later = self.changes.latest.values().filter(|one| one.view >= self.view);
        if !self.changes.timed && enough(wants_it_or_later, committee).is_some() {
            self.changes.timed = true;
            self.pacemaker.rearm(now);
        }
        let led = self.changes.led == Some(self.view);
        let chosen = enough(self.changes.wanting(self.view), committee);
        if let Some(chosen) = chosen.filter(|_| self.is_primary() && !led) {
            self.changes.led = Some(self.view);
            let changes: Vec<(ReplicaId, Digest)> =
                chosen.iter().map(|change| (change.signer, change.digest())).collect();
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
        let begun = self.changes.begun.iter().flat_map(|(_, changes)| changes);
        let asked =
            |change: &&Arc<ViewChange>| change.view == view && members.contains(&change.signer);
        let found: Vec<Arc<ViewChange>> =
            self.changes.latest.values().chain(begun).filter(asked).cloned().collect();
        for change in found {
            self.send(
                Recipients::One(from),
                Message::ViewChange(Box::new(change.as_ref().clone())),
            );
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
        let outcome = outcome(&named, self.verifier.committee());
        self.begin(now, new_view, named, outcome);
        let begun = self.view;
        self.changes.pending.retain(|_, pending| pending.view > begun);
        self.changes.named.clear();
    }

    /// ★ The view begins; its slots are what everybody concludes that they are.
    fn begin(
        &mut self,
        now: Time,
        new_view: NewView,
        named: Vec<Arc<ViewChange>>,
        outcome: Outcome,
    ) {
        self.view = new_view.view;
        self.changing = false;
        self.base = outcome.last;
        self.next = outcome.last.next();
        self.view_changes += 1;
        self.changes.own = None;
        self.changes.begun = Some((new_view, named));
        self.verifier.publish(self.view);
        let view = self.view;
        self.window.iter_mut().for_each(|(_, slot)| slot.leave(view));
        self.unwish();
        self.persist_view();
        self.pacemaker.enter(now);
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
        known.proposed = Some((view, digest));
        if choice == Choice::Null {
            known.keep(null_operation(slot));
        }
        self.want_bodies(now, slot);
    }

    /// Shows a member how this view began, or that it has not.
    pub(super) fn show_view(&mut self, to: ReplicaId) {
        let message = match (&self.changes.own, &self.changes.begun) {
            (Some(own), _) => Message::ViewChange(Box::new(own.as_ref().clone())),
            (None, Some((new_view, _))) => Message::NewView(new_view.clone()),
            (None, None) => return,
        };
        self.send(Recipients::One(to), message);
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
fn is_of_its_view(new_view: &NewView, named: &[Arc<ViewChange>]) -> bool {
    let is_of_it = |change: &Arc<ViewChange>| change.view == new_view.view;
    named.iter().all(is_of_it) || mutants::active(Mutant::NewViewByOldChanges)
}

/// Exactly as many of these as the honest weigh, if they are.
fn enough<'a>(
    changes: impl Iterator<Item = &'a Arc<ViewChange>>,
    committee: &Committee,
) -> Option<Vec<Arc<ViewChange>>> {
    let mut members = Bitmap::new(committee.size());
    let mut chosen = Vec::new();
    for change in changes {
        members.insert(change.signer.index());
        chosen.push(Arc::clone(change));
        if committee.weight_of(&members) >= committee.weights().honest() {
            return Some(chosen);
        }
    }
    None
}
