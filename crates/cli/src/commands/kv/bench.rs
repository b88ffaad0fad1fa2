//! `quorate kv bench`: a closed loop of puts against a running committee.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::IdentitySecret;
use quorate_gateway::{ClientConfig, Connection, KvClient};
use quorate_ledger::kv::{Operation, Step};
use quorate_report::text::thousands;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Put values from several callers at once, and show the rate. For load at a given rate, with a
/// committee of its own: `quorate bench --service kv`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Number of callers, each with one operation under way
    #[arg(long, default_value_t = 64, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=4_096))]
    callers: u32,
    /// Number of puts in an operation, all or none of which take effect
    #[arg(long, default_value_t = 1, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    batch: u32,
    /// Number of keys that are written, one after the other
    #[arg(long, default_value_t = 100_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 100, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(0..=65_536))]
    value_bytes: u32,
    /// Length of the load, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    duration: u64,
}

/// Results of one caller.
#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
    failed: Option<String>,
}

impl Options {
    pub(super) async fn run(
        &self,
        config: ClientConfig,
        key: Option<&IdentitySecret>,
        json: bool,
    ) -> CommandResult {
        let (committee, first) = (config.committee(), config.sessions[0].first);
        let sessions = Connection::new_sessions(committee, first, committee.size());
        let config = ClientConfig { sessions, ..config };
        let config = key.map_or(config.clone(), |key| config.vouched_by(key));
        let connection = Connection::open(&config).map_err(Failure::run)?;
        let store = KvClient::new(connection);
        // The first operation waits for the connections; it is not counted.
        store.execute(&self.operation(0)).await.map_err(super::explain)?;
        let began = Instant::now();
        let until = began + Duration::from_secs(self.duration);
        let mut callers = JoinSet::new();
        for caller in 0..self.callers {
            callers.spawn(call(store.clone(), self.operations(caller), until));
        }
        let mut latencies = Vec::new();
        while let Some(seen) = callers.join_next().await {
            let seen = seen.map_err(Failure::run)?;
            if let Some(reason) = seen.failed {
                return Err(Failure::run(reason));
            }
            latencies.extend(seen.latencies);
        }
        self.show(latencies, began.elapsed(), json);
        Ok(())
    }

    /// A caller's operations: all callers together go round the keys.
    fn operations(&self, caller: u32) -> impl Iterator<Item = Operation> + use<> {
        let Self { batch, keys, value_bytes, callers, .. } = *self;
        let one = move |number: u64| operation(number * u64::from(batch), batch, keys, value_bytes);
        (0..).map(move |turn| one(turn * u64::from(callers) + u64::from(caller)))
    }

    fn operation(&self, first: u64) -> Operation {
        operation(first, self.batch, self.keys, self.value_bytes)
    }

    fn show(&self, mut latencies: Vec<Duration>, took: Duration, json: bool) {
        latencies.sort_unstable();
        let at = |share: f64| {
            let place = (latencies.len() as f64 * share) as usize;
            latencies.get(place.min(latencies.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        let ms = |latency: Duration| latency.as_secs_f64() * 1e3;
        let operations = latencies.len() as f64 / took.as_secs_f64();
        let puts = operations * f64::from(self.batch);
        let (p50, p99) = (ms(at(0.5)), ms(at(0.99)));
        if json {
            output::json(&json!({
                "operations_per_s": operations,
                "puts_per_s": puts,
                "p50_ms": p50,
                "p99_ms": p99,
                "seconds": took.as_secs_f64(),
            }));
            return;
        }
        output::line(&format!(
            "{} operations/s, {} puts/s; p50 {p50:.1} ms, p99 {p99:.1} ms ({} operations in {:.1} s)",
            thousands(operations as u64),
            thousands(puts as u64),
            latencies.len(),
            took.as_secs_f64(),
        ));
    }
}

fn operation(first: u64, batch: u32, keys: u64, value_bytes: u32) -> Operation {
    let value = vec![b'v'; value_bytes as usize];
    let put = |number: u64| Step::put(format!("key-{:012}", number % keys), value.clone());
    if batch == 1 {
        return Operation::Step(put(first));
    }
    Operation::batch((first..first + u64::from(batch)).map(put))
}

async fn call(
    store: KvClient,
    operations: impl Iterator<Item = Operation>,
    until: Instant,
) -> Seen {
    let mut seen = Seen::default();
    for operation in operations {
        let began = Instant::now();
        if began >= until {
            break;
        }
        match store.execute(&operation).await {
            Ok(_) => seen.latencies.push(began.elapsed()),
            Err(error) => {
                seen.failed = Some(error.to_string());
                break;
            }
        }
    }
    seen
}
