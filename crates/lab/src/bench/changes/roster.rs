//! Processes that are members while the committee changes.

use super::What;
use std::ops::Range;

/// Processes that are members, in the committee's order, and those that are to be.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Roster {
    members: Vec<u16>,
    newcomers: Range<u16>,
    /// Number of the epoch that they are members in, or are to be once a change has come about.
    epoch: u64,
}

impl Roster {
    /// The first members, and newcomers behind them.
    pub(in crate::bench) fn new(members: u16, newcomers: u16) -> Self {
        Self { members: (0..members).collect(), newcomers: members..members + newcomers, epoch: 1 }
    }

    /// Process of the member with this index; the member's own number where there is none.
    pub(in crate::bench) fn process(&self, member: u16) -> u16 {
        self.members.get(usize::from(member)).copied().unwrap_or(member)
    }

    /// Members, by their processes.
    pub(super) fn members(&self) -> &[u16] {
        &self.members
    }

    /// Number of the epoch that they are members in.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of members.
    pub(in crate::bench) fn size(&self) -> u16 {
        u16::try_from(self.members.len()).expect("members are counted in 16 bits")
    }

    /// Has a change take its place: for each place of the next committee, the process and whether
    /// it is new there.
    pub(super) fn change(&mut self, what: What, dead: &[u16]) -> Vec<(u16, bool)> {
        let mut next: Vec<(u16, bool)> = self.members.iter().map(|id| (*id, false)).collect();
        match what {
            What::Replace(count) => {
                for place in self.leaving(count.unwrap_or(self.size()), dead) {
                    next[place] = (self.newcomers.next().expect("enough were started"), true);
                }
            }
            What::Add(count) => {
                next.extend(self.newcomers.by_ref().take(count.into()).map(|id| (id, true)));
            }
            What::Remove(count) => {
                let leaving = self.leaving(count, dead);
                let places = next.into_iter().enumerate();
                next = places
                    .filter(|(place, _)| !leaving.contains(place))
                    .map(|(_, id)| id)
                    .collect();
            }
            What::Protocol(_) | What::Scheme(_) => {}
        }
        self.members = next.iter().map(|(id, _)| *id).collect();
        self.epoch += 1;
        next
    }

    /// Places of those that leave first.
    fn leaving(&self, count: u16, dead: &[u16]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.members.len()).rev().collect();
        places.sort_by_key(|place| !dead.contains(&self.members[*place]));
        places.truncate(count.into());
        places
    }
}
