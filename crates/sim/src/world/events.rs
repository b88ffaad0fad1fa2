//! What happens to hosts and clients: frames, timers, finished work, faults.

use super::replica::{ReplicaHost, Turn, Work};
use super::{Happening, SHUFFLE_EVERY, World};
use crate::byzantine::Behaviour;
use crate::faults::Fault;
use crate::oracles::{Observation, Violation};
use bytes::Bytes;
use quorate_engine::frame_bytes_max;
use quorate_types::{Peer, Rejected, Time};
use std::time::Duration;

impl World {
    pub(super) fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        if let Some(resumes) = self.paused_until(&what) {
            self.schedule(resumes, what);
            return Ok(());
        }
        let (kind, place, digest) = what.fingerprint();
        self.trace.record(self.now, kind, place, &digest);
        match what {
            Happening::Frame { to, from, honest, content, .. } => {
                self.deliver(to, from, honest, content)
            }
            Happening::Timer { endpoint } => self.ring(endpoint),
            Happening::Work { host, incarnation, work } => self.finish(host, incarnation, work),
            Happening::Submit { client, operation } => self.submit(client, operation),
            Happening::Fault(fault) => self.begin(&fault),
            Happening::Boot { host } => self.boot(host),
            Happening::Shuffle => {
                self.twins.shuffle();
                self.schedule(self.now + SHUFFLE_EVERY, Happening::Shuffle);
                Ok(())
            }
            Happening::Calm => self.calm(),
        }
    }

    /// Until when the host that this concerns does nothing at all.
    fn paused_until(&self, what: &Happening) -> Option<Time> {
        let host = match what {
            Happening::Frame { to: host, .. }
            | Happening::Timer { endpoint: host }
            | Happening::Work { host, .. } => *host,
            _ => return None,
        };
        let paused_until = self.hosts.get(host)?.paused_until;
        (paused_until > self.now).then_some(paused_until)
    }

    pub(super) fn deliver(
        &mut self,
        to: usize,
        from: Peer,
        honest: bool,
        content: Bytes,
    ) -> Result<(), Violation> {
        let tag = content.first().copied().unwrap_or(0);
        if content.len() > frame_bytes_max(tag).unwrap_or(0) {
            // The transport closes the connection before it reads on.
            return self.judge(honest, tag, Err(Rejected::TooLarge("a frame")));
        }
        let Some(client) = to.checked_sub(self.hosts.len()) else {
            let host = &mut self.hosts[to];
            let receives = host.config.behaviour == Behaviour::Honest;
            let mut turn = Turn::default();
            let outcome = host.deliver(self.now, from, content, &mut turn);
            self.judge(honest && receives, tag, outcome)?;
            return self.carry_on(to, turn);
        };
        match self.clients[client].deliver(self.now, from, content) {
            Ok(turn) => self.carry_on_client(client, turn),
            Err(reason) => self.judge(honest, tag, Err(reason)),
        }
    }

    fn judge(
        &mut self,
        honest: bool,
        tag: u8,
        outcome: Result<(), Rejected>,
    ) -> Result<(), Violation> {
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
            return self.carry_on(endpoint, turn);
        };
        let host = &mut self.clients[client];
        if host.armed != Some(self.now) {
            return Ok(());
        }
        host.armed = None;
        let turn = host.wake(self.now);
        self.carry_on_client(client, turn)
    }

    pub(super) fn finish(
        &mut self,
        host: usize,
        incarnation: u32,
        work: Work,
    ) -> Result<(), Violation> {
        let machine_room = &mut self.hosts[host];
        if machine_room.incarnation != incarnation || !machine_room.is_up() {
            return Ok(());
        }
        let turn = machine_room.finish(self.now, work);
        self.carry_on(host, turn)
    }

    pub(super) fn submit(&mut self, client: usize, operation: Bytes) -> Result<(), Violation> {
        self.unsubmitted -= 1;
        self.oracles.observe(&Observation::Submitted { operation: &operation })?;
        let turn = self.clients[client].submit(self.now, operation);
        self.carry_on_client(client, turn)
    }

    pub(super) fn boot(&mut self, host: usize) -> Result<(), Violation> {
        if self.hosts[host].is_up() || self.hosts[host].has_halted() {
            return Ok(());
        }
        let turn = self.hosts[host].boot(self.now);
        self.carry_on(host, turn)
    }

    fn begin(&mut self, fault: &Fault) -> Result<(), Violation> {
        self.tell(|| format!("{fault:?}"));
        if self.calm {
            return Ok(());
        }
        match *fault {
            Fault::Partition { side, shape, lasts } => {
                self.network.partition(self.now, side, shape, lasts);
            }
            Fault::Clog { from, to, lasts } => self.network.clog(self.now, from, to, lasts),
            Fault::Pause { host, lasts } => self.hosts[host].paused_until = self.now + lasts,
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
                self.hosts[host].wipe();
                let replica = self.hosts[host].config.id;
                self.oracles.observe(&Observation::Wiped { replica })?;
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
        let lost = if self.dice.one_in(4) { 0 } else { self.dice.between(&(80..=100)) };
        self.hosts[host].crash(lost);
        self.schedule(self.now + down, Happening::Boot { host });
    }

    /// The faults are over: whoever is down starts, and from here on there is a bound.
    pub(super) fn calm(&mut self) -> Result<(), Violation> {
        self.tell(|| "calm".to_owned());
        self.calm = true;
        self.view_at_calm = self.summary().view;
        self.network.calm();
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
        self.correct().all(|host| host.executed() >= Some(self.last_filled))
    }

    pub(super) fn correct(&self) -> impl Iterator<Item = &ReplicaHost> {
        self.hosts.iter().filter(|host| host.config.behaviour == Behaviour::Honest)
    }
}
