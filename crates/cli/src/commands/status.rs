//! `quorate status`: validators side by side.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_lab::status::{ValidatorStatus, ask_all};
use quorate_lab::text::thousands;
use quorate_node::NodeConfig;
use serde_json::{Value, json};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a validator may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Hexadecimal digits of a root shown.
const ROOT_DIGITS: usize = 12;

/// Show how validators are, side by side.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate status net                                  all validators of a testnet\n  \
    quorate status --config net/validator-0/config.toml one of them\n  \
    quorate status --http 127.0.0.1:9100 10.0.0.2:9100  anywhere\n\n\
    `agrees` compares roots among validators that executed the same height.\n\
    Exit code 1: somebody is silent, or two validators disagree.")]
pub(crate) struct Options {
    /// A folder that `quorate testnet` wrote
    #[arg(conflicts_with_all = ["config", "http"])]
    directory: Option<PathBuf>,
    /// A validator's configuration file; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "http")]
    config: Vec<PathBuf>,
    /// Status addresses
    #[arg(long, value_name = "ADDRESS", num_args = 1..)]
    http: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let addresses = self.addresses()?;
        let entries = judge(&addresses, ask_all(&addresses, PATIENCE));
        if self.json {
            let entries: Vec<Value> = entries.iter().map(Entry::to_json).collect();
            output::json(&json!({ "validators": entries }));
        } else {
            output::line(&table(&entries));
        }
        if entries.iter().all(|entry| entry.standing.is_fine()) {
            Ok(())
        } else {
            Err(Failure::Reported)
        }
    }

    fn addresses(&self) -> Result<Vec<String>, Failure> {
        if !self.http.is_empty() {
            return Ok(self.http.clone());
        }
        let configs = match &self.directory {
            Some(directory) => configs_in(directory)?,
            None if self.config.is_empty() => configs_in(Path::new("."))?,
            None => self.config.clone(),
        };
        let http = |path: &PathBuf| NodeConfig::load(path).map(|config| config.http);
        configs.iter().map(http).collect::<Result<_, _>>().map_err(Failure::usage)
    }
}

/// The configurations of a testnet, in member order.
fn configs_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let config = |index| directory.join(format!("validator-{index}/config.toml"));
    let configs: Vec<_> = (0..).map(config).take_while(|path: &PathBuf| path.exists()).collect();
    if configs.is_empty() {
        return Err(Failure::usage(format!(
            "{} is not a testnet: there is no {}; name a folder that `quorate testnet` wrote, \
             or use --config or --http",
            directory.display(),
            config(0).display()
        )));
    }
    Ok(configs)
}

/// One line of the table.
struct Entry {
    address: String,
    status: Option<ValidatorStatus>,
    standing: Standing,
}

/// How a validator compares with the others.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    /// It has the root that all others at its height have.
    Agrees,
    /// Nobody else is at its height: so many heights behind the furthest.
    Behind(u64),
    /// Another validator has another root at the same height.
    Differs,
    /// It did not answer.
    Silent(String),
}

impl Standing {
    fn is_fine(&self) -> bool {
        matches!(self, Self::Agrees | Self::Behind(_))
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => f.write_str("yes"),
            Self::Behind(heights) => write!(f, "{heights} behind"),
            Self::Differs => f.write_str("NO: another root at this height"),
            Self::Silent(reason) => write!(f, "silent: {reason}"),
        }
    }
}

fn judge(addresses: &[String], answers: Vec<io::Result<ValidatorStatus>>) -> Vec<Entry> {
    let answered: Vec<ValidatorStatus> =
        answers.iter().filter_map(|answer| answer.as_ref().ok().cloned()).collect();
    let furthest = answered.iter().map(|status| status.executed).max().unwrap_or(0);
    let standing = |status: &ValidatorStatus| {
        let peers = || answered.iter().filter(|other| other.executed == status.executed);
        if peers().any(|other| other.root != status.root) {
            Standing::Differs
        } else if status.executed < furthest {
            Standing::Behind(furthest - status.executed)
        } else {
            Standing::Agrees
        }
    };
    let entry = |(address, answer): (&String, io::Result<ValidatorStatus>)| {
        let standing = match &answer {
            Ok(status) => standing(status),
            Err(error) => Standing::Silent(error.to_string()),
        };
        Entry { address: address.clone(), status: answer.ok(), standing }
    };
    addresses.iter().zip(answers).map(entry).collect()
}

impl Entry {
    fn to_json(&self) -> Value {
        json!({
            "address": self.address,
            "answers": self.status.is_some(),
            "agrees": !matches!(self.standing, Standing::Differs | Standing::Silent(_)),
            "standing": self.standing.to_string(),
            "status": self.status,
        })
    }

    /// `weighted`: with a column for what its vote weighs.
    fn to_row(&self, weighted: bool) -> Vec<String> {
        let Some(status) = &self.status else {
            let mut row = vec!["?".to_owned()];
            row.extend(std::iter::repeat_n("-".to_owned(), 6 + usize::from(weighted)));
            row.extend([self.standing.to_string(), self.address.clone()]);
            return row;
        };
        let mut row = vec![status.id.to_string()];
        row.extend(weighted.then(|| thousands(status.weight)));
        row.extend([
            thousands(status.view),
            thousands(status.decided),
            thousands(status.executed),
            thousands(status.operations),
            status.peers_connected.to_string(),
            status.root.chars().take(ROOT_DIGITS).collect(),
            self.standing.to_string(),
            self.address.clone(),
        ]);
        row
    }
}

fn table(entries: &[Entry]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    let weights: Vec<u64> =
        entries.iter().filter_map(|e| Some(e.status.as_ref()?.weight)).collect();
    let weighted = weights.iter().any(|weight| *weight != weights[0]);
    let rest = ["view", "height", "executed", "operations", "peers", "root", "agrees", "http"];
    table.set_header(["id"].into_iter().chain(weighted.then_some("weight")).chain(rest));
    for entry in entries {
        table.add_row(entry.to_row(weighted));
    }
    for column in table.column_iter_mut().take(6 + usize::from(weighted)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Standing, judge, table};
    use quorate_lab::status::ValidatorStatus;
    use std::io;

    fn at(id: u16, executed: u64, root: &str) -> io::Result<ValidatorStatus> {
        Ok(ValidatorStatus { id, executed, root: root.to_owned(), ..Default::default() })
    }

    #[test]
    fn roots_are_compared_at_equal_heights_only() {
        let addresses: Vec<String> = (0..5).map(|i| format!("127.0.0.1:910{i}")).collect();
        let silent = Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        let answers = vec![at(0, 9, "aa"), at(1, 9, "aa"), at(2, 7, "cc"), silent, at(4, 9, "aa")];
        let entries = judge(&addresses, answers);
        let standings: Vec<_> = entries.iter().map(|entry| entry.standing.clone()).collect();
        assert_eq!(standings[..3], [Standing::Agrees, Standing::Agrees, Standing::Behind(2)]);
        assert_eq!(standings[3], Standing::Silent("connection refused".to_owned()));
        assert!(table(&entries).contains("2 behind"));
    }

    #[test]
    fn weights_are_shown_when_they_differ() {
        let shown = |heavy| {
            let weighing = |id, weight| Ok(ValidatorStatus { id, weight, ..Default::default() });
            let addresses: Vec<String> = (0..3).map(|i| format!("127.0.0.1:910{i}")).collect();
            let silent = Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            table(&judge(&addresses, vec![weighing(0, heavy), weighing(1, 1), silent]))
        };
        assert!(!shown(1).contains("weight"));
        let text = shown(3);
        let first: Vec<_> = text.lines().map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(first, [Some("weight"), Some("3"), Some("1"), Some("-")], "{text}");
    }

    #[test]
    fn two_roots_at_one_height_are_shown_for_both() {
        let addresses = ["a".to_owned(), "b".to_owned()];
        let entries = judge(&addresses, vec![at(0, 9, "aa"), at(1, 9, "bb")]);
        assert!(entries.iter().all(|entry| entry.standing == Standing::Differs));
    }
}
