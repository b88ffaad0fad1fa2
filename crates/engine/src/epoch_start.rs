//! The beginning of an epoch: what the hand-over before it gives its replicas, and what of an
//! earlier run is none of its own.
//!
//! ★ Records and heights of epochs before are nothing that an epoch's protocol may act on: its
//! machine begins behind the last height of the epoch before, as if that were decided and stable.
//! What is of no epoch that is known stays, and the protocol stops at it.

use bytes::Bytes;
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::machine::Recovery;
use quorate_types::{
    Anchor, Committee, Epoch, EpochId, HandOver, HandedOver, Header, Height, NetworkId, ReplicaId,
    SignedHandOver,
};
use std::collections::{BTreeMap, BTreeSet};

/// How an epoch began; [`EpochStart::default`] is the beginning of a network's first, where it does
/// not go on from another one's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochStart {
    /// Header of the last height of the epoch before, or of the state that the network was founded
    /// on; zero before a network's first epoch otherwise.
    header: Header,
    /// Ids of the epochs before, all of them.
    before: BTreeSet<EpochId>,
    ended: EndedCommittee,
}

/// Weights in the epoch before, by identity, and the weight that includes an honest member of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct EndedCommittee {
    weights: BTreeMap<IdentityKey, u64>,
    weak: u64,
}

impl EpochStart {
    /// The beginning of the epoch after the last of these hand-overs of a network, which were
    /// checked from its genesis on.
    #[must_use]
    pub fn after(network: NetworkId, steps: &[HandedOver]) -> Self {
        let Some(last) = steps.last() else { return Self::default() };
        let genesis = HandOver::of_genesis(network);
        let begun = |(content, step): (&HandOver, &HandedOver)| {
            let ended = Epoch(step.file.epoch.0.saturating_sub(1));
            content.begins(network, ended)
        };
        let contents = std::iter::once(&genesis).chain(steps.iter().map(|s| &s.signed.content));
        let before = contents.zip(steps).map(begun).collect();
        Self { header: last.header, before, ended: EndedCommittee::default() }
    }

    /// The beginning of a network that goes on from another one's state, whose last header this is.
    #[must_use]
    pub fn from_state(header: Header) -> Self {
        Self { header, ..Self::default() }
    }

    /// With the committee whose epoch ended: who had a voice there has one about its last state.
    #[must_use]
    pub fn of(mut self, ended: &Committee) -> Self {
        let weight = |member| Some((*ended.identity(member)?, ended.weights().of(member.index())));
        let weights = ended.members().filter_map(weight).collect();
        self.ended = EndedCommittee { weights, weak: ended.weak() };
        self
    }

    /// Returns `true` if so many of these members of `committee` were members of the epoch before
    /// that an honest one of those is among them. All that a quorum handed over with have executed
    /// its last height; by the weights of this epoch they may be too few to vouch for anything.
    pub(crate) fn includes_honest_of_ended<'a>(
        &self,
        committee: &Committee,
        members: impl IntoIterator<Item = &'a ReplicaId>,
    ) -> bool {
        let EndedCommittee { weights, weak } = &self.ended;
        let keys = members.into_iter().filter_map(|member| committee.identity(*member));
        let weight: u64 = keys.filter_map(|key| weights.get(key)).sum();
        !weights.is_empty() && weight >= *weak
    }

    /// Where the epoch's machines begin.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        let Header { height, proposed_at_ms, .. } = self.header;
        Anchor { height, proposed_at_ms }
    }

    /// The last height that is of an epoch before.
    #[must_use]
    pub fn height(&self) -> Height {
        self.header.height
    }

    /// Header of that height.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// ★ Returns `true` if a state of this header is the one that was handed over.
    #[must_use]
    pub(crate) fn is_handed_over(&self, header: &Header) -> bool {
        let is_it = if mutants::active(Mutant::FormerStateUnproven) {
            header.height == self.height()
        } else {
            *header == self.header
        };
        self.follows() && is_it
    }

    /// Returns `true` if an epoch came before, or a network whose state this one began with.
    #[must_use]
    pub fn follows(&self) -> bool {
        !self.before.is_empty() || self.height() > Height(0)
    }

    /// ★ What survived, without what is of epochs before.
    #[must_use]
    pub fn own_part(&self, mut recovery: Recovery) -> Recovery {
        if mutants::active(Mutant::RecoverFormerEpoch) {
            return recovery;
        }
        let is_own = |record: &Bytes| !self.is_before(record);
        recovery.safety = recovery.safety.filter(is_own);
        recovery.slots.retain(is_own);
        recovery.hand_over = recovery.hand_over.filter(|record| !self.is_known(record));
        recovery.decided.retain(|record| record.height > self.height());
        if let Some(executed) = &mut recovery.executed {
            if executed.header.height <= self.height() {
                executed.decided = Bytes::new();
            }
            executed.recent.retain(|record| record.height > self.height());
        }
        recovery
    }

    /// Returns `true` if a record of promises names an epoch before: each begins with its epoch.
    fn is_before(&self, record: &[u8]) -> bool {
        let named = record.first_chunk().copied().map(EpochId);
        named.is_some_and(|epoch| self.before.contains(&epoch))
    }

    /// Returns `true` if a record is of the hand-over that this epoch, or one before, began with.
    fn is_known(&self, record: &[u8]) -> bool {
        let signed = borsh::from_slice::<SignedHandOver>(record);
        signed.is_ok_and(|signed| signed.content.height <= self.height() && self.follows())
    }
}
