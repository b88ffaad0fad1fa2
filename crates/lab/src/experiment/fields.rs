//! Fields of a TOML file, each refused in words where it does not fit.

use quorate_node::config::check::nearest;
use toml::{Table, Value};

/// Refuses the first field that is not known, and names the known one nearest to it.
pub(crate) fn refuse_unknown(place: &str, table: &Table, known: &[String]) -> Result<(), String> {
    let Some(name) = table.keys().find(|name| !known.contains(name)) else { return Ok(()) };
    let hint = suggestion(name, known.iter().map(String::as_str));
    Err(format!("{place} has an unknown field '{name}'{hint}"))
}

pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |near| format!(": did you mean '{near}'?"))
}

pub(crate) fn take_table(table: &mut Table, name: &str) -> Result<Table, String> {
    match table.remove(name) {
        None => Ok(Table::new()),
        Some(Value::Table(inner)) => Ok(inner),
        Some(_) => Err(format!("[{name}] must be a table")),
    }
}

pub(crate) fn take_text(table: &mut Table, name: &str) -> Result<Option<String>, String> {
    match table.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
        Some(_) => Err(format!("'{name}' must be a text")),
    }
}

pub(super) fn take_texts(table: &mut Table, name: &str) -> Result<Vec<String>, String> {
    let Some(value) = table.remove(name) else { return Ok(Vec::new()) };
    value.try_into().map_err(|_| format!("'{name}' must be a list of texts"))
}
