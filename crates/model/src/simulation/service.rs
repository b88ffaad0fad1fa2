//! Service at stations: jobs wait in queues, and share their host's cores once they are begun.

use super::event::SimEvent;
use super::state::State;
use crate::hosts::InService;
use crate::jobs::Job;
use crate::queue::Priority;
use crate::station::Station;
use crate::time::Nanos;

/// The pool waits with bodies and requests while so many wait for the machine (`node::machine`).
const MACHINE_BULK_MAX: usize = 256;

impl State {
    /// Puts a job in a station's queue, and begins what the station can begin.
    pub(crate) fn queue(&mut self, member: usize, station: Station, priority: Priority, job: Job) {
        self.nodes.validators[member].station(station).push(priority, job);
        self.serve(member, station);
    }

    /// Begins what a station can begin.
    pub(crate) fn serve(&mut self, member: usize, station: Station) {
        loop {
            let bulk = self.takes_bulk(member, station);
            let queue = self.nodes.validators[member].station(station);
            let Some((job, woken)) = queue.begin(bulk) else { return };
            if let Job::Check(frame) = &job {
                self.in_flight.leave(frame, member);
            }
            let (cost, completion) = self.apply(member, station, job);
            let cost = self.contended_cost(member, station, cost, woken);
            self.nodes.validators[member].station(station).used += cost;
            let ready = self.now;
            let job = self.hosts.admit(InService { member, station, ready, cost, completion });
            self.start_woken(member, job, woken);
            if station == Station::Machine {
                self.serve(member, Station::Checks);
            }
        }
    }

    /// Begins a job's service: at once, or when the core that its thread was woken on is awake.
    fn start_woken(&mut self, member: usize, job: usize, woken: bool) {
        let delay = (self.prices.wake_delay_us * 1e3) as Nanos;
        if woken && delay > 0 && !self.hosts.is_crowded(member) {
            self.hosts.wake(member, true);
            self.events.schedule(self.now + delay, SimEvent::Awake { member, job });
        } else {
            self.start(job);
        }
    }

    /// A core is awake for a job.
    pub(crate) fn awake(&mut self, member: usize, job: usize) {
        self.hosts.wake(member, false);
        self.start(job);
    }

    /// Begins a job's service.
    fn start(&mut self, job: usize) {
        let host = self.hosts.start(self.now, job);
        self.check_later(host);
    }

    /// Tells whether a station may begin bulk jobs.
    fn takes_bulk(&mut self, member: usize, station: Station) -> bool {
        let validator = &mut self.nodes.validators[member];
        match station {
            Station::Machine => validator.takes_bulk(),
            Station::Checks => {
                validator.station(Station::Machine).waiting(Priority::Bulk) < MACHINE_BULK_MAX
            }
            _ => true,
        }
    }

    /// Cost of a job on its host now: dearer or cheaper while all cores are taken, and with what
    /// waking a thread costs.
    fn contended_cost(&self, member: usize, station: Station, cost: Nanos, woken: bool) -> Nanos {
        let crowded = self.hosts.is_crowded(member);
        let times = if crowded { self.prices.crowded.of(station) } else { 1.0 };
        let waking_us = if woken { self.prices.wake_us.of(station) } else { 0.0 };
        (cost as f64 * times + waking_us * 1e3) as Nanos
    }

    /// Schedules a look at a host for when its next job is done.
    pub(crate) fn check_later(&mut self, host: usize) {
        if let Some(at) = self.hosts.next_check(host) {
            self.events.schedule(at, SimEvent::JobDone { host });
        }
    }
}
