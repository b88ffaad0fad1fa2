//! Events of hosts and clients: frames, timers, finished work, faults.

use super::replica::{Arrival, Checked, ReplicaHost, Station, Turn, Work};
use super::{Channel, SHUFFLE_EVERY, SimEvent, World};
use crate::byzantine::Behaviour;
use crate::faults::Fault;
use crate::network::RECONNECT_US;
use crate::oracles::{Observation, Violation};
use bytes::Bytes;
use quorate_engine::FrameTag;
use quorate_types::{Rejected, Time};
use std::sync::Arc;
use std::time::Duration;

impl World {
    pub(super) fn apply(&mut self, what: SimEvent) -> Result<(), Violation> {
        if let Some(resumes) = self.paused_until(&what) {
            self.schedule(resumes, what);
            return Ok(());
        }
        let (kind, place, digest) = what.fingerprint();
        self.trace.record(self.now, kind, place, &digest);
        match what {
            SimEvent::Frame { to, channel, honest, content, .. } => {
                self.deliver(to, channel, honest, content)
            }
            SimEvent::Bring { planned, attempt } => self.bring(planned, attempt),
            SimEvent::Shown { to, step } => self.learn_end(to, step),
            SimEvent::Succeed { host, incarnation } if self.is_of(host, incarnation) => {
                self.succeed(host)
            }
            SimEvent::Succeed { .. } => Ok(()),
            SimEvent::Timer { endpoint } => self.ring(endpoint),
            SimEvent::Work { host, incarnation, work } => self.finish(host, incarnation, work),
            SimEvent::Checked { host, incarnation, checked } if self.is_of(host, incarnation) => {
                let station = checked.station;
                self.finish_check(host, *checked)?;
                self.check(host, station)
            }
            SimEvent::Resume { host, incarnation, station } if self.is_of(host, incarnation) => {
                self.check(host, station)
            }
            SimEvent::Checked { .. } | SimEvent::Resume { .. } => Ok(()),
            SimEvent::Submit { client, operation } => self.submit(client, operation),
            SimEvent::Fault(fault) => self.begin(&fault),
            SimEvent::Boot { host } => self.boot(host),
            SimEvent::Connected { host, to } => self.connect(host, to),
            SimEvent::Shuffle => {
                self.twins.shuffle();
                self.schedule(self.now + SHUFFLE_EVERY, SimEvent::Shuffle);
                Ok(())
            }
            SimEvent::Calm => self.calm(),
        }
    }

    /// Until when the host that this concerns does nothing at all.
    fn paused_until(&self, what: &SimEvent) -> Option<Time> {
        let host = match what {
            SimEvent::Frame { to: host, .. }
            | SimEvent::Shown { to: host, .. }
            | SimEvent::Succeed { host, .. }
            | SimEvent::Timer { endpoint: host }
            | SimEvent::Checked { host, .. }
            | SimEvent::Resume { host, .. }
            | SimEvent::Connected { host, .. }
            | SimEvent::Work { host, .. } => *host,
            _ => return None,
        };
        let paused_until = self.hosts.get(host)?.paused_until;
        (paused_until > self.now).then_some(paused_until)
    }

    pub(super) fn deliver(
        &mut self,
        to: usize,
        channel: Channel,
        honest: bool,
        content: Bytes,
    ) -> Result<(), Violation> {
        let Channel { sender, epoch, from } = channel;
        if epoch != self.epoch_of(to) {
            // A connection is of one epoch: this one ended when either end went on.
            self.meet(sender, to);
            return Ok(());
        }
        let tag = content.first().copied().unwrap_or(0);
        if content.len() > FrameTag::parse(tag).map_or(0, |tag| tag.rules().bytes_max) {
            // The transport closes the connection before it reads on.
            return self.judge(honest, tag, Err(Rejected::TooLarge("a frame")));
        }
        let Some(client) = to.checked_sub(self.hosts.len()) else {
            let station = self.hosts[to].arrive(self.now, from, Arrival { honest, content });
            return self.check(to, station);
        };
        match self.clients[client].deliver(self.now, from, content) {
            Ok(turn) => self.apply_client_turn(client, turn),
            Err(reason) => self.judge(honest, tag, Err(reason)),
        }
    }

    /// Lets a thread that checks go on, until it is busy or nothing is left.
    fn check(&mut self, to: usize, station: Station) -> Result<(), Violation> {
        while let Some(checked) = self.hosts[to].begin_check(self.now, station) {
            if self.hosts[to].is_correct() {
                self.oracles.observe(&Observation::Checked(checked.frame))?;
            }
            if checked.frame.cost > Duration::ZERO {
                let (at, incarnation) = (self.now + checked.frame.cost, self.hosts[to].incarnation);
                let checked = Box::new(checked);
                self.schedule(at, SimEvent::Checked { host: to, incarnation, checked });
                return Ok(());
            }
            self.finish_check(to, checked)?;
        }
        if let Some(at) = self.hosts[to].next_check(self.now, station) {
            let incarnation = self.hosts[to].incarnation;
            self.schedule(at, SimEvent::Resume { host: to, incarnation, station });
        }
        Ok(())
    }

    fn finish_check(&mut self, to: usize, checked: Checked) -> Result<(), Violation> {
        let host = &mut self.hosts[to];
        let (honest, tag) = (checked.frame.honest && host.is_correct(), checked.tag);
        let mut turn = Turn::default();
        let outcome = host.finish_check(self.now, checked, &mut turn);
        self.judge(honest, tag, outcome)?;
        self.apply_turn(to, turn)
    }

    fn judge(
        &mut self,
        honest: bool,
        tag: u8,
        outcome: Result<(), Rejected>,
    ) -> Result<(), Violation> {
        self.refused += u64::from(outcome.is_err());
        match outcome {
            Err(reason) if honest => {
                self.oracles.observe(&Observation::Refused { reason: &reason, tag })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn ring(&mut self, endpoint: usize) -> Result<(), Violation> {
        let Some(client) = endpoint.checked_sub(self.hosts.len()) else {
            let host = &mut self.hosts[endpoint];
            if host.armed != Some(self.now) {
                // A pause may have held it back: only the timer that is set counts.
                if host.armed.is_none_or(|armed| armed > self.now) {
                    return Ok(());
                }
            }
            host.armed = None;
            let turn = host.wake(self.now);
            return self.apply_turn(endpoint, turn);
        };
        let host = &mut self.clients[client];
        if host.armed != Some(self.now) {
            return Ok(());
        }
        host.armed = None;
        let turn = host.wake(self.now);
        self.apply_client_turn(client, turn)
    }

    pub(super) fn finish(
        &mut self,
        host: usize,
        incarnation: u32,
        work: Work,
    ) -> Result<(), Violation> {
        if !self.is_of(host, incarnation) {
            return Ok(());
        }
        let turn = self.hosts[host].finish(self.now, work);
        self.apply_turn(host, turn)
    }

    /// Returns `true` if the host runs and is in this one of its starts.
    pub(super) fn is_of(&self, host: usize, incarnation: u32) -> bool {
        let host = &self.hosts[host];
        host.incarnation == incarnation && host.is_up()
    }

    pub(super) fn submit(&mut self, client: usize, operation: Bytes) -> Result<(), Violation> {
        self.unsubmitted -= 1;
        self.oracles.observe(&Observation::Submitted { operation: &operation })?;
        let turn = self.clients[client].submit(self.now, operation);
        self.apply_client_turn(client, turn)
    }

    pub(super) fn boot(&mut self, host: usize) -> Result<(), Violation> {
        if self.hosts[host].is_up() || self.hosts[host].has_halted() {
            return Ok(());
        }
        self.show_beginning(host)?;
        let turn = self.hosts[host].boot(self.now);
        self.apply_turn(host, turn)?;
        self.reconnect(self.now, |one, other| one == host || other == host);
        Ok(())
    }

    /// The connections that `lost` names come up again, each a while after `since`.
    fn reconnect(&mut self, since: Time, lost: impl Fn(usize, usize) -> bool) {
        let hosts = self.hosts.len();
        let pairs = (0..hosts).flat_map(|host| (0..hosts).map(move |to| (host, to)));
        for (host, to) in pairs.filter(|(host, to)| host != to && lost(*host, *to)) {
            let at = since + self.connections.span(&RECONNECT_US);
            self.schedule(at, SimEvent::Connected { host, to });
        }
    }

    fn connect(&mut self, host: usize, to: usize) -> Result<(), Violation> {
        let is_cut = self.network.is_cut(self.now, host, to);
        if is_cut || !self.hosts[host].is_up() || !self.hosts[to].is_up() {
            return Ok(());
        }
        if self.epoch_of(host) != self.epoch_of(to) {
            self.meet(host, to);
            return Ok(());
        }
        let member = self.hosts[to].id();
        let turn = self.hosts[host].connected(self.now, member);
        self.apply_turn(host, turn)
    }

    fn begin(&mut self, fault: &Fault) -> Result<(), Violation> {
        self.tell(|| format!("{fault:?}"));
        if self.calm {
            return Ok(());
        }
        match *fault {
            Fault::Partition { side, shape, lasts } => {
                let cut = self.network.partition(self.now, side, shape, lasts);
                self.reconnect(self.now + lasts, |host, to| cut.cuts(host, to));
            }
            Fault::Clog { from, to, lasts } => self.network.clog(self.now, from, to, lasts),
            Fault::Pause { host, lasts } => {
                let paused_until = &mut self.hosts[host].paused_until;
                *paused_until = (*paused_until).max(self.now + lasts);
            }
            Fault::Suspend { host, lasts } => {
                self.hosts[host].suspend(self.now, lasts);
                let (at, incarnation) = (self.now + lasts, self.hosts[host].incarnation);
                self.schedule(at, SimEvent::Work { host, incarnation, work: Work::WakeUp });
            }
            Fault::SlowDisk { host, sync_us, lasts } => {
                let sync = Duration::from_micros(sync_us);
                self.hosts[host].slow_down_disk(sync, self.now + lasts);
            }
            Fault::Crash { host, down } => self.crash(host, down),
            Fault::WipeBodies { host, down } => {
                self.crash(host, down);
                self.hosts[host].wipe_bodies();
            }
            Fault::Wipe { host, down } => {
                self.crash(host, down);
                let first = Arc::clone(self.epochs.first());
                self.hosts[host].wipe(first);
                let replica = self.hosts[host].config.name;
                self.oracles.observe(&Observation::Wiped { replica })?;
            }
            Fault::CopyDisk { host, down } => {
                self.crash(host, down);
                self.hosts[host].copy_disk();
            }
            Fault::PutBack { host, down } => {
                self.crash(host, down);
                if self.hosts[host].put_back() {
                    let replica = self.hosts[host].config.name;
                    self.oracles.observe(&Observation::Restored { replica })?;
                }
            }
            Fault::DiskFails { host, how, down } => self.hosts[host].fail_disk(how, down),
            Fault::ClockStep { host, by_ms, down } => {
                self.crash(host, down);
                self.hosts[host].step_clock(by_ms);
            }
            Fault::PowerCut { down } => (0..self.hosts.len()).for_each(|host| {
                self.crash(host, down);
            }),
        }
        Ok(())
    }

    /// Mostly nearly everything unsynced is lost; sometimes it had all reached the disk.
    pub(super) fn crash(&mut self, host: usize, down: Duration) {
        let lost = if self.rng.one_in(4) { 0 } else { self.rng.between(&(80..=100)) };
        self.hosts[host].crash(lost);
        self.schedule(self.now + down, SimEvent::Boot { host });
    }

    /// The faults are over: whoever is down starts, and from here on there is a bound.
    pub(super) fn calm(&mut self) -> Result<(), Violation> {
        self.tell(|| "calm".to_owned());
        self.calm = true;
        self.view_at_calm = self.summary().view;
        self.network.calm();
        self.reconnect(self.now, |_, _| true);
        for host in 0..self.hosts.len() {
            self.hosts[host].calm();
            self.boot(host)?;
        }
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        if self.unsubmitted > 0 || self.clients.iter().any(|client| client.pending() > 0) {
            return false;
        }
        self.changes_waiting() == 0
            && self.correct().all(|host| host.executed() >= Some(self.last_filled))
            && self.correct().all(|host| host.epoch.number() == self.epochs.last().number())
    }

    pub(super) fn correct(&self) -> impl Iterator<Item = &ReplicaHost> {
        self.hosts.iter().filter(|host| host.config.behaviour == Behaviour::Honest)
    }
}
