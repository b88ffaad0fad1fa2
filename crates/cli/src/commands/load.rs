//! `quorate load`: a running committee under load.

use super::client_files::{ClientFiles, RENEW};
use super::load_options::LoadOptions;
use super::report_options::ReportOptions;
use super::status::{Keys, members_in};
use crate::failure::{Code, CommandResult, Failure};
use crate::signals;
use clap::Args;
use quorate_crypto::IdentitySecret;
use quorate_lab::bench::Progress;
use quorate_lab::http::Door;
use quorate_lab::load::LoadConfig;
use quorate_lab::net_load::{Finished, Funds, NetLoad, NetLoadError};
use quorate_lab::{Genesis, ServiceKind};
use quorate_node::ClientPolicy;
use quorate_node::config::{genesis_digest, read_committee_file};
use quorate_report::Report;
use quorate_report::results::Share;
use quorate_report::text::{moment_of, thousands};
use quorate_types::{AgreedSettings, History};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// The genesis file's name, beside the committee's.
const GENESIS: &str = "genesis.json";

/// Longest time until several loads begin together: whoever names a later moment has mistaken it.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Put a running committee under load, from this machine.
///
/// Opens client sessions to the committee's validators, wherever they run, and offers operations at
/// a fixed rate, as `quorate bench` does to a committee of its own. Latency runs from when an
/// operation was scheduled to f+1 equal signed replies, by this machine's clock alone. What is
/// offered is of the committee's service, which its file names. The sessions' keys are new with
/// each run.
///
/// Several loads at once, on several machines: give each --share I/N, the same --start-at, and
/// --json; `quorate report --merge` joins the results.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate load --net net --rate 2000                a testnet on this machine, its validators looked at\n  \
    quorate load --committee committee.toml --rate 2000 --json > result.json\n  \
    quorate load --committee committee.toml --status one:9100,two:9100,three:9100,four:9100\n  \
    quorate load --committee committee.toml --key client.toml    where clients are listed\n  \
    quorate load --net net --load closed --outstanding 16\n\n  \
    on each of two machines, and then where both results are:\n  \
    quorate load --committee committee.toml --share 1/2 --start-at 2026-01-31T12:00:00Z --json > one.json\n  \
    quorate load --committee committee.toml --share 2/2 --start-at 2026-01-31T12:00:00Z --json > two.json\n  \
    quorate report --merge one.json two.json\n\n\
    Exit code 0: all that was offered was answered. 1: something was not, and it is said what; or\n\
    the committee is not reached. 2: the options or files are wrong.")]
pub(crate) struct Options {
    #[command(flatten)]
    files: ClientFiles,
    /// Operations offered per second in an open loop. 'max' is refused: the highest rate is judged
    /// by validators of a committee that has nothing else to do, as `quorate bench --rate max` has
    #[arg(long, default_value = "1000", value_name = "RATE", value_parser = parse_rate)]
    rate: u64,
    #[command(flatten)]
    load: LoadOptions,
    /// Place of this load among several at once, as in 1/3 for the first of three: decides its seed
    /// and, with the EVM ledger, the development account that pays
    #[arg(long, value_name = "I/N")]
    share: Option<Share>,
    /// Seed that decides the operations' bytes; by default the number of the share, or 1
    #[arg(long)]
    seed: Option<u64>,
    /// Moment of the first operation, so that several loads begin together: RFC 3339, as in
    /// 2026-01-31T12:00:00Z, or seconds since 1970; no more than a day ahead
    #[arg(long, value_name = "TIME")]
    start_at: Option<StartAt>,
    /// Time until an unanswered request goes to the next validator, in milliseconds
    #[arg(long, default_value_t = 1_000, value_name = "MS")]
    retry_after: u64,
    /// Genesis of the EVM ledger, for its development accounts; by default genesis.json beside the
    /// committee file, if it is there
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// File with the secret key, in hexadecimal, of an account with ether that pays for those of
    /// the load, with the EVM ledger; by default a development account
    #[arg(long, value_name = "FILE", requires = "genesis")]
    funds: Option<PathBuf>,
    /// Addresses of the validators' status, for what only validators know: committed rate, CPU,
    /// memory: one for each member of the committee, in their order; by default those of the
    /// validators in --net, if it has those of all members
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', value_parser = parse_status)]
    status: Vec<String>,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    output: ReportOptions,
}

fn parse_rate(text: &str) -> Result<u64, String> {
    match text {
        "max" => Err("there is no highest rate of somebody else's committee: it may have other \
                      clients, and other loads at once would find each other's. `quorate bench \
                      --rate max` finds that of a committee of its own"
            .to_owned()),
        _ => text.parse().map_err(|_| "a whole number of operations a second".to_owned()),
    }
}

/// The address of a status page, as [`Keys::doors_at`] takes it.
fn parse_status(text: &str) -> Result<String, String> {
    let address = text.trim_end_matches('/').trim_end_matches("/status");
    let bare = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    let has_port = |(_, port): (&str, &str)| port.parse::<u16>().is_ok();
    let is_address = bare.unwrap_or(address).rsplit_once(':').is_some_and(has_port);
    if !is_address || bare.unwrap_or(address).contains("://") {
        return Err("an address is HOST:PORT, or https://HOST:PORT".to_owned());
    }
    Ok(address.to_owned())
}

/// Moment at which several loads begin.
#[derive(Clone, Copy, Debug)]
struct StartAt(SystemTime);

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is no moment: write it as in 2026-01-31T12:00:00Z, or as seconds since 1970"
            )
        };
        let seconds =
            text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let moment = seconds.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        let moment = moment.or_else(|| moment_of(text)).ok_or_else(wrong)?;
        if moment.duration_since(SystemTime::now()).is_ok_and(|ahead| ahead > AHEAD_MAX) {
            return Err(format!(
                "'{text}' is more than a day ahead: name a sooner moment, in seconds, not milliseconds"
            ));
        }
        Ok(Self(moment))
    }
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let load = self.plan()?;
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let progress = Progress::new(self.output.quiet);
        let known = load.history.clone();
        let result = load.run(&progress, &interrupted);
        drop(progress);
        let Finished { report, history } = result.map_err(fail)?;
        let verdict = verdict(&report, self.output.json && self.output.quiet);
        self.output.show(report)?;
        self.files.keep_epochs(&known, &history)?;
        verdict
    }

    fn plan(&self) -> Result<NetLoad, Failure> {
        let history = self.files.known_epochs()?;
        let settings = self.settings(&history)?;
        let service: ServiceKind = settings.service.parse().map_err(Failure::usage)?;
        let vouching = self.vouching(&settings)?;
        let is_evm = service == ServiceKind::Evm;
        let status = self.status(history.committee().size())?;
        Ok(NetLoad {
            load: LoadConfig {
                rate: self.rate,
                retry_after_ms: self.retry_after,
                seed: self.seed(),
                ..self.load.config()
            },
            history,
            service,
            vouching,
            share: self.share,
            accounts: self.load.accounts as usize,
            funds: if is_evm { self.funds(&settings)? } else { None },
            status,
            start_at: self.start_at.map(|at| at.0),
        })
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| self.share.map_or(1, |share| u64::from(share.index)))
    }

    /// What the members of the last known epoch have alike.
    fn settings(&self, history: &History) -> Result<AgreedSettings, Failure> {
        if let Some(step) = history.steps().last() {
            return Ok(step.file.settings.clone());
        }
        let file = read_committee_file(&self.files.place.path()).map_err(Failure::usage)?;
        Ok(file.settings)
    }

    /// Key that vouches for the sessions. Where clients are listed there must be one.
    fn vouching(&self, settings: &AgreedSettings) -> Result<Option<IdentitySecret>, Failure> {
        let key = self.files.vouching()?;
        let is_listed = settings.clients.parse() == Ok(ClientPolicy::Listed);
        if is_listed && key.is_none() {
            return Err(Failure::usage(
                "this committee lets in listed clients alone: name a listed client's key by --key",
            ));
        }
        Ok(key)
    }

    /// Account that pays for those of the load.
    fn funds(&self, settings: &AgreedSettings) -> Result<Option<Funds>, Failure> {
        let beside = self.files.place.path().with_file_name(GENESIS);
        let path = match &self.genesis {
            Some(path) => path,
            None if beside.exists() => &beside,
            None => return Ok(None),
        };
        let (text, genesis) = ServiceKind::Evm.read_genesis(path).map_err(Failure::usage)?;
        if settings.genesis_digest != Some(genesis_digest(&settings.service, &text)) {
            let path = path.display();
            return Err(Failure::usage(format!("{path} is the genesis of another network")));
        }
        let Genesis::Evm(genesis) = genesis else { return Ok(None) };
        let funds = match &self.funds {
            Some(file) => {
                let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
                let key =
                    fs::read_to_string(file).map_err(|error| Failure::Usage(named(&error)))?;
                Funds::of_key(&key, genesis.chain_id)
                    .map_err(|error| Failure::Usage(named(&error)))?
            }
            None => {
                let index = self.share.map_or(0, |share| usize::from(share.index - 1));
                Funds::development(&genesis, index).map_err(Failure::Usage)?
            }
        };
        Ok(Some(funds))
    }

    /// Doors of the members' status: those that were named, or those of a testnet's folder if it
    /// has all of them. Sums over a part of the committee would pass for those of the whole.
    fn status(&self, members: usize) -> Result<Vec<Door>, Failure> {
        if !self.status.is_empty() {
            return self.named_status(members);
        }
        if self.files.place.is_file() {
            return Ok(Vec::new());
        }
        let configs = members_in(self.files.place.folder()).unwrap_or_default();
        if configs.len() == members { self.keys.doors_of(&configs) } else { Ok(Vec::new()) }
    }

    /// The doors that were named, if they are as many as the members.
    fn named_status(&self, members: usize) -> Result<Vec<Door>, Failure> {
        let named = self.status.len();
        if named != members {
            return Err(Failure::usage(format!(
                "--status names {named} addresses, and the committee has {members} members: name \
                 one for each, in their order, or none"
            )));
        }
        self.keys.doors_at(&self.status)
    }
}

/// Whether all that was offered was answered, and what was not. What a program reads in the result
/// alone is not said of a load that went well.
fn verdict(report: &Report, is_read_alone: bool) -> CommandResult {
    let (dropped, unanswered, warmup) = (report.dropped, report.unanswered, report.warmup);
    let all_answered = dropped + unanswered + warmup.dropped + warmup.unanswered == 0;
    if report.refused > 0 && !(all_answered && is_read_alone) {
        eprintln!(
            "{} operations were answered, and refused by the service",
            thousands(report.refused)
        );
    }
    if all_answered {
        return Ok(());
    }
    eprintln!(
        "not answered: {} operations that the sessions did not take, {} without an answer when the \
         wait ended; of the warm-up {} that the sessions did not take, {} without an answer",
        thousands(dropped),
        thousands(unanswered),
        thousands(warmup.dropped),
        thousands(warmup.unanswered)
    );
    Err(Failure::Reported(Code::Run))
}

fn fail(error: NetLoadError) -> Failure {
    match error {
        error if error.is_usage() => Failure::usage(error),
        NetLoadError::Outdated(reason) => Failure::run(format!("{reason}. {RENEW}")),
        error => Failure::run(error),
    }
}
