//! Committee, keys and certificates that checks need, shared by threads.

use crate::chained::{self, Qc, Rules, Tc};
use crate::checked_changes::{ChangeName, CheckedChanges};
use crate::windowed::{self, Proposal, SlotCertificate};
use crate::{Family, ProtocolKind};
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    Certificate, Digest, IdentitySecret, PreparedIdentity, Scheme, Share, Signature, VotingSecret,
    hash,
};
use quorate_types::{Anchor, BlockId, Committee, Purpose, Rejected, ReplicaId, View, sign};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Messages for views further ahead than this are dropped unless a certificate in them leads there.
pub(crate) const WINDOW: u64 = 8;

/// Certificates remembered of each kind.
const CACHE_MAX: usize = 64;
/// And of slots: some of each under way.
const SLOT_CACHE_MAX: usize = 4 * windowed::WINDOW as usize;

/// Certificates remembered of one statement: several collectors make one each, of different
/// signers, and the reports of a view change hold all of them.
const VARIANTS_MAX: usize = 16;

/// Kind of key that signs proposals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProposalKey {
    /// The Ed25519 identity key: cheap to check, whatever the voting scheme.
    #[default]
    Identity,
    /// The voting key, as paper 000 does.
    Voting,
}

impl std::fmt::Display for ProposalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Identity => "identity",
            Self::Voting => "voting",
        })
    }
}

impl std::str::FromStr for ProposalKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "identity" => Ok(Self::Identity),
            "voting" => Ok(Self::Voting),
            other => Err(format!("'{other}' is no proposal key: use 'identity' or 'voting'")),
        }
    }
}

/// State for checking messages: the committee, its keys made ready, certificates seen before, and
/// how far the machine has come. Shared by threads.
#[derive(Debug)]
pub struct Verifier {
    committee: Arc<Committee>,
    voting: Arc<dyn Scheme>,
    identities: Vec<PreparedIdentity>,
    protocol: ProtocolKind,
    proposal_key: ProposalKey,
    genesis: BlockId,
    anchor: Anchor,
    horizon: AtomicU64,
    checked: Mutex<Checked>,
    changes: Mutex<CheckedChanges>,
}

#[derive(Debug, Default)]
struct Checked {
    /// By what their votes signed, too (★): nothing else tells some phases of a block apart.
    qcs: BTreeMap<(View, BlockId, sign::Kind), Qc>,
    tcs: BTreeMap<(View, Digest), Tc>,
    /// By what they say and how many said it (★).
    slots: BTreeMap<(Proposal, sign::Kind, Purpose), Vec<Digest>>,
}

impl Verifier {
    /// For one committee and the protocol that it runs. Identity keys were checked when it was
    /// loaded.
    #[must_use]
    pub fn new(
        committee: Arc<Committee>,
        protocol: ProtocolKind,
        proposal_key: ProposalKey,
    ) -> Self {
        let identities = committee
            .members()
            .filter_map(|member| committee.identity(member))
            .map(|key| key.prepare().expect("the committee checked its keys"))
            .collect();
        let (voting, _) = committee.scheme(Purpose::Vote);
        let scope = committee.scope();
        let genesis = match protocol.family() {
            Family::Chained(rules) => chained::genesis_id(rules, scope),
            Family::Windowed(_) => windowed::genesis_id(scope),
        };
        Self {
            committee,
            voting,
            identities,
            protocol,
            proposal_key,
            genesis,
            anchor: Anchor::default(),
            horizon: AtomicU64::new(1),
            checked: Mutex::default(),
            changes: Mutex::default(),
        }
    }

    /// For an epoch that begins after this height.
    #[must_use]
    pub fn starting_after(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Committee whose members' messages it checks.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        &self.committee
    }

    /// The scheme of the voting keys.
    #[must_use]
    pub fn voting(&self) -> &Arc<dyn Scheme> {
        &self.voting
    }

    /// The protocol that the committee runs.
    #[must_use]
    pub fn protocol(&self) -> ProtocolKind {
        self.protocol
    }

    /// Rules that set its chained protocol apart from others of its family.
    ///
    /// # Panics
    /// When it runs another family's.
    pub(crate) fn rules(&self) -> &'static Rules {
        self.protocol.chained_rules().expect("only chained protocols ask")
    }

    /// Kind of key that signs proposals in this committee.
    #[must_use]
    pub fn proposal_key(&self) -> ProposalKey {
        self.proposal_key
    }

    /// The block before the first.
    #[must_use]
    pub fn genesis(&self) -> BlockId {
        self.genesis
    }

    /// The height before the first, with which the epoch before ended.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// The machine's current view, as far as it was published: what is older dies before any
    /// cryptography.
    #[must_use]
    pub fn horizon(&self) -> View {
        View(self.horizon.load(Ordering::Acquire))
    }

    /// The machine entered a view.
    pub fn publish(&self, view: View) {
        self.horizon.fetch_max(view.0, Ordering::AcqRel);
    }

    /// The signed bytes of a statement of this network and epoch.
    pub fn statement(&self, kind: sign::Kind, payload: &impl borsh::BorshSerialize) -> Vec<u8> {
        sign::statement(kind, self.committee.scope(), payload)
    }

    /// Checks a member's identity signature.
    ///
    /// # Errors
    /// When it does not verify or there is no such member.
    pub fn verify_identity(
        &self,
        member: ReplicaId,
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), Rejected> {
        let key = self.identities.get(member.index()).ok_or(Rejected::NotAMember)?;
        key.verify(message, signature).map_err(|_| Rejected::BadSignature("an identity signature"))
    }

    /// Signs what a member says alone, with the key that signs proposals.
    #[must_use]
    pub fn sign_alone(
        &self,
        identity: &IdentitySecret,
        voting: &VotingSecret,
        message: &[u8],
    ) -> Vec<u8> {
        match self.proposal_key {
            ProposalKey::Identity => identity.sign(message).0.to_vec(),
            ProposalKey::Voting => voting.sign(message).0,
        }
    }

    /// Checks what [`Verifier::sign_alone`] made.
    ///
    /// # Errors
    /// When it does not verify or there is no such member; `what` says of what it is.
    pub(crate) fn check_alone(
        &self,
        member: ReplicaId,
        message: &[u8],
        signature: &[u8],
        what: &'static str,
    ) -> Result<(), Rejected> {
        let refused = || Rejected::BadSignature(what);
        match self.proposal_key {
            ProposalKey::Identity => {
                let bytes = signature.try_into().map_err(|_| refused())?;
                self.verify_identity(member, message, &Signature(bytes))
            }
            ProposalKey::Voting if !self.committee.contains(member) => Err(Rejected::NotAMember),
            ProposalKey::Voting => self
                .voting
                .verify_share(message, member.index(), &Share(signature.to_vec()))
                .map_err(|_| refused()),
        }
    }

    /// Remembers a certificate that this replica combined itself.
    pub fn remember_qc(&self, kind: sign::Kind, qc: &Qc) {
        let mut checked = self.checked.lock();
        checked.qcs.insert((qc.view, qc.id, self.remembered_as(kind)), qc.clone());
        trim(&mut checked.qcs);
    }

    /// Remembers a timeout certificate that this replica combined itself.
    pub fn remember_tc(&self, tc: &Tc) {
        let mut checked = self.checked.lock();
        checked.tcs.insert((tc.view, tc.content()), tc.clone());
        trim(&mut checked.tcs);
    }

    /// The checked copy of this certificate, if it is known.
    pub(crate) fn known_qc(&self, kind: sign::Kind, qc: &Qc) -> Option<Qc> {
        let checked = self.checked.lock();
        let key = (qc.view, qc.id, self.remembered_as(kind));
        checked.qcs.get(&key).filter(|known| *known == qc).cloned()
    }

    fn remembered_as(&self, kind: sign::Kind) -> sign::Kind {
        if mutants::active(Mutant::BasicRememberByBlock) { self.rules().vote } else { kind }
    }

    /// Remembers a slot's certificate that was checked or made here.
    pub(crate) fn remember_slot(
        &self,
        kind: sign::Kind,
        purpose: Purpose,
        certificate: &SlotCertificate,
    ) {
        let digest = digest_of(&certificate.certificate);
        let mut checked = self.checked.lock();
        let known = checked.slots.entry((certificate.proposal, kind, purpose)).or_default();
        if known.contains(&digest) {
            return;
        }
        if known.len() == VARIANTS_MAX {
            known.remove(0);
        }
        known.push(digest);
        while checked.slots.len() > SLOT_CACHE_MAX {
            checked.slots.pop_first();
        }
    }

    /// Returns `true` if exactly this certificate was checked before. Another one of the same
    /// statement was not: what was not checked must not be shown to others.
    pub(crate) fn knows_slot(
        &self,
        kind: sign::Kind,
        purpose: Purpose,
        certificate: &SlotCertificate,
    ) -> bool {
        let key = (certificate.proposal, kind, purpose);
        let digest = digest_of(&certificate.certificate);
        self.checked.lock().slots.get(&key).is_some_and(|known| known.contains(&digest))
    }

    /// Checks a signed view change, unless it was checked before or its member's are too many.
    ///
    /// # Errors
    /// Those of the check, and [`Rejected::TooFarAhead`] for one too many.
    pub(crate) fn check_change_once(
        &self,
        view: View,
        name: ChangeName,
        check: impl FnOnce() -> Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        let known = self.changes.lock().begin(self.horizon(), view, name);
        known.unwrap_or_else(|| {
            let found = check();
            self.changes.lock().end(name, found.clone());
            found
        })
    }

    /// The machine waits for these view changes, which pending new views name.
    pub(crate) fn want_changes(&self, names: impl Iterator<Item = ChangeName>) {
        self.changes.lock().want(names.collect());
    }

    /// The checked copy of this timeout certificate, if it is known.
    pub(crate) fn known_tc(&self, tc: &Tc) -> Option<Tc> {
        self.checked.lock().tcs.get(&(tc.view, tc.content())).cloned()
    }
}

fn digest_of(certificate: &Certificate) -> Digest {
    hash(&borsh::to_vec(certificate).expect("encoding into memory cannot fail"))
}

/// Keeps the highest views.
fn trim<K: Ord, V>(cache: &mut BTreeMap<K, V>) {
    while cache.len() > CACHE_MAX {
        cache.pop_first();
    }
}

#[cfg(test)]
mod tests;
