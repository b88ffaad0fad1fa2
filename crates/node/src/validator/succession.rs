//! From the end of one epoch to the next, at a host.
//!
//! * The own replica has executed the epoch and holds the hand-over: on to the next epoch, with the
//!   state.
//! * The same, and this host is no member of the next: it serves until a quorum of that has the
//!   state, and then goes on as a learner.
//! * The own replica is not there, and a member in a later epoch shows how this one ended: on after
//!   a view timeout, to fetch a snapshot there; later while a member that leaves is connected, and
//!   serves this epoch: those that have the state may be too few in the next to vouch for it.

use super::origin::Origin;
use crate::NodeError;
use crate::clock::unix_ms;
use crate::epochs::Epochs;
use crate::http::Shown;
use crate::machine::ShownStatus;
use crate::tls::Dialer;
use crate::transport::hello::{Hello, TurnedAway};
use crate::transport::outbound::{OnLater, dial};
use crate::transport::{Limits, Network};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use quorate_crypto::{Bitmap, IdentitySecret, KeyCache};
use quorate_engine::host::leaving::{self, AtTheEnd, Stay};
use quorate_types::machine::Halt;
use quorate_types::{Committee, HandedOver, Header, Height, History, Lane, ReplicaId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Time between two rounds of asking the next members whether they have begun.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Steps to a next epoch that wait to be checked. Beyond them one is dropped: whoever shows it does
/// so again at the next attempt to connect.
const SHOWN_MAX: usize = 16;

/// Word of the end of an epoch.
#[derive(Debug)]
pub(crate) enum News {
    /// The own replica handed over: its state is what the next epoch begins with, durably.
    Own(Box<HandedOver>),
    /// The next epoch's member of this index has begun it, with the state.
    Entered(usize),
}

/// The end of this epoch as a member in a later one shows it, unchecked.
pub(super) type ShownEnd = (ReplicaId, Box<HandedOver>);

/// What a host knows of the end of its epoch.
pub(super) struct Succession {
    epochs: Arc<Epochs>,
    identity: IdentitySecret,
    trust: Trust,
    network: Arc<Network>,
    /// View timeout: how long the own replica may take once others have gone on.
    timeout: Duration,
    sender: Sender<News>,
    pub(super) news: Receiver<News>,
    show: Sender<ShownEnd>,
    pub(super) ends: Receiver<ShownEnd>,
    /// Who showed a false end of this epoch.
    liars: BTreeSet<ReplicaId>,
    /// How the epoch ended, and since when that is known.
    step: Option<(HandedOver, Instant)>,
    /// The own replica has the state.
    is_own: bool,
    /// The next committee, while this host stays for it.
    awaited: Option<Awaited>,
    /// Shown while they are awaited.
    must_not_stop: Arc<AtomicBool>,
}

/// What is known of the epoch in force, which decides for how long its members are believed.
struct Trust {
    /// Time and height of the last that an earlier run knew; `None` for a host that begins with the
    /// founding file, which its operator just gave it.
    known: Option<(u64, Height)>,
    status: ShownStatus,
}

impl Trust {
    fn new(origin: &Origin, last: Option<&Header>, status: ShownStatus) -> Self {
        let start = origin.epochs.start();
        let begun = start.follows().then(|| *start.header());
        let last = last.copied().into_iter().chain(begun).max_by_key(|header| header.height);
        let known = last.map(|header| (header.proposed_at_ms, header.height));
        Self { known, status }
    }

    /// Last time at which the epoch was in force for certain. That is now where this run has
    /// executed something, which tells that it is with the committee.
    fn known_ms(&self, now_ms: u64) -> Option<u64> {
        let (known_ms, height) = self.known?;
        let is_current = self.status.load().executed > height;
        Some(if is_current { now_ms } else { known_ms })
    }
}

/// The next epoch's members, of whom a quorum must have begun it before this host leaves.
struct Awaited {
    committee: Arc<Committee>,
    entered: Bitmap,
}

impl Succession {
    /// Of a validator whose state ends with this header, if it has one, and that shows its progress
    /// there.
    pub(super) fn new(origin: &Origin, last: Option<&Header>, shown: &Shown) -> Self {
        let ((sender, news), (show, ends)) = (unbounded(), bounded(SHOWN_MAX));
        Self {
            epochs: Arc::clone(&origin.epochs),
            identity: origin.keys.identity.clone(),
            trust: Trust::new(origin, last, Arc::clone(&shown.status)),
            network: Arc::clone(&shown.network),
            timeout: origin.config.replica.timeout(),
            sender,
            news,
            show,
            ends,
            liars: BTreeSet::new(),
            step: None,
            is_own: false,
            awaited: None,
            must_not_stop: Arc::clone(&shown.must_not_stop),
        }
    }

    pub(super) fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// The history of the network for a client in this process, which trusts it as this host does.
    pub(super) fn history(&self) -> History {
        let history = self.epochs.history().clone();
        let known_ms = self.trust.known_ms(unix_ms());
        known_ms.into_iter().fold(history, History::known_at)
    }

    /// Where the execution says that the own replica has handed over.
    pub(super) fn own(&self) -> Sender<News> {
        self.sender.clone()
    }

    /// Where links say that a peer is in a later epoch.
    pub(super) fn shown(&self) -> OnLater {
        let show = self.show.clone();
        Arc::new(move |member, ended| {
            let _ = show.try_send((member, Box::new(ended.step.clone())));
        })
    }

    /// Takes in what became known.
    ///
    /// # Errors
    /// When the epoch ended in two ways.
    pub(super) fn hear(&mut self, news: News) -> Result<(), Halt> {
        match news {
            News::Own(step) if self.is_own => drop(step),
            News::Own(step) => {
                self.know(*step)?;
                self.is_own = true;
            }
            News::Entered(member) => {
                if let Some(awaited) = &mut self.awaited {
                    awaited.entered.insert(member);
                }
            }
        }
        Ok(())
    }

    /// ★ Nobody is believed: what a quorum of this epoch did not sign is no end of it.
    ///
    /// # Errors
    /// When the epoch ended in two ways.
    pub(super) fn take_shown(&mut self, (member, step): ShownEnd) -> Result<(), Halt> {
        let next = step.file.epoch;
        // Who showed a false one is heard once in an epoch: the next to be dialled shows it too.
        if self.knows(&step) || self.liars.contains(&member) {
            return Ok(());
        }
        if let Err(error) = self.epochs.check(&step) {
            self.liars.insert(member);
            tracing::warn!(%member, %error, "a member shows a false end of this epoch");
            return Ok(());
        }
        let now_ms = unix_ms();
        let known_ms = self.trust.known_ms(now_ms);
        if let Err(error) = step.check_age(self.epochs.committee(), known_ms, now_ms) {
            tracing::warn!(
                %member,
                %error,
                "an end of this epoch is not believed. Put the hand-overs into the folder epochs of \
                 data_dir, and start again"
            );
            return Ok(());
        }
        tracing::info!(%member, %next, "a member is in a later epoch");
        self.know(*step)
    }

    fn knows(&self, step: &HandedOver) -> bool {
        self.step.as_ref().is_some_and(|(known, _)| known.signed.content == step.signed.content)
    }

    /// ★ Keeps what the epoch ended with; two that were checked and differ are evidence.
    fn know(&mut self, step: HandedOver) -> Result<(), Halt> {
        let conflict = self.step.as_ref().and_then(|(known, _)| known.conflict(&step));
        self.step = Some((step, Instant::now()));
        conflict.map_or(Ok(()), Err)
    }

    /// The step to take now, if it is time.
    pub(super) fn due(&mut self, runtime: &Runtime) -> Option<HandedOver> {
        let (step, since) = self.step.as_ref()?;
        match self.at_the_end(step).stay(self.timeout) {
            Stay::Over => return Some(step.clone()),
            Stay::For(time) => return (since.elapsed() >= time).then(|| step.clone()),
            Stay::UntilOthersBegan => {}
        }
        let step = step.clone();
        self.await_next(&step, runtime);
        let awaited = self.awaited.as_ref()?;
        let entered = awaited.committee.weight_of(&awaited.entered);
        (entered >= awaited.committee.quorum()).then_some(step)
    }

    /// Longest time until [`Succession::due`] may have something that nothing tells of.
    pub(super) fn pause(&self) -> Duration {
        match &self.step {
            Some(_) if !self.is_own => self.timeout / 4,
            _ => Duration::from_secs(3_600),
        }
    }

    fn at_the_end(&self, step: &HandedOver) -> AtTheEnd {
        let committee = self.epochs.committee();
        let mut leavers = leaving::leavers(committee, &step.file);
        let executed = self.trust.status.load().executed;
        AtTheEnd {
            is_own: self.is_own,
            has_state: self.is_own || executed >= step.header.height,
            leaves: leaving::leaves(committee, &step.file, &self.identity.public()),
            is_served: leavers.any(|leaver| self.network.reaches_directly(leaver)),
        }
    }

    /// Asks the next members, again and again, whether they have begun.
    fn await_next(&mut self, step: &HandedOver, runtime: &Runtime) {
        if self.awaited.is_some() {
            return;
        }
        let content = &step.signed.content;
        let next = self.epochs.committee().load_next(&step.file, content, KeyCache::Off);
        let Ok(committee) = next.map(Arc::new) else { return };
        tracing::warn!(
            "do not stop this validator yet: the next committee fetches what it begins with"
        );
        // In a lane that no member has: who is in this epoch still turns it away, and nothing else
        // comes of it.
        let hello = Hello::to(self.epochs.committee(), Lane::Client);
        for member in committee.members() {
            let question = Question {
                committee: Arc::clone(&committee),
                member,
                identity: self.identity.clone(),
                hello,
                answer: self.sender.clone(),
            };
            runtime.spawn(question.ask());
        }
        let entered = Bitmap::new(committee.size());
        self.must_not_stop.store(true, Ordering::Relaxed);
        self.awaited = Some(Awaited { committee, entered });
    }

    /// Says so if others still need what this host serves.
    pub(super) fn warn_of_stopping(&self) {
        if let Some(awaited) = &self.awaited {
            let entered = awaited.entered.count();
            tracing::warn!(entered, "stopped before a quorum of the next committee had begun");
        }
    }

    /// ★ Begins the next epoch, once everything of this one is at rest.
    pub(super) fn begin(&self, step: HandedOver) -> Result<(), NodeError> {
        let mut epochs = Epochs::clone(&self.epochs);
        epochs.begin(step)
    }
}

/// Whether one of the next members has begun its epoch.
struct Question {
    committee: Arc<Committee>,
    member: ReplicaId,
    identity: IdentitySecret,
    /// The hello of this epoch, which it does not let in any more.
    hello: Hello,
    answer: Sender<News>,
}

impl Question {
    async fn ask(self) {
        while !self.has_entered().await {
            tokio::time::sleep(ASK_EVERY).await;
        }
        let _ = self.answer.send(News::Entered(self.member.index()));
    }

    async fn has_entered(&self) -> bool {
        let committee = &self.committee;
        let (Some(key), Some(address)) =
            (committee.identity(self.member), committee.address(self.member))
        else {
            return false;
        };
        let Ok(tls) = Dialer::new(&self.identity).and_then(|dialer| dialer.to(*key)) else {
            return false;
        };
        let answered = dial(address, tls, self.hello, Limits::default().handshake).await;
        let refusal = answered.err().as_ref().and_then(TurnedAway::of);
        refusal.and_then(|refusal| refusal.ended).is_some_and(|ended| ended.has_state)
    }
}

#[cfg(test)]
mod tests;
