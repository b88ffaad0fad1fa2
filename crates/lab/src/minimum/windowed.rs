//! The least latency of PBFT, linear PBFT and SBFT: slots under a steady primary, which fills one
//! as soon as an operation's body reaches it.
//!
//! ```text
//! client ─▶ v ──body──▶ all     P ──pre-prepare──▶ all, and then
//!   all ──votes──▶ all ──votes──▶ all decide  (PBFT)
//!   all ──votes──▶ C ──certificate──▶ all ──votes──▶ C ──proof──▶ all decide  (linear PBFT)
//!   all but the redundant ──votes──▶ C ──proof──▶ all decide  (fast path)
//! all that decided execute ──replies──▶ client, at the weak-th; or
//!   ──shares──▶ E, at the weak-th ──certificate──▶ v ──▶ client  (one reply)
//! ```
//!
//! The collectors C and E are taken to be any member but the primary, each as often.

use super::done_by;
use quorate_report::results::beside::Minimum;
use quorate_wan::Topology;

/// Parameters of a windowed committee.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Index of the member that fills slots.
    pub primary: usize,
    /// Rounds of votes, and the members that add them up.
    pub votes: Votes,
    /// Signers of a certificate.
    pub quorum: usize,
    /// So many are certain to include an honest one.
    pub weak: usize,
    /// `true` if a client takes one certified reply.
    pub certified: bool,
}

/// The ways of votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Votes {
    /// Votes to everybody, in two rounds.
    ToAll,
    /// To a collector, twice.
    Collected,
    /// To a collector, once, of so many; or as before, where that is quicker.
    Fast(usize),
}

/// Computes the minimum over clients beside every member and collectors drawn alike.
///
/// # Panics
/// When the primary or a threshold is beyond the committee.
#[must_use]
pub fn windowed(network: &Topology, slots: Slots) -> Minimum {
    let members = network.members();
    let fits = slots.primary < members && slots.quorum.max(slots.weak) <= members;
    assert!(fits, "a primary and thresholds of this committee");
    let course = Course { network, slots };
    let others: Vec<usize> = match members {
        1 => vec![0],
        _ => (0..members).filter(|member| *member != slots.primary).collect(),
    };
    let drawn = |collects: bool| if collects { others.clone() } else { vec![slots.primary] };
    let mut latencies = Vec::new();
    for home in 0..members {
        for collector in drawn(slots.votes != Votes::ToAll) {
            let decided = course.decided(home, collector);
            let answered = |executor| course.answered(home, executor, &decided);
            latencies.extend(drawn(slots.certified).into_iter().map(answered));
        }
    }
    latencies.sort_by(f64::total_cmp);
    let mean_ms = latencies.iter().sum::<f64>() / latencies.len() as f64;
    let p50_ms = latencies[(latencies.len() - 1) / 2];
    Minimum { p50_ms, mean_ms, mean_without_wait_ms: mean_ms, view_ms: 0.0 }
}

struct Course<'a> {
    network: &'a Topology,
    slots: Slots,
}

impl Course<'_> {
    fn members(&self) -> std::ops::Range<usize> {
        0..self.network.members()
    }

    /// Milliseconds from one member, or a client beside it, to another.
    fn way(&self, from: usize, to: usize) -> f64 {
        self.network.latency(from, to).median().as_secs_f64() * 1_000.0
    }

    fn between(&self, from: usize, to: usize) -> f64 {
        if from == to { 0.0 } else { self.way(from, to) }
    }

    /// Moment at which messages of so many of those who are ready at these times have come.
    fn gathered(&self, ready: &[f64], at: usize, needed: usize) -> f64 {
        let come = self.members().map(|from| (ready[from] + self.between(from, at), 1)).collect();
        done_by(come, needed as u64)
    }

    /// Moments at which everybody has a message that one member sends then.
    fn shown(&self, by: usize, from: f64) -> Vec<f64> {
        self.members().map(|member| from + self.between(by, member)).collect()
    }

    /// Moments at which each member decides, counted from when a client beside `home` sends.
    fn decided(&self, home: usize, collector: usize) -> Vec<f64> {
        let Slots { primary, votes, quorum, .. } = self.slots;
        let sealed = self.way(home, home);
        let filled = sealed + self.between(home, primary);
        // A vote takes the value and its body.
        let body = self.shown(home, sealed);
        let value = self.shown(primary, filled);
        let voted: Vec<f64> = body.iter().zip(value).map(|(body, value)| body.max(value)).collect();
        let each = |ready: &[f64]| -> Vec<f64> {
            self.members().map(|member| self.gathered(ready, member, quorum)).collect()
        };
        let through =
            |ready: &[f64], needed| self.shown(collector, self.gathered(ready, collector, needed));
        match votes {
            Votes::ToAll => each(&each(&voted)),
            Votes::Collected => through(&through(&voted, quorum), quorum),
            // Where one member is far, two rounds of a quorum are quicker than one of all.
            Votes::Fast(needed) => {
                let slow = through(&through(&voted, quorum), quorum);
                through(&voted, needed)
                    .into_iter()
                    .zip(slow)
                    .map(|(fast, slow)| fast.min(slow))
                    .collect()
            }
        }
    }

    fn answered(&self, home: usize, executor: usize, decided: &[f64]) -> f64 {
        let Slots { weak, certified, .. } = self.slots;
        if certified {
            let proven = self.gathered(decided, executor, weak);
            return proven + self.between(executor, home) + self.way(home, home);
        }
        let replies = self.members().map(|from| (decided[from] + self.way(from, home), 1));
        done_by(replies.collect(), weak as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn of(slots: Slots) -> Minimum {
        windowed(&Topology::uniform(4, Duration::from_millis(1)), slots)
    }

    /// Four members at one distance, of which the client's own answers it in no time. Beside the
    /// primary a slot is filled at once, beside another after one delay; then everybody has value
    /// and body one delay later.
    #[test]
    fn four_members_at_one_distance() {
        let base = Slots { primary: 1, votes: Votes::ToAll, quorum: 3, weak: 2, certified: false };
        // Pre-prepare, prepare, commit; and the second reply.
        let pbft = of(base);
        assert_eq!((pbft.p50_ms, pbft.mean_ms), (5.0, 4.75), "{pbft:?}");
        // Pre-prepare, votes, certificate, votes, proof; and the second reply. One delay less where
        // the collector is the client's own: it decides before its proof is anywhere, but is one
        // reply.
        let linear = of(Slots { votes: Votes::Collected, ..base });
        assert!(linear.mean_ms > pbft.mean_ms + 1.0, "{linear:?}");
        let fast = of(Slots { votes: Votes::Fast(4), ..base });
        assert!(fast.mean_ms < linear.mean_ms - 1.0, "{fast:?}");
        let sbft = of(Slots { votes: Votes::Fast(4), certified: true, ..base });
        assert!(sbft.mean_ms > fast.mean_ms, "{sbft:?}");
        assert_eq!(sbft.view_ms, 0.0);
    }

    #[test]
    fn one_member_waits_for_nobody() {
        let slots =
            Slots { primary: 0, votes: Votes::Fast(1), quorum: 1, weak: 1, certified: true };
        let minimum = windowed(&Topology::uniform(1, Duration::from_millis(1)), slots);
        assert_eq!(minimum, Minimum::default());
    }
}
