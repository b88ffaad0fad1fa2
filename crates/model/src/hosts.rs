//! Hosts: cores that validators share, what is in service on them, and their disks.

use crate::jobs::Completion;
use crate::processor::Processor;
use crate::station::Station;
use crate::time::Nanos;

/// A job in service.
pub(crate) struct InService {
    pub(crate) member: usize,
    pub(crate) station: Station,
    /// When its thread was ready to run, and how long it takes alone.
    pub(crate) ready: Nanos,
    pub(crate) cost: Nanos,
    pub(crate) completion: Completion,
}

/// A host's cores and disk.
struct Host {
    processor: Processor,
    /// Jobs whose core is being woken.
    waking: usize,
    /// Time of the event that looks for jobs that are done, if one is scheduled.
    check_at: Option<Nanos>,
    /// Time from which on the disk is free.
    disk_free: Nanos,
    /// Time that the disk was occupied.
    disk_used: Nanos,
}

/// All hosts of a scene. Members are given to them in turn.
pub(crate) struct Hosts {
    hosts: Vec<Host>,
    /// Jobs in service on any host, by the number that its processor knows them by.
    jobs: Vec<Option<InService>>,
    /// Numbers of jobs that are done.
    free: Vec<usize>,
}

impl Hosts {
    pub(crate) fn new(hosts: usize, cores: u32) -> Self {
        let host = || Host {
            processor: Processor::new(cores),
            waking: 0,
            check_at: None,
            disk_free: Nanos::default(),
            disk_used: Nanos::default(),
        };
        Self { hosts: (0..hosts).map(|_| host()).collect(), jobs: Vec::new(), free: Vec::new() }
    }

    /// Host of a member.
    pub(crate) fn of(&self, member: usize) -> usize {
        member % self.hosts.len()
    }

    /// Tells whether every core of a member's host has a job, or is being woken for one.
    pub(crate) fn is_crowded(&self, member: usize) -> bool {
        let Host { processor, waking, .. } = &self.hosts[self.of(member)];
        processor.jobs() + waking >= processor.cores() as usize
    }

    /// A core of a member's host is being woken for a job, or no longer.
    pub(crate) fn wake(&mut self, member: usize, begins: bool) {
        let host = self.of(member);
        let waking = &mut self.hosts[host].waking;
        *waking = if begins { *waking + 1 } else { *waking - 1 };
    }

    /// Takes in a job whose service [`Hosts::start`] begins; returns its number.
    pub(crate) fn admit(&mut self, job: InService) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.jobs[number] = Some(job);
                number
            }
            None => {
                self.jobs.push(Some(job));
                self.jobs.len() - 1
            }
        }
    }

    /// Begins the service of a job that was taken in; returns its host.
    pub(crate) fn start(&mut self, now: Nanos, number: usize) -> usize {
        let job = self.jobs[number].as_ref().expect("taken in");
        let (host, cost) = (self.of(job.member), job.cost);
        self.hosts[host].processor.start(now, cost, number);
        host
    }

    /// Time at which a host is to be looked at for jobs that are done, unless an event for an
    /// earlier time is scheduled.
    pub(crate) fn next_check(&mut self, host: usize) -> Option<Nanos> {
        let Host { processor, check_at, .. } = &mut self.hosts[host];
        let next = processor.next().filter(|next| check_at.is_none_or(|at| *next < at))?;
        *check_at = Some(next);
        Some(next)
    }

    /// Tells whether the event that looks at a host now is the one that was scheduled last.
    pub(crate) fn begin_check(&mut self, host: usize, now: Nanos) -> bool {
        let is_due = self.hosts[host].check_at == Some(now);
        if is_due {
            self.hosts[host].check_at = None;
        }
        is_due
    }

    /// Takes a job of a host that is done by now.
    pub(crate) fn finish(&mut self, host: usize, now: Nanos) -> Option<InService> {
        let number = self.hosts[host].processor.finish(now)?;
        self.free.push(number);
        Some(self.jobs[number].take().expect("in service"))
    }

    /// Syncs on the disk of a member's host, which it occupies for `shared` after what it was given
    /// before, and which takes `alone` at least; returns when it is done.
    pub(crate) fn sync(&mut self, member: usize, now: Nanos, alone: Nanos, shared: Nanos) -> Nanos {
        let host = self.of(member);
        let Host { disk_free, disk_used, .. } = &mut self.hosts[host];
        *disk_free = (*disk_free).max(now) + shared;
        *disk_used += shared;
        (*disk_free).max(now + alone)
    }

    /// Time that each host's disk was occupied by what it has been given until now.
    pub(crate) fn disks(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.hosts.iter().map(|host| host.disk_used)
    }

    /// Cores of each host.
    pub(crate) fn cores(&self) -> u32 {
        self.hosts[0].processor.cores()
    }

    /// Core time that each host has used until now.
    pub(crate) fn used(&self, now: Nanos) -> impl Iterator<Item = Nanos> + '_ {
        self.hosts.iter().map(move |host| host.processor.used(now))
    }
}
