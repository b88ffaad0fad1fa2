//! Names of points and lines.

use crate::experiment::Record;
use serde_json::Value;

/// A field's value as text.
pub(super) fn value(record: &Record, field: &str) -> String {
    match record.setup.to_json().get(field) {
        Some(Value::String(text)) => readable(text).to_owned(),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(", "),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn readable(text: &str) -> &str {
    match text {
        "ed25519" => "Ed25519",
        "bls" => "BLS",
        other => other,
    }
}

/// A line's name: by its template, or its fields' values one after another.
pub(super) fn line(record: &Record, template: Option<&str>, fields: &[String]) -> String {
    match template {
        Some(template) => filled(record, template),
        None => fields.iter().map(|field| said(record, field)).collect::<Vec<_>>().join(", "),
    }
}

/// Every `{field}` replaced by the field's value.
fn filled(record: &Record, template: &str) -> String {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((field, rest)) => text.push_str(&(value(record, field) + rest)),
            None => text.push_str(part),
        }
    }
    text
}

/// A field and its value, as people say it.
fn said(record: &Record, field: &str) -> String {
    let value = value(record, field);
    match (field, value.as_str()) {
        ("validators", _) => format!("n = {value}"),
        ("scheme" | "prices" | "profile" | "regions", _) => value,
        ("verify", _) => format!("votes checked: {value}"),
        ("key_cache", "on") => "cached key".to_owned(),
        ("key_cache", "subtract") => "cached key, always subtracted".to_owned(),
        ("key_cache", "off") => "keys added anew".to_owned(),
        ("keys_inside", "true") => "with keys inside".to_owned(),
        ("keys_inside", "false") => "without keys".to_owned(),
        ("core_speed", "1.0") => "full speed".to_owned(),
        ("core_speed", _) => format!("core at {value}"),
        ("vote_wait_ms", _) => format!("wait {value} ms"),
        _ => format!("{field} {value}"),
    }
}
