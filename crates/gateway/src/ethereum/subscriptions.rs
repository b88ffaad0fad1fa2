//! Subscriptions over open connections: new blocks, logs, and transactions that come.

use super::access::{Asker, Sender};
use super::chain::Chain;
use super::context::Context;
use super::convert;
use super::error::{Failure, internal, invalid, passes};
use alloy_primitives::B256;
use alloy_rpc_types_eth::Filter;
use alloy_rpc_types_eth::pubsub::SubscriptionKind;
use jsonrpsee::core::{RegisterMethodError, SubscriptionResult};
use jsonrpsee::server::{
    IdProvider, PendingSubscriptionSink, SubscriptionMessage, SubscriptionSink,
};
use jsonrpsee::types::{Params, SubscriptionId};
use jsonrpsee::{Extensions, RpcModule};
use quorate_ledger::evm::{Arrivals, BlockAt, LogFilter, UnderWayQuery};
use quorate_node::testnet::system_random;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Numbers of subscriptions that nobody guesses, in the form that Ethereum's tools expect.
#[derive(Debug)]
pub(super) struct Numbers;

impl IdProvider for Numbers {
    fn next_id(&self) -> SubscriptionId<'static> {
        let mut bytes = [0; 16];
        system_random(&mut bytes);
        SubscriptionId::Str(format!("0x{}", hex::encode(bytes)).into())
    }
}

/// Topic of a subscription.
#[derive(Clone, Debug)]
enum Topic {
    Blocks(OfBlock),
    /// Transactions that come, each whole or by its hash.
    Pending {
        whole: bool,
    },
}

/// What is told of each block.
#[derive(Clone, Debug)]
enum OfBlock {
    Head,
    Logs(LogFilter),
}

/// Time after which it is looked whether transactions came.
const ARRIVALS_EVERY: Duration = Duration::from_millis(100);

pub(super) fn register(module: &mut RpcModule<Context>) -> Result<(), RegisterMethodError> {
    module
        .register_subscription("eth_subscribe", "eth_subscription", "eth_unsubscribe", subscribe)
        .map(drop)
}

async fn subscribe(
    params: Params<'static>,
    pending: PendingSubscriptionSink,
    context: Arc<Context>,
    extensions: Extensions,
) -> SubscriptionResult {
    let topic = match topic(&params, &context.chain) {
        Ok(topic) => topic,
        Err(error) => {
            pending.reject(error).await;
            return Ok(());
        }
    };
    let topic = match topic {
        Topic::Blocks(topic) => topic,
        Topic::Pending { whole } => {
            return announce(&context, whole, pending, &extensions).await;
        }
    };
    let chain = context.chain.clone();
    drop(context);
    let Some(sender) = extensions.get::<Sender>() else { return Ok(()) };
    // Read before the answer: a transaction that is sent after it is in a later block.
    let from = chain.newest();
    let sink = pending.accept().await?;
    notify(&chain, &topic, (from, sender), &sink).await;
    Ok(())
}

/// Sends every transaction that comes, until the subscriber is gone or its token is. One that reads
/// too slowly misses some.
async fn announce(
    context: &Arc<Context>,
    whole: bool,
    pending: PendingSubscriptionSink,
    extensions: &Extensions,
) -> SubscriptionResult {
    // In memory, and quick: it takes no thread of those that read.
    let arrivals = |from| context.chain.under_way::<Arrivals>(UnderWayQuery::Since(from));
    let mut next = match arrivals(None) {
        Ok(arrivals) => arrivals.next,
        Err(failure) => {
            pending.reject(failure).await;
            return Ok(());
        }
    };
    let Some(sender) = extensions.get::<Sender>() else { return Ok(()) };
    let (sink, asker) = (pending.accept().await?, Asker::of(extensions));
    while sender.is_let_in() {
        tokio::select! {
            () = sink.closed() => break,
            () = tokio::time::sleep(ARRIVALS_EVERY) => {}
        }
        let hashes = match arrivals(Some(next)) {
            Ok(arrivals) => {
                next = arrivals.next;
                arrivals.hashes
            }
            Err(failure) if passes(&failure) => continue,
            Err(failure) => return Err(failure.message().into()),
        };
        let _turn = sender.turn().await;
        let messages = match (whole, hashes.is_empty()) {
            (true, false) => looked_up(context, asker, hashes).await,
            _ => hashes.iter().map(message).collect(),
        };
        for message in messages.map_err(|failure| failure.message().to_owned())? {
            sink.send(message).await?;
        }
    }
    Ok(())
}

/// Transactions as they are sent, looked up in the caller's turn.
async fn looked_up(
    context: &Arc<Context>,
    asker: Asker,
    hashes: Vec<B256>,
) -> Result<Vec<SubscriptionMessage>, Failure> {
    let place = context.computing.take(asker).await?;
    let context = Arc::clone(context);
    let look_up = move || {
        let _place = place;
        let found = hashes.into_iter().filter_map(|hash| context.transaction(hash).transpose());
        found.map(|transaction| message(&transaction?)).collect()
    };
    spawn_blocking(look_up).await.map_err(internal)?
}

fn topic(params: &Params<'_>, chain: &Chain) -> Result<Topic, Failure> {
    let mut arguments = super::arguments::Arguments::of(params);
    match arguments.next::<SubscriptionKind>()? {
        SubscriptionKind::NewHeads => Ok(Topic::Blocks(OfBlock::Head)),
        SubscriptionKind::Logs => {
            let filter = arguments.optional::<Filter>()?.unwrap_or_default();
            let filter = chain.filter(&filter)?.ok_or_else(|| invalid("unknown block"))?;
            Ok(Topic::Blocks(OfBlock::Logs(filter)))
        }
        SubscriptionKind::NewPendingTransactions => {
            Ok(Topic::Pending { whole: arguments.optional()?.unwrap_or_default() })
        }
        other => Err(invalid(format!(
            "there are subscriptions to newHeads, logs and newPendingTransactions, not to {other:?}"
        ))),
    }
}

/// Sends every block after `seen` in order, until the subscriber is gone or its token is. One that
/// reads slowly gets them late, and delays nobody else. Over the end of an epoch it waits for the
/// next run.
async fn notify(
    chain: &Chain,
    topic: &OfBlock,
    (mut seen, sender): (u64, &Sender),
    sink: &SubscriptionSink,
) {
    let mut heights = chain.beside.heights();
    // Index of the first log that is yet to be sent of the block after `seen`.
    let mut from = 0;
    loop {
        let newest = heights.borrow_and_update().0;
        while seen < newest {
            if !sender.is_let_in() {
                return;
            }
            let _turn = sender.turn().await;
            let (chain, topic, next) = (chain.clone(), topic.clone(), (seen + 1, from));
            let found = spawn_blocking(move || messages(&chain, &topic, next)).await;
            let (messages, rest) = match found {
                Ok(Ok(messages)) => messages,
                Ok(Err(failure)) if passes(&failure) => break,
                Ok(Err(_)) | Err(_) => return,
            };
            (seen, from) = rest.map_or((seen + 1, 0), |from| (seen, from));
            for message in messages {
                if sink.send(message).await.is_err() {
                    return;
                }
            }
        }
        tokio::select! {
            () = sink.closed() => return,
            changed = heights.changed() => if changed.is_err() { return },
        }
    }
}

/// What there is to send of a block; of its logs those from an index on, as many as are read at
/// once, and the index of the next.
fn messages(
    chain: &Chain,
    topic: &OfBlock,
    (height, from): (u64, u32),
) -> Result<(Vec<SubscriptionMessage>, Option<u32>), Failure> {
    match topic {
        OfBlock::Head => {
            let found = chain.block(BlockAt::Height(height), false)?;
            let header = found.map(|found| convert::header(&found.block)).transpose()?;
            Ok((header.iter().map(message).collect::<Result<_, _>>()?, None))
        }
        OfBlock::Logs(filter) => {
            let filter = LogFilter { heights: (height, height), ..filter.clone() };
            let page = chain.log_page(filter, from)?;
            let logs = convert::logs(&page.logs);
            let messages = logs.iter().map(message);
            let next = page.next.map(|(_, index)| index);
            Ok((messages.collect::<Result<_, _>>()?, next))
        }
    }
}

fn message(content: &impl serde::Serialize) -> Result<SubscriptionMessage, Failure> {
    serde_json::value::to_raw_value(content)
        .map(|raw: Box<RawValue>| SubscriptionMessage::from(raw))
        .map_err(internal)
}
