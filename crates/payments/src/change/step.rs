//! Steps that are ordered at the end of an epoch, and their checks.

use super::locks::{chunks_of, root_of};
use crate::{Network, NetworkError, NetworkFile};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest, IdentityKey, IdentitySecret, Signature};
use quorate_types::{Committee, Epoch, Kind, ReplicaId, sign};
use std::collections::{BTreeMap, BTreeSet};

/// Step of a change: an operation of the committee's order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ChangeStep {
    /// End the epoch; the next is that of this file.
    Change(Box<Change>),
    /// Say what an authority locked in the epoch that ended.
    Closing(Closing),
    /// Say that an authority votes in the epoch that began.
    Entered(Entered),
}

/// The network file of the next epoch, with the consent of both epochs' authorities.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Change {
    /// File of the next epoch.
    pub next: NetworkFile,
    /// Signatures over it, by identity key: of a quorum of the present authorities, of a quorum of
    /// the next ones, and of every newcomer.
    pub signatures: BTreeMap<IdentityKey, Signature>,
}

/// An authority's word on everything that one of its shards locked in the epoch that ended (★:
/// nothing new is voted for after it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Closing {
    /// Index of the authority in the epoch that ended.
    pub authority: ReplicaId,
    /// Shard whose locks they are.
    pub shard: u16,
    /// Digest of the file that the epoch ended for.
    pub next: Digest,
    /// Number of locked inputs.
    pub count: u64,
    /// Root over the chunks of them.
    pub root: Digest,
    /// The authority's signature, under its identity key.
    pub signature: Signature,
}

/// An authority's word that one of its shards votes in the epoch that began: whoever leaves may
/// stop once a quorum says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Entered {
    /// Index of the authority in the epoch that began.
    pub authority: ReplicaId,
    /// Index of the shard, below the number that the network has.
    pub shard: u16,
    /// The authority's signature, under its identity key.
    pub signature: Signature,
}

/// Rule that a change, or a step of one, breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A file of another network, or not of the epoch after the present one.
    #[error("the network file is of epoch {found}, or of another network: the next is {expected}")]
    NotNext {
        /// Epoch of the file.
        found: Epoch,
        /// Epoch after the present one.
        expected: Epoch,
    },
    /// A file that is refused by itself.
    #[error(transparent)]
    File(#[from] NetworkError),
    /// A file that changes more than the authorities.
    #[error("a change keeps the network's name, issuer, shards and genesis as they are")]
    OtherMoney,
    /// Too few signatures of the present authorities.
    #[error("the change is signed by {found} of the present authorities' weight; it takes {least}")]
    TooFew {
        /// Weight of those who signed.
        found: u64,
        /// Weight of a quorum.
        least: u64,
    },
    /// Too few of the next authorities are ready, or a newcomer is not.
    #[error(
        "the change is signed by {found} of the next authorities' weight; it takes {least}, and \
         every newcomer"
    )]
    NotReady {
        /// Weight of those who signed.
        found: u64,
        /// Weight of a quorum.
        least: u64,
    },
    /// Signatures of keys that have no say: they would be kept with the change for ever.
    #[error("the change has signatures of keys that are no authority's of either epoch")]
    Strangers,
    /// A report that its authority did not sign, or of a shard that there is not.
    #[error("the closing report is not signed by an authority of this epoch, or not of its shards")]
    Reporter,
    /// Word of an authority that it did not sign, or of a shard that there is not.
    #[error("that a shard votes in the epoch is not signed by an authority of it")]
    Entrant,
    /// A report, or a beginning, of an epoch that goes on.
    #[error("no change of the authorities was ordered")]
    NotEnded,
}

impl Change {
    /// A change to a file, signed by nobody yet.
    #[must_use]
    pub fn draft(next: NetworkFile) -> Self {
        Self { next, signatures: BTreeMap::new() }
    }

    /// Returns `true` if this key's signature is among them, and good.
    #[must_use]
    pub fn is_signed_by(&self, present: &Network, key: &IdentityKey) -> bool {
        let statement = present.change_statement(self.next.digest());
        self.signatures.get(key).is_some_and(|one| key.verify(&statement, one).is_ok())
    }

    /// Adds the signature of an authority of the epoch `present`, or of the next one.
    pub fn sign(&mut self, present: &Network, secret: &IdentitySecret) {
        let statement = present.change_statement(self.next.digest());
        self.signatures.insert(secret.public(), secret.sign(&statement));
    }

    /// Checks that a quorum of the present authorities agreed (★). Returns the present authorities
    /// who did.
    pub(crate) fn check_present(
        &self,
        present: &Network,
    ) -> Result<BTreeSet<IdentityKey>, ChangeError> {
        let statement = present.change_statement(self.next.digest());
        let is_present = |key: &IdentityKey| present.committee().find(key).is_some();
        let good = self.good(&statement, is_present);
        let (found, least) = (signed(present.committee(), &good), present.committee().quorum());
        if found < least && !mutants::active(Mutant::PayChangeByAnybody) {
            return Err(ChangeError::TooFew { found, least });
        }
        Ok(good)
    }

    /// Checks that a quorum of the next authorities agreed too, and every newcomer (★).
    pub(crate) fn check_next(
        &self,
        present: &Network,
        next: &Network,
        mut good: BTreeSet<IdentityKey>,
    ) -> Result<(), ChangeError> {
        let is_of = |network: &Network, key: &IdentityKey| network.committee().find(key).is_some();
        let mut signers = self.signatures.keys();
        if signers.any(|key| !is_of(present, key) && !is_of(next, key)) {
            return Err(ChangeError::Strangers);
        }
        let statement = present.change_statement(self.next.digest());
        let is_new = |key: &IdentityKey| !is_of(present, key) && is_of(next, key);
        let newcomers = self.good(&statement, is_new);
        let committee = next.committee();
        let keys = committee.members().filter_map(|one| committee.identity(one));
        let are_all_ready = keys.filter(|key| is_new(key)).all(|key| newcomers.contains(key));
        good.extend(newcomers);
        let (found, least) = (signed(committee, &good), committee.quorum());
        let is_ready = found >= least && are_all_ready;
        if !is_ready && !mutants::active(Mutant::PayChangeUnready) {
            return Err(ChangeError::NotReady { found, least });
        }
        Ok(())
    }

    /// Keys among these whose signature is there, and good.
    fn good(
        &self,
        statement: &[u8],
        is_asked: impl Fn(&IdentityKey) -> bool,
    ) -> BTreeSet<IdentityKey> {
        let signatures = self.signatures.iter().filter(|(key, _)| is_asked(key));
        let good = signatures.filter(|(key, one)| key.verify(statement, one).is_ok());
        good.map(|(key, _)| *key).collect()
    }
}

/// Weight of a committee's members among these keys.
fn signed(committee: &Committee, keys: &BTreeSet<IdentityKey>) -> u64 {
    let members = keys.iter().filter_map(|key| committee.find(key)).map(ReplicaId::index);
    committee.weight_of(&Bitmap::from_indices(committee.size(), members))
}

impl Closing {
    /// Signs the report of a shard whose locks' chunks have these leaves.
    #[must_use]
    pub fn sign(
        network: &Network,
        secret: &IdentitySecret,
        (authority, shard): (ReplicaId, u16),
        next: Digest,
        (count, leaves): (u64, &[Digest]),
    ) -> Self {
        let (root, signature) = (root_of(leaves), Signature([0; 64]));
        let mut closing = Self { authority, shard, next, count, root, signature };
        closing.signature = secret.sign(&closing.statement(network));
        closing
    }

    /// Returns `true` if these are the leaves of the chunks that it reports (★).
    #[must_use]
    pub fn has_leaves(&self, leaves: &[Digest]) -> bool {
        leaves.len() as u64 == chunks_of(self.count) && root_of(leaves) == self.root
    }

    /// Checks that the authority signed it, of the epoch of `network` (★).
    ///
    /// # Errors
    /// [`ChangeError::Reporter`].
    pub fn check(&self, network: &Network) -> Result<(), ChangeError> {
        let key = network.committee().identity(self.authority).ok_or(ChangeError::Reporter)?;
        let is_signed = key.verify(&self.statement(network), &self.signature).is_ok()
            || mutants::active(Mutant::PayCloseForAnybody);
        let is_sound = is_signed && self.shard < network.shards();
        if is_sound { Ok(()) } else { Err(ChangeError::Reporter) }
    }

    fn statement(&self, network: &Network) -> Vec<u8> {
        let Self { authority, shard, next, count, root, signature: _ } = self;
        let payload = (authority, shard, next, count, root);
        sign::statement(Kind::TxClosing, network.scope(), &payload)
    }
}

impl Entered {
    /// Signs that a shard votes in the epoch of `network`.
    #[must_use]
    pub fn sign(network: &Network, secret: &IdentitySecret, place: (ReplicaId, u16)) -> Self {
        let (authority, shard) = place;
        let signature = secret.sign(&Self::statement(network, place));
        Self { authority, shard, signature }
    }

    fn check(&self, network: &Network) -> Result<(), ChangeError> {
        let key = network.committee().identity(self.authority).ok_or(ChangeError::Entrant)?;
        let statement = Self::statement(network, (self.authority, self.shard));
        let is_signed = key.verify(&statement, &self.signature).is_ok()
            || mutants::active(Mutant::PayEnterForAnybody);
        let is_sound = is_signed && self.shard < network.shards();
        if is_sound { Ok(()) } else { Err(ChangeError::Entrant) }
    }

    fn statement(network: &Network, place: (ReplicaId, u16)) -> Vec<u8> {
        sign::statement(Kind::TxEntered, network.scope(), &place)
    }
}

impl ChangeStep {
    /// Checks every rule that needs no order (★). `present` is the network of the epoch in force,
    /// `ended` that of the one before it.
    ///
    /// # Errors
    /// The first rule that the step breaks.
    pub fn check(&self, present: &Network, ended: Option<&Network>) -> Result<(), ChangeError> {
        let ended = || ended.ok_or(ChangeError::NotEnded);
        match self {
            Self::Change(change) => present.succeed(change).map(drop),
            Self::Closing(closing) => closing.check(ended()?),
            Self::Entered(entered) => ended().and_then(|_| entered.check(present)),
        }
    }
}
