//! The asynchronous client of any service.

use bytes::Bytes;
use parking_lot::Mutex;
use quorate_crypto::IdentitySecret;
use quorate_engine::{Bundling, CheckAnswer};
use quorate_node::testnet::system_random;
use quorate_node::{
    Client, ClientConfig, Completion, Finished, LearnerAddress, NodeError, SessionSpec,
};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::Proven;
use quorate_types::{Committee, Height, Outcome, Receipt, ReplicaId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::oneshot;

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Whom it talks to.
    pub committee: Arc<Committee>,
    /// Sessions, each with a new key of its own and with another member first: at least one. One
    /// carries up to 64 requests at once.
    pub sessions: usize,
    /// The member that the first session sends to first.
    pub first: ReplicaId,
    /// How long an operation may take. One that takes longer may take effect all the same.
    pub patience: Duration,
    /// How long a member may be silent before another is asked.
    pub retry_after: Duration,
    /// The service's check of answers to questions.
    pub check_answer: CheckAnswer,
    /// A learner that is asked questions before members are.
    pub learner: Option<LearnerAddress>,
}

impl ConnectionConfig {
    /// One session, ten seconds for an operation, one for a member.
    #[must_use]
    pub fn new(committee: Arc<Committee>, check_answer: CheckAnswer) -> Self {
        Self {
            committee,
            sessions: 1,
            first: ReplicaId(0),
            patience: Duration::from_secs(10),
            retry_after: Duration::from_secs(1),
            check_answer,
            learner: None,
        }
    }
}

/// An operation took its place in the order.
#[derive(Clone, Debug)]
pub struct Done {
    /// What it came to.
    pub outcome: Outcome,
    /// Where.
    pub height: Height,
    /// What proves it, where the committee certifies what it executes, and the operation's place among
    /// those of the receipt's request. An operation that had to be asked about again is answered by
    /// equal replies, and has none.
    pub receipt: Option<(Arc<Receipt>, usize)>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was not sent: too much is under way.
    #[error("too much is under way{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    Overloaded {
        /// What the member that was busy last said, if one was.
        reason: Option<Arc<str>>,
    },
    /// Nothing came in time. An operation may take effect all the same.
    #[error("no answer within {} s; an operation may take effect all the same", .0.as_secs_f64())]
    Timeout(Duration),
    /// No member has an answer that passes.
    #[error("{0}")]
    Unanswered(String),
    /// The client has ended.
    #[error("the client has ended")]
    Ended,
}

/// Who waits for what, by tag.
type Waiting = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Finished>>>>;

/// A client of a committee. Cheap to clone; ends when its last clone is dropped.
#[derive(Clone, Debug)]
pub struct Connection {
    client: Arc<Client>,
    committee: Arc<Committee>,
    waiting: Waiting,
    next_tag: Arc<AtomicU64>,
    next_session: Arc<AtomicUsize>,
    sessions: usize,
    patience: Duration,
}

impl Connection {
    /// Begins to connect to all members and does not wait: what is asked before leaves when a
    /// connection is up.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn open(config: &ConnectionConfig) -> Result<Self, NodeError> {
        let members = config.committee.size();
        let spec = |index: usize| {
            let first = (config.first.index() + index) % members;
            SessionSpec::fresh(new_key(), ReplicaId(u16::try_from(first).expect("members are few")))
        };
        let sessions = config.sessions.max(1);
        let client = Client::connect(&ClientConfig {
            bundling: Bundling::after(Duration::from_millis(1)),
            retry_after: config.retry_after,
            check_answer: config.check_answer,
            learner: config.learner.clone(),
            ..ClientConfig::new(Arc::clone(&config.committee), (0..sessions).map(spec).collect())
        })?;
        let waiting = Waiting::default();
        hand_out(&client, Arc::clone(&waiting))?;
        Ok(Self {
            client: Arc::new(client),
            committee: Arc::clone(&config.committee),
            waiting,
            next_tag: Arc::default(),
            next_session: Arc::default(),
            sessions,
            patience: config.patience,
        })
    }

    /// Whom it talks to.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        &self.committee
    }

    /// How many members its worst connected session reaches.
    #[must_use]
    pub fn members_connected(&self) -> usize {
        self.client.members_connected()
    }

    /// Has an operation ordered and executed. Many calls at once share requests and signatures.
    ///
    /// # Errors
    /// [`CallError`]; what the service refuses is an [`Outcome::Refused`].
    pub async fn execute(&self, operation: Bytes) -> Result<Done, CallError> {
        self.begin(operation)?.finish().await
    }

    /// As [`Connection::execute`], but the operation is handed in before this returns: of operations begun
    /// one after the other on a connection with one session, the earlier go first.
    ///
    /// # Errors
    /// [`CallError::Overloaded`] when it is not taken.
    pub fn begin(&self, operation: Bytes) -> Result<Begun, CallError> {
        self.hand_in(|session, tag| self.client.submit(session, tag, operation)).map(Begun)
    }

    /// Asks the learner, or one member, about the state; others, when it is silent or its answer does not pass.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn ask(&self, question: Bytes) -> Result<(Proven, ExecutionCertificate), CallError> {
        let asked = self.hand_in(|session, tag| self.client.ask(session, tag, question))?;
        match asked.answer().await? {
            Finished::Answered(told) => told.result.map_err(CallError::Unanswered),
            Finished::Overloaded { reason } => Err(CallError::Overloaded { reason }),
            Finished::Executed { .. } => Err(CallError::Ended),
        }
    }

    fn hand_in(
        &self,
        hand_in: impl FnOnce(usize, u64) -> Result<(), quorate_node::NotTaken>,
    ) -> Result<Asked, CallError> {
        let tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
        let session = self.next_session.fetch_add(1, Ordering::Relaxed) % self.sessions;
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().insert(tag, answer);
        let forget = Forget { waiting: Arc::clone(&self.waiting), tag };
        hand_in(session, tag).map_err(|_| CallError::Overloaded { reason: None })?;
        Ok(Asked { answered, patience: self.patience, _forget: forget })
    }
}

/// An operation that was handed in.
#[derive(Debug)]
pub struct Begun(Asked);

impl Begun {
    /// Waits for what it comes to.
    ///
    /// # Errors
    /// [`CallError`]; what the service refuses is an [`Outcome::Refused`].
    pub async fn finish(self) -> Result<Done, CallError> {
        match self.0.answer().await? {
            Finished::Executed { outcome, height, receipt } => {
                Ok(Done { outcome, height, receipt })
            }
            Finished::Overloaded { reason } => Err(CallError::Overloaded { reason }),
            Finished::Answered(_) => Err(CallError::Ended),
        }
    }
}

/// Something was handed in, and its answer is waited for.
#[derive(Debug)]
struct Asked {
    answered: oneshot::Receiver<Finished>,
    patience: Duration,
    _forget: Forget,
}

impl Asked {
    async fn answer(self) -> Result<Finished, CallError> {
        match tokio::time::timeout(self.patience, self.answered).await {
            Ok(finished) => finished.map_err(|_| CallError::Ended),
            Err(_) => Err(CallError::Timeout(self.patience)),
        }
    }
}

/// Whoever gives up waits no longer.
#[derive(Debug)]
struct Forget {
    waiting: Waiting,
    tag: u64,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.tag);
    }
}

/// Tells those who wait, until the client ends.
fn hand_out(client: &Client, waiting: Waiting) -> Result<(), NodeError> {
    let completions = client.completions().clone();
    let work = move || {
        for Completion { tag, finished, .. } in completions {
            if let Some(answer) = waiting.lock().remove(&tag) {
                // Whoever asked may have given up meanwhile.
                let _ = answer.send(finished);
            }
        }
    };
    let failed = |source| NodeError::Start { what: "completions", source };
    Builder::new().name("completions".into()).spawn(work).map(drop).map_err(failed)
}

fn new_key() -> IdentitySecret {
    let mut seed = [0; 32];
    system_random(&mut seed);
    IdentitySecret::from_seed(seed)
}
