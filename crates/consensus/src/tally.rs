//! The vote collector: shares in, certificates out.
//!
//! Aggregate first (★, common.md): shares are buffered unchecked, since the channel proves their
//! sender, and combined by one job when their weight reaches the threshold. A job that finds bad
//! shares blames their senders; collecting goes on with the good ones. What a job returns proves a
//! sum: no single share in it may be taken as valid by itself.
//!
//! A tally counts one statement that may be signed in several wordings: all votes for a block say
//! the same, while timeouts of one view differ in the certificate that each reports. The threshold
//! is over all wordings together; each wording gets a certificate of its own.

mod ballots;

use crate::{Evidence, Misbehaviour, Rule};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Certificate, Digest, Policy, Scheme, Share, hash};
use quorate_types::machine::{CombineId, CombineJob, CombineOutcome};
use quorate_types::{Committee, Purpose, ReplicaId, Time, Weights};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use ballots::Ballots;

/// What all tallies of a machine share.
#[derive(Debug)]
pub struct Collector {
    committee: Arc<Committee>,
    purpose: Purpose,
    scheme: Arc<dyn Scheme>,
    policy: Policy,
    suspects: Bitmap,
    jobs: u64,
    /// A weight beyond the threshold at which nothing more is waited for.
    plenty: Option<u64>,
}

impl Collector {
    /// For shares of `purpose`, checked by `policy`.
    #[must_use]
    pub fn new(committee: Arc<Committee>, purpose: Purpose, policy: Policy) -> Self {
        let (scheme, _) = committee.scheme(purpose);
        let suspects = Bitmap::new(committee.size());
        Self { committee, purpose, scheme, policy, suspects, jobs: 0, plenty: None }
    }

    /// With certificates that need not wait for anybody once their signers weigh so much.
    #[must_use]
    pub fn with_plenty(self, weight: u64) -> Self {
        Self { plenty: Some(weight), ..self }
    }

    /// Whether nothing is to be gained from more signers than these.
    fn is_plenty(&self, signers: &Bitmap) -> bool {
        self.plenty.is_some_and(|plenty| self.committee.weight_of(signers) >= plenty)
    }

    /// Whether these signers weigh what a certificate needs (★: weights, not heads).
    fn is_reached_by(&self, signers: &Bitmap) -> bool {
        if mutants::active(Mutant::TallyCountsHeads) {
            let equal = Weights::equal(self.committee.size());
            return signers.count() as u64 >= self.purpose.threshold(&equal);
        }
        let (_, threshold) = self.committee.scheme(self.purpose);
        self.committee.weight_of(signers) >= threshold
    }

    fn job(&mut self, message: Vec<u8>, shares: Vec<(usize, Share)>) -> CombineJob {
        let id = CombineId { purpose: self.purpose, number: self.jobs };
        self.jobs += 1;
        CombineJob {
            id,
            scheme: Arc::clone(&self.scheme),
            message,
            shares,
            suspects: self.suspects.clone(),
            policy: self.policy,
        }
    }
}

/// One wording of the statement, with the shares over it.
#[derive(Debug, Default)]
struct Wording {
    message: Vec<u8>,
    shares: BTreeMap<usize, Share>,
    combined: Option<Certificate>,
    job: Option<CombineId>,
}

/// Collects shares over one statement. `K` tells its wordings apart.
#[derive(Debug)]
pub struct Tally<K> {
    wordings: BTreeMap<K, Wording>,
    /// Everyone whose share was taken, good or bad: nobody counts twice.
    seen: Bitmap,
    /// Those whose shares may still count.
    counted: Bitmap,
    /// How long to go on collecting after the threshold (000 §3).
    wait: Duration,
    wait_until: Option<Time>,
    finished: bool,
}

/// Share that a combine job found not to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidShare {
    /// Member that sent it: the channel proved it.
    pub signer: ReplicaId,
    /// Hash of the bytes that were to be signed.
    pub statement: Digest,
}

impl From<InvalidShare> for Misbehaviour {
    fn from(share: InvalidShare) -> Self {
        let evidence = Evidence::Share { statement: share.statement };
        Self { member: share.signer, rule: Rule::InvalidShare, evidence }
    }
}

/// What a combined job means for its tally.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<K> {
    /// The job was not this tally's, or more must come.
    Waiting,
    /// The threshold is reached: a certificate for each wording.
    Done(Vec<(K, Certificate)>),
}

impl<K: Ord + Clone> Tally<K> {
    /// An empty tally for a committee of `members`. After the threshold it goes on collecting for
    /// `wait`; if that is not zero, the caller watches [`Tally::deadline`].
    #[must_use]
    pub fn new(members: usize, wait: Duration) -> Self {
        Self {
            wordings: BTreeMap::new(),
            seen: Bitmap::new(members),
            counted: Bitmap::new(members),
            wait,
            wait_until: None,
            finished: false,
        }
    }

    /// Takes a share. A second one by the same signer is dropped, whatever it says: `false`.
    pub fn add(
        &mut self,
        signer: ReplicaId,
        wording: K,
        message: impl FnOnce() -> Vec<u8>,
        share: Share,
    ) -> bool {
        if self.finished || !self.seen.insert(signer.index()) {
            return false;
        }
        self.counted.insert(signer.index());
        let entry = self
            .wordings
            .entry(wording)
            .or_insert_with(|| Wording { message: message(), ..Wording::default() });
        entry.shares.insert(signer.index(), share);
        true
    }

    /// Whether this signer was counted.
    #[must_use]
    pub fn has(&self, signer: ReplicaId) -> bool {
        self.seen.contains(signer.index())
    }

    /// The signers of the shares that may still count.
    #[must_use]
    pub fn counted(&self) -> &Bitmap {
        &self.counted
    }

    /// Whether a job is this tally's.
    #[must_use]
    pub fn awaits(&self, job: CombineId) -> bool {
        self.wordings.values().any(|wording| wording.job == Some(job))
    }

    /// When to ask again whether to combine, if it waits for votes beyond the threshold.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        if self.is_combining() || self.finished { None } else { self.wait_until }
    }

    /// The jobs to start now, if the threshold is reached and there is nothing to wait for.
    pub fn combine(&mut self, now: Time, collector: &mut Collector) -> Vec<CombineJob> {
        if self.finished || self.is_combining() || !self.is_ripe(now, collector) {
            return Vec::new();
        }
        let mut jobs = Vec::new();
        for wording in self.wordings.values_mut() {
            let is_current = wording
                .combined
                .as_ref()
                .is_some_and(|c| c.signers.count() == wording.shares.len());
            if is_current || wording.shares.is_empty() {
                continue;
            }
            let shares = wording.shares.iter().map(|(i, share)| (*i, share.clone())).collect();
            let job = collector.job(wording.message.clone(), shares);
            wording.job = Some(job.id);
            jobs.push(job);
        }
        jobs
    }

    /// Takes in what a job came to; `invalid` receives the shares that do not verify. When it
    /// returns [`Progress::Waiting`], ask [`Tally::combine`] again: good shares may have come
    /// meanwhile.
    pub fn combined(
        &mut self,
        outcome: &CombineOutcome,
        collector: &mut Collector,
        invalid: &mut Vec<InvalidShare>,
    ) -> Progress<K> {
        let Some(wording) = self.wordings.values_mut().find(|w| w.job == Some(outcome.id)) else {
            return Progress::Waiting;
        };
        wording.job = None;
        wording.combined.clone_from(&outcome.combined.certificate);
        for bad in &outcome.combined.bad {
            wording.shares.remove(bad);
            self.counted = without(&self.counted, *bad);
            collector.suspects.insert(*bad);
            let signer = ReplicaId(u16::try_from(*bad).expect("a member's index"));
            invalid.push(InvalidShare { signer, statement: hash(&wording.message) });
        }
        if !collector.is_reached_by(&self.counted) {
            self.wait_until = None;
        }
        self.finish(collector)
    }

    fn finish(&mut self, collector: &Collector) -> Progress<K> {
        if self.finished || self.is_combining() {
            return Progress::Waiting;
        }
        let certificates: Vec<(K, Certificate)> = self
            .wordings
            .iter()
            .filter_map(|(key, wording)| Some((key.clone(), wording.combined.clone()?)))
            .collect();
        let signers = certificates.iter().flat_map(|(_, c)| c.signers.iter());
        if !collector.is_reached_by(&Bitmap::from_indices(self.counted.members(), signers)) {
            return Progress::Waiting;
        }
        self.finished = true;
        Progress::Done(certificates)
    }

    /// Whether one of its jobs is under way.
    #[must_use]
    pub fn is_combining(&self) -> bool {
        self.wordings.values().any(|wording| wording.job.is_some())
    }

    /// The threshold is reached, and everyone answered or the wait is over.
    fn is_ripe(&mut self, now: Time, collector: &Collector) -> bool {
        if !collector.is_reached_by(&self.counted) {
            return false;
        }
        let until = *self.wait_until.get_or_insert(now + self.wait);
        let is_all = self.seen.count() == self.seen.members();
        until <= now || is_all || collector.is_plenty(&self.counted)
    }
}

fn without(bitmap: &Bitmap, index: usize) -> Bitmap {
    Bitmap::from_indices(bitmap.members(), bitmap.iter().filter(|i| *i != index))
}

#[cfg(test)]
mod tests;
