//! One crash point: every way to crash there, and what must be so afterwards.

mod flips;

use super::chronicle::Chronicle;
use super::committee::{Committee, Script};
use super::disks::{Disks, LogKind, every_failure, last_write};
use super::host::{CrashHost, id_in};
use super::model::Missing;
use super::offers::{Step, request_of};
use super::report::Broken;
use super::shared::Shared;
use crate::oracles::Violation;
use bytes::Bytes;
use quorate_crypto::IdentitySecret;
use quorate_storage::disk::UnsyncedWrite;
use quorate_storage::{Fault, MemoryDisk, StorageError};
use quorate_types::Time;
use quorate_types::machine::Recovery;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bits flipped in a record, and in what lies before the last synced group.
const FLIPS: u64 = 12;

/// A working committee has executed something new within this time.
const PROGRESS: Duration = Duration::from_secs(30);

/// Number of times that a client asks within that, where the epoch may end.
const ATTEMPTS: u32 = 30;

/// Number of cases looked at, by kind.
pub(super) type Counts = BTreeMap<&'static str, u64>;

/// The subject at a boundary between two of its effects.
pub(super) struct Moment<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) number: u64,
    /// Name of the step before the boundary.
    pub(super) what: &'static str,
    pub(super) now: Time,
    pub(super) disks: &'a [Option<Disks>],
    pub(super) chronicle: &'a Chronicle,
    pub(super) counts: &'a mut Counts,
    /// Recoveries that other ways to crash led to here: the same again comes to the same.
    pub(super) known: Vec<Recovery>,
}

/// Property that a case broke, if any.
type Verdict = Result<(), Violation>;

impl Moment<'_> {
    /// Crashes in every way.
    ///
    /// # Errors
    /// The first case in which something is wrong.
    pub(super) fn try_all(&mut self) -> Result<(), Broken> {
        self.case("clean", |moment| {
            let disks = moment.fork();
            moment.judge(&disks, Missing::Nothing, "clean")?;
            moment.restart_in_recovery(&disks)
        })?;
        self.case("unsynced lost", |moment| {
            let disks = moment.fork();
            disks.lose_unsynced();
            moment.judge(&disks, Missing::Unsynced, "unsynced lost")?;
            moment.restart_in_recovery(&disks)
        })?;
        let which = match self.what {
            "persist" | "append" => LogKind::Records,
            "store" | "release" => LogKind::Bodies,
            "sync" => return self.case("a bit flipped in what was synced", Self::flip_synced),
            _ => return Ok(()),
        };
        let Some(last) = last_write(self.disk(which)) else { return Ok(()) };
        for bytes in 0..last.bytes {
            self.case("torn", |moment| moment.tear(which, &last, bytes))?;
        }
        self.case("only the last write kept", |moment| {
            let disks = moment.fork();
            disks.of(which).crash_with(&mut |write| {
                if *write == last { std::iter::once(0..write.bytes).collect() } else { Vec::new() }
            });
            moment.judge(&disks, Missing::Unsynced, "only the last write kept")?;
            moment.restart_in_recovery(&disks)
        })?;
        for flip in 0..FLIPS {
            self.case("a bit flipped in the last record", |moment| {
                let disks = moment.fork();
                let (at, bit) = moment.place(flip, last.bytes as u64);
                disks.of(which).flip(&last.file, last.offset + at, bit);
                moment.judge(&disks, Missing::Unsynced, "bit flipped")
            })?;
        }
        Ok(())
    }

    /// Crashes after the disk failed and the replica stopped.
    ///
    /// # Errors
    /// As [`Moment::try_all`].
    pub(super) fn try_halted(&mut self) -> Result<(), Broken> {
        self.case("then killed", |moment| {
            let disks = moment.fork();
            moment.judge(&disks, Missing::Unsynced, "killed after the disk failed")
        })?;
        self.case("then without power", |moment| {
            let disks = moment.fork();
            disks.lose_unsynced();
            moment.judge(&disks, Missing::Unsynced, "without power after the disk failed")
        })
    }

    fn case(
        &mut self,
        mode: &'static str,
        run: impl FnOnce(&mut Self) -> Verdict,
    ) -> Result<(), Broken> {
        *self.counts.entry(mode).or_default() += 1;
        let (point, after) = (self.number, self.what);
        run(self).map_err(|violation| Broken { point, after, mode: mode.to_owned(), violation })
    }

    fn fork(&self) -> Disks {
        self.disks[self.shared.subject].as_ref().expect("the subject has disks").fork()
    }

    fn disk(&self, which: LogKind) -> &MemoryDisk {
        self.disks[self.shared.subject].as_ref().expect("the subject has disks").of(which)
    }

    /// A place below `end` and a bit, different ones for every number.
    fn place(&self, number: u64, end: u64) -> (u64, u8) {
        let mixed = (self.number * 1_000 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = u8::try_from(mixed >> 61).expect("three bits");
        (u64::try_from((u128::from(mixed) * u128::from(end)) >> 64).expect("below the end"), bit)
    }

    /// Of the last write only its first bytes reached the disk; everything before it did.
    fn tear(&mut self, which: LogKind, last: &UnsyncedWrite, bytes: usize) -> Verdict {
        let disks = self.fork();
        disks.of(which).crash_with(&mut |write| {
            let kept = if write == last { bytes } else { write.bytes };
            std::iter::once(0..kept).collect()
        });
        self.judge(&disks, Missing::Unsynced, "torn")?;
        // What is cut in the middle stands for all where the recovery itself is cut short.
        if bytes == last.bytes / 2 { self.restart_in_recovery(&disks) } else { Ok(()) }
    }

    /// Recovers, and if it is not what another way led to already, has it tested by conflicting
    /// offers, and once by work in a committee.
    fn judge(&mut self, disks: &Disks, missing: Missing, mode: &str) -> Verdict {
        let chronicle = self.chronicle.clone();
        self.judge_after(chronicle, disks, missing, mode)
    }

    fn judge_after(
        &mut self,
        mut chronicle: Chronicle,
        disks: &Disks,
        missing: Missing,
        mode: &str,
    ) -> Verdict {
        let untouched = disks.fork();
        let opened = CrashHost::open(
            self.shared,
            self.shared.subject,
            disks,
            &[],
            &chronicle.clone().shared(),
        );
        let (host, recovery) = opened.map_err(|error| storage(mode, &error))?;
        chronicle.comes_back(self.shared.subject, host.epoch.number())?;
        model(&mut chronicle, missing, &recovery)?;
        let is_same_past = chronicle.version == self.chronicle.version;
        if is_same_past && self.known.contains(&recovery) {
            return Ok(());
        }
        self.offer(chronicle.clone(), &untouched.fork())?;
        if is_same_past {
            self.known.push(recovery);
            self.work(chronicle, &untouched)?;
        }
        Ok(())
    }

    /// Alone among members that contradict themselves.
    fn offer(&mut self, chronicle: Chronicle, disks: &Disks) -> Verdict {
        *self.counts.entry("· recoveries met with conflicting offers").or_default() += 1;
        let subject = self.shared.subject;
        let epoch = disks.epochs.last().unwrap_or_else(|| Arc::clone(&self.shared.first));
        let heard = chronicle.heard(epoch.number());
        let steps = heard.conflicting(self.shared, &epoch, id_in(&epoch, subject));
        let mut alone = self.alone(chronicle, disks)?;
        for step in steps {
            match step {
                Step::Frame(from, content) => alone.0.deliver(subject, from, content),
                Step::Wait(time) => alone.wait(time),
            }
        }
        alone.verdict()
    }

    fn alone(&self, chronicle: Chronicle, disks: &Disks) -> Result<Running, Violation> {
        let mut all = vec![None; self.disks.len()];
        all[self.shared.subject] = Some(disks.clone());
        Running::start(self.shared, chronicle, &all, self.now)
    }

    /// In a committee whose other members were restarted too.
    fn work(&mut self, mut chronicle: Chronicle, disks: &Disks) -> Verdict {
        *self.counts.entry("· recoveries put to work in a committee").or_default() += 1;
        let mut all: Vec<_> = self.disks.iter().flatten().map(|disks| Some(disks.fork())).collect();
        all[self.shared.subject] = Some(disks.clone());
        let operation = Bytes::from_static(b"after the crash");
        chronicle.awaited = Some(operation.clone());
        let mut running = Running::start(self.shared, chronicle, &all, self.now)?;
        running.wait(Duration::from_millis(5));
        let secret = IdentitySecret::from_seed([201; 32]);
        let (peer, content) = request_of(self.shared, &secret, 0, &operation);
        // Where the epoch may end, whatever was on its way is gone, and its clients ask again.
        let attempts = if self.shared.change.is_some() { ATTEMPTS } else { 1 };
        for attempt in 1..=attempts {
            running.0.bring(self.shared);
            running.0.ask_members(peer, &content);
            if running.is_done_by(self.now + PROGRESS / attempts * attempt) {
                return running.verdict();
            }
        }
        running.verdict()?;
        let text = format!("nothing new was executed within {PROGRESS:?} of the restart");
        Err(Violation { oracle: "progress", text })
    }

    /// The recovery is cut short: by each of its steps failing, then by a crash after it.
    fn restart_in_recovery(&mut self, disks: &Disks) -> Verdict {
        for (which, fault) in self.steps_of_recovery(disks)? {
            *self.counts.entry("· recoveries cut short").or_default() += 1;
            let disks = disks.fork();
            let plan = [(which, fault.clone())];
            let opened = CrashHost::open(
                self.shared,
                self.shared.subject,
                &disks,
                &plan,
                &self.chronicle.clone().shared(),
            );
            if opened.is_ok() {
                let text = format!("the recovery went on after {fault:?}");
                return Err(Violation { oracle: "fail-stop", text });
            }
            disks.lose_unsynced();
            self.judge(&disks, Missing::Unsynced, "after a recovery cut short")?;
        }
        for lasts in [Duration::ZERO, Duration::from_millis(1)] {
            *self.counts.entry("· recoveries cut short").or_default() += 1;
            let disks = disks.fork();
            let mut alone = self.alone(self.chronicle.clone(), &disks)?;
            alone.wait(lasts);
            let chronicle = alone.end()?;
            disks.lose_unsynced();
            self.judge_after(chronicle, &disks, Missing::Unsynced, "after a second crash")?;
        }
        Ok(())
    }

    fn steps_of_recovery(&self, disks: &Disks) -> Result<Vec<(LogKind, Fault)>, Violation> {
        let opened = CrashHost::open(
            self.shared,
            self.shared.subject,
            &disks.fork(),
            &[],
            &self.chronicle.clone().shared(),
        );
        let (host, _) = opened.map_err(|error| storage("the recovery itself", &error))?;
        Ok(every_failure(host.faults()))
    }
}

/// A committee, or a part of it, with its own continuation of the chronicle.
struct Running(Committee, super::chronicle::SharedChronicle);

impl Running {
    fn start(
        shared: &Arc<Shared>,
        mut chronicle: Chronicle,
        disks: &[Option<Disks>],
        now: Time,
    ) -> Result<Self, Violation> {
        // Opening it again must find what was found: the model of the first opening goes on.
        let disk = disks[shared.subject].as_ref().expect("the subject takes part").fork();
        let found =
            CrashHost::open(shared, shared.subject, &disk, &[], &chronicle.clone().shared());
        let (_, found) = found.map_err(|error| storage("a recovery", &error))?;
        model(&mut chronicle, Missing::Unsynced, &found)?;
        let chronicle = chronicle.shared();
        let committee = Committee::start(shared, disks, &[], &chronicle, now, Script::default())
            .map_err(|error| storage("a restart of the committee", &error))?;
        Ok(Self(committee, chronicle))
    }

    fn wait(&mut self, time: Duration) {
        let until = self.0.now + time;
        self.0.run(until, &mut |_| true);
    }

    /// Runs until then, or until the subject has executed what is waited for, in the last epoch.
    fn is_done_by(&mut self, until: Time) -> bool {
        let chronicle = self.1.clone();
        self.0.run(until, &mut |committee| {
            let chronicle = chronicle.borrow();
            let waits = chronicle.awaited.is_some() || committee.waits_for_change();
            waits && chronicle.complaint.is_none()
        });
        chronicle.borrow().awaited.is_none() && !self.0.waits_for_change()
    }

    fn verdict(&self) -> Verdict {
        self.1.borrow().complaint.clone().map_or(Ok(()), Err)
    }

    /// The chronicle as it stands.
    fn end(self) -> Result<Chronicle, Violation> {
        self.verdict()?;
        Ok(self.1.borrow().clone())
    }
}

fn model(chronicle: &mut Chronicle, missing: Missing, found: &Recovery) -> Verdict {
    let fits = chronicle.model.recovered(missing, found);
    fits.map_err(|text| Violation { oracle: "durability", text })
}

fn storage(when: &str, error: &StorageError) -> Violation {
    Violation { oracle: "storage", text: format!("{when}: {error}") }
}
