//! `quorate pay send`, `issue`, `redeem`, `consolidate` and `retry`: what asks the authorities.

use super::place::{Online, explain, explain_paper, warn_of_trouble};
use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::IdentityKey;
use quorate_gateway::wallet::{
    Order, PaymentRequest, PaymentService, PaymentView, Purpose, Wallet,
};
use quorate_node::proof_file::ProofFile as _;
use quorate_payments::TxId;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Pay somebody.
///
/// The payment is stored in the wallet before an authority sees it. With a quorum's votes it is
/// final, and its receipt is written: hand it to the payee, who takes it in by
/// `quorate pay receive`, offline.
///
/// Exit code 0: final. 1: too little money, refused, or the outcome is not known yet:
/// `quorate pay retry` finishes it, and a new `send` would be a second payment unless it has the
/// same --key.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay send --to ADDRESS --value 30 --memo 'invoice 7'\n  \
    quorate pay send --request invoice.json --key order-17    again with this key: the same payment")]
pub(super) struct Send {
    /// Payee: an address of 64 hexadecimal digits
    #[arg(long, value_name = "ADDRESS", required_unless_present = "request", requires = "value")]
    to: Option<IdentityKey>,
    /// Amount, in the smallest unit
    #[arg(long, value_name = "UNITS", requires = "to")]
    value: Option<u64>,
    /// Memo to send with it; the payee sees it, and no authority
    #[arg(long, value_name = "TEXT", conflicts_with = "request")]
    memo: Option<String>,
    /// Pay what this file asks for, as the payee's `quorate pay request` wrote it
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    request: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

/// Issue coins, as the network's issuer.
#[derive(Debug, Args)]
pub(super) struct Issue {
    /// Owner of the coins: an address of 64 hexadecimal digits
    #[arg(long, value_name = "ADDRESS")]
    to: IdentityKey,
    /// Amount, in the smallest unit
    #[arg(long, value_name = "UNITS")]
    value: u64,
    /// Memo to send with it
    #[arg(long, value_name = "TEXT")]
    memo: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

/// Burn coins, which the issuer pays out elsewhere. The receipt proves that they were burnt.
#[derive(Debug, Args)]
pub(super) struct Redeem {
    /// Amount, in the smallest unit
    #[arg(long, value_name = "UNITS")]
    value: u64,
    /// Memo to send with it: where to pay it out, perhaps
    #[arg(long, value_name = "TEXT")]
    memo: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

/// Merge up to 64 small coins into one.
#[derive(Debug, Args)]
pub(super) struct Consolidate {
    #[command(flatten)]
    asking: Asking,
}

/// Finish payments that were begun: the same bytes are sent again.
///
/// Exit code 0: all are final. 1: some were refused, or are not known yet.
#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    online: Online,
}

/// Options of one payment.
#[derive(Debug, Args)]
struct Asking {
    #[command(flatten)]
    online: Online,
    /// Name of your own for this payment: a command with the same name and content again is the
    /// same payment
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Path of the receipt, by default in the wallet's folder
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
}

impl Send {
    pub(super) fn run(&self) -> CommandResult {
        let wallet = self.asking.online.place.open()?;
        let order = match (&self.request, self.to, self.value) {
            (Some(path), ..) => {
                let request = PaymentRequest::read(path, wallet.network());
                let request = request.map_err(|error| explain_paper(path, error))?;
                let payee = request.payee().map_err(|error| explain_paper(path, error))?;
                let purpose = Purpose::Pay { payee, value: request.value };
                Order { purpose, memo: request.memo }
            }
            (None, Some(payee), Some(value)) => {
                Order { purpose: Purpose::Pay { payee, value }, memo: self.memo.clone() }
            }
            _ => return Err(Failure::usage("say --to and --value, or --request")),
        };
        self.asking.apply(wallet, order)
    }
}

impl Issue {
    pub(super) fn run(&self) -> CommandResult {
        let purpose = Purpose::Issue { payee: self.to, value: self.value };
        self.asking.open_and_carry_out(purpose, self.memo.clone())
    }
}

impl Redeem {
    pub(super) fn run(&self) -> CommandResult {
        self.asking.open_and_carry_out(Purpose::Redeem { value: self.value }, self.memo.clone())
    }
}

impl Consolidate {
    pub(super) fn run(&self) -> CommandResult {
        self.asking.open_and_carry_out(Purpose::Consolidate, None)
    }
}

impl Asking {
    fn open_and_carry_out(&self, purpose: Purpose, memo: Option<String>) -> CommandResult {
        self.apply(self.online.place.open()?, Order { purpose, memo })
    }

    fn apply(&self, wallet: Wallet, order: Order) -> CommandResult {
        let view = block_on(async {
            let service = self.online.connect(wallet)?;
            let paying = service.pay(order, self.key.clone(), self.online.within());
            let payment = paying.await.map_err(explain)?;
            warn_of_trouble(&service);
            Ok(service.with(|wallet| wallet.view(&payment)))
        })?;
        let file = write_papers(&view, self.online.place.folder.path(), self.receipt.as_deref())?;
        if self.online.json {
            output::json(&view);
        } else if view.state == "certified" {
            output::line(&describe(&view, file.as_deref()));
        }
        conclude(&view, file.as_deref())
    }
}

impl Retry {
    pub(super) fn run(&self) -> CommandResult {
        let wallet = self.online.place.open()?;
        let views = block_on(self.settle_all(wallet))?;
        let mut all_final = true;
        for view in &views {
            let file = write_papers(view, self.online.place.folder.path(), None)?;
            if !self.online.json && view.state == "certified" {
                output::line(&describe(view, file.as_deref()));
            }
            if let Err(failure) = conclude(view, file.as_deref()) {
                let _ = failure.report();
                all_final = false;
            }
        }
        if self.online.json {
            output::json(&json!({ "payments": views }));
        } else if views.is_empty() {
            output::line("nothing is unfinished");
        }
        if all_final { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
    }

    async fn settle_all(&self, wallet: Wallet) -> Result<Vec<PaymentView>, Failure> {
        let service = self.online.connect(wallet)?;
        let mut settled = Vec::new();
        let within = self.online.within();
        let deadline = tokio::time::Instant::now() + within;
        for payment in service.resume().map_err(explain)? {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            settled.push(service.finish(payment, left).await.map_err(explain)?.id);
        }
        warn_of_trouble(&service);
        // Of a wallet that was made again: what it still has to ask for.
        service.recover(within).await.map_err(explain)?;
        service.tend_records(within).await.map_err(explain)?;
        follow_releases(&service, within).await;
        let view = |wallet: &mut Wallet| -> Result<Vec<PaymentView>, Failure> {
            let view = |id: &TxId| wallet.payment(*id).map(|payment| wallet.view(&payment));
            settled.iter().map(view).collect::<Result<_, _>>().map_err(explain)
        };
        service.with(view)
    }
}

/// Goes on with releases that were asked for. The command is about something else: where that takes
/// longer, it says so.
pub(super) async fn follow_releases(service: &Arc<PaymentService>, within: Duration) {
    if let Err(error) = service.follow_releases(within).await {
        eprintln!("warning: {error}");
    }
}

pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(Failure::run)?.block_on(work)
}

/// Writes the receipt of a certified payment, or the evidence of a double spend.
fn write_papers(
    view: &PaymentView,
    folder: &Path,
    receipt: Option<&Path>,
) -> Result<Option<PathBuf>, Failure> {
    let named = |what: &str| folder.join(format!("{what}-{}.json", &view.id[..16]));
    let (path, text) = match (&view.receipt, &view.evidence) {
        // To itself a wallet needs no receipt.
        (Some(_), _) if matches!(view.kind, "consolidate" | "refund") => return Ok(None),
        (Some(paper), _) => {
            (receipt.map_or_else(|| named("receipt"), Path::to_owned), paper.to_text())
        }
        (None, Some(paper)) => (named("evidence"), paper.to_text()),
        (None, None) => return Ok(None),
    };
    let failed = |error| {
        Failure::run(format!(
            "the payment {} is {}, and {} was not written: {error}; `quorate pay receipt write` writes a \
             receipt again",
            view.id,
            view.state,
            path.display()
        ))
    };
    fs::write(&path, text).map_err(failed)?;
    Ok(Some(path))
}

fn describe(view: &PaymentView, file: Option<&Path>) -> String {
    let mut text = match view.kind {
        "redeem" => format!("{} burnt; it is final", view.value),
        "consolidate" => format!("{} are in one coin now", view.value),
        "refund" => format!("{} came back by a release", view.value),
        "issue" => format!("{} made for {}; it is final", view.value, view.payee),
        _ => format!("{} paid to {}; it is final", view.value, view.payee),
    };
    text.push_str(&format!("\ntransaction: {}", view.id));
    if let Some(file) = file {
        text.push_str(&format!("\nreceipt: {}", file.display()));
    }
    text
}

/// The command's end for a payment that stands as it does.
fn conclude(view: &PaymentView, file: Option<&Path>) -> CommandResult {
    match view.state {
        "certified" => Ok(()),
        "unfinished" => Err(Failure::run(format!(
            "the outcome of payment {} is not known yet, for too few authorities answered. It is stored, and its coins \
             are reserved: `quorate pay retry` sends the same again. Do not send a new one in its place",
            view.id
        ))),
        "refused" => Err(Failure::run(format!(
            "the authorities refused payment {}: {}. Its coins are free again",
            view.id,
            view.reason.as_deref().unwrap_or("no reason was given")
        ))),
        "released" => Err(Failure::run(format!(
            "payment {} will never be certified: {}",
            view.id,
            view.reason.as_deref().unwrap_or("a coin of it was released otherwise")
        ))),
        "releasing" => Err(Failure::run(format!(
            "payment {} lost against another transaction of this key. Was a copy of this wallet used? Neither can \
             have its coins any more, and their release is asked for: `quorate pay release --all` goes on with it.{}",
            view.id,
            evidence(file)
        ))),
        "refunded" => Err(Failure::run(format!(
            "payment {} lost against another transaction of this key, and its coins came back by a release. Was a \
             copy of this wallet used? A new payment is needed.{}",
            view.id,
            evidence(file)
        ))),
        _ => Err(Failure::run(format!(
            "payment {} is a double spend: another transaction of this key took one of its coins. Its coins are \
             frozen, and `quorate pay release` says what can be had of them. Was a copy of this wallet used?{}",
            view.id,
            evidence(file)
        ))),
    }
}

fn evidence(file: Option<&Path>) -> String {
    file.map(|path| format!(" Evidence: {}", path.display())).unwrap_or_default()
}
