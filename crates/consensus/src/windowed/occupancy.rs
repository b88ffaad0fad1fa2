//! How full the collections of a windowed machine are: the rows of docs/bounds.md.

use super::deciding::DECIDED_KEPT;
use super::normal::EARLY_MAX;
use super::reports::ViewChanges;
use super::rules::WINDOW;
use super::slot_votes::SlotVotes;
use super::slots::{Slot, VALUES_MAX};
use super::state::Windowed;
use crate::Occupancy;
use crate::epoch_end::EpochEnd;

impl Windowed {
    pub(super) fn collections(&self) -> Vec<Occupancy> {
        let members = self.members();
        let slots = || self.window.iter().map(|(_, slot)| slot);
        let votes = || slots().flat_map(|slot| slot.votes.values());
        let of_slots = |field, size: fn(&Slot) -> usize, bound| {
            Occupancy::of_fullest(field, slots().map(size), bound)
        };
        let of_votes = |field, size: fn(&SlotVotes) -> usize| {
            Occupancy::of_fullest(field, votes().map(size), members)
        };
        let mut all = vec![
            Occupancy::new("outputs", self.outputs.len(), 0),
            Occupancy::new("slots", slots().count(), WINDOW as usize),
            Occupancy::new("recent", self.recent.len(), DECIDED_KEPT),
            Occupancy::new("recent_order", self.recent_order.len(), DECIDED_KEPT),
            Occupancy::new("shown_at", self.ended.as_ref().map_or(0, EpochEnd::len), members),
            Occupancy::new("said", self.suspicions.len(), members),
            Occupancy::new("silent", self.collector_backoff.len(), members),
            Occupancy::new("answered", self.retransmission.len(), 2 * members),
            // Those that are named besides: a slot's proposal, value and certificate, and the new
            // one.
            of_slots("payloads", |slot| slot.payloads.len(), VALUES_MAX + 2),
            of_slots("votes", |slot| slot.votes.len(), 2),
            of_votes("prepares", |votes| votes.prepares.len()),
            of_votes("fast", |votes| votes.fast.len()),
            of_votes("commits", |votes| votes.commits.len()),
            of_votes("earlier", |votes| votes.earlier.len()),
        ];
        all.extend(self.changes.collections(members));
        all
    }
}

impl ViewChanges {
    fn collections(&self, members: usize) -> [Occupancy; 5] {
        let begun = self.begun.as_ref().map_or(0, |(_, named)| named.len());
        [
            Occupancy::new("latest", self.latest.len(), members),
            Occupancy::new("pending", self.pending.len(), members),
            Occupancy::new("named", self.named.len(), members * members),
            Occupancy::new("begun", begun, members),
            Occupancy::new("early", self.early.len(), EARLY_MAX),
        ]
    }
}
