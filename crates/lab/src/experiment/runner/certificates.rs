//! Certificates alone: their bytes, and what making and checking them costs on this machine.

use super::{Measured, RunError, Runner, Signatures};
use crate::experiment::Setup;
use crate::stopwatch;
use quorate_crypto::{
    Bitmap, Certificate, KeyCache, Policy, Scheme, SchemeKind, Share, VotingSecret,
    committee_scheme,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// About as long as a vote's signed bytes.
const MESSAGE: &[u8] =
    b"a vote for one block, about as long as a real one is: epoch, view, phase, block id";

/// Spans that an operation is repeated in; the best counts.
const SPANS: u32 = 5;

/// Operations that are repeated.
const OPERATIONS: u64 = 5;

/// Measures certificates, made and checked alone.
#[derive(Clone, Copy, Debug)]
pub struct Certificates;

impl Runner for Certificates {
    /// One at a time: they are timed.
    fn is_parallel(&self) -> bool {
        false
    }

    fn estimate_s(&self, setup: &Setup) -> f64 {
        // Loading a BLS committee verifies a proof of possession each.
        let member_ms = if setup.scheme == SchemeKind::Bls { 1.6 } else { 0.1 };
        let loading = f64::from(setup.validators) * member_ms;
        (loading + (OPERATIONS * setup.measure_ms) as f64) / 1_000.0
    }

    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError> {
        let committee = Committee::new(setup);
        let certificate = committee.certificate(setup);
        let mut numbers = committee.sizes(&certificate, setup.keys_inside);
        for (name, work) in committee.operations(&certificate, setup) {
            if interrupted.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            numbers.insert(name.to_owned(), best_us(setup, work.as_ref()));
        }
        if let Some(us) = aggregate_us(setup, &numbers) {
            numbers.insert("aggregate_us".to_owned(), us);
        }
        Ok(Measured { numbers, signatures: Signatures::Real, details: Value::Null })
    }
}

/// Cost of adding up a certificate's shares alone: a leader that sums first reads the shares, adds
/// them and their keys up, and checks the sum as it would a certificate. Ed25519 has no sum.
/// Nothing where something else on the machine delayed the checks by more than that.
fn aggregate_us(setup: &Setup, numbers: &BTreeMap<String, f64>) -> Option<f64> {
    let sums = setup.scheme == SchemeKind::Bls && setup.settings.verify == Policy::Aggregate;
    let us = numbers["combine_us"] - numbers["check_us"];
    (sums && us > 0.0).then_some(us)
}

fn best_us(setup: &Setup, work: &dyn Fn()) -> f64 {
    let span = Duration::from_millis(setup.measure_ms) / SPANS;
    stopwatch::microseconds(SPANS as usize, span, work)
}

/// Something to be repeated, and the metric that its time becomes.
type Operation<'a> = (&'static str, Box<dyn Fn() + 'a>);

struct Committee {
    secrets: Vec<VotingSecret>,
    scheme: Arc<dyn Scheme>,
}

impl Committee {
    fn new(setup: &Setup) -> Self {
        let seed = |member: u16| {
            let mut bytes = [1; 32];
            bytes[..8].copy_from_slice(&setup.seed.to_le_bytes());
            bytes[8..10].copy_from_slice(&member.to_le_bytes());
            bytes
        };
        let secrets: Vec<VotingSecret> = (0..setup.validators)
            .map(|member| VotingSecret::from_seed(setup.scheme, &seed(member)))
            .collect();
        let keys: Vec<_> =
            secrets.iter().map(|one| (one.public(), one.prove_possession())).collect();
        let cache: KeyCache = setup.settings.comparison.key_cache;
        let scheme = committee_scheme(setup.scheme, &keys, cache).expect("keys made here");
        Self { secrets, scheme }
    }

    /// Shares of all but the first so many members.
    fn shares(&self, absent: usize) -> Vec<(usize, Share)> {
        let signers = absent..self.secrets.len();
        signers.map(|signer| (signer, self.secrets[signer].sign(MESSAGE))).collect()
    }

    fn certificate(&self, setup: &Setup) -> Certificate {
        let nobody = Bitmap::new(self.secrets.len());
        let shares = self.shares(setup.absentees());
        let combined = self.scheme.combine(MESSAGE, &shares, &nobody, setup.settings.verify);
        combined.certificate.expect("honest shares")
    }

    /// Bytes as they are sent and kept, and who signed.
    fn sizes(&self, certificate: &Certificate, keys_inside: bool) -> BTreeMap<String, f64> {
        let encoded = borsh::to_vec(certificate).expect("memory").len();
        let signers = certificate.signers.count();
        let bytes = if keys_inside {
            // Keys in place of the bitmap, each as long as it is, without a length of its own.
            let bitmap = borsh::to_vec(&certificate.signers).expect("memory").len();
            let keys = certificate.signers.iter().map(|signer| self.secrets[signer].public());
            encoded - bitmap + keys.map(|key| key.0.len()).sum::<usize>()
        } else {
            encoded
        };
        let numbers = [
            ("certificate_bytes", bytes),
            ("signers", signers),
            ("absentees", self.secrets.len() - signers),
        ];
        numbers.map(|(name, number)| (name.to_owned(), number as f64)).into()
    }

    fn operations<'a>(
        &'a self,
        certificate: &'a Certificate,
        setup: &'a Setup,
    ) -> Vec<Operation<'a>> {
        let shares = self.shares(setup.absentees());
        let (signer, share) = shares[0].clone();
        let nobody = Bitmap::new(self.secrets.len());
        let mut operations: Vec<Operation<'a>> = vec![
            ("sign_us", Box::new(|| drop(self.secrets[0].sign(MESSAGE)))),
            (
                "one_check_us",
                Box::new(move || {
                    self.scheme.verify_share(MESSAGE, signer, &share).expect("an honest share");
                }),
            ),
            (
                "check_us",
                Box::new(|| {
                    self.scheme.verify(MESSAGE, certificate).expect("an honest certificate");
                }),
            ),
            (
                "combine_us",
                Box::new(move || {
                    let policy = setup.settings.verify;
                    drop(self.scheme.combine(MESSAGE, &shares, &nobody, policy));
                }),
            ),
        ];
        if self.scheme.signers_key(&certificate.signers).is_some() {
            let key = || drop(self.scheme.signers_key(&certificate.signers));
            operations.push(("key_us", Box::new(key)));
        }
        operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_up_is_what_collecting_costs_beyond_the_check() {
        let numbers = |combine_us, check_us| {
            let numbers = [("combine_us", combine_us), ("check_us", check_us)];
            numbers.map(|(name, us)| (name.to_owned(), us)).into()
        };
        let mut setup = Setup { scheme: SchemeKind::Bls, ..Setup::default() };
        assert_eq!(aggregate_us(&setup, &numbers(1_500.0, 1_200.0)), Some(300.0));
        assert_eq!(
            aggregate_us(&setup, &numbers(1_100.0, 1_200.0)),
            None,
            "that was no quiet machine"
        );
        setup.settings.verify = Policy::Each;
        assert_eq!(aggregate_us(&setup, &numbers(9_000.0, 1_200.0)), None, "each is checked");
        let setup = Setup { scheme: SchemeKind::Ed25519, ..Setup::default() };
        assert_eq!(aggregate_us(&setup, &numbers(300.0, 200.0)), None, "nothing is added up");
    }
}
