//! Experiments, as files describe them.

use super::fields::{refuse_unknown, suggestion, take_table, take_text, take_texts};
use super::figure::{Figure, Kind};
use super::matrix::{self, Job};
use super::{Setup, metrics};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Repeats where a preset does not say.
const REPEATS: u32 = 3;

/// One file under `experiments/`: what is measured, how often, and what is drawn from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its short name, by which it is asked for and its results are named.
    pub id: String,
    /// A line that says what it is.
    pub title: String,
    /// Subject of the experiment, and how to read it.
    pub shows: String,
    /// Source that it reproduces, if any.
    pub source: String,
    /// Notes that a reader of the figures must know.
    pub notes: Vec<String>,
    /// Values for all points.
    base: Table,
    /// Fields that the points vary: all combinations of each table's values.
    matrix: Vec<Table>,
    /// By name; there is one named "default".
    pub presets: BTreeMap<String, Preset>,
    /// Figures to draw of the results.
    pub figures: Vec<Figure>,
}

/// Extent to which an experiment is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Number of times that each point is measured, with another seed each time.
    pub repeats: u32,
    /// Values that override the base's.
    set: Table,
    /// A matrix of its own; nothing for that of the experiment.
    matrix: Vec<Table>,
}

/// Reason for which an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Its contents are refused.
    #[error("{name}: {reason}")]
    Refused {
        /// Path or id of the experiment.
        name: String,
        /// Mistake, and its place.
        reason: String,
    },
}

/// The text of a file that describes what is measured.
pub(crate) fn read_text(path: &Path) -> Result<String, ExperimentError> {
    let unreadable = |source| ExperimentError::Unreadable { path: path.to_owned(), source };
    fs::read_to_string(path).map_err(unreadable)
}

/// Makes of a text's table what it describes; `name` is what errors call it.
pub(crate) fn parse_as<T>(
    name: &str,
    text: &str,
    make: impl FnOnce(Table) -> Result<T, String>,
) -> Result<T, ExperimentError> {
    let table = text.parse().map_err(|error: toml::de::Error| error.to_string());
    let refused = |reason| ExperimentError::Refused { name: name.to_owned(), reason };
    table.and_then(make).map_err(refused)
}

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is refused.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        Self::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Reads a text; `name` is what errors call it. Every preset is expanded once, so that one that
    /// is refused is refused now.
    ///
    /// # Errors
    /// What is wrong, and where. Of an unknown field also the known one nearest to it.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        parse_as(name, text, |table| {
            let experiment = Self::from_table(table)?;
            for preset in experiment.presets.keys() {
                experiment.setups(preset)?;
            }
            Ok(experiment)
        })
    }

    fn from_table(mut table: Table) -> Result<Self, String> {
        let known =
            ["id", "title", "shows", "source", "notes", "base", "matrix", "preset", "figure"];
        refuse_unknown("the file", &table, &known.map(str::to_owned))?;
        let base = take_table(&mut table, "base")?;
        refuse_unknown("[base]", &base, &Setup::fields())?;
        let matrix = take_tables(&mut table, "matrix", "[[matrix]]")?;
        let mut presets = BTreeMap::new();
        for (name, value) in take_table(&mut table, "preset")? {
            let Value::Table(values) = value else {
                return Err(format!("[preset.{name}] must be a table"));
            };
            presets.insert(name.clone(), Preset::from_table(&name, values)?);
        }
        if !presets.contains_key("default") {
            return Err("there is no [preset.default]".to_owned());
        }
        let figures = match table.remove("figure") {
            Some(Value::Array(figures)) => {
                figures.into_iter().map(figure).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("figures are written as [[figure]]".to_owned()),
            None => Vec::new(),
        };
        Ok(Self {
            id: take_text(&mut table, "id")?.ok_or("'id' is missing")?,
            title: take_text(&mut table, "title")?.ok_or("'title' is missing")?,
            shows: take_text(&mut table, "shows")?.ok_or("'shows' is missing")?,
            source: take_text(&mut table, "source")?.unwrap_or_default(),
            notes: take_texts(&mut table, "notes")?,
            base,
            matrix,
            presets,
            figures,
        })
    }

    /// The preset with this name.
    ///
    /// # Errors
    /// When there is none; the error names those that there are.
    pub fn preset(&self, name: &str) -> Result<&Preset, String> {
        self.presets.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.presets.keys().map(String::as_str).collect();
            format!("there is no preset '{name}'; {} has {}", self.id, known.join(", "))
        })
    }

    /// Everything that a preset measures, in the order in which it is.
    ///
    /// # Errors
    /// When there is no such preset.
    pub fn jobs(&self, preset: &str) -> Result<Vec<Job>, String> {
        let repeats = self.preset(preset)?.repeats;
        // One order for each experiment, the same whenever it goes on.
        let digest = quorate_crypto::hash(self.id.as_bytes());
        let seed = u64::from_le_bytes(digest.0[..8].try_into().expect("eight bytes"));
        Ok(matrix::jobs(&self.setups(preset)?, repeats, seed))
    }

    fn setups(&self, name: &str) -> Result<Vec<Setup>, String> {
        let preset = self.preset(name)?;
        let mut base = self.base.clone();
        base.extend(preset.set.clone());
        let own = [Table::new()];
        let matrices = [&preset.matrix[..], &self.matrix[..], &own[..]];
        let matrices = matrices.into_iter().find(|tables| !tables.is_empty()).unwrap_or(&own);
        let mut setups = Vec::new();
        for (index, matrix) in matrices.iter().enumerate() {
            let place = |reason| format!("preset '{name}', matrix {}: {reason}", index + 1);
            setups.extend(matrix::expand(&base, matrix).map_err(place)?);
        }
        Ok(setups)
    }
}

impl Preset {
    fn from_table(name: &str, mut table: Table) -> Result<Self, String> {
        let place = format!("[preset.{name}]");
        let matrix = take_tables(&mut table, "matrix", &format!("[[preset.{name}.matrix]]"))?;
        let repeats = match table.remove("repeats") {
            None => REPEATS,
            Some(Value::Integer(count @ 1..=1_000)) => count as u32,
            Some(other) => {
                return Err(format!("{place} 'repeats' is {other}; it must be 1 to 1000"));
            }
        };
        let mut known = Setup::fields();
        known.extend(["repeats".to_owned(), "matrix".to_owned()]);
        refuse_unknown(&place, &table, &known)?;
        Ok(Self { repeats, set: table, matrix })
    }
}

fn figure(value: Value) -> Result<Figure, String> {
    let Value::Table(table) = value else { return Err("figures are written as [[figure]]".into()) };
    let name = table.get("name").and_then(Value::as_str).unwrap_or("without a name").to_owned();
    let place = format!("[[figure]] {name}");
    refuse_unknown(&place, &table, &Figure::FIELDS.map(str::to_owned))?;
    let papers = table.get("paper").and_then(Value::as_array).cloned().unwrap_or_default();
    for paper in papers.iter().filter_map(Value::as_table) {
        let place = format!("{place}, paper");
        refuse_unknown(&place, paper, &super::figure::Published::FIELDS.map(str::to_owned))?;
    }
    let figure: Figure = table
        .try_into()
        .map_err(|error: toml::de::Error| format!("{place}: {}", error.message()))?;
    axes(&figure).map_err(|reason| format!("{place}: {reason}"))?;
    let fields = Setup::fields();
    let conditions = figure.only.keys().chain(&figure.series).chain(&figure.along);
    for name in conditions {
        if !fields.contains(name) {
            let hint = suggestion(name, fields.iter().map(String::as_str));
            return Err(format!("{place}: points have no field '{name}'{hint}"));
        }
    }
    Ok(figure)
}

/// Lines name both axes; other figures have axes of their own.
fn axes(figure: &Figure) -> Result<(), String> {
    for (field, axis) in [("x", &figure.x), ("y", &figure.y)] {
        if figure.kind != Kind::Lines {
            if !axis.is_empty() {
                return Err(format!("heat and cumulative figures have their own '{field}'"));
            }
        } else if axis.is_empty() {
            return Err(format!("'{field}' is missing"));
        } else if metrics::on_axis(axis).is_none() {
            let hint = suggestion(axis, metrics::axis_names());
            return Err(format!("nothing is measured as '{axis}'{hint}"));
        }
    }
    Ok(())
}

fn take_tables(table: &mut Table, name: &str, place: &str) -> Result<Vec<Table>, String> {
    let Some(value) = table.remove(name) else { return Ok(Vec::new()) };
    let tables: Vec<Table> =
        value.try_into().map_err(|_| format!("matrices are written as {place}"))?;
    for inner in &tables {
        refuse_unknown(place, inner, &Setup::fields())?;
    }
    Ok(tables)
}
