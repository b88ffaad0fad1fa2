//! How long a killed validator takes to come back.
//!
//! After the load, when every validator has executed the same: one is ended by SIGKILL and started
//! again, and asked until it has executed what it had before, misses nothing, and has the others'
//! word that it may sign. The files that it reads are in the system's cache.

use super::committee::Committee;
use super::{BenchError, Progress};
use crate::http;
use crate::status::ValidatorStatus;
use quorate_report::Report;
use quorate_report::results::beside::Restarted;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks: the error of the result.
const INTERVAL: Duration = Duration::from_millis(5);
/// Time for one answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Times that it is asked for what it has executed before it is killed.
const ASKED: u64 = 5;
/// Time to come back, after which it will not.
const COMING_BACK: Duration = Duration::from_secs(120);

/// Kills the last of the validators that ran all along, and times its start.
pub(super) fn time(
    committee: &mut Committee,
    report: &Report,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Restarted, BenchError> {
    let healthy = report.validators.iter().filter(|validator| validator.state == "healthy");
    let validator = healthy.map(|validator| validator.id).next_back().unwrap_or(0);
    committee.await_level("the load", interrupted)?;
    let address = committee.http()[usize::from(validator)].clone();
    let status = (0..ASKED).find_map(|_| ask(&address));
    let silent = || BenchError::NotLevel { seconds: ASKED * TIMEOUT.as_secs(), what: "the load" };
    let before = status.ok_or_else(silent)?.operations;
    progress.say(format!("killing validator {validator}, and starting it again"));
    let index = usize::from(validator);
    committee.processes.kill(index).map_err(BenchError::killing)?;
    let began = Instant::now();
    committee.processes.start_one(index).map_err(BenchError::starting)?;
    while !ask(&address).is_some_and(|status| is_back(&status, before)) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(BenchError::Interrupted);
        }
        committee.check_alive()?;
        if began.elapsed() >= COMING_BACK {
            let seconds = COMING_BACK.as_secs();
            return Err(committee.explain(BenchError::NotBack { validator, seconds }, validator));
        }
        thread::sleep(INTERVAL);
    }
    let seconds = (began.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0;
    Ok(Restarted { validator, operations: before, seconds })
}

/// Its `/readyz` looks but once a second.
fn is_back(status: &ValidatorStatus, operations: u64) -> bool {
    status.operations >= operations && !status.syncing && status.witnesses.are_clear()
}

fn ask(address: &str) -> Option<ValidatorStatus> {
    serde_json::from_str(&http::get(address, "/status", TIMEOUT).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::is_back;
    use crate::status::{ValidatorStatus, Witnesses};

    #[test]
    fn whoever_misses_something_or_may_not_sign_is_not_back() {
        let clear = Witnesses { state: "clear".to_owned(), ..Witnesses::default() };
        let back =
            ValidatorStatus { operations: 7, witnesses: clear, ..ValidatorStatus::default() };
        assert!(is_back(&back, 7));
        assert!(!is_back(&back, 8), "it has executed less than before");
        assert!(!is_back(&ValidatorStatus { syncing: true, ..back.clone() }, 7));
        for state in ["", "unasked", "waiting", "contradicted"] {
            let witnesses = Witnesses { state: state.to_owned(), ..Witnesses::default() };
            assert!(!is_back(&ValidatorStatus { witnesses, ..back.clone() }, 7), "{state}");
        }
    }
}
