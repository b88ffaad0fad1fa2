//! The log's thread of an authority, and the one that waits for the mark behind it.
//!
//! ```text
//! queue ──▶ log: one sync for a group ──▶ mark: counts the group ──▶ answers and reports
//!           records beside it              (★ before anything that rests on it leaves)
//! ```

use super::{Kept, Origin, QUEUED_MAX};
use crate::NodeError;
use crate::payments::epochs;
use crate::payments::evidence::Evidence;
use crate::payments::locks::Locks;
use crate::payments::mark::Mark;
use crate::payments::queue::{Leaving, Promise, Queued};
use crate::payments::records::{Change, Records};
use crate::payments::releases::ReleaseLog;
use crate::payments::server::Payers;
use crate::payments::status::Counts;
use crate::payments::wallet_requests::{coin_states, reply};
use crate::receiving::next_of;
use crate::threads::Threads;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use quorate_crypto::{Digest, IdentitySecret};
use quorate_engine::Frame;
use quorate_engine::host::{GroupCommit, barrier};
use quorate_payments::change::Closing;
use quorate_payments::release::{Held, Report};
use quorate_payments::{AuthorityEvent, Network, OutputId, RecordRefusal, WalletReply};
use quorate_types::ReplicaId;
use std::path::PathBuf;
use std::sync::Arc;

/// Groups of answers that wait for the mark; then the log waits.
const UNMARKED_MAX: usize = 64;

impl Origin {
    /// Starts log and mark; what they have to have ordered comes out.
    pub(super) fn spawn_log(
        &self,
        threads: &mut Threads,
        Kept { locks, releases, evidence, records, mark }: Kept,
        report_folder: PathBuf,
        (events, queued): (Sender<AuthorityEvent>, Receiver<Queued>),
    ) -> Result<(Receiver<Report>, Receiver<Closing>), NodeError> {
        let (unmarked, unmarked_in) = bounded(UNMARKED_MAX);
        // Everything goes behind the log in one queue: the front half has nothing to decide.
        let (_, queue) = barrier();
        let (reports, reported) = unbounded();
        let (closings, closed) = unbounded();
        let reporter = Reporter {
            network: Arc::clone(&self.network),
            identity: self.identity.clone(),
            place: (self.me, self.shard),
            report_folder,
        };
        let log = LogThread {
            log: queue,
            locks,
            releases,
            reporter,
            evidence,
            records,
            changes: Vec::new(),
            events,
            payers: Arc::clone(&self.payers),
            counts: Arc::clone(&self.counts),
            unmarked,
        };
        threads.spawn("log", move || log.run(&queued))?;
        let marking = MarkThread { mark, payers: Arc::clone(&self.payers), reports, closings };
        threads.spawn("mark", move || marking.run(&unmarked_in))?;
        Ok((reported, closed))
    }
}

/// The log's thread: what is queued is one group, and nothing in it leaves before its locks are
/// durable (★, `quorate_engine::host`).
struct LogThread {
    log: GroupCommit<Promise, Leaving>,
    locks: Locks,
    releases: ReleaseLog,
    reporter: Reporter,
    evidence: Evidence,
    records: Arc<Records>,
    /// Changes to records that are not durable yet.
    changes: Vec<Change>,
    events: Sender<AuthorityEvent>,
    payers: Arc<Payers>,
    counts: Arc<Counts>,
    unmarked: Sender<Unmarked>,
}

/// Signs what frozen coins are locked for, and everything at the end of an epoch.
struct Reporter {
    network: Arc<Network>,
    identity: IdentitySecret,
    /// Index of the authority, and its shard.
    place: (ReplicaId, u16),
    /// Folder of the report that the epoch ends with.
    report_folder: PathBuf,
}

impl Reporter {
    fn report(&self, coin: OutputId, held: Held) -> Report {
        Report::sign(&self.network, &self.identity, self.place.0, coin, held)
    }

    /// Writes the report of all locks. Whoever asked has closed the authority: nobody waits for a
    /// vote meanwhile that it gives for the first time.
    fn close(&self, locks: &mut Locks, next: Digest) -> Result<Closing, NodeError> {
        let reporter = epochs::Reporter {
            network: &self.network,
            identity: &self.identity,
            place: self.place,
        };
        Ok(epochs::write_report(locks, &self.report_folder, &reporter, next)?)
    }
}

/// What leaves once the mark counts what it rests on.
enum Outgoing {
    Answer(u64, Frame),
    Report(Box<Report>),
    Closing(Box<Closing>),
}

/// What rests on promises that are durable, and the number of promises that the mark has to count
/// before it leaves (★).
struct Unmarked {
    promises: u64,
    outgoing: Vec<Outgoing>,
}

/// Number of promises that the mark counts: locks, and entries about coins under release.
pub(super) fn promises(locks: &Locks, releases: &ReleaseLog) -> u64 {
    locks.next() + releases.next()
}

impl LogThread {
    fn run(mut self, queued: &Receiver<Queued>) -> Result<(), NodeError> {
        while let Some(first) = next_of(queued) {
            for queued in std::iter::once(first).chain(queued.try_iter().take(QUEUED_MAX)) {
                match queued {
                    Queued::Persist(promise) => self.log.push(promise),
                    Queued::Record(change) => self.changes.push(change),
                    Queued::Held(leaving) => self.log.hold(leaving),
                }
            }
            let mut released = Vec::new();
            if self.write_group()? {
                self.log.finish(|leaving| released.push(leaving));
            }
            self.log.release_ready(|leaving| released.push(leaving));
            let mut outgoing = Vec::new();
            for leaving in released {
                self.leave(leaving, &mut outgoing)?;
            }
            let promises = promises(&self.locks, &self.releases);
            let unmarked = Unmarked { promises, outgoing };
            if !unmarked.outgoing.is_empty() && self.unmarked.send(unmarked).is_err() {
                // The thread of the mark has said why.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes everything that is queued durable, locks and records side by side; `false` when there
    /// are no locks.
    fn write_group(&mut self) -> Result<bool, NodeError> {
        if self.changes.is_empty() {
            return self.write_locks();
        }
        let (records, changes) = (Arc::clone(&self.records), std::mem::take(&mut self.changes));
        let (written, stored) = std::thread::scope(|scope| {
            let storing = scope.spawn(|| records.apply(&changes));
            (self.write_locks(), storing.join().expect("storing records does not panic"))
        });
        for (change, is_done) in changes.iter().zip(stored?) {
            self.tell(change, is_done);
        }
        written
    }

    /// Tells a wallet that its request is done, or counts what there was no room for.
    fn tell(&self, change: &Change, is_done: bool) {
        if !is_done {
            self.counts.refused("records-full");
        }
        let Some((ticket, number)) = change.asked else { return };
        let content =
            if is_done { WalletReply::Done } else { WalletReply::Refused(RecordRefusal::Full) };
        if let Some(outbox) = self.payers.outbox(ticket) {
            outbox.push(reply(number, content));
        }
    }

    fn write_locks(&mut self) -> Result<bool, NodeError> {
        let Some(promises) = self.log.begin() else { return Ok(false) };
        let before = self.locks.next();
        for promise in promises {
            match promise {
                Promise::Locks(locks) => {
                    locks.iter().try_for_each(|lock| self.locks.append(lock))?;
                }
                Promise::Releases(entries) => self.releases.keep(entries)?,
            }
        }
        self.locks.commit()?;
        self.counts.commits.inc();
        self.counts.locks.inc_by(self.locks.next() - before);
        Ok(true)
    }

    fn leave(&mut self, leaving: Leaving, outgoing: &mut Vec<Outgoing>) -> Result<(), NodeError> {
        match leaving {
            Leaving::Answer(ticket, frame) => outgoing.push(Outgoing::Answer(ticket, frame)),
            Leaving::Coins(question) => {
                let states = reply(question.number, coin_states(&question, &self.locks)?);
                outgoing.push(Outgoing::Answer(question.ticket, states));
            }
            Leaving::Read(sequence) => {
                let lock = self.locks.read(sequence)?;
                let _ = self.events.send(AuthorityEvent::Read { sequence, lock });
            }
            Leaving::Closed(next) => {
                let closing = self.reporter.close(&mut self.locks, next)?;
                outgoing.push(Outgoing::Closing(Box::new(closing)));
            }
            Leaving::Evidence(proof) => self.evidence.keep(*proof)?,
            Leaving::Report(coin, held) => {
                outgoing.push(Outgoing::Report(Box::new(self.reporter.report(coin, *held))));
            }
        }
        Ok(())
    }
}

/// Thread of the mark: a group's answers leave once it counts the group's locks, while the log
/// syncs the next one.
struct MarkThread {
    mark: Mark,
    payers: Arc<Payers>,
    reports: Sender<Report>,
    closings: Sender<Closing>,
}

impl MarkThread {
    fn run(mut self, unmarked: &Receiver<Unmarked>) -> Result<(), NodeError> {
        while let Some(first) = next_of(unmarked) {
            let groups: Vec<Unmarked> = std::iter::once(first).chain(unmarked.try_iter()).collect();
            // The log goes forward: the last one has the most.
            let promises = groups.last().map_or(0, |group| group.promises);
            self.mark.advance(promises)?;
            groups.into_iter().flat_map(|group| group.outgoing).for_each(|one| self.send(one));
        }
        Ok(())
    }

    fn send(&self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Answer(ticket, frame) => {
                if let Some(outbox) = self.payers.outbox(ticket) {
                    outbox.push(frame);
                }
            }
            // There are as many as were asked for: whoever feeds freezes reads them.
            Outgoing::Report(report) => drop(self.reports.send(*report)),
            Outgoing::Closing(closing) => drop(self.closings.send(*closing)),
        }
    }
}
