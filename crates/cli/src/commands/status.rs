//! `quorate status`: validators side by side, once or again and again.

mod doors;
mod members;
mod probe;

pub(crate) use doors::Keys;

use crate::failure::{Code, CommandResult, Failure};
use crate::{output, signals};
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use probe::Probe;
use quorate_lab::http::Door;
use quorate_lab::status::{SyncProgress, ValidatorStatus, Witnesses, ask_all};
use quorate_node::Layout;
use quorate_report::text::thousands;
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time for a validator's answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Hexadecimal digits of a root shown.
const ROOT_DIGITS: usize = 8;

/// An interrupt is noticed within this while waiting.
const GLANCE: Duration = Duration::from_millis(50);

/// Moves a terminal's cursor home and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Show the status of validators side by side.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate status net                                  all validators of a testnet\n  \
    quorate status --config net/validator-0/config.toml one of them\n  \
    quorate status --http 127.0.0.1:9100 10.0.0.2:9100  anywhere\n  \
    quorate status --http https://10.0.0.2:9100 --ca ca.pem --token-file token\n  \
    \u{20}                                                   with TLS and a token\n  \
    quorate status net --watch                          again every two seconds\n  \
    quorate status --http 127.0.0.1:9100 --probe ready  for what runs containers\n\n\
    `agrees` compares roots among validators that executed the same height, and says\n\
    why one is of no use now. Below is each member as the others see it: certificates\n\
    with its vote among the last 100, views that it led and that failed, when it was\n\
    heard, the round trip to it, and the validators that do not hear it.\n\
    Exit code 0: all answer and agree. 1: somebody is silent. 3: two validators\n\
    disagree, which must never be. With --watch: as the last look found it.\n\
    With --probe 0: all say yes. 1: somebody says no, or nothing.")]
pub(crate) struct Options {
    /// Folder that `quorate testnet` wrote
    #[arg(conflicts_with_all = ["config", "http"])]
    directory: Option<PathBuf>,
    /// A validator's configuration file; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "http")]
    config: Vec<PathBuf>,
    /// Addresses of the validators' status
    #[arg(long, value_name = "ADDRESS", num_args = 1..)]
    http: Vec<String>,
    #[command(flatten)]
    keys: Keys,
    /// Refresh every SECONDS (2 if no number is given), until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
          require_equals = true, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    watch: Option<u64>,
    /// End after so many refreshes, with --watch
    #[arg(long, value_name = "N", requires = "watch",
          value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
    /// Print one JSON object; with --watch, one a line for each refresh
    #[arg(long)]
    json: bool,
    /// Ask this alone, and print the answers
    #[arg(long, value_name = "QUESTION", conflicts_with_all = ["watch", "json"])]
    probe: Option<Probe>,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let doors = self.doors()?;
        if let Some(probe) = self.probe {
            return probe.ask(&doors);
        }
        let Some(seconds) = self.watch else {
            let look = Look::now(&doors);
            self.print(&look, None);
            return look.verdict();
        };
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let mut last: Option<Look> = None;
        let mut looks = 0;
        loop {
            let look = Look::now(&doors);
            self.print(&look, last.as_ref());
            looks += 1;
            let ended = self.times == Some(looks)
                || !wait(look.at + Duration::from_secs(seconds), &interrupted);
            if ended {
                return look.verdict();
            }
            last = Some(look);
        }
    }

    fn print(&self, look: &Look, last: Option<&Look>) {
        if self.json {
            let entries: Vec<Value> = look.entries.iter().map(Entry::to_json).collect();
            let object = json!({ "validators": entries });
            if self.watch.is_some() {
                output::line(&object.to_string());
            } else {
                output::json(&object);
            }
            return;
        }
        let mut table = table(&look.entries, last.map(|last| last.entries.as_slice()));
        let answered: Vec<_> =
            look.entries.iter().filter_map(|entry| entry.status.as_ref()).collect();
        if let Some(members) = members::table(&answered) {
            table.push_str(&format!("\n\n{members}"));
        }
        if self.watch.is_some() && io::stdout().is_terminal() {
            output::line(&format!("{CLEAR}{table}"));
        } else if last.is_some() {
            output::line(&format!("\n{table}"));
        } else {
            output::line(&table);
        }
    }

    fn doors(&self) -> Result<Vec<Door>, Failure> {
        if !self.http.is_empty() {
            return self.keys.doors_at(&self.http);
        }
        match &self.directory {
            Some(directory) => self.keys.doors_in(directory),
            None if self.config.is_empty() => self.keys.doors_in(Path::new(".")),
            None => self.keys.doors_of(&self.config),
        }
    }
}

/// Waits until `due`; `false` when it is interrupted.
fn wait(due: Instant, interrupted: &AtomicBool) -> bool {
    while !interrupted.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(GLANCE));
    }
    false
}

/// The configurations of a testnet: the members' in their order, then the learners'; or those of
/// the validators beside a payment network's authorities.
pub(crate) fn configs_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut configs = members_in(directory)?;
    configs.extend(all_in(directory, Layout::of(directory), |_, index| Layout::learner(index)));
    Ok(configs)
}

/// The configurations of a testnet's members, in their order.
pub(crate) fn members_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let layout = Layout::of(directory);
    let configs: Vec<PathBuf> = all_in(directory, layout, Layout::member).collect();
    if configs.is_empty() {
        return Err(Failure::usage(format!(
            "{} is not a testnet: there is no {}; name a folder that `quorate testnet` wrote, \
             or use --config or --http",
            directory.display(),
            directory.join(layout.member(0)).join(layout.config()).display()
        )));
    }
    Ok(configs)
}

/// The configurations in these folders, as far as there are such.
fn all_in(
    directory: &Path,
    layout: Layout,
    folder: fn(Layout, usize) -> PathBuf,
) -> impl Iterator<Item = PathBuf> {
    let config = move |index| directory.join(folder(layout, index)).join(layout.config());
    (0..).map(config).take_while(|path| path.exists())
}

/// All validators at one time.
struct Look {
    at: Instant,
    entries: Vec<Entry>,
}

impl Look {
    fn now(doors: &[Door]) -> Self {
        let at = Instant::now();
        let addresses: Vec<String> = doors.iter().map(Door::name).collect();
        Self { at, entries: judge(&addresses, ask_all(doors, TIMEOUT)) }
    }

    fn verdict(&self) -> CommandResult {
        let any =
            |bad: fn(&Standing) -> bool| self.entries.iter().any(|entry| bad(&entry.standing));
        let is_out = self.entries.iter().filter_map(|entry| entry.status.as_ref()).any(is_out);
        if any(|standing| *standing == Standing::Differs) {
            Err(Failure::Reported(Code::Safety))
        } else if is_out || any(|standing| matches!(standing, Standing::Silent(_))) {
            Err(Failure::Reported(Code::Run))
        } else {
            Ok(())
        }
    }
}

/// Returns `true` for a validator that says itself that its state is another than was certified.
fn is_out(status: &ValidatorStatus) -> bool {
    status.diverged.is_some()
}

/// One line of the table.
struct Entry {
    address: String,
    status: Option<ValidatorStatus>,
    standing: Standing,
}

/// Comparison of a validator with the others.
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

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => f.write_str("yes"),
            Self::Behind(heights) => write!(f, "{heights} behind"),
            Self::Differs => f.write_str("NO: another root"),
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
            "agrees": !matches!(self.standing, Standing::Differs | Standing::Silent(_))
                && !self.status.as_ref().is_some_and(is_out),
            "standing": self.standing.to_string(),
            "status": self.status,
        })
    }

    /// Operations executed a second since an earlier look; `None` when either gives no figure.
    fn rate_since(&self, last: &[Self]) -> Option<u64> {
        let now = self.status.as_ref()?;
        let before = last.iter().find(|entry| entry.address == self.address)?.status.as_ref()?;
        let seconds = now.at?.duration_since(before.at?).as_secs_f64();
        let executed = now.operations.checked_sub(before.operations)?;
        (seconds > 0.0).then(|| (executed as f64 / seconds).round() as u64)
    }

    /// `weighted`: with a column for what its vote weighs.
    fn to_row(&self, weighted: bool, last: Option<&[Self]>) -> Vec<String> {
        let Some(status) = &self.status else {
            let mut row = vec!["?".to_owned()];
            row.extend(std::iter::repeat_n("-".to_owned(), 6 + usize::from(weighted)));
            row.extend([self.standing.to_string(), self.address.clone()]);
            return row;
        };
        let id = if status.config.learner { "learner".to_owned() } else { status.id.to_string() };
        let mut row = vec![id];
        row.extend(weighted.then(|| thousands(status.weight)));
        row.extend([
            thousands(status.view),
            thousands(status.decided),
            thousands(status.executed),
            match last {
                Some(last) => self.rate_since(last).map_or_else(|| "-".to_owned(), thousands),
                None => thousands(status.operations),
            },
            status.peers_connected.to_string(),
            status.root.chars().take(ROOT_DIGITS).collect(),
            self.progress(status),
            self.address.clone(),
        ]);
        row
    }

    /// State of a validator, and what it waits for while it is catching up.
    fn progress(&self, status: &ValidatorStatus) -> String {
        let mut text = self.standing.to_string();
        // Catching up and another state have words of their own below.
        let has_own = |reason: &&String| {
            ["catching up", "diverged"].iter().any(|begin| reason.starts_with(begin))
        };
        for reason in status.not_ready.iter().filter(|reason| !has_own(reason)) {
            text.push_str(&format!(", {reason}"));
        }
        if let Some(height) = status.diverged {
            text.push_str(&format!(", its state is not the committee's from {height} on"));
        }
        let Witnesses { state, answered, needed, contradiction } = &status.witnesses;
        match state.as_str() {
            "waiting" => text.push_str(&format!(
                ", signs nothing: {answered} of {needed} others have shown what it signed"
            )),
            "contradicted" => text.push_str(&format!(", never signs again: {contradiction}")),
            _ => {}
        }
        if status.syncing {
            let SyncProgress { from, to, why } = &status.sync;
            text.push_str(&format!(", syncing from {from} to {to}: waits for {why}"));
        }
        text
    }
}

/// The table; with an earlier look, operations are shown by the second.
fn table(entries: &[Entry], last: Option<&[Entry]>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    let members = entries.iter().filter_map(|e| e.status.as_ref()).filter(|s| !s.config.learner);
    let weights: Vec<u64> = members.map(|status| status.weight).collect();
    let weighted = weights.iter().any(|weight| *weight != weights[0]);
    let done = if last.is_some() { "ops/s" } else { "operations" };
    let rest = ["view", "height", "executed", done, "peers", "root", "agrees", "http"];
    table.set_header(["id"].into_iter().chain(weighted.then_some("weight")).chain(rest));
    for entry in entries {
        table.add_row(entry.to_row(weighted, last));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    for column in table.column_iter_mut().take(6 + usize::from(weighted)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Look, Standing, judge, table};
    use crate::failure::Failure;
    use quorate_lab::status::{StartedWith, SyncProgress, ValidatorStatus, Witnesses};
    use std::io;
    use std::time::{Duration, Instant};

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
        assert!(table(&entries, None).contains("2 behind"));
    }

    #[test]
    fn a_later_look_shows_operations_by_the_second() {
        let addresses = ["a".to_owned(), "b".to_owned()];
        let began = Instant::now();
        let look = |operations: u64, seconds: u64| {
            let status = ValidatorStatus {
                operations,
                at: Some(began + Duration::from_secs(seconds)),
                ..Default::default()
            };
            let silent = Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            judge(&addresses, vec![Ok(status), silent])
        };
        let (first, second) = (look(1_000, 0), look(5_000, 2));
        assert_eq!(second[0].rate_since(&first), Some(2_000));
        assert_eq!(second[1].rate_since(&first), None);
        // A validator that was started again from an earlier state has done nothing since.
        assert_eq!(look(10, 4)[0].rate_since(&second), None);
        let shown = table(&second, Some(&first));
        assert!(shown.contains("ops/s") && shown.contains("2,000"), "{shown}");
    }

    #[test]
    fn a_table_of_a_busy_committee_fits_a_terminal() {
        let status = |id| ValidatorStatus {
            id,
            view: 123_456,
            decided: 123_456,
            executed: 123_456,
            operations: 98_765_432,
            root: "0123456789abcdef".to_owned(),
            peers_connected: 99,
            ..Default::default()
        };
        let addresses: Vec<String> = (0..4).map(|i| format!("127.0.0.1:910{i}")).collect();
        let entries = judge(&addresses, (0..4).map(|id| Ok(status(id))).collect());
        for line in table(&entries, None).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn the_verdict_tells_silence_from_disagreement() {
        let verdict = |answers| {
            let addresses = ["a".to_owned(), "b".to_owned()];
            let look = Look { at: Instant::now(), entries: judge(&addresses, answers) };
            match look.verdict() {
                Ok(()) => 0,
                Err(Failure::Reported(code)) => code as u8,
                Err(other) => panic!("{other:?}"),
            }
        };
        let silent = || Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(verdict(vec![at(0, 9, "aa"), at(1, 9, "aa")]), 0);
        assert_eq!(verdict(vec![at(0, 9, "aa"), at(1, 8, "bb")]), 0);
        assert_eq!(verdict(vec![at(0, 9, "aa"), silent()]), 1);
        assert_eq!(verdict(vec![at(0, 9, "aa"), at(1, 9, "bb")]), 3);
    }

    #[test]
    fn weights_are_shown_when_they_differ() {
        let shown = |heavy| {
            let weighing = |id, weight| Ok(ValidatorStatus { id, weight, ..Default::default() });
            let addresses: Vec<String> = (0..3).map(|i| format!("127.0.0.1:910{i}")).collect();
            let silent = Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            table(&judge(&addresses, vec![weighing(0, heavy), weighing(1, 1), silent]), None)
        };
        assert!(!shown(1).contains("weight"));
        let text = shown(3);
        let first: Vec<_> = text.lines().map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(first, [Some("weight"), Some("3"), Some("1"), Some("-")], "{text}");
    }

    #[test]
    fn whoever_catches_up_says_how_far_and_what_it_waits_for() {
        let sync = SyncProgress { from: 7, to: 90, why: "blocks after h7".to_owned() };
        let behind =
            ValidatorStatus { executed: 7, syncing: true, sync, ..ValidatorStatus::default() };
        let addresses = ["a".to_owned(), "b".to_owned()];
        let text = table(&judge(&addresses, vec![at(0, 90, "aa"), Ok(behind)]), None);
        assert!(
            text.contains("83 behind, syncing from 7 to 90: waits for blocks after h7"),
            "{text}"
        );
    }

    #[test]
    fn whoever_hears_no_quorum_says_so() {
        let reason = "no quorum: heard 2 of 4, 3 needed; silent: r2, r3".to_owned();
        let look = ValidatorStatus { not_ready: vec![reason], ..ValidatorStatus::default() };
        let text = table(&judge(&["a".to_owned()], vec![Ok(look)]), None);
        assert!(text.contains("yes, no quorum: heard 2 of 4, 3 needed; silent: r2, r3"), "{text}");
    }

    #[test]
    fn a_state_that_is_not_the_committees_is_shown() {
        let diverged = ValidatorStatus { diverged: Some(7), ..ValidatorStatus::default() };
        let text = table(&judge(&["a".to_owned()], vec![Ok(diverged)]), None);
        assert!(text.contains("its state is not the committee's from 7 on"), "{text}");
    }

    #[test]
    fn a_member_that_signs_nothing_says_why() {
        let shown = |witnesses| {
            let member = ValidatorStatus { witnesses, ..ValidatorStatus::default() };
            table(&judge(&["a".to_owned()], vec![Ok(member)]), None)
        };
        let state = |state: &str| Witnesses { state: state.to_owned(), ..Witnesses::default() };
        let text = shown(Witnesses { answered: 1, needed: 2, ..state("waiting") });
        assert!(text.contains("1 of 2 others have shown what it signed"), "{text}");
        let contradiction = "an old copy".to_owned();
        let text = shown(Witnesses { contradiction, ..state("contradicted") });
        assert!(text.contains("never signs again: an old copy"), "{text}");
        assert!(!shown(state("clear")).contains("signs"));
    }

    #[test]
    fn a_learner_is_no_member_and_has_no_weight() {
        let config = StartedWith { learner: true, ..StartedWith::default() };
        let learner = ValidatorStatus { id: 1, config, ..ValidatorStatus::default() };
        let member = ValidatorStatus { weight: 1, ..ValidatorStatus::default() };
        let addresses = ["a".to_owned(), "b".to_owned()];
        let text = table(&judge(&addresses, vec![Ok(member), Ok(learner)]), None);
        assert!(text.contains("learner") && !text.contains("weight"), "{text}");
    }

    #[test]
    fn two_roots_at_one_height_are_shown_for_both() {
        let addresses = ["a".to_owned(), "b".to_owned()];
        let entries = judge(&addresses, vec![at(0, 9, "aa"), at(1, 9, "bb")]);
        assert!(entries.iter().all(|entry| entry.standing == Standing::Differs));
    }
}
