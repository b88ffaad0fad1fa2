//! Queries of the state: put to the service, and answered once the height that the answer is
//! true of is certified.

use crate::execution::Execution;
use crate::message::{Query, QueryResponse};
use bytes::Bytes;
use quorate_consensus::Occupancy;
use quorate_types::machine::{QueryJob, QueryResult};
use quorate_types::service::Proven;
use quorate_types::{ClientId, Header, Height};
use std::collections::{BTreeMap, VecDeque};

/// Most queries under way.
const UNDER_WAY_MAX: usize = 1_024;

/// Reason for giving no answer while the own state is wrong.
pub(crate) const DIVERGED: &str = "this validator's state is not the committee's: ask another";

/// The queries that this replica was asked.
#[derive(Debug, Default)]
pub(crate) struct PendingQueries {
    next_ticket: u64,
    /// Put to the service.
    asked: BTreeMap<u64, Asker>,
    /// Answered, and their heights not certified.
    waiting: BTreeMap<Height, Vec<(Asker, Header, Proven)>>,
    jobs: VecDeque<QueryJob>,
    outbox: VecDeque<(ClientId, QueryResponse)>,
}

#[derive(Clone, Debug)]
struct Asker {
    client: ClientId,
    id: u64,
    query: Bytes,
}

impl PendingQueries {
    /// Takes a client's query, if there is room.
    pub(crate) fn accept(&mut self, client: ClientId, Query { id, query }: Query) {
        if self.under_way() >= UNDER_WAY_MAX {
            self.refuse(client, id, "this validator has too many queries: ask another");
            return;
        }
        self.put(Asker { client, id, query });
    }

    fn under_way(&self) -> usize {
        self.asked.len() + self.waiting.values().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy::new("asked", self.under_way(), UNDER_WAY_MAX)
    }

    /// Says why there is no answer.
    pub(crate) fn refuse(&mut self, client: ClientId, id: u64, reason: &str) {
        self.outbox.push_back((client, QueryResponse { id, result: Err(reason.to_owned()) }));
    }

    fn put(&mut self, asker: Asker) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.jobs.push_back(QueryJob { ticket, query: asker.query.clone() });
        self.asked.insert(ticket, asker);
    }

    /// The service answered; nothing before anything was executed.
    pub(crate) fn on_result(
        &mut self,
        ticket: u64,
        asked: Option<QueryResult>,
        execution: &Execution,
    ) {
        let Some(asker) = self.asked.remove(&ticket) else { return };
        match asked {
            None => self.refuse(asker.client, asker.id, "nothing was executed yet"),
            Some(QueryResult { answer: Err(reason), .. }) => {
                self.refuse(asker.client, asker.id, &reason);
            }
            Some(QueryResult { header, answer: Ok(proven) }) => {
                let of_height = self.waiting.entry(header.height).or_default();
                of_height.push((asker, header, proven));
                self.settle(execution);
            }
        }
    }

    /// Answers what is certified now. An answer whose height was never certified here, while a
    /// later one was, is asked for anew.
    pub(crate) fn settle(&mut self, execution: &Execution) {
        if execution.diverged().is_some() {
            self.refuse_all();
        }
        // What is asked anew before a later height is executed gets the same answer again.
        let is_over =
            |height: &Height| *height < execution.height() && *height < execution.newest();
        let is_due = |height: &Height| execution.certificate(*height).is_some() || is_over(height);
        let due: Vec<Height> = self.waiting.keys().copied().filter(is_due).collect();
        for height in due {
            let certificate = execution.certificate(height).cloned();
            for (asker, header, proven) in self.waiting.remove(&height).into_iter().flatten() {
                match certificate.clone().filter(|certificate| certificate.header == header) {
                    Some(certificate) => {
                        let answered =
                            QueryResponse { id: asker.id, result: Ok((proven, certificate)) };
                        self.outbox.push_back((asker.client, answered));
                    }
                    None => self.put(asker),
                }
            }
        }
    }

    fn refuse_all(&mut self) {
        for (asker, ..) in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.refuse(asker.client, asker.id, DIVERGED);
        }
    }

    /// Next query to put to the service.
    pub(crate) fn poll_job(&mut self) -> Option<QueryJob> {
        self.jobs.pop_front()
    }

    /// Next answer to send.
    pub(crate) fn poll(&mut self) -> Option<(ClientId, QueryResponse)> {
        self.outbox.pop_front()
    }
}

#[cfg(test)]
mod tests;
