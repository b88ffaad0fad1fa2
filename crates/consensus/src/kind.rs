//! Which protocol a committee runs.

use crate::chained::{self, Rules};
use crate::{Message, hotstuff, jolteon};
use quorate_types::Weights;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which protocol orders.
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
}

/// A committee whose members weigh differently, and a protocol that counts heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} counts members, not weights: give all members the same weight, or use another protocol"
)]
pub struct UnweightedProtocol(&'static str);

impl ProtocolKind {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Jolteon, Self::HotStuff, Self::HotStuffBasic];

    /// Its name on the command line, in files and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jolteon => "jolteon",
            Self::HotStuff => "hotstuff",
            Self::HotStuffBasic => "hotstuff-basic",
        }
    }

    /// What it does otherwise than the other chained protocols.
    #[must_use]
    pub const fn rules(self) -> &'static Rules {
        match self {
            Self::Jolteon => &jolteon::RULES,
            Self::HotStuff => &hotstuff::RULES,
            Self::HotStuffBasic => &hotstuff::basic::RULES,
        }
    }

    /// A statement of its machine as it travels.
    #[must_use]
    pub const fn message(self, message: chained::Message) -> Message {
        match self {
            Self::Jolteon => Message::Jolteon(message),
            Self::HotStuff => Message::HotStuff(message),
            Self::HotStuffBasic => Message::HotStuffBasic(message),
        }
    }

    /// Refuses weights that differ where the protocol's thresholds are numbers of members, as those of
    /// threshold signatures are.
    ///
    /// # Errors
    /// When they differ and the protocol does not support it.
    pub fn check_weights(self, weights: &Weights) -> Result<(), UnweightedProtocol> {
        match self {
            Self::Jolteon | Self::HotStuff | Self::HotStuffBasic => {
                refuse_unless(true, self.name(), weights)
            }
        }
    }
}

fn refuse_unless(
    supported: bool,
    name: &'static str,
    weights: &Weights,
) -> Result<(), UnweightedProtocol> {
    if supported || weights.are_equal() { Ok(()) } else { Err(UnweightedProtocol(name)) }
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
