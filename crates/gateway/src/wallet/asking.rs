//! Questions to all authorities of the epoch in force, and their answers.

use super::authorities::InForce;
use super::{PaymentService, Wallet, WalletError};
use quorate_crypto::Bitmap;
use quorate_payments::{CoinStatus, Network, OutputId, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

/// Time that other authorities get once a quorum answered: what only they know would be missed.
const OTHERS: Duration = Duration::from_secs(2);

/// Answers of authorities of one epoch.
pub(super) struct Answers<T> {
    network: Arc<Network>,
    said: Vec<(ReplicaId, T)>,
}

impl<T> Answers<T> {
    /// Number of authorities that answered.
    pub(super) fn count(&self) -> usize {
        self.said.len()
    }

    /// Answers to a wallet's question (★): none once it is in a later epoch, whose authorities have
    /// other numbers.
    pub(super) fn said_to(&self, wallet: &Wallet) -> &[(ReplicaId, T)] {
        let is_theirs = self.network.epoch() == wallet.network().epoch();
        if is_theirs { &self.said } else { &[] }
    }

    /// Checks that a quorum answered.
    pub(super) fn check_quorum(&self) -> Result<(), WalletError> {
        let committee = self.network.committee();
        let who = self.said.iter().map(|(from, _)| from.index());
        let who = Bitmap::from_indices(committee.size(), who);
        if committee.weight_of(&who) >= committee.quorum() {
            return Ok(());
        }
        let (answered, of) = (self.said.len(), committee.size());
        Err(WalletError::TooFewAuthorities { answered, of })
    }
}

impl PaymentService {
    /// Answers of all authorities: of all in time, or of a quorum and who else answers soon after.
    pub(super) async fn gather<T, F>(
        &self,
        mut deadline: Instant,
        ask: impl Fn(Arc<InForce>, ReplicaId) -> F,
    ) -> Answers<T>
    where
        T: Send + 'static,
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let in_force = self.in_force();
        let network = Arc::clone(&in_force.network);
        let mut asking = JoinSet::new();
        for to in network.committee().members() {
            let answer = ask(Arc::clone(&in_force), to);
            asking.spawn(async move { (to, answer.await) });
        }
        let mut answers = Answers { network, said: Vec::new() };
        let mut is_quorum = false;
        while let Ok(Some(answer)) = timeout_at(deadline, asking.join_next()).await {
            if let Ok((from, Some(answer))) = answer {
                answers.said.push((from, answer));
            }
            if !is_quorum && answers.check_quorum().is_ok() {
                is_quorum = true;
                deadline = deadline.min(Instant::now() + OTHERS);
            }
        }
        answers
    }

    /// Answers of authorities about coins.
    pub(super) async fn states(
        &self,
        inputs: Arc<[OutputId]>,
        deadline: Instant,
    ) -> Answers<Vec<CoinStatus>> {
        let ask = move |in_force: Arc<InForce>, to| {
            let inputs = Arc::clone(&inputs);
            async move {
                let request = WalletRequest::Coins(inputs.to_vec());
                let is_whole = |reply| match reply {
                    WalletReply::Coins(states) if states.len() == inputs.len() => Some(states),
                    _ => None,
                };
                in_force.ask_until(to, request, is_whole).await
            }
        };
        self.gather(deadline, ask).await
    }
}

impl InForce {
    /// Asks an authority until its reply is one; `None` where it refuses.
    pub(super) async fn ask_until<T>(
        &self,
        to: ReplicaId,
        request: WalletRequest,
        is_whole: impl Fn(WalletReply) -> Option<T>,
    ) -> Option<T> {
        loop {
            let reply = self.authorities.ask(to, request.clone()).await;
            if matches!(reply, WalletReply::Refused(_)) {
                return None;
            }
            match is_whole(reply) {
                Some(whole) => return Some(whole),
                None => sleep(OTHERS).await,
            }
        }
    }
}
