//! Kinds of protocols that a committee can run.

use crate::{chained, hotstuff, jolteon, pbft, sbft, windowed};
use quorate_crypto::SchemeKind;
use quorate_types::Weights;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Protocol that orders a committee's payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolKind {
    /// 2-chain HotStuff with timeout certificates.
    #[default]
    Jolteon,
    /// Chained HotStuff with three chains.
    HotStuff,
    /// Basic HotStuff: one block a view, decided in it by three phases.
    #[serde(rename = "hotstuff-basic")]
    HotStuffBasic,
    /// Slots under a primary, votes of all to all.
    Pbft,
    /// The same through collectors.
    #[serde(rename = "linear-pbft")]
    LinearPbft,
    /// And with a fast path.
    #[serde(rename = "linear-pbft-fast")]
    LinearPbftFast,
    /// And with one certified reply a client.
    Sbft,
}

/// A family of protocols: which machine runs them, and what each does otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// Blocks whose certificates are their children's justifications.
    Chained(&'static chained::Rules),
    /// Slots in a window under a primary.
    Windowed(&'static windowed::Rules),
}

/// A committee that a protocol is not for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitProtocol {
    /// Its members weigh differently, and the protocol counts heads.
    #[error(
        "{0} counts members, not weights: give all members the same weight, or use another protocol"
    )]
    Unweighted(&'static str),
    /// It has redundant members, and the protocol no use for them.
    #[error(
        "{0} has no fast path, for which alone redundant members are of use: leave the redundancy \
         out, or use linear-pbft-fast or sbft"
    )]
    NoFastPath(&'static str),
    /// It votes with threshold keys, which make nothing of statements in several wordings.
    #[error(
        "{0} cannot use threshold keys: each timeout of a view says something else, and too few say \
         the same; use ed25519 or bls, or another protocol"
    )]
    Wordings(&'static str),
}

impl ProtocolKind {
    /// All of them, the default first.
    pub const ALL: [Self; 7] = [
        Self::Jolteon,
        Self::HotStuff,
        Self::HotStuffBasic,
        Self::Pbft,
        Self::LinearPbft,
        Self::LinearPbftFast,
        Self::Sbft,
    ];
    /// Those of the chained family.
    pub const CHAINED: [Self; 3] = [Self::Jolteon, Self::HotStuff, Self::HotStuffBasic];
    /// Those of the windowed family.
    pub const WINDOWED: [Self; 4] =
        [Self::Pbft, Self::LinearPbft, Self::LinearPbftFast, Self::Sbft];

    /// Its name on the command line, in files and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jolteon => "jolteon",
            Self::HotStuff => "hotstuff",
            Self::HotStuffBasic => "hotstuff-basic",
            Self::Pbft => "pbft",
            Self::LinearPbft => "linear-pbft",
            Self::LinearPbftFast => "linear-pbft-fast",
            Self::Sbft => "sbft",
        }
    }

    /// The machine that runs it, and what it does otherwise than others of its family.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::Jolteon => Family::Chained(&jolteon::RULES),
            Self::HotStuff => Family::Chained(&hotstuff::RULES),
            Self::HotStuffBasic => Family::Chained(&hotstuff::basic::RULES),
            Self::Pbft => Family::Windowed(&pbft::RULES),
            Self::LinearPbft => Family::Windowed(&pbft::LINEAR_RULES),
            Self::LinearPbftFast | Self::Sbft => Family::Windowed(&sbft::RULES),
        }
    }

    /// Differences from other chained protocols, if it is one.
    #[must_use]
    pub const fn chained_rules(self) -> Option<&'static chained::Rules> {
        match self.family() {
            Family::Chained(rules) => Some(rules),
            Family::Windowed(_) => None,
        }
    }

    /// Differences from other windowed protocols, if it is one.
    #[must_use]
    pub const fn windowed_rules(self) -> Option<&'static windowed::Rules> {
        match self.family() {
            Family::Windowed(rules) => Some(rules),
            Family::Chained(_) => None,
        }
    }

    /// Returns `true` if a client is to be answered by one certified reply, whatever the settings
    /// say.
    #[must_use]
    pub const fn certifies_replies(self) -> bool {
        matches!(self, Self::Sbft)
    }

    /// Refuses a committee that the protocol is not for: its weights ([`Self::check_weights`]) or
    /// its voting scheme ([`Self::check_scheme`]).
    ///
    /// # Errors
    /// When the protocol does not support it.
    pub fn check_committee(
        self,
        weights: &Weights,
        scheme: SchemeKind,
    ) -> Result<(), UnfitProtocol> {
        self.check_weights(weights)?;
        self.check_scheme(scheme)
    }

    /// Refuses threshold keys where members sign one statement in several wordings, each with too
    /// few shares to be interpolated.
    ///
    /// # Errors
    /// When the protocol does not support it.
    pub fn check_scheme(self, scheme: SchemeKind) -> Result<(), UnfitProtocol> {
        let has_wordings = matches!(self.family(), Family::Chained(_));
        let fits = scheme != SchemeKind::BlsThreshold || !has_wordings;
        fits.then_some(()).ok_or(UnfitProtocol::Wordings(self.name()))
    }

    /// Refuses redundancy where there is no fast path, and weights that differ where the protocol's
    /// thresholds are numbers of members, as those of threshold signatures are.
    ///
    /// # Errors
    /// When the protocol does not support them.
    pub fn check_weights(self, weights: &Weights) -> Result<(), UnfitProtocol> {
        let has_fast_path = self.windowed_rules().is_some_and(|rules| rules.fast_path);
        if weights.redundant_members() > 0 && !has_fast_path {
            return Err(UnfitProtocol::NoFastPath(self.name()));
        }
        let weighs = matches!(self.family(), Family::Chained(_));
        let fits = weighs || weights.are_equal();
        fits.then_some(()).ok_or(UnfitProtocol::Unweighted(self.name()))
    }
}

impl fmt::Display for ProtocolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ProtocolKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join("' or '");
        let named = Self::ALL.into_iter().find(|kind| kind.name() == text);
        named.ok_or_else(|| format!("'{text}' is no protocol: use '{known}'"))
    }
}

#[cfg(test)]
mod tests;
