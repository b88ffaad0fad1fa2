use super::{LacksVersion, Versions};
use crate::put_in_force;
use crate::service::{BlockContext, Operation, Outcome, Service, State, StateError};
use quorate_crypto::Digest;
use quorate_crypto::mutants::{Mutant, assert_noticed};

/// A service with these versions, that notes which it was told.
struct Told {
    versions: Versions,
    told: Option<u64>,
}

impl Service for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn versions(&self) -> Versions {
        self.versions
    }

    fn execute_by(&mut self, version: u64) {
        self.told = Some(version);
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn execute(
        &mut self,
        _: &mut dyn State,
        _: BlockContext,
        _: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        Ok(Vec::new())
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(Digest::ZERO)
    }
}

/// Puts `needed` in force where a program has `has`; what the service was told.
fn told(has: Versions, needed: u64) -> Result<Option<u64>, LacksVersion> {
    let mut service = Told { versions: has, told: None };
    put_in_force(&mut service, needed).map(|()| service.told)
}

fn check_nothing_is_executed_by_a_version_that_is_lacked() {
    let has = Versions::new(2, 3);
    for needed in [0, 1, 4, u64::MAX] {
        let lacks = LacksVersion { service: "told".into(), needed, has };
        assert_eq!(told(has, needed), Err(lacks));
    }
}

#[test]
fn nothing_is_executed_by_a_version_that_is_lacked() {
    check_nothing_is_executed_by_a_version_that_is_lacked();
}

#[test]
fn executing_by_a_version_that_is_lacked_is_noticed() {
    assert_noticed(
        Mutant::ExecuteByLackedVersion,
        check_nothing_is_executed_by_a_version_that_is_lacked,
    );
}

#[test]
fn a_service_is_told_the_version_in_force() {
    for version in [2, 3] {
        assert_eq!(told(Versions::new(2, 3), version), Ok(Some(version)));
    }
    assert_eq!(told(Versions::FIRST, 1), Ok(Some(1)));
}

#[test]
fn the_refusal_says_what_is_needed_and_what_there_is() {
    let said = |has, needed| told(has, needed).unwrap_err().to_string();
    assert_eq!(
        said(Versions::FIRST, 2),
        "the committee executes 'told' by version 2, and this program has version 1 alone"
    );
    assert!(said(Versions::new(2, 3), 1).ends_with("this program has versions 2 to 3"));
}

#[test]
#[should_panic(expected = "a program has a version")]
fn no_program_has_none() {
    let _ = Versions::new(2, 1);
}
