//! Client of the committee that orders the steps of releases.

use super::AuthorityConfigError;
use crate::client::{Calls, Client, NotTaken, new_session};
use crate::config::read_committee_file;
use crate::epochs::read_history;
use crate::testnet::system_random;
use crate::{CallResult, ClientConfig, NodeError};
use crossbeam_channel::{Receiver, bounded, never, select};
use quorate_crypto::{Digest, KeyCache};
use quorate_engine::{Bundling, CheckAnswer, NOTHING_EXECUTED};
use quorate_ledger::kv::{self, check_answer};
use quorate_ledger::payments::{
    OrderedError, ReleaseService, STEP_BYTES_MAX, ordered_query, read_ordered, read_standing,
    standing_query,
};
use quorate_payments::change::{Change, ChangeStep};
use quorate_payments::committee::{Ordered, Step};
use quorate_payments::release::{Decided, ReleaseStep, Standing};
use quorate_payments::{Network, OutputId};
use quorate_types::service::{Outcome, Proven};
use quorate_types::{AgreedSettings, Committee, Epoch, History, ReplicaId};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Most sessions: queries go to their first members in turn, of whom all but surely one is honest.
const SESSIONS_MAX: u64 = 8;

/// Time after which a member that was behind is asked again.
const BEHIND: Duration = Duration::from_millis(50);

/// Error of a call to the committee.
#[derive(Debug, thiserror::Error)]
pub enum CommitteeError {
    /// The client could not start, or its files are refused.
    #[error(transparent)]
    Connect(#[from] NodeError),
    /// No result came in time. A step that was submitted may take effect all the same.
    #[error("the committee of releases did not answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// Members refused, or gave no answer that holds; holds the last one's reason.
    #[error("the committee of releases gives no answer: {0}")]
    Unanswered(String),
    /// Nothing was ordered so far, as members say, so that they can prove nothing yet.
    #[error("the committee of releases has executed nothing yet")]
    NothingExecuted,
    /// What members prove is not the state of releases.
    #[error(transparent)]
    State(#[from] OrderedError),
    /// The step is longer than a request; holds its bytes.
    #[error(
        "the step has {0} bytes, and the committee takes {STEP_BYTES_MAX}: freeze fewer coins at once; a \
         network whose file is longer is changed by hand"
    )]
    TooLong(usize),
    /// The committee ordered no change to the epoch that is in force here.
    #[error(
        "the committee's order is in epoch {}, and this authority in epoch {}: it was changed by hand, or \
         the member that answered is behind", at.0, epoch.0
    )]
    Behind {
        /// Epoch in force in the order.
        at: Epoch,
        /// Epoch of the authority.
        epoch: Epoch,
    },
    /// The client was told to end.
    #[error("the client of the committee of releases has ended")]
    Ended,
}

/// Client of the committee that orders the steps of releases, for any number of threads. Calls
/// block; none is answered from a state before one that an earlier call showed.
#[derive(Debug)]
pub struct ReleaseCommittee {
    client: Client,
    sessions: usize,
    turn: AtomicUsize,
    calls: Calls,
    /// Newest height that a result or an answer was of.
    seen: AtomicU64,
    timeout: Duration,
    stopped: Receiver<()>,
}

impl ReleaseCommittee {
    /// Time that a call takes at most unless [`ReleaseCommittee::with_timeout`] says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Name of the committee file beside a payment network's file.
    pub const FILE: &'static str = "committee.toml";

    /// Begins to connect to the committee in this file, as far as the folder `epochs` beside it
    /// leads; waits for nobody.
    ///
    /// # Errors
    /// When a file is refused, or the system gives no threads.
    pub fn connect(committee: &Path) -> Result<Self, CommitteeError> {
        let history = read_history(committee, KeyCache::On)?;
        let config = configure(history);
        let client = Client::connect(&config)?;
        let calls = Calls::of(&client)?;
        Ok(Self {
            client,
            sessions: config.sessions.len(),
            turn: AtomicUsize::new(0),
            calls,
            seen: AtomicU64::new(0),
            timeout: Self::TIMEOUT,
            stopped: never(),
        })
    }

    /// Checks that the committee in this file orders the releases of a payment network. Returns the
    /// number of connections that a client of it has.
    ///
    /// # Errors
    /// When the file is refused, or the committee's service is another.
    pub fn check(committee: &Path, network: &Network) -> Result<usize, AuthorityConfigError> {
        let path = committee.to_owned();
        let refused = |reason| AuthorityConfigError::Parse { path: path.clone(), reason };
        let history = read_history(committee, KeyCache::On);
        let history = history.map_err(|error| refused(error.to_string()))?;
        let file = read_committee_file(committee).map_err(|error| refused(error.to_string()))?;
        let digest = hex::encode(network.id().0);
        let AgreedSettings { service, genesis_digest, .. } = &file.settings;
        if service != ReleaseService::NAME || genesis_digest.as_ref() != Some(&digest) {
            return Err(AuthorityConfigError::OtherCommittee { path, network: digest });
        }
        let committee = history.committee();
        Ok(session_count(committee) * committee.size())
    }

    /// The client with another longest wait for each call.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The client, whose calls end once the other end of this is dropped.
    #[must_use]
    pub(super) fn until(self, stopped: Receiver<()>) -> Self {
        Self { stopped, ..self }
    }

    /// Has a step of a release ordered and executed: what it decided, or in words why it changed
    /// nothing. An honest member is among those that say so.
    ///
    /// # Errors
    /// [`CommitteeError`]; but for [`CommitteeError::TooLong`] the step may take effect.
    pub fn submit(&self, step: &ReleaseStep) -> Result<Result<Decided, String>, CommitteeError> {
        self.submit_step(&Step::Release(step.clone()))
    }

    /// Has a change of the authorities ordered; in words why it changes nothing.
    ///
    /// # Errors
    /// As [`ReleaseCommittee::submit`].
    pub fn submit_change(&self, change: &Change) -> Result<Result<(), String>, CommitteeError> {
        let step = ChangeStep::Change(Box::new(change.clone()));
        Ok(self.submit_step(&Step::Change(step))?.map(drop))
    }

    /// Has any step ordered, as [`ReleaseCommittee::submit`] does.
    pub(super) fn submit_step(
        &self,
        step: &Step,
    ) -> Result<Result<Decided, String>, CommitteeError> {
        let bytes = step.encode();
        if bytes.len() > STEP_BYTES_MAX {
            return Err(CommitteeError::TooLong(bytes.len()));
        }
        match self
            .call(self.timeout, |session, tag| self.client.submit(session, tag, bytes.into()))?
        {
            CallResult::Completed(completed) => {
                self.seen.fetch_max(completed.height.0, Ordering::Relaxed);
                Ok(read_outcome(&completed.outcome)?)
            }
            CallResult::NotAdmitted { reason } => Ok(Err(reason.to_string())),
            other => Err(unanswered(other)),
        }
    }

    /// The standing of a coin, proven to be what the committee certified.
    ///
    /// # Errors
    /// [`CommitteeError`].
    pub fn standing(&self, coin: OutputId) -> Result<Standing, CommitteeError> {
        let read = |root, proven: &Proven| read_standing(root, coin, proven);
        self.read(&standing_query(coin), read)
    }

    /// What was ordered from number `from` on, `max` changes at most, proven: none is left out
    /// before the last of them. Fewer may be all that there are, or all that an answer has room
    /// for.
    ///
    /// # Errors
    /// [`CommitteeError`].
    pub fn ordered(&self, from: u64, max: u32) -> Result<Vec<Ordered>, CommitteeError> {
        let read = |root, proven: &Proven| read_ordered(root, from, max, proven);
        self.read(&ordered_query(from, max), read)
    }

    /// What an answer shows; nothing as long as nothing was ordered at all, which can be so for
    /// ever, and which members cannot prove.
    fn read<T: Default>(
        &self,
        query: &kv::Query,
        read: impl FnOnce(Digest, &Proven) -> Result<T, OrderedError>,
    ) -> Result<T, CommitteeError> {
        match self.query(query) {
            Err(CommitteeError::NothingExecuted) => Ok(T::default()),
            answered => {
                let (root, proven) = answered?;
                Ok(read(root, &proven)?)
            }
        }
    }

    /// An answer with the root that it is proven under, of a state that is not before any that was
    /// seen.
    fn query(&self, query: &kv::Query) -> Result<(Digest, Proven), CommitteeError> {
        let until = Instant::now() + self.timeout;
        let query = query.encode();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let asked =
                self.call(left, |session, tag| self.client.query(session, tag, query.clone()))?;
            let CallResult::Answered(answer) = asked else { return Err(unanswered(asked)) };
            let (proven, certificate) = answer.map_err(no_answer)?;
            let header = certificate.header;
            if self.seen.fetch_max(header.height.0, Ordering::Relaxed) <= header.height.0 {
                return Ok((header.state, proven));
            }
            thread::sleep(BEHIND);
        }
    }

    fn call(
        &self,
        timeout: Duration,
        submit: impl FnOnce(usize, u64) -> Result<(), NotTaken>,
    ) -> Result<CallResult, CommitteeError> {
        let session = self.turn.fetch_add(1, Ordering::Relaxed) % self.sessions;
        let (answer, result) = bounded(1);
        let call = self.calls.begin(move |result| {
            let _ = answer.send(result);
        });
        match submit(session, call.tag()) {
            Ok(()) => self.wait(&result, timeout),
            Err(full) => Err(CommitteeError::Unanswered(full.to_string())),
        }
    }

    fn wait(
        &self,
        result: &Receiver<CallResult>,
        timeout: Duration,
    ) -> Result<CallResult, CommitteeError> {
        select! {
            recv(result) -> result => result.map_err(|_| CommitteeError::Ended),
            recv(self.stopped) -> _ => Err(CommitteeError::Ended),
            default(timeout) => Err(self.silence()),
        }
    }

    /// Reason for which nothing came.
    fn silence(&self) -> CommitteeError {
        if let Some(reason) = *self.client.turned_away().borrow() {
            return CommitteeError::Unanswered(reason.to_owned());
        }
        match self.client.outdated() {
            Some(outdated) => CommitteeError::Unanswered(outdated.to_string()),
            None => CommitteeError::Timeout(self.timeout),
        }
    }
}

/// Sessions with new keys, one more than members may be faulty unless that is too many, each of
/// which begins at another member.
fn configure(history: History) -> ClientConfig {
    let committee = history.committee();
    let firsts = draw_members(committee, session_count(committee));
    let sessions = firsts.into_iter().map(new_session).collect();
    ClientConfig {
        bundling: Bundling::after(Duration::from_millis(1)),
        check_answer: CheckAnswer::new(check_answer),
        ..ClientConfig::after(history, sessions)
    }
}

fn session_count(committee: &Committee) -> usize {
    let count = (committee.faulty_max() + 1).min(SESSIONS_MAX);
    usize::try_from(count).expect("few").min(committee.size())
}

/// So many members of the committee at random.
fn draw_members(committee: &Committee, count: usize) -> BTreeSet<ReplicaId> {
    let mut drawn = BTreeSet::new();
    while drawn.len() < count {
        let mut bytes = [0; 8];
        system_random(&mut bytes);
        let members = u64::try_from(committee.size()).expect("members are few");
        let member = u64::from_le_bytes(bytes) % members;
        drawn.insert(ReplicaId(u16::try_from(member).expect("members are few")));
    }
    drawn
}

fn read_outcome(outcome: &Outcome) -> Result<Result<Decided, String>, OrderedError> {
    match outcome {
        Outcome::Applied(bytes) => {
            borsh::from_slice(bytes).map(Ok).map_err(|_| OrderedError::OtherService)
        }
        Outcome::Refused(reason) => Ok(Err(String::from_utf8_lossy(reason).into_owned())),
    }
}

fn unanswered(result: CallResult) -> CommitteeError {
    CommitteeError::Unanswered(match result {
        CallResult::DiskFull { reason } | CallResult::NotAdmitted { reason } => reason.to_string(),
        CallResult::Overloaded { reason } => {
            reason.map_or_else(|| "too much is under way".to_owned(), |reason| reason.to_string())
        }
        CallResult::Completed(_) | CallResult::Answered(_) => "an answer to another call".into(),
    })
}

fn no_answer(reason: String) -> CommitteeError {
    if reason == NOTHING_EXECUTED {
        CommitteeError::NothingExecuted
    } else {
        CommitteeError::Unanswered(reason)
    }
}
