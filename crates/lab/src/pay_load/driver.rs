//! Driver of a load: every payment that is under way is a task, which shows it to the authorities
//! of the epoch that is in force until its outcome is known.

use super::book::{Book, Entry};
use super::follow::{Signals, follow};
use super::journal::Journal;
use super::moves;
use super::payers::{Clients, Payers};
use super::schedule::Schedule;
use super::tally::Tally;
use super::{LoadPlan, PayLoadError, Second};
use quorate_crypto::IdentityKey;
use quorate_payments::{Coin, Network, PaymentOutcome, Transaction, TxId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Interval at which everything that is due is begun.
const PACE: Duration = Duration::from_millis(1);

/// Hears of each second of a load.
pub type Say<'a> = &'a mut (dyn FnMut(&Second) + Send);

/// A load that runs.
pub(super) struct Driver<'a> {
    book: &'a mut Book,
    journal: &'a Journal,
    payers: &'a Arc<Payers>,
    say: Say<'a>,
    clients: Arc<watch::Sender<Arc<Clients>>>,
    signals: Arc<Signals>,
    tasks: JoinSet<()>,
    ended: (mpsc::UnboundedSender<Ended>, mpsc::UnboundedReceiver<Ended>),
    /// When payments of the load that are under way were due, in microseconds since it began.
    due_us: BTreeMap<TxId, u64>,
    pub(super) tally: Tally,
    pub(super) schedule: Schedule,
    load_began: Option<Instant>,
    last_end: Instant,
    last_second: Instant,
    certified_before: u64,
}

/// The outcome of a payment.
struct Ended {
    tx: TxId,
    outcome: PaymentOutcome,
}

impl<'a> Driver<'a> {
    /// Connects everybody, and shows what is under way again.
    pub(super) fn start(
        (book, journal): (&'a mut Book, &'a Journal),
        payers: &'a Arc<Payers>,
        (network, path): (&Arc<Network>, PathBuf),
        plan: &LoadPlan,
        say: Say<'a>,
    ) -> Result<Self, PayLoadError> {
        let clients = Arc::new(Clients::connect(Arc::clone(network), payers)?);
        let clients = Arc::new(watch::Sender::new(clients));
        let signals = Arc::new(Signals::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(path, Arc::clone(payers), Arc::clone(&clients), Arc::clone(&signals)));
        let now = Instant::now();
        let mut driver = Self {
            book,
            journal,
            payers,
            say,
            clients,
            signals,
            tasks,
            ended: mpsc::unbounded_channel(),
            due_us: BTreeMap::new(),
            tally: Tally::new(),
            schedule: Schedule::new(plan.rate, plan.duration),
            load_began: None,
            last_end: now,
            last_second: now,
            certified_before: 0,
        };
        let open: Vec<_> = driver.book.under_way().values().cloned().collect();
        for transaction in open {
            let (durable, heard) = oneshot::channel();
            let _ = durable.send(());
            driver.show(transaction, heard);
        }
        Ok(driver)
    }

    /// The network in the epoch that the load is in.
    pub(super) fn network(&self) -> Arc<Network> {
        Arc::clone(self.clients.borrow().network())
    }

    /// Orders that were sent again, and the reason for which the network's files are not followed.
    pub(super) fn trouble(&self) -> (u64, Option<String>) {
        let former = *self.signals.sent_again.lock();
        let problem = self.signals.problem.lock().clone();
        (former + self.clients.borrow().sent_again(), problem)
    }

    /// Waits until nothing is under way; `false` when nothing ended for as long as `within`.
    pub(super) async fn settle(&mut self, within: Duration) -> Result<bool, PayLoadError> {
        self.last_end = Instant::now();
        while !self.book.under_way().is_empty() {
            if self.last_end.elapsed() >= within {
                return Ok(false);
            }
            self.step().await?;
        }
        Ok(true)
    }

    /// Splits the coins until each is worth one.
    pub(super) async fn split(&mut self, within: Duration) -> Result<bool, PayLoadError> {
        loop {
            let splits = moves::split(&self.network(), self.payers, &self.free());
            if splits.is_empty() {
                return Ok(true);
            }
            splits.into_iter().for_each(|transaction| self.begin(transaction, None));
            if !self.settle(within).await? {
                return Ok(false);
            }
        }
    }

    /// Makes payments at the plan's rate, then waits for what is under way.
    pub(super) async fn pay(&mut self, plan: &LoadPlan) -> Result<bool, PayLoadError> {
        let began = Instant::now();
        self.load_began = Some(began);
        (self.last_end, self.last_second) = (began, began);
        while !self.schedule.is_over() {
            if plan.stop.load(Ordering::Relaxed) {
                self.schedule.end();
            }
            self.begin_due();
            // While payments are due, authorities may be away for as long as they like.
            if began.elapsed() > plan.duration && self.last_end.elapsed() >= plan.timeout {
                return Ok(false);
            }
            self.step().await?;
        }
        self.settle(plan.timeout).await
    }

    /// Pays everything to the wallet, by way of the hub.
    pub(super) async fn give_back(
        &mut self,
        wallet: IdentityKey,
        within: Duration,
    ) -> Result<bool, PayLoadError> {
        for payee in [self.payers.key(Payers::HUB), wallet] {
            let gathering = moves::gather(&self.network(), self.payers, &self.free(), payee);
            gathering.into_iter().for_each(|transaction| self.begin(transaction, None));
            if !self.settle(within).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn free(&self) -> Vec<Coin> {
        self.book.free().cloned().collect()
    }

    /// Begins what is due, as far as there are coins.
    fn begin_due(&mut self) {
        let network = self.network();
        while let Some(due_us) = self.schedule.due(self.now_us())
            && let Some(coin) = self.book.oldest()
        {
            let turn = self.schedule.begun();
            let transaction = moves::pay_on(&network, self.payers, coin, turn);
            self.schedule.begin();
            self.begin(transaction, Some(due_us));
        }
    }

    /// Stores a transaction; its task shows it to nobody before that is durable.
    fn begin(&mut self, transaction: Transaction, due_us: Option<u64>) {
        let tx = transaction.id(self.network().id());
        if let Some(due_us) = due_us {
            self.due_us.insert(tx, due_us);
        }
        let entry = Entry::Begun(transaction);
        let stored = self.journal.append(&entry);
        self.book.apply(entry, self.payers);
        self.show(Arc::clone(&self.book.under_way()[&tx]), stored);
    }

    fn show(&mut self, transaction: Arc<Transaction>, stored: oneshot::Receiver<()>) {
        let payer = self.payers.number(&transaction.payer).expect("payers alone pay");
        let (clients, ended) = (self.clients.subscribe(), self.ended.0.clone());
        self.tasks.spawn(show(transaction, payer, stored, clients, ended));
    }

    /// Waits for a moment or for an outcome, and does what follows.
    async fn step(&mut self) -> Result<(), PayLoadError> {
        if let Ok(Some(ended)) = timeout(PACE, self.ended.1.recv()).await {
            self.on_ended(ended);
            while let Ok(ended) = self.ended.1.try_recv() {
                self.on_ended(ended);
            }
        }
        while let Some(shown) = self.tasks.try_join_next() {
            shown.expect("showing a transaction does not panic");
        }
        if self.journal.has_failed() {
            return Err(PayLoadError::JournalFailed);
        }
        if self.last_second.elapsed() >= Duration::from_secs(1) {
            self.on_second();
        }
        Ok(())
    }

    fn on_ended(&mut self, Ended { tx, outcome }: Ended) {
        self.last_end = Instant::now();
        let is_certified = matches!(outcome, PaymentOutcome::Certified(_));
        if let Some(due_us) = self.due_us.remove(&tx)
            && is_certified
        {
            self.tally.add(due_us, self.now_us());
        }
        let entry = Entry::Ended(tx, outcome);
        // Whatever spends its coins comes behind it in the journal.
        drop(self.journal.append(&entry));
        self.book.apply(entry, self.payers);
    }

    fn on_second(&mut self) {
        self.last_second = Instant::now();
        let clients = Arc::clone(&self.clients.borrow());
        let network = clients.network();
        let (connected, of) = (clients.connected(), network.committee().size());
        let is_stuck =
            !self.book.under_way().is_empty() && self.last_end.elapsed() >= Duration::from_secs(1);
        self.signals.trouble.store(is_stuck || connected < of, Ordering::Relaxed);
        let certified = self.tally.certified();
        let Some(began) = self.load_began else { return };
        let second = Second {
            second: began.elapsed().as_secs(),
            certified: certified - self.certified_before,
            under_way: self.book.under_way().len(),
            late: self.schedule.late(self.now_us()),
            epoch: network.epoch().0,
            connected,
            authorities: of,
        };
        (self.say)(&second);
        self.certified_before = certified;
    }

    /// Microseconds since the load began.
    pub(super) fn now_us(&self) -> u64 {
        let since = self.load_began.map_or(Duration::ZERO, |began| began.elapsed());
        u64::try_from(since.as_micros()).expect("loads end before that")
    }
}

/// Shows a transaction to the authorities, once it is stored, until its outcome is known. Those of
/// a newer epoch are shown the same bytes.
async fn show(
    transaction: Arc<Transaction>,
    payer: usize,
    stored: oneshot::Receiver<()>,
    mut clients: watch::Receiver<Arc<Clients>>,
    ended: mpsc::UnboundedSender<Ended>,
) {
    if stored.await.is_err() {
        return;
    }
    loop {
        let (client, network) = {
            let clients = clients.borrow_and_update();
            (clients.of(payer), clients.network().id())
        };
        tokio::select! {
            outcome = client.pay(Arc::clone(&transaction)) => {
                // Nobody listens when the load has ended.
                let _ = ended.send(Ended { tx: transaction.id(network), outcome });
                return;
            }
            changed = clients.changed() => if changed.is_err() { return },
        }
    }
}
