//! `quorate sim --twins-scenarios`, and the replay of what it finds.

use super::smallest;
use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_engine::ProtocolKind;
use quorate_report::text::thousands;
use quorate_sim::mutants::{Active, Mutant};
use quorate_sim::oracles::Violation;
use quorate_sim::twins::{
    Campaign, Found, Ground, Outcome, Plan, PlanFile, PlanSize, ShrunkPlan, run_plan, run_plans,
    shrink_plan,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Broken plans shown in full.
const SHOWN_MAX: usize = 3;

/// Parameters of a search for a broken plan.
pub(super) struct Search<'a> {
    /// Protocol that the machines run.
    pub(super) protocol: ProtocolKind,
    /// Plans go on to a second epoch, with another committee.
    pub(super) changes: bool,
    /// The first plan's number.
    pub(super) from: u64,
    /// Number of plans to run.
    pub(super) count: u64,
    /// On so many threads.
    pub(super) threads: usize,
    /// Rule that is switched off.
    pub(super) mutant: Option<Mutant>,
    /// Directory for the smallest plan that fails like the first broken one; `None`: not looked
    /// for.
    pub(super) out: Option<&'a Path>,
}

/// Result of the search.
struct Searched<'a> {
    search: &'a Search<'a>,
    campaign: Campaign,
    seconds: f64,
    smallest: Option<Smallest>,
}

/// Of the first broken plan, the smallest one found that fails like it.
struct Smallest {
    before: PlanSize,
    shrunk: ShrunkPlan,
    file: PathBuf,
}

impl Search<'_> {
    /// Runs the plans.
    ///
    /// # Errors
    /// When there are none to run, a property was broken, or the smallest plan cannot be written.
    pub(super) fn run(&self, as_json: bool) -> CommandResult {
        let Self { from, count, .. } = *self;
        if count == 0 {
            return Err(Failure::usage("--twins-scenarios must be at least 1"));
        }
        let end = from.checked_add(count).ok_or_else(|| Failure::usage("numbers end at 2^64"))?;
        let begun = Instant::now();
        let campaign = self.run_all(from..end);
        let seconds = begun.elapsed().as_secs_f64();
        let smallest = match (campaign.found.first(), self.out) {
            (Some(found), Some(out)) => self.smallest(found, out)?,
            _ => None,
        };
        let result = Searched { search: self, campaign, seconds, smallest };
        if as_json {
            output::json(&result.to_json());
        } else {
            output::line(&result.to_text());
        }
        if result.campaign.broken > 0 { Err(Failure::Reported(Code::Run)) } else { Ok(()) }
    }

    fn run_all(&self, numbers: std::ops::Range<u64>) -> Campaign {
        let bar = ProgressBar::new(self.count);
        let template = "{bar:30} {pos}/{len} scenarios · {per_sec} · {eta} left {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("a constant that parses"));
        let mut broken = 0;
        let ground = || Ground::of(self.protocol);
        let draw = if self.changes { Plan::draw_changing } else { Plan::draw };
        let campaign = run_plans(numbers, self.threads, self.mutant, draw, ground, |part| {
            bar.inc(part.plans);
            broken += part.broken;
            if broken > 0 {
                bar.set_message(format!("· {broken} broken"));
            }
        });
        bar.finish_and_clear();
        campaign
    }

    fn smallest(&self, found: &Found, out: &Path) -> Result<Option<Smallest>, Failure> {
        let Found { plan, violation, .. } = found;
        let ground = Ground::of(self.protocol);
        let Some(shrunk) = shrink_plan(plan, self.mutant, violation.oracle, &ground) else {
            return Ok(None);
        };
        let file = out.join(format!("twins-{}.toml", plan.number));
        smallest::write(&file, &shrunk.to_text())?;
        Ok(Some(Smallest { before: PlanSize::of(plan), shrunk, file }))
    }
}

/// Runs the plan of a file again.
///
/// # Errors
/// When it is refused, leaves out a rule that this build cannot leave out, or breaks a property.
pub(super) fn replay(file: &Path, text: &str, as_json: bool) -> CommandResult {
    let name = file.display();
    let PlanFile { protocol, mutant, plan } =
        PlanFile::from_toml(text).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    smallest::needs_mutants(file, mutant)?;
    let _active = Active::set(mutant);
    let plan = Arc::new(plan);
    let outcome = run_plan(&plan, &Ground::of(protocol));
    if as_json {
        output::json(&outcome_json(&outcome));
    } else {
        output::line(&outcome_text(&plan, &outcome, file));
    }
    outcome.verdict.map_err(|_| Failure::Reported(Code::Run))
}

fn replay_command(file: &Path) -> String {
    format!("quorate sim --replay {}", file.display())
}

fn outcome_json(outcome: &Outcome) -> Value {
    let failure =
        |violation: &Violation| json!({ "oracle": violation.oracle, "text": violation.text });
    json!({
        "held": outcome.verdict.is_ok(),
        "failure": outcome.verdict.as_ref().err().map(failure),
        "commits": outcome.decided,
        "views": outcome.view.0,
        "timers": outcome.rings,
        "messages": outcome.messages,
        "trace_hash": hex::encode(outcome.trace.0),
    })
}

fn outcome_text(plan: &Plan, outcome: &Outcome, file: &Path) -> String {
    let verdict = match &outcome.verdict {
        Ok(()) => "every property held".to_owned(),
        Err(Violation { oracle, text }) => {
            format!("{oracle}: {text}\nto run it again: {}", replay_command(file))
        }
    };
    format!("{plan}{verdict}\n  trace {}", hex::encode(outcome.trace.0))
}

impl Searched<'_> {
    fn to_json(&self) -> Value {
        let Self { search, campaign, seconds, smallest } = self;
        let failure = |found: &Found| {
            json!({
                "number": found.plan.number,
                "oracle": found.violation.oracle,
                "text": found.violation.text,
                "replay": found.replay(search.mutant),
            })
        };
        json!({
            "from": search.from,
            "scenarios": campaign.plans,
            "threads": search.threads,
            "seconds": (seconds * 10.0).round() / 10.0,
            "held": campaign.plans - campaign.broken,
            "broken": campaign.broken,
            "failures": campaign.found.iter().map(failure).collect::<Vec<_>>(),
            "smallest": smallest.as_ref().map(Smallest::to_json),
            "commits": campaign.heights,
            "views": campaign.views,
            "timers": campaign.rings,
            "messages": campaign.messages,
            "combined_hash": hex::encode(campaign.hash().0),
        })
    }

    fn to_text(&self) -> String {
        let Self { search, campaign, seconds, smallest } = self;
        let mut text = String::new();
        for found in campaign.found.iter().take(SHOWN_MAX) {
            let Found { plan, violation, .. } = found;
            text.push_str(&format!(
                "scenario {} breaks {}: {}\n{plan}to run it again: {}\n\n",
                plan.number,
                violation.oracle,
                violation.text,
                found.replay(search.mutant),
            ));
        }
        if let Some(smallest) = smallest {
            text.push_str(&format!("{smallest}\n\n"));
        }
        text.push_str(&format!(
            "{} scenarios of Twins: {} held, {} broken; {seconds:.1} s on {} threads\n  \
             {} commits, {} views, {} timers, {} messages\n  trace of all: {}",
            thousands(campaign.plans),
            thousands(campaign.plans - campaign.broken),
            thousands(campaign.broken),
            search.threads,
            thousands(campaign.heights),
            thousands(campaign.views),
            thousands(campaign.rings),
            thousands(campaign.messages),
            hex::encode(campaign.hash().0),
        ));
        text
    }
}

impl Smallest {
    fn to_json(&self) -> Value {
        let size = |size: &PlanSize| {
            json!({
                "views": size.views,
                "obstacles": size.obstacles,
                "restarts": size.restarts,
                "twins": size.twins,
            })
        };
        json!({
            "file": self.file.display().to_string(),
            "replay": replay_command(&self.file),
            "runs": self.shrunk.runs,
            "trace_hash": hex::encode(self.shrunk.outcome.trace.0),
            "before": size(&self.before),
            "after": size(&PlanSize::of(&self.shrunk.file.plan)),
        })
    }
}

impl std::fmt::Display for Smallest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, shrunk, file } = self;
        let plan = &shrunk.file.plan;
        writeln!(f, "the smallest scenario found that fails like scenario {}:", plan.number)?;
        writeln!(f, "  from {before}")?;
        writeln!(f, "  to   {}, in {} runs", PlanSize::of(plan), shrunk.runs)?;
        for line in shrunk.to_text().lines() {
            writeln!(f, "  | {line}")?;
        }
        writeln!(f, "  trace {}", hex::encode(shrunk.outcome.trace.0))?;
        write!(f, "  to run it again: {}", replay_command(file))
    }
}
