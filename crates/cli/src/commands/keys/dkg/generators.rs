//! The committee whose members generate keys: a founding one, or that of the next epoch of a
//! network that serves.

use crate::failure::Failure;
use quorate_crypto::SchemeKind;
use quorate_engine::ProtocolKind;
use quorate_ledger::keygen::{Generated, Plan, Transcript, ceremony_committee};
use quorate_node::NodeConfig;
use quorate_types::{CommitteeFile, Weights};
use std::path::PathBuf;
use std::sync::Arc;

/// The generators of one generation, and what becomes of their keys.
pub(super) struct Generators {
    /// Committee file that they generate for.
    pub(super) file: CommitteeFile,
    /// Path of the text that holds it.
    pub(super) source: PathBuf,
    pub(super) label: String,
    /// The same members while they generate.
    pub(super) ceremony: CommitteeFile,
    pub(super) plan: Arc<Plan>,
    /// Configuration of this member's host while they do.
    pub(super) host: NodeConfig,
    pub(super) purpose: Purpose,
}

/// Use of the keys that are generated.
pub(super) enum Purpose {
    /// They found a network that orders by this protocol; of this configuration is its member's.
    Founding(ProtocolKind, Box<NodeConfig>),
    /// They are drafted into a change of a network that serves meanwhile.
    NextEpoch,
}

impl Generators {
    /// The members of the founding committee that a configuration names.
    pub(super) fn founding(
        config: &NodeConfig,
        label: &str,
        protocol: ProtocolKind,
    ) -> Result<Self, Failure> {
        let file = config.read_committee_file().map_err(Failure::usage)?;
        let ceremony = ceremony_committee(&file, label);
        let plan = plan(&ceremony, protocol).map_err(Failure::usage)?;
        Ok(Self {
            file,
            source: config.committee.clone(),
            label: label.to_owned(),
            ceremony,
            plan,
            host: config.clone(),
            purpose: Purpose::Founding(protocol, Box::new(config.clone())),
        })
    }

    /// Checks that a transcript is of this generation.
    pub(super) fn check_same(&self, transcript: &Transcript) -> Result<(), &'static str> {
        let theirs = ceremony_committee(&transcript.generators, &transcript.label);
        let is_same = theirs.network_id() == self.ceremony.network_id();
        is_same.then_some(()).ok_or("is of another committee or another generation (--label)")
    }

    /// Committee file and configuration of a network that the keys found; `None` where they are
    /// for the next epoch of one.
    pub(super) fn founded(&self, generated: &Generated) -> Option<(CommitteeFile, NodeConfig)> {
        let Purpose::Founding(protocol, config) = &self.purpose else { return None };
        let mut committee = generated.committee(&self.file);
        committee.settings.protocol = protocol.to_string();
        Some((committee, config.as_ref().clone()))
    }
}

/// Plan of a generation whose keys a protocol is to vote with, or why it cannot.
pub(super) fn plan(ceremony: &CommitteeFile, protocol: ProtocolKind) -> Result<Arc<Plan>, String> {
    let plan = Plan::new(ceremony).map_err(|error| error.to_string())?;
    let weights = Weights::equal(plan.members()).with_redundancy(ceremony.redundancy);
    let weights = weights.map_err(|error| error.to_string())?;
    let fits = protocol.check_committee(&weights, SchemeKind::BlsThreshold);
    fits.map_err(|error| error.to_string())?;
    Ok(Arc::new(plan))
}
