//! One step from an epoch to the next, as it is kept, shown to whoever was away, and verified.

use crate::halt::Halt;
use crate::{
    Anchor, Committee, CommitteeError, CommitteeFile, Epoch, Header, Rejected, SignedHandOver,
    TrustingPeriod, bounded,
};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, KeyCache};

/// All that the next epoch begins with beside the state. It verifies under the committee before it,
/// so that a list of them leads from a network's genesis file to the committee of today without
/// trusting whoever shows it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HandedOver {
    /// What a quorum of the epoch that ended signed.
    pub signed: SignedHandOver,
    /// Header of the last height, whose hash is the root that is handed over: it has the time at
    /// which the next epoch's clock begins.
    pub header: Header,
    /// Committee file of the next epoch, whose digest the hand-over names.
    pub file: CommitteeFile,
}

/// Reason for which a step to a next epoch is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandedOverError {
    /// Bytes that encode none.
    #[error("these {0} bytes are no hand-over, which has {max} at most", max = HandedOver::BYTES_MAX)]
    Malformed(usize),
    /// Not signed by a quorum of the epoch that ended.
    #[error("the hand-over of epoch {epoch}: {reason}")]
    Signatures {
        /// Number of the epoch that was to end so.
        epoch: Epoch,
        /// What is wrong with its certificate.
        reason: Rejected,
    },
    /// A header of another height or state than the one handed over.
    #[error("the header beside the hand-over of epoch {0} is not of the state that is handed over")]
    OtherHeader(Epoch),
    /// The next file is not the one handed over, does not follow, or is none.
    #[error("the committee file after epoch {epoch}: {reason}")]
    File {
        /// Number of the epoch before the file's.
        epoch: Epoch,
        /// What is wrong with it.
        reason: CommitteeError,
    },
    /// Another way into an epoch than the one that is known.
    #[error("a hand-over to epoch {0} is not the one that is known here: it is of another history")]
    OtherEnd(Epoch),
    /// A sound one, by members whose keys are not trusted any more.
    #[error(
        "what is known here of epoch {epoch} is {age_days} days old, and its members are trusted for \
         {period_days} days: they may have lost their keys since, and whoever has these can show \
         another history. Take the hand-overs since from somebody you trust"
    )]
    TooOld {
        /// Number of the epoch that was to end so.
        epoch: Epoch,
        /// Time since the epoch was in force for certain.
        age_days: u64,
        /// The network's trusting period.
        period_days: u64,
    },
}

impl HandedOver {
    /// Most bytes of one: a file of 1,024 members with the longest keys and addresses there are,
    /// and a signature of each over its beginning.
    pub const BYTES_MAX: usize = 3 * 1024 * 1024;

    /// Decodes what anybody may have sent or written.
    ///
    /// # Errors
    /// [`HandedOverError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, HandedOverError> {
        let decoded = bounded::decode(bytes, Self::BYTES_MAX);
        decoded.ok_or(HandedOverError::Malformed(bytes.len()))
    }

    /// Its bytes, in a file and on the wire.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("encoding into memory cannot fail")
    }

    /// Checks it against the committee whose epoch it ends (★), and returns the next one.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self, ended: &Committee, cache: KeyCache) -> Result<Committee, HandedOverError> {
        let epoch = ended.epoch();
        let content = &self.signed.content;
        self.signed.check(ended).map_err(|reason| HandedOverError::Signatures { epoch, reason })?;
        let is_its = self.header.height == content.height && self.header.root() == content.root;
        if !is_its && !mutants::active(Mutant::HandOverOtherHeader) {
            return Err(HandedOverError::OtherHeader(epoch));
        }
        let next = ended.load_next(&self.file, content, cache);
        next.map_err(|reason| HandedOverError::File { epoch, reason })
    }

    /// ★ Checks that members of the epoch that it ends are trusted still by whoever knew the epoch
    /// in force at `known_ms` last; `None` where somebody vouches for its committee just now.
    ///
    /// # Errors
    /// [`HandedOverError::TooOld`].
    pub fn check_age(
        &self,
        ended: &Committee,
        known_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<(), HandedOverError> {
        let period = ended.trusting_period();
        let known_ms = known_ms.unwrap_or(now_ms);
        let in_force_ms = TrustingPeriod::in_force_ms(known_ms, self.header.proposed_at_ms);
        if period.covers(in_force_ms, now_ms) {
            return Ok(());
        }
        let age_days = TrustingPeriod::days_between(in_force_ms, now_ms);
        Err(HandedOverError::TooOld { epoch: ended.epoch(), age_days, period_days: period.days })
    }

    /// ★ What a host halts over that finds two ends of one epoch, both checked: more members than
    /// the committee tolerates signed both. `None` if they say the same, whoever signed them.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> Option<Halt> {
        let (first, second) = (&self.signed, &other.signed);
        let differ = first.content != second.content && !mutants::active(Mutant::EndsDiffer);
        differ.then(|| Halt::ConflictingHandOvers {
            height: first.content.height,
            evidence: format!("{first:?} and {second:?}"),
        })
    }

    /// Where the next epoch's machines begin.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        let Header { height, proposed_at_ms, .. } = self.header;
        Anchor { height, proposed_at_ms }
    }

    /// Root of the state that the next epoch begins with.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.signed.content.root
    }
}

#[cfg(test)]
mod tests;
