//! The asynchronous client of any service.

use bytes::Bytes;
use quorate_engine::{Bundling, CallResult, CheckAnswer, ClientConfig, Completed, SessionSpec};
use quorate_node::client::{Call, Calls, new_session};
use quorate_node::{Client, NodeError};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::Proven;
use quorate_types::{Committee, HandedOverError, Header, History, ReplicaId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Failure of a call to produce a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call was not sent: too much is under way.
    #[error("too much is under way{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    Overloaded {
        /// Reason that a busy member gave last, if one did.
        reason: Option<Arc<str>>,
    },
    /// The members have no room on their disks: nothing takes effect before there is. What was sent
    /// may do so then.
    #[error("{0}; the operation may take effect then")]
    DiskFull(Arc<str>),
    /// No result came within [`ClientConfig::call_timeout`], which this holds. An operation may
    /// take effect all the same.
    #[error("no answer within {} s; an operation may take effect all the same", .0.as_secs_f64())]
    Timeout(Duration),
    /// No result came, and the network has gone on to an epoch to which the client does not follow:
    /// holds why. An operation may take effect all the same.
    #[error("{0}. An operation that was sent may take effect all the same")]
    Outdated(HandedOverError),
    /// No member has an answer that passes the check; holds the reason of the last one.
    #[error("{0}")]
    Unanswered(String),
    /// The service does not admit the operation: it was not ordered. Holds the service's reason.
    #[error("the committee's service does not admit it: {0}")]
    NotAdmitted(Arc<str>),
    /// Members do not let this client in: nothing was sent. Holds their reason.
    #[error("no member lets this client in: {0}")]
    TurnedAway(&'static str),
    /// Members do not let this client in, and may have while the operation was under way, or may
    /// again: then it takes effect. Holds their reason.
    #[error("no member lets this client in: {0}; the operation may take effect if one did or does")]
    CutOff(&'static str),
    /// The client has ended.
    #[error("the client has ended; an operation under way may take effect all the same")]
    Ended,
}

/// Asynchronous client of a committee. Cheap to clone; ends when its last clone is dropped.
#[derive(Clone, Debug)]
pub struct Connection {
    client: Arc<Client>,
    config: Arc<ClientConfig>,
    calls: Calls,
    next_session: Arc<AtomicUsize>,
}

impl Connection {
    /// A configuration for calls: one session with a new key that sends to `first`, and bundles of
    /// 1 ms, since callers wait for results; the other defaults are those of [`ClientConfig`].
    #[must_use]
    pub fn config<C>(committee: Arc<Committee>, first: ReplicaId, check_answer: C) -> ClientConfig
    where
        C: Fn(&[u8], &Header, &Proven) -> Result<(), String> + Send + Sync + 'static,
    {
        Self::config_after(History::new(committee), first, check_answer)
    }

    /// As [`Connection::config`], for a network of which more than one epoch is known.
    #[must_use]
    pub fn config_after<C>(history: History, first: ReplicaId, check_answer: C) -> ClientConfig
    where
        C: Fn(&[u8], &Header, &Proven) -> Result<(), String> + Send + Sync + 'static,
    {
        let sessions = Self::new_sessions(history.committee(), first, 1);
        ClientConfig {
            bundling: Bundling::after(Duration::from_millis(1)),
            check_answer: CheckAnswer::new(check_answer),
            ..ClientConfig::after(history, sessions)
        }
    }

    /// Sessions with new random keys, which send to the members from `first` on in turn.
    #[must_use]
    pub fn new_sessions(committee: &Committee, first: ReplicaId, count: usize) -> Vec<SessionSpec> {
        let spec = |index: usize| {
            let member = (first.index() + index) % committee.size();
            let member = ReplicaId(u16::try_from(member).expect("members are few"));
            new_session(member)
        };
        (0..count).map(spec).collect()
    }

    /// Begins to connect to all members and does not wait: calls made before leave when a
    /// connection is up. Calls take the sessions in turn.
    ///
    /// # Errors
    /// When the system gives no threads.
    ///
    /// # Panics
    /// When the configuration has no session.
    pub fn open(config: &ClientConfig) -> Result<Self, NodeError> {
        assert!(!config.sessions.is_empty(), "a connection needs a session");
        let client = Client::connect(config)?;
        let calls = Calls::of(&client)?;
        Ok(Self {
            client: Arc::new(client),
            config: Arc::new(config.clone()),
            calls,
            next_session: Arc::default(),
        })
    }

    /// Epochs of the network up to the one whose committee executes the operations.
    #[must_use]
    pub fn history(&self) -> Arc<History> {
        self.client.history()
    }

    /// Number of members that its worst connected session reaches.
    #[must_use]
    pub fn members_connected(&self) -> usize {
        self.client.members_connected()
    }

    /// Has an operation ordered and executed. Many calls at once share requests and signatures.
    ///
    /// # Errors
    /// [`CallError`]; an operation that the service refuses is no error, but completes with
    /// [`Outcome::Refused`](quorate_types::Outcome::Refused).
    pub async fn execute(&self, operation: Bytes) -> Result<Completed, CallError> {
        self.begin(operation)?.finish().await
    }

    /// As [`Connection::execute`], but the operation is submitted before this returns: of
    /// operations begun one after the other on a connection with one session, the earlier go first.
    ///
    /// # Errors
    /// [`CallError::Overloaded`] when the client's queue is full; [`CallError::TurnedAway`] while
    /// members do not let the client in.
    pub fn begin(&self, operation: Bytes) -> Result<PendingOperation, CallError> {
        let call = self.submit(|session, tag| self.client.submit(session, tag, operation))?;
        Ok(PendingOperation(call))
    }

    /// Queries the learner, or one member, about the state; others, when it is silent or its
    /// answer does not pass the check.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn query(&self, query: Bytes) -> Result<(Proven, ExecutionCertificate), CallError> {
        let call = self.submit(|session, tag| self.client.query(session, tag, query))?;
        match call.result().await? {
            CallResult::Answered(answer) => answer.map_err(CallError::Unanswered),
            CallResult::Overloaded { reason } => Err(CallError::Overloaded { reason }),
            CallResult::DiskFull { reason } => Err(CallError::DiskFull(reason)),
            CallResult::NotAdmitted { reason } => Err(CallError::NotAdmitted(reason)),
            CallResult::Completed(_) => Err(CallError::Ended),
        }
    }

    fn submit(
        &self,
        submit: impl FnOnce(usize, u64) -> Result<(), quorate_node::NotTaken>,
    ) -> Result<PendingCall, CallError> {
        let turned_away = self.client.turned_away();
        if let Some(reason) = *turned_away.borrow() {
            return Err(CallError::TurnedAway(reason));
        }
        let turn = self.next_session.fetch_add(1, Ordering::Relaxed);
        let (answer, result) = oneshot::channel();
        let call = self.calls.begin(move |result| {
            // The caller may have stopped waiting meanwhile.
            let _ = answer.send(result);
        });
        submit(turn % self.config.sessions.len(), call.tag())
            .map_err(|_| CallError::Overloaded { reason: None })?;
        let timeout = self.config.call_timeout;
        let client = Arc::clone(&self.client);
        Ok(PendingCall { result, timeout, turned_away, client, _call: call })
    }
}

/// Operation that was submitted and has no result yet.
#[derive(Debug)]
pub struct PendingOperation(PendingCall);

impl PendingOperation {
    /// Waits for the result, up to [`ClientConfig::call_timeout`].
    ///
    /// # Errors
    /// [`CallError`]; an operation that the service refuses is no error, but completes with
    /// [`Outcome::Refused`](quorate_types::Outcome::Refused).
    pub async fn finish(self) -> Result<Completed, CallError> {
        let result = self.0.result().await.map_err(|error| match error {
            // The session sends it again whenever it is let in.
            CallError::TurnedAway(reason) => CallError::CutOff(reason),
            other => other,
        })?;
        match result {
            CallResult::Completed(completed) => Ok(completed),
            CallResult::Overloaded { reason } => Err(CallError::Overloaded { reason }),
            CallResult::DiskFull { reason } => Err(CallError::DiskFull(reason)),
            CallResult::NotAdmitted { reason } => Err(CallError::NotAdmitted(reason)),
            CallResult::Answered(_) => Err(CallError::Ended),
        }
    }
}

/// Operation or query without a result.
#[derive(Debug)]
struct PendingCall {
    result: oneshot::Receiver<CallResult>,
    timeout: Duration,
    turned_away: watch::Receiver<Option<&'static str>>,
    client: Arc<Client>,
    _call: Call,
}

impl PendingCall {
    async fn result(mut self) -> Result<CallResult, CallError> {
        tokio::select! {
            biased;
            result = self.result => result.map_err(|_| CallError::Ended),
            reason = refusal(&mut self.turned_away) => Err(CallError::TurnedAway(reason)),
            () = tokio::time::sleep(self.timeout) => {
                let timeout = CallError::Timeout(self.timeout);
                Err(self.client.outdated().map_or(timeout, CallError::Outdated))
            }
        }
    }
}

/// Waits until members do not let the client in; for ever while they do.
async fn refusal(turned_away: &mut watch::Receiver<Option<&'static str>>) -> &'static str {
    match turned_away.wait_for(Option::is_some).await.map(|reason| *reason) {
        Ok(Some(reason)) => reason,
        _ => std::future::pending().await,
    }
}
