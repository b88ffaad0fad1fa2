//! Queries of the state: put to the service, and answered once the height that the answer is
//! true of is certified.

use crate::execution::Execution;
use crate::message::{Query, QueryResponse};
use crate::refusals::{Refusal, is_beyond_share, must_leave_room};
use bytes::Bytes;
use quorate_consensus::Occupancy;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{QueryJob, QueryResult};
use quorate_types::service::Proven;
use quorate_types::{ClientId, Header, Height};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Most queries under way.
const UNDER_WAY_MAX: usize = 1_024;

/// Reason for giving no answer before the first height.
pub const NOTHING_EXECUTED: &str = "nothing was executed yet";

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
    /// Number of both by client.
    shares: BTreeMap<ClientId, usize>,
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
    ///
    /// # Errors
    /// Why not; the client is told.
    pub(crate) fn accept(
        &mut self,
        client: ClientId,
        Query { id, query }: Query,
    ) -> Result<(), Refusal> {
        let room = self.check_room(client);
        match room {
            Ok(()) => {
                *self.shares.entry(client).or_default() += 1;
                self.put(Asker { client, id, query });
            }
            Err(refusal) => self.refuse(client, id, &refusal.to_string()),
        }
        room
    }

    fn check_room(&self, client: ClientId) -> Result<(), Refusal> {
        let held = self.under_way();
        if held >= UNDER_WAY_MAX {
            return Err(Refusal::Queries);
        }
        let room = (held, UNDER_WAY_MAX);
        match is_beyond_share(&self.shares, &client, 1, room)
            || must_leave_room(&self.shares, &client, room)
        {
            true => Err(Refusal::QueryShare),
            false => Ok(()),
        }
    }

    /// Ends a query that was taken, with its answer.
    fn end(&mut self, asker: &Asker, result: Result<(Proven, ExecutionCertificate), String>) {
        if let Entry::Occupied(mut share) = self.shares.entry(asker.client) {
            *share.get_mut() -= 1;
            if *share.get() == 0 {
                share.remove();
            }
        }
        self.outbox.push_back((asker.client, QueryResponse { id: asker.id, result }));
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
            None => self.end(&asker, Err(NOTHING_EXECUTED.to_owned())),
            Some(QueryResult { answer: Err(reason), .. }) => self.end(&asker, Err(reason)),
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
                    Some(certificate) => self.end(&asker, Ok((proven, certificate))),
                    None => self.put(asker),
                }
            }
        }
    }

    fn refuse_all(&mut self) {
        for (asker, ..) in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.end(&asker, Err(DIVERGED.to_owned()));
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
