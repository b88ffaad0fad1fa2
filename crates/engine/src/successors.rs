//! Which of the next epoch's members has the state that it begins with, as far as this one knows.

use quorate_consensus::Occupancy;
use quorate_crypto::{Bitmap, IdentityKey};
use quorate_types::{Committee, CommitteeFile};

/// Members of the next epoch, by the index that they have there.
#[derive(Debug)]
pub(crate) struct Successors {
    keys: Vec<IdentityKey>,
    there: Bitmap,
}

impl Successors {
    /// Of an epoch whose end is not known yet.
    pub(crate) fn unknown() -> Self {
        Self { keys: Vec::new(), there: Bitmap::new(0) }
    }

    /// The members of a file that was checked, none of whom is there yet.
    pub(crate) fn of(file: &CommitteeFile) -> Self {
        let keys: Vec<IdentityKey> =
            file.members.iter().filter_map(|member| member.identity.parse().ok()).collect();
        Self { there: Bitmap::new(keys.len()), keys }
    }

    /// The owner of this key has executed the last height.
    pub(crate) fn is_there(&mut self, key: &IdentityKey) {
        if let Some(index) = self.keys.iter().position(|known| known == key) {
            self.there.insert(index);
        }
    }

    /// Returns `true` if all of them are there.
    pub(crate) fn are_all_there(&self) -> bool {
        self.there.count() == self.keys.len()
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy::new("keys", self.keys.len(), Committee::MEMBERS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Successors;
    use crate::testing::{identity, signed_change};

    #[test]
    fn strangers_and_repeats_do_not_count() {
        let mut next = Successors::of(&signed_change(1, 2).change.file);
        let mut seen = Vec::new();
        for member in [9, 0, 0, 1, 2, 3] {
            next.is_there(&identity(member).public());
            seen.push(next.are_all_there());
        }
        assert_eq!(seen, [false, false, false, false, false, true]);
    }
}
