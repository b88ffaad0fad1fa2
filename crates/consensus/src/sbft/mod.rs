//! SBFT: linear PBFT with a fast path; with execution certificates, which are the engine's, a client
//! needs one answer.
//!
//! Paper 002. Rules: [`crate::windowed`].

use crate::windowed::Rules;

/// Votes go to collectors; those of all but the redundant members decide at once.
pub const RULES: Rules = Rules { collectors: true, fast_path: true };
