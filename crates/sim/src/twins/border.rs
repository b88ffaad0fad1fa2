//! What a run with two epochs keeps at the border between them.

use super::epoch::EpochRun;
use super::ground::Ground;
use super::plan::{MACHINES, NextEpoch, Plan};
use crate::oracles::{Borders, Oracles};
use quorate_consensus::Message;
use quorate_consensus::tally::{Ballots, Collector};
use quorate_crypto::{Policy, Share};
use quorate_types::{
    CommitteeFile, HandOver, HandedOver, Header, Purpose, ReplicaId, SignedHandOver, Time,
};
use std::sync::Arc;
use std::time::Duration;

/// What a run has beside its epochs when there are two.
pub(super) struct Border {
    pub(super) next: NextEpoch,
    /// The committee that takes over.
    pub(super) file: CommitteeFile,
    /// By machine of the first epoch.
    pub(super) endings: Vec<Ending>,
    /// The hand-over that was certified first.
    pub(super) step: Option<Arc<HandedOver>>,
    /// Time at which newcomers ask for it.
    pub(super) ask_at: Option<Time>,
    /// What was said in each epoch, in part.
    pub(super) heard: [Vec<Message>; 2],
    pub(super) oracles: Oracles,
}

/// The end of the first epoch at one machine.
pub(super) struct Ending {
    /// What it hands over once it has decided the stop block.
    pub(super) own: Option<(HandOver, Header)>,
    ballots: Ballots<HandOver>,
    collector: Collector,
    pub(super) certified: Option<Arc<HandedOver>>,
    /// Time at which its share goes out again.
    pub(super) send_at: Option<Time>,
    /// Time at which it leaves.
    pub(super) leave_at: Option<Time>,
}

impl Border {
    /// Behind an epoch that has not begun.
    pub(super) fn new(ground: &Ground, first: &EpochRun, next: &NextEpoch) -> Self {
        Self {
            file: ground.file_after(&first.ground, next),
            endings: first.machines().map(|_| Ending::of(first)).collect(),
            next: next.clone(),
            step: None,
            ask_at: None,
            heard: [Vec::new(), Vec::new()],
            oracles: Oracles::new(vec![Box::new(Borders::default())]),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let endings = self.endings.iter().flat_map(|ending| [ending.send_at, ending.leave_at]);
        endings.flatten().chain(self.ask_at).min()
    }

    /// Name of a machine in both epochs.
    pub(super) fn name(&self, ended: &Plan, epoch: usize, machine: usize) -> ReplicaId {
        let former = if epoch == 0 { Some(machine) } else { self.next.predecessor(ended, machine) };
        let name = former.unwrap_or(MACHINES + machine);
        ReplicaId(u16::try_from(name).expect("few machines"))
    }
}

impl Ending {
    fn of(epoch: &EpochRun) -> Self {
        let committee = Arc::clone(epoch.ground.committee());
        Self {
            own: None,
            ballots: Ballots::new(committee.size(), Duration::ZERO),
            collector: Collector::new(committee, Purpose::HandOver, Policy::Aggregate),
            certified: None,
            send_at: None,
            leave_at: None,
        }
    }

    /// Counts a share; the certificate, once there is one.
    pub(super) fn count(
        &mut self,
        now: Time,
        from: ReplicaId,
        content: HandOver,
        signed: (Vec<u8>, Share),
    ) -> Option<SignedHandOver> {
        let (statement, share) = signed;
        self.ballots.add(from, content, || statement, share);
        let jobs = self.ballots.combine(now, &mut self.collector);
        let outcomes = jobs.into_iter().map(|job| job.run());
        let made = outcomes.filter_map(|outcome| {
            self.ballots.combined(&outcome, &mut self.collector, &mut Vec::new())
        });
        let (content, certificate) = made.last()?;
        Some(SignedHandOver { content, certificate })
    }
}
