//! Load through the node library's client: real sessions over TLS.

use super::measure::OperationResult;
use super::{Answer, Answers, Operations, Target};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use quorate_node::{CallResult, Client, Completion};
use quorate_types::Outcome;
use std::sync::Arc;
use std::time::Duration;

/// The sessions of a load.
#[derive(Debug)]
pub struct Sessions {
    client: Arc<Client>,
    count: usize,
}

/// Completions of their operations.
#[derive(Debug)]
pub struct Completions(Receiver<Completion>);

/// The so many sessions of a client as the ends of a load.
#[must_use]
pub fn ends(client: &Arc<Client>, count: usize) -> (Sessions, Completions) {
    let completions = Completions(client.completions().clone());
    (Sessions { client: Arc::clone(client), count }, completions)
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
