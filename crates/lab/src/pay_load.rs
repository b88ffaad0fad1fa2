//! Payments at a rate over a network that runs, through whatever becomes of its authorities, and
//! the proof that none was lost and none made twice.
//!
//! ```text
//! wallet ─▶ hub ─▶ split among payers ─▶ each coin paid on, at the rate ─▶ hub ─▶ wallet
//!              every transaction is in the journal before it is shown        └ audit
//! ```
//!
//! A load has a folder: one key, which those of all payers are made of, and a journal. It may be
//! killed at any time, and goes on from there: what is under way is shown again as the same bytes.
//! Payments are an open loop: a payment is due when it is due, and its latency is from then on,
//! however long authorities or coins were away. Each spends a whole coin that was certified before.

mod audit;
mod book;
mod driver;
mod error;
mod follow;
mod journal;
mod moves;
mod payers;
mod schedule;
mod states;
mod tally;

pub use audit::{Audit, Finding};
pub use driver::Say;
pub use error::PayLoadError;

use audit::Auditor;
use book::{Book, Entry};
use driver::Driver;
use journal::Journal;
use payers::Payers;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_payments::{Network, OutputId, PayReceipt};
use quorate_report::results::LatencyMs;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Longest wait for authorities' words about coins.
const ASK_WITHIN: Duration = Duration::from_secs(30);

/// Folder of a load, and what it belongs to.
#[derive(Clone, Debug)]
pub struct PayLoadPlace {
    /// Folder of the journal.
    pub journal: PathBuf,
    /// The network file. Files of later epochs are looked for beside it.
    pub network_file: PathBuf,
    /// Key that those of the payers are made of.
    pub key: IdentitySecret,
    /// Number of payers, at least 2.
    pub payers: u32,
    /// Key of the wallet that everything goes back to.
    pub wallet: IdentityKey,
}

/// Rate and length of a load, and how it ends.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Payments that are due a second, more than 0.
    pub rate: f64,
    /// Time for which payments are due. Zero: what the folder has is settled and goes back.
    pub duration: Duration,
    /// Longest time without any outcome that is waited for, once no payment is due any more.
    pub timeout: Duration,
    /// Ends the load early when set: nothing more is begun.
    pub stop: Arc<AtomicBool>,
}

/// One second of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Second {
    /// Seconds since the load began.
    pub second: u64,
    /// Payments that were certified in it.
    pub certified: u64,
    /// Transactions that were begun and have no outcome yet.
    pub under_way: usize,
    /// Payments that are due and could not be begun, for want of coins.
    pub late: u64,
    /// Epoch whose authorities are shown payments.
    pub epoch: u64,
    /// Authorities that all payers are connected to.
    pub connected: usize,
    /// Number of authorities in that epoch.
    pub authorities: usize,
}

/// Result of a load.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// Payments a second that were due.
    pub rate: f64,
    /// Payments begun, without those that split and gather coins.
    pub payments: u64,
    /// Payments of those that were certified.
    pub certified: u64,
    /// Payments certified in each second of the load.
    pub per_second: Vec<u64>,
    /// Time from when a payment was due until it was certified.
    pub latency_ms: LatencyMs,
    /// Longest time in which nothing was certified, in milliseconds.
    pub longest_pause_ms: u64,
    /// Orders that were sent again, to whichever authority.
    pub sent_again: u64,
    /// Epochs in which the load began and ended.
    pub epochs: (u64, u64),
    /// Reason for which the files beside the network file are not followed.
    pub problem: Option<String>,
    /// Audit of everything that the folder ever did.
    pub audit: Audit,
}

/// A load, with all that its folder has.
pub struct PayLoad {
    place: PayLoadPlace,
    network: Arc<Network>,
    payers: Arc<Payers>,
    book: Book,
    journal: Journal,
}

impl PayLoad {
    /// Opens the load of a folder, or begins one.
    ///
    /// # Errors
    /// When the folder is another load's or in use, or the disk fails.
    pub fn open(place: PayLoadPlace, network: Arc<Network>) -> Result<Self, PayLoadError> {
        let payers = Arc::new(Payers::new(&place.key, place.payers as usize));
        let mut book = Book::new(network.id(), place.wallet);
        let own =
            Entry::Founded { network: network.id(), wallet: place.wallet, payers: place.payers };
        let mut is_new = true;
        let journal = Journal::open(&place.journal, (network.id(), place.key.public()), |entry| {
            if std::mem::take(&mut is_new) {
                check_founded(&entry, &place)?;
            }
            book.apply(entry, &payers);
            Ok(())
        })?;
        if is_new {
            drop(journal.append(&own));
        }
        Ok(Self { place, network, payers, book, journal })
    }

    /// Address that the wallet pays to.
    #[must_use]
    pub fn address(&self) -> IdentityKey {
        self.payers.key(Payers::HUB)
    }

    /// Name for the wallet's payment, where the load has no money: the same until it was
    /// [taken in](Self::fund), so that the wallet pays once.
    #[must_use]
    pub fn funding(&self) -> Option<String> {
        let is_empty = self.book.free().next().is_none() && self.book.under_way().is_empty();
        is_empty.then(|| format!("load {} {}", self.address(), self.book.fundings()))
    }

    /// Takes in what the wallet paid.
    ///
    /// # Errors
    /// When the receipt does not hold, or the disk fails.
    pub async fn fund(&mut self, receipt: PayReceipt) -> Result<(), PayLoadError> {
        receipt.check(&self.network)?;
        self.write(Entry::Funded(receipt)).await
    }

    /// Settles what is under way, makes the payments of the plan, gives all money back, and audits
    /// everything. Inside a tokio runtime.
    ///
    /// # Errors
    /// When the disk fails or connections cannot be opened; what became of authorities is in the
    /// report.
    pub async fn run(
        mut self,
        plan: &LoadPlan,
        say: Say<'_>,
    ) -> Result<(Self, LoadReport), PayLoadError> {
        let first = self.network.epoch().0;
        let parts = (&mut self.book, &self.journal);
        let place = (&self.network, self.place.network_file.clone());
        let mut driver = Driver::start(parts, &self.payers, place, plan, say)?;
        let within = plan.timeout;
        if driver.settle(within).await?
            && (driver.schedule.is_over() || driver.split(within).await?)
            && driver.pay(plan).await?
        {
            driver.give_back(self.place.wallet, within).await?;
        }
        let network = driver.network();
        let (sent_again, problem) = driver.trouble();
        let is_open = driver.tally.certified() < driver.schedule.begun();
        let mut report = LoadReport {
            rate: plan.rate,
            payments: driver.schedule.begun(),
            certified: driver.tally.certified(),
            per_second: driver.tally.per_second().to_vec(),
            latency_ms: driver.tally.latency_ms(),
            longest_pause_ms: driver.tally.longest_pause_ms(driver.now_us(), is_open),
            sent_again,
            epochs: (first, network.epoch().0),
            problem,
            audit: Audit::default(),
        };
        drop(driver);
        self.network = network;
        let (load, audit) = self.audit().await?;
        report.audit = audit;
        Ok((load, report))
    }

    /// Audits what is on disk, and asks the authorities about every coin at the end of a payment.
    async fn audit(self) -> Result<(Self, Audit), PayLoadError> {
        let Self { place, network, payers, book, journal } = self;
        journal.close()?;
        let mut auditor = Auditor::new(Arc::clone(&network));
        let owner = (network.id(), place.key.public());
        let journal = Journal::open(&place.journal, owner, |entry| {
            auditor.read(entry);
            Ok(())
        })?;
        let (mut audit, coins) = auditor.finish();
        audit.coins_asked = coins.len();
        audit.findings.extend(states::ask(&network, &place.key, coins, ASK_WITHIN).await?);
        Ok((Self { place, network, payers, book, journal }, audit))
    }

    /// Receipts of what was paid back, for the wallet, which did not take them in yet.
    #[must_use]
    pub fn receipts(&self) -> Vec<PayReceipt> {
        self.book.receipts()
    }

    /// The network in the epoch that the load ended in.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Notes that the wallet took in all of [`PayLoad::receipts`], durably.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn returned(&mut self) -> Result<(), PayLoadError> {
        let coins: Vec<OutputId> =
            self.receipts().iter().flat_map(|one| &one.coins).map(|coin| coin.id).collect();
        if coins.is_empty() { Ok(()) } else { self.write(Entry::Returned(coins)).await }
    }

    async fn write(&mut self, entry: Entry) -> Result<(), PayLoadError> {
        self.journal.append(&entry).await.map_err(|_| PayLoadError::JournalFailed)?;
        self.book.apply(entry, &self.payers);
        Ok(())
    }
}

fn check_founded(first: &Entry, place: &PayLoadPlace) -> Result<(), PayLoadError> {
    let Entry::Founded { wallet, payers, .. } = first else { return Err(PayLoadError::Entry(0)) };
    let other = |found, expected| Err(PayLoadError::OtherLoad { found, expected });
    if *wallet != place.wallet {
        return other(format!("the wallet {wallet}"), place.wallet.to_string());
    }
    if *payers != place.payers {
        return other(format!("{payers} payers"), place.payers.to_string());
    }
    Ok(())
}
