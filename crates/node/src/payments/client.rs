//! Client of a payer: a connection to each authority's shard, and the payer machine between them.

use super::requests::Requests;
use super::{FromAuthority, ORDER, RECORDED_ORDER, authority_bytes_max, frame};
use crate::NodeError;
use crate::metrics::Metrics;
use crate::tls::Dialer;
use crate::transport::Limits;
use crate::transport::frames::FrameReader;
use crate::transport::hello::{ANY_EPOCH, Hello};
use crate::transport::outbound::{Backoff, dial};
use crate::transport::outbox::{Full, Outbox, drain};
use quorate_crypto::IdentitySecret;
use quorate_engine::Frame;
use quorate_payments::{
    Answer, Network, Note, Payer, PayerEffect, PayerEvent, PaymentOutcome, RecordContent,
    Transaction, TxId, WalletRecord, WalletReply, WalletRequest,
};
use quorate_types::{Lane, Machine, ReplicaId, Time};
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Orders that wait for one authority.
const ORDERS_MAX: (usize, usize) = (65_536, 64 * 1024 * 1024);

/// Answers that wait for the machine.
const ANSWERS_MAX: usize = 65_536;

/// Shows transactions to all authorities. Cloning shares the connections; they end with the last
/// clone.
#[derive(Clone, Debug)]
pub struct PayClient {
    network: Arc<Network>,
    payments: mpsc::Sender<Job>,
    links: Arc<Links>,
}

/// Job for the driver.
#[derive(Debug)]
enum Job {
    /// An order for the payer's machine to pay or claim, under the transaction's name.
    Pay(TxId, PayerEvent, Option<Note>, oneshot::Sender<PaymentOutcome>),
    Ask(ReplicaId, WalletRequest, oneshot::Sender<WalletReply>),
}

/// The connections of one payer.
#[derive(Debug)]
struct Links {
    up: Vec<Arc<AtomicBool>>,
    sent_again: Arc<AtomicU64>,
    /// Ends them when dropped.
    _tasks: JoinSet<()>,
}

impl PayClient {
    /// Connects, in the background, to the shard of `identity` at every authority. Inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// When the key is refused by the TLS library.
    pub fn start(network: Arc<Network>, identity: &IdentitySecret) -> Result<Self, NodeError> {
        let shard = network.shard_of(&identity.public());
        Self::start_at(network, identity, shard)
    }

    /// The same, to another shard than that which votes for `identity`.
    pub(super) fn start_at(
        network: Arc<Network>,
        identity: &IdentitySecret,
        shard: u16,
    ) -> Result<Self, NodeError> {
        let (answers_in, answers) = mpsc::channel(ANSWERS_MAX);
        let links = open_links(&network, identity, shard)?;
        let mut tasks = JoinSet::new();
        let mut outboxes = Vec::with_capacity(links.len());
        let mut up = Vec::with_capacity(links.len());
        for link in links {
            outboxes.push(Arc::clone(&link.outbox));
            up.push(Arc::clone(&link.up));
            tasks.spawn(link.run(answers_in.clone()));
        }
        let (payments, payments_in) = mpsc::channel(ANSWERS_MAX);
        let sent_again = Arc::new(AtomicU64::new(0));
        let driver = Driver {
            payer: Payer::new(Arc::clone(&network)),
            network: Arc::clone(&network),
            outboxes,
            waiting: BTreeMap::new(),
            notes: BTreeMap::new(),
            requests: Requests::default(),
            first_sends: 0,
            sent_again: Arc::clone(&sent_again),
            began: Instant::now(),
        };
        tokio::spawn(driver.run(payments_in, answers));
        let links = Arc::new(Links { up, sent_again, _tasks: tasks });
        Ok(Self { network, payments, links })
    }

    /// Shows a transaction to all authorities until its outcome is known: as long as too few
    /// answer, for ever. The caller has made it durable before (★ of the payer's contract).
    ///
    /// # Panics
    /// When the runtime is shutting down.
    pub async fn pay(&self, transaction: Arc<Transaction>) -> PaymentOutcome {
        self.pay_recorded(transaction, None).await
    }

    /// Shows a transaction as [`PayClient::pay`] does, with a note that each authority stores with
    /// it before it votes.
    ///
    /// # Panics
    /// When the runtime is shutting down.
    pub async fn pay_recorded(
        &self,
        transaction: Arc<Transaction>,
        note: Option<Note>,
    ) -> PaymentOutcome {
        let tx = transaction.id(self.network.id());
        self.order(tx, PayerEvent::Pay(transaction), note).await
    }

    /// As [`PayClient::pay_recorded`], of a transaction that the release of its inputs was decided
    /// for: authorities that did not hear of that yet are asked again.
    ///
    /// # Panics
    /// When the runtime is shutting down.
    pub async fn claim_recorded(
        &self,
        transaction: Arc<Transaction>,
        note: Note,
    ) -> PaymentOutcome {
        let tx = transaction.id(self.network.id());
        self.order(tx, PayerEvent::Claim(transaction), Some(note)).await
    }

    async fn order(&self, tx: TxId, event: PayerEvent, note: Option<Note>) -> PaymentOutcome {
        let (done, outcome) = oneshot::channel();
        self.send(Job::Pay(tx, event, note, done)).await;
        outcome.await.expect("the driver answers or lives on")
    }

    /// Asks one authority until it answers; for ever, if it does not.
    ///
    /// # Panics
    /// When the runtime is shutting down.
    pub async fn ask(&self, to: ReplicaId, request: WalletRequest) -> WalletReply {
        let (done, reply) = oneshot::channel();
        self.send(Job::Ask(to, request, done)).await;
        reply.await.expect("the driver answers or lives on")
    }

    async fn send(&self, job: Job) {
        self.payments.send(job).await.expect("the driver lives as long as we");
    }

    /// Number of connected authorities.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.links.up.iter().filter(|up| up.load(Ordering::Relaxed)).count()
    }

    /// Number of orders that were sent again, to whichever authority: the same bytes each time.
    #[must_use]
    pub fn sent_again(&self) -> u64 {
        self.links.sent_again.load(Ordering::Relaxed)
    }
}

/// A connection to one authority that is kept up.
pub(super) struct PayLink {
    peer: ReplicaId,
    address: String,
    tls: Arc<ClientConfig>,
    hello: Hello,
    pub(super) outbox: Arc<Outbox>,
    pub(super) up: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
}

/// A link to this shard of every authority, in index order.
pub(super) fn open_links(
    network: &Network,
    identity: &IdentitySecret,
    shard: u16,
) -> Result<Vec<PayLink>, NodeError> {
    let dialer = Dialer::new(identity)?;
    let metrics = Arc::new(Metrics::new());
    let mut links = Vec::new();
    for peer in network.committee().members() {
        let key = network.committee().identity(peer).expect("a member has a key");
        let address = network.address(peer.index(), shard).expect("a member has each shard");
        let (frames, bytes) = ORDERS_MAX;
        let outbox = Outbox::new(frames, bytes, Full::DropNewest, metrics.answers_dropped());
        links.push(PayLink {
            peer,
            address: address.to_owned(),
            tls: dialer.to(*key)?,
            hello: Hello::new((network.id(), ANY_EPOCH), Lane::Client),
            outbox: Arc::new(outbox),
            up: Arc::default(),
            metrics: Arc::clone(&metrics),
        });
    }
    Ok(links)
}

impl PayLink {
    /// Keeps the connection up until nobody listens to its answers.
    pub(super) async fn run(self, answers: mpsc::Sender<(ReplicaId, FromAuthority)>) {
        let limits = Limits::default();
        let mut backoff = Backoff::new();
        while !answers.is_closed() {
            let tls = Arc::clone(&self.tls);
            match dial(&self.address, tls, self.hello, limits.handshake).await {
                Ok(stream) => {
                    backoff.reset();
                    self.up.store(true, Ordering::Relaxed);
                    let (reader, writer) = tokio::io::split(stream);
                    tokio::select! {
                        () = self.listen(reader, &answers, limits.frame) => {}
                        _ = drain(
                            &self.outbox, writer, Lane::Client, &self.metrics, limits.write,
                        ) => {}
                    }
                    self.up.store(false, Ordering::Relaxed);
                }
                Err(error) => {
                    let authority = self.peer;
                    tracing::debug!(%authority, %error, "an authority cannot be reached");
                }
            }
            sleep(backoff.next()).await;
        }
    }

    async fn listen(
        &self,
        reader: impl AsyncRead + Unpin,
        answers: &mpsc::Sender<(ReplicaId, FromAuthority)>,
        timeout: Duration,
    ) {
        let mut reader = FrameReader::new(reader, authority_bytes_max, timeout);
        while let Ok(head) = reader.begin().await
            && let Ok(frame) = reader.finish(head).await
            && let Some(answer) = FromAuthority::decode(&frame)
        {
            if answers.send((self.peer, answer)).await.is_err() {
                return;
            }
        }
    }
}

/// An order as a frame.
#[must_use]
pub(super) fn order(transaction: &Transaction) -> Frame {
    frame(ORDER, transaction)
}

/// An order with the record that authorities store of it, as a frame.
fn recorded_order(transaction: &Transaction, note: &Note) -> Frame {
    let content = RecordContent::Sent(Box::new(transaction.clone()));
    frame(RECORDED_ORDER, &WalletRecord { content, note: note.clone() })
}

/// Drives the payer machine, and the requests beside it.
struct Driver {
    payer: Payer,
    network: Arc<Network>,
    outboxes: Vec<Arc<Outbox>>,
    waiting: BTreeMap<TxId, Vec<oneshot::Sender<PaymentOutcome>>>,
    /// Notes that go with the transactions under way.
    notes: BTreeMap<TxId, Note>,
    requests: Requests,
    /// Orders that payments which just began are sent for the first time.
    first_sends: usize,
    sent_again: Arc<AtomicU64>,
    began: Instant,
}

impl Driver {
    async fn run(
        mut self,
        mut jobs: mpsc::Receiver<Job>,
        mut answers: mpsc::Receiver<(ReplicaId, FromAuthority)>,
    ) {
        loop {
            let due = self.payer.next_timeout().map(|at| self.began + Duration::from_micros(at.0));
            let due = due.into_iter().chain(self.requests.next_retry()).min();
            let wake = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600));
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(Job::Pay(tx, event, note, done)) => self.begin(tx, event, note, done),
                    Some(Job::Ask(to, request, done)) => {
                        self.requests.ask(&self.outboxes, to, request, done);
                    }
                    None => return,
                },
                answer = answers.recv() => match answer {
                    Some((from, FromAuthority::Answer(answer))) => {
                        self.payer.handle(self.now(), PayerEvent::Answer { from, answer });
                    }
                    Some((from, FromAuthority::Reply(reply))) => {
                        self.requests.on_reply(from, reply);
                    }
                    None => {}
                },
                () = sleep_until(wake) => {
                    self.payer.handle_timeout(self.now());
                    self.requests.retry(&self.outboxes);
                }
            }
            self.apply_effects().await;
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn begin(
        &mut self,
        tx: TxId,
        event: PayerEvent,
        note: Option<Note>,
        done: oneshot::Sender<PaymentOutcome>,
    ) {
        if let Some(note) = note {
            self.notes.insert(tx, note);
        }
        self.waiting.entry(tx).or_default().push(done);
        // One that is under way is not begun twice.
        self.payer.handle(self.now(), event);
    }

    async fn apply_effects(&mut self) {
        while let Some(effect) = self.payer.poll() {
            match effect {
                // Whoever called has stored it.
                PayerEffect::Store(transaction) => {
                    let tx = transaction.id(self.network.id());
                    self.first_sends += self.outboxes.len();
                    self.payer.handle(self.now(), PayerEvent::Stored(tx));
                }
                PayerEffect::Send { to, transaction } => {
                    match self.first_sends.checked_sub(1) {
                        Some(left) => self.first_sends = left,
                        None => _ = self.sent_again.fetch_add(1, Ordering::Relaxed),
                    }
                    let note = self.notes.get(&transaction.id(self.network.id()));
                    self.outboxes[to.index()].push(match note {
                        Some(note) => recorded_order(&transaction, note),
                        None => order(&transaction),
                    });
                }
                PayerEffect::Count(job) => {
                    let (tx, network) = (job.tx, Arc::clone(&self.network));
                    let counted = tokio::task::spawn_blocking(move || job.run(&network)).await;
                    let counted = counted.expect("counting votes does not panic");
                    self.payer.handle(self.now(), PayerEvent::Counted(tx, counted));
                }
                PayerEffect::Done(tx, outcome) => {
                    self.notes.remove(&tx);
                    for waiting in self.waiting.remove(&tx).unwrap_or_default() {
                        let _ = waiting.send(outcome.clone());
                    }
                }
            }
        }
    }
}

/// A raw connection to one shard of one authority, for load generators: frames that were made
/// before go out, answers come in, and nothing is counted or asked again.
#[derive(Debug)]
pub struct PayFeed {
    outbox: Arc<Outbox>,
    up: Arc<AtomicBool>,
    answers: mpsc::Receiver<(ReplicaId, FromAuthority)>,
    _tasks: JoinSet<()>,
}

/// Order that is encoded as a frame.
#[derive(Clone, Debug)]
pub struct PreparedOrder(Frame);

impl PreparedOrder {
    /// Encodes a transaction as an order.
    #[must_use]
    pub fn new(transaction: &Transaction) -> Self {
        Self(order(transaction))
    }

    /// Bytes on the wire, before encryption.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl PayFeed {
    /// Connects to one shard of these authorities, inside a tokio runtime.
    ///
    /// # Errors
    /// When the key is refused by the TLS library.
    pub fn open(
        network: &Network,
        identity: &IdentitySecret,
        (authority, shard): (ReplicaId, u16),
    ) -> Result<Self, NodeError> {
        let (answers_in, answers) = mpsc::channel(ANSWERS_MAX);
        let mut links = open_links(network, identity, shard)?;
        let link = links.swap_remove(authority.index());
        let (outbox, up) = (Arc::clone(&link.outbox), Arc::clone(&link.up));
        let mut tasks = JoinSet::new();
        tasks.spawn(link.run(answers_in));
        Ok(Self { outbox, up, answers, _tasks: tasks })
    }

    /// Returns `true` while the connection is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Queue for orders: cloning shares the queue, which drops what does not fit.
    pub fn sender(&self) -> impl Fn(&PreparedOrder) + Clone + Send + use<> {
        let outbox = Arc::clone(&self.outbox);
        move |order| outbox.push(order.0.clone())
    }

    /// Waits for the next answer; `None` when the connection has ended for good.
    pub async fn answer(&mut self) -> Option<Answer> {
        loop {
            // Nothing was asked that has a reply.
            if let (_, FromAuthority::Answer(answer)) = self.answers.recv().await? {
                return Some(answer);
            }
        }
    }
}
