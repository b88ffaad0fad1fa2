//! View of a change of authorities, as the committee ordered it.

use super::committee::{CommitteeError, ReleaseCommittee};
use quorate_ledger::payments::ORDERED_MAX;
use quorate_payments::change::{Border, Change, ChangeStep};
use quorate_payments::committee::Ordered;
use quorate_types::Epoch;

/// Reader of what was ordered of the change to one epoch: proven, from the order's beginning.
#[derive(Debug)]
pub struct BorderWatch {
    committee: ReleaseCommittee,
    epoch: Epoch,
    from: u64,
    at: Option<Epoch>,
    seen: Option<(Change, Border)>,
}

impl BorderWatch {
    /// Watches the change to this epoch.
    #[must_use]
    pub fn new(committee: ReleaseCommittee, epoch: Epoch) -> Self {
        Self { committee, epoch, from: 0, at: None, seen: None }
    }

    /// Reads what is new; the change and what was ordered of it so far, once it is there.
    ///
    /// # Errors
    /// [`CommitteeError`].
    pub fn look(&mut self) -> Result<Option<&(Change, Border)>, CommitteeError> {
        loop {
            let ordered = self.committee.ordered(self.from, ORDERED_MAX)?;
            if ordered.is_empty() {
                return Ok(self.seen.as_ref());
            }
            ordered.into_iter().for_each(|ordered| self.take(ordered));
        }
    }

    fn take(&mut self, ordered: Ordered) {
        self.from += 1;
        let Ordered::Change(step) = ordered else { return };
        if let ChangeStep::Change(change) = &step {
            self.at = Some(change.next.epoch);
            if change.next.epoch == self.epoch {
                self.seen = Some((Change::clone(change), Border::default()));
            }
        }
        if self.at == Some(self.epoch)
            && let Some((_, border)) = &mut self.seen
        {
            // What was ordered changed something: it counts here too.
            let _ = border.apply(&step);
        }
    }
}
