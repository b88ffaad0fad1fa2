//! Consequences of a turn of a host or a client: frames that leave, work that takes a while,
//! timers, and observations for the oracles.

use super::client::{ClientHost, ClientTurn};
use super::replica::{HostConfig, Note, ReplicaHost, Turn};
use super::{Channel, STATUS_EVERY, SimEvent, World};
use crate::byzantine::Behaviour;
use crate::epoch::EpochConfig;
use crate::oracles::{Observation, Violation};
use bytes::Bytes;
use quorate_crypto::hash;
use quorate_engine::message::Blocks;
use quorate_engine::{Message, Status};
use quorate_storage::StorageError;
use quorate_types::{Lane, Peer, Recipients, Time};
use std::sync::Arc;
use std::time::Duration;

impl World {
    /// Applies the outcome of a turn of a replica's host.
    pub(super) fn apply_turn(&mut self, host: usize, turn: Turn) -> Result<(), Violation> {
        let Turn { released, later, notes, handed_over } = turn;
        let honest = self.hosts[host].is_correct();
        for note in notes {
            self.tell(|| format!("host {host}: {}", note.brief()));
            self.note(host, &note)?;
        }
        for (to, message) in released {
            self.send(host, to, &message)?;
        }
        let incarnation = self.hosts[host].incarnation;
        for (after, work) in later {
            self.schedule(self.now + after, SimEvent::Work { host, incarnation, work });
        }
        if honest && self.trace.events().is_multiple_of(STATUS_EVERY) {
            self.show_status(host)?;
        }
        self.look_around();
        self.arm(host);
        handed_over.map_or(Ok(()), |step| self.hand_over(host, step))
    }

    fn show_status(&mut self, host: usize) -> Result<(), Violation> {
        let (Some(status), Some(collections)) =
            (self.hosts[host].status(), self.hosts[host].occupancy())
        else {
            return Ok(());
        };
        let replica = self.hosts[host].config.name;
        let status = Status { id: replica, ..status };
        self.oracles.observe(&Observation::Shown { status: &status })?;
        self.oracles.observe(&Observation::Occupied { replica, collections: &collections })
    }

    fn look_around(&mut self) {
        if self.calm && !self.together {
            self.together = self.stand_together();
        }
    }

    /// Returns `true` if all correct replicas that sign are in one view, led by one of them.
    fn stand_together(&self) -> bool {
        let signing = || self.correct().filter(|host| host.signs());
        let Some(first) = signing().next() else { return false };
        let (view, epoch) = (first.view(), self.epochs.last().number());
        let is_there = |host: &ReplicaHost| host.view() == view && host.epoch.number() == epoch;
        if view.is_none() || !signing().all(is_there) {
            return false;
        }
        let leader = first.status().map(|status| status.leader);
        signing().any(|host| leader == Some(host.id()))
    }

    pub(super) fn note(&mut self, host: usize, note: &Note) -> Result<(), Violation> {
        let HostConfig { name: replica, behaviour, .. } = self.hosts[host].config;
        if let Note::Storage(_) = note
            && let Some(down) = self.hosts[host].expected_failure()
        {
            // A failed write or sync stops a replica; somebody repairs the disk.
            self.crash(host, down);
            return Ok(());
        }
        if behaviour != Behaviour::Honest {
            return Ok(());
        }
        if let Note::Storage(StorageError::FalseSnapshot { .. }) = note
            && self.scenario.is_beyond_tolerance()
        {
            // So many may vouch for anything.
            self.hosts[host].halt();
            return Ok(());
        }
        if let Note::Executed { height, operations, .. } = note
            && !operations.is_empty()
        {
            self.last_filled = self.last_filled.max(*height);
        }
        let observation = match note {
            Note::Booted(executed, bodies) => {
                self.observe_of(host, &Observation::Kept { replica, bodies })?;
                Observation::Booted { replica, executed: executed.as_ref() }
            }
            Note::Stored(body) => Observation::Stored { replica, body: *body },
            Note::Executed { height, root, payload, operations } => Observation::Executed {
                replica,
                height: *height,
                root: *root,
                payload: *payload,
                operations,
            },
            Note::Installed { height, root } => {
                self.installed += 1;
                Observation::Installed { replica, height: *height, root: *root }
            }
            Note::Halted(halt) => Observation::Halted { replica, halt },
            Note::StoppedSigning(reason) => Observation::StoppedSigning { replica, reason },
            Note::Barred(peer) => {
                let is_correct = self.is_correct_peer(host, *peer);
                Observation::Barred { replica, peer: *peer, is_correct }
            }
            Note::Proven(member, rule) => {
                let named = self.hosts[host].epoch.host_of(*member);
                let named = &self.hosts[named.expect("evidence is against members")];
                let (member, is_correct) = (named.config.name, named.is_correct());
                Observation::Proven { replica, member, rule: *rule, is_correct }
            }
            Note::Storage(error) => {
                return Err(Violation { oracle: "storage", text: format!("{replica}: {error}") });
            }
        };
        self.observe_of(host, &observation)
    }

    /// Shows what a host did to those who judge the whole run, and to those of its epoch.
    fn observe_of(&mut self, host: usize, what: &Observation<'_>) -> Result<(), Violation> {
        let host = &self.hosts[host];
        self.oracles.observe_in(host.epoch.number(), host.id(), what)
    }

    /// Returns `true` if what a host knows as this peer is a correct one.
    fn is_correct_peer(&self, host: usize, peer: Peer) -> bool {
        let epoch = &self.hosts[host].epoch;
        self.correct().any(|other| self.peer_in(epoch, other) == peer)
    }

    /// What a host is to members of an epoch.
    fn peer_in(&self, epoch: &EpochConfig, host: &ReplicaHost) -> Peer {
        epoch.peer(host.config.number, &host.config.keys.identity.public())
    }

    fn send(&mut self, host: usize, to: Recipients, message: &Message) -> Result<(), Violation> {
        let HostConfig { name, behaviour, .. } = self.hosts[host].config;
        let honest = behaviour == Behaviour::Honest;
        let content = content_of(message);
        self.tell(|| format!("host {host} to {to:?}: {}", brief(message)));
        if honest {
            let (tag, bytes) = (content[0], content.len());
            self.observe_of(host, &Observation::Released { replica: name, message, tag, bytes })?;
        }
        let digest = hash(&content).0;
        let late = behaviour.lateness(message, self.scenario.settings.timeout());
        for endpoint in 0..self.hosts.len() + self.clients.len() {
            if endpoint != host && self.is_meant(endpoint, host, to) {
                let lane = message.lane();
                let epoch = &self.hosts[host].epoch;
                let from = self.peer_in(epoch, &self.hosts[host]);
                let channel = Channel { sender: host, epoch: epoch.number(), from };
                for at in self.route(host, endpoint, lane) {
                    let content = if honest { content.clone() } else { self.corrupted(&content) };
                    let frame = SimEvent::Frame { to: endpoint, channel, honest, content, digest };
                    self.schedule(at + late, frame);
                }
            }
        }
        Ok(())
    }

    /// As often as frames are corrupted, a Byzantine member sends one that is: its own channel does
    /// not mind.
    fn corrupted(&mut self, content: &Bytes) -> Bytes {
        let permille = self.scenario.conditions.corrupt_permille;
        if self.calm || permille == 0 || self.rng.below(1_000) >= permille {
            return content.clone();
        }
        let mut bytes = content.to_vec();
        let place = self.rng.index(bytes.len());
        bytes[place] ^= 1 << self.rng.below(8);
        Bytes::from(bytes)
    }

    /// Whom a sender means is by the members of its epoch, whatever epoch the receiver is in.
    fn is_meant(&self, endpoint: usize, sender: usize, to: Recipients) -> bool {
        let Some(host) = self.hosts.get(endpoint) else {
            return to == Recipients::Client(self.clients[endpoint - self.hosts.len()].id);
        };
        let epoch = &self.hosts[sender].epoch;
        let peer = self.peer_in(epoch, host);
        match to {
            Recipients::All => peer.replica().is_ok() && epoch.seat(endpoint) != epoch.seat(sender),
            Recipients::One(replica) => peer == Peer::Replica(replica),
            Recipients::Client(client) => peer == Peer::Learner(client),
        }
    }

    pub(super) fn route(&mut self, from: usize, to: usize, lane: Lane) -> Vec<Time> {
        if self.twins.connects(from, to) {
            self.network.route(self.now, from, to, lane)
        } else {
            Vec::new()
        }
    }

    /// Applies the outcome of a turn of a client.
    pub(super) fn apply_client_turn(
        &mut self,
        client: usize,
        turn: ClientTurn,
    ) -> Result<(), Violation> {
        let ClientTurn { sends, completed, overloaded } = turn;
        let endpoint = self.hosts.len() + client;
        for (replica, request) in sends {
            let message = Message::Request(request);
            let (lane, content) = (message.lane(), content_of(&message));
            let digest = hash(&content).0;
            let ClientHost { id, epoch, .. } = &self.clients[client];
            let epoch = Arc::clone(epoch);
            let from = Peer::Client(*id);
            let channel = Channel { sender: endpoint, epoch: epoch.number(), from };
            for host in 0..self.hosts.len() {
                if epoch.seat(host) == Some(replica) {
                    for at in self.route(endpoint, host, lane) {
                        let content = content.clone();
                        let honest = true;
                        let frame = SimEvent::Frame { to: host, channel, honest, content, digest };
                        self.schedule(at, frame);
                    }
                }
            }
        }
        for (operation, completed) in completed {
            self.completed += 1;
            let (operation, completed) = (&operation, &completed);
            self.oracles.observe(&Observation::Completed { operation, completed })?;
        }
        for operation in overloaded {
            self.unsubmitted += 1;
            let later = self.now + Duration::from_millis(100);
            self.schedule(later, SimEvent::Submit { client, operation });
        }
        self.arm(endpoint);
        Ok(())
    }

    /// Sets the endpoint's timer, if it wants to be woken earlier than it will be.
    pub(super) fn arm(&mut self, endpoint: usize) {
        let (wake, armed) = match endpoint.checked_sub(self.hosts.len()) {
            None => (self.hosts[endpoint].next_wake(), &mut self.hosts[endpoint].armed),
            Some(client) => (self.clients[client].next_wake(), &mut self.clients[client].armed),
        };
        let Some(wake) = wake else {
            return;
        };
        let wake = wake.max(Time(self.now.0 + 1));
        if armed.is_none_or(|armed| wake < armed) {
            *armed = Some(wake);
            self.schedule(wake, SimEvent::Timer { endpoint });
        }
    }
}

/// A message on one line.
fn brief(message: &Message) -> String {
    match message {
        Message::Body(body) => format!("Body({:?})", body.reference),
        Message::Blocks(blocks) => format!(
            "Blocks({:?}, {} decided, {} more)",
            blocks.request,
            blocks.decided.len(),
            blocks.tail.len()
        ),
        Message::Chain(chain) => {
            let each = |blocks: &Blocks| (blocks.request, blocks.decided.len(), blocks.tail.len());
            let blocks: Vec<_> = chain.blocks.iter().map(each).collect();
            format!("Chain({blocks:?}, {} bodies)", chain.bodies.len())
        }
        Message::Inline(inner, bodies) => format!("{inner:?} with {} bodies", bodies.len()),
        Message::Reply(reply) => format!("Reply(#{} at {})", reply.sequence, reply.height),
        other => format!("{other:?}"),
    }
}

/// A frame's content: what a receiver checks, without the length prefix.
pub(super) fn content_of(message: &Message) -> Bytes {
    let frame = message.frame();
    let whole = frame.0.concat();
    let length = u32::from_le_bytes(whole[..4].try_into().expect("a frame has a length"));
    assert_eq!(length as usize, whole.len() - 4, "a frame is as long as it says");
    Bytes::from(whole).slice(4..)
}
