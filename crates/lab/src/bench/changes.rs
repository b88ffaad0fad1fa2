//! Changes of the committee under load: which are planned, and how they are brought.
//!
//! Newcomers run from the beginning, as learners. Whoever is replaced or removed goes on as a
//! learner.

mod bring;
mod roster;

pub(super) use bring::{Border, Processes, bring};
pub(super) use roster::Roster;

use quorate_crypto::SchemeKind;
use quorate_engine::ProtocolKind;
use quorate_types::Weights;
use std::fmt;
use std::str::FromStr;

/// A change of the committee, written `WHAT at T`: T seconds into the measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedChange {
    /// Change that is brought.
    pub what: What,
    /// Seconds after the measured window opens.
    pub second: f64,
}

/// Difference of the next committee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// So many members, or all, are replaced by newcomers: those that are dead first, then the
    /// last.
    Replace(Option<u16>),
    /// So many newcomers are added.
    Add(u16),
    /// So many members, those that are dead first and then the last, leave.
    Remove(u16),
    /// This protocol orders from then on.
    Protocol(ProtocolKind),
    /// All members have new voting keys, of this scheme.
    Scheme(SchemeKind),
}

/// A text that is not a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not 'WHAT at T', with WHAT one of 'replace COUNT', 'replace all', 'add COUNT', 'remove \
     COUNT', 'protocol NAME' and 'scheme NAME', and T in seconds, as in 'replace 2 at 10'"
)]
pub struct NotAChange(String);

impl FromStr for PlannedChange {
    type Err = NotAChange;

    fn from_str(text: &str) -> Result<Self, NotAChange> {
        let parse = || {
            let (what, second) = text.rsplit_once(" at ")?;
            let second = second.parse().ok().filter(|at: &f64| at.is_finite() && *at >= 0.0)?;
            Some(Self { what: What::parse(what)?, second })
        };
        parse().ok_or_else(|| NotAChange(text.to_owned()))
    }
}

impl fmt::Display for PlannedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.what, self.second)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replace(None) => write!(f, "replace all"),
            Self::Replace(Some(count)) => write!(f, "replace {count}"),
            Self::Add(count) => write!(f, "add {count}"),
            Self::Remove(count) => write!(f, "remove {count}"),
            Self::Protocol(protocol) => write!(f, "protocol {protocol}"),
            Self::Scheme(scheme) => write!(f, "scheme {scheme}"),
        }
    }
}

impl What {
    fn parse(text: &str) -> Option<Self> {
        let count = |text: &str| text.parse().ok().filter(|count| *count > 0);
        Some(match text.trim().split_once(' ')? {
            ("replace", "all") => Self::Replace(None),
            ("replace", text) => Self::Replace(Some(count(text)?)),
            ("add", text) => Self::Add(count(text)?),
            ("remove", text) => Self::Remove(count(text)?),
            ("protocol", name) => Self::Protocol(name.parse().ok()?),
            ("scheme", name) => Self::Scheme(name.parse().ok()?),
            _ => return None,
        })
    }
}

/// Shape of a committee, as far as changes differ in it.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) weights: Weights,
    pub(super) redundancy: u64,
    pub(super) scheme: SchemeKind,
    pub(super) protocol: ProtocolKind,
    /// Newcomers that it took.
    pub(super) newcomers: u16,
}

impl Shape {
    /// The committee after a change.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    pub(super) fn after(&self, what: What) -> Result<Self, String> {
        let dealt = "threshold keys are made for all members together, with quorate keys dkg";
        if !matches!(what, What::Protocol(_)) && self.scheme == SchemeKind::BlsThreshold {
            return Err(dealt.to_owned());
        }
        let members = self.weights.members();
        let mut next = self.clone();
        let mut each = self.weights.each().to_vec();
        match what {
            What::Replace(count) => {
                let count = count.map_or(members, usize::from);
                if count > members {
                    return Err(format!("there are only {members} members"));
                }
                next.newcomers += u16::try_from(count).map_err(|error| error.to_string())?;
            }
            What::Add(count) => {
                each.extend((0..count).map(|_| 1));
                next.newcomers += count;
            }
            What::Remove(count) => {
                let left = members.checked_sub(usize::from(count)).filter(|left| *left > 0);
                each.truncate(left.ok_or_else(|| format!("there are only {members} members"))?);
            }
            What::Protocol(protocol) => next.protocol = protocol,
            What::Scheme(SchemeKind::BlsThreshold) => return Err(dealt.to_owned()),
            What::Scheme(scheme) => next.scheme = scheme,
        }
        let weights = Weights::new(each).and_then(|new| new.with_redundancy(self.redundancy));
        next.weights = weights.map_err(|error| error.to_string())?;
        let fits = next.protocol.check_committee(&next.weights, next.scheme);
        fits.map_err(|error| error.to_string())?;
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
