//! The committee under test: its folder, its processes and how to ask them.

use super::BenchError;
use super::changes;
use super::config::BenchConfig;
use super::health::HealthIssue;
use super::siege::Doors;
use crate::processes::{Processes, Program, StartOptions};
use crate::status::{ValidatorStatus, ask_all};
use quorate_node::config::load_committee;
use quorate_node::ports::free_ports;
use quorate_node::{NodeConfig, Testnet, TestnetPlan};
use quorate_types::{Committee as Members, ReplicaId};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time for all validators together to come up.
const COMING_UP: Duration = Duration::from_secs(30);

/// Time for all validators to execute what was ordered, and for which they must then stay there.
const LEVEL_WITHIN: Duration = Duration::from_secs(60);
const LEVEL_FOR: Duration = Duration::from_millis(1_000);

/// Time for one answer, after which it counts as silence.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Lines of a validator's log shown when it fails.
const LOG_LINES: usize = 12;

/// A local committee of processes.
#[derive(Debug)]
pub(super) struct Committee {
    /// First, so that the processes end before their folder goes.
    pub(super) processes: Processes,
    testnet: Testnet,
    place: Place,
    /// Members that do not run.
    absent: Vec<u16>,
    /// File that names the links that are cut.
    cut_links: PathBuf,
}

/// Folder of the committee's files.
#[derive(Debug)]
enum Place {
    /// Removed with the committee.
    Temporary(TempDir),
    /// Somebody wants to keep it.
    Kept,
}

impl Committee {
    /// Writes the files of a new committee and starts its validators.
    pub(super) fn create(config: &BenchConfig) -> Result<Self, BenchError> {
        let (place, folder) = claim(config)?;
        let system = |what| move |source| BenchError::System { what, source };
        let gateways = if config.reads > 0 { config.validators } else { 0 };
        let newcomers = config.newcomers().map_err(BenchError::Config)?;
        let ports = 2 * (config.validators + newcomers) + gateways;
        let base_port = free_ports(ports).map_err(system("find free ports"))?;
        let plan = TestnetPlan {
            name: format!("bench-{}", config.load.seed),
            members: usize::from(config.validators),
            learners: usize::from(newcomers),
            weights: config.weights.clone(),
            redundancy: config.redundancy,
            scheme: config.scheme,
            keys: config.members.clone(),
            base_port,
            durability: config.durability,
            retention_bytes: Some(config.retention_bytes),
            archive: config.archive,
            service: config.service.to_string(),
            genesis: config.genesis().map(|genesis| genesis.to_json()),
            settings: config.settings.clone(),
            emulation: config.emulation.clone(),
            gateways: config.reads > 0,
            ..TestnetPlan::default()
        };
        let testnet = with_newcomers(Testnet::create(&folder, &plan)?)?;
        let absent = config.absent();
        let cut_links = folder.join("cut-links");
        let options = StartOptions {
            absent: absent.clone(),
            liars: config.liars(),
            cut_links: (!config.cuts.is_empty()).then(|| cut_links.clone()),
            descriptors: config.descriptors,
        };
        let program = Program::Validator(config.executable.clone());
        let processes = Processes::start_with(program, &testnet.configs, options);
        let processes = processes.map_err(BenchError::starting)?;
        Ok(Self { processes, testnet, place, absent, cut_links })
    }

    /// Cuts the link between two validators, in both directions.
    pub(super) fn cut(&self, one: u16, other: u16) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(&self.cut_links)?;
        writeln!(file, "{one}-{other}")
    }

    /// Reads the committee file.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub(super) fn members(&self, config: &BenchConfig) -> Result<Arc<Members>, BenchError> {
        let loaded = load_committee(&self.testnet.committee, config.settings.comparison.key_cache);
        loaded.map(Arc::new).map_err(|error| BenchError::Client(error.to_string()))
    }

    /// Addresses at which the validators show their status.
    pub(super) fn http(&self) -> &[String] {
        &self.testnet.http
    }

    /// The processes as a change of the committee needs them.
    pub(super) fn changing<'a>(&'a self, dead: &'a [u16]) -> changes::Processes<'a> {
        changes::Processes { configs: &self.testnet.configs, http: &self.testnet.http, dead }
    }

    /// Addresses at which strangers reach a validator: for peers and clients, and over HTTP.
    pub(super) fn doors(&self, members: &Members, validator: u16) -> Doors {
        let index = usize::from(validator);
        let peers = members.address(ReplicaId(validator)).unwrap_or_default().to_owned();
        let gateway = self.testnet.gateways.get(index).cloned();
        Doors {
            peers,
            http: gateway.into_iter().chain([self.testnet.http[index].clone()]).collect(),
        }
    }

    /// Addresses of their gateways, if they have any.
    pub(super) fn gateways(&self) -> &[String] {
        &self.testnet.gateways
    }

    /// Asks every validator how it is but those that cannot answer: waiting for them would be in
    /// vain.
    pub(super) fn look_but(&self, silent: &[u16]) -> Vec<Option<ValidatorStatus>> {
        let ids = || (0..).zip(&self.testnet.http);
        let asked =
            ids().filter(|(id, _)| !silent.contains(id)).map(|(_, address)| address.clone());
        let mut answers = ask_all(&asked.collect::<Vec<_>>(), TIMEOUT).into_iter();
        let answer = |(id, _): (u16, _)| {
            if silent.contains(&id) { None } else { answers.next().and_then(Result::ok) }
        };
        ids().map(answer).collect()
    }

    /// Waits until every validator is connected to every other, and has heard from them that it may
    /// sign: before that a committee orders nothing, and views that wait for it time out.
    pub(super) fn await_ready(&mut self, interrupted: &AtomicBool) -> Result<(), BenchError> {
        let deadline = Instant::now() + COMING_UP;
        let members = self.testnet.http.len() - self.testnet.learners.len();
        let others = (members - self.absent.len()) as u64 - 1;
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            self.check_alive()?;
            let looks = self.look_but(&self.absent);
            let is_absent = |id: usize| self.absent.iter().any(|absent| usize::from(*absent) == id);
            let ready = |look: &Option<ValidatorStatus>| {
                look.as_ref().is_some_and(|status| {
                    status.peers_connected >= others && !status.witnesses.are_awaited()
                })
            };
            let late = (0..looks.len()).find(|id| !is_absent(*id) && !ready(&looks[*id]));
            let Some(late) = late else { return Ok(()) };
            if Instant::now() >= deadline {
                let (seconds, state) = (COMING_UP.as_secs(), describe(&looks));
                let error = BenchError::NotConnected { seconds, state };
                return Err(self.explain(error, u16::try_from(late).unwrap_or(0)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks that no validator ended by itself.
    ///
    /// # Errors
    /// The first that did.
    pub(super) fn check_alive(&mut self) -> Result<(), BenchError> {
        let Some((id, status)) = self.processes.find_exited() else { return Ok(()) };
        let id = u16::try_from(id).expect("validators are counted in 16 bits");
        let issue = HealthIssue::Exited(id, status.to_string());
        Err(self.explain(BenchError::Unwell(issue), id))
    }

    /// Waits until every validator has executed the same, and no more for some looks. Returns the
    /// first moment at which it was so; `what` came before.
    ///
    /// # Errors
    /// When that takes too long, or a validator ends.
    pub(super) fn await_level(
        &mut self,
        what: &'static str,
        interrupted: &AtomicBool,
    ) -> Result<Instant, BenchError> {
        let (began, mut since) = (Instant::now(), None);
        while began.elapsed() < LEVEL_WITHIN {
            if interrupted.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            self.check_alive()?;
            let looks = self.look_but(&self.absent);
            let at = level(&looks, &self.absent);
            since = match (at, since) {
                (Some(at), Some((moment, before))) if at == before => Some((moment, at)),
                (at, _) => at.map(|at| (Instant::now(), at)),
            };
            match since {
                Some((moment, _)) if moment.elapsed() >= LEVEL_FOR => return Ok(moment),
                _ => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        Err(BenchError::NotLevel { seconds: LEVEL_WITHIN.as_secs(), what })
    }

    /// Folder of all validators' files.
    pub(super) fn folder(&self) -> &Path {
        &self.testnet.directory
    }

    /// Disk space of all validators together, in bytes.
    pub(super) fn disk_bytes(&self) -> u64 {
        (0..self.testnet.configs.len()).map(|index| self.processes.disk_bytes(index)).sum()
    }

    /// Adds what the validator said last.
    pub(super) fn explain(&self, error: BenchError, validator: u16) -> BenchError {
        let log = self.processes.log_tail(usize::from(validator), LOG_LINES);
        BenchError::Explained { error: Box::new(error), validator, log }
    }

    /// Ends the processes, and keeps the files if they were asked for, or the run failed and
    /// somebody may want to know why.
    pub(super) fn dismiss<T>(
        mut self,
        result: Result<T, BenchError>,
        keep_failed: bool,
    ) -> Result<T, BenchError> {
        self.processes.stop();
        if !keep_failed {
            return result;
        }
        let failed = |error: &BenchError| !matches!(error, BenchError::Interrupted);
        match (result, self.place) {
            (Err(error), Place::Temporary(folder)) if failed(&error) => {
                Err(BenchError::Kept { error: Box::new(error), kept: folder.keep() })
            }
            (Err(error), Place::Kept) if failed(&error) => {
                Err(BenchError::Kept { error: Box::new(error), kept: self.testnet.directory })
            }
            (result, _) => result,
        }
    }
}

/// The testnet with its learners among the processes, behind the members.
fn with_newcomers(mut testnet: Testnet) -> Result<Testnet, BenchError> {
    for learner in &testnet.learners {
        let config = NodeConfig::load(&learner.config);
        let config = config.map_err(|error| BenchError::Client(error.to_string()))?;
        testnet.configs.push(learner.config.clone());
        testnet.http.push(config.http);
    }
    Ok(testnet)
}

fn claim(config: &BenchConfig) -> Result<(Place, PathBuf), BenchError> {
    if let Some(folder) = &config.directory {
        return Ok((Place::Kept, folder.clone()));
    }
    let made = TempDir::with_prefix("quorate-bench-");
    let folder =
        made.map_err(|source| BenchError::System { what: "make a temporary folder", source })?;
    let path = folder.path().to_owned();
    Ok((Place::Temporary(folder), path))
}

/// Operations that all but the absent have executed, if these are as many of each.
fn level(looks: &[Option<ValidatorStatus>], absent: &[u16]) -> Option<u64> {
    let present = (0..).zip(looks).filter(|(id, _)| !absent.contains(id));
    let mut each = present.map(|(_, look)| Some(look.as_ref()?.operations));
    let first = each.next()??;
    each.all(|other| other == Some(first)).then_some(first)
}

fn describe(looks: &[Option<ValidatorStatus>]) -> String {
    let one = |(id, look): (usize, &Option<ValidatorStatus>)| match look {
        Some(status) if status.witnesses.are_awaited() => {
            format!("validator {id} waits to hear that it may sign")
        }
        Some(status) => format!("validator {id} has {} peers", status.peers_connected),
        None => format!("validator {id} is silent"),
    };
    looks.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}
