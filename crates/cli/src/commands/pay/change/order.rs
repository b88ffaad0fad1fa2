//! `quorate pay change submit` and `watch`: a change in the committee's order.

use super::super::place::{CommitteePlace, NetworkPlace};
use super::Loaded;
use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_node::payments::{BorderWatch, ReleaseCommittee};
use quorate_payments::Network;
use quorate_payments::change::{Border, Change};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two looks at the order.
const POLL: Duration = Duration::from_millis(250);

/// Have a change ordered by the committee
///
/// From then on everything goes by itself: the present authorities close and report what they
/// locked, those of the next epoch fetch the reports and begin, newcomers that run among them. The
/// first change that is ordered is the one; submitted again, it stays so.
#[derive(Debug, Args)]
pub(super) struct Submit {
    /// File of the change, signed by enough
    change: PathBuf,
    #[command(flatten)]
    ordered: Ordering,
}

/// Watch how the next epoch begins
///
/// Exit code 0: a quorum of its authorities votes; whoever leaves may stop. 1: not within the
/// timeout, or another change was ordered in its place.
#[derive(Debug, Args)]
pub(super) struct Watch {
    /// File of the change
    change: PathBuf,
    #[command(flatten)]
    ordered: Ordering,
    /// Print how it stands in the end as JSON
    #[arg(long)]
    json: bool,
}

/// Where a change is ordered, and how long that may take.
#[derive(Debug, Args)]
struct Ordering {
    #[command(flatten)]
    network: NetworkPlace,
    #[command(flatten)]
    committee: CommitteePlace,
    /// Longest wait, in seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl Ordering {
    fn connect(&self, network: &Network) -> Result<ReleaseCommittee, Failure> {
        let beside = self.network.path(Path::new("."))?;
        let Some(path) = self.committee.file(&beside)? else {
            return Err(Failure::usage(format!(
                "there is no committee file beside {}: name it by --committee, or close and begin by hand",
                beside.display()
            )));
        };
        ReleaseCommittee::check(&path, network).map_err(Failure::usage)?;
        let committee = ReleaseCommittee::connect(&path).map_err(Failure::run)?;
        Ok(committee.with_timeout(Duration::from_secs(self.timeout)))
    }
}

impl Submit {
    pub(super) fn run(&self) -> CommandResult {
        let loaded = Loaded::read_any(&self.change, &self.ordered.network)?;
        if let Some(missing) = loaded.missing() {
            return Err(Failure::run(missing));
        }
        let committee = self.ordered.connect(&loaded.present)?;
        if let Err(reason) = committee.submit_change(&loaded.change).map_err(Failure::run)? {
            let mut watch = BorderWatch::new(committee, loaded.change.next.epoch);
            let seen = watch.look().map_err(Failure::run)?;
            if !seen.is_some_and(|(change, _)| is_same(change, &loaded.change)) {
                return Err(Failure::run(reason));
            }
        }
        output::line(&format!(
            "It is ordered: epoch {} ends. `{} pay change watch {}` shows how the next one begins.",
            loaded.present.epoch().0,
            output::program(),
            self.change.display()
        ));
        Ok(())
    }
}

fn is_same(one: &Change, other: &Change) -> bool {
    one.next.digest() == other.next.digest()
}

impl Watch {
    pub(super) fn run(&self) -> CommandResult {
        let loaded = Loaded::read_any(&self.change, &self.ordered.network)?;
        let committee = self.ordered.connect(&loaded.present)?;
        let mut watch = BorderWatch::new(committee, loaded.change.next.epoch);
        let until = Instant::now() + Duration::from_secs(self.ordered.timeout);
        let mut told = String::new();
        loop {
            let seen = watch.look().map_err(Failure::run)?;
            if let Some((change, _)) = seen
                && !is_same(change, &loaded.change)
            {
                return Err(Failure::run("another change to this epoch was ordered first"));
            }
            let progress = seen.map(|(_, border)| Progress::of(&loaded, border));
            let is_over = Instant::now() >= until;
            let words = describe(progress.as_ref());
            if !self.json && words != told {
                output::line(&words);
                told = words;
            }
            match progress {
                Some(progress) if progress.has_begun || is_over => {
                    return self.end(&progress.json(), progress.has_begun);
                }
                None if is_over => return self.end(&json!({ "ordered": false }), false),
                _ => std::thread::sleep(POLL),
            }
        }
    }

    fn end(&self, stands: &Value, has_begun: bool) -> CommandResult {
        if self.json {
            output::json(stands);
        }
        if has_begun { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
    }
}

/// Names of authorities' shards, and how far the border has come.
struct Progress {
    epoch: u64,
    reported: Vec<String>,
    entered: Vec<String>,
    missing: Vec<String>,
    has_begun: bool,
}

impl Progress {
    fn of(loaded: &Loaded, border: &Border) -> Self {
        let next = &loaded.next;
        let name = |authority: usize, shard: u16| match next.shards() {
            1 => authority.to_string(),
            _ => format!("{authority}.{shard}"),
        };
        let shards = || 0..next.shards();
        let closings = shards().flat_map(|shard| border.closings(shard));
        let entered = |shard| border.entered(shard).map(move |one| (one.index(), shard));
        let entered: Vec<(usize, u16)> = shards().flat_map(entered).collect();
        let all =
            shards().flat_map(|shard| (0..next.committee().size()).map(move |one| (one, shard)));
        let missing = all.filter(|place| !entered.contains(place));
        Self {
            epoch: next.epoch().0,
            reported: closings.map(|one| name(one.authority.index(), one.shard)).collect(),
            missing: missing.map(|(one, shard)| name(one, shard)).collect(),
            entered: entered.iter().map(|(one, shard)| name(*one, *shard)).collect(),
            has_begun: border.has_begun(next.shards(), next.committee().weights()),
        }
    }

    fn json(&self) -> Value {
        json!({
            "ordered": true,
            "epoch": self.epoch,
            "reported": self.reported,
            "entered": self.entered,
            "missing": self.missing,
            "has_begun": self.has_begun,
        })
    }
}

fn describe(progress: Option<&Progress>) -> String {
    let Some(progress) = progress else { return "The change is not ordered yet.".into() };
    let list = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let Progress { epoch, reported, entered, missing, .. } = progress;
    let (reported, entered, missing) = (list(reported), list(entered), list(missing));
    if progress.has_begun {
        let rest = if progress.missing.is_empty() {
            String::new()
        } else {
            format!(" Still to come: {missing}.")
        };
        format!(
            "Epoch {epoch} has begun: authorities {entered} vote.{rest} Whoever leaves may stop."
        )
    } else {
        format!("Ordered. Reports of authorities {reported}; voting in epoch {epoch}: {entered}.")
    }
}
