//! The history as lines: for programs, and as a table for auditors.

use super::payment::{Entry, Incoming, Line, Payment};
use super::{Purpose, Wallet, WalletError};
use quorate_crypto::IdentityKey;
use serde::Serialize;
use std::fmt::Write as _;

const HEAD: &str = "time,direction,kind,value,counterparty,transaction,memo,state,ended,key,by\n";

/// A line of the history, in plain fields. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryLine {
    /// Time at which it was stored here, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// `in`, `out` or `self`.
    pub direction: &'static str,
    /// `genesis`, `receive`, `pay`, `issue`, `redeem`, `consolidate` or `refund`.
    pub kind: &'static str,
    /// Value that went there, in the smallest unit.
    pub value: u64,
    /// Key at the other end; none for an output of the genesis.
    pub counterparty: Option<String>,
    /// Identifier of the transaction, in hexadecimal.
    pub transaction: String,
    /// Memo that the payer signed.
    pub memo: Option<String>,
    /// `unfinished`, `certified`, `refused`, `conflicting`, `released`; of a payment that lost,
    /// `releasing` while its coins are under release, and `refunded` when they came back.
    pub state: &'static str,
    /// Time at which that state was known, in milliseconds since the Unix epoch.
    pub ended_ms: Option<u64>,
    /// The caller's name for a payment.
    pub key: Option<String>,
    /// Name of whoever ordered a payment, where there are names.
    pub by: Option<String>,
}

impl Wallet {
    /// History of the wallet, in the order of its records.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn history(&self) -> Result<Vec<HistoryLine>, WalletError> {
        let line = |line: Line| match &line.entry {
            Entry::Incoming(incoming) => of_incoming(incoming),
            Entry::Payment(payment) => {
                of_payment(payment, self.owner(), self.state.state_name(payment))
            }
        };
        Ok(self.lines()?.into_iter().map(line).collect())
    }

    /// The history as comma-separated values (RFC 4180), times in UTC.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn to_csv(&self) -> Result<String, WalletError> {
        let mut text = HEAD.to_owned();
        for line in self.history()? {
            let fields = line.fields().map(|field| quote(&field));
            writeln!(text, "{}", fields.join(",")).expect("writing into memory cannot fail");
        }
        Ok(text)
    }
}

impl HistoryLine {
    fn fields(self) -> [String; 11] {
        [
            utc(self.at_ms),
            self.direction.to_owned(),
            self.kind.to_owned(),
            self.value.to_string(),
            self.counterparty.unwrap_or_default(),
            self.transaction,
            self.memo.unwrap_or_default(),
            self.state.to_owned(),
            self.ended_ms.map(utc).unwrap_or_default(),
            self.key.unwrap_or_default(),
            self.by.unwrap_or_default(),
        ]
    }
}

fn of_incoming(incoming: &Incoming) -> HistoryLine {
    HistoryLine {
        at_ms: incoming.at_ms,
        direction: "in",
        kind: if incoming.payer.is_some() { "receive" } else { "genesis" },
        value: incoming.value,
        counterparty: incoming.payer.map(|payer| payer.to_string()),
        transaction: incoming.tx.to_string(),
        memo: incoming.memo.as_ref().map(|memo| memo.text.clone()),
        state: "certified",
        ended_ms: Some(incoming.at_ms),
        key: None,
        by: None,
    }
}

fn of_payment(payment: &Payment, owner: IdentityKey, state: &'static str) -> HistoryLine {
    let payee = payment.payee();
    let direction = match payment.order.purpose {
        Purpose::Consolidate | Purpose::Refund => "self",
        Purpose::Issue { .. } if payee == owner => "in",
        _ => "out",
    };
    HistoryLine {
        at_ms: payment.begun_ms,
        direction,
        kind: payment.order.purpose.name(),
        value: payment.value(),
        counterparty: Some(payee.to_string()),
        transaction: payment.id.to_string(),
        memo: payment.order.memo.clone(),
        state,
        ended_ms: payment.state.ended_ms(),
        key: payment.key.clone(),
        by: payment.by.clone(),
    }
}

/// A field as a table's program reads it back. Memos are a stranger's words: one that begins like a
/// formula gets an apostrophe, so that no program computes it.
fn quote(field: &str) -> String {
    let guard = if field.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if guard.is_empty() && !field.contains(['"', ',', '\n', '\r']) {
        return field.to_owned();
    }
    format!("\"{guard}{}\"", field.replace('"', "\"\""))
}

/// Milliseconds since the Unix epoch as `2026-01-31T12:34:56.789Z`.
#[must_use]
pub fn utc(at_ms: u64) -> String {
    let (seconds, millis) = (at_ms / 1_000, at_ms % 1_000);
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day since the Unix epoch: Hinnant's `civil_from_days`, in which years
/// begin in March, so that the leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let passed = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
    let day_of_year = day_of_era - passed;
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::{quote, utc};

    #[test]
    fn times_have_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(1_709_210_096_789), "2024-02-29T12:34:56.789Z");
        assert_eq!(utc(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
        assert_eq!(utc(951_868_800_000), "2000-03-01T00:00:00.000Z");
    }

    #[test]
    fn fields_are_read_back_and_computed_by_nobody() {
        for (field, expected) in [
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "\"'=1+1\""),
            ("@x,y", "\"'@x,y\""),
        ] {
            assert_eq!(quote(field), expected);
        }
    }
}
