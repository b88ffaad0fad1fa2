//! The transport alone: messages between members on this machine, with nothing behind them.
//!
//! Member 0 sends a message to each of the others in turn, in the lane of bodies, at its time
//! whether or not earlier ones were answered. Whoever gets one answers at once, with a few bytes in
//! the lane of votes. Everything on the way is a validator's own
//! ([`quorate_node::transport::endpoint`]): TLS over sockets, queues that drop what exceeds their
//! bounds, readers, the pool's threads. The members share this process and this machine.

use super::{Measured, RunError, Runner, Signatures};
use crate::experiment::{Kept, Setup};
use crate::load::measure::{OperationResult, Recorder, Schedule};
use crate::load::{Answer, Answers, Content, Load, Operations, Payload, Plan, Target};
use bytes::{BufMut, Bytes, BytesMut};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;
use quorate_engine::{Frame, FrameTag};
use quorate_node::log::Outgoing;
use quorate_node::transport::Network;
use quorate_node::transport::endpoint::{Endpoint, Heard};
use quorate_node::{NodeConfig, Testnet, TestnetPlan};
use quorate_report::results::LatencyMs;
use quorate_types::{Lane, Recipients, ReplicaId};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Tags of frames that the lanes take: a body's, and a protocol message's.
const MESSAGE_TAG: FrameTag = FrameTag::Body;
const ANSWER_TAG: FrameTag = FrameTag::Consensus;
/// Fields that both begin with: length, tag, the message's mark, and to which of the others it
/// went.
const LENGTH_BYTES: usize = 4;
const HEAD_BYTES: usize = 1 + 8 + 2;
/// Time for the members to reach one another.
const CONNECTING: Duration = Duration::from_secs(15);
/// From one look to the next.
const NAP: Duration = Duration::from_millis(20);
/// Time between the announcement of a load and its first message.
const HEAD_START: Duration = Duration::from_millis(50);
/// About how many seconds members take to start and to end.
const OVERHEAD_S: f64 = 0.5;

/// Measures the transport alone.
#[derive(Clone, Copy, Debug)]
pub struct Transport;

impl Runner for Transport {
    /// One at a time: it is timed.
    fn is_parallel(&self) -> bool {
        false
    }

    fn estimate_s(&self, setup: &Setup) -> f64 {
        setup.load_span().as_secs_f64() + OVERHEAD_S
    }

    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError> {
        let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
        let folder = tempfile::tempdir().map_err(|error| refused(&error))?;
        let (answered, answers) = unbounded();
        let members = members(setup, &folder.path().join("net"), &answered)?;
        await_connected(&members, interrupted)?;
        let recorder = offer(setup, &members, answers, interrupted)?;
        let recorder = recorder.lock();
        Ok(measured(setup, &recorder))
    }
}

/// Starts the members; what member 0 hears goes to `answered`.
fn members(
    setup: &Setup,
    folder: &Path,
    answered: &Sender<Answer>,
) -> Result<Vec<Endpoint>, RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
    let count = setup.validators;
    let plan = TestnetPlan {
        members: usize::from(count),
        scheme: setup.scheme,
        base_port: quorate_node::ports::free_ports(2 * count).map_err(|error| refused(&error))?,
        ..TestnetPlan::default()
    };
    let testnet = Testnet::create(folder, &plan).map_err(|error| refused(&error))?;
    let start = |(index, path): (usize, &std::path::PathBuf)| {
        let config = NodeConfig::load(path).map_err(|error| refused(&error))?;
        let heard = if index == 0 { hears(answered.clone()) } else { answers_at_once() };
        Endpoint::start(&config, heard).map_err(|error| refused(&error))
    };
    testnet.configs.iter().enumerate().map(start).collect()
}

/// Handler of the sender, which takes answers.
fn hears(answered: Sender<Answer>) -> Heard {
    Box::new(move |_, content| {
        let Some((mark, session)) = parse(content) else { return };
        let result = OperationResult::Done { at: Instant::now(), refused: false };
        // Nobody takes them any more when the point has ended.
        let _ = answered.send(Answer { session, mark, result });
    })
}

/// Handler of the others, which answers every message.
fn answers_at_once() -> Heard {
    Box::new(|network, content| {
        let Some((mark, session)) = parse(content) else { return };
        let frame = frame(ANSWER_TAG, mark, session, &Bytes::new());
        network.send(Outgoing { to: Recipients::One(ReplicaId(0)), lane: Lane::Votes, frame });
    })
}

fn frame(tag: FrameTag, mark: u64, session: usize, filler: &Bytes) -> Frame {
    let mut head = BytesMut::with_capacity(LENGTH_BYTES + HEAD_BYTES);
    head.put_u32_le(u32::try_from(HEAD_BYTES + filler.len()).expect("at most 4 MiB"));
    head.put_u8(tag.number());
    head.put_u64_le(mark);
    head.put_u16_le(u16::try_from(session).expect("fewer than members"));
    Frame(vec![head.freeze(), filler.clone()])
}

/// Mark and session of a frame's content.
fn parse(content: &[u8]) -> Option<(u64, usize)> {
    let mark = content.get(1..9)?.try_into().ok()?;
    let session = content.get(9..11)?.try_into().ok()?;
    Some((u64::from_le_bytes(mark), usize::from(u16::from_le_bytes(session))))
}

fn await_connected(members: &[Endpoint], interrupted: &AtomicBool) -> Result<(), RunError> {
    let until = Instant::now() + CONNECTING;
    let others = members.len() - 1;
    while members.iter().any(|member| member.network().members_connected() < others) {
        stop_if(interrupted)?;
        if Instant::now() >= until {
            let waited = CONNECTING.as_secs();
            let text = format!("after {waited} s the members did not all reach one another");
            return Err(RunError::Refused(text));
        }
        thread::sleep(NAP);
    }
    Ok(())
}

fn stop_if(interrupted: &AtomicBool) -> Result<(), RunError> {
    if interrupted.load(Ordering::Relaxed) { Err(RunError::Interrupted) } else { Ok(()) }
}

/// Offers the load, and waits until all is answered or the wait for late answers is over.
fn offer(
    setup: &Setup,
    members: &[Endpoint],
    answers: Receiver<Answer>,
    interrupted: &AtomicBool,
) -> Result<Arc<Mutex<Recorder>>, RunError> {
    let schedule = Schedule {
        start: Instant::now() + HEAD_START,
        warmup: Duration::from_secs(setup.warmup_s),
        window: Duration::from_secs(setup.duration_s),
    };
    // The filler is made once: making it is no part of the transport.
    let plan = Plan {
        shape: setup.load,
        rate: setup.rate,
        outstanding: 0,
        content: Content::Random,
        operation_bytes: 0,
        seed: setup.seed,
        ready: 0,
    };
    let bytes = (setup.message_commands as usize) * setup.tx_bytes;
    let sender = Senders {
        network: Arc::clone(members[0].network()),
        others: members.len() - 1,
        filler: vec![b'.'; bytes].into(),
    };
    let recorder = Arc::new(Mutex::new(Recorder::new(schedule)));
    let load = Load::start(
        schedule,
        plan,
        Payload::new(&plan),
        sender,
        Heards(answers),
        Arc::clone(&recorder),
    );
    let until = schedule.start + setup.load_span() + Duration::from_secs(setup.drain_s);
    while Instant::now() < until && !recorder.lock().is_settled() {
        stop_if(interrupted)?;
        thread::sleep(NAP);
    }
    drop(load);
    Ok(recorder)
}

/// Sends each message from member 0 to one of the others.
struct Senders {
    network: Arc<Network>,
    others: usize,
    filler: Bytes,
}

impl Target for Senders {
    fn sessions(&self) -> usize {
        self.others
    }

    fn submit(&mut self, session: usize, operations: Operations) -> bool {
        let to = ReplicaId(u16::try_from(session + 1).expect("members are counted in 16 bits"));
        for (mark, _) in operations {
            let frame = frame(MESSAGE_TAG, mark, session, &self.filler);
            self.network.send(Outgoing { to: Recipients::One(to), lane: Lane::Bulk, frame });
        }
        true
    }
}

struct Heards(Receiver<Answer>);

impl Answers for Heards {
    fn next(&mut self, timeout: Duration) -> Option<Answer> {
        self.0.recv_timeout(timeout).ok()
    }
}

fn measured(setup: &Setup, recorder: &Recorder) -> Measured {
    let LatencyMs { mean, p50, p90, p99, .. } = recorder.latency();
    let (offered, done) = (recorder.offered(), recorder.counted.done);
    let bytes = HEAD_BYTES as u64 + setup.message_commands * setup.tx_bytes as u64;
    let goodput = recorder.goodput_tps();
    let mut numbers = vec![
        ("offered_tps", offered as f64 / setup.duration_s as f64),
        ("goodput_tps", goodput),
        ("goodput_mb_s", goodput * bytes as f64 / 1e6),
        ("failed_share", 100.0 * offered.saturating_sub(done) as f64 / offered.max(1) as f64),
        ("message_bytes", bytes as f64),
    ];
    if done > 0 {
        numbers.extend([
            ("latency_message_mean_ms", mean),
            ("latency_message_p50_ms", p50),
            ("latency_message_p90_ms", p90),
            ("latency_message_p99_ms", p99),
        ]);
    }
    let mut details = json!({ "offered": offered, "answered": done });
    if setup.keep_latencies {
        let over_time = recorder.over_time();
        let kept = Kept::new(&over_time.latency, &over_time.histogram.distribution_us());
        details[Kept::NAME] = json!(kept);
    }
    let numbers = numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
    Measured { numbers, signatures: Signatures::Real, details }
}

#[cfg(test)]
mod tests;
