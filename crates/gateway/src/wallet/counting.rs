//! Coins of epochs that have ended: taken in once later authorities say that they count.

use super::authorities::InForce;
use super::{PaymentService, Received, Wallet, WalletError};
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::{
    Coin, PayReceipt, REQUEST_ITEMS_MAX, TxId, WalletReply, WalletRequest, is_counted,
};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Wallet {
    /// Checks that coins of ended epochs count (★): a quorum of later authorities said so. Whoever
    /// has the keys of long ago can certify what he likes.
    pub(super) fn check_counted(&self, coins: &[Coin]) -> Result<(), WalletError> {
        let uncounted = coins.iter().find(|coin| self.is_uncounted(coin));
        let Some((coin, epoch)) = uncounted.and_then(|coin| Some((coin, coin.epoch()?))) else {
            return Ok(());
        };
        Err(WalletError::FormerEpoch { tx: coin.id.tx, epoch, newest: self.network.epoch() })
    }

    pub(super) fn is_uncounted(&self, coin: &Coin) -> bool {
        coin.is_former(&self.network)
            && !self.counted.contains(&coin.id.tx)
            && !mutants::active(Mutant::PayReceiveFormer)
    }

    /// Takes in what authorities said of these transactions of ended epochs.
    pub(super) fn take_counting(&mut self, names: &[TxId], said: &[(ReplicaId, Vec<bool>)]) {
        for (at, tx) in names.iter().enumerate() {
            let said = said.iter().filter_map(|(from, counts)| Some((*from, *counts.get(at)?)));
            if is_counted(&self.network, said) {
                self.counted.insert(*tx);
            }
        }
    }
}

impl PaymentService {
    /// Takes in a receipt, as [`Wallet::receive`] does. Of one of an ended epoch the authorities
    /// are asked first.
    ///
    /// # Errors
    /// As [`Wallet::receive`]; [`WalletError::TooFewAuthorities`] where they do not say.
    pub async fn receive(
        self: &Arc<Self>,
        receipt: PayReceipt,
        within: Duration,
    ) -> Result<Received, WalletError> {
        self.receive_as(move |wallet| wallet.receive(&receipt), within).await
    }

    /// As [`PaymentService::receive`], by whatever way of taking a receipt in.
    pub(super) async fn receive_as(
        self: &Arc<Self>,
        take: impl Fn(&mut Wallet) -> Result<Received, WalletError> + Send + Sync + 'static,
        within: Duration,
    ) -> Result<Received, WalletError> {
        let deadline = Instant::now() + within;
        let take = Arc::new(take);
        let first = Arc::clone(&take);
        match self.with_blocking(move |wallet| first(wallet)).await {
            Err(WalletError::FormerEpoch { tx, .. }) => {
                self.catch_up(within / 2).await?;
                self.ask_counting(&[tx], deadline).await?;
                self.with_blocking(move |wallet| take(wallet)).await
            }
            taken => taken,
        }
    }

    /// Asks whether certificates of ended epochs count for these transactions, and has the wallet
    /// note those that a quorum says it of (★).
    ///
    /// # Errors
    /// [`WalletError::TooFewAuthorities`].
    pub(super) async fn ask_counting(
        self: &Arc<Self>,
        former: &[TxId],
        deadline: Instant,
    ) -> Result<(), WalletError> {
        for names in former.chunks(REQUEST_ITEMS_MAX) {
            let names: Arc<[TxId]> = names.into();
            let asked = Arc::clone(&names);
            let ask = move |in_force: Arc<InForce>, to| {
                let names = Arc::clone(&asked);
                async move {
                    let request = WalletRequest::Counting(names.to_vec());
                    let is_whole = |reply| match reply {
                        WalletReply::Counting(counts) if counts.len() == names.len() => {
                            Some(counts)
                        }
                        _ => None,
                    };
                    in_force.ask_until(to, request, is_whole).await
                }
            };
            let answers = self.gather(deadline, ask).await;
            answers.check_quorum()?;
            self.with_blocking(move |wallet| wallet.take_counting(&names, answers.said_to(wallet)))
                .await;
        }
        Ok(())
    }
}
