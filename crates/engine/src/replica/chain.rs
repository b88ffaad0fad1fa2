//! Sending chains ahead of messages, and taking them in ([`crate::chain_piggyback`]).

use super::Replica;
use crate::chain_piggyback::CHAIN_BYTES_MAX;
use crate::message::{Blocks, Chain, FetchBlocks, Kept};
use bytes::Bytes;
use quorate_consensus::{Decided, Input, VerifiedRun};
use quorate_types::{BlockId, Body, Height, ReplicaId, Time};
use std::sync::Arc;

impl Replica {
    /// Keeps a decided block for those who may lack it.
    pub(super) fn keep_ancestor(&mut self, decided: &Decided) {
        if !self.chain_piggyback.travels() {
            return;
        }
        let held = |name| self.bodies.get(name).cloned();
        let bodies = decided.payload.bodies.iter().filter_map(held).collect();
        let height = decided.payload.header.height;
        self.chain_piggyback.decided(height, decided.record.clone(), bodies);
    }

    /// Chain to a certified block, as far as its receivers may lack it.
    pub(super) fn chain_for(&mut self, target: BlockId, certificate: Bytes) -> Chain {
        self.chain_piggyback.executed(self.config.id, self.schedule.executed());
        let (first, mut decided, mut bodies) = self.chain_piggyback.cut();
        decided.truncate(self.protocol.state().servable(&decided));
        let newest = self.schedule.decided();
        let kept = Kept { oldest: first, newest };
        let mut blocks = Vec::new();
        let tip = self.protocol.state().tip();
        if !decided.is_empty() {
            let height = Height(first.0.saturating_sub(1));
            let request = FetchBlocks { height, after: None, target: tip };
            blocks.push(Blocks { request, decided, tail: Vec::new(), kept });
        }
        let fits = |tail: &Vec<Bytes>| {
            !tail.is_empty() && tail.iter().map(Bytes::len).sum::<usize>() < CHAIN_BYTES_MAX / 2
        };
        if let Some(tail) = self.protocol.state().tail(tip, target).filter(fits) {
            let request = FetchBlocks { height: newest, after: Some(tip), target };
            blocks.push(Blocks { request, decided: Vec::new(), tail, kept });
            bodies.extend(self.undecided_bodies());
        }
        Chain { heights: self.chain_piggyback.heights(), certificate, blocks, bodies }
    }

    /// Bodies of undecided blocks, as many as there is room for.
    fn undecided_bodies(&self) -> Vec<Arc<Body>> {
        let mut bytes = 0;
        let names = self.protocol.state().undecided_bodies();
        let held = names.iter().filter_map(|name| self.bodies.get(name).cloned());
        held.take_while(|body| {
            bytes += body.raw.len();
            bytes <= CHAIN_BYTES_MAX
        })
        .collect()
    }

    pub(super) fn on_chain(
        &mut self,
        now: Time,
        from: ReplicaId,
        heights: &[Height],
        runs: Vec<(BlockId, Box<VerifiedRun>)>,
        bodies: &[Arc<Body>],
    ) {
        if !self.chain_piggyback.travels() {
            self.faults += 1;
            return;
        }
        self.chain_piggyback.learn(heights);
        for (target, run) in runs {
            if !self.protocol.state().has_block(target) && !self.is_sync_paused() {
                self.feed(now, Input::Run(run));
            }
        }
        for body in bodies {
            self.take_body(now, from, body);
        }
    }
}

#[cfg(test)]
mod tests;
