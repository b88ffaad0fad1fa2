//! Certificates alone, one replica at its surface, and a committee of replicas.

mod certificates;
mod certifier;
mod committee;
mod members;

/// Result of a rule's check; the mutants must turn it into an `Err`.
type Check = Result<(), String>;

fn ensure(holds: bool, what: &str) -> Check {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Each rule that can be left out, with the check that notices.
#[test]
fn every_rule_left_out_is_noticed() {
    use quorate_crypto::mutants::{self, Mutant};

    let table: [(Mutant, fn() -> Check); 3] = [
        (
            Mutant::AcknowledgeBeforeStored,
            members::check_nothing_is_acknowledged_before_it_is_stored,
        ),
        (Mutant::AvailableBelowWeak, certificates::check_a_certificate_needs_weak_weight),
        (Mutant::AvailableByNumber, members::check_an_uncovered_body_gets_no_vote),
    ];
    for (mutant, check) in table {
        mutants::set(Some(mutant));
        let found = check();
        mutants::set(None);
        assert!(found.is_err(), "{mutant:?} is missed by nobody");
    }
}
