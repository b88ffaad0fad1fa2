//! A collector's part: votes in, certificates out.
//!
//! The first collector of a slot acts when it can; each later one waits its turn, and only acts if
//! nobody before it did (paper 002, §V-E: staggered, the primary last).

use super::messages::{CommitShare, Path, Place, Proof, Shares, SignShare, SlotCertificate};
use super::state::Windowed;
use crate::stagger::Turn;
use crate::tally::Ballots;
use crate::{Fault, Output};
use quorate_crypto::{Bitmap, Certificate, Digest, Share};
use quorate_types::machine::{CombineJob, CombineOutcome};
use quorate_types::{Committee, Height, Kind, Purpose, ReplicaId, Time, View};
use std::time::Duration;

/// About how long it takes to interpolate two hundred threshold shares, which adding all of them up saves:
/// nobody waits longer for the votes of the redundant (paper 002, §VIII).
pub(super) const INTERPOLATING: Duration = Duration::from_millis(4);

/// The votes of one slot in one view, as one collector gathers them.
#[derive(Debug)]
pub(super) struct Collecting {
    prepares: Ballots<Digest>,
    /// Those with keys of their own that decide at once.
    fast: Ballots<Digest>,
    commits: Ballots<Digest>,
    prepares_turn: Turn,
    commits_turn: Turn,
    /// Who voted, in time or not: what the fast timer learns from.
    arrived: Bitmap,
    quorum_at: Option<Time>,
    fast_at: Option<Time>,
    /// A certificate was shown, or a proof.
    prepared: bool,
    /// The collectors whose turns come before this one's.
    earlier: Vec<ReplicaId>,
}

impl Collecting {
    fn new(members: usize, waits: Waits, earlier: Vec<ReplicaId>) -> Self {
        Self {
            prepares: Ballots::new(members, waits.fast),
            fast: Ballots::new(members, waits.whole),
            commits: Ballots::new(members, Duration::ZERO),
            prepares_turn: Turn::default(),
            commits_turn: Turn::default(),
            arrived: Bitmap::new(members),
            quorum_at: None,
            fast_at: None,
            prepared: false,
            earlier,
        }
    }

    /// Somebody's vote came: what that tells of the pace.
    fn lags(&mut self, now: Time, from: ReplicaId, committee: &Committee) -> Lags {
        if !self.arrived.insert(from.index()) {
            return Lags::default();
        }
        let weight = committee.weight_of(&self.arrived);
        if weight < committee.quorum() {
            return Lags::default();
        }
        let quorum_at = *self.quorum_at.get_or_insert(now);
        let is_first = weight >= committee.weights().fast() && self.fast_at.is_none();
        if is_first {
            self.fast_at = Some(now);
        }
        let is_all = weight == committee.weights().total();
        Lags {
            fast: is_first.then(|| now.since(quorum_at)),
            whole: self.fast_at.filter(|_| is_all).map(|fast_at| now.since(fast_at)),
        }
    }

    /// Whether what decides at once is being made, or waits a moment for the votes of all.
    fn is_fast_near(&self) -> bool {
        self.fast.is_combining() || self.fast.deadline().is_some()
    }

    /// When there may be something to add up that waits for its time.
    fn deadline(&self) -> Option<Time> {
        let awaits_slow = !self.prepared && !self.is_fast_near();
        let more = self.prepares.deadline().filter(|_| awaits_slow);
        let waiting = [more, self.fast.deadline()];
        let waiting = waiting.into_iter().filter(|_| self.prepares_turn == Turn::Come);
        [self.prepares_turn.deadline(), self.commits_turn.deadline()]
            .into_iter()
            .chain(waiting)
            .flatten()
            .min()
    }
}

/// How long to wait for votes beyond a quorum's, and for those of the redundant beyond that.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    fast: Duration,
    whole: Duration,
}

/// How long after a quorum's votes those of all but the redundant came, and how long after these all.
#[derive(Clone, Copy, Debug, Default)]
struct Lags {
    fast: Option<Duration>,
    whole: Option<Duration>,
}

impl Windowed {
    /// A member's vote, unchecked until it is added up.
    pub(super) fn on_sign_share(&mut self, now: Time, from: ReplicaId, share: SignShare) {
        self.count_shares(now, from, share.at, share.shares);
    }

    /// Likewise a vote to commit.
    pub(super) fn on_commit_share(&mut self, now: Time, from: ReplicaId, share: CommitShare) {
        self.count_commit(now, from, share.at, share.share);
    }

    pub(super) fn count_shares(
        &mut self,
        now: Time,
        from: ReplicaId,
        place: Place,
        shares: Shares,
    ) {
        if !self.gathers(place.view, place.slot) {
            return;
        }
        let Some(collecting) = self.window.collecting(place.view, place.slot) else { return };
        let Collecting { earlier, prepares_turn, .. } = collecting;
        prepares_turn.start(|| now + self.stagger.before(now, earlier));
        let statement = || place.statement(Kind::Prepare, &self.verifier);
        collecting.prepares.add(from, place.digest, statement, shares.slow);
        let committee = self.verifier.committee();
        let may_decide =
            self.rules.fast_path && (shares.fast.is_some() || !committee.splits_keys());
        if let Some(fast) = shares.fast {
            collecting.fast.add(from, place.digest, statement, fast);
        }
        let lags = if may_decide { collecting.lags(now, from, committee) } else { Lags::default() };
        if let Some(lag) = lags.fast {
            self.fast_timer.came(lag);
        }
        if let Some(lag) = lags.whole.filter(|lag| *lag <= INTERPOLATING) {
            self.whole_timer.came(lag);
        }
        self.add_up(now, place.view, place.slot);
    }

    pub(super) fn count_commit(&mut self, now: Time, from: ReplicaId, place: Place, share: Share) {
        if !self.gathers(place.view, place.slot) {
            return;
        }
        let Some(collecting) = self.window.collecting(place.view, place.slot) else { return };
        let Collecting { earlier, commits_turn, .. } = collecting;
        commits_turn.start(|| now + self.stagger.before(now, earlier));
        let statement = || place.statement(Kind::Commit, &self.verifier);
        collecting.commits.add(from, place.digest, statement, share);
        self.add_up(now, place.view, place.slot);
    }

    /// A certificate of a slot came: how long it took tells how long to wait for others.
    pub(super) fn learn_pace(&mut self, now: Time, from: ReplicaId, slot: Height) {
        if !self.rules.collectors || from == self.id() {
            return;
        }
        let voted_at = self.window.get_mut(slot).and_then(|known| known.voted_at.take());
        if let Some(voted_at) = voted_at {
            self.stagger.came(from, now.since(voted_at));
        }
    }

    /// Those before this replica showed nothing of a slot at their turns.
    fn pass_over(&mut self, now: Time, view: View, slot: Height) {
        if let Some(collecting) = self.window.collecting(view, slot) {
            self.stagger.passed(now, &collecting.earlier);
        }
    }

    /// Whether this replica gathers votes for a slot: one that is not decided, in this view or the
    /// next.
    fn gathers(&mut self, view: View, slot: Height) -> bool {
        let is_near = view == self.view || view == self.view.next();
        if !is_near || !self.window.covers(slot) {
            return false;
        }
        match self.window.get(slot) {
            Some(known) if known.proof.is_some() => return false,
            Some(known) if known.collecting.contains_key(&view) => return true,
            _ => {}
        }
        let Some(earlier) = self.earlier(view, slot) else { return false };
        let collecting = Collecting::new(self.members(), self.waits_at(slot), earlier);
        let known = self.window.open(slot).expect("covered");
        known.collecting.insert(view, collecting);
        true
    }

    fn waits_at(&self, slot: Height) -> Waits {
        if !self.rules.fast_path {
            return Waits::default();
        }
        Waits { fast: self.fast_timer.wait_at(slot), whole: self.whole_timer.wait_at(slot) }
    }

    /// The collectors of a slot before this one; `None` if it is none.
    fn earlier(&self, view: View, slot: Height) -> Option<Vec<ReplicaId>> {
        if !self.rules.collectors {
            return Some(Vec::new());
        }
        let mut ranked = self.ranked(view, slot);
        let place = ranked.iter().position(|member| *member == self.id())?;
        ranked.truncate(place);
        Some(ranked)
    }

    /// Starts whatever can be added up now; whether that is anything.
    fn add_up(&mut self, now: Time, view: View, slot: Height) -> bool {
        let is_over = self.changing || view != self.view;
        let splits = self.verifier.committee().splits_keys();
        let Some(known) = self.window.get_mut(slot).filter(|_| !is_over) else { return false };
        let shown = known.prepared.as_ref().is_some_and(|prepared| prepared.at.view == view);
        let Some(collecting) = known.collecting.get_mut(&view) else { return false };
        collecting.prepared |= shown;
        let mut jobs: Vec<CombineJob> = Vec::new();
        if collecting.prepares_turn.has_come(now) {
            if splits && self.rules.fast_path {
                jobs.extend(collecting.fast.combine(now, &mut self.fast_collector));
            }
            if !collecting.prepared && !collecting.is_fast_near() {
                jobs.extend(collecting.prepares.combine(now, &mut self.collector));
            }
        }
        if collecting.commits_turn.has_come(now) {
            jobs.extend(collecting.commits.combine(now, &mut self.collector));
        }
        let is_any = !jobs.is_empty();
        self.outputs.extend(jobs.into_iter().map(Output::Combine));
        is_any
    }

    /// What waited for its time is added up.
    pub(super) fn combine_due(&mut self, now: Time) {
        let is_due = |collecting: &Collecting| collecting.deadline().is_some_and(|at| at <= now);
        let view = self.view;
        let due: Vec<Height> = self
            .window
            .after(self.decided)
            .filter(|(_, slot)| slot.collecting.get(&view).is_some_and(is_due))
            .map(|(slot, _)| slot)
            .collect();
        for slot in due {
            let acts = self.add_up(now, view, slot);
            if acts && self.rules.collectors {
                self.pass_over(now, view, slot);
            }
        }
    }

    /// When [`Windowed::combine_due`] has something.
    pub(super) fn combine_at(&self) -> Option<Time> {
        if self.changing {
            return None;
        }
        let undelivered = self.window.after(self.decided);
        let collecting = undelivered.filter_map(|(_, slot)| slot.collecting.get(&self.view));
        collecting.filter_map(Collecting::deadline).min()
    }

    /// A job came back.
    pub(super) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut blamed = Vec::new();
        let made = self.take_combined(outcome, &mut blamed);
        for member in blamed {
            self.blame(member, Fault::BadShare);
        }
        let Some((view, slot, made)) = made else { return };
        let place = |digest| Place { view, slot, digest };
        match made {
            Made::Prepared(digest, certificate) => {
                let certificate = SlotCertificate { at: place(digest), certificate };
                self.on_prepared(now, certificate);
            }
            Made::Fast(digest, certificate) => {
                let certificate = SlotCertificate { at: place(digest), certificate };
                self.note_made(Kind::Prepare, Purpose::Fast, &certificate);
                self.show_proof(now, Proof { path: Path::Fast, certificate });
            }
            Made::Committed(digest, certificate) => {
                let certificate = SlotCertificate { at: place(digest), certificate };
                self.note_made(Kind::Commit, Purpose::Vote, &certificate);
                self.show_proof(now, Proof { path: Path::Slow, certificate });
            }
            Made::Nothing => drop(self.add_up(now, view, slot)),
        }
    }

    fn take_combined(
        &mut self,
        outcome: &CombineOutcome,
        blamed: &mut Vec<ReplicaId>,
    ) -> Option<(View, Height, Made)> {
        for (slot, known) in self.window.after_mut(self.decided) {
            for (view, collecting) in &mut known.collecting {
                let made = if collecting.prepares.awaits(outcome.id) {
                    let made = collecting.prepares.combined(outcome, &mut self.collector, blamed);
                    collecting.prepared |= made.is_some();
                    made.map(|(digest, made)| Made::Prepared(digest, made))
                } else if collecting.fast.awaits(outcome.id) {
                    let made = collecting.fast.combined(outcome, &mut self.fast_collector, blamed);
                    made.map(|(digest, made)| Made::Fast(digest, made))
                } else if collecting.commits.awaits(outcome.id) {
                    let made = collecting.commits.combined(outcome, &mut self.collector, blamed);
                    made.map(|(digest, made)| Made::Committed(digest, made))
                } else {
                    continue;
                };
                return Some((*view, slot, made.unwrap_or(Made::Nothing)));
            }
        }
        None
    }

    /// A quorum's votes at least: of almost all, they decide, where one key serves both thresholds.
    fn on_prepared(&mut self, now: Time, certificate: SlotCertificate) {
        let committee = self.verifier.committee();
        let signers = &certificate.certificate.signers;
        let decides = self.rules.fast_path
            && !committee.splits_keys()
            && committee.are_enough(Purpose::Fast, signers);
        if decides {
            self.note_made(Kind::Prepare, Purpose::Fast, &certificate);
            self.show_proof(now, Proof { path: Path::Fast, certificate });
            return;
        }
        self.note_made(Kind::Prepare, Purpose::Vote, &certificate);
        self.show_prepare(now, certificate);
    }

    /// What was made here needs no check when it comes back.
    fn note_made(&self, kind: Kind, purpose: Purpose, certificate: &SlotCertificate) {
        self.verifier.remember_slot(kind, purpose, certificate);
    }
}

/// What a job came to.
enum Made {
    Prepared(Digest, Certificate),
    Fast(Digest, Certificate),
    Committed(Digest, Certificate),
    Nothing,
}
