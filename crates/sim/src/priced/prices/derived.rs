//! Lists made from others: for machines that nobody measured.

use super::{Prices, PricesError, malformed};
use serde::Deserialize;
use toml::{Table, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Derived {
    machine: String,
    commit: String,
    date: String,
    note: String,
    /// A list that comes with this program.
    base: String,
    /// How much longer a core takes for the same.
    scale: f64,
    /// Prices that are otherwise.
    #[serde(default)]
    change: Table,
}

/// What is no work of a core: not scaled.
const NOT_SCALED: [&str; 2] = ["sync_us", "disk_mb_s"];

pub(super) fn parse(text: &str) -> Result<Prices, PricesError> {
    let derived: Derived = toml::from_str(text).map_err(malformed)?;
    let mut base = Prices::shipped(&derived.base)?;
    base.machine = derived.machine;
    base.commit = format!("{}, from {} at {}", derived.commit, derived.base, base.commit);
    base.date = derived.date;
    base.note = derived.note;
    let mut table = Table::try_from(&base).expect("plain fields");
    scale(&mut table, derived.scale);
    change(&mut table, derived.change);
    Value::Table(table).try_into().map_err(malformed)
}

fn scale(table: &mut Table, by: f64) {
    for (name, value) in table {
        match value {
            Value::Table(inner) => scale(inner, by),
            Value::Float(price) if !NOT_SCALED.contains(&name.as_str()) => *price *= by,
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
