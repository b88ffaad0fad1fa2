//! Load through the node library's client: real sessions over TLS.

use super::BenchError;
use super::config::{BenchConfig, SendTo};
use super::load::{Answer, Answers, Operations, Target};
use super::measure::OperationResult;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use quorate_crypto::{IdentitySecret, hash_parts};
use quorate_node::{CallResult, Client, ClientConfig, Completion, SessionSpec};
use quorate_types::{Committee, Outcome, ReplicaId};
use std::sync::Arc;
use std::time::Duration;

/// Time for the sessions to reach every validator.
const CONNECTING: Duration = Duration::from_secs(15);

/// The sessions of a load.
pub(super) struct Sessions {
    client: Client,
    count: usize,
}

/// Completions of their operations.
pub(super) struct Completions(Receiver<Completion>);

/// Opens as many sessions as the load needs, and waits until each reaches every validator. Keys
/// follow from the seed, first validators go round.
pub(super) fn open(
    config: &BenchConfig,
    committee: Arc<Committee>,
) -> Result<(Sessions, Completions), BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Client(error.to_string());
    let members = committee.size();
    let count = config.session_count();
    let spec = |index: usize| {
        let first = u16::try_from(index % members).expect("members are counted in 16 bits");
        SessionSpec::fresh(client_key(config.seed, index), ReplicaId(first))
    };
    let specs = (0..count).map(spec).collect();
    let client_config = ClientConfig {
        bundling: config.bundling(),
        retry_after: Duration::from_millis(config.retry_after_ms),
        send_to_all: config.send_to == SendTo::All,
        ..ClientConfig::new(committee, specs)
    };
    let client = match config.topology() {
        Some(topology) => Client::connect_emulated(&client_config, &topology),
        None => Client::connect(&client_config),
    };
    let client = client.map_err(|error| failed(&error))?;
    let running = members - config.absent().len();
    if !client.wait_connected(running, CONNECTING) {
        let reached = client.members_connected();
        let text = format!("after {} s one reaches {reached} of {running}", CONNECTING.as_secs());
        return Err(BenchError::Client(text));
    }
    let completions = Completions(client.completions().clone());
    Ok((Sessions { client, count }, completions))
}

fn client_key(seed: u64, index: usize) -> IdentitySecret {
    let index = index as u64;
    let parts: [&[u8]; 2] = [&seed.to_be_bytes(), &index.to_be_bytes()];
    IdentitySecret::from_seed(hash_parts("quorate v1 bench client", &parts).0)
}

impl Target for Sessions {
    fn sessions(&self) -> usize {
        self.count
    }

    fn submit(&mut self, session: usize, operations: Operations) -> bool {
        self.client.submit_many(session, operations).is_ok()
    }
}

impl Answers for Completions {
    fn next(&mut self, timeout: Duration) -> Option<Answer> {
        match self.0.recv_timeout(timeout) {
            Ok(completion) => {
                let Completion { session, tag: mark, .. } = completion;
                Some(Answer { session, mark, result: result(&completion) })
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The client is gone, and nothing more will come: do not turn round for ever.
                std::thread::sleep(timeout);
                None
            }
        }
    }
}

fn result(completion: &Completion) -> OperationResult {
    match &completion.result {
        CallResult::Overloaded { .. } | CallResult::DiskFull { .. } => OperationResult::NotTaken,
        CallResult::Completed(completed) => {
            let refused = matches!(completed.outcome, Outcome::Refused(_));
            OperationResult::Done { at: completion.at, refused }
        }
        CallResult::NotAdmitted { .. } => {
            OperationResult::Done { at: completion.at, refused: true }
        }
        CallResult::Answered(_) => unreachable!("a load asks no questions"),
    }
}
