//! Locked coins of a wallet: what is asked for them, what was decided, and what follows.
//!
//! ```text
//! payment that lost, or ──▶ ReleaseAsked ──▶ freeze, ordered ──▶ standing, proven
//! unknown transaction       (durable)                                 │
//!        ┌────────────────────────────────────────────── ReleaseDecided (durable)
//!        ├─ refund ──────▶ a payment of its own: Begun, sent, certified ──▶ a new coin
//!        └─ transaction ─▶ the same bytes again, from the book or the authorities' records
//! ```
//!
//! Killed anywhere, the wallet goes on from its book; one made again from its key sees by its
//! authorities which coins are locked or under release, and asks the committee.

use super::held::{Held, Hold, Release};
use super::record::Record;
use super::regain::GenuineRecords;
use super::{Order, Payment, PaymentState, Purpose, Wallet, WalletError};
use quorate_ledger::payments::STEP_BYTES_MAX;
use quorate_node::unix_ms;
use quorate_payments::release::{Decision, Freeze, ReleaseStep, Standing};
use quorate_payments::{Coin, CoreKind, OutputId, Transaction, TxId};
use quorate_types::Weights;
use serde::Serialize;
use std::collections::BTreeSet;

/// Bytes of one step's coins, whose certificates may be large; the rest is its owner's signature.
const COIN_BYTES_OF_STEP_MAX: usize = STEP_BYTES_MAX - 256;

/// What asking for a release came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// The payment is final, and the committee was shown its certificate.
    Certified,
    /// How each coin stands; none where nothing is left to be decided.
    Coins(Vec<CoinRelease>),
}

/// A locked coin and its release: as the committee has it, or as it would end by what authorities
/// say now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoinRelease {
    /// Name of the coin.
    pub coin: OutputId,
    /// Value of the coin, in the smallest unit.
    pub value: u64,
    /// Transaction of this key that the wallet keeps the coin for, where it knows one.
    pub holder: Option<TxId>,
    /// Locks of the authorities that said, and what was, or would be, decided.
    pub standing: Standing,
}

/// A locked coin and its release in plain fields, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoinReleaseView {
    /// Name of the coin.
    pub coin: String,
    /// Value of the coin, in the smallest unit.
    pub value: u64,
    /// Transaction that the wallet keeps it for, in hexadecimal.
    pub holder: Option<String>,
    /// `refund`, `spend`, `locked-for-ever` or `undecided`.
    pub end: &'static str,
    /// Transaction that it goes to, in hexadecimal, where it is not refunded.
    pub spend: Option<String>,
    /// Words of the authorities, in their order.
    pub reports: Vec<ReleaseReportView>,
}

/// Word of an authority about a coin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReleaseReportView {
    /// Index of the authority.
    pub authority: u16,
    /// Transaction that it is locked for, in hexadecimal.
    pub transaction: Option<String>,
}

impl CoinRelease {
    /// The same in plain fields, for authorities of these weights.
    #[must_use]
    pub fn view(&self, weights: &Weights) -> CoinReleaseView {
        let (end, spend) = match self.standing.decision {
            Some(Decision::Refund) => ("refund", None),
            Some(Decision::Spend(tx)) => ("spend", Some(tx.to_string())),
            None if self.standing.is_stuck(weights) => ("locked-for-ever", None),
            None => ("undecided", None),
        };
        let report = |(from, tx): (&quorate_types::ReplicaId, &Option<TxId>)| ReleaseReportView {
            authority: from.0,
            transaction: tx.map(|tx| tx.to_string()),
        };
        CoinReleaseView {
            coin: self.coin.to_string(),
            value: self.value,
            holder: self.holder.map(|tx| tx.to_string()),
            end,
            spend,
            reports: self.standing.reports.iter().map(report).collect(),
        }
    }
}

impl Wallet {
    /// Locked coins whose release did not end: of payments that lost and of transactions that the
    /// wallet does not have, and those under release; of one transaction alone, where it is named.
    pub(super) fn locked(&self, of: Option<TxId>) -> Vec<CoinRelease> {
        let is_wanted = |held: &&Held| {
            let is_locked = matches!(held.hold, Hold::Frozen(_) | Hold::Stuck(_))
                || held.release == Some(Release::Asked);
            is_locked
                && !matches!(held.release, Some(Release::Decided(_)))
                && (of.is_none() || held.hold.holder() == of)
        };
        self.state.coins.values().filter(is_wanted).map(as_release).collect()
    }

    /// Coins of payments that are not finished: somebody may have had them frozen.
    pub(super) fn reserved(&self, of: Option<TxId>) -> Vec<CoinRelease> {
        let is_wanted = |held: &&Held| {
            let Hold::Reserved(tx) = held.hold else { return false };
            held.release.is_none() && of.is_none_or(|of| of == tx)
        };
        self.state.coins.values().filter(is_wanted).map(as_release).collect()
    }

    /// Coins under release.
    pub(super) fn under_release(&self) -> Vec<CoinRelease> {
        let is_asked = |held: &&Held| held.release == Some(Release::Asked);
        self.state.coins.values().filter(is_asked).map(as_release).collect()
    }

    /// Tells whether a release is asked for, or has ended and something is to be done for it.
    pub(super) fn is_releasing(&self) -> bool {
        let is_unknown = |held: &Held| self.missing_of(held).is_some();
        self.state.coins.values().any(|held| held.is_under_release() || is_unknown(held))
    }

    /// Payments that are not finished and that something was decided for.
    pub(super) fn unfinished_due(&self) -> Vec<TxId> {
        let is_due =
            |payment: &&Payment| payment.state == PaymentState::Begun && self.state.is_due(payment);
        self.state.payments().filter(is_due).map(|payment| payment.id).collect()
    }

    /// Parts coins whose release is asked for, or is to be, from those that stay locked for ever by
    /// what a forecast says.
    pub(super) fn part_hopeless(
        &self,
        forecast: Vec<CoinRelease>,
    ) -> (Vec<CoinRelease>, Vec<CoinRelease>) {
        let weights = self.network.committee().weights();
        let is_asked = |id: &OutputId| {
            self.state.coins.get(id).is_some_and(|held| held.release == Some(Release::Asked))
        };
        forecast.into_iter().partition(|one| is_asked(&one.coin) || !one.standing.is_stuck(weights))
    }

    /// Tells whether a release is under way, or what was decided is not done.
    #[must_use]
    pub fn is_release_under_way(&self) -> bool {
        self.is_releasing() || !self.unfinished_due().is_empty()
    }

    /// Stores that a release of coins is asked for, or that somebody has begun one.
    pub(super) fn note_release(&mut self, coins: Vec<OutputId>) -> Result<(), WalletError> {
        let is_new =
            |id: &OutputId| self.state.coins.get(id).is_some_and(|held| held.release.is_none());
        let coins: Vec<OutputId> = coins.into_iter().filter(is_new).collect();
        if coins.is_empty() {
            return Ok(());
        }
        self.write(Record::ReleaseAsked { coins, at_ms: unix_ms() })
    }

    /// Steps that ask for the release of coins: as many at once as a step has room for.
    pub(super) fn freezes(&self, coins: &[OutputId]) -> Vec<ReleaseStep> {
        let mut steps: Vec<Vec<Coin>> = Vec::new();
        let mut left = 0;
        for held in coins.iter().filter_map(|id| self.state.coins.get(id)) {
            let bytes = borsh::to_vec(&held.coin).expect("encoding into memory cannot fail").len();
            match steps.last_mut() {
                Some(last) if bytes <= left && last.len() < Freeze::COINS_MAX => {
                    last.push(held.coin.clone());
                    left -= bytes;
                }
                _ => {
                    steps.push(vec![held.coin.clone()]);
                    left = COIN_BYTES_OF_STEP_MAX.saturating_sub(bytes);
                }
            }
        }
        let freeze = |coins| Freeze::by_owner(&self.network, &self.secret, coins);
        steps.into_iter().map(|coins| ReleaseStep::Freeze(freeze(coins))).collect()
    }

    /// Takes in how coins stand, as the committee's state proves it: releases that somebody began,
    /// and what was decided.
    pub(super) fn take_standings(&mut self, releases: &[CoinRelease]) -> Result<(), WalletError> {
        let owner = Some(self.owner());
        let own = releases.iter().filter(|release| release.standing.owner == owner);
        let own: Vec<&CoinRelease> = own.collect();
        self.note_release(own.iter().map(|release| release.coin).collect())?;
        let is_open = |id: &OutputId| {
            let release = self.state.coins.get(id).map(|held| held.release);
            release == Some(Some(Release::Asked))
        };
        let decided = own.iter().filter_map(|one| Some((one.coin, one.standing.decision?)));
        let decided: Vec<_> = decided.filter(|(coin, _)| is_open(coin)).collect();
        if decided.is_empty() {
            return Ok(());
        }
        self.write(Record::ReleaseDecided { decided, at_ms: unix_ms() })
    }

    /// Begins the refunds that were decided (★: no other ones), each as a payment.
    pub(super) fn begin_refunds(&mut self) -> Result<(), WalletError> {
        let decided = self.state.coins.values().filter(|held| held.is_refunded());
        let refund = |held: &Held| Transaction::refund(&self.network, &self.secret, &held.coin);
        let refunds: Vec<Transaction> = decided.map(refund).collect();
        for transaction in refunds {
            if self.state.payment(transaction.id(self.network.id())).is_none() {
                let order = Order { purpose: Purpose::Refund, memo: None };
                let at_ms = unix_ms();
                self.write(Record::Begun { order, key: None, transaction, at_ms })?;
            }
        }
        Ok(())
    }

    /// Transactions that coins were decided for and that this wallet does not have.
    pub(super) fn missing(&self) -> BTreeSet<TxId> {
        self.state.coins.values().filter_map(|held| self.missing_of(held)).collect()
    }

    fn missing_of(&self, held: &Held) -> Option<TxId> {
        let Some(Release::Decided(Decision::Spend(tx))) = held.release else { return None };
        self.state.payment(tx).is_none().then_some(tx)
    }

    /// Takes in those of the missing transactions that are among the authorities' records.
    pub(super) fn take_missing(&mut self, mut records: GenuineRecords) -> Result<(), WalletError> {
        records.leave_sent(&self.missing());
        self.take_records(records).map(drop)
    }

    /// Step that shows the committee that a payment is final, with the coins that it took; `None`
    /// where it is not, and of a refund, which the committee decided.
    pub(super) fn certified_step(&self, tx: TxId) -> Option<(Vec<OutputId>, ReleaseStep)> {
        let payment = self.state.payment(tx)?;
        let PaymentState::Certified { certificate, .. } = &payment.state else { return None };
        let core = payment.transaction.core(self.network.id());
        let coins = (core.kind != CoreKind::Refund).then(|| core.locks.clone())?;
        Some((coins, ReleaseStep::Certified { core, certificate: (**certificate).clone() }))
    }
}

fn as_release(held: &Held) -> CoinRelease {
    CoinRelease {
        coin: held.coin.id,
        value: held.coin.output.value,
        holder: held.hold.holder(),
        standing: Standing::default(),
    }
}
