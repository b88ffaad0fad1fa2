//! What happens at authorities.

use super::{Frame, HostEvent, SimEvent, Verdicts, World};
use crate::faults::Fault;
use crate::payments::books::Violation;
use crate::payments::host::{HostRequest, Seat};
use crate::payments::liar::{self, Behaviour};
use quorate_payments::{Answer, AuthorityEvent, Numbered, Transaction, Verdict, WalletRequest};
use quorate_types::Time;
use std::time::Duration;

impl World {
    pub(super) fn on_order(&mut self, host: usize, from: usize, tx: &Transaction) {
        let behaviour = self.behaviour(host);
        if behaviour != Behaviour::Honest {
            let Seat { keys, network, .. } = self.seat(host).clone();
            let me = self.seat(host).id();
            self.seen.add(&network, tx);
            let answer = liar::answer(behaviour, &network, &keys, me, tx, &mut self.rng);
            if let Some(answer) = answer {
                self.send(host, from, &Frame::Answer(me, Box::new(answer)));
            }
            return;
        }
        if self.hosts[host].on_order(from as u64, tx.clone()) {
            self.later(host, 2_000, HostEvent::Look);
        }
    }

    /// Comes back to a host that is still the same by then.
    pub(super) fn later(&mut self, host: usize, most_us: u64, back: HostEvent) {
        let (at, life) = (self.soon(most_us), self.hosts[host].life);
        self.events.schedule(at, SimEvent::Host { host, life, back });
    }

    pub(super) fn on_host(&mut self, host: usize, life: u64, back: HostEvent) -> Verdicts {
        if self.hosts[host].life != life {
            return Ok(());
        }
        let resumes = self.hosts[host].paused_until;
        if resumes > self.now {
            self.events.schedule(resumes, SimEvent::Host { host, life, back });
            return Ok(());
        }
        let now = self.now;
        let requests = match back {
            HostEvent::Look => match self.hosts[host].look() {
                Some((orders, requests)) => {
                    let event = Box::new(AuthorityEvent::Orders(orders));
                    self.later(host, 1_000, HostEvent::Machine(event));
                    requests
                }
                None => Vec::new(),
            },
            HostEvent::Machine(event) => self.hosts[host].handle(now, *event),
            HostEvent::Synced(up_to) => self.hosts[host].on_synced(up_to),
            HostEvent::Timer => self.hosts[host].on_timeout(now),
            HostEvent::Follow(number) => self.on_follow(host, number),
            HostEvent::Resubmit => {
                self.resubmit(host);
                Vec::new()
            }
            HostEvent::ReportLocks(next) => {
                self.report_locks_again(host, next);
                Vec::new()
            }
        };
        self.serve(host, requests)?;
        if let Some(at) = self.hosts[host].next_timeout() {
            self.events
                .schedule(at.max(now), SimEvent::Host { host, life, back: HostEvent::Timer });
        }
        Ok(())
    }

    pub(super) fn serve(&mut self, host: usize, requests: Vec<HostRequest>) -> Verdicts {
        for request in requests {
            match request {
                HostRequest::Sync(up_to) => {
                    let slow = self.hosts[host].slow.filter(|(_, until)| *until > self.now);
                    let most_us = slow.map_or(5_000, |(sync_us, _)| sync_us);
                    self.later(host, most_us, HostEvent::Synced(up_to));
                }
                HostRequest::Sign(job) => {
                    let seat = self.seat(host);
                    let signed = job.run(&seat.network, &seat.keys.voting, seat.id());
                    let event = Box::new(AuthorityEvent::Signed(signed));
                    self.later(host, 1_000, HostEvent::Machine(event));
                }
                HostRequest::Read(sequence) => {
                    let lock = self.hosts[host].read(sequence);
                    let event = AuthorityEvent::Read { sequence, lock };
                    self.later(host, 3_000, HostEvent::Machine(Box::new(event)));
                }
                HostRequest::Send(ticket, answer) => self.answer(host, ticket, answer)?,
                HostRequest::Reply(ticket, number, content) => {
                    let to = usize::try_from(ticket).expect("an endpoint");
                    let reply = Box::new(Numbered { number, content });
                    self.send(host, to, &Frame::Reply(self.seat(host).id(), reply));
                }
                HostRequest::Report(coin, held) => self.report_lock(host, coin, held)?,
                HostRequest::Closed(next) => self.report_locks(host, next)?,
                HostRequest::Evidence(proof) => {
                    self.conflicts += 1;
                    if !proof.is_proven(&self.stranger) {
                        let text = format!("{proof:?} proves nothing");
                        return Err(Violation { oracle: "evidence", text });
                    }
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, host: usize, ticket: u64, answer: Answer) -> Verdicts {
        match &answer.verdict {
            Verdict::Vote(_) => {
                let (voter, shard) = (self.voter(host), self.hosts[host].shard);
                self.books.on_vote(voter, shard, answer.tx)?;
            }
            Verdict::Invalid(_) => self.invalid += 1,
            Verdict::Locked { .. }
            | Verdict::Busy
            | Verdict::Undecided { .. }
            | Verdict::Released { .. }
            | Verdict::Closed => {}
        }
        let by = self.seat(host).id();
        let to = usize::try_from(ticket).expect("an endpoint");
        self.send(host, to, &Frame::Answer(by, Box::new(answer)));
        Ok(())
    }

    /// The request of a wallet, whose key the channel proves.
    pub(super) fn on_request(
        &mut self,
        host: usize,
        from: usize,
        request: Numbered<WalletRequest>,
    ) -> Verdicts {
        let Numbered { number, content } = request;
        let behaviour = self.behaviour(host);
        if behaviour != Behaviour::Honest {
            let reply = self.seen.reply(behaviour, &content, &mut self.rng);
            if let Some(content) = reply {
                let me = self.seat(host).id();
                let reply = Box::new(Numbered { number, content });
                self.send(host, from, &Frame::Reply(me, reply));
            }
            return Ok(());
        }
        let owner = self.owners[from - self.hosts.len()];
        let requests = self.hosts[host].on_request((from as u64, number), owner, content);
        self.serve(host, requests)
    }

    pub(super) fn on_fault(&mut self, number: usize) {
        let now = self.now;
        match self.scenario.schedule[number].1.clone() {
            Fault::Partition { side, shape, lasts } => {
                self.links.partition(now, side, shape, lasts);
            }
            Fault::Clog { from, to, lasts } => self.links.clog(now, from, to, lasts),
            Fault::Pause { host, lasts } | Fault::Suspend { host, lasts } => {
                self.hosts[host].paused_until = now + lasts;
            }
            Fault::SlowDisk { host, sync_us, lasts } => {
                self.hosts[host].slow = Some((sync_us, now + lasts));
            }
            // A failed write or sync stops an authority, which then begins with what is durable.
            Fault::Crash { host, down }
            | Fault::DiskFails { host, down, .. }
            | Fault::ClockStep { host, down, .. } => self.crash(host, down),
            Fault::PowerCut { down } => {
                (0..self.hosts.len()).for_each(|host| self.crash(host, down));
            }
            // An authority that lost its locks never comes back; none is drawn.
            Fault::Wipe { .. }
            | Fault::WipeBodies { .. }
            | Fault::CopyDisk { .. }
            | Fault::PutBack { .. } => {}
        }
    }

    fn crash(&mut self, host: usize, down: Duration) {
        self.hosts[host].crash(&mut self.rng);
        self.events.schedule(self.now + down, SimEvent::Restart(host));
    }

    /// Time at which something arrives that a client of the committee sends.
    pub(super) fn ordered_at(&mut self) -> Time {
        let most_us = self.scenario.order_us;
        self.soon(most_us)
    }
}
