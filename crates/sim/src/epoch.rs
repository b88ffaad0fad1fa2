//! One epoch of a simulated network, and the change that ends it.

mod ending;

pub(crate) use ending::{Ended, falsified};
use quorate_crypto::{IdentityKey, KeyCache, KeyFile};
use quorate_engine::{EpochStart, Settings, Verifier};
use quorate_types::{
    Change, ClientId, Committee, CommitteeFile, Epoch, HandedOver, HandedOverError, Height, Peer,
    ReplicaId, SignedChange,
};
use std::sync::Arc;

/// Heights that may order a change: any.
const NOT_BEFORE: Height = Height(1);
const EXPIRES: Height = Height(u64::MAX);

/// One epoch, as every host in it sees it.
#[derive(Debug)]
pub(crate) struct EpochConfig {
    pub(crate) committee: Arc<Committee>,
    /// Settings that its members agree on, with those that are each host's own.
    pub(crate) settings: Settings,
    /// Committee of the epoch before, if it is not the first.
    ended: Option<Arc<Committee>>,
    /// Hand-overs from the first epoch to this one.
    pub(crate) steps: Vec<Arc<HandedOver>>,
    /// Members' keys, by their index here.
    keys: Vec<KeyFile>,
    /// Index of each host, if it is a member.
    seats: Vec<Option<ReplicaId>>,
}

impl EpochConfig {
    /// The first epoch; `hosts` are the identities of all hosts.
    pub(crate) fn first(
        settings: Settings,
        keys: Vec<KeyFile>,
        committee: Arc<Committee>,
        hosts: &[IdentityKey],
    ) -> Self {
        let seats = hosts.iter().map(|identity| committee.find(identity)).collect();
        Self { committee, settings, ended: None, steps: Vec::new(), keys, seats }
    }

    /// The epoch that a step leads to from this one, with its members' keys.
    ///
    /// # Errors
    /// Why the step is none of this epoch.
    pub(crate) fn next(
        &self,
        step: &Arc<HandedOver>,
        keys: Vec<KeyFile>,
        hosts: &[IdentityKey],
    ) -> Result<Self, HandedOverError> {
        let committee = Arc::new(self.check(step)?);
        let seats = hosts.iter().map(|identity| committee.find(identity)).collect();
        let mut settings = self.settings.clone();
        settings.agree(&step.file.settings).expect("members checked the settings");
        let steps = self.steps.iter().chain([step]).cloned().collect();
        let ended = Some(Arc::clone(&self.committee));
        Ok(Self { committee, settings, ended, steps, keys, seats })
    }

    /// Checks that this epoch ends so.
    ///
    /// # Errors
    /// The first rule that the step breaks.
    pub(crate) fn check(&self, step: &HandedOver) -> Result<Committee, HandedOverError> {
        step.check(&self.committee, self.cache())
    }

    /// What a peer is to members of the epoch: a host with this identity.
    pub(crate) fn peer(&self, host: usize, identity: &IdentityKey) -> Peer {
        self.seat(host).map_or(Peer::Learner(ClientId(*identity)), Peer::Replica)
    }

    fn cache(&self) -> KeyCache {
        self.settings.comparison.key_cache
    }

    pub(crate) fn number(&self) -> Epoch {
        self.committee.epoch()
    }

    /// Index of a host; `None` for one that is no member.
    pub(crate) fn seat(&self, host: usize) -> Option<ReplicaId> {
        self.seats.get(host).copied().flatten()
    }

    /// Host of a member: the first machine of a twin.
    pub(crate) fn host_of(&self, member: ReplicaId) -> Option<usize> {
        self.seats.iter().position(|seat| *seat == Some(member))
    }

    /// Keys of a member.
    pub(crate) fn keys(&self, member: ReplicaId) -> &KeyFile {
        &self.keys[member.index()]
    }

    /// How it began.
    fn start(&self) -> EpochStart {
        let steps: Vec<HandedOver> = self.steps.iter().map(|step| (**step).clone()).collect();
        let start = EpochStart::after(self.committee.network(), &steps);
        self.ended.iter().fold(start, |start, ended| start.of(ended))
    }

    /// The last height before it.
    pub(crate) fn begins_after(&self) -> Height {
        self.steps.last().map_or(Height(0), |step| step.header.height)
    }

    /// What its replicas check frames with, if they run with these settings.
    pub(crate) fn verifier(&self, settings: &Settings) -> Arc<Verifier> {
        Arc::new(Verifier::starting(Arc::clone(&self.committee), settings, self.start()))
    }

    /// What its clients check replies with.
    pub(crate) fn client_verifier(&self) -> Arc<Verifier> {
        Arc::new(Verifier::for_client(Arc::clone(&self.committee)))
    }
}

/// A change from `ends` to the epoch of this file, approved and accepted by everybody; `keys` are
/// those of its members.
pub(crate) fn change_to(ends: &EpochConfig, file: CommitteeFile, keys: &[KeyFile]) -> SignedChange {
    let (network, epoch) = (ends.committee.network(), ends.number());
    let file = CommitteeFile { network: Some(network), epoch: epoch.next(), ..file };
    let (not_before, expires) = (NOT_BEFORE, EXPIRES);
    sign(ends, Change { network, epoch, file, not_before, expires }, keys)
}

/// Approved and accepted by everybody.
fn sign(ends: &EpochConfig, change: Change, keys: &[KeyFile]) -> SignedChange {
    let committee = &ends.committee;
    let next = change.check(committee).expect("a planned change is sound");
    let approve =
        |member: ReplicaId| change.approve(committee, member, &ends.keys(member).identity);
    let approvals = committee.members().map(approve).collect();
    let accept = |(member, keys): (ReplicaId, &KeyFile)| {
        let place = (member, Height(0));
        change.accept((committee, &next), place, (&keys.identity, &keys.voting))
    };
    let acceptances = next.members().zip(keys).map(accept).collect();
    SignedChange { approvals, acceptances, change }
}
