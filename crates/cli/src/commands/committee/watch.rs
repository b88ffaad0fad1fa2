//! `quorate committee watch`: how far a change that was brought has come.

use super::OfChange;
use crate::commands::status::Keys;
use crate::failure::{CommandResult, Failure};
use crate::{output, signals};
use clap::Args;
use quorate_lab::http::Door;
use quorate_lab::status::{ValidatorStatus, ask_all};
use quorate_node::Layout;
use quorate_types::ReplicaId;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks, and for an answer.
const INTERVAL: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_secs(2);

/// Follow a change until every validator is in the epoch that it begins
///
/// Asks each validator for its status, and prints a line whenever one goes on: the epoch that it is
/// in, its last height, and whether others still fetch what they begin with from it, so that it
/// must not be stopped yet. Exit code 0: all are in the next epoch. 1: not all within --timeout, or
/// until Ctrl-C, and who is not is said.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
    /// Addresses of the validators' status: those who leave and newcomers, too. By default those of
    /// a testnet's folder
    #[arg(long, value_name = "ADDRESS", num_args = 1..)]
    http: Vec<String>,
    #[command(flatten)]
    keys: Keys,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    timeout: u64,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let epoch = self.change.load()?.signed.change.file.epoch.0;
        let doors = self.doors()?;
        let addresses: Vec<String> = doors.iter().map(Door::name).collect();
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let deadline = Instant::now() + Duration::from_secs(self.timeout);
        let mut before = vec![None; addresses.len()];
        loop {
            let looks = ask_all(&doors, TIMEOUT).into_iter();
            let now: Vec<_> = looks
                .map(|look| look.map(|status| Place::of(&status)).unwrap_or_default())
                .collect();
            for ((address, place), before) in addresses.iter().zip(&now).zip(&mut before) {
                if !before.as_ref().is_some_and(|before| place.is_like(before)) {
                    self.tell(address, place);
                }
                *before = Some(place.clone());
            }
            let late: Vec<&str> = (addresses.iter().zip(&now))
                .filter(|(_, place)| place.epoch.is_none_or(|at| at < epoch))
                .map(|(address, _)| address.as_str())
                .collect();
            if late.is_empty() {
                if !self.change.json {
                    output::line(&format!("All are in epoch {epoch}."));
                }
                return Ok(());
            }
            if interrupted.load(Ordering::Relaxed) || Instant::now() >= deadline {
                let late = late.join(", ");
                return Err(Failure::run(format!("not in epoch {epoch} yet: {late}")));
            }
            thread::sleep(INTERVAL);
        }
    }

    fn doors(&self) -> Result<Vec<Door>, Failure> {
        if !self.http.is_empty() {
            return self.keys.doors_at(&self.http);
        }
        self.keys.doors_in(&Layout::folder_of(&self.change.source.committee()))
    }

    fn tell(&self, address: &str, place: &Place) {
        if self.change.json {
            output::line(&place.to_json(address).to_string());
        } else {
            output::line(&format!("{address}  {}", place.describe()));
        }
    }
}

/// Where a validator is; nothing of one that does not answer.
#[derive(Clone, Debug, Default)]
struct Place {
    epoch: Option<u64>,
    member: Option<ReplicaId>,
    executed: u64,
    must_not_stop: bool,
}

impl Place {
    fn of(status: &ValidatorStatus) -> Self {
        let config = &status.config;
        Self {
            epoch: Some(config.epoch),
            member: (!config.learner).then_some(ReplicaId(status.id)),
            executed: status.executed,
            must_not_stop: status.must_not_stop,
        }
    }

    /// Whether nothing is new but the height.
    fn is_like(&self, other: &Self) -> bool {
        let without_height = |place: &Self| (place.epoch, place.member, place.must_not_stop);
        without_height(self) == without_height(other)
    }

    fn describe(&self) -> String {
        let Some(epoch) = self.epoch else { return "does not answer".to_owned() };
        let role = self.member.map_or("learner".to_owned(), |member| member.to_string());
        let height = self.executed;
        let served = "; others fetch from it: do not stop it yet";
        let served = if self.must_not_stop { served } else { "" };
        format!("epoch {epoch}, {role}, at h{height}{served}")
    }

    fn to_json(&self, address: &str) -> Value {
        json!({
            "http": address,
            "epoch": self.epoch,
            "member": self.member,
            "executed": self.executed,
            "must_not_stop": self.must_not_stop,
        })
    }
}
