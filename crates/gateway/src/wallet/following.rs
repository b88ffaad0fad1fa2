//! Following the network to its next epochs while a wallet is served: payments under way go to the
//! new authorities, the same bytes.

use super::authorities::{Following, InForce};
use super::{PaymentService, WalletError};
use quorate_node::payments::{FollowError, Followed, look_for_changes};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Time between two looks while a payment is under way: its authorities may be others by now.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Time between two looks otherwise.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Longest wait for a quorum in one look.
const LOOK_WITHIN: Duration = Duration::from_secs(3);

impl PaymentService {
    /// Reason that the network is not followed to a later epoch, if there is one.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.following()?.trouble.lock().clone()
    }

    /// Looks once for later epochs: in the files beside the network file, and at the authorities.
    async fn look(&self, within: Duration) -> Result<Followed, FollowError> {
        let Some(following) = self.following() else { return Ok(Followed::InForce) };
        let Ok(_alone) = timeout(within, following.looking.lock()).await else {
            return Ok(Followed::Unanswered);
        };
        following.follower.lock().refresh()?;
        self.enter_newest(following)?;
        let in_force = self.in_force();
        let ask = |to, request| {
            let in_force = Arc::clone(&in_force);
            async move { in_force.authorities.ask(to, request).await }
        };
        let seen = look_for_changes(&following.follower, ask, within).await?;
        self.enter_newest(following)?;
        Ok(seen)
    }

    fn enter_newest(&self, following: &Following) -> Result<(), FollowError> {
        let newest = Arc::clone(following.follower.lock().network());
        if newest.epoch() > self.network().epoch() {
            let authorities = (following.connect)(Arc::clone(&newest))?;
            self.enter(InForce { network: newest, authorities });
        }
        Ok(())
    }

    /// Goes to the epoch in force, as far as its authorities and those before it say in time. Of a
    /// service that follows nothing, nothing.
    ///
    /// # Errors
    /// [`WalletError::NotFollowed`].
    pub async fn catch_up(&self, within: Duration) -> Result<(), WalletError> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.look(left).await {
                Ok(Followed::Later) => {}
                Ok(Followed::InForce | Followed::Unanswered) => return Ok(()),
                Err(error) => return Err(WalletError::NotFollowed(Box::new(error))),
            }
        }
    }

    /// Follows the network as long as there is the service: often while payments are under way.
    pub(super) async fn follow_for_ever(service: Weak<Self>) {
        let mut looked = None;
        while let Some(service) = service.upgrade() {
            let is_due = looked.is_none_or(|at: Instant| at.elapsed() >= LOOK_EVERY);
            if is_due || service.is_paying() {
                let seen = service.look(LOOK_WITHIN).await;
                looked = Some(Instant::now());
                if matches!(seen, Ok(Followed::Later)) {
                    continue;
                }
                service.note_trouble(seen.err());
            }
            drop(service);
            sleep(LOOK_AGAIN).await;
        }
    }

    fn note_trouble(&self, error: Option<FollowError>) {
        let Some(following) = self.following() else { return };
        let trouble = error.map(|error| error.to_string());
        let mut known = following.trouble.lock();
        if let Some(error) = trouble.as_ref().filter(|_| *known != trouble) {
            tracing::warn!(%error, "the network is not followed to its next epoch");
        }
        *known = trouble;
    }
}
