//! The committee: who votes, with which keys, and what a quorum of them is.

use crate::{
    AgreedSettings, Epoch, EpochId, FromState, HandOver, NetworkId, ReplicaId, Scope,
    TrustingPeriod, Weights, WeightsError,
};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    Bitmap, BySharing, Certificate, Dealing, Digest, IdentityKey, KeyCache, KeyError,
    PossessionProof, PublicKeys, Scheme, SchemeKind, Share, Sharing, VotingKey, VotingSecret,
    committee_scheme, deal, hash_parts, threshold_schemes,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Use of a voting key. Multi-signatures map every purpose to one key; threshold keys map them to
/// independent sharings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Votes and timeouts of the chained protocols: a quorum.
    Vote,
    /// A vote that decides at once: of all but the redundant members.
    Fast,
    /// The root of an executed height: enough to include an honest member.
    Execute,
    /// The state that replaces everything before it: a quorum has it.
    Checkpoint,
    /// The state that the next epoch begins with: a quorum has it, and has ended.
    HandOver,
}

impl Purpose {
    /// The weight that a certificate of this purpose needs.
    #[must_use]
    pub fn threshold(self, weights: &Weights) -> u64 {
        match self {
            Self::Vote | Self::Checkpoint | Self::HandOver => weights.quorum(),
            Self::Fast => weights.fast(),
            Self::Execute => weights.weak(),
        }
    }

    /// The sharing whose threshold is this purpose's.
    #[must_use]
    pub fn sharing(self) -> Sharing {
        match self {
            Self::Vote | Self::Checkpoint | Self::HandOver => Sharing::Slow,
            Self::Fast => Sharing::Fast,
            Self::Execute => Sharing::Execution,
        }
    }
}

/// One member, as the committee file states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Ed25519 identity key, 64 hex digits: proves its channels, signs proposals and replies.
    pub identity: String,
    /// Proof that the member holds the identity's secret, 128 hex digits. It gives the network no
    /// identity: adding one to an older file changes nothing that was signed.
    #[serde(default)]
    pub identity_proof: String,
    /// Voting key in hex; its length follows from the scheme.
    pub voting: String,
    /// Proof that the member holds the voting key's secret, in hex; empty for Ed25519.
    #[serde(default)]
    pub possession: String,
    /// Address at which its peers and clients reach it: `host:port`.
    pub address: String,
    /// Voting weight, 1 if absent. What it means for thresholds and turns: [`Weights`].
    #[serde(default = "one")]
    pub weight: u64,
}

fn one() -> u64 {
    1
}

impl Member {
    /// Entry of a member of weight 1, by its public keys.
    #[must_use]
    pub fn new(keys: &PublicKeys, address: String) -> Self {
        Self {
            identity: keys.identity.to_string(),
            identity_proof: keys.identity_proof.to_string(),
            voting: keys.voting.to_string(),
            possession: keys.possession.to_string(),
            address,
            weight: 1,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The keys that certificates of a committee with threshold keys are checked with, as its dealer or
/// its members made them: 192 hex digits each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// Key of all but the redundant members (paper 002: σ).
    pub fast: String,
    /// Key of a quorum of the members (τ).
    pub slow: String,
    /// Key of enough members to include an honest one (π).
    pub execution: String,
}

/// The committee file: the same bytes for every member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitteeFile {
    /// A name for people; part of the network's identity.
    pub name: String,
    /// Network that the file goes on. Absent in the file that founds one, whose own hash is the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkId>,
    /// The epoch in which this file is in force.
    pub epoch: Epoch,
    /// The voting scheme: `ed25519`, `bls` or `bls-threshold`.
    pub scheme: String,
    /// Number of members more than faults alone ask for (paper 002: `c`); 0 if absent. Of use to a
    /// protocol with a fast path, which then goes on while so many are slow or dead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redundancy: u64,
    /// The settings that members must have alike, at their defaults where they are left out.
    #[serde(default)]
    pub settings: AgreedSettings,
    /// The groups' keys of a committee with threshold keys, and of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    /// State of another network that this one begins with; in a file that founds a network, and in
    /// no other. So it is in no hand-over, and not in the encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[borsh(skip)]
    pub from_state: Option<FromState>,
    /// The members in index order.
    pub members: Vec<Member>,
}

/// Reason for which a committee file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitteeError {
    /// No members, or more than an index can name.
    #[error("a committee has 1 to {max} members, this one has {0}", max = Committee::MEMBERS_MAX)]
    Size(usize),
    /// A key that is not hex of the right length, or otherwise unusable.
    #[error("member {member}: {reason}")]
    Member {
        /// Index of the member in the file.
        member: usize,
        /// Reason for which its entry is refused.
        reason: String,
    },
    /// Two members with one key.
    #[error("members {0} and {1} have the same identity key")]
    SameIdentity(usize, usize),
    /// A voting key that is some member's identity key too.
    #[error(
        "member {voting}'s voting key is member {identity}'s identity key: each key has one use, and \
         its owner makes new ones with `quorate keys generate`"
    )]
    IdentityVotes {
        /// Index of the member whose identity key it is.
        identity: usize,
        /// Index of the member whose voting key it is.
        voting: usize,
    },
    /// Weights that make no committee.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A scheme that has no such name.
    #[error("the voting scheme '{0}' is unknown: use 'ed25519', 'bls' or 'bls-threshold'")]
    Scheme(String),
    /// Members of different weights, of whom threshold keys count heads.
    #[error("threshold keys count members, not weights: give all members the same weight")]
    Unweighted,
    /// Groups' keys where there are none, or none where there are some.
    #[error("{0}")]
    Groups(&'static str),
    /// A group's key that is not hexadecimal.
    #[error("the {0} group's key is not hexadecimal: {1}")]
    Group(Sharing, String),
    /// The voting keys together are unusable.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// A file of a later epoch in the place of the one that founds its network.
    #[error(
        "the committee file is of epoch {0} of a network that an earlier file founded: begin with \
         that one, and with the hand-overs since"
    )]
    NotGenesis(Epoch),
    /// A file that founds a network in the place of a later one.
    #[error(
        "the committee file names no network, so it founds one: a file that follows another names \
         its network as `network`"
    )]
    Founds,
    /// A file of a later epoch that names a state.
    #[error(
        "the committee file is of a later epoch and has a section `from_state`: only the file that \
         founds a network names the state that it begins with"
    )]
    BeginsTwice,
    /// Another file than the one handed over to.
    #[error("the hand-over is to another committee file, whose digest is {0}")]
    OtherFile(Digest),
    /// A file of another network than the one before.
    #[error("the committee file is of network {0}, and the one before is not")]
    OtherNetwork(NetworkId),
    /// A file whose epoch is not the next one.
    #[error("the committee file is of epoch {found}; epoch {expected} is next")]
    OtherEpoch {
        /// Epoch of the file.
        found: Epoch,
        /// The one after that of the committee before.
        expected: Epoch,
    },
}

/// A loaded committee: every key checked.
#[derive(Clone, Debug)]
pub struct Committee {
    scope: Scope,
    epoch: Epoch,
    identities: Vec<IdentityKey>,
    addresses: Vec<String>,
    weights: Weights,
    voting: Voting,
    trusting_period: TrustingPeriod,
}

/// Keys that a committee votes with.
#[derive(Clone, Debug)]
enum Voting {
    /// One key a member, for every purpose.
    One(Arc<dyn Scheme>),
    /// Shares of a secret for each threshold.
    Shared(SharedKeys),
}

/// Threshold keys of a committee.
#[derive(Clone, Debug)]
struct SharedKeys {
    schemes: BySharing<Arc<dyn Scheme>>,
    groups: BySharing<VotingKey>,
    /// Public shares, by their holders' indices.
    shares: Vec<VotingKey>,
}

/// Worth nothing outside the simulator, which compiles it in.
const FORGEABLE_SCHEME: &str = "stub";

impl Committee {
    /// Most members: indices are 16 bits, certificates and windows are sized for hundreds.
    pub const MEMBERS_MAX: usize = 1_024;

    /// Loads and checks the committee file that founds a network: keys, proofs of possession,
    /// weights, no member twice.
    ///
    /// # Errors
    /// The first thing wrong with the file.
    pub fn load(file: &CommitteeFile, cache: KeyCache) -> Result<Self, CommitteeError> {
        refuse_forgeable(file)?;
        Self::load_simulated(file, cache)
    }

    /// Loads as [`Committee::load`] does, and takes the simulator's scheme too, whose signatures
    /// anybody can forge.
    ///
    /// # Errors
    /// The first thing wrong with the file.
    pub fn load_simulated(file: &CommitteeFile, cache: KeyCache) -> Result<Self, CommitteeError> {
        if file.network.is_some() {
            return Err(CommitteeError::NotGenesis(file.epoch));
        }
        Self::load_begun(file, &HandOver::of_genesis(file.network_id()), cache)
    }

    /// Loads as [`Committee::load_simulated`] does the committee file that is in force after a
    /// hand-over. The hand-over's own signatures
    /// ([`SignedHandOver::check`](crate::SignedHandOver::check)) and the file's place behind the
    /// one before ([`Committee::check_next`]) are checked by who has the committee that made it.
    ///
    /// # Errors
    /// The first thing wrong with the file.
    pub fn load_simulated_after(
        file: &CommitteeFile,
        hand_over: &HandOver,
        cache: KeyCache,
    ) -> Result<Self, CommitteeError> {
        if file.network.is_none() {
            return Err(CommitteeError::Founds);
        }
        if file.digest() != hand_over.file {
            return Err(CommitteeError::OtherFile(hand_over.file));
        }
        Self::load_begun(file, hand_over, cache)
    }

    /// Loads as [`Committee::load`] does the committee file that is in force after a hand-over, of
    /// which it knows as little as [`Committee::load_simulated_after`].
    ///
    /// # Errors
    /// The first thing wrong with the file.
    pub fn load_after(
        file: &CommitteeFile,
        hand_over: &HandOver,
        cache: KeyCache,
    ) -> Result<Self, CommitteeError> {
        refuse_forgeable(file)?;
        Self::load_simulated_after(file, hand_over, cache)
    }

    /// Loads the committee file that is in force after a hand-over by this committee, if it is of
    /// this network and of the epoch after this one. The simulator's scheme is taken from a
    /// committee that has it itself, and from no other. The hand-over's own signatures are not
    /// looked at: [`SignedHandOver::check`](crate::SignedHandOver::check).
    ///
    /// # Errors
    /// The first thing wrong with the file.
    pub fn load_next(
        &self,
        file: &CommitteeFile,
        hand_over: &HandOver,
        cache: KeyCache,
    ) -> Result<Self, CommitteeError> {
        self.check_next(file)?;
        if self.scheme_kind().to_string() == FORGEABLE_SCHEME {
            Self::load_simulated_after(file, hand_over, cache)
        } else {
            Self::load_after(file, hand_over, cache)
        }
    }

    /// Checks that a file is of this committee's network and of the epoch after its own.
    ///
    /// # Errors
    /// [`CommitteeError::Founds`], [`CommitteeError::OtherNetwork`] and
    /// [`CommitteeError::OtherEpoch`].
    pub fn check_next(&self, file: &CommitteeFile) -> Result<(), CommitteeError> {
        let network = file.network.ok_or(CommitteeError::Founds)?;
        if network != self.network() {
            return Err(CommitteeError::OtherNetwork(network));
        }
        let (found, expected) = (file.epoch, self.epoch.next());
        if found != expected {
            return Err(CommitteeError::OtherEpoch { found, expected });
        }
        Ok(())
    }

    /// Loads the file of an epoch that began so.
    fn load_begun(
        file: &CommitteeFile,
        begun: &HandOver,
        cache: KeyCache,
    ) -> Result<Self, CommitteeError> {
        if file.network.is_some() && file.from_state.is_some() {
            return Err(CommitteeError::BeginsTwice);
        }
        let count = file.members.len();
        if count == 0 || count > Self::MEMBERS_MAX {
            return Err(CommitteeError::Size(count));
        }
        let kind: SchemeKind =
            file.scheme.parse().map_err(|_| CommitteeError::Scheme(file.scheme.clone()))?;
        let weights = Weights::new(file.members.iter().map(|m| m.weight).collect())?
            .with_redundancy(file.redundancy)?;
        let mut identities = Vec::with_capacity(count);
        let mut keys = Vec::with_capacity(count);
        for (index, member) in file.members.iter().enumerate() {
            identities.push(parse_identity(index, &member.identity)?);
            keys.push((
                VotingKey(parse_hex(index, "voting key", &member.voting)?),
                PossessionProof(parse_hex(index, "proof of possession", &member.possession)?),
            ));
        }
        refuse_repeats(&identities)?;
        check_possession(&identities, &file.members)?;
        refuse_voting_identities(&identities, &keys)?;
        let voting = load_voting(kind, &keys, file.groups.as_ref(), &weights, cache)?;
        let network = file.network_id();
        Ok(Self {
            scope: Scope { network, epoch: begun.begins(network, file.epoch) },
            epoch: file.epoch,
            identities,
            addresses: file.members.iter().map(|m| m.address.clone()).collect(),
            weights,
            voting,
            trusting_period: TrustingPeriod { days: file.settings.trusting_period_days },
        })
    }

    /// The network that this committee serves.
    #[must_use]
    pub fn network(&self) -> NetworkId {
        self.scope.network
    }

    /// Number of the epoch in which it serves. Nothing that is signed is bound to it:
    /// [`Committee::scope`].
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Id of the epoch in which it serves.
    #[must_use]
    pub fn epoch_id(&self) -> EpochId {
        self.scope.epoch
    }

    /// Scope of what its members sign.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// How long its members are believed who say how the epoch ended.
    #[must_use]
    pub fn trusting_period(&self) -> TrustingPeriod {
        self.trusting_period
    }

    /// Number of members in the committee.
    #[must_use]
    pub fn size(&self) -> usize {
        self.identities.len()
    }

    /// Every member's index, ascending.
    pub fn members(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        (0..self.size()).map(|i| ReplicaId(u16::try_from(i).expect("limited at load")))
    }

    /// Returns `true` if `replica` is a member's index.
    #[must_use]
    pub fn contains(&self, replica: ReplicaId) -> bool {
        replica.index() < self.size()
    }

    /// A member's identity key; `None` when there is no such member.
    #[must_use]
    pub fn identity(&self, replica: ReplicaId) -> Option<&IdentityKey> {
        self.identities.get(replica.index())
    }

    /// The member with this identity key.
    #[must_use]
    pub fn find(&self, key: &IdentityKey) -> Option<ReplicaId> {
        let index = self.identities.iter().position(|identity| identity == key)?;
        Some(ReplicaId(u16::try_from(index).expect("limited at load")))
    }

    /// Address at which a member is reached; `None` when there is no such member.
    #[must_use]
    pub fn address(&self, replica: ReplicaId) -> Option<&str> {
        self.addresses.get(replica.index()).map(String::as_str)
    }

    /// Weights of the members, with their thresholds.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Weight that may be Byzantine without harm ([`Weights::faulty_max`]).
    #[must_use]
    pub fn faulty_max(&self) -> u64 {
        self.weights.faulty_max()
    }

    /// The weight of a quorum: two of them share an honest member ([`Weights::quorum`]).
    #[must_use]
    pub fn quorum(&self) -> u64 {
        self.weights.quorum()
    }

    /// The smallest weight that is certain to include an honest member ([`Weights::weak`]).
    #[must_use]
    pub fn weak(&self) -> u64 {
        self.weights.weak()
    }

    /// The weight of one member, 0 for a stranger.
    #[must_use]
    pub fn weight(&self, replica: ReplicaId) -> u64 {
        self.weights.of(replica.index())
    }

    /// The weight of a set of members.
    #[must_use]
    pub fn weight_of(&self, members: &Bitmap) -> u64 {
        self.weights.of_all(members)
    }

    /// Returns `true` if these members weigh so much that an honest one is among them (★): what
    /// they all say, an honest member says.
    #[must_use]
    pub fn includes_honest(&self, members: &Bitmap) -> bool {
        if mutants::active(Mutant::WeakCountsHeads) {
            return members.count() as u64 >= Weights::equal(self.size()).weak();
        }
        self.weight_of(members) >= self.weak()
    }

    /// The scheme for a purpose and the weight that its certificates need.
    #[must_use]
    pub fn scheme(&self, purpose: Purpose) -> (Arc<dyn Scheme>, u64) {
        let scheme = match &self.voting {
            Voting::One(scheme) => scheme,
            Voting::Shared(keys) => keys.schemes.get(purpose.sharing()),
        };
        (Arc::clone(scheme), purpose.threshold(&self.weights))
    }

    /// Kind of signatures that its members vote with.
    #[must_use]
    pub fn scheme_kind(&self) -> SchemeKind {
        match &self.voting {
            Voting::One(scheme) => scheme.kind(),
            Voting::Shared(keys) => keys.schemes.slow.kind(),
        }
    }

    /// Returns `true` if votes that decide at once are signed with keys of their own, as threshold
    /// keys ask for. Otherwise one vote serves both thresholds.
    #[must_use]
    pub fn splits_keys(&self) -> bool {
        matches!(self.voting, Voting::Shared(_))
    }

    /// ★ The sharing whose group key is one of a former committee's too, unless the same members
    /// hold the same shares: whoever held others would sign for this committee with them.
    #[must_use]
    pub fn group_kept_from(&self, former: &Self) -> Option<Sharing> {
        let (Voting::Shared(own), Voting::Shared(before)) = (&self.voting, &former.voting) else {
            return None;
        };
        let holders_stay = self.identities == former.identities && own.shares == before.shares;
        if holders_stay && own.groups == before.groups || mutants::active(Mutant::GroupKeyKept) {
            return None;
        }
        let is_kept = |sharing: &Sharing| {
            let key = own.groups.get(*sharing);
            Sharing::ALL.into_iter().any(|other| before.groups.get(other) == key)
        };
        Sharing::ALL.into_iter().find(is_kept)
    }

    /// Number of shares that make a certificate of each sharing of threshold keys, if this
    /// committee had some; `None` where members weigh differently, whose weights no number of heads
    /// stands for.
    #[must_use]
    pub fn sharing_thresholds(&self) -> Option<BySharing<usize>> {
        sharing_thresholds(&self.weights)
    }

    /// A member's share for a purpose (★: with the key of that purpose, where there are several).
    #[must_use]
    pub fn sign(&self, purpose: Purpose, secret: &VotingSecret, statement: &[u8]) -> Share {
        let one = mutants::active(Mutant::SignWithOneShare);
        secret.sign_with(if one { Sharing::Slow } else { purpose.sharing() }, statement)
    }

    /// Returns `true` if the certificate's signers are members of this committee and weigh enough
    /// for `purpose` (★: asked before any pairing). The signature is the scheme's to check.
    #[must_use]
    pub fn is_enough(&self, purpose: Purpose, certificate: &Certificate) -> bool {
        self.are_enough(purpose, &certificate.signers)
    }

    /// Returns `true` if these signers are members of this committee and weigh enough for `purpose`
    /// (★).
    #[must_use]
    pub fn are_enough(&self, purpose: Purpose, signers: &Bitmap) -> bool {
        if signers.members() != self.size() {
            return false;
        }
        if mutants::active(Mutant::CertificateCountsHeads) {
            let needed = purpose.threshold(&Weights::equal(self.size()));
            return signers.count() as u64 >= needed;
        }
        let (_, threshold) = self.scheme(purpose);
        self.weight_of(signers) >= threshold
    }
}

impl CommitteeFile {
    /// The network that the file is of: the one that it names, or the one that it founds.
    ///
    /// A network that it founds is called by the hash of everything that decides who may sign, for
    /// what, and by which settings. Addresses and proofs of identities are left out: operators may
    /// correct the one and add the other where nothing else changes, and go on signing for the same
    /// network. Settings at their defaults add nothing ([`AgreedSettings`]); the state that it
    /// begins with does.
    #[must_use]
    pub fn network_id(&self) -> NetworkId {
        let Self {
            name,
            network,
            epoch,
            scheme,
            redundancy,
            settings,
            groups,
            from_state,
            members,
        } = self;
        if let Some(network) = network {
            return *network;
        }
        let members: Vec<_> =
            members.iter().map(|m| (&m.identity, &m.voting, &m.possession, m.weight)).collect();
        let content = (name, epoch, scheme, redundancy, groups, members);
        let (content, departures) = (encoded(&content), encoded(settings));
        let is_usual = settings.departures().is_empty();
        let state = from_state.map(|state| encoded(&state));
        let parts: &[&[u8]] = match &state {
            None if is_usual => &[&content],
            None => &[&content, &departures],
            Some(state) => &[&content, &departures, state],
        };
        NetworkId(hash_parts("quorate v1 network id", parts).0)
    }

    /// The file of the next epoch of `network`, in which nothing else differs yet.
    #[must_use]
    pub fn next_epoch(&self, network: NetworkId) -> Self {
        let (network, epoch) = (Some(network), self.epoch.next());
        Self { network, epoch, from_state: None, ..self.clone() }
    }

    /// The hash of everything in the file, addresses too: what operators sign when they change the
    /// committee, and what is handed over to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let content = encoded(self);
        let state = self.from_state.map(|state| encoded(&state));
        let parts: &[&[u8]] = match &state {
            None => &[&content],
            Some(state) => &[&content, state],
        };
        hash_parts("quorate v1 committee file", parts)
    }
}

fn encoded(content: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(content).expect("encoding into memory cannot fail")
}

impl From<&BySharing<VotingKey>> for Groups {
    fn from(keys: &BySharing<VotingKey>) -> Self {
        let BySharing { fast, slow, execution } = keys;
        Self { fast: fast.to_string(), slow: slow.to_string(), execution: execution.to_string() }
    }
}

/// Number of shares that make a certificate of each sharing, in a committee where all weigh the
/// same; `None` in others, whose weights no number of heads stands for.
fn sharing_thresholds(weights: &Weights) -> Option<BySharing<usize>> {
    let each = weights.each().first().filter(|_| weights.are_equal())?;
    let heads = |purpose: Purpose| {
        usize::try_from(purpose.threshold(weights).div_ceil(*each)).expect("members are few")
    };
    Some(BySharing {
        fast: heads(Purpose::Fast),
        slow: heads(Purpose::Vote),
        execution: heads(Purpose::Execute),
    })
}

/// Deals threshold keys to a committee of these weights, as a secret seed determines them.
///
/// # Errors
/// When its members weigh differently, or are none.
pub fn deal_keys(weights: &Weights, seed: &[u8; 32]) -> Result<Dealing, CommitteeError> {
    let thresholds = sharing_thresholds(weights).ok_or(CommitteeError::Unweighted)?;
    Ok(deal(weights.members(), &thresholds, seed)?)
}

fn load_voting(
    kind: SchemeKind,
    keys: &[(VotingKey, PossessionProof)],
    groups: Option<&Groups>,
    weights: &Weights,
    cache: KeyCache,
) -> Result<Voting, CommitteeError> {
    match (kind, groups) {
        (SchemeKind::BlsThreshold, None) => Err(CommitteeError::Groups(
            "threshold keys come with their groups' keys: 'groups' is missing",
        )),
        (SchemeKind::BlsThreshold, Some(groups)) => {
            let thresholds = sharing_thresholds(weights).ok_or(CommitteeError::Unweighted)?;
            let groups = BySharing::try_from_fn(|sharing| parse_group(sharing, groups))?;
            let keys: Vec<VotingKey> = keys.iter().map(|(key, _)| key.clone()).collect();
            let schemes = threshold_schemes(&keys, &groups, &thresholds)?;
            Ok(Voting::Shared(SharedKeys { schemes, groups, shares: keys }))
        }
        (_, Some(_)) => Err(CommitteeError::Groups(
            "only threshold keys have groups: leave 'groups' out, or use 'bls-threshold'",
        )),
        (_, None) => Ok(Voting::One(committee_scheme(kind, keys, cache)?)),
    }
}

fn refuse_forgeable(file: &CommitteeFile) -> Result<(), CommitteeError> {
    if file.scheme == FORGEABLE_SCHEME {
        return Err(CommitteeError::Scheme(file.scheme.clone()));
    }
    Ok(())
}

fn parse_group(sharing: Sharing, groups: &Groups) -> Result<VotingKey, CommitteeError> {
    let text = match sharing {
        Sharing::Fast => &groups.fast,
        Sharing::Slow => &groups.slow,
        Sharing::Execution => &groups.execution,
    };
    let bytes =
        hex::decode(text).map_err(|reason| CommitteeError::Group(sharing, reason.to_string()))?;
    Ok(VotingKey(bytes))
}

fn parse_identity(member: usize, text: &str) -> Result<IdentityKey, CommitteeError> {
    let key = IdentityKey::from_hex(text).map_err(|reason| unusable(member, &reason))?;
    key.check().map_err(|reason| unusable(member, &reason))?;
    Ok(key)
}

fn unusable(member: usize, reason: &KeyError) -> CommitteeError {
    CommitteeError::Member { member, reason: format!("the identity key is unusable: {reason}") }
}

/// Refuses members that did not prove to hold their identities.
fn check_possession(identities: &[IdentityKey], members: &[Member]) -> Result<(), CommitteeError> {
    for (index, (key, member)) in identities.iter().zip(members).enumerate() {
        let proof = parse_hex(index, "identity's proof of possession", &member.identity_proof)?;
        key.check_possession(&PossessionProof(proof)).map_err(|reason| unusable(index, &reason))?;
    }
    Ok(())
}

fn parse_hex(member: usize, what: &str, text: &str) -> Result<Vec<u8>, CommitteeError> {
    hex::decode(text).map_err(|reason| CommitteeError::Member {
        member,
        reason: format!("the {what} is not hexadecimal: {reason}"),
    })
}

fn refuse_repeats(identities: &[IdentityKey]) -> Result<(), CommitteeError> {
    let mut seen = BTreeSet::new();
    for (index, identity) in identities.iter().enumerate() {
        if !seen.insert(identity) {
            let first = identities.iter().position(|other| other == identity).unwrap_or(index);
            return Err(CommitteeError::SameIdentity(first, index));
        }
    }
    Ok(())
}

/// Refuses voting keys that sign what a member says for itself as well.
fn refuse_voting_identities(
    identities: &[IdentityKey],
    keys: &[(VotingKey, PossessionProof)],
) -> Result<(), CommitteeError> {
    for (voting, (key, _)) in keys.iter().enumerate() {
        if let Some(identity) = identities.iter().position(|one| one.0[..] == key.0[..]) {
            return Err(CommitteeError::IdentityVotes { identity, voting });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
