//! `quorate pay release`: coins that their payments left locked.

use super::history::describe_balance;
use super::place::{Online, explain};
use super::send::block_on;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::Digest;
use quorate_gateway::wallet::{Balance, CoinRelease, CoinReleaseView, Released, Wallet};
use quorate_payments::TxId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Have locked coins released, by the committee that orders releases.
///
/// A coin is locked when some authorities were shown one transaction of its owner's over it and
/// others another: by a copy of the wallet, perhaps. It has every authority report what it is
/// locked for. Where one transaction alone can still be certified, that one is finished; where none
/// can, the coin comes back. Where two can, nothing is decided: with 3f + 1 authorities, those that
/// were split evenly stay so for ever, and only a certificate helps. It says before what is to be
/// expected, by what the authorities answer now.
///
/// Of a payment that is final, it shows the certificate: that ends the release that somebody with
/// a copy asked for.
///
/// Exit code 0: decided, and done. 1: not decided yet, and the command again goes on; or it stays
/// locked for ever.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay release --all -w anne\n  \
    quorate pay release TRANSACTION -w anne --committee net/committee.toml")]
pub(super) struct Release {
    /// Payment that lost, or transaction that coins are stuck for: 64 hexadecimal digits
    #[arg(value_name = "PAYMENT", required_unless_present = "all", value_parser = transaction)]
    payment: Option<TxId>,
    /// Release every coin that is frozen or stuck
    #[arg(long, conflicts_with = "payment")]
    all: bool,
    #[command(flatten)]
    online: Online,
}

/// Outcome of a release, for programs.
#[derive(Serialize)]
struct Report {
    /// How it would end by what the authorities answered before.
    forecast: Vec<CoinReleaseView>,
    /// How it stands now.
    released: Vec<CoinReleaseView>,
    /// True if the payment is final, and the committee was shown its certificate.
    certified: bool,
    balance: Balance,
}

fn transaction(text: &str) -> Result<TxId, String> {
    Digest::from_hex(text).map(TxId).map_err(|error| error.to_string())
}

impl Release {
    pub(super) fn run(&self) -> CommandResult {
        let wallet = self.online.place.open()?;
        let (report, lines, is_open) = block_on(self.release(wallet))?;
        let is_locked = report.released.iter().any(|one| one.end == "locked-for-ever");
        if self.online.json {
            output::json(&report);
        } else {
            let words = report.released.iter().map(|one| describe(one, END));
            let is_none = report.released.is_empty() && !is_open;
            let none = is_none.then(|| self.nothing(report.certified).to_owned());
            let words: Vec<String> = none.into_iter().chain(words).chain(lines).collect();
            output::line(&words.join("\n"));
        }
        if is_locked {
            return Err(Failure::run(
                "two transactions over a coin can be certified, and nothing tells which: it stays locked, unless \
                 somebody shows a certificate",
            ));
        }
        if is_open {
            return Err(Failure::run(
                "the release is not done yet. It is stored, and goes on when authorities that were not heard are: \
                 give the command again",
            ));
        }
        Ok(())
    }

    fn nothing(&self, certified: bool) -> &'static str {
        match self.payment {
            _ if certified => "it is final, and the committee was shown so",
            Some(_) => "nothing of it is left to be decided",
            None => "no coin is known to be locked",
        }
    }

    async fn release(&self, wallet: Wallet) -> Result<(Report, Vec<String>, bool), Failure> {
        let network = Arc::clone(wallet.network());
        let weights = network.committee().weights();
        let service = self.online.connect(wallet)?;
        let within = self.online.within();
        let mut forecast = Vec::new();
        let tell = |coins: &[CoinRelease]| {
            forecast.extend(coins.iter().map(|one| one.view(weights)));
            if !self.online.json {
                forecast.iter().for_each(|one| output::line(&describe(one, FORECAST)));
            }
        };
        let released = service.release(self.payment, within, tell).await.map_err(explain)?;
        let (certified, released) = match released {
            Released::Certified => (true, Vec::new()),
            Released::Coins(coins) => (false, coins),
        };
        let released = released.iter().map(|one| one.view(weights)).collect();
        let look = |wallet: &mut Wallet| {
            let lines = describe_balance(wallet);
            (wallet.balance(), lines, wallet.is_release_under_way())
        };
        let (balance, lines, is_open) = service.with(look);
        Ok((Report { forecast, released, certified, balance }, lines, is_open))
    }
}

/// Words for an end: refund, transaction, for ever, undecided.
type Words = [&'static str; 4];

const FORECAST: Words = [
    "its release would give it back",
    "its release would end with transaction {}",
    "it would stay locked for ever, so that no release is asked for",
    "what its release comes to depends on authorities that did not answer",
];

const END: Words = [
    "it came back, as was decided by these reports",
    "it goes to transaction {}, as was decided by these reports",
    "it stays locked for ever",
    "nothing is decided yet",
];

/// A coin, what authorities say of it, and its end in these words.
fn describe(one: &CoinReleaseView, [refund, spend, never, open]: Words) -> String {
    let mut locks: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for report in &one.reports {
        let transaction = report.transaction.as_deref();
        locks.entry(transaction).or_default().push(report.authority.to_string());
    }
    let part = |(transaction, authorities): (Option<&str>, Vec<String>)| {
        let transaction = transaction.map_or("nothing", |name| &name[..16]);
        format!("authorities {} are locked for {transaction}", authorities.join(", "))
    };
    let locks: Vec<String> = locks.into_iter().map(part).collect();
    let locks = if locks.is_empty() { "nobody reported".to_owned() } else { locks.join("; ") };
    let end = match one.end {
        "refund" => refund.to_owned(),
        "spend" => spend.replace("{}", one.spend.as_deref().unwrap_or_default()),
        "locked-for-ever" => never.to_owned(),
        _ => open.to_owned(),
    };
    format!("{} in coin {}: {end}\n  {locks}", one.value, one.coin)
}
