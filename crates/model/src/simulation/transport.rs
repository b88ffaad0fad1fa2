//! Frames on their way: from a machine's send over links to the stations of their receivers.

use super::event::SimEvent;
use super::state::State;
use crate::frames::Frame;
use crate::jobs::{Destination, Job};
use crate::links::{ConnectionId, Flight};
use crate::queue::Priority;
use crate::station::Station;
use crate::time::Nanos;
use quorate_types::{Lane, Peer, Recipients};
use std::rc::Rc;

/// A frame that passes its receiver's link within so long is taken to have passed at once: no
/// event of its own.
const AT_ONCE: Nanos = 5_000;

/// Members to whom a frame is sent in one turn, where arrivals are taken up by spans.
const RANGE: usize = 32;

impl State {
    /// Hands a frame to the network's threads, once for each that it goes to.
    pub(crate) fn send(&mut self, member: usize, to: Recipients, frame: &Rc<Frame>) {
        match to {
            Recipients::All if self.inbound.takes(frame) => {
                let members = self.nodes.validators.len();
                for from in (0..members).step_by(RANGE) {
                    let to = from..members.min(from + RANGE);
                    let job = Job::SendToRange { to, frame: Rc::clone(frame) };
                    self.queue(member, Station::Net, Priority::Urgent, job);
                }
            }
            Recipients::All => {
                for to in (0..self.nodes.validators.len()).filter(|to| *to != member) {
                    self.send_one(member, Destination::Validator(to), frame);
                }
            }
            Recipients::One(to) => {
                self.send_one(member, Destination::Validator(to.index()), frame);
            }
            Recipients::Client(client) => {
                if let Some((place, _)) = self.client_of(client) {
                    self.send_one(member, Destination::Client(place), frame);
                }
            }
        }
    }

    fn send_one(&mut self, member: usize, to: Destination, frame: &Rc<Frame>) {
        let priority = if frame.lane == Lane::Bulk { Priority::Bulk } else { Priority::Urgent };
        if priority == Priority::Bulk && !self.in_flight.enter(member, to.index(), frame.bytes) {
            return;
        }
        self.queue(member, Station::Net, priority, Job::Send { to, frame: Rc::clone(frame) });
    }

    /// A frame leaves its host, or waits for room in its socket where it can still be taken back.
    pub(crate) fn depart(&mut self, member: usize, to: Destination, frame: Rc<Frame>) {
        let id = self.links.connection(member, to, frame.lane);
        if !self.behaviour.takes_back || frame.spreads.is_none() {
            return self.write(id, to, frame);
        }
        if !self.outboxes.holds(id) {
            let at = self.links.writable(id);
            if at <= self.now {
                return self.write(id, to, frame);
            }
            self.events.schedule(at, SimEvent::Writable { id });
        }
        self.outboxes.push(id, to, frame);
    }

    /// A socket has room: the next frame for it that is still wanted leaves. A sender that crashed
    /// writes none.
    pub(crate) fn write_next(&mut self, id: ConnectionId) {
        while let Some((to, frame)) = self.outboxes.pop(id) {
            let is_wanted = frame.spreads.is_some_and(|body| self.acknowledgements.waits(&body));
            if is_wanted && self.nodes.validators[frame.from].alive {
                self.write(id, to, frame);
                break;
            }
            self.taken_back += 1;
            self.in_flight.leave(&frame, to.index());
        }
        if self.outboxes.holds(id) {
            let at = self.links.writable(id).max(self.now);
            self.events.schedule(at, SimEvent::Writable { id });
        }
    }

    /// A frame is in its socket.
    fn write(&mut self, id: ConnectionId, to: Destination, frame: Rc<Frame>) {
        if matches!(frame.peer, Peer::Replica(_)) {
            let validator = &mut self.nodes.validators[frame.from];
            validator.sent_bytes += frame.bytes as u64;
            validator.sent_frames += frame.each().count() as u64;
        }
        let held = self.links.send(self.now, id, (to, frame), &mut self.flights);
        self.fly();
        if let Some(until) = held {
            self.events.schedule(until, SimEvent::Released { id });
        }
    }

    /// What was held back until now is on its way.
    pub(crate) fn release(&mut self, id: ConnectionId) {
        self.links.release(self.now, id, &mut self.flights);
        self.fly();
    }

    /// Frames are on their way to their receivers' hosts.
    fn fly(&mut self) {
        for Flight { arrives, to, frame } in self.flights.drain(..) {
            match to {
                Destination::Validator(to) if self.inbound.takes(&frame) => {
                    if let Some(at) = self.inbound.put(to, arrives, frame) {
                        self.events.schedule(at, SimEvent::ArrivalsDue { member: to });
                    }
                }
                _ => self.events.schedule(arrives, SimEvent::Arrived { to, frame }),
            }
        }
    }

    /// Takes up the frames that reached a validator's host within the span that ends now.
    pub(crate) fn take_arrivals(&mut self, member: usize) {
        let arrived = self.inbound.take(member, self.now);
        if let Some(frame) = Frame::gathered(arrived) {
            self.arrive(Destination::Validator(member), frame);
        }
    }

    /// A frame passes its receiver's link, or several that came together: they have passed at once,
    /// or when the last of them has.
    pub(crate) fn arrive(&mut self, to: Destination, frame: Rc<Frame>) {
        let (now, links) = (self.now, &mut self.links);
        let each = frame.each();
        let ends = each.map(|one| links.receive(now, one.from, to.index(), one.lane, one.bytes));
        let at = ends.max().unwrap_or(now);
        if at > now + AT_ONCE {
            self.events.schedule(at, SimEvent::Received { to, frame });
        } else {
            self.receive(to, frame);
        }
    }

    /// A frame is all in, and waits for its receiver's threads.
    pub(crate) fn receive(&mut self, to: Destination, frame: Rc<Frame>) {
        match to {
            Destination::Validator(member) if !self.nodes.validators[member].alive => {
                self.in_flight.leave(&frame, member);
            }
            Destination::Validator(member) => {
                let priority = if frame.is_urgent() { Priority::Urgent } else { Priority::Bulk };
                self.queue(member, Station::Net, priority, Job::Receive(frame));
            }
            Destination::Client(member) => {
                self.queue(member, Station::Client, Priority::Urgent, Job::Reply(frame));
            }
        }
    }
}
