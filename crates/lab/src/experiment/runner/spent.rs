//! The set of what an authority locked: how quickly inputs go into it (paper 003, §4.5).

use super::{Measured, RunError, Runner, Signatures};
use crate::experiment::Setup;
use quorate_crypto::Digest;
use quorate_payments::{Locked, OutputId, SpentSet, TxId};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Inputs that each point inserts.
const INPUTS: u64 = 4_000_000;

/// Measures the set of spent inputs in memory.
#[derive(Clone, Copy, Debug)]
pub struct Spent;

impl Runner for Spent {
    fn is_parallel(&self) -> bool {
        false
    }

    fn estimate_s(&self, _setup: &Setup) -> f64 {
        3.0
    }

    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let room = usize::try_from(INPUTS).expect("millions");
        let set = SpentSet::new(room, [setup.seed, 0x9e37_79b9_7f4a_7c15]);
        let threads = u64::from(setup.threads);
        let began = Instant::now();
        thread::scope(|scope| {
            for first in 0..threads {
                let set = &set;
                scope.spawn(move || {
                    for number in (first..INPUTS).step_by(usize::from(setup.threads)) {
                        let input = OutputId { tx: scattered(number), index: 0 };
                        set.insert(input, Locked { tx: input.tx, sequence: number });
                    }
                });
            }
        });
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!(set.len(), INPUTS, "every input is another");
        let rate = INPUTS as f64 / seconds;
        Ok(Measured {
            numbers: [("inserts_per_s".to_owned(), rate)].into(),
            signatures: Signatures::Real,
            details: Value::Null,
        })
    }
}

/// As spread as a hash, and far quicker made.
fn scattered(number: u64) -> TxId {
    let mut bytes = [0; 32];
    for (chunk, salt) in bytes.chunks_mut(8).zip(1_u64..) {
        let mixed = (number ^ salt << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    TxId(Digest(bytes))
}
