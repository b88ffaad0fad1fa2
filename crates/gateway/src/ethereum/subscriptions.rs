//! Subscriptions over open connections: new blocks, and logs.

use super::access::Sender;
use super::chain::Chain;
use super::context::Context;
use super::convert;
use super::error::{Failure, internal, invalid, passes};
use alloy_rpc_types_eth::Filter;
use alloy_rpc_types_eth::pubsub::SubscriptionKind;
use jsonrpsee::core::{RegisterMethodError, SubscriptionResult};
use jsonrpsee::server::{
    IdProvider, PendingSubscriptionSink, SubscriptionMessage, SubscriptionSink,
};
use jsonrpsee::types::{Params, SubscriptionId};
use jsonrpsee::{Extensions, RpcModule};
use quorate_ledger::evm::{BlockAt, LogFilter};
use quorate_node::testnet::system_random;
use serde_json::value::RawValue;
use std::sync::Arc;

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
    Heads,
    Logs(LogFilter),
}

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
    let chain = context.chain.clone();
    drop(context);
    // Read before the answer: a transaction that is sent after it is in a later block.
    let from = chain.newest();
    let sink = pending.accept().await?;
    let sender = extensions.get::<Sender>().cloned();
    let is_let_in = || sender.as_ref().is_some_and(Sender::is_let_in);
    notify(&chain, &topic, (from, &is_let_in), &sink).await;
    Ok(())
}

fn topic(params: &Params<'_>, chain: &Chain) -> Result<Topic, Failure> {
    let mut arguments = super::arguments::Arguments::of(params);
    match arguments.next::<SubscriptionKind>()? {
        SubscriptionKind::NewHeads => Ok(Topic::Heads),
        SubscriptionKind::Logs => {
            let filter = arguments.optional::<Filter>()?.unwrap_or_default();
            let filter = chain.filter(&filter)?.ok_or_else(|| invalid("unknown block"))?;
            Ok(Topic::Logs(filter))
        }
        other => {
            Err(invalid(format!("there are subscriptions to newHeads and logs, not to {other:?}")))
        }
    }
}

/// Sends every block after `seen` in order, until the subscriber is gone or its token is. One that
/// reads slowly gets them late, and delays nobody else. Over the end of an epoch it waits for the
/// next run.
async fn notify(
    chain: &Chain,
    topic: &Topic,
    (mut seen, is_let_in): (u64, &(dyn Fn() -> bool + Sync)),
    sink: &SubscriptionSink,
) {
    let mut heights = chain.beside.heights();
    // Index of the first log that is yet to be sent of the block after `seen`.
    let mut from = 0;
    loop {
        let newest = heights.borrow_and_update().0;
        while seen < newest {
            if !is_let_in() {
                return;
            }
            let (chain, topic, next) = (chain.clone(), topic.clone(), (seen + 1, from));
            let found = tokio::task::spawn_blocking(move || messages(&chain, &topic, next)).await;
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
    topic: &Topic,
    (height, from): (u64, u32),
) -> Result<(Vec<SubscriptionMessage>, Option<u32>), Failure> {
    match topic {
        Topic::Heads => {
            let found = chain.block(BlockAt::Height(height), false)?;
            let header = found.map(|found| convert::header(&found.block)).transpose()?;
            Ok((header.iter().map(message).collect::<Result<_, _>>()?, None))
        }
        Topic::Logs(filter) => {
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
