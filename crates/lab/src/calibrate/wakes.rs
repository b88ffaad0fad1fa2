//! What a sleeping thread costs: a small committee runs here for real, and what its threads use beyond
//! what the rest of the list explains is put down to their being woken.
//!
//! Nothing smaller shows it. A thread that was woken finds its caches used by others, turns round for more
//! work before it sleeps again, and paid its waker's system call; alone in a loop it does none of that.
//! The committee is small and its load light, so that nearly every job finds a sleeping thread.

use super::{CalibrateError, figures};
use crate::processes::Processes;
use crate::status;
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyCache, SchemeKind};
use quorate_ledger::Noop;
use quorate_node::config::load_committee;
use quorate_node::{Client, ClientConfig, SessionSpec, Testnet, TestnetPlan};
use quorate_sim::priced::{HostProfile, Prices, Scene, Station, WakePrices, run};
use quorate_storage::Durability;
use quorate_types::ReplicaId;
use quorate_wan::Topology;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Members of the committee.
const MEMBERS: usize = 4;
/// Operations a second, and their bytes.
const RATE: u64 = 1_000;
const TX_BYTES: usize = 512;
/// How long operations wait to share a request.
const BUNDLE_DELAY: Duration = Duration::from_millis(2);
/// Load before what counts, and what counts.
const WARMUP: Duration = Duration::from_secs(1);
const SPAN: Duration = Duration::from_secs(3);
/// A committee that decides less does not run, and says nothing of what running costs.
const HEIGHTS_MIN: u64 = 10;
/// How often the model is asked: waking changes how often threads sleep.
const ROUNDS: usize = 6;

/// Waking threads, by what the rest of the list leaves unexplained; nothing where the system does not say
/// what threads use.
pub(super) fn measure(
    folder: &Path,
    program: &Path,
    prices: &Prices,
) -> Result<WakePrices, CalibrateError> {
    let Some(used) = real(folder, program)? else { return Ok(WakePrices::default()) };
    let mut prices = prices.clone();
    for _ in 0..ROUNDS {
        let outcome = run(&scene(&prices), &mut |_| {})?;
        let heights = outcome.heights as f64 / SPAN.as_secs_f64();
        for station in Station::ALL {
            let Some(one) = outcome.station(station) else { continue };
            let real_us = used.get(&station).copied().unwrap_or_default();
            let modelled_us = one.mean * 1e6 / heights;
            let wakes = one.wakes_per_second / heights;
            let price = prices.wake.of_mut(station);
            *price = figures((*price + (real_us - modelled_us) / wakes.max(1e-3)).max(0.0));
        }
    }
    Ok(prices.wake)
}

/// The committee in the model.
fn scene(prices: &Prices) -> Scene {
    let topology = Topology::uniform(MEMBERS, Duration::ZERO);
    let mut scene = Scene::new(topology, RATE as f64, prices.clone());
    scene.host = HostProfile::local(u32::from(prices.cores), MEMBERS as u16);
    scene.settings = quorate_engine::Settings::default();
    scene.durability = Durability::Os;
    scene.load.bundle_delay = BUNDLE_DELAY;
    scene.load.tx_bytes = TX_BYTES;
    scene.warmup = WARMUP;
    scene.duration = SPAN;
    scene
}

/// Microseconds that each station of one validator uses for each height.
fn real(folder: &Path, program: &Path) -> Result<Option<Used>, CalibrateError> {
    let Ok(own) = threads(std::process::id()) else { return Ok(None) };
    let folder = tempfile::tempdir_in(folder)?;
    let testnet = testnet(&folder.path().join("net"))?;
    let validators = Processes::start(program, &testnet.configs)?;
    let client = client(&testnet.committee)?;
    offer(&client, WARMUP);
    let before = Moment::now(&validators, &testnet)?;
    offer(&client, SPAN);
    let after = Moment::now(&validators, &testnet)?;
    if after.height < before.height + HEIGHTS_MIN {
        let decided = after.height.saturating_sub(before.height);
        let text = format!("a committee of {MEMBERS} decided only {decided} heights here");
        return Err(io::Error::other(text).into());
    }
    Ok(Some(after.since(&before, &own)))
}

/// What threads have used, and how far the committee is.
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

    /// By station, for one validator and one height; `others`: threads of this process that are no client's.
    fn since(&self, before: &Self, others: &Threads) -> Used {
        let heights = (self.height - before.height) as f64;
        let client = self.own.iter().filter(|(id, _)| !others.contains_key(id));
        let client = client.map(|one| (Some(Station::Client), one, &before.own));
        let validators = self.validators.iter();
        let validators = validators.map(|one| (station(&one.1.name), one, &before.validators));
        let mut used = Used::new();
        for (station, (id, thread), before) in client.chain(validators) {
            let began = before.get(id).map_or(0, |thread| thread.nanos);
            let Some(station) = station else { continue };
            let us = (thread.nanos - began) as f64 / 1e3 / heights / MEMBERS as f64;
            *used.entry(station).or_insert(0.0) += us;
        }
        used
    }
}

fn testnet(folder: &Path) -> Result<Testnet, CalibrateError> {
    let plan = TestnetPlan {
        members: MEMBERS,
        scheme: SchemeKind::Ed25519,
        base_port: crate::ports::free_ports(2 * MEMBERS as u16)?,
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
        SessionSpec::fresh(IdentitySecret::from_seed(seed), ReplicaId(index as u16))
    };
    let sessions = (0..MEMBERS).map(session).collect();
    let config = ClientConfig {
        bundle_delay: BUNDLE_DELAY,
        ..ClientConfig::new(Arc::new(committee), sessions)
    };
    let client = Client::connect(&config)?;
    let reached = client.wait_connected(MEMBERS, CONNECTING);
    reached.then_some(client).ok_or_else(|| io::Error::other("no committee came up here").into())
}

/// Offers the load for so long, and takes the answers off the queue.
fn offer(client: &Client, span: Duration) {
    let began = Instant::now();
    let operation = Bytes::from(vec![b'.'; TX_BYTES]);
    let mut offered = 0;
    while began.elapsed() < span {
        while offered < (began.elapsed().as_secs_f64() * RATE as f64) as u64 {
            // One that is not taken was not offered: the committee is slower than the load.
            let _ = client.submit(offered as usize % MEMBERS, offered, operation.clone());
            offered += 1;
        }
        while client.completions().try_recv().is_ok() {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A thread.
struct Thread {
    name: String,
    /// What it has used so far.
    nanos: u64,
}

/// Threads by their numbers.
type Threads = BTreeMap<u32, Thread>;

/// Microseconds by station.
type Used = BTreeMap<Station, f64>;

/// All threads of a process, where the system tells.
fn threads(process: u32) -> io::Result<Threads> {
    let mut threads = Threads::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let folder = entry?.path();
        let id = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        // One that has ended meanwhile is none.
        let (Some(id), Ok(name), Ok(used)) = (
            id,
            fs::read_to_string(folder.join("comm")),
            fs::read_to_string(folder.join("schedstat")),
        ) else {
            continue;
        };
        let nanos = used.split(' ').next().and_then(|nanos| nanos.parse().ok());
        let nanos = nanos.ok_or_else(|| io::Error::other("threads' times are not told here"))?;
        threads.insert(id, Thread { name: name.trim().to_owned(), nanos });
    }
    Ok(threads)
}

/// Whose thread it is, in a validator.
fn station(name: &str) -> Option<Station> {
    match name {
        "net" => Some(Station::Net),
        "check-votes" => Some(Station::Votes),
        "machine" => Some(Station::Machine),
        "log" => Some(Station::Log),
        "execute" => Some(Station::Execution),
        _ if name.starts_with("check-bulk") => Some(Station::Checks),
        _ => None,
    }
}

/// How long the committee may take to be reached.
const CONNECTING: Duration = Duration::from_secs(15);
