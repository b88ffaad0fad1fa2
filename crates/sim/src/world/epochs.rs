//! Epochs of a world's network, and the changes that clients bring.

use crate::epoch::{EpochConfig, change_to};
use crate::scenario::Scenario;
use crate::scenario::changes::PlannedChange;
use bytes::Bytes;
use quorate_crypto::{Digest, IdentityKey, KeyFile, SchemeKind};
use quorate_deterministic::{Rng, genesis};
use quorate_types::{CommitteeFile, Epoch, Groups, HandedOver, HandedOverError, deal_keys};
use std::sync::Arc;

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
    let Scenario { seed, scheme, .. } = *scenario;
    let file = genesis::committee_file(seed, scheme, &keys, groups, &plan.weights);
    let change = change_to(ends, CommitteeFile { settings: plan.settings.clone(), ..file }, &keys);
    let (ends, file) = (ends.number(), change.change.file.digest());
    let encoded = borsh::to_vec(&change).expect("encoding into memory");
    Brought { ends, encoded: encoded.into(), planned, file, keys }
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
