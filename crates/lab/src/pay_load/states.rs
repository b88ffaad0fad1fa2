//! The question to all authorities whether coins are free to be spent.

use super::PayLoadError;
use super::audit::Finding;
use super::payers::asker;
use quorate_crypto::IdentitySecret;
use quorate_node::payments::PayClient;
use quorate_payments::{
    CoinStatus, Network, Output, OutputId, REQUEST_ITEMS_MAX, WalletReply, WalletRequest,
};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Coins that are asked about together, and what authorities said of them so far.
struct Question {
    coins: Vec<(OutputId, Output)>,
    said: Vec<(ReplicaId, Vec<CoinStatus>)>,
}

/// Asks all authorities about coins until a quorum said of each that it is free, for `within` at
/// most. Returns what is not so.
pub(super) async fn ask(
    network: &Arc<Network>,
    key: &IdentitySecret,
    coins: BTreeMap<OutputId, Output>,
    within: Duration,
) -> Result<Vec<Finding>, PayLoadError> {
    let deadline = Instant::now() + within;
    let mut questions = Vec::new();
    let mut asking = JoinSet::new();
    for (shard, coins) in by_shard(network, coins) {
        let client = PayClient::start(Arc::clone(network), &asker(key, network, shard))?;
        for coins in coins.chunks(REQUEST_ITEMS_MAX) {
            let number = questions.len();
            questions.push(Question { coins: coins.to_vec(), said: Vec::new() });
            for to in network.committee().members() {
                let inputs = coins.iter().map(|(id, _)| *id).collect();
                let client = client.clone();
                asking.spawn(async move {
                    (number, to, client.ask(to, WalletRequest::Coins(inputs)).await)
                });
            }
        }
    }
    let mut findings: Vec<Vec<Finding>> =
        questions.iter().map(|one| one.verdict(network)).collect();
    while findings.iter().any(|some| !some.is_empty())
        && let Ok(Some(answered)) = timeout_at(deadline, asking.join_next()).await
    {
        let (number, from, reply) = answered.expect("asking does not panic");
        if let WalletReply::Coins(states) = reply
            && states.len() == questions[number].coins.len()
        {
            questions[number].said.push((from, states));
            findings[number] = questions[number].verdict(network);
        }
    }
    Ok(findings.into_iter().flatten().collect())
}

fn by_shard(
    network: &Network,
    coins: BTreeMap<OutputId, Output>,
) -> BTreeMap<u16, Vec<(OutputId, Output)>> {
    let mut by_shard: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for coin in coins {
        by_shard.entry(network.shard_of(&coin.1.owner)).or_default().push(coin);
    }
    by_shard
}

impl Question {
    /// What is not known to be free by what was said.
    fn verdict(&self, network: &Network) -> Vec<Finding> {
        let one = |(at, (coin, output)): (usize, &(OutputId, Output))| {
            let said: Vec<_> = self.said.iter().map(|(from, all)| (*from, &all[at])).collect();
            match CoinStatus::agreed(network, output.owner, *coin, &said) {
                Some(CoinStatus::Free) => None,
                Some(_) => Some(Finding::Taken(*coin)),
                None => Some(Finding::Unanswered(*coin)),
            }
        };
        self.coins.iter().enumerate().filter_map(one).collect()
    }
}
