//! Reasons for which a client's request or query is turned away, and how often each was given.

use crate::message::Busy;
use std::collections::BTreeMap;

/// Reason for which a request or a query is not taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// Too many requests wait already.
    #[error("this validator holds as many undecided requests as it may: send slower, or elsewhere")]
    Full,
    /// Room for requests is scarce, and this client has its share of it.
    #[error("this validator is loaded and holds this client's share of requests: send slower")]
    Share,
    /// Too many queries are under way already.
    #[error("this validator has too many queries: ask another")]
    Queries,
    /// Places for queries are scarce, and this client has its share of them.
    #[error("this validator is loaded and answers this client's share of queries: ask another")]
    QueryShare,
    /// The service does not admit it; its own reason goes to the client.
    #[error("the service does not admit it")]
    NotAdmitted,
    /// The disk has no room for more bodies.
    #[error("{}", Busy::DISK_NEARLY_FULL)]
    Disk,
}

impl Refusal {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Share, Self::Queries, Self::QueryShare, Self::NotAdmitted, Self::Disk];

    /// Word for the reason in the labels of metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Share => "share",
            Self::Queries => "queries",
            Self::QueryShare => "query-share",
            Self::NotAdmitted => "not-admitted",
            Self::Disk => "disk",
        }
    }
}

/// Number of times that each reason was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounts([u64; Refusal::ALL.len()]);

impl RefusalCounts {
    pub(crate) fn count(&mut self, refusal: Refusal) {
        self.0[refusal as usize] += 1;
    }

    /// Every reason with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL.into_iter().zip(self.0)
    }
}

/// Returns `true` if room is scarce and `client` has its share already: with `more` the `held` of
/// `most` are more than half, and its own more than an equal part.
#[must_use]
pub fn is_beyond_share<K: Ord>(
    shares: &BTreeMap<K, usize>,
    client: &K,
    more: usize,
    (held, most): (usize, usize),
) -> bool {
    let own = shares.get(client).copied().unwrap_or(0);
    own > 0 && 2 * (held + more) > most && (own + more) * shares.len() > most
}

/// Returns `true` if `client` has to leave the last eighth of `most` places for those that hold
/// none yet: with another beside them all, it has its share.
#[must_use]
pub fn must_leave_room<K: Ord>(
    shares: &BTreeMap<K, usize>,
    client: &K,
    (held, most): (usize, usize),
) -> bool {
    let own = shares.get(client).copied().unwrap_or(0);
    own > 0 && held >= most - most / 8 && (own + 1) * (shares.len() + 1) > most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(shares: &[(u8, usize)], number: u8) -> bool {
        let shares: BTreeMap<u8, usize> = shares.iter().copied().collect();
        let held = BTreeMap::values(&shares).sum();
        let room = (held, 1_024);
        is_beyond_share(&shares, &number, 1, room) || must_leave_room(&shares, &number, room)
    }

    #[test]
    fn one_client_alone_leaves_an_eighth() {
        assert!(!refused(&[(1, 895)], 1));
        assert!(refused(&[(1, 896)], 1));
        assert!(!refused(&[(1, 896)], 2), "whoever has nothing is let in");
        assert!(!refused(&[(1, 896), (2, 100)], 3));
    }

    #[test]
    fn from_half_on_several_have_equal_shares() {
        assert!(!refused(&[(1, 500), (2, 10)], 1));
        assert!(refused(&[(1, 512), (2, 10)], 1), "half of two");
        assert!(!refused(&[(1, 512), (2, 10)], 2));
        assert!(refused(&[(1, 300), (2, 300), (3, 200), (4, 1)], 1), "a quarter of four");
        assert!(!refused(&[(1, 300), (2, 300), (3, 200), (4, 1)], 3));
    }

    /// Equal parts are counted with one for a client that is not there yet.
    #[test]
    fn a_client_with_its_part_and_no_more_is_let_into_the_last_eighth() {
        let others = [(2, 400), (3, 400)];
        let with = |own| [&[(1, own)][..], &others].concat();
        assert!(!refused(&with(255), 1), "a quarter of four");
        assert!(refused(&with(256), 1), "more than that");
        let full: BTreeMap<u16, usize> = (0..1_024).map(|client| (client, 1)).collect();
        assert!(!must_leave_room(&full, &2_000, (1_024, 1_024)), "it holds nothing to leave");
        assert!(must_leave_room(&full, &0, (1_024, 1_024)));
    }

    #[test]
    fn every_reason_has_its_place() {
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, place);
            let mut counts = RefusalCounts::default();
            counts.count(refusal);
            assert_eq!(counts.iter().find(|(_, count)| *count == 1).map(|it| it.0), Some(refusal));
        }
    }
}
