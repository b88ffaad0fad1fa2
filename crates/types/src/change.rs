//! A change of epoch: the next committee file, who approved it and who accepted its place in it.
//!
//! A change is approved by identity signatures of members that weigh a quorum (★), and accepted by
//! every newcomer and a quorum of the next committee (★): an epoch that cannot form would be the
//! end of the service. Anybody may bring it; the first that is ordered takes effect.
//!
//! Its content identifies it, never its signatures: two of one digest change the same.

use crate::committee::{Committee, CommitteeError, CommitteeFile, Purpose};
use crate::{Epoch, HandOver, Height, Kind, NetworkId, ReplicaId, bounded, sign};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    Bitmap, Digest, IdentitySecret, KeyCache, Share, Sharing, Signature, VotingSecret, hash_parts,
};

/// What is to change, and when.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Change {
    /// Network whose committee changes.
    pub network: NetworkId,
    /// Number of the epoch that the change ends.
    pub epoch: Epoch,
    /// The committee file of the next one.
    pub file: CommitteeFile,
    /// The lowest height that may order the change.
    pub not_before: Height,
    /// The highest height that may.
    pub expires: Height,
}

/// Consent of a member of the epoch that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Approval {
    /// Index of the member in that epoch.
    pub member: ReplicaId,
    /// Signature of its identity over [`Change::approval_statement`].
    pub signature: Signature,
}

/// Readiness of a member of the next epoch.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Acceptance {
    /// Index of the member in the next epoch.
    pub member: ReplicaId,
    /// Height that its state had come to.
    pub executed: Height,
    /// Signature of its identity over [`Change::acceptance_statement`].
    pub identity: Signature,
    /// Share of its voting key over the same.
    pub voting: Share,
}

/// A change with the signatures that make it valid.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedChange {
    /// What is to change.
    pub change: Change,
    /// Consent of members of the epoch that ends, each once.
    pub approvals: Vec<Approval>,
    /// Readiness of members of the next one, each once.
    pub acceptances: Vec<Acceptance>,
}

/// Rule that a change breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Bytes that encode no change.
    #[error("these {0} bytes are no change of a committee, which has {max} at most", max = SignedChange::BYTES_MAX)]
    Malformed(usize),
    /// The next file does not follow the one in force, or is none.
    #[error("the next committee file: {0}")]
    File(#[from] CommitteeError),
    /// Former holders of shares would sign for the next epoch.
    #[error(
        "the next committee file: its {0} group's key is one of the committee's whose epoch ends, and \
         the shares of that were held otherwise, so that former holders could sign for the next epoch: \
         its members generate keys of their own (`quorate keys dkg --next`)"
    )]
    GroupKept(Sharing),
    /// Members could not run under the settings of the next file.
    #[error("the next committee file: {0}")]
    Settings(String),
    /// The change is of another network.
    #[error("the change is of network {found}, and this is {expected}")]
    OtherNetwork {
        /// Network that the change names.
        found: NetworkId,
        /// Network that was asked.
        expected: NetworkId,
    },
    /// The change ends an epoch that is not in force.
    #[error("the change ends epoch {found}, and {expected} is in force")]
    OtherEpoch {
        /// Epoch that the change names.
        found: Epoch,
        /// Number of the epoch of the committee that was asked.
        expected: Epoch,
    },
    /// No height may order it.
    #[error("the change may be ordered from {not_before} on and expires at {expires}: never")]
    Never {
        /// The lowest height that the change allows.
        not_before: Height,
        /// The highest height that it allows.
        expires: Height,
    },
    /// It is not time yet.
    #[error("the change may be ordered from {0} on")]
    Early(Height),
    /// Its time is over.
    #[error("the change expired at {0}")]
    Expired(Height),
    /// A signature of nobody, a second one of a member, or a wrong one.
    #[error("the {what} of {member} {fault}")]
    Signature {
        /// Kind of signature: approval or acceptance.
        what: &'static str,
        /// Index that it names.
        member: ReplicaId,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Too few approved or accepted.
    #[error("the {what}s weigh {found}; {needed} are needed")]
    TooFew {
        /// Kind of signatures that are too few.
        what: &'static str,
        /// Weight of those that signed.
        found: u64,
        /// Weight of a quorum.
        needed: u64,
    },
    /// A newcomer that accepted nothing.
    #[error("{0} is new in the next committee and has not accepted its place")]
    NewcomerSilent(ReplicaId),
    /// A member that accepted its place without the state for it.
    #[error(
        "{member} accepted its place with the state at {executed}, more than {behind} heights before \
         the change may be ordered: it accepts again once it has caught up",
        behind = Change::BEHIND_MAX
    )]
    FarBehind {
        /// Index of the member in the next epoch.
        member: ReplicaId,
        /// Height that its state had come to.
        executed: Height,
    },
}

impl Change {
    /// Most heights that the state of a member that accepts its place lies below
    /// [`Change::not_before`]: what is near enough that it is there when the epoch begins.
    pub const BEHIND_MAX: u64 = 10_000;

    /// Hash that names the change: approvals and acceptances sign it, and a stop block names it.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let Self { network, epoch, file, not_before, expires } = self;
        let content = borsh::to_vec(&(network, epoch, file.digest(), not_before, expires));
        hash_parts("quorate v1 change", &[&content.expect("encoding into memory cannot fail")])
    }

    /// The bytes that approvals sign; `ends` is the committee whose epoch it ends.
    #[must_use]
    pub fn approval_statement(&self, ends: &Committee) -> Vec<u8> {
        sign::statement(Kind::Change, ends.scope(), &self.digest())
    }

    /// Consent of this member of the epoch that ends.
    #[must_use]
    pub fn approve(
        &self,
        ends: &Committee,
        member: ReplicaId,
        identity: &IdentitySecret,
    ) -> Approval {
        let signature = identity.sign(&self.approval_statement(ends));
        Approval { member, signature }
    }

    /// The bytes by which this member of the next committee accepts its place, with the state at
    /// this height and everything installed that the file asks for.
    #[must_use]
    pub fn acceptance_statement(
        &self,
        ends: &Committee,
        member: ReplicaId,
        executed: Height,
    ) -> Vec<u8> {
        sign::statement(Kind::Acceptance, ends.scope(), &(self.digest(), member, executed))
    }

    /// Readiness of a member of the next epoch, whose committee [`Change::check`] gives, with both
    /// keys that it will use. `executed` is the height that its state has come to.
    #[must_use]
    pub fn accept(
        &self,
        (ends, next): (&Committee, &Committee),
        (member, executed): (ReplicaId, Height),
        (identity, voting): (&IdentitySecret, &VotingSecret),
    ) -> Acceptance {
        let statement = self.acceptance_statement(ends, member, executed);
        let voting = next.sign(Purpose::Checkpoint, voting, &statement);
        Acceptance { member, executed, identity: identity.sign(&statement), voting }
    }

    /// Checks what can be checked without signatures: the epoch that it ends, and that the next
    /// one's file follows, is sound, and shares no key with others (★). Returns the next committee
    /// as it will be but for its epoch's id, which nothing has before the epoch began.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self, ends: &Committee) -> Result<Committee, ChangeError> {
        self.check_place(ends)?;
        let begins = HandOver { file: self.file.digest(), ..HandOver::default() };
        let next = ends.load_next(&self.file, &begins, KeyCache::Off)?;
        match next.group_kept_from(ends) {
            Some(sharing) => Err(ChangeError::GroupKept(sharing)),
            None => Ok(next),
        }
    }

    /// Checks all of that which looks at no key of the next committee.
    fn check_place(&self, ends: &Committee) -> Result<(), ChangeError> {
        let (found, expected) = (self.network, ends.network());
        if found != expected {
            return Err(ChangeError::OtherNetwork { found, expected });
        }
        let (found, expected) = (self.epoch, ends.epoch());
        if found != expected {
            return Err(ChangeError::OtherEpoch { found, expected });
        }
        let Self { not_before, expires, .. } = *self;
        if not_before > expires {
            return Err(ChangeError::Never { not_before, expires });
        }
        Ok(ends.check_next(&self.file)?)
    }

    /// Checks one consent by itself, under the committee whose epoch ends.
    ///
    /// # Errors
    /// [`ChangeError::Signature`].
    pub fn check_approval(&self, ends: &Committee, approval: &Approval) -> Result<(), ChangeError> {
        verify_approval(ends, &self.approval_statement(ends), approval)
    }

    /// Checks the readiness of one member by itself: with both keys of its entry in the next
    /// committee, and with the state for it, or nearly.
    ///
    /// # Errors
    /// [`ChangeError::Signature`] and [`ChangeError::FarBehind`].
    pub fn check_acceptance(
        &self,
        (ends, next): (&Committee, &Committee),
        acceptance: &Acceptance,
    ) -> Result<(), ChangeError> {
        let Acceptance { member, executed, identity, voting } = acceptance;
        let key = next.identity(*member).ok_or_else(|| of_no_member(ACCEPTANCE, *member))?;
        self.check_near(*member, *executed)?;
        let statement = self.acceptance_statement(ends, *member, *executed);
        let (scheme, _) = next.scheme(Purpose::Checkpoint);
        let is_good = key.verify(&statement, identity).is_ok()
            && scheme.verify_share(&statement, member.index(), voting).is_ok();
        is_good.then_some(()).ok_or_else(|| wrong(ACCEPTANCE, *member))
    }

    /// ★ Who accepts its place has the state for it, or nearly.
    fn check_near(&self, member: ReplicaId, executed: Height) -> Result<(), ChangeError> {
        let behind = self.not_before.0.saturating_sub(executed.0);
        if behind > Self::BEHIND_MAX && !mutants::active(Mutant::AcceptedFarBehind) {
            return Err(ChangeError::FarBehind { member, executed });
        }
        Ok(())
    }

    /// Checks that this height may order it.
    ///
    /// # Errors
    /// [`ChangeError::Early`] and [`ChangeError::Expired`].
    pub fn check_height(&self, height: Height) -> Result<(), ChangeError> {
        if height < self.not_before {
            return Err(ChangeError::Early(self.not_before));
        }
        if height > self.expires {
            return Err(ChangeError::Expired(self.expires));
        }
        Ok(())
    }
}

const APPROVAL: &str = "approval";
const ACCEPTANCE: &str = "acceptance";

impl SignedChange {
    /// Most bytes of one: 1,024 members with the longest keys and addresses there are, and all
    /// their signatures.
    pub const BYTES_MAX: usize = 3 * 1024 * 1024;

    /// Decodes what anybody may have sent.
    ///
    /// # Errors
    /// [`ChangeError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ChangeError> {
        bounded::decode(bytes, Self::BYTES_MAX).ok_or(ChangeError::Malformed(bytes.len()))
    }

    /// Its bytes, as anybody may send them.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("encoding into memory cannot fail")
    }

    /// Checks everything but the height (★): what costs little first, so that nobody has the keys
    /// of a committee looked at that no quorum approved. Returns the next committee, as
    /// [`Change::check`] does.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self, ends: &Committee) -> Result<Committee, ChangeError> {
        self.change.check_place(ends)?;
        self.check_approvals(ends)?;
        let next = self.change.check(ends)?;
        self.check_acceptances(ends, &next)?;
        Ok(next)
    }

    fn check_approvals(&self, ends: &Committee) -> Result<(), ChangeError> {
        let approvers = signers(APPROVAL, self.approvals.iter().map(|one| one.member), ends)?;
        enough(APPROVAL, &approvers, ends, Mutant::ChangeApprovedByFew)?;
        let statement = self.change.approval_statement(ends);
        self.approvals.iter().try_for_each(|one| verify_approval(ends, &statement, one))
    }

    fn check_acceptances(&self, ends: &Committee, next: &Committee) -> Result<(), ChangeError> {
        let acceptors = signers(ACCEPTANCE, self.acceptances.iter().map(|one| one.member), next)?;
        enough(ACCEPTANCE, &acceptors, next, Mutant::ChangeAcceptedByFew)?;
        if let Some(silent) = silent_newcomer(&acceptors, ends, next) {
            return Err(ChangeError::NewcomerSilent(silent));
        }
        let committees = (ends, next);
        self.acceptances.iter().try_for_each(|one| self.change.check_acceptance(committees, one))
    }
}

fn verify_approval(
    ends: &Committee,
    statement: &[u8],
    Approval { member, signature }: &Approval,
) -> Result<(), ChangeError> {
    let key = ends.identity(*member).ok_or_else(|| of_no_member(APPROVAL, *member))?;
    key.verify(statement, signature).map_err(|_| wrong(APPROVAL, *member))
}

fn of_no_member(what: &'static str, member: ReplicaId) -> ChangeError {
    ChangeError::Signature { what, member, fault: "is of no member" }
}

fn wrong(what: &'static str, member: ReplicaId) -> ChangeError {
    ChangeError::Signature { what, member, fault: "does not verify" }
}

/// These members, each once.
fn signers(
    what: &'static str,
    members: impl Iterator<Item = ReplicaId>,
    committee: &Committee,
) -> Result<Bitmap, ChangeError> {
    let mut signers = Bitmap::new(committee.size());
    for member in members {
        if !committee.contains(member) {
            return Err(of_no_member(what, member));
        }
        if signers.contains(member.index()) {
            return Err(ChangeError::Signature { what, member, fault: "is there twice" });
        }
        signers.insert(member.index());
    }
    Ok(signers)
}

/// ★ These weigh a quorum.
fn enough(
    what: &'static str,
    signers: &Bitmap,
    committee: &Committee,
    mutant: Mutant,
) -> Result<(), ChangeError> {
    let (found, needed) = (committee.weight_of(signers), committee.quorum());
    if found < needed && !mutants::active(mutant) {
        return Err(ChangeError::TooFew { what, found, needed });
    }
    Ok(())
}

/// Members of the next committee whose identities are none of the present one's: each has to accept
/// its place.
#[must_use]
pub fn newcomers(ends: &Committee, next: &Committee) -> Vec<ReplicaId> {
    let is_new = |member: &ReplicaId| {
        next.identity(*member).is_some_and(|identity| ends.find(identity).is_none())
    };
    next.members().filter(is_new).collect()
}

/// ★ A newcomer that has not accepted.
fn silent_newcomer(acceptors: &Bitmap, ends: &Committee, next: &Committee) -> Option<ReplicaId> {
    let is_silent = |member: &ReplicaId| !acceptors.contains(member.index());
    let may_be_silent = mutants::active(Mutant::NewcomersUnasked);
    newcomers(ends, next).into_iter().find(is_silent).filter(|_| !may_be_silent)
}

#[cfg(test)]
mod tests;
