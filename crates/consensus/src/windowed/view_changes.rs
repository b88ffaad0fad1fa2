//! View changes (PBFT §4.4, paper 002 §V-G): leaving the view of a primary that failed, and
//! beginning the next with every value that may be decided.
//!
//! Members broadcast their evidence; the next primary names view changes of exactly `n−f` members,
//! by digest, and every member computes the same [`SafeValues`] from them.

use super::collectors;
use super::messages::{Message, NewView, ViewChange};
use super::reports::{Report, enough, is_of_its_view, reported_value};
use super::safe_values::{SafeValue, SafeValues, safe_values};
use super::state::Windowed;
use super::values::{digest_of, null_operation};
use crate::Ignored;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::{Height, Kind, Recipients, ReplicaId, Time, View};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Windowed {
    // ---- leaving a view -------------------------------------------------------------------------

    /// Leaves the view: it timed out (PBFT §4.4), or its primary was convicted (paper 002 §V-G).
    pub(super) fn start_view_change(&mut self, now: Time) {
        if !self.config.signs {
            self.pacemaker.rest();
            return;
        }
        let failed = self.primary();
        self.pacemaker.failed(failed, self.verifier.committee().weights());
        self.move_to_view(now, self.view.next());
    }

    /// ★ Moves to a view: from now on nothing is signed below it.
    fn move_to_view(&mut self, now: Time, view: View) {
        self.view = view;
        self.in_view_change = true;
        self.suspicions.clear();
        self.changes.pending.retain(|_, pending| pending.view >= view);
        self.pending_changed();
        self.changes.timed = false;
        self.pacemaker.rest();
        self.verifier.publish(view);
        self.window.iter_mut().for_each(|(_, slot)| slot.leave(view));
        if !mutants::active(Mutant::WindowedChangeBeforePersist) {
            self.persist_view();
        }
        self.broadcast_view_change(now);
    }

    /// Broadcasts its view change into the view that it moves to (PBFT §4.4).
    pub(super) fn broadcast_view_change(&mut self, now: Time) {
        let report = Report::new(self.own_view_change());
        self.send(Recipients::All, report.message());
        self.record_report(now, report);
    }

    /// View change with its evidence of every slot in the window.
    fn own_view_change(&self) -> ViewChange {
        let fast = self.rules.fast_path;
        let slots = self.window.iter().filter_map(|(slot, known)| known.report(slot, fast));
        let mut change = ViewChange {
            view: self.view,
            signer: self.id(),
            stable: self.checkpoint.clone(),
            slots: slots.collect(),
            signature: Vec::new(),
        };
        let statement = self.verifier.statement(Kind::ViewChange, &change.signed_content());
        change.signature = self.sign_alone(&statement);
        change
    }

    // ---- suspecting a primary -------------------------------------------------------------------

    /// The engine finds that the primary is slow or passes bodies over: all are told.
    pub(super) fn on_primary_suspected(&mut self, now: Time) {
        let has_had_time = now.since(self.view_began_at) >= self.config.timeout;
        if has_had_time && self.takes_part() && !self.is_primary() {
            self.say_suspicion(now);
            self.weigh_suspicions(now);
        }
    }

    /// Another member suspects the primary.
    pub(super) fn on_suspicion(
        &mut self,
        now: Time,
        from: ReplicaId,
        view: View,
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_suspicion(view) {
            return Some(reason);
        }
        self.suspicions.note(now, from);
        self.weigh_suspicions(now);
        None
    }

    fn ignore_suspicion(&self, view: View) -> Option<Ignored> {
        if view < self.view {
            return Some(Ignored::StaleView);
        }
        if view > self.view {
            return Some(Ignored::FutureView);
        }
        (!self.takes_part()).then_some(Ignored::NotNeeded)
    }

    /// Tells all that it wants another primary, once in a while.
    fn say_suspicion(&mut self, now: Time) {
        let (own, timeout) = (self.id(), self.config.timeout);
        if !self.suspicions.has_just_said(now, own, timeout) {
            self.send(Recipients::All, Message::Suspicion(self.view));
            self.suspicions.note(now, own);
        }
    }

    /// Wants another primary too once an honest member does; leaves once so many do that all will.
    fn weigh_suspicions(&mut self, now: Time) {
        if self.does_an_honest_one_suspect(now) {
            self.say_suspicion(now);
        }
        if self.suspect_enough(now) {
            self.start_view_change(now);
        }
    }

    /// Returns `true` if others want another primary of whom one is honest.
    fn does_an_honest_one_suspect(&self, now: Time) -> bool {
        let own = self.id();
        let others = self.dissatisfied(now).filter(|member| *member != own);
        let others = Bitmap::from_indices(self.members(), others.map(ReplicaId::index));
        self.verifier.committee().includes_honest(&others)
            || mutants::active(Mutant::SuspicionOfOne)
    }

    /// Members that suspect the primary, and those that left its view: they may say no more in it.
    fn dissatisfied(&self, now: Time) -> impl Iterator<Item = ReplicaId> {
        let view = self.view;
        let has_left = move |report: &&Report| report.change.view > view;
        let left = self.changes.latest.values().filter(has_left).map(|report| report.change.signer);
        self.suspicions.by(now, self.config.timeout).chain(left)
    }

    /// Returns `true` if as many want another primary as are honest (`n−f`).
    fn suspect_enough(&self, now: Time) -> bool {
        let committee = self.verifier.committee();
        let suspect = self.dissatisfied(now);
        let suspect = Bitmap::from_indices(self.members(), suspect.map(ReplicaId::index));
        let enough = if mutants::active(Mutant::LeaveByFewSuspicions) {
            committee.weak()
        } else {
            committee.weights().honest()
        };
        committee.weight_of(&suspect) >= enough
    }

    // ---- others' view changes -------------------------------------------------------------------

    /// View change of another member, checked (PBFT §4.4).
    pub(super) fn on_view_change(&mut self, now: Time, change: ViewChange) -> Option<Ignored> {
        let report = Report::new(change);
        let ignored = self.ignore_view_change(&report);
        if report.change.signer != self.id() {
            self.record_report(now, report);
        }
        ignored
    }

    fn ignore_view_change(&self, report: &Report) -> Option<Ignored> {
        if report.change.signer == self.id() {
            return Some(Ignored::NotNeeded);
        }
        if self.changes.is_named(report) {
            return None;
        }
        let known = self.changes.latest.get(&report.change.signer)?;
        match report.change.view.cmp(&known.change.view) {
            Ordering::Less => Some(Ignored::StaleView),
            Ordering::Equal => Some(Ignored::Duplicate),
            Ordering::Greater => None,
        }
    }

    /// Keeps a view change that is its member's latest, or named, and takes the steps that any may
    /// bring about.
    fn record_report(&mut self, now: Time, report: Report) {
        let (name, view) = (report.name(), report.change.view);
        let known = self.changes.latest.get(&name.0).map(|known| known.change.view);
        if self.changes.is_named(&report) {
            self.changes.named.insert(name, report.clone());
        }
        if known.is_none_or(|known| known < view) {
            self.changes.latest.insert(name.0, report);
        }
        self.join_view_change(now);
        if self.takes_part() {
            self.weigh_suspicions(now);
        }
        self.lead_or_wait(now);
        self.begin_if_complete(now);
    }

    /// Joins the view change of `f+1` members: moves to the highest view that so many have reached
    /// (PBFT §4.5.2).
    fn join_view_change(&mut self, now: Time) {
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
            self.move_to_view(now, view);
        }
    }

    /// Begins the view as its primary, once `n−f` members moved to it. The others start its timer
    /// once so many reached it or a later one: their view changes into this one may be lost.
    fn lead_or_wait(&mut self, now: Time) {
        if !self.in_view_change || !self.config.signs {
            return;
        }
        let committee = self.verifier.committee();
        let reached = self.changes.latest.values().filter(|known| known.change.view >= self.view);
        if !self.changes.timed && enough(reached, committee).is_some() {
            self.changes.timed = true;
            self.pacemaker.rearm(now);
        }
        let led = self.changes.led == Some(self.view);
        let chosen = enough(self.changes.for_view(self.view), committee);
        let names = chosen.map(|chosen| chosen.into_iter().map(Report::name).collect());
        if let Some(changes) = names.filter(|_| self.is_primary() && !led) {
            self.changes.led = Some(self.view);
            let mut new_view = NewView { view: self.view, changes, signature: Vec::new() };
            let statement = self.verifier.statement(Kind::NewView, &new_view.signed_content());
            new_view.signature = self.sign_alone(&statement);
            self.send(Recipients::All, Message::NewView(new_view.clone()));
            self.on_new_view(now, new_view);
        }
    }

    // ---- entering a view ------------------------------------------------------------------------

    /// New view, its signature and the number of view changes that it names checked (PBFT §4.4).
    pub(super) fn on_new_view(&mut self, now: Time, new_view: NewView) -> Option<Ignored> {
        if let Some(reason) = self.ignore_new_view(new_view.view) {
            return Some(reason);
        }
        let primary = collectors::primary(new_view.view, self.members());
        self.changes.pending.insert(primary, new_view);
        self.pending_changed();
        self.begin_if_complete(now);
        self.fetch_missing_changes();
        None
    }

    /// Only what pending new views name is kept, and checked however many others there are.
    fn pending_changed(&mut self) {
        self.changes.drop_unnamed();
        self.verifier.want_changes(self.changes.names());
    }

    fn ignore_new_view(&self, view: View) -> Option<Ignored> {
        if view < self.view {
            return Some(Ignored::StaleView);
        }
        let primary = collectors::primary(view, self.members());
        let pending = self.changes.pending.get(&primary);
        let has_begun = view == self.view && !self.in_view_change;
        let is_known = has_begun || pending.is_some_and(|pending| pending.view >= view);
        is_known.then_some(Ignored::Duplicate)
    }

    /// Asks for the view changes that pending new views name and that are not here.
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

    /// Request for view changes that a new view names (paper 002 §II).
    pub(super) fn on_fetch_view_changes(
        &mut self,
        now: Time,
        from: ReplicaId,
        view: View,
        members: &[ReplicaId],
    ) -> Option<Ignored> {
        if let Some(reason) = self.ignore_fetch_view_changes(now, from) {
            return Some(reason);
        }
        self.retransmission.note_view_changes(now, from);
        let asked = |report: &&Report| {
            report.change.view == view && members.contains(&report.change.signer)
        };
        let found: BTreeMap<(ReplicaId, Digest), Report> =
            self.changes.all().filter(asked).map(|found| (found.name(), found.clone())).collect();
        for report in found.values() {
            self.send(Recipients::One(from), report.message());
        }
        None
    }

    fn ignore_fetch_view_changes(&self, now: Time, from: ReplicaId) -> Option<Ignored> {
        self.retransmission.has_sent_view_changes(now, from).then_some(Ignored::Duplicate)
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
        let outcome = safe_values(&changes, self.verifier.committee(), self.verifier.anchor());
        self.begin(now, new_view, &named, outcome);
        let begun = self.view;
        self.changes.pending.retain(|_, pending| pending.view > begun);
        self.pending_changed();
    }

    /// ★ Enters a view: its slots are the safe values, whatever its primary says (PBFT §4.4).
    fn begin(&mut self, now: Time, new_view: NewView, named: &[Report], outcome: SafeValues) {
        self.view = new_view.view;
        self.in_view_change = false;
        self.suspicions.clear();
        self.base = outcome.last;
        self.next = outcome.last.next();
        self.view_changes += 1;
        self.changes.begun = Some((new_view, named.to_vec()));
        self.verifier.publish(self.view);
        let view = self.view;
        self.window.iter_mut().for_each(|(_, slot)| slot.leave(view));
        self.payload_requested = false;
        self.persist_view();
        self.pacemaker.enter(now);
        self.view_began_at = now;
        if let Some(stable) = outcome.stable {
            self.on_checkpoint(now, stable);
        }
        for (slot, choice) in outcome.slots {
            self.adopt(now, slot, choice, named);
        }
        self.replay_early(now);
        // The others may be through with all that this view has to do, and rest.
        self.retransmission.ask_times_by(now + self.retransmission.every() / 4, 1);
    }

    fn adopt(&mut self, now: Time, slot: Height, choice: SafeValue, named: &[Report]) {
        let view = self.view;
        let (digest, value) = match choice {
            SafeValue::Decided(proof) => {
                self.on_proof(now, self.id(), proof);
                return;
            }
            SafeValue::Propose(digest) => {
                let reported = reported_value(named, slot, digest);
                (digest, reported.map(|(_, value)| value.clone()))
            }
            SafeValue::Null => {
                let null = null_operation(slot);
                (digest_of(&null), Some(null))
            }
        };
        let Some(known) = self.window.open(slot) else { return };
        if let Some(proof) = known.proof.clone() {
            // Decided here, unknown to the members that the new view names.
            self.send(Recipients::All, Message::Proof(proof));
            return;
        }
        known.proposed = Some((view, digest));
        value.into_iter().for_each(|value| known.keep(value));
        self.request_bodies(slot);
    }

    /// Sends a member the new view of this view, or the own view change while there is none.
    pub(super) fn send_view(&mut self, to: ReplicaId) {
        let own = self.changes.latest.get(&self.id()).filter(|_| self.in_view_change);
        let begun = self.changes.begun.as_ref().filter(|_| !self.in_view_change);
        let begun = begun.map(|(new_view, _)| Message::NewView(new_view.clone()));
        if let Some(message) = own.map(Report::message).or(begun) {
            self.send(Recipients::One(to), message);
        }
    }
}
