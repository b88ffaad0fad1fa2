//! Messages that were decoded, authenticated and checked, as a type: [`Verified`].
//!
//! Parsing is checking. A machine accepts only `Verified<M>`, whose one constructor runs
//! [`Verify::verify`]; there is no way to hand a machine bytes that nobody looked at.

use crate::{ClientId, ReplicaId};
use std::ops::Deref;

/// Identity at the other end of an authenticated channel. A frame may claim no other name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// A member of the committee.
    Replica(ReplicaId),
    /// A client, by its key.
    Client(ClientId),
    /// One that follows what the committee decides, by its key. It is no member, and asks alone.
    Learner(ClientId),
}

impl Peer {
    /// The member behind this peer, or the refusal that names what is wrong.
    ///
    /// # Errors
    /// [`Rejected::NotAMember`] when the peer is none.
    pub fn replica(self) -> Result<ReplicaId, Rejected> {
        match self {
            Self::Replica(id) => Ok(id),
            Self::Client(_) | Self::Learner(_) => Err(Rejected::NotAMember),
        }
    }

    /// Refuses whoever does not execute what is decided: such a peer has nothing to catch up with.
    ///
    /// # Errors
    /// [`Rejected::NotAMember`] when the peer is a client.
    pub fn follower(self) -> Result<(), Rejected> {
        match self {
            Self::Replica(_) | Self::Learner(_) => Ok(()),
            Self::Client(_) => Err(Rejected::NotAMember),
        }
    }
}

/// Reason for which a message was dropped before any machine saw it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The bytes are not the canonical encoding of any message.
    #[error("the frame does not decode: {0}")]
    Malformed(String),
    /// A client sent what only members may send.
    #[error("only members of the committee may send this message")]
    NotAMember,
    /// The message names a sender other than the channel's.
    #[error("the message names a sender other than the one that its channel proved")]
    ForeignSender,
    /// A message of another epoch.
    #[error("the message belongs to another epoch")]
    ForeignEpoch,
    /// A signature or certificate does not verify.
    #[error("{0} does not verify")]
    BadSignature(&'static str),
    /// A certificate's signers do not reach the threshold.
    #[error("the certificate's signers do not reach the quorum")]
    BelowThreshold,
    /// A rule of the protocol is broken by the message alone.
    #[error("the message breaks a rule: {0}")]
    RuleBroken(&'static str),
    /// Too old to matter; not a fault.
    #[error("the message is behind this replica's horizon")]
    Stale,
    /// Too far ahead to be looked at; not a fault.
    #[error("the message is beyond this replica's horizon")]
    TooFarAhead,
    /// A frame that nobody sends whose settings are the receiver's.
    #[error("the setting '{setting}' rules {frame} frames out: every member must say the same")]
    RuledOut {
        /// Name of the frame's tag.
        frame: String,
        /// Setting of the receiver that rules it out.
        setting: &'static str,
    },
    /// A part over the limit of its type.
    #[error("{0} exceeds its limit")]
    TooLarge(&'static str),
}

impl Rejected {
    /// Returns `true` if an honest sender could have sent this: late or early, but not wrong.
    #[must_use]
    pub fn is_innocent(&self) -> bool {
        matches!(self, Self::Stale | Self::TooFarAhead)
    }

    /// Returns `true` if no correct peer sends this whose keys and way of signing proposals are
    /// those of its committee file.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        !self.is_innocent() && !matches!(self, Self::RuledOut { .. } | Self::ForeignEpoch)
    }
}

/// Conversion of raw bytes into a message that may be trusted as far as its type says.
pub trait Verify: Sized {
    /// Form in which it arrives.
    type Raw;
    /// Context of the checks: committee, schemes, caches.
    type Verifier;

    /// Decodes and checks. Pure but for the verifier's caches; runs on a pool in a node.
    ///
    /// # Errors
    /// The first rule that the message breaks.
    fn verify(raw: Self::Raw, from: Peer, verifier: &Self::Verifier) -> Result<Self, Rejected>;
}

/// A message that passed [`Verify::verify`].
#[derive(Clone, Debug)]
pub struct Verified<M>(M);

impl<M: Verify> Verified<M> {
    /// The one constructor.
    ///
    /// # Errors
    /// The first rule that the message breaks.
    pub fn check(raw: M::Raw, from: Peer, verifier: &M::Verifier) -> Result<Self, Rejected> {
        M::verify(raw, from, verifier).map(Self)
    }

    /// Gives the checked message up as its plain type.
    pub fn into_inner(self) -> M {
        self.0
    }
}

impl<M> Deref for Verified<M> {
    type Target = M;
    fn deref(&self) -> &M {
        &self.0
    }
}
