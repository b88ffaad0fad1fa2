//! Sends prepared payments to authorities and counts their votes.

use super::place::Place;
use super::prepare::{Payment, Prepared};
use super::{Cores, Latencies, PayBenchError, pin};
use quorate_crypto::IdentitySecret;
use quorate_node::payments::{PayFeed, PreparedOrder};
use quorate_payments::{Answer, TxId, Verdict};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// Payments under way on each connection when a shard is fed as fast as it answers.
const WINDOW: usize = 4_096;

/// Time for connections to come up, and for the last answers to come.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The first part of a load does not count.
const WARM_UP: f64 = 0.2;

/// Interval at which a paced load sends everything that is due.
const PACE: Duration = Duration::from_millis(1);

/// Payments to send, and their pace.
pub(super) struct Load<'a> {
    pub(super) payments: &'a Prepared,
    /// Payments a second; `None`: as fast as they are answered.
    pub(super) rate: Option<f64>,
    pub(super) duration: Duration,
    /// Votes that finish a payment.
    pub(super) needed: usize,
    /// Processors of authority and load, where they have some of their own.
    pub(super) cores: Option<&'a Cores>,
    /// Tells whether authorities may have too much to do.
    pub(super) may_be_busy: bool,
}

impl Load<'_> {
    /// Connections to each shard, which share its payments: one for each of its processors, of
    /// which a single one could not be fed through one connection for ever.
    fn lanes(&self) -> usize {
        self.cores.and_then(|cores| cores.shards.first()).map_or(1, Vec::len)
    }
}

/// Results of a load.
pub(super) struct Driven {
    /// Number of payments finished.
    pub(super) finished: u64,
    /// Payments finished a second, after warming up.
    pub(super) rate: f64,
    pub(super) latencies: Latencies,
    /// Answers of authorities that had too much to do.
    pub(super) busy: u64,
}

type Sender = Box<dyn Fn(&PreparedOrder) + Send>;

/// Connections by shard and lane, one to each authority.
type Senders = BTreeMap<(u16, usize), Vec<Sender>>;

/// State that the receivers share.
struct Tally {
    began: Instant,
    counted_us: std::ops::Range<u64>,
    needed: usize,
    may_be_busy: bool,
    state: Mutex<State>,
    progress: Notify,
}

struct State {
    under_way: BTreeMap<TxId, (u64, usize)>,
    latencies: Latencies,
    finished: u64,
    in_time: u64,
    busy: u64,
    refused: Option<String>,
}

/// Runs a load to its end, on its own processors where it has some.
pub(super) fn drive(
    place: &Place,
    authorities: &[ReplicaId],
    load: &Load<'_>,
) -> Result<Driven, PayBenchError> {
    let failed = |source| PayBenchError::System { what: "start the load", source };
    let own = load.cores.map_or(&[][..], |cores| &cores.load);
    let work = || {
        if !own.is_empty() {
            pin(own).map_err(failed)?;
        }
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(own.len().max(1)).enable_all().build();
        runtime.map_err(failed)?.block_on(async { run(place, authorities, load).await })
    };
    // A thread of its own: what it is pinned to, this one is not.
    std::thread::scope(|scope| scope.spawn(work).join().expect("the load does not panic"))
}

async fn run(
    place: &Place,
    authorities: &[ReplicaId],
    load: &Load<'_>,
) -> Result<Driven, PayBenchError> {
    let identity = IdentitySecret::from_seed([0x77; 32]);
    let mut feeds = Vec::new();
    for shard in 0..place.network.shards() {
        for lane in 0..load.lanes() {
            for authority in authorities {
                let feed = PayFeed::open(&place.network, &identity, (*authority, shard))?;
                feeds.push(((shard, lane), feed));
            }
        }
    }
    let deadline = Instant::now() + TIMEOUT;
    while !feeds.iter().all(|(_, feed)| feed.is_up()) {
        if Instant::now() >= deadline {
            return Err(PayBenchError::NotUp { timeout: TIMEOUT, log: String::new() });
        }
        sleep(Duration::from_millis(5)).await;
    }
    let span = u64::try_from(load.duration.as_micros()).unwrap_or(u64::MAX);
    let counted_us = (span as f64 * WARM_UP) as u64..span;
    let tally = Arc::new(Tally {
        began: Instant::now(),
        needed: load.needed,
        may_be_busy: load.may_be_busy,
        state: Mutex::new(State {
            under_way: BTreeMap::new(),
            latencies: Latencies::new(counted_us.clone()),
            finished: 0,
            in_time: 0,
            busy: 0,
            refused: None,
        }),
        counted_us,
        progress: Notify::new(),
    });
    let mut senders = Senders::new();
    let mut receivers = Vec::new();
    for (place, mut feed) in feeds {
        senders.entry(place).or_default().push(Box::new(feed.sender()));
        let tally = Arc::clone(&tally);
        receivers.push(tokio::spawn(async move {
            while let Some(answer) = feed.answer().await {
                tally.on_answer(answer);
            }
        }));
    }
    match load.rate {
        Some(rate) => paced(load, rate, &senders, &tally).await,
        None => saturating(load, &senders, &tally).await,
    }
    // What is under way still counts.
    let _ = timeout(TIMEOUT, tally.settled()).await;
    receivers.iter().for_each(tokio::task::JoinHandle::abort);
    tally.report()
}

/// Keeps a window full until the time is over.
async fn saturating(load: &Load<'_>, senders: &Senders, tally: &Tally) {
    let window = WINDOW * senders.len();
    let lanes = (0..load.lanes()).cycle();
    for (payment, lane) in load.payments.0.iter().zip(lanes) {
        while tally.lock().under_way.len() >= window && tally.began.elapsed() < load.duration {
            let _ = timeout(Duration::from_millis(20), tally.progress.notified()).await;
        }
        if tally.began.elapsed() >= load.duration {
            return;
        }
        send((payment, lane), tally.now_us(), senders, tally);
    }
}

/// Sends what is due, whatever comes back.
async fn paced(load: &Load<'_>, rate: f64, senders: &Senders, tally: &Tally) {
    let mut payments = load.payments.0.iter().zip(0_u32..).peekable();
    while tally.began.elapsed() < load.duration {
        let now = tally.now_us();
        while let Some((payment, number)) = payments.peek().copied() {
            let due = (f64::from(number) * 1e6 / rate) as u64;
            if due > now {
                break;
            }
            payments.next();
            send((payment, 0), due, senders, tally);
        }
        sleep(PACE).await;
    }
}

fn send((payment, lane): (&Payment, usize), due_us: u64, senders: &Senders, tally: &Tally) {
    tally.lock().under_way.insert(payment.tx, (due_us, 0));
    for sender in senders.get(&(payment.shard, lane)).into_iter().flatten() {
        sender(&payment.order);
    }
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no receiver panics")
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn on_answer(&self, answer: Answer) {
        let now = self.now_us();
        let mut state = self.lock();
        match answer.verdict {
            Verdict::Vote(_) => {
                let Some((due, votes)) = state.under_way.get_mut(&answer.tx) else { return };
                *votes += 1;
                if *votes < self.needed {
                    return;
                }
                let latency = now.saturating_sub(*due);
                let due = *due;
                state.under_way.remove(&answer.tx);
                state.latencies.add(due, latency, 1);
                state.finished += 1;
                state.in_time += u64::from(self.counted_us.contains(&now));
                self.progress.notify_one();
            }
            Verdict::Busy if self.may_be_busy => state.busy += 1,
            verdict => state.refused = Some(format!("{verdict:?}")),
        }
    }

    async fn settled(&self) {
        while !self.lock().under_way.is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn report(&self) -> Result<Driven, PayBenchError> {
        let mut state = self.lock();
        if let Some(refused) = state.refused.take() {
            return Err(PayBenchError::Refused(refused));
        }
        let seconds = (self.counted_us.end - self.counted_us.start) as f64 / 1e6;
        let latencies =
            std::mem::replace(&mut state.latencies, Latencies::new(self.counted_us.clone()));
        let (finished, rate) = (state.finished, state.in_time as f64 / seconds);
        Ok(Driven { finished, rate, latencies, busy: state.busy })
    }
}
