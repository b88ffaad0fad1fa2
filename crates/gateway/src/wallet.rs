//! A wallet of the payment network ([`quorate_payments`]): it keeps coins, pays, and loses nothing
//! when it is killed.
//!
//! ```text
//! Order ─▶ Wallet::begin: coins chosen, signed and stored ─▶ authorities ─▶ Wallet::end
//!                         │                                  └ each stores a record, then votes
//!                         │ killed here or later: Wallet::unfinished, the same bytes again
//! receipt ─▶ Wallet::receive: checked offline, coins stored
//! ```
//!
//! # Rules
//!
//! * ★ A transaction is durable before anybody is shown it, and what is sent again is the same
//!   bytes. Two transactions over one coin would lock it for good.
//! * Coins of a payment that is not finished are reserved. Coins of one that lost against another
//!   transaction of the same owner, as when a copy of the wallet was used, are frozen, and the
//!   wallet says so.
//! * A caller's key names one payment: asked for again with the same content, it is the same
//!   payment; with another, it is refused.
//! * An issuer's serial number is stored with the transaction that uses it, and never used again.
//! * Whoever orders payments under a name may have limits, which hold over restarts ([`Orderer`]).
//! * A receipt is checked offline. What is known already changes nothing; what this wallet spent
//!   does not come back. ★ One of an epoch that has ended is taken in once a quorum of the
//!   authorities in force says that it counts ([`PaymentService::receive`]).
//! * A service goes on to the next epoch of its network while it runs: what is under way is shown
//!   to the new authorities, the same bytes.
//! * ★ A [request](Request) is paid once, by coins that were not here before.
//! * ★ Over a coin that a transaction of this key took, nothing else is signed but its refund, once
//!   the committee's state proves that this was decided ([`PaymentService::release`]). What came
//!   back is asked for before it is spent: a copy of the wallet knows of it too.
//! * One process at a time ([`WalletError::InUse`]). ★ A book that is behind its mark is refused:
//!   it does not know what was signed since. **Copies of a wallet must not be used side by side**:
//!   nothing but the authorities would notice, and the coins that both spend are locked. Some
//!   come back by a release.
//! * A book is folded when it is long: lines of the history that are over go to an archive. ★ What
//!   was ordered by a key, and what was spent, is known for ever. ★ An archive that is not the one
//!   that the book goes on from is refused. ★ Authorities remove records of spent coins alone.
//! * ★ A wallet that was made again, from a copy or from its key alone, takes in what the
//!   authorities keep of it before it pays, and signs nothing over a coin whose state no quorum
//!   told it since.
//!
//! [`PaymentService`] shows payments to the authorities; [`PaymentReceipt`], [`PaymentRequest`] and
//! [`Evidence`] are files that payers and payees exchange; [`rest`] serves all of it over HTTP, to
//! a till for instance.

mod archive;
mod asking;
mod authorities;
mod backup;
mod counting;
mod file;
mod folding;
mod following;
mod forecast;
mod frames;
mod held;
mod history;
mod limits;
mod mark;
mod notes;
mod ordering;
mod payment;
mod payment_files;
mod record;
mod recovery;
mod regain;
mod release;
mod releasing;
mod removal;
mod request;
mod requests;
pub mod rest;
mod select;
mod service;
mod state;
#[cfg(test)]
mod tests;
mod view;

pub use authorities::{Authorities, Connect, PendingOutcome, PendingReply};
pub use backup::Backup;
pub use history::{HistoryLine, utc};
pub use limits::{DAY_MS, Limits, Orderer};
pub use ordering::{OrderingError, PendingAnswer, ReleaseCommitteeFile, ReleaseOrdering};
pub use payment::{Order, Payment, PaymentState, Purpose};
pub use payment_files::{Evidence, PaymentFileError, PaymentReceipt, PaymentRequest};
pub use recovery::Recovery;
pub use regain::Regained;
pub use release::{CoinRelease, CoinReleaseView, ReleaseReportView, Released};
pub use request::{Request, RequestId, RequestPayment, RequestState, RequestTerms};
pub use requests::{OPEN_REQUESTS_MAX, REQUEST_MEMO_BYTES_MAX, REQUEST_TIME_MAX};
pub use service::PaymentService;
pub use view::{PaymentView, RequestPaymentView, RequestView};

use archive::Archive;
use borsh::BorshSerialize;
use file::RecordFile;
use folding::{FoldAt, Folding};
use held::{Held, Hold};
use notes::Notes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_node::payments::FollowError;
use quorate_node::unix_ms;
use quorate_payments::{
    Coin, Invalid, Memo, Network, Note, Origin, Output, Paid, PayReceipt, PaymentOutcome,
    ReceiptError, Transaction, TxId,
};
use quorate_types::Epoch;
use record::Record;
use select::Insufficient;
use state::WalletState;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a caller's key.
pub const KEY_BYTES_MAX: usize = 255;

/// Error of an operation on a wallet.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    /// There is no file.
    #[error("there is no wallet at {path}: `quorate pay keys` makes one. If there was one, `quorate pay restore` makes it again from its key and the authorities", path = path.display())]
    Absent {
        /// Path of the wallet's file.
        path: PathBuf,
    },
    /// There is a file.
    #[error("{path} exists already; a wallet is never overwritten", path = path.display())]
    Exists {
        /// Path of the existing file.
        path: PathBuf,
    },
    /// There was a file, as its mark says.
    #[error("there was a wallet at {path} ({mark} says so), and a new one would not know which payments were begun: `quorate pay restore` makes it again from its key and the authorities", path = path.display(), mark = mark.display())]
    Lost {
        /// Path of the wallet's file.
        path: PathBuf,
        /// The mark beside it.
        mark: PathBuf,
    },
    /// The file is older than it was, or another one.
    #[error("the wallet {path} is not the one that it was, by what {mark} says of it: an older copy, cut short, or another one. It does not know what was paid since, and nothing is done with it: `quorate pay restore` makes it again, from it and from what the authorities keep", path = path.display(), mark = mark.display())]
    Behind {
        /// Path of the wallet's file.
        path: PathBuf,
        /// The mark beside it, which may be missing.
        mark: PathBuf,
    },
    /// Too few authorities said what they keep of a restored wallet.
    #[error(
        "{answered} of {of} authorities said what they keep of this wallet, which was made again and pays nothing before a quorum did: `quorate pay restore` asks again"
    )]
    TooFewAuthorities {
        /// Number of authorities that answered.
        answered: usize,
        /// Number of all authorities.
        of: usize,
    },
    /// The wallet's settings are refused.
    #[error("{0}: it has one line at most, records = \"sealed\" or \"plain\"")]
    Settings(String),
    /// A backup that is none of this wallet.
    #[error("{0}")]
    Backup(String),
    /// Another process has it.
    #[error("the wallet {path} is in use by another process: wait until that one ends, or ask it over HTTP if it is `quorate pay serve`", path = path.display())]
    InUse {
        /// Path of the wallet's file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} the wallet {path}: {source}", path = path.display())]
    Io {
        /// Operation on the file, as a verb for the message.
        action: &'static str,
        /// Path of the file concerned.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An earlier write failed.
    #[error("nothing more is written to the wallet {path} after a write failed: mend the disk and start again", path = path.display())]
    Stopped {
        /// Path of the wallet's file.
        path: PathBuf,
    },
    /// The file was altered, or the disk is failing.
    #[error("the wallet {path} is damaged at byte {offset}: it was left as it is. `quorate pay restore` makes it again, from what can be read of it and from what the authorities keep", path = path.display())]
    Damaged {
        /// Path of the wallet's file.
        path: PathBuf,
        /// Offset of the first damaged record, in bytes.
        offset: u64,
    },
    /// What was folded away from the book is missing, or not what it was.
    #[error("{path} {problem}. It is part of the wallet beside it, which is left as it is: put it back, or `quorate pay restore` makes the wallet again, from it and from what the authorities keep", path = path.display())]
    Archive {
        /// Path of the archive, or of its index.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence.
        problem: String,
    },
    /// The file's records contradict each other.
    #[error("the wallet {path} was not written by a wallet: {problem}", path = path.display())]
    Content {
        /// Path of the wallet's file.
        path: PathBuf,
        /// Contradiction that the records contain.
        problem: String,
    },
    /// The wallet belongs to another key.
    #[error(
        "the wallet belongs to {expected}, and the key file is {found}'s: use the key file that it was made with"
    )]
    OtherOwner {
        /// Key that the wallet belongs to.
        expected: IdentityKey,
        /// Key in the key file.
        found: IdentityKey,
    },
    /// The wallet is of another network.
    #[error(
        "the wallet is of network {expected}, and the network file is of {found}: a wallet serves one network for ever"
    )]
    OtherNetwork {
        /// Network that the wallet is of.
        expected: String,
        /// Network of the network file.
        found: String,
    },
    /// A value, memo or key that is none.
    #[error("{0}")]
    Order(&'static str),
    /// A payee that nobody can be.
    #[error("the payee {0} is no key: money for it would be lost. Check for a mistyped digit")]
    Payee(IdentityKey),
    /// The key names another payment.
    #[error(
        "the key '{key}' names a payment with another content, {payment}: use a new key for a new payment"
    )]
    KeyTaken {
        /// The caller's name for the payment.
        key: String,
        /// The payment that has it.
        payment: TxId,
    },
    /// Somebody else is the network's issuer.
    #[error("only the network's issuer, {issuer}, issues money")]
    NotTheIssuer {
        /// Key of the network's issuer.
        issuer: IdentityKey,
    },
    /// The coins that are free are worth too little.
    #[error(
        "{needed} are needed, and {free} are free; {reserved} are in payments that are not finished (`quorate pay retry`), {frozen} are frozen{}",
        held_back(*unasked, *stuck, *releasing)
    )]
    TooLittle {
        /// Value of the payment, in the smallest unit.
        needed: u64,
        /// Value that can be spent now.
        free: u128,
        /// Value in payments that are not finished.
        reserved: u128,
        /// Value that is locked for good.
        frozen: u128,
        /// Value whose state no quorum told since the wallet was made again.
        unasked: u128,
        /// Value that a transaction took which the wallet does not have.
        stuck: u128,
        /// Value of coins under release.
        releasing: u128,
    },
    /// Enough money, in coins that are too small.
    #[error("one payment takes {max} coins, and the largest are worth {most} of {needed}: run `quorate pay consolidate` first, or pay in parts", max = Transaction::INPUTS_MAX)]
    TooManyCoins {
        /// Value of the payment, in the smallest unit.
        needed: u64,
        /// Largest value that one transaction can take now.
        most: u128,
    },
    /// Fewer than two free coins.
    #[error("there are fewer than two free coins: nothing is to be consolidated")]
    NothingToConsolidate,
    /// The transaction would be refused.
    #[error("the payment would be refused: {0}")]
    Invalid(#[from] Invalid),
    /// A receipt that proves nothing.
    #[error("the receipt proves nothing: {0}")]
    Receipt(#[from] ReceiptError),
    /// Certificates of an ended epoch, of which no quorum said that they count.
    #[error(
        "the receipt is certified by authorities of epoch {epoch}, which has ended, and their keys may be in anybody's          hands by now: it is taken in once a quorum of those of epoch {newest} say that transaction {tx} counts, and          they do not, or not yet. Ask again later, or have its payer send the payment again"
    )]
    FormerEpoch {
        /// Transaction that made the coins.
        tx: TxId,
        /// Epoch of its certificate.
        epoch: Epoch,
        /// Epoch whose authorities are asked.
        newest: Epoch,
    },
    /// The network's next epoch cannot be followed.
    #[error(transparent)]
    NotFollowed(Box<FollowError>),
    /// The receipt pays somebody else.
    #[error("the receipt pays {payee}, not this wallet, which is {owner}")]
    NotMine {
        /// Key that the receipt pays.
        payee: IdentityKey,
        /// Key of this wallet.
        owner: IdentityKey,
    },
    /// A payment that is none of this wallet's.
    #[error("this wallet has no payment {0}")]
    NoPayment(TxId),
    /// Nothing of it waits for a release.
    #[error(
        "no coin of this wallet is locked for transaction {0}: nothing of it is to be released. A payment that is not finished is sent again by `quorate pay retry`"
    )]
    NothingLocked(TxId),
    /// Nobody is known who orders releases.
    #[error(
        "no committee is known that orders releases: its file, committee.toml, is beside the network file, or named by --committee"
    )]
    NoCommittee,
    /// The committee does not answer, or refuses.
    #[error(transparent)]
    Release(#[from] OrderingError),
    /// Whoever ordered it may not pay as much.
    #[error(transparent)]
    Limit(#[from] limits::LimitError),
    /// A request that is none of this wallet's.
    #[error("this wallet has no request {0}")]
    NoRequest(RequestId),
    /// The request is paid, cancelled, or too old.
    #[error("request {id} is {state}: nothing was changed")]
    NotOpen {
        /// Name of the request.
        id: RequestId,
        /// State that keeps it from being changed.
        state: RequestState,
    },
    /// Somebody has more requests made than anybody can pay.
    #[error("{OPEN_REQUESTS_MAX} requests are open: cancel some, or wait until they expire")]
    TooManyRequests,
    /// A receipt that names no request of this wallet's.
    #[error(
        "the receipt pays no request of this wallet: its memo must be the one that the request asks for, to the letter. Whoever has a token for it can take it in all the same"
    )]
    PaysNoRequest,
    /// A receipt of less than what is asked for.
    #[error(
        "the receipt brings {found} that this wallet does not have yet, and request {id} is for {needed}"
    )]
    PaysTooLittle {
        /// Name of the request.
        id: RequestId,
        /// Value that is asked for, in the smallest unit.
        needed: u64,
        /// Value of the receipt's coins that are new here, in the smallest unit.
        found: u128,
    },
}

/// Value of a wallet's coins by their state, in the smallest unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Balance {
    /// Value that can be spent now.
    pub free: u128,
    /// Value that unfinished payments take; their change comes back.
    pub reserved: u128,
    /// Value that is locked for good, since two transactions were signed over it.
    pub frozen: u128,
    /// Value whose state no quorum of authorities told since the wallet was made again.
    pub unasked: u128,
    /// Value that authorities locked for a transaction of this wallet's which it does not have.
    pub stuck: u128,
    /// Value of coins under release, whatever held them before.
    pub releasing: u128,
    /// Number of coins that can be spent.
    pub coins_free: usize,
}

/// Result of taking in a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Payment that the receipt proves.
    pub paid: Paid,
    /// Value that was new here, in the smallest unit; 0 where the receipt was known.
    pub added: u64,
    /// Request of this wallet's that the receipt pays, now or before.
    pub request: Option<RequestId>,
}

/// A wallet: its key, its network and its file.
#[derive(Debug)]
pub struct Wallet {
    network: Arc<Network>,
    secret: IdentitySecret,
    file: RecordFile,
    state: WalletState,
    notes: Notes,
    /// Transactions of ended epochs of which a quorum said that their certificates count, which
    /// stays so in later epochs.
    counted: BTreeSet<TxId>,
    /// Lines of the history that the book does not have any more, once there are any.
    archive: Option<Archive>,
    folding: Folding,
    fold_at: FoldAt,
}

impl Wallet {
    /// Makes an empty wallet for a key. Its network is that of its first use.
    ///
    /// # Errors
    /// [`WalletError::Exists`] and [`WalletError::Io`].
    pub fn create(path: &Path, owner: IdentityKey) -> Result<(), WalletError> {
        RecordFile::create(path)?.append(&[encode(&Record::Owner(owner))])
    }

    /// Makes a wallet for a key that may have had one: it takes in what the authorities keep of it
    /// before it pays.
    ///
    /// # Errors
    /// [`WalletError::Exists`], [`WalletError::Lost`] and [`WalletError::Io`].
    pub fn create_for_used_key(path: &Path, owner: IdentityKey) -> Result<(), WalletError> {
        let restored = Record::Restored { at_ms: unix_ms() };
        RecordFile::create(path)?.append(&[encode(&Record::Owner(owner)), encode(&restored)])
    }

    /// Opens a wallet, alone.
    ///
    /// # Errors
    /// When it is absent, in use, damaged, or another key's or network's.
    pub fn open(
        path: &Path,
        network: Arc<Network>,
        secret: IdentitySecret,
    ) -> Result<Self, WalletError> {
        Self::open_folding(path, network, secret, Folding::default())
    }

    /// As [`Wallet::open`], with a book that is folded at other sizes.
    fn open_folding(
        path: &Path,
        network: Arc<Network>,
        secret: IdentitySecret,
        folding: Folding,
    ) -> Result<Self, WalletError> {
        let (file, contents) = RecordFile::open(path)?;
        let state = read(&contents)
            .map_err(|problem| WalletError::Content { path: path.to_owned(), problem })?;
        let found = secret.public();
        match state.owner {
            Some(expected) if expected != found => {
                return Err(WalletError::OtherOwner { expected, found });
            }
            Some(_) => {}
            // Making it was interrupted, or somebody emptied it: that is not known here.
            None => {
                let problem =
                    "it is empty. If making it was interrupted, remove it and make it again";
                let problem = problem.to_owned();
                return Err(WalletError::Content { path: path.to_owned(), problem });
            }
        }
        let form = notes::form_beside(path).map_err(WalletError::Settings)?;
        let notes = Notes::new(&secret, network.id(), form);
        let fold_at = FoldAt::read(folding, &contents);
        let (archive, counted) = (None, BTreeSet::new());
        let mut wallet =
            Self { network, secret, file, state, notes, counted, archive, folding, fold_at };
        let network = wallet.network.id();
        match wallet.state.network {
            None => wallet.write(Record::Network(network))?,
            Some(expected) if expected != network => {
                let (expected, found) = (hex::encode(expected.0), hex::encode(network.0));
                return Err(WalletError::OtherNetwork { expected, found });
            }
            Some(_) => {}
        }
        wallet.open_archive()?;
        Ok(wallet)
    }

    /// Key of the wallet's owner: payers name it as the payee.
    #[must_use]
    pub fn owner(&self) -> IdentityKey {
        self.secret.public()
    }

    /// Network that the wallet pays in.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Goes on in a later epoch of the wallet's network: receipts are checked by what was certified
    /// until then.
    pub(super) fn enter(&mut self, next: Arc<Network>) {
        assert_eq!(next.id(), self.network.id(), "epochs are of one network");
        self.network = next;
    }

    /// Stores a payment (★) and reserves its coins; nobody was shown it yet. A key that was used
    /// for the same order gives that payment, however it stands.
    ///
    /// # Errors
    /// Why there is no such payment; nothing was stored then.
    pub fn begin(&mut self, order: &Order, key: Option<&str>) -> Result<Payment, WalletError> {
        self.begin_for(order, key, None)
    }

    /// As [`Wallet::begin`], for somebody whose name is stored with it and whose limits hold.
    ///
    /// # Errors
    /// Why there is no such payment; nothing was stored then.
    pub fn begin_for(
        &mut self,
        order: &Order,
        key: Option<&str>,
        by: Option<&Orderer>,
    ) -> Result<Payment, WalletError> {
        order.check().map_err(WalletError::Order)?;
        if let Some(key) = key {
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(WalletError::Order("a key has 1 to 255 bytes"));
            }
            if let Some(earlier) = self.find_by_key(key)? {
                let is_theirs = earlier.by.as_ref() == by.map(|by| &by.name);
                let taken = || WalletError::KeyTaken { key: key.to_owned(), payment: earlier.id };
                let is_same = is_theirs && earlier.order == *order;
                return if is_same { Ok(earlier) } else { Err(taken()) };
            }
        }
        self.check_recovered()?;
        if let Some(by) = by {
            self.check_limits(by, order)?;
        }
        let transaction = self.build(order)?;
        transaction.check_form(&self.network)?;
        let id = transaction.id(self.network.id());
        // The same coins for the same payee after a refusal are the same transaction: refused
        // again.
        if let Some(PaymentState::Refused { reason, .. }) = self.find(id)?.map(|one| one.state) {
            return Err(WalletError::Invalid(reason));
        }
        let (order, key, at_ms) = (order.clone(), key.map(str::to_owned), unix_ms());
        self.write(match by.map(|by| by.name.clone()) {
            Some(by) => Record::BegunBy { by, order, key, transaction, at_ms },
            None => Record::Begun { order, key, transaction, at_ms },
        })?;
        self.payment(id)
    }

    /// Checks that all that authorities keep of a restored wallet was taken in (★).
    fn check_recovered(&self) -> Result<(), WalletError> {
        if self.state.is_recovery_due && !mutants::active(Mutant::PaySpendUnasked) {
            let of = self.network.committee().size();
            return Err(WalletError::TooFewAuthorities { answered: 0, of });
        }
        Ok(())
    }

    /// Stores a payment's outcome: its change comes in, or its coins are free again, or
    /// frozen. Of a payment that ended already nothing changes, and none that its release was
    /// decided for lost.
    ///
    /// # Errors
    /// [`WalletError::NoPayment`], or when it could not be stored.
    pub fn end(&mut self, tx: TxId, outcome: PaymentOutcome) -> Result<Payment, WalletError> {
        let payment = self.payment(tx)?;
        // Some authorities had not heard of the decision.
        let is_early =
            matches!(outcome, PaymentOutcome::Conflicting(_)) && self.state.is_due(&payment);
        if payment.state == PaymentState::Begun && !is_early {
            self.write(Record::Ended { tx, outcome, at_ms: unix_ms() })?;
        }
        self.payment(tx)
    }

    /// Checks that the wallet can store records.
    ///
    /// # Errors
    /// [`WalletError::Stopped`] after a write failed: what is said of payments may be old.
    pub fn check_usable(&self) -> Result<(), WalletError> {
        self.file.check_usable()
    }

    /// Payments whose outcome is not known, in the order in which they began.
    #[must_use]
    pub fn unfinished(&self) -> Vec<(TxId, Arc<Transaction>)> {
        let open = self.state.payments().filter(|payment| payment.state == PaymentState::Begun);
        open.map(|payment| (payment.id, Arc::clone(&payment.transaction))).collect()
    }

    /// Note that authorities are to store with a payment.
    #[must_use]
    pub fn note(&self, payment: &Payment) -> Note {
        self.notes.sent(payment)
    }

    /// A payment of this wallet's.
    ///
    /// # Errors
    /// [`WalletError::NoPayment`]; and when it cannot be read.
    pub fn payment(&self, tx: TxId) -> Result<Payment, WalletError> {
        self.find(tx)?.ok_or(WalletError::NoPayment(tx))
    }

    /// Receipt to show to the payee of a certified payment; `None` while it is not certified.
    #[must_use]
    pub fn receipt(&self, payment: &Payment) -> Option<PayReceipt> {
        let tx = payment.id;
        let PaymentState::Certified { certificate, .. } = &payment.state else { return None };
        let payee = payment.payee();
        let mut coins = payment.transaction.coins(self.network.id(), certificate);
        coins.retain(|coin| coin.output.owner == payee);
        let sign = |text: &String| Memo::sign(&self.network, &self.secret, tx, text.clone());
        Some(PayReceipt { coins, memo: payment.order.memo.as_ref().map(sign) })
    }

    /// Checks a receipt offline and takes its coins in. Known coins are left as they are.
    ///
    /// # Errors
    /// When it proves nothing or pays somebody else; [`WalletError::FormerEpoch`] where authorities
    /// are to be asked first, as [`PaymentService::receive`] does.
    pub fn receive(&mut self, receipt: &PayReceipt) -> Result<Received, WalletError> {
        let paid = receipt.check(&self.network)?;
        let owner = self.owner();
        if paid.payee != owner {
            return Err(WalletError::NotMine { payee: paid.payee, owner });
        }
        let coins = self.fresh(receipt)?;
        self.check_counted(&coins)?;
        let added = coins.iter().map(|coin| coin.output.value).sum();
        if !coins.is_empty() {
            let receipt = PayReceipt { coins, memo: receipt.memo.clone() };
            self.write(Record::Received { receipt, at_ms: unix_ms() })?;
        }
        let memo = receipt.memo.as_ref();
        let request = memo.and_then(|memo| self.state.requested_by(&memo.text));
        let request = request.filter(|one| one.paid.as_ref().is_some_and(|by| by.tx == paid.tx));
        let request = request.map(|request| request.id);
        Ok(Received { paid, added, request })
    }

    /// Coins of a receipt that were not here before: what pays a request (★).
    fn fresh(&self, receipt: &PayReceipt) -> Result<Vec<Coin>, WalletError> {
        let mut fresh = receipt.coins.clone();
        if !mutants::active(Mutant::PayRequestByKnownCoins) {
            self.leave_unknown(&mut fresh)?;
        }
        Ok(fresh)
    }

    /// Leaves those of some coins that are not and were not here.
    fn leave_unknown(&self, coins: &mut Vec<Coin>) -> Result<(), WalletError> {
        let known: Vec<bool> =
            coins.iter().map(|coin| self.knows(&coin.id)).collect::<Result<_, _>>()?;
        let mut known = known.into_iter();
        coins.retain(|_| !known.next().expect("one for each"));
        Ok(())
    }

    /// Takes in what the network began with and this wallet owns; returns how much of it was new.
    ///
    /// # Errors
    /// When it could not be stored.
    pub fn receive_genesis(&mut self) -> Result<u64, WalletError> {
        let owner = self.owner();
        let coin = |(id, output)| Coin { id, output, origin: Origin::Genesis };
        let coins: Vec<Coin> = self
            .network
            .genesis_outputs()
            .filter(|(_, output)| output.owner == owner)
            .map(coin)
            .collect();
        if coins.is_empty() {
            return Ok(0);
        }
        Ok(self.receive(&PayReceipt { coins, memo: None })?.added)
    }

    /// Value of the wallet's coins by their state.
    #[must_use]
    pub fn balance(&self) -> Balance {
        let mut balance = Balance::default();
        for held in self.state.coins.values() {
            let value = u128::from(held.coin.output.value);
            match held.hold {
                _ if held.is_under_release() => balance.releasing += value,
                Hold::Free => {
                    balance.free += value;
                    balance.coins_free += 1;
                }
                Hold::Reserved(_) => balance.reserved += value,
                Hold::Frozen(_) => balance.frozen += value,
                Hold::Unasked => balance.unasked += value,
                Hold::Stuck(_) => balance.stuck += value,
            }
        }
        balance
    }

    /// Frozen value, by the payment that lost.
    #[must_use]
    pub fn frozen(&self) -> BTreeMap<TxId, u128> {
        self.value_by(|held| match held.hold {
            Hold::Frozen(tx) if !held.is_under_release() => Some(tx),
            _ => None,
        })
    }

    /// Value that authorities locked for transactions of this wallet's which it does not have, by
    /// those.
    #[must_use]
    pub fn stuck(&self) -> BTreeMap<TxId, u128> {
        self.value_by(|held| match held.hold {
            Hold::Stuck(tx) if !held.is_under_release() => Some(tx),
            _ => None,
        })
    }

    fn value_by(&self, holder: impl Fn(&Held) -> Option<TxId>) -> BTreeMap<TxId, u128> {
        let mut values = BTreeMap::new();
        for held in self.state.coins.values() {
            if let Some(tx) = holder(held) {
                *values.entry(tx).or_default() += u128::from(held.coin.output.value);
            }
        }
        values
    }

    fn build(&self, order: &Order) -> Result<Transaction, WalletError> {
        let owner = self.owner();
        match order.purpose {
            Purpose::Pay { payee, .. } if payee == owner => {
                Err(WalletError::Order("a wallet does not pay itself; it consolidates"))
            }
            Purpose::Pay { payee, .. } if payee == Output::BURNT => {
                Err(WalletError::Order("money is burnt by redeeming it"))
            }
            Purpose::Pay { payee, value } => self.spend(checked_payee(payee)?, value),
            Purpose::Redeem { value } => self.spend(Output::BURNT, value),
            Purpose::Issue { payee, value } => {
                let issuer = self.network.issuer();
                if issuer != owner {
                    return Err(WalletError::NotTheIssuer { issuer });
                }
                let outputs = vec![Output { owner: checked_payee(payee)?, value }];
                let serial = self.state.serial_next;
                Ok(Transaction::issue(&self.network, &self.secret, serial, outputs))
            }
            Purpose::Consolidate => self.consolidate(),
            Purpose::Refund => Err(WalletError::Order("a coin comes back by its release")),
        }
    }

    fn spend(&self, payee: IdentityKey, needed: u64) -> Result<Transaction, WalletError> {
        let coins = select::select(self.state.free(), needed).map_err(|short| match short {
            Insufficient::Value { free } => {
                let Balance { reserved, frozen, unasked, stuck, releasing, .. } = self.balance();
                WalletError::TooLittle { needed, free, reserved, frozen, unasked, stuck, releasing }
            }
            Insufficient::Count { most } => WalletError::TooManyCoins { needed, most },
        })?;
        let change = sum(&coins)? - needed;
        let mut outputs = vec![Output { owner: payee, value: needed }];
        if change > 0 {
            outputs.push(Output { owner: self.owner(), value: change });
        }
        let coins: Vec<Coin> = coins.into_iter().cloned().collect();
        Ok(Transaction::spend(&self.network, &self.secret, &coins, outputs))
    }

    fn consolidate(&self) -> Result<Transaction, WalletError> {
        let coins = select::smallest(self.state.free());
        if coins.len() < 2 {
            return Err(WalletError::NothingToConsolidate);
        }
        let outputs = vec![Output { owner: self.owner(), value: sum(&coins)? }];
        let coins: Vec<Coin> = coins.into_iter().cloned().collect();
        Ok(Transaction::spend(&self.network, &self.secret, &coins, outputs))
    }

    /// Makes a record durable, then takes it in.
    fn write(&mut self, record: Record) -> Result<(), WalletError> {
        let content = encode(&record);
        if content.len() > frames::CONTENT_BYTES_MAX {
            return Err(WalletError::Order("it takes more than the 16 MiB of a wallet's record"));
        }
        let is_left_out = mutants::active(Mutant::PayShowUnstored);
        if !(is_left_out && matches!(record, Record::Begun { .. } | Record::BegunBy { .. })) {
            self.file.append(&[content])?;
        }
        self.state.apply(record).expect("a record was made from this state");
        self.fold_if_due();
        Ok(())
    }
}

/// Rest of a sentence about money that cannot be spent, of wallets that were made again.
fn held_back(unasked: u128, stuck: u128, releasing: u128) -> String {
    let mut text = String::new();
    if unasked > 0 {
        text.push_str(&format!(", {unasked} are to be asked for (`quorate pay restore`)"));
    }
    if stuck > 0 {
        text.push_str(&format!(", {stuck} were taken by a transaction that is not known here"));
    }
    if releasing > 0 {
        text.push_str(&format!(", {releasing} are under release (`quorate pay release --all`)"));
    }
    text
}

fn checked_payee(payee: IdentityKey) -> Result<IdentityKey, WalletError> {
    payee.prepare().map(|_| payee).map_err(|_| WalletError::Payee(payee))
}

fn sum(coins: &[&Coin]) -> Result<u64, WalletError> {
    let mut values = coins.iter().map(|coin| coin.output.value);
    let sum = values.try_fold(0, u64::checked_add);
    sum.ok_or(WalletError::Invalid(Invalid::Overflow))
}

fn encode(record: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(record).expect("encoding into memory cannot fail")
}

fn read(contents: &[Vec<u8>]) -> Result<WalletState, String> {
    let mut state = WalletState::default();
    for (number, content) in contents.iter().enumerate() {
        let record = borsh::from_slice(content).map_err(|error| error.to_string());
        let applied = record.and_then(|record| state.apply(record).map_err(str::to_owned));
        applied.map_err(|problem| format!("record {number}: {problem}"))?;
    }
    Ok(state)
}
