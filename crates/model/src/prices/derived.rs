//! Price lists made from others: for machines that nobody measured.

use super::{ExecutionPrices, LogPrices, Prices, PricesError, malformed};
use crate::profile::Behaviour;
use serde::Deserialize;
use toml::{Table, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Derived {
    machine: String,
    commit: String,
    date: String,
    note: String,
    /// Cores, where it has not as many as the other.
    cores: Option<u16>,
    /// A list that comes with this program.
    base: String,
    /// Factor on the time that a core takes for the same.
    scale: f64,
    /// Prices that are otherwise.
    #[serde(default)]
    change: Table,
}

/// Fields that are not scaled: no work of a core, or a ratio.
const NOT_SCALED: [&str; 5] =
    ["sync_us", "sync_shared_us", "disk_mb_s", "crowded", "wake_delay_us"];

pub(super) fn parse(text: &str) -> Result<Prices, PricesError> {
    let derived: Derived = toml::from_str(text).map_err(malformed)?;
    let mut base = Prices::shipped(&derived.base)?;
    base.machine = derived.machine;
    base.commit = format!("{}, from {} at {}", derived.commit, derived.base, base.commit);
    base.date = derived.date;
    base.note = derived.note;
    base.cores = derived.cores.unwrap_or(base.cores);
    let mut table = Table::try_from(base.slowed(derived.scale)).expect("plain fields");
    change(&mut table, derived.change);
    Value::Table(table).try_into().map_err(malformed)
}

impl Prices {
    /// List of a machine whose cores take so many times as long. Its disk is the same.
    #[must_use]
    pub fn slowed(&self, times: f64) -> Self {
        let mut table = Table::try_from(self).expect("plain fields");
        scale(&mut table, times);
        Value::Table(table).try_into().expect("the same fields")
    }

    /// List of a machine on which signatures cost nothing, as where nobody makes or checks any.
    #[must_use]
    pub fn without_signatures(&self) -> Self {
        let mut table = Table::try_from(self).expect("plain fields");
        for scheme in ["ed25519", "bls", "secp256k1"] {
            if let Some(Value::Table(prices)) = table.get_mut(scheme) {
                scale(prices, 0.0);
            }
        }
        Value::Table(table).try_into().expect("the same fields")
    }
}

impl Prices {
    /// List as implementations of such a behaviour pay it.
    ///
    /// Without encryption a byte costs a socket's copies alone, 0.55 of both (0.50 s against 0.90 s
    /// a gigabyte at both ends). Who executes nothing pays nothing for it.
    pub(crate) fn as_paid(&self, behaviour: Behaviour) -> Self {
        let mut prices = self.clone();
        prices.hash.byte_ns *= behaviour.hash_byte_times;
        if !behaviour.encrypts {
            prices.net.send_byte_ns *= 0.55;
            prices.net.receive_byte_ns *= 0.55;
        }
        if let Some((entry_us, byte_ns)) = behaviour.store {
            prices.log = LogPrices { group_us: 0.0, entry_us, byte_ns, ..prices.log };
        }
        if !behaviour.executes {
            prices.execution = ExecutionPrices::default();
        }
        prices
    }
}

fn scale(table: &mut Table, by: f64) {
    for (_, value) in table.iter_mut().filter(|(name, _)| !NOT_SCALED.contains(&name.as_str())) {
        match value {
            Value::Table(inner) => scale(inner, by),
            Value::Float(price) => *price *= by,
            _ => {}
        }
    }
}

/// A field of the wrong name becomes one that does not exist, and is refused as such.
fn change(table: &mut Table, changes: Table) {
    for (name, value) in changes {
        match (table.get_mut(&name), value) {
            (Some(Value::Table(inner)), Value::Table(changes)) => change(inner, changes),
            (_, value) => drop(table.insert(name, value)),
        }
    }
}
