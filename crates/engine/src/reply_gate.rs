//! Filter of the replies that a client still has to check: most of a large committee's come after
//! the client knows.

use crate::frames::FrameTag;
use quorate_crypto::{Bitmap, Digest};
use quorate_types::{Committee, Height, ReplicaId, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Completed requests that are remembered: several windows of a session.
const DONE_MAX: usize = 512;

/// Counts one session's checked replies, as the session itself will, so that the host can drop the
/// rest unchecked. Of `n` replies to a request a client needs `f+1`, or the weight of as many;
/// checking the others would be two thirds of its work.
#[derive(Debug)]
pub struct ReplyGate {
    committee: Arc<Committee>,
    counts: BTreeMap<u64, Count>,
    done: BTreeSet<u64>,
}

/// One request's replies so far.
#[derive(Debug)]
struct Count {
    /// Each replica's first answer counts, as it does in the session.
    answered: Bitmap,
    answers: BTreeMap<(Height, Digest), Bitmap>,
}

impl ReplyGate {
    /// A gate that lets everything through.
    #[must_use]
    pub fn new(committee: Arc<Committee>) -> Self {
        Self { committee, counts: BTreeMap::new(), done: BTreeSet::new() }
    }

    /// Returns `true` if a frame's content (tag and what follows, unchecked) is worth checking.
    #[must_use]
    pub fn wants(&self, content: &[u8]) -> bool {
        sequence_of(content).is_none_or(|sequence| !self.done.contains(&sequence))
    }

    /// A reply was checked and goes to the session.
    pub fn passed(&mut self, from: ReplicaId, reply: &Reply) {
        if self.done.contains(&reply.sequence) {
            return;
        }
        let size = self.committee.size();
        let none = || Count { answered: Bitmap::new(size), answers: BTreeMap::new() };
        let count = self.counts.entry(reply.sequence).or_insert_with(none);
        if !count.answered.insert(from.index()) {
            return;
        }
        let answer = (reply.height, reply.results_digest);
        let alike = count.answers.entry(answer).or_insert_with(|| Bitmap::new(size));
        alike.insert(from.index());
        if self.committee.includes_honest(alike) {
            self.counts.remove(&reply.sequence);
            self.done.insert(reply.sequence);
        }
        forget_first(&mut self.done, DONE_MAX);
        while self.counts.len() > DONE_MAX {
            self.counts.pop_first();
        }
    }
}

fn forget_first(set: &mut BTreeSet<u64>, kept: usize) {
    while set.len() > kept {
        set.pop_first();
    }
}

/// The sequence number in an encoded [`Reply`]: after the tag, the replica and the client.
fn sequence_of(content: &[u8]) -> Option<u64> {
    const AT: usize = 1 + 2 + 32;
    FrameTag::of(content).filter(|tag| *tag == FrameTag::Reply)?;
    let bytes = content.get(AT..AT + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::{DONE_MAX, ReplyGate, sequence_of};
    use crate::Message;
    use crate::message::Busy;
    use crate::testing::{client, committee, content, identity, weighted};
    use bytes::Bytes;
    use quorate_types::request::Answer;
    use quorate_types::{ClientId, Height, Outcome, ReplicaId, Reply, Results};

    fn reply(from: u8, sequence: u64, result: u8) -> Reply {
        let results = Results::new(vec![Outcome::Applied(Bytes::copy_from_slice(&[result]))]);
        let client = ClientId(client().public());
        let answer = Answer { client, sequence, height: Height(3), results, index: None };
        let scope = committee().scope();
        Reply::sign(&identity(from), scope, ReplicaId(u16::from(from)), answer)
    }

    fn pass(gate: &mut ReplyGate, from: u8, sequence: u64, result: u8) {
        gate.passed(ReplicaId(u16::from(from)), &reply(from, sequence, result));
    }

    fn wants(gate: &ReplyGate, sequence: u64) -> bool {
        gate.wants(&content(&Message::Reply(reply(3, sequence, 7))))
    }

    #[test]
    fn the_sequence_is_read_from_the_wire_form() {
        let encoded = content(&Message::Reply(reply(1, 0x0102_0304_0506, 9)));
        assert_eq!(sequence_of(&encoded), Some(0x0102_0304_0506));
        let busy = Message::Busy(Busy { sequence: 5, reason: String::new() });
        assert_eq!(sequence_of(&content(&busy)), None);
        assert_eq!(sequence_of(&encoded[..20]), None);
    }

    #[test]
    fn what_enough_replicas_answered_alike_needs_no_more_checks() {
        let mut gate = ReplyGate::new(committee());
        pass(&mut gate, 0, 5, 7);
        pass(&mut gate, 0, 5, 7);
        pass(&mut gate, 1, 5, 8);
        assert!(wants(&gate, 5), "one replica twice, and another answer, are not enough");
        pass(&mut gate, 2, 5, 7);
        assert!(!wants(&gate, 5));
        assert!(wants(&gate, 6));
    }

    /// Otherwise a liar that answers first this, then that, would close the gate before the session
    /// is done, and every further reply would be dropped.
    #[test]
    fn a_replica_that_answers_twice_counts_once() {
        let mut gate = ReplyGate::new(committee());
        pass(&mut gate, 3, 5, 8);
        pass(&mut gate, 0, 5, 7);
        pass(&mut gate, 3, 5, 7);
        assert!(wants(&gate, 5), "the session has one answer of 7 only");
        pass(&mut gate, 1, 5, 7);
        assert!(!wants(&gate, 5));
    }

    /// ★ As the session: three light members of seven may all lie.
    #[test]
    fn replies_are_weighed() {
        let gate_after = |members: &[u8]| {
            let mut gate = ReplyGate::new(weighted(&[4, 4, 4, 4, 1, 1, 1]));
            members.iter().for_each(|from| pass(&mut gate, *from, 5, 7));
            wants(&gate, 5)
        };
        assert!(gate_after(&[4, 5, 6]) && gate_after(&[0, 4, 5]));
        assert!(!gate_after(&[0, 1]) && !gate_after(&[4, 5, 6, 0]));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut gate = ReplyGate::new(committee());
        let many = 3 * DONE_MAX as u64;
        for sequence in 0..many {
            pass(&mut gate, 0, sequence, 7);
            pass(&mut gate, 1, sequence, 7);
        }
        (many..2 * many).for_each(|sequence| pass(&mut gate, 2, sequence, 7));
        assert!(gate.done.len() <= DONE_MAX && gate.counts.len() <= DONE_MAX);
        assert!(!wants(&gate, many - 1));
    }

    /// The bounds are exact: so many done and so many half answered, and the oldest goes first.
    #[test]
    fn the_oldest_are_forgotten_first() {
        let most = DONE_MAX as u64;
        let mut gate = ReplyGate::new(committee());
        let finish = |gate: &mut ReplyGate, sequence| {
            (0..2).for_each(|from| pass(gate, from, sequence, 7));
        };
        (0..most).for_each(|sequence| finish(&mut gate, sequence));
        assert!((0..most).all(|sequence| !wants(&gate, sequence)));
        finish(&mut gate, most);
        assert!(wants(&gate, 0) && (1..=most).all(|sequence| !wants(&gate, sequence)));

        for (count, is_counted) in [(most, true), (most + 1, false)] {
            let mut gate = ReplyGate::new(committee());
            (0..count).for_each(|sequence| pass(&mut gate, 0, sequence, 7));
            pass(&mut gate, 1, 0, 7);
            assert_eq!(wants(&gate, 0), !is_counted, "of {count}");
        }
    }
}
