//! Checks of what arrives, by two threads in virtual time that peers share fairly, as in a
//! validator.

use super::{Note, ReplicaHost, Turn};
use crate::byzantine::Behaviour;
use crate::oracles::CheckedFrame;
use bytes::Bytes;
use quorate_crypto::counts;
use quorate_engine::{Budget, FairQueue, FrameTag, Incoming, Verdict};
use quorate_types::{Event, Peer, Rejected, ReplicaId, Time, Verified};
use std::collections::BTreeMap;
use std::time::Duration;

/// A frame that arrives.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// `true` for a frame of a correct sender, as it was sent.
    pub(crate) honest: bool,
    pub(crate) content: Bytes,
}

/// A frame that waits to be checked.
#[derive(Debug)]
struct Waiting {
    arrival: Arrival,
    /// Time of checks of its payer's and of liars' frames when it arrived.
    own_checks: Duration,
    liars_checks: Duration,
}

/// A thread that checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Station {
    /// Votes, proposals, certificates.
    Urgent,
    /// Bodies, blocks, requests.
    Bulk,
}

impl Station {
    pub(crate) const ALL: [Self; 2] = [Self::Urgent, Self::Bulk];

    fn of(content: &Bytes) -> Self {
        let is_bulky = FrameTag::of(content).is_some_and(|tag| tag.rules().bulky);
        if is_bulky { Self::Bulk } else { Self::Urgent }
    }
}

/// Outcome of a check, before its time is over.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) station: Station,
    pub(crate) frame: CheckedFrame,
    /// The first byte of the frame.
    pub(crate) tag: u8,
    outcome: Result<Verified<Incoming>, Rejected>,
}

/// One thread's queue.
#[derive(Debug)]
pub(super) struct CheckThread {
    queue: FairQueue<Waiting>,
    is_busy: bool,
    /// Time of all checks of each member's frames, of all others' together, and of liars'.
    checks: BTreeMap<Option<ReplicaId>, Duration>,
    liars_checks: Duration,
    /// Moment for which it is to be looked at again, while all that waits is over its budget.
    woken_at: Option<Time>,
}

/// The threads of one start of a host.
#[derive(Debug)]
pub(super) struct CheckThreads([CheckThread; 2]);

impl CheckThreads {
    pub(super) fn new() -> Self {
        Self([Some(Budget::URGENT), None].map(CheckThread::new))
    }

    fn of(&mut self, station: Station) -> &mut CheckThread {
        &mut self.0[station as usize]
    }
}

impl CheckThread {
    fn new(budget: Option<Budget>) -> Self {
        Self {
            queue: FairQueue::new(budget),
            is_busy: false,
            checks: BTreeMap::new(),
            liars_checks: Duration::ZERO,
            woken_at: None,
        }
    }

    fn push(&mut self, now: Time, from: Peer, arrival: Arrival) {
        let own_checks = self.checks.get(&payer(from)).copied().unwrap_or_default();
        let waiting = Waiting { arrival, own_checks, liars_checks: self.liars_checks };
        // A barred peer's goes nowhere: its connection is cut.
        let _ = self.queue.push(now, from, waiting);
    }

    fn finish(&mut self, now: Time, frame: &CheckedFrame) {
        self.is_busy = false;
        self.queue.charge(now, frame.from, frame.cost, Verdict::Sound);
        *self.checks.entry(payer(frame.from)).or_default() += frame.cost;
        if !frame.honest {
            self.liars_checks += frame.cost;
        }
    }
}

/// Whose share a check is of: a member's own, or the one that all others have together.
fn payer(peer: Peer) -> Option<ReplicaId> {
    peer.replica().ok()
}

impl ReplicaHost {
    /// Queues a frame to be checked; gives the thread that is to do it.
    pub(crate) fn arrive(&mut self, now: Time, from: Peer, arrival: Arrival) -> Station {
        let station = Station::of(&arrival.content);
        if let Some(running) = &mut self.running {
            running.checks.of(station).push(now, from, arrival);
        }
        station
    }

    /// Begins the next check of an idle thread. What it costs is the time until
    /// [`ReplicaHost::finish_check`] is due.
    pub(crate) fn begin_check(&mut self, now: Time, station: Station) -> Option<Checked> {
        let Self { running: Some(running), rng, config, .. } = self else {
            return None;
        };
        let thread = running.checks.of(station);
        if thread.is_busy {
            return None;
        }
        let (from, Waiting { arrival, own_checks, liars_checks }) = thread.queue.pop(now)?;
        let Arrival { honest, content } = arrival;
        thread.is_busy = true;
        let tag = content.first().copied().unwrap_or(0);
        counts::take();
        let outcome = Verified::<Incoming>::check(content, from, &running.verifier);
        let checks = u32::try_from(counts::take().checks()).unwrap_or(u32::MAX);
        let each = match &config.durations {
            durations if durations.prices_checks() && checks > 0 => rng.span(&durations.check_us),
            _ => Duration::ZERO,
        };
        let own = thread.checks.get(&payer(from)).copied().unwrap_or_default();
        let frame = CheckedFrame {
            replica: config.name,
            from,
            honest,
            urgent: station == Station::Urgent,
            began: now,
            cost: each * checks,
            own_checks: own - own_checks,
            liars_checks: thread.liars_checks - liars_checks,
        };
        Some(Checked { station, frame, tag, outcome })
    }

    /// Hands a checked message to the machine. The error is why it was refused.
    pub(crate) fn finish_check(
        &mut self,
        now: Time,
        checked: Checked,
        turn: &mut Turn,
    ) -> Result<(), Rejected> {
        let Checked { station, frame, outcome, .. } = checked;
        let from = frame.from;
        let Some(running) = &mut self.running else { return Ok(()) };
        running.checks.of(station).finish(now, &frame);
        match outcome {
            Ok(message) => {
                if let (Some(liar), Incoming::Consensus(inner)) = (&mut self.liar, &*message) {
                    liar.hear(inner);
                }
                self.feed(now, Event::Message { from, message }, turn);
                Ok(())
            }
            Err(reason) => {
                if reason.is_fault() {
                    self.hold_against(now, from, turn);
                }
                Err(reason)
            }
        }
    }

    /// Takes nothing more for a while from members whose shares were refused alone.
    pub(super) fn hold_shares_against(&mut self, now: Time, signers: &[usize], turn: &mut Turn) {
        for signer in signers {
            let member = u16::try_from(*signer).expect("a committee's indices are 16 bits");
            self.hold_against(now, Peer::Replica(ReplicaId(member)), turn);
        }
    }

    /// Takes nothing more from this peer for a while, where checks take time.
    fn hold_against(&mut self, now: Time, from: Peer, turn: &mut Turn) {
        let Some(running) = &mut self.running else { return };
        if !self.config.durations.prices_checks() {
            return;
        }
        for station in Station::ALL {
            running.checks.of(station).queue.charge(now, from, Duration::ZERO, Verdict::Faulty);
        }
        turn.notes.push(Note::Barred(from));
    }

    /// The moment at which an idle thread may go on with what is over its budget now, once.
    pub(crate) fn next_check(&mut self, now: Time, station: Station) -> Option<Time> {
        let thread = self.running.as_mut()?.checks.of(station);
        let at = thread.queue.next_ready().filter(|_| !thread.is_busy)?;
        let is_known = thread.woken_at.is_some_and(|woken| now < woken && woken <= at);
        (!is_known).then(|| {
            thread.woken_at = Some(at);
            at
        })
    }

    /// Returns `true` if its refusals are those of a correct member.
    pub(crate) fn is_correct(&self) -> bool {
        self.config.behaviour == Behaviour::Honest
    }
}
