//! `quorate pay load`: payments at a rate, and the proof that none was lost and none made twice.

use super::place::{Place, explain, key_file, make_folder, wallet_file};
use super::send::block_on;
use crate::failure::{Code, CommandResult, Failure};
use crate::{output, passphrase, signals};
use clap::Args;
use quorate_crypto::{IdentitySecret, KeyFile, Passphrase, SchemeKind, StoredKeys};
use quorate_gateway::wallet::{Order, PaymentService, PaymentState, Purpose, Wallet};
use quorate_lab::pay_load::{LoadPlan, LoadReport, PayLoad, PayLoadError, PayLoadPlace, Second};
use quorate_node::payments::NetworkFollower;
use quorate_node::testnet::system_random;
use quorate_payments::PayReceipt;
use quorate_report::text::thousands;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Most coins unless more are asked for: some 64 transactions make and gather so many.
const COINS_MAX: u64 = 4_096;

/// Put a running network under load, and prove that no payment is lost and none made twice.
///
/// The wallet pays for the coins; payers of the load pay them on to each other, each payment when
/// it is due, whatever became of those before. At the end, or at Ctrl-C, everything goes back to
/// the wallet. Every transaction is in the load's folder before an authority sees it: it may be
/// killed at any time, and the same command goes on, with the same bytes. Authorities may go and
/// come back meanwhile, and change: payments go to the next epoch's as soon as the former ones show
/// who they are.
///
/// The audit reads what is on disk: every transaction has one certificate that verifies, no coin is
/// spent twice, what goes out of each is what went in, all money is there; and a quorum of
/// authorities says that the coins at the end of all payments are free. Latency is from when a
/// payment was due.
///
/// Exit code 0: the audit holds and the money is back. 1: it does not, or payments are under way;
/// the same command with --duration 0 shows them again and brings the money back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay load -w anne --rate 1000 --duration 60     the wallet needs 1000 units meanwhile\n  \
    quorate pay load -w anne --duration 0                  settle what was left, and take the money back\n  \
    quorate pay load -w anne --rate 50 --coins 200 --payers 8 --folder small-load --json")]
pub(super) struct Load {
    #[command(flatten)]
    place: Place,
    /// Payments a second
    #[arg(long, default_value_t = 100.0, value_name = "COUNT", value_parser = parse_rate)]
    rate: f64,
    /// Length of the load, in seconds; 0 settles what the folder has, and takes the money back
    #[arg(long, default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(0..=86_400))]
    duration: u64,
    /// Number of payers, each with connections of its own; always the same in one folder
    #[arg(long, default_value_t = 64, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(2..=512))]
    payers: u32,
    /// Number of coins of one unit that are paid on, which bounds the payments under way; by
    /// default a second's worth, 4096 at most. More make authorities that come back slower
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    coins: Option<u64>,
    /// Folder of the load: its key, sealed as the wallet's is, and its journal. Whoever removes it
    /// before the money is back loses it
    #[arg(long, default_value = "load", value_name = "FOLDER")]
    folder: PathBuf,
    /// Longest wait without any outcome once no payment is due any more, in seconds
    #[arg(long, default_value_t = 120, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.1..=1e6).contains(rate));
    rate.ok_or_else(|| "a rate is a number from 0.1 to 1000000".to_owned())
}

impl Load {
    pub(super) fn run(&self) -> CommandResult {
        let (keys, passphrase) = self.place.keys()?;
        let load_key = self.load_key(passphrase.as_ref())?;
        let plan = LoadPlan {
            rate: self.rate,
            duration: Duration::from_secs(self.duration),
            timeout: Duration::from_secs(self.timeout),
            stop: signals::interrupted().map_err(Failure::run)?,
        };
        block_on(self.drive(&keys.identity, load_key, &plan))
    }

    /// The key of the folder's load, which is made where there is none.
    fn load_key(&self, passphrase: Option<&Passphrase>) -> Result<IdentitySecret, Failure> {
        let file = key_file(&self.folder);
        if !file.exists() {
            make_folder(&self.folder)?;
            let keys = KeyFile::generate(SchemeKind::Ed25519, &mut system_random);
            let keys = keys.map_err(Failure::usage)?;
            passphrase::write_keys(&keys, &file, passphrase).map_err(Failure::usage)?;
        }
        let keys = match (StoredKeys::read(&file).map_err(Failure::usage)?, passphrase) {
            (StoredKeys::Open(keys), _) => keys,
            (StoredKeys::Sealed(sealed), Some(passphrase)) => {
                sealed.open(passphrase).map_err(Failure::usage)?
            }
            (StoredKeys::Sealed(_), None) => passphrase::open_keys(&file, None)?,
        };
        Ok(keys.identity)
    }

    async fn drive(
        &self,
        wallet: &IdentitySecret,
        key: IdentitySecret,
        plan: &LoadPlan,
    ) -> CommandResult {
        let place = PayLoadPlace {
            journal: self.folder.join("payments"),
            network_file: self.place.network_path()?,
            key,
            payers: self.payers,
            wallet: wallet.public(),
        };
        let mut load = PayLoad::open(place, self.place.network()?).map_err(failed)?;
        // Of a load that was killed before the wallet had its money.
        self.take_in(&mut load, wallet).await?;
        if let Some(name) = load.funding()
            && !plan.duration.is_zero()
        {
            let receipt = self.pay_in(&load, wallet, name).await?;
            load.fund(receipt).await.map_err(failed)?;
        }
        let mut say = |second: &Second| {
            if !self.json {
                output::line(&describe_second(second));
            }
        };
        let (mut load, report) = load.run(plan, &mut say).await.map_err(failed)?;
        let taken_in = self.take_in(&mut load, wallet).await;
        self.show(&report);
        taken_in?;
        let is_back = report.audit.value_left == 0;
        if report.audit.holds() && is_back { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
    }

    fn connect_wallet(
        &self,
        load: &PayLoad,
        secret: &IdentitySecret,
    ) -> Result<Arc<PaymentService>, Failure> {
        let file = wallet_file(self.place.folder.path());
        let wallet =
            Wallet::open(&file, load.network().clone(), secret.clone()).map_err(explain)?;
        let follower =
            NetworkFollower::open(&self.place.network_path()?).map_err(Failure::usage)?;
        PaymentService::connect(wallet, follower, None).map_err(Failure::run)
    }

    fn within(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Has the wallet pay for the coins, once under this name.
    async fn pay_in(
        &self,
        load: &PayLoad,
        secret: &IdentitySecret,
        name: String,
    ) -> Result<PayReceipt, Failure> {
        let value = self.coins.unwrap_or_else(|| default_coins(self.rate, self.payers));
        let service = self.connect_wallet(load, secret)?;
        let purpose = Purpose::Pay { payee: load.address(), value };
        let order = Order { purpose, memo: Some("a load".to_owned()) };
        let within = self.within();
        let payment = service.pay(order, Some(name), within).await.map_err(explain)?;
        service.with(|wallet| wallet.receipt(&payment)).ok_or_else(|| match payment.state {
            PaymentState::Begun => Failure::run(format!(
                "the wallet's payment {} to the load is not final yet, for too few authorities \
                 answered: the same command goes on with it",
                payment.id
            )),
            state => Failure::run(format!(
                "the wallet's payment {} to the load is {}: `quorate pay history` and `retry` say more",
                payment.id,
                state.name()
            )),
        })
    }

    /// Has the wallet take in what was paid back.
    async fn take_in(&self, load: &mut PayLoad, secret: &IdentitySecret) -> CommandResult {
        let receipts = load.receipts();
        if receipts.is_empty() {
            return Ok(());
        }
        // Of an epoch that has ended since, the authorities in force are asked.
        let service = self.connect_wallet(load, secret)?;
        for receipt in receipts {
            service.receive(receipt, self.within()).await.map_err(explain)?;
        }
        load.returned().await.map_err(failed)
    }

    fn show(&self, report: &LoadReport) {
        if self.json {
            let holds = report.audit.holds();
            output::json(&json!({ "holds": holds, "report": report }));
        } else {
            output::line(&describe(report));
        }
    }
}

fn default_coins(rate: f64, payers: u32) -> u64 {
    (rate as u64).clamp(2 * u64::from(payers), COINS_MAX)
}

fn failed(error: PayLoadError) -> Failure {
    match error {
        PayLoadError::Storage(_) | PayLoadError::JournalFailed => Failure::Disk(error.to_string()),
        PayLoadError::OtherLoad { .. } | PayLoadError::Entry(_) | PayLoadError::Network(_) => {
            Failure::usage(error)
        }
        error => Failure::run(error),
    }
}

fn describe_second(second: &Second) -> String {
    let Second { second, certified, under_way, late, epoch, connected, authorities } = second;
    let late = if *late > 0 { format!(", {late} late") } else { String::new() };
    format!(
        "{second:>5} s  {:>7} paid  {under_way:>6} under way{late}  (epoch {epoch}, {connected} of {authorities} authorities)",
        thousands(*certified)
    )
}

fn describe(report: &LoadReport) -> String {
    let LoadReport { audit, latency_ms, epochs, .. } = report;
    let seconds = report.per_second.len().max(1) as u64;
    let mut text = format!(
        "{} of {} payments certified, {} a second of {} due; p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms\n\
         longest pause: {} ms; {} orders were sent again; epochs {} to {}\n\n\
         Audit of {} transactions: {}, {} came in, {} went back, {} are left; {} coins asked about",
        report.certified,
        report.payments,
        thousands(report.certified / seconds),
        report.rate,
        latency_ms.p50,
        latency_ms.p99,
        latency_ms.max,
        report.longest_pause_ms,
        report.sent_again,
        epochs.0,
        epochs.1,
        audit.begun,
        if audit.holds() { "none lost, none twice" } else { "IT DOES NOT HOLD" },
        audit.value_in,
        audit.value_back,
        audit.value_left,
        audit.coins_asked,
    );
    if let Some(problem) = &report.problem {
        text.push_str(&format!("\nthe network's files are not followed: {problem}"));
    }
    for finding in audit.findings.iter().take(20) {
        text.push_str(&format!("\n  {finding}"));
    }
    if audit.findings.len() > 20 {
        text.push_str(&format!("\n  and {} more: --json has them all", audit.findings.len() - 20));
    }
    text
}
