//! From the end of one epoch to the next, as validators do it: by the own replica's hand-over, or
//! after a view timeout by one that a host in a later epoch shows.

use super::effects::content_of;
use super::replica::{Note, ReplicaHost};
use super::{Channel, SimEvent, World};
use crate::epoch::{Ended, EpochConfig, falsified};
use crate::oracles::{Observation, Violation};
use bytes::Bytes;
use quorate_crypto::{KeyFile, hash};
use quorate_engine::Message;
use quorate_engine::host::leaving::{self, AtTheEnd};
use quorate_types::{Epoch, HandedOver, Lane, Peer, ReplicaId, Time, View};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Time between two attempts of a client to bring a change.
const BRING_EVERY: Duration = Duration::from_secs(1);

/// Time between two looks of a client whether the change before its own is over.
const WAIT_EVERY: Duration = Duration::from_millis(100);

/// Shortest time between two answers to one endpoint that comes with an earlier epoch.
const SHOW_EVERY: Duration = Duration::from_millis(50);

/// Time in which a host starts again in its next epoch.
const RESTART_US: RangeInclusive<u64> = 1_000..=50_000;

/// Time for which a host that loses power at the border is down.
const DOWN_US: RangeInclusive<u64> = 1_000..=800_000;

impl World {
    /// Epoch in which an endpoint is.
    pub(super) fn epoch_of(&self, endpoint: usize) -> Epoch {
        let hosts = self.hosts.len();
        let host = self.hosts.get(endpoint).map(|host| &host.epoch);
        host.unwrap_or_else(|| &self.clients[endpoint - hosts].epoch).number()
    }

    /// Number of planned changes that were not brought yet, or whose epoch is not over.
    pub(super) fn changes_waiting(&self) -> usize {
        let unbrought = self.scenario.changes.len() - self.epochs.brought();
        unbrought + usize::from(!self.epochs.are_over())
    }

    /// Those who judge an epoch begin to.
    pub(super) fn begin_judging(&mut self, number: Epoch) {
        let epoch = self.epochs.get(number).expect("it has begun");
        let member = |member| epoch.host_of(member).map(|host| &self.hosts[host]);
        let is_correct = |id| member(id).is_some_and(ReplicaHost::is_correct);
        let correct = epoch.committee.members().map(is_correct).collect();
        let (settings, weights) = (&epoch.settings, epoch.committee.weights());
        let judges = self.scenario.oracles_of_epoch(settings, weights, correct);
        self.oracles.begin(number, judges);
    }

    /// A client brings a planned change, until its epoch is over.
    pub(super) fn bring(&mut self, planned: usize, attempt: usize) -> Result<(), Violation> {
        if attempt == 0 && !self.scenario.changes[planned].races && !self.epochs.are_over() {
            self.schedule(self.now + WAIT_EVERY, SimEvent::Bring { planned, attempt });
            return Ok(());
        }
        let keys: Vec<KeyFile> = self.hosts.iter().map(|host| host.config.keys.clone()).collect();
        let change = self.epochs.bring(&self.scenario, planned, &keys);
        let ends = Arc::clone(self.epochs.last());
        if change.ends != ends.number() {
            return Ok(());
        }
        let member = (self.scenario.changes[planned].brought_to + attempt) % ends.committee.size();
        let member = ReplicaId(u16::try_from(member).expect("few members"));
        let host = ends.host_of(member).expect("every member has a host");
        self.tell(|| format!("a change of {} is brought to host {host}", change.ends));
        self.carry(host, change.ends, &Message::Change(change.encoded));
        self.schedule(self.now + BRING_EVERY, SimEvent::Bring { planned, attempt: attempt + 1 });
        Ok(())
    }

    /// A message of the first client's to a host, over a connection of this epoch.
    fn carry(&mut self, host: usize, epoch: Epoch, message: &Message) {
        let (sender, lane) = (self.hosts.len(), message.lane());
        let content = content_of(message);
        let channel = Channel { sender, epoch, from: Peer::Client(self.clients[0].id) };
        for at in self.route(sender, host, lane) {
            let (digest, content) = (hash(&content).0, Bytes::clone(&content));
            let frame = SimEvent::Frame { to: host, channel, honest: true, content, digest };
            self.schedule(at, frame);
        }
    }

    /// Two endpoints of different epochs find that out: the one that is in the later shows the
    /// other how its epoch ended. Whoever lies shows something else.
    pub(super) fn meet(&mut self, one: usize, other: usize) {
        let (one_at, other_at) = (self.epoch_of(one), self.epoch_of(other));
        let (earlier, later) = if one_at < other_at { (one, other) } else { (other, one) };
        let Some(host) = self.hosts.get(later).filter(|host| host.is_up()) else { return };
        let ended = self.epoch_of(earlier);
        let step = host.epoch.steps.iter().find(|step| step.file.epoch == ended.next());
        let Some(step) = step else { return };
        let (step, is_true) = (Arc::clone(step), host.is_correct());
        let last = self.shown_at.get(&(later, earlier));
        if last.is_some_and(|last| self.now.since(*last) < SHOW_EVERY) {
            return;
        }
        self.shown_at.insert((later, earlier), self.now);
        let step = if is_true { step } else { falsified(&step, self.rng.coin()) };
        if let Some(at) = self.route(later, earlier, Lane::Client).into_iter().next() {
            self.schedule(at, SimEvent::Shown { to: earlier, step });
        }
    }

    /// An endpoint is shown how its epoch ended, and checks it.
    pub(super) fn learn_end(&mut self, to: usize, step: Arc<HandedOver>) -> Result<(), Violation> {
        if step.file.epoch != self.epoch_of(to).next() {
            return Ok(());
        }
        let Some(client) = to.checked_sub(self.hosts.len()) else {
            self.hear_of_end(to, step);
            return Ok(());
        };
        let ended = Arc::clone(&self.clients[client].epoch);
        if ended.check(&step).is_err() {
            return Ok(());
        }
        let next = self.epoch_after(&ended, &step)?;
        let turn = self.clients[client].enter(self.now, next);
        self.apply_client_turn(client, turn)
    }

    fn hear_of_end(&mut self, host: usize, step: Arc<HandedOver>) {
        if !self.hosts[host].is_up() || self.hosts[host].ended().is_some() {
            return;
        }
        if self.hosts[host].epoch.check(&step).is_err() {
            return;
        }
        self.tell(|| format!("host {host} is shown how its epoch ended"));
        let incarnation = self.hosts[host].incarnation;
        self.hosts[host].learn_end(Ended { step, since: self.now, is_own: false });
        let at = self.now + self.timeout_of(host);
        self.schedule(at, SimEvent::Succeed { host, incarnation });
    }

    fn timeout_of(&self, host: usize) -> Duration {
        self.hosts[host].epoch.settings.timeout()
    }

    /// A host's own replica hands over.
    pub(super) fn hand_over(
        &mut self,
        host: usize,
        step: Arc<HandedOver>,
    ) -> Result<(), Violation> {
        let ReplicaHost { config, epoch, .. } = &self.hosts[host];
        let (replica, ended) = (config.name, epoch.number());
        self.tell(|| format!("host {host} hands over at {}", step.header.height));
        if self.hosts[host].is_correct() {
            let content = &step.signed.content;
            self.oracles.observe(&Observation::HandedOver { replica, ended, content })?;
        }
        self.hosts[host].learn_end(Ended { step, since: self.now, is_own: true });
        self.succeed(host)
    }

    /// Goes on to the next epoch, once it is time.
    pub(super) fn succeed(&mut self, host: usize) -> Result<(), Violation> {
        let Some(known) = self.hosts[host].ended().cloned() else { return Ok(()) };
        let (step, ended) = (Arc::clone(&known.step), Arc::clone(&self.hosts[host].epoch));
        let next = self.epoch_after(&ended, &step)?;
        let identity = self.hosts[host].config.keys.identity.public();
        let executed = self.hosts[host].executed();
        let at_the_end = AtTheEnd {
            is_own: known.is_own,
            has_state: executed.is_some_and(|executed| executed >= step.header.height),
            leaves: leaving::leaves(&ended.committee, &step.file, &identity),
            is_served: self.is_served(host, &step),
        };
        let (timeout, have_begun) = (self.timeout_of(host), || self.has_begun(&next));
        let waits = known.waits(self.now, timeout, at_the_end, have_begun);
        if let Some(waits) = waits {
            let incarnation = self.hosts[host].incarnation;
            self.schedule(self.now + waits, SimEvent::Succeed { host, incarnation });
            return Ok(());
        }
        self.cross(host, &step, next)
    }

    /// Returns `true` if a host has a link to a member of its epoch that leaves and is still there.
    fn is_served(&mut self, host: usize, step: &HandedOver) -> bool {
        let epoch = Arc::clone(&self.hosts[host].epoch);
        let leavers = leaving::leavers(&epoch.committee, &step.file);
        let mut leavers = leavers.filter_map(|member| epoch.host_of(member));
        leavers.any(|leaver| {
            let is_there = self.hosts[leaver].is_up() && self.epoch_of(leaver) == epoch.number();
            leaver != host && is_there && self.network.links(self.now, host, leaver)
        })
    }

    /// The epoch after one that ended so.
    fn epoch_after(
        &mut self,
        ended: &EpochConfig,
        step: &Arc<HandedOver>,
    ) -> Result<Arc<EpochConfig>, Violation> {
        let begun = self.epochs.begin(ended, step);
        let (next, is_new) = begun.expect("a quorum's hand-over is sound");
        if is_new {
            self.tell(|| format!("{} begins after {}", next.number(), next.begins_after()));
            self.begin_judging(next.number());
            (self.view_at_calm, self.together) = (View(0), false);
        }
        Ok(next)
    }

    /// Returns `true` if a quorum of an epoch's members is in it with the state that it began with.
    fn has_begun(&self, epoch: &EpochConfig) -> bool {
        let has_entered = |host: &&ReplicaHost| {
            host.epoch.number() >= epoch.number()
                && host.executed().is_some_and(|executed| executed >= epoch.begins_after())
        };
        let entered = self.hosts.iter().filter(has_entered);
        epoch.is_quorum(entered.map(|host| host.config.number))
    }

    /// Ends a host's start and begins the next one in the next epoch, unless it loses its power
    /// before or after that is noted.
    fn cross(
        &mut self,
        host: usize,
        step: &HandedOver,
        next: Arc<EpochConfig>,
    ) -> Result<(), Violation> {
        let planned = self.epochs.planned(step).expect("each epoch but the first has one");
        let crashes = self.scenario.changes[planned].crashes.contains(&host) && !self.calm;
        let down = self.rng.span(if crashes { &DOWN_US } else { &RESTART_US });
        if crashes && self.rng.coin() {
            self.tell(|| format!("host {host} loses power before the border"));
            self.crash(host, down);
            return Ok(());
        }
        self.tell(|| format!("host {host} goes on to {}", next.number()));
        if let Err(error) = self.hosts[host].go_on(next) {
            return self.note(host, &Note::Storage(error));
        }
        if crashes {
            self.crash(host, down);
        } else {
            self.schedule(self.now + down, SimEvent::Boot { host });
        }
        Ok(())
    }

    /// Those who judge hear in which epoch a host starts.
    pub(super) fn show_beginning(&mut self, host: usize) -> Result<(), Violation> {
        let begins = &self.hosts[host];
        if !begins.is_correct() {
            return Ok(());
        }
        let (replica, epoch) = (begins.config.name, begins.epoch.number());
        let (after, is_member) = (begins.epoch.begins_after(), !begins.is_learner());
        self.oracles.observe(&Observation::Began { replica, epoch, after, is_member })
    }

    /// When all else is done after a change, each client submits one operation more: the last epoch
    /// serves. Returns `true` if that was news.
    pub(super) fn ask_last(&mut self) -> bool {
        if self.scenario.changes.is_empty() || std::mem::replace(&mut self.asked_last, true) {
            return false;
        }
        for client in 0..self.clients.len() {
            let operation = Bytes::from(format!("the last of client {client}"));
            self.unsubmitted += 1;
            self.schedule(Time(self.now.0 + 1), SimEvent::Submit { client, operation });
        }
        true
    }
}
