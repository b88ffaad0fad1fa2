//! Failure of whatever keeps locks, which is never an answer.

/// Failure to look an input up: it may be locked. The authority stops (★).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LookupFailed(pub String);
