//! Usual sizes of authors' bodies: how many of them one question may ask for.
//!
//! A name does not say how large its body is, and an answer is bounded in bytes. Eight names a
//! question suit bodies of half a MiB; of an author of small ones that would be a trickle, and who
//! makes bodies quicker than others fetch them leaves these behind.

use quorate_types::{Body, BodyRef, ReplicaId};
use std::collections::BTreeMap;

/// Bytes of bodies that one question asks for, by their authors' usual sizes.
pub(super) const QUESTION_BYTES: usize = Body::BYTES_MAX;
/// Most names in one question.
pub(crate) const QUESTION_NAMES_MAX: usize = 128;
/// Size of a body whose author is not known yet.
const UNKNOWN: usize = QUESTION_BYTES / 8;

/// The usual size of each author's bodies: jumps up to what is larger, and fades by a sixteenth
/// with each body that is not.
#[derive(Debug, Default)]
pub(super) struct UsualSizes {
    by_author: BTreeMap<ReplicaId, usize>,
}

impl UsualSizes {
    /// A body came, from whomever.
    pub(super) fn observe(&mut self, body: &Body) {
        let usual = self.by_author.entry(body.reference.author).or_default();
        *usual = body.raw.len().max(*usual - *usual / 16);
    }

    /// Part of [`QUESTION_BYTES`] that a body takes.
    pub(super) fn of(&self, name: &BodyRef) -> usize {
        let usual = self.by_author.get(&name.author).copied().unwrap_or(UNKNOWN);
        usual.clamp(QUESTION_BYTES / QUESTION_NAMES_MAX, QUESTION_BYTES)
    }

    pub(super) fn len(&self) -> usize {
        self.by_author.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{QUESTION_BYTES, QUESTION_NAMES_MAX, UNKNOWN, UsualSizes};
    use crate::testing::body;

    #[test]
    fn small_bodies_are_many_in_a_question_and_large_ones_few() {
        let mut sizes = UsualSizes::default();
        let (small, large) = (body(1, 1, 10), body(1, 2, 100_000));
        assert_eq!(sizes.of(&small.reference), UNKNOWN);
        sizes.observe(&small);
        assert_eq!(sizes.of(&small.reference), QUESTION_BYTES / QUESTION_NAMES_MAX);
        sizes.observe(&large);
        assert!((100_000..101_000).contains(&sizes.of(&small.reference)));
        for _ in 0..100 {
            sizes.observe(&small);
        }
        assert_eq!(sizes.of(&small.reference), QUESTION_BYTES / QUESTION_NAMES_MAX, "it fades");
        assert_eq!(sizes.len(), 1);
    }
}
