//! Verification is shared fairly: a correct member's message waits for few checks of liars', and no
//! liar has more of a thread than its budget.

use super::{CheckedFrame, Observation, Oracle};
use quorate_types::{Peer, ReplicaId, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// Head start of a peer after a pause, as the specification of fair queues has it.
const CREDIT: Duration = Duration::from_millis(20);
/// Checks of one peer at once, and after that its part of the time, of what is urgent.
const BURST: Duration = Duration::from_millis(500);
const SHARE: u32 = 4;

/// Compares waits and costs with what a fair queue allows.
#[derive(Debug)]
pub struct FairChecks {
    liars: u32,
    replicas: BTreeMap<ReplicaId, Thread>,
}

/// The checks of one replica since it started.
#[derive(Debug, Default)]
struct Thread {
    /// The longest check.
    longest: Duration,
    /// By liar: its first check, and the time of all.
    spent: BTreeMap<Peer, (Time, Duration)>,
}

impl FairChecks {
    /// The judge of a committee with so many liars.
    #[must_use]
    pub fn new(liars: u32) -> Self {
        Self { liars, replicas: BTreeMap::new() }
    }
}

impl Thread {
    /// While a correct peer's message waits, each liar is served until it has had more than the
    /// share that the message counts against.
    fn judge_wait(&self, frame: &CheckedFrame, liars: u32) -> Result<(), String> {
        let each = CREDIT + 2 * self.longest + frame.own_checks;
        let allowed = each * liars + self.longest;
        (frame.liars_checks <= allowed).then_some(()).ok_or_else(|| {
            let CheckedFrame { replica, from, liars_checks, .. } = frame;
            format!("at {replica} a message of {from:?} waited for {liars_checks:?} of liars' checks, of {allowed:?}")
        })
    }

    fn judge_cost(&mut self, frame: &CheckedFrame) -> Result<(), String> {
        let (since, spent) = self.spent.entry(frame.from).or_insert((frame.began, Duration::ZERO));
        let allowed = BURST + frame.began.since(*since) / SHARE + self.longest;
        if *spent > allowed {
            let CheckedFrame { replica, from, .. } = frame;
            return Err(format!(
                "{replica} checked for {spent:?} what {from:?} sent, of {allowed:?}"
            ));
        }
        *spent += frame.cost;
        Ok(())
    }
}

impl Oracle for FairChecks {
    fn name(&self) -> &'static str {
        "fair checks"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Booted { replica, .. } => {
                self.replicas.remove(replica);
                Ok(())
            }
            Observation::Checked(frame) => {
                let thread = self.replicas.entry(frame.replica).or_default();
                thread.longest = thread.longest.max(frame.cost);
                if frame.honest {
                    thread.judge_wait(frame, self.liars)
                } else if frame.urgent {
                    thread.judge_cost(frame)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }
}
