//! Text forms in files, for types that have one: `#[serde(with = "as_text")]`.

use serde::{Deserialize, Deserializer, Serializer};
use std::fmt::Display;
use std::str::FromStr;

/// Writes the text that [`Display`] gives.
///
/// # Errors
/// Those of the format.
pub fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Reads the text that [`FromStr`] takes.
///
/// # Errors
/// When it is no text, or not one of this type.
pub fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}
