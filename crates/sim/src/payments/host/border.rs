//! The end of an epoch at a host, and the beginning of the next one.

use super::{AuthorityHost, LogEntry, Seat};
use quorate_crypto::Digest;
use quorate_deterministic::Rng;
use quorate_payments::OutputId;
use quorate_payments::change::{Closing, Inheritance, LockEntry, chunk_leaf, encode_chunk};
use quorate_types::{ReplicaId, Weights};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports of one epoch that a host has read, by shard and authority.
pub(in crate::payments) type Readings = BTreeMap<(u16, ReplicaId), Vec<LockEntry>>;

impl AuthorityHost {
    /// Everything that it locked in its epoch, as a real one reports it.
    pub(in crate::payments) fn closing_entries(&mut self) -> Vec<LockEntry> {
        let running = self.running.as_mut().expect("it has just closed");
        running.must_report = true;
        let mut locked = Vec::new();
        let kept = running.spent.move_out(u64::MAX, |all| {
            locked.extend_from_slice(all);
            Err(())
        });
        assert_eq!(kept, Err(()), "they stay where they are");
        let closing = running.spent.closing().expect("all is in memory");
        let told = locked.into_iter().filter_map(|(input, locked)| closing.entry(input, locked));
        sorted(told.chain(closing.decided()).collect())
    }

    /// The report of these, with its chunks.
    pub(in crate::payments) fn sign_closing(
        &self,
        next: Digest,
        entries: &[LockEntry],
    ) -> (Closing, Vec<Vec<u8>>) {
        let seat = self.seat.as_ref().expect("it ran");
        sign_closing(seat, self.shard, next, entries)
    }

    /// What it has a coin locked for, in words.
    pub(in crate::payments) fn describe_lock(&self, coin: OutputId) -> String {
        let Some(running) = &self.running else { return "down".into() };
        match (running.spent.get(coin), running.spent.inherited().candidates(coin)) {
            (Ok(Some(locked)), _) => format!("locked for {}", locked.tx),
            (_, Ok(candidates)) => format!("between {candidates:?}"),
            failed => format!("{failed:?}"),
        }
    }

    /// The report of its locks counts.
    pub(in crate::payments) fn was_reported(&mut self) {
        if let Some(running) = &mut self.running {
            running.must_report = false;
        }
    }

    /// Begins an epoch with what it has read of those before; `false` where that is too little.
    /// Wallets' records stay.
    pub(in crate::payments) fn begin(
        &mut self,
        seat: Seat,
        weights: &[Weights],
        readings: Vec<Readings>,
    ) -> bool {
        let Some(inherited) = inherit(weights, &readings, seat.network.shards()) else {
            return false;
        };
        self.life += 1;
        self.running = None;
        self.log.retain(|entry| matches!(entry, LogEntry::Record(..)));
        self.durable = self.log.len();
        (self.inherited, self.readings, self.seat) = (Arc::new(inherited), readings, Some(seat));
        self.start();
        true
    }

    /// Reports that it has read, of each epoch before its own.
    pub(in crate::payments) fn readings(&self) -> &[Readings] {
        &self.readings
    }

    /// Is stopped, and begins again with more reports.
    pub(in crate::payments) fn read_more(
        &mut self,
        weights: &[Weights],
        readings: Vec<Readings>,
        rng: &mut Rng,
    ) {
        let shards = self.network().shards();
        let inherited = inherit(weights, &readings, shards).expect("less was enough");
        (self.inherited, self.readings) = (Arc::new(inherited), readings);
        self.crash(rng);
        self.start();
    }

    /// Its disks and its keys are lost.
    pub(in crate::payments) fn lose_all(&mut self) {
        self.life += 1;
        (self.running, self.seat, self.is_lost) = (None, None, true);
        self.log.clear();
        self.durable = 0;
    }
}

/// What reports of all epochs before leave, of all shards; `None` where one epoch's are too few.
fn inherit(weights: &[Weights], readings: &[Readings], shards: u16) -> Option<Inheritance> {
    let mut left = Inheritance::default();
    for (weights, read) in weights.iter().zip(readings) {
        for shard in 0..shards {
            let of_shard = read.iter().filter(|((one, _), _)| *one == shard);
            let of_shard = of_shard.map(|((_, from), locks)| (*from, locks.clone())).collect();
            left = left.after(weights, &of_shard)?;
        }
    }
    Some(left)
}

/// A report of whatever entries, in a seat's name, with its chunks.
pub(in crate::payments) fn sign_closing(
    seat: &Seat,
    shard: u16,
    next: Digest,
    entries: &[LockEntry],
) -> (Closing, Vec<Vec<u8>>) {
    let chunks: Vec<Vec<u8>> =
        entries.chunks(quorate_payments::change::CHUNK_ENTRIES).map(encode_chunk).collect();
    let leaves = (0..).zip(&chunks).map(|(number, chunk)| chunk_leaf(number, chunk));
    let leaves: Vec<Digest> = leaves.collect();
    let told = (entries.len() as u64, leaves.as_slice());
    let place = (seat.id(), shard);
    let closing = Closing::sign(&seat.network, &seat.keys.identity, place, next, told);
    (closing, chunks)
}

/// Entries as a report has them.
pub(in crate::payments) fn sorted(mut entries: Vec<LockEntry>) -> Vec<LockEntry> {
    entries.sort_unstable();
    entries.dedup();
    entries
}
