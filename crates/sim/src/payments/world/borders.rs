//! What happens at the end of an epoch: operators have a change ordered, authorities close and
//! report, those of the next epoch begin with what they have read, and owners follow.

use super::releases::RESUBMIT_US;
use super::{HostEvent, SimEvent, Verdicts, World, seat};
use crate::payments::books::{Violation, Voter};
use crate::payments::host::Readings;
use crate::payments::liar::Behaviour;
use crate::payments::test_network::TestNetwork;
use crate::payments::thief::Leak;
use quorate_crypto::Digest;
use quorate_payments::change::{ChangeStep, Closing, LockEntry, chunk_leaf, decode_chunk};
use quorate_payments::committee::Step;
use quorate_types::{ReplicaId, Weights};
use std::sync::Arc;
use std::time::Duration;

impl World {
    /// Index of a host's authority in its epoch.
    pub(super) fn voter(&self, host: usize) -> Voter {
        let seat = self.seat(host);
        (seat.epoch, seat.index)
    }

    /// Submits the change that ends an epoch, until it is ordered; not before that epoch began.
    pub(super) fn on_change_due(&mut self, epoch: usize) {
        if self.committees[epoch].has_ended() {
            return;
        }
        if self.has_begun(epoch) {
            self.submitted = self.submitted.max(epoch + 1);
            let step = ChangeStep::Change(Box::new(self.changes[epoch].clone()));
            self.submit_change(epoch, &step);
        }
        self.events
            .schedule(self.now + Duration::from_micros(RESUBMIT_US), SimEvent::Change(epoch));
    }

    /// Tells whether honest authorities of a quorum are in the epoch, or beyond.
    fn has_begun(&self, epoch: usize) -> bool {
        let members = &self.epochs[epoch].members;
        let is_in = |one: &&usize| {
            let first = **one * usize::from(self.scenario.shards);
            let hosts = first..first + usize::from(self.scenario.shards);
            hosts.into_iter().all(|host| self.hosts[host].epoch() >= Some(epoch))
        };
        let weights = Weights::equal(members.len());
        members.iter().filter(is_in).count() as u64 >= weights.quorum()
    }

    fn submit_change(&mut self, epoch: usize, step: &ChangeStep) {
        let step = Step::Change(step.clone()).encode();
        for at in self.arrivals() {
            self.events.schedule(at, SimEvent::ChangeStep(epoch, step.clone()));
        }
    }

    /// A thief would end the epoch by itself.
    pub(super) fn usurp(&mut self, thief: usize) {
        let (epoch, secret) = (self.thieves[thief].epoch, self.thieves[thief].secret());
        let coup = self.epochs[epoch].coup(secret);
        self.submit_change(epoch, &ChangeStep::Change(Box::new(coup)));
    }

    /// The committee of an epoch executes a step of its end.
    pub(super) fn on_change_step(&mut self, epoch: usize, bytes: &[u8]) -> Verdicts {
        let Some(step) = self.committees[epoch].execute_change(bytes) else {
            self.steps_refused += 1;
            return Ok(());
        };
        match step {
            ChangeStep::Change(_) if self.submitted <= epoch => {
                let text = format!("epoch {epoch} ends, and nobody agreed to that");
                Err(Violation { oracle: "consent", text })
            }
            ChangeStep::Change(_) => {
                self.on_ended(epoch);
                Ok(())
            }
            ChangeStep::Closing(closing) => self.on_counted(epoch, &closing),
            ChangeStep::Entered(_) => unreachable!("nobody says so here"),
        }
    }

    /// The end of an epoch was ordered: honest authorities will close, liars report what they like,
    /// those of the next one try to begin, and owners follow.
    fn on_ended(&mut self, epoch: usize) {
        let change = self.scenario.changes[epoch].clone();
        let next = self.changes[epoch].next.digest();
        for host in 0..self.hosts.len() {
            self.follow(host);
            self.lie_at_the_end(host, epoch, next);
            let is_member = self.epochs[epoch + 1].members.contains(&self.hosts[host].authority);
            if is_member {
                let at = self.soon(change.begin_us);
                self.events.schedule(at, SimEvent::Begin(host, epoch + 1));
            }
        }
        let owners = self.wallets.len() + self.thieves.len();
        for owner in self.hosts.len()..self.hosts.len() + owners {
            let at = self.soon(change.follow_us);
            self.events.schedule(at, SimEvent::Enter(owner, epoch + 1));
        }
    }

    fn lie_at_the_end(&mut self, host: usize, epoch: usize, next: Digest) {
        let is_liar = !matches!(self.behaviour(host), Behaviour::Honest | Behaviour::Silent);
        let seat = self.hosts[host].seat().filter(|seat| seat.epoch == epoch && is_liar);
        let Some(seat) = seat.cloned() else { return };
        let shard = self.hosts[host].shard;
        for (closing, chunks) in self.seen.closings(&seat, shard, next, &mut self.rng) {
            // Now and then nobody gets to see what it is.
            if !self.rng.one_in(4) {
                self.chunks.insert(closing.root, chunks);
            }
            self.submit_change(epoch, &ChangeStep::Closing(closing));
        }
    }

    /// An honest host has closed: its report leaves it.
    pub(super) fn report_locks(&mut self, host: usize, next: Digest) -> Verdicts {
        let entries = self.hosts[host].closing_entries();
        let (voter, shard) = (self.voter(host), self.hosts[host].shard);
        self.books.on_closing(voter, shard, &entries)?;
        self.submit_closing(host, next, &entries);
        self.leak(voter.0);
        Ok(())
    }

    /// The keys of an epoch leak, all of them, once its honest authorities have closed: before that
    /// one of them could be shown what the others never voted for, and report it.
    fn leak(&mut self, epoch: usize) {
        let has_ended = self.committees[epoch].has_ended();
        if !has_ended || self.leaked.contains(&epoch) || self.can_vote(epoch) {
            return;
        }
        self.leaked.insert(epoch);
        let TestNetwork { network, keys, .. } = &self.epochs[epoch];
        let leak = Leak { network: Arc::clone(network), keys: keys.clone() };
        self.thieves.iter_mut().for_each(|thief| thief.learn(leak.clone()));
    }

    fn submit_closing(&mut self, host: usize, next: Digest, entries: &[LockEntry]) {
        let epoch = self.seat(host).epoch;
        let (closing, chunks) = self.hosts[host].sign_closing(next, entries);
        self.reported.insert((self.voter(host), closing.shard), closing.root);
        self.chunks.insert(closing.root, chunks);
        self.submit_change(epoch, &ChangeStep::Closing(closing));
        self.later(host, RESUBMIT_US, HostEvent::ReportLocks(next));
    }

    pub(super) fn report_locks_again(&mut self, host: usize, next: Digest) {
        let (epoch, me) = (self.seat(host).epoch, self.seat(host).id());
        let shard = self.hosts[host].shard;
        if self.committees[epoch].border().closings(shard).any(|one| one.authority == me) {
            return self.hosts[host].was_reported();
        }
        let entries = self.hosts[host].closing_entries();
        self.submit_closing(host, next, &entries);
    }

    fn on_counted(&mut self, epoch: usize, closing: &Closing) -> Verdicts {
        let voter = (epoch, closing.authority.index());
        let is_own = self.reported.get(&(voter, closing.shard)) == Some(&closing.root);
        self.books.on_closing_counted(voter, is_own)
    }

    /// Tells whether an honest authority of an epoch has not closed yet.
    fn can_vote(&self, epoch: usize) -> bool {
        let shards = usize::from(self.scenario.shards);
        let is_open = |(index, authority): (usize, &usize)| {
            let mut hosts = authority * shards..(authority + 1) * shards;
            hosts.any(|host| {
                let has_closed =
                    self.reported.contains_key(&((epoch, index), self.hosts[host].shard));
                let is_honest = self.behaviour(host) == Behaviour::Honest;
                is_honest && !self.hosts[host].is_lost && !has_closed
            })
        };
        self.epochs[epoch].members.iter().enumerate().any(is_open)
    }

    /// Whatever can be read of an epoch's reports now. Of liars, some of it.
    fn read(&mut self, epoch: usize) -> Readings {
        let mut read = Readings::new();
        let shards = self.scenario.shards;
        let border = self.committees[epoch].border().clone();
        for shard in 0..shards {
            for closing in border.closings(shard) {
                let is_there = self.is_calm || self.rng.below(3) > 0;
                if let Some(entries) = self.entries(closing).filter(|_| is_there) {
                    read.insert((shard, closing.authority), entries);
                }
            }
        }
        read
    }

    /// Entries of a report, if its chunks are there and are what it says.
    fn entries(&self, closing: &Closing) -> Option<Vec<LockEntry>> {
        let nothing = Vec::new();
        let chunks = match closing.count {
            0 => &nothing,
            _ => self.chunks.get(&closing.root)?,
        };
        let leaves = (0..).zip(chunks).map(|(number, chunk)| chunk_leaf(number, chunk));
        let leaves: Vec<Digest> = leaves.collect();
        let entries: Option<Vec<Vec<LockEntry>>> =
            chunks.iter().map(|chunk| decode_chunk(chunk)).collect();
        entries.filter(|_| closing.has_leaves(&leaves)).map(|all| all.concat())
    }

    /// A host begins an epoch if it can, and reads what else there is once it has; it tries again
    /// until it has all reports that will come.
    pub(super) fn on_begin(&mut self, host: usize, epoch: usize) {
        let Some(place) = seat(&self.epochs, epoch, self.hosts[host].authority) else { return };
        if self.hosts[host].is_lost || self.hosts[host].epoch() > Some(epoch) {
            return;
        }
        let change = &self.scenario.changes[epoch - 1];
        let again = self.now + Duration::from_micros(change.begin_us.max(100_000));
        let weights: Vec<Weights> =
            self.epochs[..epoch].iter().map(|one| Weights::equal(one.members.len())).collect();
        let readings = self.readings(host, epoch);
        if self.hosts[host].epoch() == Some(epoch) {
            if readings != self.hosts[host].readings() && self.hosts[host].is_up() {
                self.hosts[host].read_more(&weights, readings, &mut self.rng);
                self.follow(host);
            }
        } else if self.may_begin(host, epoch) && self.hosts[host].begin(place, &weights, readings) {
            self.follow(host);
        }
        if !self.has_read_all(host, epoch) {
            self.events.schedule(again, SimEvent::Begin(host, epoch));
        }
    }

    /// Reports of all epochs before that a host has once it reads what there is.
    fn readings(&mut self, host: usize, epoch: usize) -> Vec<Readings> {
        let mut readings = self.hosts[host].readings().to_vec();
        readings.resize(epoch, Readings::new());
        for (former, known) in readings.iter_mut().enumerate() {
            for (place, entries) in self.read(former) {
                known.entry(place).or_insert(entries);
            }
        }
        readings
    }

    /// A host that serves the epoch before has closed, and its report counts; a newcomer begins the
    /// first of its epochs before the next one, which waits for its report.
    fn may_begin(&self, host: usize, epoch: usize) -> bool {
        let Some(seat) = self.hosts[host].seat() else {
            let authority = self.hosts[host].authority;
            return !self.epochs[..epoch].iter().any(|one| one.members.contains(&authority));
        };
        if self.behaviour(host) != Behaviour::Honest {
            return true;
        }
        let mut closings = self.committees[seat.epoch].border().closings(self.hosts[host].shard);
        seat.epoch + 1 == epoch
            && self.hosts[host].is_up()
            && closings.any(|one| one.authority == seat.id())
    }

    /// Tells whether a host has read every report that is sure to come.
    pub(super) fn has_read_all(&self, host: usize, epoch: usize) -> bool {
        let is_liar = self.behaviour(host) != Behaviour::Honest;
        let has_read = || {
            (0..epoch).all(|former| {
                let read = &self.hosts[host].readings()[former];
                self.sure_reports(former).all(|place| read.contains_key(&place))
            })
        };
        self.hosts[host].epoch() == Some(epoch) && (is_liar || has_read())
    }

    /// Places of the reports of an epoch's honest authorities that are not lost.
    fn sure_reports(&self, epoch: usize) -> impl Iterator<Item = (u16, ReplicaId)> {
        let later = self.scenario.changes.iter().skip(epoch);
        let lost: Vec<usize> = later.filter_map(|change| Some(change.lost?.0)).collect();
        let behaviours = self.scenario.behaviours.clone();
        let members = self.epochs[epoch].members.clone();
        let sure = (0..)
            .zip(members)
            .filter(move |(_, one)| behaviours[*one] == Behaviour::Honest && !lost.contains(one));
        let shards = self.scenario.shards;
        sure.flat_map(move |(index, _)| (0..shards).map(move |shard| (shard, ReplicaId(index))))
    }

    /// An owner follows to an epoch, unless it is there already.
    pub(super) fn on_enter(&mut self, endpoint: usize, epoch: usize) -> Verdicts {
        let owner = endpoint - self.hosts.len();
        while self.epoch_of(endpoint).is_some_and(|current| current < epoch) {
            let next = self.epoch_of(endpoint).expect("an owner is in one") + 1;
            let network = Arc::clone(&self.epochs[next].network);
            if owner < self.wallets.len() {
                self.wallets[owner].enter(self.now, next, &network);
                let key = self.wallets[owner].owner();
                self.wallets[owner].barred = self.books.well_known(next, key);
            } else {
                self.thieves[owner - self.wallets.len()].enter(next, &network);
            }
        }
        if owner < self.wallets.len() { self.drain_payer(owner) } else { Ok(()) }
    }

    /// An authority loses its disks and keys, for good.
    pub(super) fn on_lost(&mut self, authority: usize) {
        let shards = usize::from(self.scenario.shards);
        for host in authority * shards..(authority + 1) * shards {
            self.hosts[host].lose_all();
        }
        (0..self.epochs.len()).for_each(|epoch| self.leak(epoch));
    }
}
