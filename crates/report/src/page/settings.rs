//! Configurations as rows: path and value.

use serde_json::Value;
use std::collections::BTreeMap;

/// Every setting by its path, parts separated by dots.
pub(super) fn flatten(config: &Value) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    descend(config, String::new(), &mut rows);
    rows
}

fn descend(value: &Value, path: String, rows: &mut BTreeMap<String, String>) {
    let join =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, inner)| descend(inner, join(name), rows));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (index, inner) in items.iter().enumerate() {
                descend(inner, join(&index.to_string()), rows);
            }
        }
        plain => {
            rows.insert(path, text(plain));
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

/// The paths whose values are not the same everywhere.
pub(super) fn differing(all: &[BTreeMap<String, String>]) -> Vec<String> {
    let paths: std::collections::BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let differs = |path: &&String| all.windows(2).any(|p| p[0].get(*path) != p[1].get(*path));
    paths.into_iter().filter(differs).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{differing, flatten};
    use serde_json::json;

    #[test]
    fn parts_become_paths() {
        let rows = flatten(&json!({"a": 1, "b": {"c": true, "d": [1, 2], "e": []}, "f": null}));
        let rows: Vec<_> =
            rows.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
        let expected = [("a", "1"), ("b.c", "yes"), ("b.d", "1, 2"), ("b.e", "none"), ("f", "-")];
        assert_eq!(rows, expected);
        let lists = flatten(&json!({"list": [{"x": 1}, {"x": 2}]}));
        assert_eq!(lists.keys().collect::<Vec<_>>(), ["list.0.x", "list.1.x"]);
    }

    #[test]
    fn what_is_missing_on_one_side_differs() {
        let a = flatten(&json!({"same": 1, "other": 1, "only": 1}));
        let b = flatten(&json!({"same": 1, "other": 2}));
        assert_eq!(differing(&[a.clone(), b]), ["only", "other"]);
        assert!(differing(&[a.clone(), a]).is_empty());
    }
}
