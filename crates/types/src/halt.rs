//! Why a replica stops for good.

use crate::Height;

/// Reason for which a machine stopped itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// More than f members are faulty: the evidence is complete, nothing after it can be trusted.
    #[error(
        "two conflicting decisions at {height}: more members are faulty than the committee tolerates; evidence: {evidence}"
    )]
    ConflictingDecisions {
        /// Height that both decide.
        height: Height,
        /// Both, for the operator.
        evidence: String,
    },
    /// The same, of what an epoch ended with.
    #[error(
        "two conflicting hand-overs at {height}: more members are faulty than the committee tolerates; evidence: {evidence}"
    )]
    ConflictingHandOvers {
        /// Last height of the epoch, by the one that was here first.
        height: Height,
        /// Both in full, for the operator.
        evidence: String,
    },
    /// The disk gave back something else than this replica wrote.
    #[error(
        "the recovered records contradict each other: {0}; this validator must not vote again under its present key"
    )]
    CorruptRecovery(String),
}
