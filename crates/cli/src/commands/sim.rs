//! `quorate sim`: seeds in virtual time.

mod campaign;
mod crash_points;
mod mutants;
mod payments;
mod smallest;
mod twins;

use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use campaign::Campaign;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mutants::MutantName;
use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::crash_points::{Options as CrashOptions, Role};
use quorate_sim::mutants::Mutant;
use quorate_sim::twins::is_plan_file;
use quorate_sim::{Report, Scenario, run, run_many};
use quorate_types::Weights;
use std::path::PathBuf;
use std::time::Instant;

/// Search seeds of the simulator for a violation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate sim --seeds 1000           a thousand scenarios with crashes, partitions and liars\n  \
    quorate sim --seed 17              one of them again\n  \
    quorate sim --crash-points         one replica, crashed at each of its steps in every way\n  \
    quorate sim --crash-points --changes\n                                     \
                                       the same over a change of committee\n  \
    quorate sim --weights 4,4,4,4,1,1,1 --twins\n                                     \
    members weigh differently, all that may fail are twins\n  \
    quorate sim --mutant ChainedDoubleVote --seeds 200\n                                     \
    a rule left out: must fail (in builds with --features mutants)\n  \
    quorate sim --replay sim-failures/seed-17.toml\n                                     \
    a scenario from its file, as the smallest one of a failure\n  \
    quorate sim --changes --seeds 1000\n                                     \
    committees that change their members and protocols while they serve\n  \
    quorate sim --twins-scenarios 100000\n                                     \
    protocol machines alone: one member is two, links change each view\n  \
    quorate sim --twins-scenarios 10000 --changes\n                                     \
    the same over a change of committee\n  \
    quorate sim --payments --seeds 2000\n                                     \
    payments without consensus: authorities, payers and thieves")]
pub(crate) struct Options {
    /// Number of seeds to run
    #[arg(long, default_value_t = 100, conflicts_with = "seed")]
    seeds: u64,
    /// First seed of the run
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Run this seed alone
    #[arg(long)]
    seed: Option<u64>,
    /// Number of threads; by default one a core
    #[arg(long)]
    threads: Option<usize>,
    /// Leave out a safety rule, to see that its absence is noticed; `list` names all of them
    #[arg(long, value_name = "NAME")]
    mutant: Option<MutantName>,
    /// Protocol that orders: jolteon, hotstuff (chained), hotstuff-basic, pbft, linear-pbft,
    /// linear-pbft-fast or sbft
    #[arg(long, default_value_t, conflicts_with = "replay")]
    protocol: ProtocolKind,
    /// Pass over leaders whose last turns decided nothing
    #[arg(long, conflicts_with_all = ["replay", "twins_scenarios", "crash_points"])]
    leader_reputation: bool,
    /// Draw the settings of ablation studies too: turns of several views, small blocks, requests
    /// ordered twice, chains that travel with messages
    #[arg(long, conflicts_with_all = ["replay", "twins_scenarios", "crash_points"])]
    ablations: bool,
    /// Replace the Byzantine members by twins: two machines with one key
    #[arg(long)]
    twins: bool,
    /// Replace the Byzantine members by as many as are tolerated that all behave so, as in
    /// certificate-flood; a wrong name lists all
    #[arg(long, value_name = "NAME", conflicts_with_all = ["twins", "replay", "twins_scenarios", "crash_points"])]
    behaviour: Option<Behaviour>,
    /// Weights of the members' votes, as in 3,1,1,1, instead of what the seed draws
    #[arg(long, value_name = "W,W,...")]
    weights: Option<Weights>,
    /// Add slow disks and power cuts of the whole committee
    #[arg(long)]
    storm: bool,
    /// Make each scenario a few seconds long, with half of the load and links that are always bad
    #[arg(long)]
    short: bool,
    /// Keep next to no log and take snapshots often; replicas are away for long, one loses its
    /// bodies
    #[arg(long)]
    retention: bool,
    /// Add a learner, which is no member: it comes late, goes now and then, and may lose its disk
    #[arg(long, conflicts_with_all = ["replay", "twins_scenarios", "crash_points"])]
    learner: bool,
    /// Change the committee of each third seed while it serves, once or several times: other
    /// members, indices, weights, protocols or settings from one epoch to the next. With
    /// --crash-points: of a run in which a member leaves and a learner takes a place. With
    /// --twins-scenarios: each goes on to a second epoch, with another committee
    #[arg(long, conflicts_with_all = ["replay"])]
    changes: bool,
    /// Run the scenario in this file, of a swarm or of Twins
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "seed", "from", "mutant", "twins", "weights", "storm", "retention", "short"])]
    replay: Option<PathBuf>,
    /// Run so many scenarios of Twins instead of seeds: machines of the protocol without engine or
    /// disk
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["seeds", "seed", "replay", "twins", "weights", "storm", "retention", "short"])]
    twins_scenarios: Option<u64>,
    /// Longest search for the smallest scenario that fails like the first broken seed, in seconds;
    /// 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    shrink: u64,
    /// Directory for the smallest scenario of a failure
    #[arg(long, value_name = "DIR", default_value = "sim-failures")]
    out: PathBuf,
    /// Crash a replica at each of its steps in every way, and offer it conflicts, instead of
    /// running seeds
    #[arg(long, conflicts_with_all = ["seeds", "from", "seed", "replay", "twins_scenarios", "twins", "weights", "storm", "retention", "short"])]
    crash_points: bool,
    /// Simulate payments without consensus instead: authorities crash and lie, owners spend coins
    /// twice
    #[arg(long, conflicts_with_all = ["replay", "twins_scenarios", "crash_points", "protocol", "leader_reputation", "ablations", "twins", "behaviour", "weights", "storm", "short", "retention", "learner", "changes"])]
    payments: bool,
    /// Show an authority so many payments, and compare its answers with a model's, instead of
    /// running seeds
    #[arg(long, value_name = "COUNT", conflicts_with_all = [
        "payments", "seeds", "from", "replay", "twins_scenarios", "crash_points", "protocol",
        "leader_reputation", "ablations", "twins", "behaviour", "weights", "storm", "short",
        "retention", "learner", "changes",
    ])]
    payments_model: Option<u64>,
    /// Run this crash point alone
    #[arg(long, requires = "crash_points")]
    point: Option<u64>,
    /// With --crash-points --changes: crash the host that has this part in the change alone
    #[arg(long, requires = "crash_points", requires = "changes")]
    role: Option<Role>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let mutant = match &self.mutant {
            Some(MutantName::List) => {
                output::line(&mutants::names().join("\n"));
                return Ok(());
            }
            Some(MutantName::One(mutant)) => Some(*mutant),
            None => None,
        };
        if mutant.is_some() && !quorate_crypto::mutants::ENABLED {
            return Err(Failure::usage(
                "this build leaves out no rules; use \
                 `cargo run --release -p quorate-cli --features mutants -- sim …`",
            ));
        }
        if self.crash_points {
            let (only, protocol, threads) = (self.point, self.protocol, self.threads());
            let options = CrashOptions { threads, only, every: 1, protocol, border: None, mutant };
            return crash_points::run(&options, &self.roles(), self.json);
        }
        if let Some(count) = self.payments_model {
            return payments::run_model(self.seed.unwrap_or(self.from), count, mutant, self.json);
        }
        if self.payments {
            let out = (self.shrink > 0).then_some(self.out.as_path());
            let (threads, seconds) = (self.threads(), self.shrink);
            let search = payments::Search { threads, mutant, seconds, out };
            return search.run(self.range()?, self.json);
        }
        if let Some(count) = self.twins_scenarios {
            let out = (self.shrink > 0).then_some(self.out.as_path());
            let (protocol, changes) = (self.protocol, self.changes);
            let (from, threads) = (self.from, self.threads());
            let search = twins::Search { protocol, changes, from, count, threads, mutant, out };
            return search.run(self.json);
        }
        if let Some(file) = &self.replay {
            let text = smallest::read(file)?;
            if is_plan_file(&text) {
                return twins::replay(file, &text, self.json);
            }
            if quorate_sim::payments::Scenario::is_file(&text) {
                return payments::replay(file, &text, self.json);
            }
        }
        let begun = Instant::now();
        let (first, reports) = match &self.replay {
            Some(file) => self.replay_file(file)?,
            None => self.run_seeds(mutant)?,
        };
        let took = begun.elapsed();
        let mut campaign = Campaign::new(first, reports, took, self.threads());
        if self.shrink > 0 && self.replay.is_none() {
            campaign.smallest = self.smallest(&campaign, mutant)?;
        }
        if self.json {
            output::json(&campaign.to_json());
        } else {
            output::line(&campaign.to_string());
        }
        if campaign.broken().next().is_some() { Err(Failure::Reported(Code::Run)) } else { Ok(()) }
    }

    /// Of the first broken seed.
    fn smallest(
        &self,
        campaign: &Campaign,
        mutant: Option<Mutant>,
    ) -> Result<Option<smallest::Smallest<Scenario>>, Failure> {
        let Some((report, failure)) = campaign.broken().next() else { return Ok(None) };
        let scenario = self.draw(report.seed, mutant);
        let file = self.out.join(format!("seed-{}.toml", report.seed));
        smallest::find(&scenario, failure, self.shrink, &file)
    }

    fn replay_file(&self, file: &std::path::Path) -> Result<(u64, Vec<Report>), Failure> {
        let scenario = smallest::load(file)?;
        Ok((scenario.seed, vec![run(&scenario)]))
    }

    fn run_seeds(&self, mutant: Option<Mutant>) -> Result<(u64, Vec<Report>), Failure> {
        let seeds = self.range()?;
        Ok((seeds.start, self.run_all(seeds, |seed| self.draw(seed, mutant))))
    }

    fn range(&self) -> Result<std::ops::Range<u64>, Failure> {
        let (first, count) = self.seed.map_or((self.from, self.seeds), |seed| (seed, 1));
        if count == 0 {
            return Err(Failure::usage("--seeds must be at least 1"));
        }
        let last = first.checked_add(count).ok_or_else(|| Failure::usage("seeds end at 2^64"))?;
        Ok(first..last)
    }

    fn draw(&self, seed: u64, mutant: Option<Mutant>) -> Scenario {
        let mut scenario = match &self.weights {
            Some(weights) => Scenario::weighted(seed, weights.clone()),
            None => Scenario::from_seed(seed),
        };
        scenario = scenario.running(self.protocol);
        if self.leader_reputation {
            scenario = scenario.with_leader_reputation();
        }
        if self.ablations {
            scenario = scenario.with_ablations();
        }
        if self.short {
            scenario = scenario.short();
        }
        if self.twins {
            scenario = scenario.with_twins();
        }
        if let Some(behaviour) = self.behaviour {
            scenario = scenario.lying(behaviour);
        }
        if self.retention {
            scenario = scenario.with_retention();
        }
        if self.storm {
            scenario = scenario.with_storm();
        }
        if self.learner {
            scenario = scenario.with_learner();
        }
        if self.changes {
            scenario = scenario.with_changes();
        }
        match mutant {
            Some(mutant) => scenario.with_mutant(mutant),
            None => scenario,
        }
    }

    fn run_all(
        &self,
        seeds: std::ops::Range<u64>,
        draw: impl Fn(u64) -> Scenario + Sync,
    ) -> Vec<Report> {
        let bar = ProgressBar::new(seeds.end - seeds.start);
        bar.set_style(
            ProgressStyle::with_template(
                "{bar:30} {pos}/{len} seeds · {per_sec} · {eta} left {msg}",
            )
            .expect("a constant that parses"),
        );
        let mut broken = 0;
        let reports = run_many(seeds, self.threads(), draw, |report| {
            bar.inc(1);
            if let Err(failure) = &report.verdict {
                broken += 1;
                bar.set_message(format!("· {broken} broken"));
                bar.println(format!(
                    "seed {} breaks {}: {}",
                    report.seed, failure.oracle, failure.replay
                ));
            }
        });
        bar.finish_and_clear();
        reports
    }

    /// Hosts whose steps are crash points, by their part in a change.
    fn roles(&self) -> Vec<Role> {
        match self.role {
            Some(role) => vec![role],
            None if self.changes => Role::ALL.to_vec(),
            None => Vec::new(),
        }
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores).max(1)
    }
}
