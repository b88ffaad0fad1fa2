//! Reader of a payment network's order, as its committee proves it: from number 0 at each start,
//! and again whenever the committee is connected to anew.
//!
//! [`OrderReader`] waits and calls; what is done of the order, its [`Listener`] decides.

use super::committee::{CommitteeError, ReleaseCommittee};
use super::epochs::Beginning;
use crate::NodeError;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use quorate_ledger::payments::ORDERED_MAX;
use quorate_payments::committee::Ordered;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two looks at the order, and at a border, where payments wait for it.
const POLL: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(100)];

/// Longest wait for an answer before the committee counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits before the committee is tried again; the last one for ever.
const BACKOFF: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
];

/// Whoever acts on the order.
pub(super) trait Listener {
    /// The order begins again at number 0: the committee may be another since.
    fn rewind(&mut self);

    /// Number of the change that comes next.
    fn next(&self) -> u64;

    /// Takes the change of that number.
    ///
    /// # Errors
    /// When the listener has to stop.
    fn take(&mut self, ordered: Ordered) -> Result<(), NodeError>;

    /// Has ordered what is to be, once all that is new was taken. The reading ends with the
    /// beginning of an epoch.
    ///
    /// # Errors
    /// Why the round ends here.
    fn settle(&mut self, committee: &ReleaseCommittee) -> Result<Option<Beginning>, Interruption>;

    /// Returns `true` while payments wait for what is ordered next.
    fn is_pressing(&self) -> bool;

    /// Is told, after each round, why there was no answer, if there was none.
    fn show(&mut self, trouble: Option<String>);
}

/// End of a round without an answer.
pub(super) enum Interruption {
    /// Whoever reads is stopped.
    Stopped,
    /// The committee did not answer: it is tried again.
    Trouble(CommitteeError),
    /// The listener has to stop.
    Failed(NodeError),
}

impl From<CommitteeError> for Interruption {
    fn from(error: CommitteeError) -> Self {
        match error {
            CommitteeError::Ended => Self::Stopped,
            error => Self::Trouble(error),
        }
    }
}

/// Thread that reads the order.
pub(super) struct OrderReader {
    committee: PathBuf,
    stopped: Receiver<()>,
}

impl OrderReader {
    /// Reader of the committee's order, in a file that was checked; it ends once the other end of
    /// `stopped` is dropped.
    pub(super) fn new(committee: &Path, stopped: Receiver<()>) -> Self {
        Self { committee: committee.to_owned(), stopped }
    }

    /// Reads until it is stopped, or an epoch can begin. A client that got no answer is given up,
    /// with whatever it has under way, and a new one begins at other members.
    ///
    /// # Errors
    /// What the listener failed with.
    pub(super) fn run(&self, listener: &mut impl Listener) -> Result<Option<Beginning>, NodeError> {
        let mut told = false;
        let mut failures = 0;
        loop {
            let trouble = match self.follow(listener, &mut told) {
                Ok(beginning) => return Ok(Some(beginning)),
                Err(Interruption::Stopped) => return Ok(None),
                Err(Interruption::Failed(error)) => return Err(error),
                Err(Interruption::Trouble(error)) => error.to_string(),
            };
            // It was told anew if there were answers since the last time.
            failures = if told { failures + 1 } else { 0 };
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(reason = trouble, "the committee is not followed; payments go on");
            }
            listener.show(Some(trouble));
            if self.pause(BACKOFF[failures.min(BACKOFF.len() - 1)]) {
                return Ok(None);
            }
        }
    }

    fn follow(
        &self,
        listener: &mut impl Listener,
        told: &mut bool,
    ) -> Result<Beginning, Interruption> {
        let committee = ReleaseCommittee::connect(&self.committee)?;
        let committee = committee.with_timeout(PATIENCE).until(self.stopped.clone());
        listener.rewind();
        loop {
            read_new(listener, &committee)?;
            if let Some(beginning) = listener.settle(&committee)? {
                return Ok(beginning);
            }
            if std::mem::take(told) {
                tracing::info!("the committee is followed again");
            }
            listener.show(None);
            if self.pause(POLL[usize::from(listener.is_pressing())]) {
                return Err(Interruption::Stopped);
            }
        }
    }

    /// Waits for so long; returns `true` if it is stopped meanwhile.
    fn pause(&self, wait: Duration) -> bool {
        !matches!(self.stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
    }
}

/// Hands on whatever is new.
fn read_new(
    listener: &mut impl Listener,
    committee: &ReleaseCommittee,
) -> Result<(), Interruption> {
    loop {
        let ordered = committee.ordered(listener.next(), ORDERED_MAX)?;
        if ordered.is_empty() {
            return Ok(());
        }
        for ordered in ordered {
            listener.take(ordered).map_err(Interruption::Failed)?;
        }
    }
}
