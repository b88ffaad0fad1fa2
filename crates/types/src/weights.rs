//! Voting weights, and the thresholds that follow from them.
//!
//! Everything that other code asks a committee about "enough" goes back to the three numbers
//! computed here. With `W` the sum of all weights:
//!
//! | | weights differ | all weigh the same `w`, `n` members, `f = ⌊(n−1)/3⌋` |
//! |---|---|---|
//! | tolerated faulty weight `F` | `⌊(W−1)/3⌋` | `f·w` |
//! | quorum | `⌊2W/3⌋+1` | `(⌊(n+f)/2⌋+1)·w` |
//! | weak, certain to include an honest member | `F+1` | `f·w+1` |
//!
//! The two quorums are the same sets of members unless 3 divides `n`; there the rule by weight asks
//! for one member more. Both hold what the protocols need, for any faulty set of weight `F` at
//! most: two quorums share an honest member, and the honest are a quorum. ADR 7 says why there are
//! two rules.

use quorate_crypto::Bitmap;
use std::fmt;
use std::str::FromStr;

/// The checked weights of a committee's members, in index order, with their thresholds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    each: Vec<u64>,
    /// Weight of each member, if all weigh the same.
    same: Option<u64>,
    total: u64,
    faulty_max: u64,
    quorum: u64,
    redundancy: u64,
}

/// Reason for which weights are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// A committee of no members.
    #[error("a committee has at least one member")]
    None,
    /// A member that weighs nothing.
    #[error("member {0} has weight 0: give it 1 or more, or leave it out of the committee")]
    Zero(usize),
    /// The sum is too large for exact turns.
    #[error(
        "the weights add up to {0}, which is more than {max}: give smaller numbers in the same \
         proportion",
        max = Weights::TOTAL_MAX
    )]
    Total(u128),
    /// A committee of another size than redundancy asks for.
    #[error(
        "{members} members of one weight make no committee with redundancy {redundancy}: it takes \
         3f + {}, for an f of at least 1",
        2 * redundancy + 1
    )]
    Redundancy {
        /// Number of members that there are.
        members: u64,
        /// Number of redundant members that were asked for.
        redundancy: u64,
    },
    /// One member that needs no other.
    #[error(
        "member {member} has {weight} of the committee's weight of {total}, a quorum by itself: the \
         others' votes would decide nothing; give it at most {most}"
    )]
    Dictator {
        /// Index of the member.
        member: usize,
        /// Weight that it has.
        weight: u64,
        /// Weight of all members together.
        total: u64,
        /// The largest weight that it may have beside these others.
        most: u64,
    },
}

/// Warning to an operator about weights that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightsWarning {
    /// No member may fail in an arbitrary way.
    ToleratesNobody,
    /// These members outweigh what is tolerated: without any one of them there is no quorum.
    Indispensable {
        /// Indices of the members, ascending.
        members: Vec<usize>,
        /// The weight that may fail.
        faulty_max: u64,
    },
}

impl Weights {
    /// Largest sum of all weights. Members lead in exact proportion to their weights, and the order
    /// of turns is a table with one entry a unit.
    pub const TOTAL_MAX: u64 = 65_536;

    /// Checks weights and computes their thresholds.
    ///
    /// # Errors
    /// No weights at all, a weight of 0, a sum beyond [`Weights::TOTAL_MAX`], or a member that is a
    /// quorum by itself in a committee of several.
    pub fn new(each: Vec<u64>) -> Result<Self, WeightsError> {
        if each.is_empty() {
            return Err(WeightsError::None);
        }
        if let Some(member) = each.iter().position(|weight| *weight == 0) {
            return Err(WeightsError::Zero(member));
        }
        let sum: u128 = each.iter().map(|weight| u128::from(*weight)).sum();
        let total = u64::try_from(sum).unwrap_or(u64::MAX);
        if total > Self::TOTAL_MAX {
            return Err(WeightsError::Total(sum));
        }
        let (faulty_max, quorum) = thresholds(&each, total);
        let same = are_equal(&each).then(|| each[0]);
        let weights = Self { each, same, total, faulty_max, quorum, redundancy: 0 };
        weights.refuse_dictator()?;
        Ok(weights)
    }

    /// Adds redundancy: so many members more than faults alone ask for (paper 002: `c` of
    /// `n = 3f+2c+1`). The fast path goes on while as many are slow or dead. Fewer of the others
    /// may be faulty.
    ///
    /// # Errors
    /// When members weigh differently, or so many members are no `3f+2c+1` for an `f` of at least
    /// 1.
    pub fn with_redundancy(self, redundancy: u64) -> Result<Self, WeightsError> {
        if redundancy == 0 {
            return Ok(self);
        }
        let members = self.members() as u64;
        let spare = redundancy.checked_mul(2).and_then(|two| members.checked_sub(two + 1));
        let faulty = spare.filter(|rest| *rest >= 3 && rest % 3 == 0).map(|rest| rest / 3);
        let Some(faulty) = faulty.filter(|_| self.are_equal()) else {
            return Err(WeightsError::Redundancy { members, redundancy });
        };
        let each = self.each[0];
        let quorum = (u64::midpoint(members, faulty) + 1) * each;
        Ok(Self { faulty_max: faulty * each, quorum, redundancy: redundancy * each, ..self })
    }

    /// Everybody weighs 1.
    ///
    /// # Panics
    /// When there are no members, or more than [`Weights::TOTAL_MAX`].
    #[must_use]
    pub fn equal(members: usize) -> Self {
        Self::new(vec![1; members]).expect("a committee of equals is sound")
    }

    /// Number of members that are weighed.
    #[must_use]
    pub fn members(&self) -> usize {
        self.each.len()
    }

    /// The weights in index order.
    #[must_use]
    pub fn each(&self) -> &[u64] {
        &self.each
    }

    /// Returns `true` if all members weigh the same.
    #[must_use]
    pub fn are_equal(&self) -> bool {
        self.same.is_some()
    }

    /// Weight of all members together: `W`.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The most that faulty members may weigh together: `F`, less than a third of the total.
    #[must_use]
    pub fn faulty_max(&self) -> u64 {
        self.faulty_max
    }

    /// The weight of a quorum: two of them share members of more than the faulty weight.
    #[must_use]
    pub fn quorum(&self) -> u64 {
        self.quorum
    }

    /// The smallest weight that is certain to include an honest member: `F+1`.
    #[must_use]
    pub fn weak(&self) -> u64 {
        self.faulty_max + 1
    }

    /// Number of members more than faults alone ask for (paper 002: `c`).
    #[must_use]
    pub fn redundant_members(&self) -> u64 {
        self.redundancy / self.each[0]
    }

    /// The weight of those without whom a decision needs no second vote: all but the redundant
    /// (paper 002: `3f+c+1`).
    #[must_use]
    pub fn fast(&self) -> u64 {
        self.total - self.redundancy
    }

    /// Weight that is certain to be left of a fast decision among any [`Weights::honest`] reports
    /// of it: that of honest members (paper 002: `f+c+1`).
    #[must_use]
    pub fn fast_remnant(&self) -> u64 {
        self.weak() + self.redundancy
    }

    /// Least weight of the honest: as much answers whatever the faulty do (`n−f`).
    #[must_use]
    pub fn honest(&self) -> u64 {
        self.total - self.faulty_max
    }

    /// The weight of one member, 0 for a stranger.
    #[must_use]
    pub fn of(&self, member: usize) -> u64 {
        self.each.get(member).copied().unwrap_or(0)
    }

    /// The weight of a set of members, each counted once.
    #[must_use]
    pub fn of_all(&self, members: &Bitmap) -> u64 {
        match self.same {
            Some(each) if members.members() <= self.members() => each * members.count() as u64,
            _ => members.iter().map(|member| self.of(member)).sum(),
        }
    }

    /// Warning for the operator of such a committee; `None` if all is well.
    #[must_use]
    pub fn warning(&self) -> Option<WeightsWarning> {
        let outweighs = |member: &usize| self.of(*member) > self.faulty_max;
        let members: Vec<usize> = (0..self.members()).filter(outweighs).collect();
        if members.len() == self.members() {
            return Some(WeightsWarning::ToleratesNobody);
        }
        let faulty_max = self.faulty_max;
        (!members.is_empty()).then_some(WeightsWarning::Indispensable { members, faulty_max })
    }

    fn refuse_dictator(&self) -> Result<(), WeightsError> {
        let dictator = self.each.iter().position(|weight| *weight >= self.quorum);
        match dictator.filter(|_| self.members() > 1) {
            Some(member) => {
                let (weight, total) = (self.of(member), self.total);
                // No more than two thirds of it all, which is twice what the others have.
                let most = 2 * (total - weight);
                Err(WeightsError::Dictator { member, weight, total, most })
            }
            None => Ok(()),
        }
    }
}

/// Separator between the weights and the number of redundant members.
const REDUNDANT: &str = ";c=";

/// The tolerated faulty weight and the quorum's.
fn thresholds(each: &[u64], total: u64) -> (u64, u64) {
    if !are_equal(each) {
        return ((total - 1) / 3, 2 * total / 3 + 1);
    }
    let members = each.len() as u64;
    let faulty = (members - 1) / 3;
    (faulty * each[0], (u64::midpoint(members, faulty) + 1) * each[0])
}

fn are_equal(each: &[u64]) -> bool {
    each.iter().all(|weight| *weight == each[0])
}

/// Writes weights as [`Weights::from_str`] reads them: `3,1,1,1`, or `1,1,1,1,1,1;c=1`.
impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.each.iter().map(u64::to_string).collect();
        f.write_str(&texts.join(","))?;
        match self.redundant_members() {
            0 => Ok(()),
            redundant => write!(f, "{REDUNDANT}{redundant}"),
        }
    }
}

impl FromStr for Weights {
    type Err = String;

    /// Reads whole numbers with commas between them, one a member; and after `;c=` how many of the
    /// members are redundant, if any are.
    fn from_str(text: &str) -> Result<Self, String> {
        let (text, redundant) = text.split_once(REDUNDANT).unwrap_or((text, "0"));
        let refused = || format!("'{redundant}' is no number of redundant members");
        let redundant = redundant.trim().parse::<u64>().map_err(|_| refused())?;
        let weight = |word: &str| {
            let refused = || format!("'{word}' is no weight: write whole numbers, as in 3,1,1,1");
            word.trim().parse::<u64>().map_err(|_| refused())
        };
        let each = text.split(',').map(weight).collect::<Result<Vec<_>, _>>()?;
        let weights = Self::new(each).and_then(|weights| weights.with_redundancy(redundant));
        weights.map_err(|error| error.to_string())
    }
}

impl fmt::Display for WeightsWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToleratesNobody => f.write_str("this committee tolerates no faulty member"),
            Self::Indispensable { members, faulty_max } => {
                let names: Vec<String> = members.iter().map(usize::to_string).collect();
                let who = match names.as_slice() {
                    [one] => format!("member {one}, which weighs"),
                    several => format!("any one of members {}, which weigh", several.join(", ")),
                };
                write!(f, "no quorum without {who} more than what may fail ({faulty_max})")
            }
        }
    }
}

#[cfg(test)]
mod tests;
