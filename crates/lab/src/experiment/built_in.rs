//! The experiments that come with the binary.

use super::{Experiment, ExperimentError};
use std::path::Path;

/// Each id with its file's text.
const FILES: [(&str, &str); 24] = [
    ("A1", include_str!("../../../../experiments/A1.toml")),
    ("H1", include_str!("../../../../experiments/H1.toml")),
    ("H2", include_str!("../../../../experiments/H2.toml")),
    ("H3", include_str!("../../../../experiments/H3.toml")),
    ("H4", include_str!("../../../../experiments/H4.toml")),
    ("H5", include_str!("../../../../experiments/H5.toml")),
    ("H6", include_str!("../../../../experiments/H6.toml")),
    ("H7", include_str!("../../../../experiments/H7.toml")),
    ("H8", include_str!("../../../../experiments/H8.toml")),
    ("J1", include_str!("../../../../experiments/J1.toml")),
    ("J2", include_str!("../../../../experiments/J2.toml")),
    ("J3", include_str!("../../../../experiments/J3.toml")),
    ("J4", include_str!("../../../../experiments/J4.toml")),
    ("J5", include_str!("../../../../experiments/J5.toml")),
    ("P1", include_str!("../../../../experiments/P1.toml")),
    ("P2", include_str!("../../../../experiments/P2.toml")),
    ("P3", include_str!("../../../../experiments/P3.toml")),
    ("P4", include_str!("../../../../experiments/P4.toml")),
    ("P5", include_str!("../../../../experiments/P5.toml")),
    ("S1", include_str!("../../../../experiments/S1.toml")),
    ("S2", include_str!("../../../../experiments/S2.toml")),
    ("S3", include_str!("../../../../experiments/S3.toml")),
    ("V1", include_str!("../../../../experiments/V1.toml")),
    ("smoke", include_str!("../../../../experiments/smoke.toml")),
];

/// The ids, in order.
pub fn ids() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.0)
}

/// The experiment with this id, or in the file with this name.
///
/// # Errors
/// When there is neither, or the file is refused.
pub fn find(name: &str) -> Result<Experiment, ExperimentError> {
    let built_in = FILES.iter().find(|file| file.0.eq_ignore_ascii_case(name));
    if let Some((id, text)) = built_in {
        return Experiment::parse(id, text);
    }
    if name.ends_with(".toml") || name.contains(std::path::MAIN_SEPARATOR) {
        return Experiment::read(Path::new(name));
    }
    let known: Vec<&str> = ids().collect();
    Err(ExperimentError::Refused {
        name: name.to_owned(),
        reason: format!("there is no such experiment: use {}, or a file's name", known.join(", ")),
    })
}
