//! Costs that no loop shows: a small committee runs here for real, and the time that its threads
//! use beyond what the rest of the list explains is put down to their circumstances.
//!
//! Under a light load nearly every job finds a sleeping thread. One that was woken finds its caches
//! used by others, turns round for more work before it sleeps again, and paid its waker's system
//! call; alone in a loop it does none of that. The remainder is the price of waking. Under a heavy
//! load all cores are taken, dozens of threads use one another's caches, and frames share system
//! calls: what work costs then is told as a multiple of what it costs alone.

use super::{CalibrateError, figures};
use crate::processes::Processes;
use crate::stations::{self, Threads, Used, of_validator, threads};
use crate::status;
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyCache, SchemeKind};
use quorate_engine::Bundling;
use quorate_ledger::Noop;
use quorate_model::{Estimate, HostProfile, Prices, Scene, Station, Utilisation, run};
use quorate_node::config::load_committee;
use quorate_node::{Client, ClientConfig, SessionSpec, Testnet, TestnetPlan};
use quorate_storage::Durability;
use quorate_types::ReplicaId;
use quorate_wan::Topology;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Members of the committee.
const MEMBERS: usize = 4;
/// Sessions of the client, all together.
const SESSIONS: NonZeroUsize = NonZeroUsize::new(4).expect("more than none");
/// Operations a second that let threads sleep, and that take all cores; and their bytes.
const LIGHT: u64 = 1_000;
const HEAVY: u64 = 40_000;
const TX_BYTES: usize = 512;
/// Time that operations wait to share a request.
const BUNDLE_DELAY: Duration = Duration::from_millis(20);
/// Load before what counts, and what counts.
const WARMUP: Duration = Duration::from_secs(1);
const SPAN: Duration = Duration::from_secs(3);
/// A committee that decides less does not run, and says nothing of what running costs.
const HEIGHTS_MIN: u64 = 10;
/// Number of times that the model is asked: the cost of a job changes how often threads sleep and
/// views end.
const ROUNDS: usize = 6;
/// Largest step of a multiple after one answer: the cost of a view changes how many operations
/// share it.
const STEP: f64 = 0.5;
/// Lower limit of every multiple, whatever noise says.
const TIMES_MIN: f64 = 0.1;
const TIMES_MAX: f64 = 10.0;

/// Sets the prices of waking and of crowded cores, by what the rest of the list leaves unexplained;
/// leaves them where the system does not say what threads use.
pub(super) fn measure(
    folder: &Path,
    program: &Path,
    prices: &mut Prices,
) -> Result<(), CalibrateError> {
    let Some([light, heavy]) = real(folder, program)? else { return Ok(()) };
    for _ in 0..ROUNDS {
        settle(prices, &light, |prices, station, real_us, model| {
            let price = prices.wake_us.of_mut(station);
            *price = figures((*price + (real_us - model.work_us) / model.wakes).max(0.0));
        })?;
        settle(prices, &heavy, |prices, station, real_us, model| {
            let waking_us = model.wakes * prices.wake_us.of(station);
            let ratio = (real_us - waking_us).max(0.0) / (model.work_us - waking_us).max(1e-3);
            let times = prices.crowded.of_mut(station);
            *times = figures((*times * ratio.powf(STEP)).clamp(TIMES_MIN, TIMES_MAX));
        })?;
    }
    Ok(())
}

/// Work of one station of one validator in the model, for each height.
struct Modelled {
    work_us: f64,
    wakes: f64,
}

/// Runs the model under the load that was seen, and adjusts each station's price by what both came
/// to.
fn settle(
    prices: &mut Prices,
    seen: &Seen,
    adjust: impl Fn(&mut Prices, Station, f64, &Modelled),
) -> Result<(), CalibrateError> {
    let outcome = run(&scene(prices, seen.rate), &mut |_| {})?;
    for station in Station::ALL {
        let (Some(one), Some(real_us)) = (outcome.station(station), seen.used.get(&station)) else {
            continue;
        };
        let model = modelled(&outcome, one);
        if model.wakes > 0.0 && model.work_us > 0.0 {
            adjust(prices, station, *real_us, &model);
        }
    }
    Ok(())
}

fn modelled(outcome: &Estimate, one: &Utilisation) -> Modelled {
    let heights = outcome.heights as f64 / SPAN.as_secs_f64();
    Modelled { work_us: one.mean * 1e6 / heights, wakes: one.wakes_per_second / heights }
}

/// The committee in the model.
fn scene(prices: &Prices, rate: f64) -> Scene {
    let topology = Topology::uniform(MEMBERS, Duration::ZERO);
    let mut scene = Scene::new(topology, rate, prices.clone());
    scene.host = HostProfile::local(u32::from(prices.cores), MEMBERS as u16);
    scene.settings = quorate_engine::Settings::default();
    scene.durability = Durability::Os;
    scene.load.sessions = Some(SESSIONS);
    scene.load.bundle_delay = BUNDLE_DELAY;
    scene.load.tx_bytes = TX_BYTES;
    scene.warmup = WARMUP;
    scene.duration = SPAN;
    scene
}

/// Measurements of the real committee under one load.
struct Seen {
    /// Operations a second that were answered.
    rate: f64,
    /// Microseconds that each station of one validator used for each height.
    used: Used,
}

/// Runs the committee under both loads.
fn real(folder: &Path, program: &Path) -> Result<Option<[Seen; 2]>, CalibrateError> {
    let Ok(own) = threads(std::process::id()) else { return Ok(None) };
    let folder = tempfile::tempdir_in(folder)?;
    let testnet = testnet(&folder.path().join("net"))?;
    let validators = Processes::start(program, &testnet.configs)?;
    let client = client(&testnet.committee)?;
    let see = |rate| -> Result<Seen, CalibrateError> {
        offer(&client, rate, WARMUP);
        let before = Moment::now(&validators, &testnet)?;
        let answered = offer(&client, rate, SPAN);
        let after = Moment::now(&validators, &testnet)?;
        if after.height < before.height + HEIGHTS_MIN {
            let decided = after.height.saturating_sub(before.height);
            let text = format!("a committee of {MEMBERS} decided only {decided} heights here");
            return Err(io::Error::other(text).into());
        }
        let rate = answered as f64 / SPAN.as_secs_f64();
        Ok(Seen { rate, used: after.since(&before, &own) })
    };
    Ok(Some([see(LIGHT)?, see(HEAVY)?]))
}

/// Processor time of threads so far, and the height of the committee.
struct Moment {
    height: u64,
    validators: Threads,
    own: Threads,
}

impl Moment {
    fn now(validators: &Processes, testnet: &Testnet) -> io::Result<Self> {
        let mut all = Threads::new();
        for id in (0..MEMBERS).filter_map(|index| validators.id(index)) {
            all.extend(threads(id)?);
        }
        let height = status::ask(&testnet.http[0], CONNECTING)?.decided;
        Ok(Self { height, validators: all, own: threads(std::process::id())? })
    }

    /// By station, for one validator and one height; `others`: threads of this process that are no
    /// client's.
    fn since(&self, before: &Self, others: &Threads) -> Used {
        let own = self.own.iter().filter(|(id, _)| !others.contains_key(id));
        let mut used = stations::used(&self.validators, &before.validators, of_validator);
        used.extend(stations::used(own, &before.own, |_| Some(Station::Client)));
        let heights = (self.height - before.height) as f64;
        used.values_mut().for_each(|us| *us /= heights * MEMBERS as f64);
        used
    }
}

fn testnet(folder: &Path) -> Result<Testnet, CalibrateError> {
    let plan = TestnetPlan {
        members: MEMBERS,
        scheme: SchemeKind::Ed25519,
        base_port: quorate_node::ports::free_ports(2 * MEMBERS as u16)?,
        durability: Durability::Os,
        service: Noop::NAME.into(),
        ..TestnetPlan::default()
    };
    Ok(Testnet::create(folder, &plan).map_err(io::Error::other)?)
}

fn client(committee: &Path) -> Result<Client, CalibrateError> {
    let committee = load_committee(committee, KeyCache::On).map_err(io::Error::other)?;
    let session = |index: usize| {
        let seed = [u8::try_from(index).expect("a handful") + 1; 32];
        SessionSpec::fresh(IdentitySecret::from_seed(seed), ReplicaId((index % MEMBERS) as u16))
    };
    let sessions = (0..SESSIONS.get()).map(session).collect();
    let config = ClientConfig {
        bundling: Bundling::after(BUNDLE_DELAY),
        ..ClientConfig::new(Arc::new(committee), sessions)
    };
    let client = Client::connect(&config)?;
    let reached = client.wait_connected(MEMBERS, CONNECTING);
    reached.then_some(client).ok_or_else(|| io::Error::other("no committee came up here").into())
}

/// Offers a load for so long and takes the answers off the queue; how many there were.
fn offer(client: &Client, rate: u64, span: Duration) -> usize {
    let began = Instant::now();
    let operation = Bytes::from(vec![b'.'; TX_BYTES]);
    let (mut offered, mut answered) = (0, 0);
    while began.elapsed() < span {
        while offered < (began.elapsed().as_secs_f64() * rate as f64) as u64 {
            // One that is not taken was not offered: the committee is slower than the load.
            let _ = client.submit(offered as usize % SESSIONS, offered, operation.clone());
            offered += 1;
        }
        answered += client.completions().try_iter().count();
        std::thread::sleep(Duration::from_millis(1));
    }
    answered
}

/// Time for the committee to be reached.
const CONNECTING: Duration = Duration::from_secs(15);
