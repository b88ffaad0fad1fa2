//! Checkpoints: states that a quorum keeps, after which what led to them may be forgotten.
//!
//! A protocol that keeps a window of slots moves it only past such a height (paper 002, §V-F).
//! Every so many heights each member signs the root that it came to and sends its share to
//! everybody; whoever has a quorum's over one root has the certificate. While the last one is open,
//! its share goes out again every so often.
//!
//! ★ A member whose own root is not the certified one has the wrong state.

use crate::certifier_output::CertifierOutput;
use crate::{Message, ReplicaConfig};
use quorate_consensus::tally::{Ballots, Collector};
use quorate_consensus::{Misbehaviour, Occupancy};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, Share, VotingSecret};
use quorate_types::executed::{CheckpointCertificate, checkpoint_statement};
use quorate_types::machine::CombineOutcome;
use quorate_types::{Committee, Header, Height, Purpose, Recipients, ReplicaId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Checkpoints that are open at once: more than a window has room for are not looked at.
const OPEN_MAX: usize = 4;

/// A replica's part in certifying states.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    id: ReplicaId,
    committee: Arc<Committee>,
    voting: Arc<VotingSecret>,
    /// Never, where the protocol asks for none.
    every: Option<u64>,
    signs: bool,
    collector: Collector,
    again: Duration,
    /// The last checkpoint that was executed here and is not certified.
    own: Option<(Height, Digest)>,
    send_at: Option<Time>,
    open: BTreeMap<Height, Ballots<Digest>>,
    stable: Height,
    diverged: Option<Height>,
    pub(crate) output: CertifierOutput,
    made: VecDeque<CheckpointCertificate>,
}

impl Checkpoints {
    /// One that knows nothing yet; `every` is the protocol's interval.
    pub(crate) fn new(config: &ReplicaConfig, every: Option<u64>) -> Self {
        let committee = Arc::clone(config.verifier.committee());
        let collector =
            Collector::new(Arc::clone(&committee), Purpose::Checkpoint, config.settings.verify);
        Self {
            id: config.id,
            voting: Arc::clone(&config.voting),
            every,
            signs: config.signs,
            collector,
            again: config.settings.timeout(),
            own: None,
            send_at: None,
            open: BTreeMap::new(),
            stable: Height(0),
            diverged: None,
            output: CertifierOutput::default(),
            made: VecDeque::new(),
            committee,
        }
    }

    /// A height came to this here, now or in an earlier run.
    pub(crate) fn executed(&mut self, now: Time, header: &Header) {
        let height = header.height;
        let is_one = self.every.is_some_and(|every| height.0.is_multiple_of(every));
        if !is_one || height <= self.stable {
            return;
        }
        self.own = Some((height, header.root()));
        self.sign(now);
    }

    fn sign(&mut self, now: Time) {
        let Some((height, root)) = self.own.filter(|_| self.signs) else { return };
        self.send_at = Some(now + self.again);
        let statement = self.statement(height, root);
        let share = self.committee.sign(Purpose::Checkpoint, &self.voting, &statement);
        let message = Message::CheckpointShare(height, root, share.clone());
        self.output.outbox.push_back((Recipients::All, message));
        self.count(now, self.id, height, root, share);
    }

    fn statement(&self, height: Height, root: Digest) -> Vec<u8> {
        checkpoint_statement(self.committee.scope(), height, root)
    }

    /// ★ Signs no more, and drops what has not left: its records are older than its signatures.
    pub(crate) fn stop_signing(&mut self) {
        self.signs = false;
        self.send_at = None;
        self.output.outbox.clear();
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy::new("open", self.open.len(), OPEN_MAX)
    }

    /// A member's share, its signature unchecked.
    pub(crate) fn on_share(
        &mut self,
        now: Time,
        from: ReplicaId,
        (height, root): (Height, Digest),
        share: Share,
    ) {
        let is_one = self.every.is_some_and(|every| height.0.is_multiple_of(every));
        if is_one && height > self.stable {
            self.count(now, from, height, root, share);
        }
    }

    fn count(&mut self, now: Time, from: ReplicaId, height: Height, root: Digest, share: Share) {
        let statement = self.statement(height, root);
        let members = self.committee.size();
        let ballots =
            self.open.entry(height).or_insert_with(|| Ballots::new(members, Duration::ZERO));
        ballots.add(from, root, || statement, share);
        self.output.jobs.extend(ballots.combine(now, &mut self.collector));
        while self.open.len() > OPEN_MAX {
            self.open.pop_last();
        }
    }

    /// A job of this collector's came back.
    pub(crate) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut open = self.open.iter_mut();
        let Some((height, ballots)) = open.find(|(_, ballots)| ballots.awaits(outcome.id)) else {
            return;
        };
        let height = *height;
        let mut invalid = Vec::new();
        let made = ballots.combined(outcome, &mut self.collector, &mut invalid);
        self.output.misbehaviour.extend(invalid.into_iter().map(Misbehaviour::from));
        match made {
            Some((root, certificate)) => {
                let made = CheckpointCertificate { height, root, certificate };
                self.stable(&made);
                self.made.push_back(made);
            }
            None => self.output.jobs.extend(ballots.combine(now, &mut self.collector)),
        }
    }

    /// A quorum keeps this state.
    pub(crate) fn stable(&mut self, checkpoint: &CheckpointCertificate) {
        let CheckpointCertificate { height, root, .. } = *checkpoint;
        if let Some((own, found)) = self.own
            && own == height
            && found != root
            && !mutants::active(Mutant::CheckpointTrustOwn)
        {
            self.diverged = Some(height);
        }
        self.stable = self.stable.max(height);
        self.open = self.open.split_off(&self.stable.next());
        if self.own.is_some_and(|(own, _)| own <= self.stable) {
            (self.own, self.send_at) = (None, None);
        }
    }

    /// Sends the share of the last open one again.
    pub(crate) fn due(&mut self, now: Time) {
        if self.send_at.is_some_and(|at| at <= now) {
            self.sign(now);
        }
    }

    /// When [`Checkpoints::due`] has something.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.send_at
    }

    /// What the protocol must hear.
    pub(crate) fn poll_made(&mut self) -> Option<CheckpointCertificate> {
        self.made.pop_front()
    }

    /// A height at which a quorum came to another root.
    pub(crate) fn take_diverged(&mut self) -> Option<Height> {
        self.diverged.take()
    }
}

#[cfg(test)]
mod tests;
