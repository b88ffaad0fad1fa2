//! PBFT as good as this engine makes it, and linear PBFT, its votes sent through collectors.
//!
//! Castro and Liskov, "Practical Byzantine Fault Tolerance"; paper 002, §I and §V-E. Rules: [`crate::windowed`].

use crate::windowed::Rules;

/// Votes go to everybody, and everybody adds them up.
pub const RULES: Rules = Rules { collectors: false, fast_path: false };

/// Votes go to collectors, who show everybody one certificate.
pub const LINEAR_RULES: Rules = Rules { collectors: true, fast_path: false };
