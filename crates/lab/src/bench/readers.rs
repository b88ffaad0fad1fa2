//! Readers beside the load: questions to the gateways of an EVM ledger at a rate, as wallets and
//! pages ask them.
//!
//! The load is open: a question is due at its time whatever became of those before it, and its
//! latency runs from then. Eight connections carry it, over the validators in turn.

use crate::http::Connection;
use crate::load::Latencies;
use crate::load::measure::Schedule;
use parking_lot::Mutex;
use quorate_ledger::evm::{Address, Genesis, mix};
use quorate_report::results::beside::Reads;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections that carry the questions.
const CONNECTIONS: u64 = 8;

/// Time for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Accounts that are asked after.
const ACCOUNTS: usize = 1_000;

/// Readers at work. Dropping them without [`Readers::finish`] leaves their threads to end with the
/// load.
pub(super) struct Readers {
    rate: u64,
    seen: Arc<Mutex<Seen>>,
    threads: Vec<JoinHandle<()>>,
}

struct Seen {
    latencies: Latencies,
    failed: u64,
}

impl Readers {
    /// Begins to ask these gateways as scheduled, after what the genesis holds.
    pub(super) fn start(
        gateways: &[String],
        rate: u64,
        schedule: Schedule,
        genesis: &Genesis,
    ) -> Self {
        let counted = schedule.first_counted()..schedule.end();
        let seen = Seen { latencies: Latencies::new(counted), failed: 0 };
        let seen = Arc::new(Mutex::new(seen));
        let questions: Arc<[String]> = questions(genesis).into();
        let read = |connection: u64| {
            let reader = Reader {
                gateway: gateways[connection as usize % gateways.len()].clone(),
                schedule,
                seen: Arc::clone(&seen),
                questions: Arc::clone(&questions),
            };
            thread::spawn(move || reader.run(connection, rate))
        };
        let threads = (0..CONNECTIONS).map(read).collect();
        Self { rate, seen, threads }
    }

    /// Waits for the last answers, and says what was seen.
    pub(super) fn finish(self) -> Reads {
        for thread in self.threads {
            thread.join().expect("readers do not panic");
        }
        let seen = self.seen.lock();
        Reads { rate: self.rate, failed: seen.failed, latency: seen.latencies.summary() }
    }
}

/// State of one connection.
struct Reader {
    gateway: String,
    schedule: Schedule,
    seen: Arc<Mutex<Seen>>,
    questions: Arc<[String]>,
}

impl Reader {
    fn run(self, connection: u64, rate: u64) {
        let mut open = None;
        for number in (connection..).step_by(CONNECTIONS as usize) {
            let due_us = number * 1_000_000 / rate;
            if due_us >= self.schedule.end() {
                return;
            }
            let due = self.schedule.due(due_us);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // Each connection goes through all kinds.
            let turn = (number + number / CONNECTIONS) as usize;
            let question = &self.questions[turn % self.questions.len()];
            let answered = self.ask(&mut open, question);
            let took = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
            let mut seen = self.seen.lock();
            if answered {
                seen.latencies.add(due_us, took, 1);
            } else if due_us >= self.schedule.first_counted() {
                seen.failed += 1;
            }
        }
    }

    /// Returns `true` if there was a result. What is wrong with a connection ends it.
    fn ask(&self, open: &mut Option<Connection>, question: &str) -> bool {
        let connection = open.take().map_or_else(|| Connection::open(&self.gateway, TIMEOUT), Ok);
        let Ok(mut connection) = connection else { return false };
        let Ok(answer) = connection.post("/", question) else { return false };
        *open = Some(connection);
        answer.contains("\"result\":")
    }
}

/// Queries to ask in turn: a balance, a nonce, a contract's view, the newest block.
fn questions(genesis: &Genesis) -> Vec<String> {
    let question = |method: &str, parameters: String| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{parameters}]}}"#)
    };
    let about = |account: &Address| {
        let input = mix::call("balanceOf(address)", &[account.into_word()]);
        let call = format!(r#"{{"to":"{}","data":"{input}"}},"latest""#, mix::TOKEN);
        [
            question("eth_getBalance", format!(r#""{account}","latest""#)),
            question("eth_getTransactionCount", format!(r#""{account}","latest""#)),
            question("eth_call", call),
            question("eth_getBlockByNumber", r#""latest",false"#.to_owned()),
        ]
    };
    let somebody = [Address::ZERO];
    genesis.accounts.keys().take(ACCOUNTS).chain(&somebody).flat_map(about).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::MixPlan;
    use quorate_report::results::LatencyMs;

    #[test]
    fn questions_are_json_and_of_every_kind() {
        let genesis = MixPlan { accounts: 3, ..MixPlan::default() }.start(1).genesis();
        let asked = questions(&genesis);
        assert_eq!(asked.len(), 4 * (genesis.accounts.len() + 1));
        let methods: Vec<String> = asked
            .iter()
            .map(|question| {
                let json: serde_json::Value = serde_json::from_str(question).expect("JSON");
                json["method"].as_str().expect("a method").to_owned()
            })
            .collect();
        let kinds =
            ["eth_getBalance", "eth_getTransactionCount", "eth_call", "eth_getBlockByNumber"];
        assert_eq!(methods[..4], kinds);
    }

    #[test]
    fn readers_that_nobody_answers_say_so() {
        let schedule = Schedule {
            start: Instant::now(),
            warmup: Duration::ZERO,
            window: Duration::from_millis(100),
        };
        let nobody = ["127.0.0.1:1".to_owned()];
        let genesis = MixPlan { accounts: 1, ..MixPlan::default() }.start(1).genesis();
        let reads = Readers::start(&nobody, 200, schedule, &genesis).finish();
        assert_eq!((reads.failed, reads.latency), (20, LatencyMs::default()));
        assert!(reads.describe().ends_with("· 20 failed"), "{}", reads.describe());
    }
}
