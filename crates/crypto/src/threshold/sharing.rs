//! The sharings that one member takes part in, and a value for each.

use std::fmt;

/// One of a committee's independent secrets, which its members share: SBFT's σ, τ and π.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sharing {
    /// σ: all but a few, who decide at once.
    Fast,
    /// τ: a quorum of the committee.
    Slow,
    /// π: enough to include an honest member, who vouch for what executing a block came to.
    Execution,
}

impl Sharing {
    /// All of them, in the order in which a member's keys are written.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Execution];
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Execution => "execution",
        })
    }
}

/// One thing for each sharing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BySharing<T> {
    /// Value for [`Sharing::Fast`], SBFT's σ.
    pub fast: T,
    /// Value for [`Sharing::Slow`], SBFT's τ.
    pub slow: T,
    /// Value for [`Sharing::Execution`], SBFT's π.
    pub execution: T,
}

impl<T> BySharing<T> {
    /// Calls `make` once for each sharing.
    pub fn from_fn(mut make: impl FnMut(Sharing) -> T) -> Self {
        Self {
            fast: make(Sharing::Fast),
            slow: make(Sharing::Slow),
            execution: make(Sharing::Execution),
        }
    }

    /// Calls `make` once for each sharing, up to the first error.
    pub fn try_from_fn<E>(mut make: impl FnMut(Sharing) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            fast: make(Sharing::Fast)?,
            slow: make(Sharing::Slow)?,
            execution: make(Sharing::Execution)?,
        })
    }

    /// The value for one sharing.
    pub fn get(&self, sharing: Sharing) -> &T {
        match sharing {
            Sharing::Fast => &self.fast,
            Sharing::Slow => &self.slow,
            Sharing::Execution => &self.execution,
        }
    }
}
