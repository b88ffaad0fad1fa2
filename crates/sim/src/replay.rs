//! The parts of a command line that say what a run was of, for whoever wants to run it again.

use crate::mutants::Mutant;
use quorate_consensus::ProtocolKind;

/// Names the protocol, with a space before it; nothing for the default one.
#[must_use]
pub fn protocol(protocol: ProtocolKind) -> String {
    if protocol == ProtocolKind::default() {
        return String::new();
    }
    format!(" --protocol {protocol}")
}

/// Names the rule that was left out, with a space before it; nothing where none was.
#[must_use]
pub fn mutant(mutant: Option<Mutant>) -> String {
    mutant.map(|mutant| format!(" --mutant {mutant:?}")).unwrap_or_default()
}
