//! Catching up and helping others to: blocks, snapshots, and what the disk may delete.
//!
//! A replica that fell behind fetches blocks forwards ([`crate::sync`]) and their bodies by name.
//! When members of at least the weak weight say that they no longer keep the next block, or the
//! next body has been asked of everybody again and again, it fetches a snapshot instead
//! ([`crate::snapshots`]), and goes on with blocks from there.

use super::{Reading, Replica, SyncStatus};
use crate::Message;
use crate::message::{Blocks, Chunk, FetchBlocks, Kept, Offer};
use crate::replies::Replies;
use crate::snapshots::{Offered, SnapshotFetch, Taken};
use crate::sync::BLOCKS_MAX;
use bytes::Bytes;
use quorate_consensus::{Input, VerifiedRun};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::machine::{DecidedRecord, ExecutedUpTo, ReadAnswer, ReadItem, Release, Task};
use quorate_types::{Effect, Height, Manifest, Peer, Recipients, ReplicaId, Time};

/// Blocks read for one answer when none of the first proves the others.
const BLOCKS_READ_MAX: u64 = 4_096;
/// Bytes of blocks in one answer.
const BLOCKS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Heights decided and not executed, beyond which no more blocks are fetched.
const BACKLOG_MAX: u64 = 256;
/// Execution certificates shown with one answer, beside the last.
const PROOFS_MAX: u64 = 63;
/// Number of times that each member is asked for a body in vain before the body counts as gone.
const BODY_ROUNDS_MAX: u32 = 3;

impl Replica {
    // ---- what may be released -------------------------------------------------------------------

    /// The state store has these heights durably: their bodies are executed.
    pub(super) fn recall(&mut self, executed: &ExecutedUpTo) {
        self.durable = executed.height();
        self.note_end_of(&executed.decided);
        for record in &executed.recent {
            if let Some(payload) = self.protocol.state().record_payload(&record.bytes) {
                self.bodies.recall(&payload.bodies);
                self.schedule.recall(record.height, payload.bodies);
            }
        }
    }

    /// Tells the host what is executed durably and covered by a snapshot. What only members that
    /// fell behind can need is kept from the older snapshot on: whoever installs it goes on from
    /// there.
    pub(super) fn release(&mut self) {
        let bodies = if self.schedule.has_settled(self.durable) {
            self.schedule.settle(self.durable, &self.protocol.state().undecided_bodies())
        } else {
            Vec::new()
        };
        let below = self.releasable_below();
        if bodies.is_empty() && below <= self.released_below {
            return;
        }
        self.released_below = below;
        self.effects.push_back(Effect::Release(Release { below, bodies }));
    }

    /// Whoever decided the end of the epoch signs nothing in it any more: members and newcomers
    /// that lack a height may have nobody else in this epoch, and its last snapshot nobody to vouch
    /// for it beside those who have left for the next one. What is kept goes there.
    fn releasable_below(&self) -> Height {
        if self.changes.stop().is_some() {
            return self.released_below;
        }
        let oldest = self.snapshots_on_disk.heights.first();
        oldest.map_or(Height(0), |oldest| self.durable.min(*oldest))
    }

    // ---- what it shows --------------------------------------------------------------------------

    pub(super) fn is_syncing(&self) -> bool {
        self.sync.is_behind() || self.snapshots.is_active()
    }

    pub(super) fn sync_status(&self) -> SyncStatus {
        if !self.is_syncing() {
            return SyncStatus::default();
        }
        let (from, decided) = (self.schedule.executed(), self.schedule.decided());
        let to = self.snapshots.target().unwrap_or(self.sync.newest()).max(decided);
        let why = if self.snapshots.is_active() {
            self.snapshots.describe()
        } else if self.is_backlogged() {
            format!("bodies of {} decided heights", decided.0 - from.0)
        } else {
            format!("blocks after {decided}")
        };
        SyncStatus { from, to, why }
    }

    // ---- blocks ---------------------------------------------------------------------------------

    pub(super) fn serve_blocks(&mut self, to: Peer, request: FetchBlocks) {
        self.prove_state(to, request);
        if request.height < self.schedule.decided() {
            self.read_blocks(to, request, BLOCKS_MAX);
            return;
        }
        let tail =
            request.after.and_then(|after| self.protocol.state().tail(after, request.target));
        let newest = self.schedule.decided();
        // Nothing was asked that could have been pruned.
        let kept = Kept { oldest: Height(0), newest };
        let tail = tail.unwrap_or_default();
        let blocks = Blocks { request, decided: Vec::new(), tail, kept };
        self.send(to.into(), Message::Blocks(blocks));
    }

    /// Nobody shows a learner what its heights must have come to: it hears it as it asks for more,
    /// of each height once it is certified here.
    fn prove_state(&mut self, to: Peer, request: FetchBlocks) {
        let Peer::Learner(learner) = to else { return };
        if request.after.is_none() {
            return;
        }
        let last = request.height;
        if self.changes.stop().is_some_and(|stop| stop.height <= last) {
            self.hand_overs.learner_is_there(learner);
            self.show_hand_over(to);
        }
        let shown = self.proven.get(&learner).copied().unwrap_or_default().next();
        // The last one again: it may have been lost, and nothing may come after it.
        let first = shown.max(Height(last.0.saturating_sub(PROOFS_MAX))).min(last);
        for height in (first.0..=last.0).map(Height) {
            if let Some(certificate) = self.execution.certificate(height).cloned() {
                self.proven.insert(learner, height);
                self.send(to.into(), Message::ExecutionProof(certificate));
            }
        }
    }

    /// Reads the decided records from the asker's last one on: if ours at that height is another,
    /// the asker must see it.
    fn read_blocks(&mut self, to: Peer, request: FetchBlocks, count: u64) {
        let first = if request.after.is_some() { request.height } else { request.height.next() };
        // Those of an epoch before are none that an asker of this one could check.
        let first = first.max(self.config.verifier.start().height().next());
        let last = self.schedule.decided().0.min(request.height.0.saturating_add(count));
        let items = (first.0..=last).map(|h| ReadItem::Decided(Height(h))).collect();
        self.read_for(Reading::Blocks(to, request, count), items);
    }

    pub(super) fn send_blocks(
        &mut self,
        to: Peer,
        request: FetchBlocks,
        count: u64,
        answer: ReadAnswer,
    ) {
        let kept = Kept { oldest: answer.oldest, newest: self.schedule.decided() };
        let is_here = kept.oldest <= request.height.next();
        let asked = |item: &ReadItem| *item == ReadItem::Decided(request.height);
        let mut items = answer.items;
        // The asker's own last one may be gone already: it only shows whether we agree.
        if items.first().is_some_and(|(item, found)| asked(item) && found.is_none()) {
            items.remove(0);
        }
        let mut bytes = 0;
        let mut decided: Vec<Bytes> = items
            .into_iter()
            .map_while(|(_, found)| found)
            .take_while(|record| {
                bytes += record.len();
                bytes <= BLOCKS_BYTES_MAX
            })
            .collect();
        let agrees = |record: &Bytes| self.protocol.state().record_id(record) == request.after;
        if decided.first().is_some_and(agrees) {
            decided.remove(0);
        }
        decided.truncate(self.protocol.state().servable(&decided));
        if !is_here {
            // Blocks whose bodies nobody can get from us would only hold the asker up.
            decided.clear();
        }
        let more = request.height.0.saturating_add(count) < kept.newest.0;
        if is_here && decided.is_empty() && more && count < BLOCKS_READ_MAX {
            // A long stretch that a single certificate decided: its proof comes later.
            self.read_blocks(to, request, count * 8);
            return;
        }
        let blocks = Blocks { request, decided, tail: Vec::new(), kept };
        self.send(to.into(), Message::Blocks(blocks));
    }

    pub(super) fn on_blocks(
        &mut self,
        now: Time,
        from: ReplicaId,
        request: FetchBlocks,
        kept: Kept,
        run: Box<VerifiedRun>,
    ) {
        if let Some(run) = self.sync.answered(now, from, request, kept, run) {
            self.feed(now, Input::Run(run));
        }
        while !self.is_backlogged()
            && let Some(run) = self.sync.take_ahead(self.schedule.decided())
        {
            let before = self.schedule.decided();
            self.feed(now, Input::Run(run));
            if self.schedule.decided() == before {
                break;
            }
        }
        self.want_snapshot_if_gone(now);
    }

    /// Decided heights wait in memory for their bodies: no more are fetched while many do.
    pub(super) fn is_backlogged(&self) -> bool {
        self.schedule.decided().0 - self.schedule.executed().0 > BACKLOG_MAX
    }

    /// Blocks are not asked for while bodies are missing for many, or a snapshot is chosen; nor by
    /// who has yet to execute the epoch's last height: the next question says that it has.
    pub(super) fn is_sync_paused(&self) -> bool {
        let is_ending =
            self.changes.stop().is_some() && self.schedule.executed() < self.schedule.decided();
        is_ending || self.is_backlogged() || self.snapshots.target().is_some()
    }

    pub(super) fn sync_due(&mut self, now: Time) {
        if self.is_sync_paused() {
            return;
        }
        let (height, tip) = (self.schedule.decided(), self.protocol.state().tip());
        let protocol = self.protocol.state();
        let fetches = self.sync.due(now, height, tip, |block| protocol.has_block(block));
        for (member, request) in fetches {
            self.send(Recipients::One(member), Message::FetchBlocks(request));
        }
    }

    // ---- snapshots ------------------------------------------------------------------------------

    fn want_snapshot_if_gone(&mut self, now: Time) {
        let committee = self.config.verifier.committee();
        let gone = self.sync.gone().iter().map(|member| member.index());
        if committee.includes_honest(&Bitmap::from_indices(committee.size(), gone)) {
            self.snapshots.start(now);
        }
    }

    /// Asks for snapshots and chunks, and installs what is complete.
    pub(super) fn snapshots_due(&mut self, now: Time) {
        self.want_snapshot_if_stuck(now);
        // Once one is chosen it is fetched: it ends by itself where execution overtakes it.
        if self.snapshots.target().is_none() && !self.needs_snapshot() {
            self.snapshots.stop();
        }
        for fetch in self.snapshots.due(now, self.schedule.executed()) {
            match fetch {
                SnapshotFetch::Name(above) => {
                    self.send(Recipients::All, Message::FetchSnapshots(above));
                }
                SnapshotFetch::Chunk(member, snapshot, index) => {
                    let message = Message::FetchChunk(snapshot, index);
                    self.send(Recipients::One(member), message);
                }
            }
        }
        let surplus = self.snapshots.take_surplus();
        if !surplus.is_empty() {
            self.effects.push_back(Effect::Task(Task::Unstage(surplus)));
        }
        if !self.schedule.is_executing()
            && let Some(install) = self.snapshots.install()
        {
            self.effects.push_back(Effect::Task(Task::Install(Box::new(install))));
        }
    }

    /// The next height is decided here, and nobody gives us its bodies; or the own state is wrong,
    /// or ends before the epoch began.
    fn want_snapshot_if_stuck(&mut self, now: Time) {
        if self.cannot_execute() {
            self.snapshots.start(now);
        }
    }

    fn cannot_execute(&self) -> bool {
        self.is_stuck() || self.execution.diverged().is_some() || self.schedule.has_gap()
    }

    fn is_stuck(&self) -> bool {
        let members = u32::try_from(self.config.verifier.committee().size()).unwrap_or(u32::MAX);
        let asked = |payload: &quorate_types::Payload| {
            payload.bodies.iter().map(|name| self.bodies.attempts(name)).max()
        };
        self.schedule.next().and_then(asked).unwrap_or(0) >= members * BODY_ROUNDS_MAX
    }

    /// Returns `true` if what led to asking for a snapshot is still the case.
    fn needs_snapshot(&self) -> bool {
        !self.sync.gone().is_empty() || self.cannot_execute()
    }

    pub(super) fn serve_snapshots(&mut self, to: Peer, above: Height) {
        let items = vec![ReadItem::Manifest(0), ReadItem::Manifest(1)];
        self.read_for(Reading::Snapshots(to, above), items);
    }

    /// Each manifest beyond what was asked for goes out with the records that prove its height.
    pub(super) fn prove_snapshots(&mut self, to: Peer, above: Height, answer: ReadAnswer) {
        for bytes in answer.items.into_iter().filter_map(|(_, bytes)| bytes) {
            let begun = self.config.verifier.start().height();
            let is_asked = |m: &Manifest| m.header.height > above && m.header.height >= begun;
            let Some(manifest) = Manifest::decode(&bytes).filter(is_asked) else { continue };
            if manifest.header.height == begun {
                let proof = Vec::new();
                self.send(to.into(), Message::Offer(Offer { manifest: bytes, proof }));
                continue;
            }
            let last = self
                .schedule
                .decided()
                .0
                .min(manifest.header.height.0.saturating_add(BLOCKS_MAX - 1));
            let items =
                (manifest.header.height.0..=last).map(|h| ReadItem::Decided(Height(h))).collect();
            self.read_for(Reading::Proof(to, bytes), items);
        }
    }

    pub(super) fn send_offer(&mut self, to: Peer, manifest: Bytes, answer: ReadAnswer) {
        let mut bytes = 0;
        let records = answer.items.into_iter().map_while(|(_, found)| found);
        let mut proof: Vec<Bytes> = records
            .take_while(|record| {
                bytes += record.len();
                bytes <= BLOCKS_BYTES_MAX
            })
            .collect();
        // The shortest proof is enough.
        let shortest =
            (1..=proof.len()).find(|n| self.protocol.state().servable(&proof[..*n]) == *n);
        proof.truncate(shortest.unwrap_or(0));
        if !proof.is_empty() {
            self.send(to.into(), Message::Offer(Offer { manifest, proof }));
        }
    }

    pub(super) fn serve_chunk(&mut self, to: Peer, snapshot: Digest, index: u32) {
        let items = vec![ReadItem::Chunk(snapshot, index)];
        self.read_for(Reading::Chunk(to, snapshot, index), items);
    }

    pub(super) fn send_chunk(
        &mut self,
        to: Peer,
        snapshot: Digest,
        index: u32,
        answer: ReadAnswer,
    ) {
        let bytes = answer.items.into_iter().find_map(|(_, bytes)| bytes).unwrap_or_default();
        self.send(to.into(), Message::Chunk(Chunk { snapshot, index, bytes }));
    }

    pub(super) fn on_offer(&mut self, from: ReplicaId, offered: Offered) {
        self.snapshots.offered(from, offered, self.schedule.executed());
    }

    pub(super) fn on_chunk(
        &mut self,
        from: ReplicaId,
        which: (Digest, u32),
        content: Option<(Digest, Bytes)>,
    ) {
        match self.snapshots.chunk(from, which, content) {
            Taken::Stage(chunk) => self.effects.push_back(Effect::Task(Task::Stage(chunk))),
            Taken::Wrong => self.faults += 1,
            Taken::Unasked | Taken::Gone => {}
        }
    }

    /// The state is that of a later height: what was decided on the way there is skipped, and
    /// blocks are fetched from there on.
    pub(super) fn on_installed(&mut self, now: Time, executed: &ExecutedUpTo) {
        self.snapshots.installed();
        self.snapshots_installed += 1;
        // ★ What came to the state that was replaced is no answer any more: it may have been wrong.
        if !mutants::active(Mutant::KeepOldAnswers) {
            self.replies = Replies::default();
        }
        let height = executed.height();
        if height > self.schedule.decided() {
            let bytes = executed.decided.clone();
            self.effects.push_back(Effect::Append(DecidedRecord { height, bytes }));
        }
        self.note_end_of(&executed.decided);
        let skipped = self.schedule.install(height);
        for body in skipped.iter().filter_map(|name| self.bodies.get(name)) {
            self.mempool.skipped(body);
        }
        self.bodies.decide(&skipped);
        self.bodies.executed(&skipped);
        self.bodies.forget_announcements();
        self.certifier.decided(&skipped);
        self.certifier.executed(&skipped);
        self.root = executed.root();
        self.operations = executed.operations;
        self.resume_at(now, &executed.header);
        self.durable = height;
        self.release();
        self.sync.jumped(now);
        if height > self.config.verifier.start().height() {
            self.feed(now, Input::Installed(executed.decided.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
