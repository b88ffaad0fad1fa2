//! Having locked coins released: a committee orders what a wallet asks for, and authorities vote
//! for what is decided.

use super::ordering::{OrderingError, PendingAnswer, ReleaseOrdering};
use super::release::{CoinRelease, Released};
use super::{Payment, PaymentService, PaymentState, Wallet, WalletError};
use quorate_payments::release::{ReleaseStep, Standing};
use quorate_payments::{OutputId, REQUEST_ITEMS_MAX, TxId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Time between two looks at what the committee decided.
const LOOK_EVERY: Duration = Duration::from_millis(300);

impl PaymentService {
    /// Locked coins, of one transaction alone where it is named, and how their release would end
    /// by what the authorities answer now. Nothing is changed.
    ///
    /// # Errors
    /// As [`PaymentService::recover`].
    pub async fn forecast(
        self: &Arc<Self>,
        of: Option<TxId>,
        within: Duration,
    ) -> Result<Vec<CoinRelease>, WalletError> {
        let deadline = Instant::now() + within;
        self.recover(within).await?;
        let mut locked = self.with_blocking(move |wallet| wallet.locked(of)).await;
        for coins in locked.chunks_mut(REQUEST_ITEMS_MAX) {
            let inputs = coins.iter().map(|release| release.coin).collect();
            let answers = self.states(inputs, deadline).await;
            self.with(|wallet| wallet.forecast(coins, answers.said_to(wallet)));
        }
        Ok(locked)
    }

    /// Asks for the release of locked coins, of one transaction alone where it is named, and waits
    /// for what is decided and for what follows, as long as `within`. Asked again, it goes on.
    /// `tell` hears the [forecast](PaymentService::forecast) before. Returns how each coin stands
    /// then, as the committee has it. For a coin of which the answers say that it stays locked for
    /// ever nothing is asked: it would take up the owner's share of releases for ever. Of a payment
    /// that is certified, the committee is shown the certificate, if somebody has its coins frozen.
    ///
    /// # Errors
    /// [`WalletError::NoCommittee`], [`WalletError::NothingLocked`], and
    /// [`WalletError::Release`] where the committee refuses or does not answer.
    pub async fn release(
        self: &Arc<Self>,
        of: Option<TxId>,
        within: Duration,
        tell: impl FnOnce(&[CoinRelease]),
    ) -> Result<Released, WalletError> {
        let deadline = Instant::now() + within;
        let forecast = self.forecast(of, within).await?;
        tell(&forecast);
        if self.show_certificate(of, deadline).await? {
            return Ok(Released::Certified);
        }
        self.release_as(of, forecast, deadline).await.map(Released::Coins)
    }

    /// The rest of a release, with a forecast.
    async fn release_as(
        self: &Arc<Self>,
        of: Option<TxId>,
        forecast: Vec<CoinRelease>,
        deadline: Instant,
    ) -> Result<Vec<CoinRelease>, WalletError> {
        self.ordering().ok_or(WalletError::NoCommittee)?;
        let is_releasing = self.with_blocking(|wallet| wallet.is_releasing()).await;
        let others = self.frozen_by_others(of, deadline).await?;
        if let (true, true, false, Some(tx)) =
            (forecast.is_empty(), others.is_empty(), is_releasing, of)
        {
            return Err(WalletError::NothingLocked(tx));
        }
        let ask = move |wallet: &mut Wallet| {
            let (mut locked, hopeless) = wallet.part_hopeless(forecast);
            wallet.note_release(locked.iter().map(|release| release.coin).collect())?;
            locked.extend(others);
            Ok::<_, WalletError>((locked, hopeless))
        };
        let (locked, hopeless) = self.with_blocking(ask).await?;
        let mut released = self.see_through(locked, deadline).await?;
        released.extend(hopeless);
        Ok(released)
    }

    /// Goes on with every release that was asked for, or that somebody else began of coins of
    /// payments that are not finished; asks for none. Without a committee, nothing.
    ///
    /// # Errors
    /// As [`PaymentService::release`].
    pub async fn follow_releases(self: &Arc<Self>, within: Duration) -> Result<(), WalletError> {
        if self.ordering().is_none() {
            return Ok(());
        }
        let deadline = Instant::now() + within;
        let mut begun = self.with_blocking(|wallet| wallet.under_release()).await;
        begun.extend(self.frozen_by_others(None, deadline).await?);
        if begun.is_empty() && !self.with_blocking(|wallet| wallet.is_releasing()).await {
            return Ok(());
        }
        self.see_through(begun, deadline).await.map(drop)
    }

    /// Coins of payments that are not finished and that somebody has had frozen.
    async fn frozen_by_others(
        self: &Arc<Self>,
        of: Option<TxId>,
        deadline: Instant,
    ) -> Result<Vec<CoinRelease>, WalletError> {
        let reserved = self.with_blocking(move |wallet| wallet.reserved(of)).await;
        let mut coins = self.read(reserved, deadline).await?;
        coins.retain(|release| release.standing.is_frozen());
        Ok(coins)
    }

    /// Waits for decisions, and carries out what was decided, of other coins too.
    async fn see_through(
        self: &Arc<Self>,
        coins: Vec<CoinRelease>,
        deadline: Instant,
    ) -> Result<Vec<CoinRelease>, WalletError> {
        let decided = self.wait_for_decisions(coins, deadline).await;
        self.take_back(deadline).await?;
        decided
    }

    /// Follows releases, again and again.
    pub async fn follow_releases_for_ever(self: Arc<Self>, within: Duration) {
        loop {
            if let Err(error) = self.follow_releases(within).await {
                tracing::warn!(%error, "a release of coins is not decided yet");
            }
            sleep(within).await;
        }
    }

    /// As [`PaymentService::settle`]; the coins of a payment that lost are released where nothing
    /// else can free them, if a committee is known.
    ///
    /// # Errors
    /// As [`PaymentService::settle`].
    pub async fn finish(
        self: &Arc<Self>,
        tx: TxId,
        timeout: Duration,
    ) -> Result<Payment, WalletError> {
        let payment = self.settle(tx, timeout).await?;
        self.release_lost(payment, timeout).await
    }

    async fn release_lost(
        self: &Arc<Self>,
        payment: Payment,
        within: Duration,
    ) -> Result<Payment, WalletError> {
        let lost = payment.id;
        let is_lost = matches!(payment.state, PaymentState::Conflicting { .. });
        if !is_lost || self.ordering().is_none() {
            return Ok(payment);
        }
        let deadline = Instant::now() + within;
        let forecast = self.forecast(Some(lost), within).await?;
        if self.with(|wallet| wallet.is_release_due(lost, &forecast)) {
            let released = self.release_as(Some(lost), forecast, deadline).await;
            if let Err(error) = released {
                tracing::warn!(%error, payment = %lost, "a release is not decided yet");
            }
        }
        self.with_blocking(move |wallet| wallet.payment(lost)).await
    }

    /// Ends the release that somebody began of a payment's coins, by its certificate. `false`
    /// where there is none, or none of them is open.
    async fn show_certificate(
        self: &Arc<Self>,
        of: Option<TxId>,
        deadline: Instant,
    ) -> Result<bool, WalletError> {
        let Some(tx) = of else { return Ok(false) };
        let certified = self.with_blocking(move |wallet| wallet.certified_step(tx)).await;
        let Some((coins, step)) = certified else { return Ok(false) };
        for coin in coins {
            let standing = self.standing(coin, deadline).await?;
            if standing.is_frozen() && standing.decision.is_none() {
                return self.order(step, deadline).await.map(|()| true);
            }
        }
        Ok(false)
    }

    async fn order(&self, step: ReleaseStep, deadline: Instant) -> Result<(), WalletError> {
        self.ask_committee(deadline, |ordering| ordering.submit(step.clone())).await
    }

    /// Asks the committee again and again, until it answers or the time is over.
    async fn ask_committee<'a, T>(
        &'a self,
        deadline: Instant,
        ask: impl Fn(&'a dyn ReleaseOrdering) -> PendingAnswer<'a, T>,
    ) -> Result<T, WalletError> {
        let ordering = self.ordering().ok_or(WalletError::NoCommittee)?;
        let mut last = OrderingError::Unanswered("too few members, in time".to_owned());
        loop {
            match timeout_at(deadline, ask(ordering)).await {
                Ok(Err(unanswered @ OrderingError::Unanswered(_))) => last = unanswered,
                Ok(answer) => return Ok(answer?),
                Err(_) => return Err(last.into()),
            }
            if timeout_at(deadline, sleep(LOOK_EVERY)).await.is_err() {
                return Err(last.into());
            }
        }
    }

    /// Has coins frozen that are not, and waits until all are decided or stay locked for ever.
    async fn wait_for_decisions(
        self: &Arc<Self>,
        mut coins: Vec<CoinRelease>,
        deadline: Instant,
    ) -> Result<Vec<CoinRelease>, WalletError> {
        if coins.is_empty() {
            return Ok(coins);
        }
        let network = self.network();
        let weights = network.committee().weights();
        // Coins that the committee refused to freeze, which keep no other waiting.
        let mut refused: BTreeMap<OutputId, OrderingError> = BTreeMap::new();
        loop {
            coins = self.read(coins, deadline).await?;
            let known = coins.clone();
            self.with_blocking(move |wallet| wallet.take_standings(&known)).await?;
            let is_over = |one: &CoinRelease| {
                one.standing.decision.is_some()
                    || one.standing.is_stuck(weights)
                    || refused.contains_key(&one.coin)
            };
            if coins.iter().all(is_over) || deadline <= Instant::now() {
                return refused.into_values().next().map_or(Ok(coins), |one| Err(one.into()));
            }
            let free = coins.iter().filter(|one| !one.standing.is_frozen() && !is_over(one));
            let free: Vec<OutputId> = free.map(|one| one.coin).collect();
            refused.extend(self.freeze(free, deadline).await?);
            sleep(LOOK_EVERY).await;
        }
    }

    /// Has coins frozen. Returns those that the committee refuses, each alone.
    async fn freeze(
        &self,
        coins: Vec<OutputId>,
        deadline: Instant,
    ) -> Result<Vec<(OutputId, OrderingError)>, WalletError> {
        let mut steps = self.with(|wallet| wallet.freezes(&coins));
        let mut refused = Vec::new();
        while let Some(step) = steps.pop() {
            let coins = frozen_by(&step);
            match (self.order(step, deadline).await, &coins[..]) {
                (Err(WalletError::Release(against @ OrderingError::Refused(_))), [coin]) => {
                    refused.push((*coin, against));
                }
                (Err(WalletError::Release(OrderingError::Refused(_))), several) => {
                    let alone = |coin| self.with(|wallet| wallet.freezes(&[coin]));
                    steps.extend(several.iter().copied().flat_map(alone));
                }
                (ordered, _) => ordered?,
            }
        }
        Ok(refused)
    }

    /// The same coins, as the committee has them.
    async fn read(
        &self,
        mut coins: Vec<CoinRelease>,
        deadline: Instant,
    ) -> Result<Vec<CoinRelease>, WalletError> {
        for release in &mut coins {
            release.standing = self.standing(release.coin, deadline).await?;
        }
        Ok(coins)
    }

    async fn standing(&self, coin: OutputId, deadline: Instant) -> Result<Standing, WalletError> {
        self.ask_committee(deadline, |ordering| ordering.standing(coin)).await
    }

    /// Carries out what was decided: refunds are made and sent, and transactions sent again that
    /// the book or the authorities have. Then the new coins are asked for.
    async fn take_back(self: &Arc<Self>, deadline: Instant) -> Result<(), WalletError> {
        self.with_blocking(Wallet::begin_refunds).await?;
        if !self.with_blocking(|wallet| wallet.missing()).await.is_empty() {
            let (_, records) = self.gather_records(deadline).await;
            self.with_blocking(move |wallet| wallet.take_missing(records)).await?;
        }
        let due = self.with_blocking(|wallet| wallet.unfinished_due()).await;
        for payment in due {
            let left = deadline.saturating_duration_since(Instant::now());
            self.settle(payment, left).await?;
        }
        self.ask_states(deadline).await
    }
}

/// Coins that a step freezes.
fn frozen_by(step: &ReleaseStep) -> Vec<OutputId> {
    match step {
        ReleaseStep::Freeze(freeze) => freeze.coins.iter().map(|coin| coin.id).collect(),
        ReleaseStep::Report(_) | ReleaseStep::Certified { .. } => Vec::new(),
    }
}
