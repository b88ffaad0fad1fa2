//! Jobs at work: carried out when their service begins, with what they cost.

use super::machine::requests;
use super::state::State;
use crate::clients::ClientTurn;
use crate::frames::Frame;
use crate::jobs::{Completion, Job};
use crate::service_times::MachineInput;
use crate::station::Station;
use crate::time::Nanos;
use quorate_crypto::counts;
use quorate_storage::Durability;
use quorate_types::machine::{Block, CombineJob};
use std::rc::Rc;
use std::time::Instant;

impl State {
    /// Carries a job out; returns how long it takes alone, and what comes of it at the end of its
    /// service.
    pub(crate) fn apply(
        &mut self,
        member: usize,
        station: Station,
        job: Job,
    ) -> (Nanos, Completion) {
        let _ = counts::take();
        let (us, completion) = match job {
            Job::Send { to, frame } => (self.send_us(&frame), Completion::Sent(to, frame)),
            Job::SendToRange { to, frame } => {
                let others = to.len() - usize::from(to.contains(&member));
                let us = others as f64 * self.send_us(&frame);
                (us, Completion::SentToRange(to, frame))
            }
            Job::Receive(frame) => {
                let net = self.prices.net;
                let parts = frame.each().count() as f64;
                let us =
                    parts * net.receive_frame_us + frame.bytes as f64 * net.receive_byte_ns / 1e3;
                (us, Completion::Received(frame))
            }
            Job::Check(frame) => return self.check_all(member, station, &frame),
            Job::Combine(job) => return self.combine(station, &job),
            Job::Handle(events) => self.machine_turn(member, Some(events)),
            Job::Timeout => self.machine_turn(member, None),
            Job::Execute(block) => self.execute(member, &block),
            Job::Snapshot(height) => (self.prices.execution.block_us, Completion::Snapshot(height)),
            Job::Write { entries, bytes } => {
                let log = self.prices.log;
                let syncs = self.durability == Durability::Fsync;
                let us = log.group_us
                    + entries as f64 * log.entry_us
                    + bytes as f64 * log.byte_ns / 1e3
                    + if syncs { log.sync_core_us } else { 0.0 };
                (us, Completion::Written)
            }
            Job::Submit { operations, at } => {
                let client = &mut self.nodes.clients[member];
                let turn = client.submit(self.now, at, operations, &mut self.latencies);
                self.client_turn(turn)
            }
            Job::ClientTimeout => {
                let turn = self.nodes.clients[member].timeout(self.now, &mut self.latencies);
                self.client_turn(turn)
            }
            Job::Reply(frame) => self.take_reply(member, &frame),
        };
        let counted = self.counted(station);
        ((us * 1e3 + counted) as Nanos, completion)
    }

    /// Microseconds of sending a frame to one peer.
    fn send_us(&self, frame: &Frame) -> f64 {
        let net = self.prices.net;
        net.send_frame_us + frame.bytes as f64 * net.send_byte_ns / 1e3
    }

    /// Combines shares; who checked each as it came pays for adding them alone.
    fn combine(&self, station: Station, job: &CombineJob) -> (Nanos, Completion) {
        let completion = Completion::Combined(Box::new(job.run()));
        let cost = if self.behaviour.checks_shares_at_once {
            self.prices.of(&counts::take().adding())
        } else {
            self.counted(station)
        };
        (cost as Nanos, completion)
    }

    /// Executes a height: charged to each validator, computed once for all.
    fn execute(&mut self, member: usize, block: &Block) -> (f64, Completion) {
        match self.execution.execute(block, self.nodes.validators[member].lives) {
            Ok(executed) => {
                let prices = self.prices.execution;
                let (block_us, operation_us) = prices.of(self.work);
                let us = block_us
                    + requests(block) as f64 * prices.request_us
                    + executed.operations as f64 * operation_us;
                let _ = counts::take();
                (us, Completion::Executed(executed))
            }
            Err(text) => (0.0, Completion::Broken(text)),
        }
    }

    /// The client's end of a channel takes a frame of replies.
    fn take_reply(&mut self, member: usize, frame: &Rc<Frame>) -> (f64, Completion) {
        match self.reply(member, frame) {
            Ok(turn) => {
                let (checked, checked_bytes) = turn.checked;
                let (us, completion) = self.client_turn(turn);
                let net = self.prices.net;
                let taking = net.receive_frame_us
                    + frame.bytes as f64 * net.receive_byte_ns / 1e3
                    + checked_bytes as f64 * net.codec_byte_ns / 1e3
                    + checked as f64 * (net.codec_us + self.prices.client.reply_us);
                (us + taking, completion)
            }
            Err(text) => (0.0, Completion::Broken(text)),
        }
    }

    /// A client's sessions take the replies in a frame.
    fn reply(&mut self, member: usize, frame: &Rc<Frame>) -> Result<ClientTurn, String> {
        let mut all = ClientTurn::default();
        for part in frame.each() {
            let Some(session) = self.session_of(part) else { continue };
            let client = &mut self.nodes.clients[member];
            let hashed = counts::peek().hashed_bytes;
            let began = self.service_times.as_ref().map(|_| Instant::now());
            let turn = client.reply(self.now, session, part, &mut self.latencies)?;
            let times = self.service_times.as_mut().filter(|_| turn.checked.0 > 0);
            if let (Some(began), Some(times)) = (began, times) {
                let hashed = counts::peek().hashed_bytes - hashed;
                times.add(MachineInput::Replied, began.elapsed(), turn.operations, hashed);
            }
            all.join(turn);
        }
        Ok(all)
    }

    /// Microseconds of a client's turn, and the requests that leave at its end.
    fn client_turn(&self, turn: ClientTurn) -> (f64, Completion) {
        let (prices, net) = (self.prices.client, self.prices.net);
        let bytes: usize = turn.sends.iter().map(|(_, frame)| frame.bytes).sum();
        let us = prices.operation_us * turn.operations as f64
            + prices.request_us * turn.requests as f64
            + net.send_frame_us * turn.sends.len() as f64
            + net.send_byte_ns * bytes as f64 / 1e3;
        (us, Completion::Requests(turn.sends))
    }
}
