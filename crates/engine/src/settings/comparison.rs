//! Settings that exist for comparisons with papers alone.

use crate::Truncation;
use quorate_consensus::ProposalKey;
use quorate_crypto::KeyCache;
use serde::{Deserialize, Serialize};

/// Bound on an author's own data that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// A window that follows the delay, so that bodies do not wait where proposals overtake them.
    #[default]
    Delay,
    /// The same, and it begins as wide as it gets: for runs that begin in the middle of a load that
    /// has lasted.
    Warm,
    /// `author_bytes_max` alone: bodies leave when they are full or have waited, as they come.
    Fixed,
}

/// When an author's open body is sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sealing {
    /// When it is full, or has waited for the batch delay.
    #[default]
    Delay,
    /// When it is full, or when its author leads and has nothing to propose, but not within a batch
    /// delay of the last that was full: as in paper 000's three-chain implementation. For loads
    /// that last: what a member has that does not lead waits until then, and no view begins for it.
    Demand,
}

/// Settings by which benches, simulations and experiments do as a paper does, or leave out one of
/// its optimisations. No validator gains by them, so a validator that orders for others refuses
/// every one that is not at its default. Members must agree on `proposal_key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Most operations in a body, and in a block unless its only body has more; 0 for no limit. The
    /// dissertation's batch limit (004 §3.3.2); [`super::Settings::batch_bytes`] bounds what costs.
    pub block_operations_max: u64,
    /// Most bodies that a block names; 0 for as many as fit. Paper 000's three-chain implementation
    /// has 31, 1,000 bytes of names.
    pub block_bodies_max: u64,
    /// When bodies are sealed: `delay`, or on `demand`, see [`Sealing`].
    pub sealing: Sealing,
    /// Requests that another member's body carries are left out of the own ones (004 §3.3.2:
    /// filtering). What is ordered twice takes effect once either way.
    pub filter_requests: bool,
    /// Use of the cached committee key in checking certificates: `on`, `subtract` (always as paper
    /// 000 does) or `off`.
    pub key_cache: KeyCache,
    /// Key that signs proposals: `identity` or `voting` (as paper 000 does).
    pub proposal_key: ProposalKey,
    /// Timeouts show their sender's last vote, so that a certificate that a collector took with it
    /// can be made again. Without it chained HotStuff among four members with one dead may decide
    /// nothing.
    pub vote_salvage: bool,
    /// Parts of the chain that travel with messages: `ids`, `heights` or `off`, see [`Truncation`].
    /// Paper 004's nodes carry their commands too, as [`super::Settings::inline_bodies`] has it.
    /// **Every member must say the same**: with ids chains are refused.
    pub truncation: Truncation,
    /// Set to sign and check anything at all. Without it there is no protection: only simulated
    /// replicas may go without.
    pub signatures: bool,
    /// Bound on an author's own data under way: the `delay` (`warm`: of a load that has lasted), or
    /// half of [`super::Settings::author_bytes_max`] alone (`fixed`, as in paper 000's program).
    pub flow_control: FlowControl,
    /// A body that a proposal names and that is not here is asked for once its author is later than
    /// usual. `false`: at once, as paper 000's implementation does.
    pub fetch_grace: bool,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            block_operations_max: 0,
            block_bodies_max: 0,
            sealing: Sealing::Delay,
            filter_requests: true,
            key_cache: KeyCache::On,
            proposal_key: ProposalKey::Identity,
            vote_salvage: true,
            truncation: Truncation::Ids,
            signatures: true,
            flow_control: FlowControl::Delay,
            fetch_grace: true,
        }
    }
}

impl Comparison {
    /// Names of the settings that are not at their defaults, in the order of the fields.
    #[must_use]
    pub fn departures(&self) -> Vec<&'static str> {
        let usual = Self::default();
        let compared = [
            ("block_operations_max", self.block_operations_max != usual.block_operations_max),
            ("block_bodies_max", self.block_bodies_max != usual.block_bodies_max),
            ("sealing", self.sealing != usual.sealing),
            ("filter_requests", self.filter_requests != usual.filter_requests),
            ("key_cache", self.key_cache != usual.key_cache),
            ("proposal_key", self.proposal_key != usual.proposal_key),
            ("vote_salvage", self.vote_salvage != usual.vote_salvage),
            ("truncation", self.truncation != usual.truncation),
            ("signatures", self.signatures != usual.signatures),
            ("flow_control", self.flow_control != usual.flow_control),
            ("fetch_grace", self.fetch_grace != usual.fetch_grace),
        ];
        compared.into_iter().filter(|(_, departs)| *departs).map(|(name, _)| name).collect()
    }
}
