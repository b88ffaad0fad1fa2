//! Recent answers, to reply to a repeated request at once instead of ordering it again.

use quorate_consensus::Occupancy;
use quorate_types::ClientId;
use quorate_types::request::Answer;
use std::collections::{BTreeMap, VecDeque};

/// Most answers that are kept.
const KEPT_MAX: usize = 4_096;
/// Most bytes of results kept.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The latest answers, oldest dropped first.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    answers: BTreeMap<(ClientId, u64), Answer>,
    order: VecDeque<(ClientId, u64)>,
    bytes: usize,
}

impl Replies {
    /// Keeps an answer for requests that come again.
    pub(crate) fn keep(&mut self, answer: Answer) {
        let key = (answer.client, answer.sequence);
        self.bytes += size(&answer);
        if let Some(former) = self.answers.insert(key, answer) {
            self.bytes -= size(&former);
        } else {
            self.order.push_back(key);
        }
        while self.order.len() > KEPT_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(dropped) = self.answers.remove(&oldest) {
                self.bytes -= size(&dropped);
            }
        }
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy::new("answers", self.answers.len(), KEPT_MAX)
    }

    /// The answer to a request, if it is kept.
    #[must_use]
    pub(crate) fn get(&self, client: ClientId, sequence: u64) -> Option<&Answer> {
        self.answers.get(&(client, sequence))
    }
}

fn size(answer: &Answer) -> usize {
    answer.results.iter().map(|outcome| outcome.bytes().len() + 32).sum::<usize>() + 200
}

#[cfg(test)]
mod tests;
