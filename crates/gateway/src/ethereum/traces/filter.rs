//! Calls between two addresses, in a range of blocks (`trace_filter`).

use super::{Trace, at, flat_of_block};
use crate::ethereum::context::Context;
use crate::ethereum::error::{Failure, internal, invalid, server};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::Address;
use quorate_ledger::evm::TRACE_BYTES_MAX;
use serde::Deserialize;
use std::time::{Duration, Instant};

/// Most blocks of a filter's range.
const BLOCKS_MAX: u64 = 10_000;

/// Longest time that a filter is looked for.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Filter of calls. Empty lists let all pass. Blocks may be named by tags, as Erigon takes them;
/// `alloy` knows numbers alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TraceFilter {
    #[serde(default)]
    from_block: Option<BlockNumberOrTag>,
    #[serde(default)]
    to_block: Option<BlockNumberOrTag>,
    #[serde(default)]
    from_address: Vec<Address>,
    #[serde(default)]
    to_address: Vec<Address>,
    #[serde(default)]
    mode: Mode,
    /// Calls that are passed over, and most that are wanted.
    #[serde(default)]
    after: usize,
    #[serde(default)]
    count: Option<usize>,
}

/// Which of the two lists a call has to pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Either, as Erigon has it where nothing is said.
    #[default]
    Union,
    /// Both.
    Intersection,
}

/// A call, as far as it is looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Located {
    action: Action,
    #[serde(default)]
    result: Option<Created>,
    pub(super) trace_address: Vec<usize>,
}

/// Ends of a call: of a creation its creator and the contract, of a destruction what is destroyed
/// and who gets its balance.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    #[serde(default, alias = "address")]
    from: Option<Address>,
    #[serde(default, alias = "refundAddress")]
    to: Option<Address>,
}

#[derive(Debug, Deserialize)]
struct Created {
    #[serde(default)]
    address: Option<Address>,
}

impl Located {
    pub(super) fn read(trace: &Trace) -> Result<Self, Failure> {
        serde_json::from_str(trace.get()).map_err(internal)
    }

    fn to(&self) -> Option<Address> {
        self.action.to.or_else(|| self.result.as_ref()?.address)
    }
}

impl TraceFilter {
    fn passes(&self, call: &Located) -> bool {
        let is_in = |list: &[Address], of: Option<Address>| {
            !list.is_empty() && of.is_some_and(|of| list.contains(&of))
        };
        let from = is_in(&self.from_address, call.action.from);
        let to = is_in(&self.to_address, call.to());
        match self.mode {
            Mode::Union => from || to || self.from_address.is_empty() && self.to_address.is_empty(),
            Mode::Intersection => {
                (self.from_address.is_empty() || from) && (self.to_address.is_empty() || to)
            }
        }
    }
}

/// Calls that pass a filter, in their order.
pub(super) fn filter(context: &Context, filter: &TraceFilter) -> Result<Vec<Trace>, Failure> {
    let from = filter.from_block.unwrap_or(BlockNumberOrTag::Earliest);
    let to = filter.to_block.unwrap_or(BlockNumberOrTag::Latest);
    // There is nothing to trace in the first block.
    let (from, to) = (context.chain.height(from).max(1), context.chain.height(to));
    if from > to.max(1) {
        return Err(invalid("invalid block range params"));
    }
    if to.saturating_sub(from) >= BLOCKS_MAX {
        return Err(invalid(format!("a filter spans at most {BLOCKS_MAX} blocks")));
    }
    let (mut found, mut bytes, mut skipped, began) = (Vec::new(), 0, 0, Instant::now());
    let is_enough = |found: usize| filter.count.is_some_and(|count| found >= count);
    for number in from..=to.min(context.chain.newest()) {
        if is_enough(found.len()) {
            break;
        }
        if began.elapsed() > TIME_MAX {
            let text = format!("it took too long, up to block {number}: ask for fewer blocks");
            return Err(server(text));
        }
        if at(context, BlockId::number(number), false)?.block.transactions == 0 {
            continue;
        }
        for trace in flat_of_block(context, at(context, BlockId::number(number), true)?)? {
            if !filter.passes(&Located::read(&trace)?) {
                continue;
            }
            if skipped < filter.after {
                skipped += 1;
                continue;
            }
            if is_enough(found.len()) {
                break;
            }
            bytes += trace.get().len();
            if bytes > TRACE_BYTES_MAX {
                let text =
                    format!("more than {} MiB: ask for fewer, by count", TRACE_BYTES_MAX >> 20);
                return Err(server(text));
            }
            found.push(trace);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn passes(filter: serde_json::Value, trace: &serde_json::Value) -> bool {
        let filter: TraceFilter = serde_json::from_value(filter).expect("a filter");
        let trace = serde_json::value::to_raw_value(trace).expect("JSON");
        filter.passes(&Located::read(&trace).expect("a trace"))
    }

    #[test]
    fn a_call_passes_by_its_ends() {
        let [one, two] = [1, 2].map(Address::repeat_byte);
        let call = json!({ "action": { "from": one, "to": two }, "traceAddress": [] });
        let (from, to) = (json!([one]), json!([two]));
        assert!(passes(json!({}), &call));
        assert!(passes(json!({ "fromAddress": from, "toAddress": to }), &call));
        let both = json!({ "fromAddress": to, "toAddress": to, "mode": "intersection" });
        assert!(!passes(both, &call));
        assert!(passes(json!({ "fromAddress": to, "toAddress": to }), &call));
        assert!(!passes(json!({ "fromAddress": to }), &call));
        assert!(passes(json!({ "fromAddress": from, "mode": "intersection" }), &call));
        assert!(passes(json!({ "toAddress": to }), &call));
    }

    #[test]
    fn creations_and_destructions_have_ends_too() {
        let [one, two] = [1, 2].map(Address::repeat_byte);
        let to = json!({ "fromAddress": [one], "toAddress": [two] });
        let created = json!({
            "action": { "from": one }, "result": { "address": two }, "traceAddress": [0],
        });
        assert!(passes(to.clone(), &created));
        let destroyed = json!({
            "action": { "address": one, "refundAddress": two }, "result": null, "traceAddress": [0],
        });
        assert!(passes(to, &destroyed));
    }
}
