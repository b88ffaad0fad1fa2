//! Epochs of a world's network: what a host in one of them goes by, and the changes that clients
//! bring.

use crate::scenario::Scenario;
use crate::scenario::changes::PlannedChange;
use bytes::Bytes;
use quorate_crypto::{Digest, IdentityKey, KeyCache, KeyFile, SchemeKind};
use quorate_deterministic::{Rng, genesis};
use quorate_engine::{EpochStart, Settings, Verifier};
use quorate_types::{
    Approval, Change, Committee, Epoch, Groups, HandedOver, HandedOverError, Height, ReplicaId,
    SignedChange, deal_keys,
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
    pub(super) fn first(
        scenario: &Scenario,
        keys: Vec<KeyFile>,
        committee: Arc<Committee>,
        hosts: &[IdentityKey],
    ) -> Self {
        let seats = hosts.iter().map(|identity| committee.find(identity)).collect();
        let (settings, steps) = (scenario.settings.clone(), Vec::new());
        Self { committee, settings, ended: None, steps, keys, seats }
    }

    /// The epoch that a step leads to from this one, with its members' keys.
    ///
    /// # Errors
    /// Why the step is none of this epoch.
    fn next(
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
    pub(super) fn check(&self, step: &HandedOver) -> Result<Committee, HandedOverError> {
        step.check(&self.committee, self.cache())
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
    pub(super) fn host_of(&self, member: ReplicaId) -> Option<usize> {
        self.seats.iter().position(|seat| *seat == Some(member))
    }

    /// Keys of a member.
    pub(crate) fn keys(&self, member: ReplicaId) -> &KeyFile {
        &self.keys[member.index()]
    }

    /// How it began.
    pub(crate) fn start(&self) -> EpochStart {
        let steps: Vec<HandedOver> = self.steps.iter().map(|step| (**step).clone()).collect();
        let start = EpochStart::after(self.committee.network(), &steps);
        self.ended.iter().fold(start, |start, ended| start.of(ended))
    }

    /// The last height before it.
    pub(super) fn begins_after(&self) -> Height {
        self.steps.last().map_or(Height(0), |step| step.header.height)
    }

    /// What its clients check replies with.
    pub(super) fn client_verifier(&self) -> Arc<Verifier> {
        Arc::new(Verifier::for_client(Arc::clone(&self.committee)))
    }
}

/// All epochs that some host began, and the changes that led to them.
#[derive(Debug)]
pub(super) struct Epochs {
    begun: Vec<Arc<EpochConfig>>,
    /// Identities of all hosts.
    hosts: Vec<IdentityKey>,
    /// Each planned change that was brought.
    brought: Vec<Brought>,
}

/// A change that a client brings.
#[derive(Clone, Debug)]
pub(super) struct Brought {
    /// Epoch that it is to end.
    pub(super) ends: Epoch,
    /// The change with its signatures, encoded.
    pub(super) encoded: Bytes,
    /// Number of it among the planned ones.
    planned: usize,
    /// Digest of the next committee file.
    file: Digest,
    /// Next members' keys.
    keys: Vec<KeyFile>,
}

impl Epochs {
    pub(super) fn new(first: EpochConfig, hosts: Vec<IdentityKey>) -> Self {
        Self { begun: vec![Arc::new(first)], hosts, brought: Vec::new() }
    }

    /// The first epoch: of a host that knows nothing.
    pub(super) fn first(&self) -> &Arc<EpochConfig> {
        &self.begun[0]
    }

    /// The last epoch that some host began.
    pub(super) fn last(&self) -> &Arc<EpochConfig> {
        self.begun.last().expect("the first is there")
    }

    /// An epoch that some host began.
    pub(super) fn get(&self, number: Epoch) -> Option<&Arc<EpochConfig>> {
        self.begun.iter().find(|epoch| epoch.number() == number)
    }

    /// The epoch after `ended`, and whether it is the first time that somebody begins it.
    ///
    /// # Errors
    /// Why the step is none of that epoch.
    pub(super) fn begin(
        &mut self,
        ended: &EpochConfig,
        step: &Arc<HandedOver>,
    ) -> Result<(Arc<EpochConfig>, bool), HandedOverError> {
        let known = self.get(ended.number().next()).cloned();
        let is_its = |known: &Arc<EpochConfig>| known.steps.last().is_some_and(|own| own == step);
        if let Some(same) = known.clone().filter(is_its) {
            return Ok((same, false));
        }
        let digest = step.file.digest();
        let change = self.brought.iter().find(|change| change.file == digest);
        let keys = change.expect("nobody else makes changes").keys.clone();
        let next = Arc::new(ended.next(step, keys, &self.hosts)?);
        // Whoever was deceived is in an epoch of its own, and those who judge see it begin.
        if known.is_none() {
            self.begun.push(Arc::clone(&next));
        }
        Ok((next, known.is_none()))
    }

    /// The planned change that an epoch began with; `None` for the first epoch.
    pub(super) fn planned(&self, step: &HandedOver) -> Option<usize> {
        let digest = step.file.digest();
        self.brought.iter().find(|change| change.file == digest).map(|change| change.planned)
    }

    /// A planned change, signed by all who are to: of the epoch that is the last when it is brought
    /// first.
    pub(super) fn bring(
        &mut self,
        scenario: &Scenario,
        planned: usize,
        hosts: &[KeyFile],
    ) -> Brought {
        if let Some(known) = self.brought.iter().find(|change| change.planned == planned) {
            return known.clone();
        }
        let made = make(self.last(), scenario, planned, hosts);
        self.brought.push(made.clone());
        made
    }

    /// Number of planned changes that were brought.
    pub(super) fn brought(&self) -> usize {
        self.brought.len()
    }

    /// Returns `true` if every change that was brought is of an epoch that is over.
    pub(super) fn are_over(&self) -> bool {
        let last = self.last().number();
        self.brought.iter().all(|change| change.ends < last)
    }
}

fn make(ends: &EpochConfig, scenario: &Scenario, planned: usize, hosts: &[KeyFile]) -> Brought {
    let plan = &scenario.changes[planned];
    let (keys, groups) = member_keys(scenario, planned, hosts);
    let committee = &ends.committee;
    let mut file =
        genesis::committee_file(scenario.seed, scenario.scheme, &keys, groups, &plan.weights);
    file.network = Some(committee.network());
    file.epoch = ends.number().next();
    file.settings = plan.settings.clone();
    let digest = file.digest();
    let change = Change {
        network: committee.network(),
        epoch: ends.number(),
        file,
        not_before: NOT_BEFORE,
        expires: EXPIRES,
    };
    let encoded = borsh::to_vec(&sign(ends, change, &keys)).expect("encoding into memory");
    Brought { ends: ends.number(), encoded: encoded.into(), planned, file: digest, keys }
}

/// Approved and accepted by everybody.
fn sign(ends: &EpochConfig, change: Change, keys: &[KeyFile]) -> SignedChange {
    let committee = &ends.committee;
    let next = change.check(committee).expect("a planned change is sound");
    let statement = change.approval_statement(committee);
    let approve = |member: ReplicaId| {
        let signature = ends.keys(member).identity.sign(&statement);
        Approval { member, signature }
    };
    let approvals = committee.members().map(approve).collect();
    let accept = |(member, keys): (ReplicaId, &KeyFile)| {
        let place = (member, Height(0));
        change.accept((committee, &next), place, (&keys.identity, &keys.voting))
    };
    let acceptances = next.members().zip(keys).map(accept).collect();
    SignedChange { approvals, acceptances, change }
}

/// Next members' keys: their own, but for voting keys that a dealer makes.
fn member_keys(
    scenario: &Scenario,
    planned: usize,
    hosts: &[KeyFile],
) -> (Vec<KeyFile>, Option<Groups>) {
    let PlannedChange { members, weights, .. } = &scenario.changes[planned];
    let mut keys: Vec<KeyFile> = members.iter().map(|host| hosts[*host].clone()).collect();
    if scenario.scheme != SchemeKind::BlsThreshold {
        return (keys, None);
    }
    let number = u64::try_from(planned).expect("few changes");
    let mut rng = Rng::new(scenario.seed, "keys after a change", number);
    let dealing = deal_keys(weights, &rng.bytes32()).expect("members of one weight");
    for (keys, dealt) in keys.iter_mut().zip(dealing.secrets) {
        keys.voting = dealt;
    }
    (keys, Some(Groups::from(&dealing.groups)))
}
