//! One configuration for every layer of a client: session machine, host thread and calls.

use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_types::service::Proven;
use quorate_types::{Committee, Header, History, NetworkId, ReplicaId, Request, Voucher};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Configuration of a client, read by [`Session`](super::Session) and by its hosts.
///
/// [`ClientConfig::new`] sets the defaults that the fields name.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Epochs of the network up to the one whose members order and execute the operations.
    pub history: Arc<History>,
    /// Sessions, at least one, each with a key of its own. One carries up to
    /// [`Session::WINDOW`](super::Session::WINDOW) requests at once. Two running clients never
    /// share a key: their sequence numbers would collide.
    pub sessions: Vec<SessionSpec>,
    /// Bundling of operations into signed requests. Default: 2 ms.
    pub bundling: Bundling,
    /// Time without an answer after which a request or a query is sent again, to another member; a
    /// request waits at least so long, and longer where answers take longer. Before that others are
    /// asked besides, as soon as an answer is late: later than answers are of late, and after at
    /// most half of this time. Default: 1 s.
    pub retry_after: Duration,
    /// Time until an asynchronous call returns without a result. Its operation may take effect all
    /// the same. Sessions do not use it: they retry for ever. Default: 10 s.
    pub call_timeout: Duration,
    /// Sends every request to all members at once, instead of to one, and to others when its answer
    /// is late. It survives a silent member without a pause, and every member's link and
    /// verification carry everything once more. Default: `false`.
    pub send_to_all: bool,
    /// The service's check of answers to queries. Default: [`reject_answers`], which passes none.
    pub check_answer: CheckAnswer,
    /// Learner that is queried before members are. Default: none.
    pub learner: Option<LearnerAddress>,
    /// Threads that encrypt and move bytes, at least one. Default: 1.
    pub network_threads: usize,
    /// Threads that check the members' signatures on replies, at least one. Default: 1.
    pub check_threads: usize,
}

impl ClientConfig {
    /// A configuration for a network in its first epoch, or whose epochs before this committee's do
    /// not matter, with the defaults that the fields name.
    #[must_use]
    pub fn new(committee: Arc<Committee>, sessions: Vec<SessionSpec>) -> Self {
        Self::after(History::new(committee), sessions)
    }

    /// A configuration for the last epoch of this history, with the defaults that the fields name.
    #[must_use]
    pub fn after(history: History, sessions: Vec<SessionSpec>) -> Self {
        Self {
            history: Arc::new(history),
            sessions,
            bundling: Bundling::after(Duration::from_millis(2)),
            retry_after: Duration::from_secs(1),
            call_timeout: Duration::from_secs(10),
            send_to_all: false,
            check_answer: CheckAnswer::new(reject_answers),
            learner: None,
            network_threads: 1,
            check_threads: 1,
        }
    }
}

impl ClientConfig {
    /// Committee whose members order and execute the operations.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        self.history.committee()
    }

    /// This configuration in the last epoch of another history of its network.
    #[must_use]
    pub fn following(&self, history: History) -> Self {
        Self { history: Arc::new(history), ..self.clone() }
    }

    /// This configuration with sessions that a listed client vouches for.
    #[must_use]
    pub fn vouched_by(mut self, client: &IdentitySecret) -> Self {
        let network = self.committee().network();
        let vouched = self.sessions.into_iter().map(|session| session.vouched_by(client, network));
        self.sessions = vouched.collect();
        self
    }
}

/// Key and starting point of one session.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// Secret of the client's identity, on its channels and under its requests.
    pub identity: Arc<IdentitySecret>,
    /// Member that gets the first request; the next ones in turn follow while it is silent.
    pub first: ReplicaId,
    /// Sequence number of the first request: one past the last that this key ever used, 0 for a
    /// new key.
    pub next_sequence: u64,
    /// A listed client's word for the key, where members let in listed clients alone.
    pub voucher: Option<Voucher>,
}

impl SessionSpec {
    /// A session for a key that was never used.
    #[must_use]
    pub fn fresh(identity: IdentitySecret, first: ReplicaId) -> Self {
        Self { identity: Arc::new(identity), first, next_sequence: 0, voucher: None }
    }

    /// The session, vouched for by a client that members know.
    #[must_use]
    pub fn vouched_by(self, client: &IdentitySecret, network: NetworkId) -> Self {
        let voucher = Voucher::sign(client, network, &self.identity.public());
        Self { voucher: Some(voucher), ..self }
    }
}

/// Limits of a bundle: operations that share a request, and so a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundling {
    /// Time that an operation waits for others. Longer: fewer signatures, more latency.
    pub delay: Duration,
    /// Most operations of one request: at least one, and no more than [`Request::OPERATIONS_MAX`].
    pub operations_max: usize,
}

impl Bundling {
    /// Bundles of as many operations as a request takes, sent after `delay`.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay, operations_max: Request::OPERATIONS_MAX }
    }

    /// Bundles of at most so many operations, clamped to a request's limits; for committees whose
    /// blocks take few, since a request is ordered whole.
    #[must_use]
    pub fn at_most(self, operations: usize) -> Self {
        Self { operations_max: operations.clamp(1, Request::OPERATIONS_MAX), ..self }
    }
}

/// Check that an answer to a query is true of a state with this header's root, or of whichever
/// other state the query is of.
///
/// Returns what is wrong with it. A member whose answer does not pass is not asked again for it.
#[derive(Clone)]
pub struct CheckAnswer(Arc<Check>);

type Check = dyn Fn(&[u8], &Header, &Proven) -> Result<(), String> + Send + Sync;

impl CheckAnswer {
    /// A check of the query, the header of the certified height that came with the answer, and the
    /// answer.
    pub fn new(
        check: impl Fn(&[u8], &Header, &Proven) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(check))
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, query: &[u8], header: &Header, answer: &Proven) -> Result<(), String> {
        self.0(query, header, answer)
    }
}

impl fmt::Debug for CheckAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckAnswer")
    }
}

/// The check of a session that asks nothing: no answer passes.
///
/// # Errors
/// Always.
pub fn reject_answers(_: &[u8], _: &Header, _: &Proven) -> Result<(), String> {
    Err("this session has no check for answers".to_owned())
}

/// Address of a learner that answers queries, as text `KEY@ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnerAddress {
    /// Identity key that the learner proves; nobody else is spoken to there.
    pub identity: IdentityKey,
    /// Address to dial, as `host:port`.
    pub address: String,
}

/// Error of a text that is not `KEY@ADDRESS`; holds the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not KEY@ADDRESS: a learner's identity key of 64 hexadecimal digits, '@', and where it \
     listens, as in …@127.0.0.1:7008"
)]
pub struct NoLearnerAddress(String);

impl FromStr for LearnerAddress {
    type Err = NoLearnerAddress;

    fn from_str(text: &str) -> Result<Self, NoLearnerAddress> {
        let parse = || {
            let (key, address) = text.split_once('@')?;
            let (identity, address) = (key.parse().ok()?, address.to_owned());
            address.contains(':').then_some(Self { identity, address })
        };
        parse().ok_or_else(|| NoLearnerAddress(text.to_owned()))
    }
}

impl fmt::Display for LearnerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.identity, self.address)
    }
}
