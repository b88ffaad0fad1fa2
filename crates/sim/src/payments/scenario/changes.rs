//! A scenario's epochs, and how its changes of authorities are drawn.

use super::Scenario;
use crate::faults::Fault;
use crate::payments::changes::AuthorityChange;
use crate::payments::liar::Behaviour;
use quorate_deterministic::Rng;
use quorate_types::{Time, Weights};

impl Scenario {
    /// Authorities of each epoch by their index, the founding one's first.
    #[must_use]
    pub fn epochs(&self) -> Vec<Vec<usize>> {
        let mut epochs = vec![(0..self.authorities).collect::<Vec<_>>()];
        let mut first = self.authorities;
        for change in &self.changes {
            let members = epochs.last().expect("the founding one");
            epochs.push(change.apply(members, first));
            first += change.newcomers;
        }
        epochs
    }

    /// Number of authorities of all epochs together.
    #[must_use]
    pub fn all_authorities(&self) -> usize {
        self.authorities + self.changes.iter().map(|change| change.newcomers).sum::<usize>()
    }

    /// Without any change of the authorities.
    pub fn remove_changes(&mut self) {
        self.changes.clear();
        self.behaviours.truncate(self.authorities);
        self.keep_hosts();
    }

    /// Without the last one.
    pub(in crate::payments) fn remove_last_change(&mut self) {
        self.changes.pop();
        self.behaviours.truncate(self.all_authorities());
        self.keep_hosts();
    }

    /// With all keys in one shard.
    pub(in crate::payments) fn keep_one_shard(&mut self) {
        self.shards = 1;
        self.keep_hosts();
    }

    /// Without what befalls hosts that are none any more.
    fn keep_hosts(&mut self) {
        let hosts = self.hosts();
        self.follow_us.truncate(hosts);
        self.schedule.retain(|(_, fault)| fault.host().is_none_or(|host| host < hosts));
    }

    /// Checks that those who leave are there, and that an epoch has enough members.
    pub(in crate::payments) fn check_changes(&self) -> Result<(), String> {
        let epochs = self.epochs();
        for (change, members) in self.changes.iter().zip(&epochs) {
            let lost = change.lost.iter().map(|(one, _)| one);
            if change.leaving.iter().any(|one| !members.contains(one)) {
                return Err("only authorities of the epoch that ends leave it".into());
            }
            if !lost.clone().all(|one| change.leaving.contains(one)) {
                return Err("an authority that is lost leaves".into());
            }
            if change.begin_us == 0 || change.follow_us == 0 {
                return Err("nothing takes no time".into());
            }
        }
        let is_enough = epochs.iter().all(|members| members.len() >= 4);
        let has_changes = !self.changes.is_empty();
        if has_changes && !is_enough {
            return Err("epochs between changes have four authorities at least".into());
        }
        Ok(())
    }

    /// Authorities of an epoch that lie in it, or are lost before its border.
    pub(in crate::payments) fn faulty_in(&self, epoch: usize, members: &[usize]) -> usize {
        let later = self.changes.iter().skip(epoch);
        let lost: Vec<usize> = later.filter_map(|change| Some(change.lost?.0)).collect();
        let is_faulty =
            |one: &&usize| self.behaviours[**one] != Behaviour::Honest || lost.contains(*one);
        members.iter().filter(is_faulty).count()
    }

    /// Number of faulty authorities beyond what is tolerated, in the worst epoch.
    pub(in crate::payments) fn excess(&self) -> usize {
        let excess = |(epoch, members): (usize, Vec<usize>)| {
            let tolerated = tolerated(members.len());
            self.faulty_in(epoch, &members).saturating_sub(tolerated)
        };
        self.epochs().into_iter().enumerate().map(excess).max().unwrap_or_default()
    }

    /// Draws a change or two, with every third seed.
    pub(in crate::payments) fn draw_changes(&mut self, rng: &mut Rng) {
        if !rng.one_in(3) {
            return;
        }
        let phase_us = u64::try_from(self.fault_phase.as_micros()).expect("seconds");
        for number in 0..=rng.below(2) {
            let at_us = number * phase_us + rng.between(&(phase_us / 8..=phase_us));
            self.draw_change(at_us, rng);
        }
    }

    /// Crashes about the times at which authorities close and begin.
    pub(in crate::payments) fn draw_crashes_at_borders(&mut self, rng: &mut Rng) {
        for change in self.changes.clone() {
            let span_us = 2 * self.order_us + change.begin_us;
            for _ in 0..rng.perhaps(&(1..=6)) {
                let at = Time(change.at_us + rng.below(span_us));
                let (host, down) = (rng.index(self.hosts()), rng.span(&(1_000..=500_000)));
                self.schedule.push((at, Fault::Crash { host, down }));
            }
        }
        self.schedule.sort_by_key(|(at, _)| *at);
    }

    fn draw_change(&mut self, at_us: u64, rng: &mut Rng) {
        let epochs = self.epochs();
        let members = epochs.last().expect("the founding one");
        let (leave, newcomers) = match rng.below(4) {
            0 => (0, 1),
            1 if members.len() > 4 => (1, 0),
            2 if members.len() > 5 => (2, 2),
            _ => (1, 1),
        };
        let first = rng.index(members.len());
        let leaving = members.iter().cycle().skip(first).take(leave).copied();
        let leaving: Vec<usize> = leaving.collect();
        let is_honest = |one: &usize| self.behaviours[*one] == Behaviour::Honest;
        let candidate = leaving.first().copied().filter(is_honest).filter(|_| rng.coin());
        let lost = candidate.map(|one| (one, rng.below(at_us)));
        let begin_us = *rng.choose(&[20_000, 300_000, 2_000_000]);
        let follow_us = *rng.choose(&[50_000, 1_000_000, 6_000_000]);
        let before = self.clone();
        self.changes.push(AuthorityChange { at_us, leaving, newcomers, lost, begin_us, follow_us });
        for _ in 0..newcomers {
            let is_liar = rng.one_in(8);
            let liar = *rng.choose(&Behaviour::FAULTY);
            self.behaviours.push(if is_liar { liar } else { Behaviour::Honest });
        }
        let slowest = self.follow_us.iter().copied().max().unwrap_or(1_000);
        let hosts = self.hosts();
        self.follow_us.resize_with(hosts, || rng.between(&(1_000..=slowest)));
        if self.excess() > before.excess() {
            self.changes.last_mut().expect("pushed above").lost = None;
        }
        if self.excess() > before.excess() {
            *self = before;
        }
    }
}

/// Most faulty authorities of so many that a network bears.
fn tolerated(members: usize) -> usize {
    usize::try_from(Weights::equal(members).faulty_max()).expect("few")
}
