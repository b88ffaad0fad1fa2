//! Suites, as files describe them.

use super::goal::{Goal, Limit, RATIO};
use super::{SuiteError, figures};
use crate::experiment::{
    ExperimentError, RunnerKind, Setup, metrics, parse_as, read_text, refuse_unknown, setup_of,
    suggestion, take_table, take_text,
};
use std::path::Path;
use toml::{Table, Value};

/// The suite that comes with the binary.
const BUILT_IN: &str = include_str!("../../../../experiments/suite.toml");

/// One file: rows to be measured in one sitting.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its short name, by which results are named.
    pub id: String,
    /// A line that says what it is.
    pub title: String,
    /// Subject of the suite, and how to read it.
    pub shows: String,
    /// What is measured, in the order of the table.
    pub rows: Vec<Row>,
}

/// One piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name by which it is asked for, of small letters, digits and hyphens.
    pub key: String,
    /// The work in words.
    pub title: String,
    /// Key of the row that its rate is divided by.
    pub beside: Option<String>,
    /// Everything that decides it.
    pub setup: Setup,
    /// Values that it should reach.
    pub goals: Vec<Goal>,
}

impl Suite {
    /// The suite that comes along.
    ///
    /// # Panics
    /// Never: a test reads it.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse("suite.toml", BUILT_IN).expect("a file that a test reads")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is refused.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        Self::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Reads a text; `name` is what errors call it.
    ///
    /// # Errors
    /// What is wrong, and where. Of an unknown field also the known one nearest to it.
    pub fn parse(name: &str, text: &str) -> Result<Self, ExperimentError> {
        parse_as(name, text, Self::from_table)
    }

    /// Those rows alone, in their order.
    ///
    /// # Errors
    /// When there is no such row; the error names those that there are.
    pub fn only(mut self, keys: &[String]) -> Result<Self, SuiteError> {
        let known: Vec<&str> = self.rows.iter().map(|row| row.key.as_str()).collect();
        if let Some(key) = keys.iter().find(|key| !known.contains(&key.as_str())) {
            let hint = suggestion(key, known.iter().copied());
            let (suite, known) = (self.id.clone(), known.join(", "));
            return Err(SuiteError::NoSuchRow { suite, key: key.clone(), hint, known });
        }
        self.rows.retain(|row| keys.contains(&row.key));
        Ok(self)
    }

    fn from_table(mut table: Table) -> Result<Self, String> {
        refuse_unknown(
            "the file",
            &table,
            &["id", "title", "shows", "base", "row"].map(str::to_owned),
        )?;
        let base = take_table(&mut table, "base")?;
        refuse_unknown("[base]", &base, &Setup::fields())?;
        let rows = match table.remove("row") {
            Some(Value::Array(rows)) => rows,
            Some(_) => return Err("rows are written as [[row]]".to_owned()),
            None => return Err("there is no [[row]]: nothing would be measured".to_owned()),
        };
        let rows = rows.into_iter().map(|row| Row::from_value(row, &base));
        let suite = Self {
            id: take_text(&mut table, "id")?.ok_or("'id' is missing")?,
            title: take_text(&mut table, "title")?.ok_or("'title' is missing")?,
            shows: take_text(&mut table, "shows")?.ok_or("'shows' is missing")?,
            rows: rows.collect::<Result<_, _>>()?,
        };
        suite.validate()?;
        Ok(suite)
    }

    /// Checks what rows say of one another.
    fn validate(&self) -> Result<(), String> {
        for (index, row) in self.rows.iter().enumerate() {
            if self.rows[..index].iter().any(|other| other.key == row.key) {
                return Err(format!("two rows have the key '{}'", row.key));
            }
            let Some(beside) = &row.beside else { continue };
            let others = self.rows.iter().filter(|other| other.key != row.key);
            let mut keys = others.map(|other| other.key.as_str());
            if !keys.clone().any(|key| key == beside) {
                let hint = suggestion(beside, keys.by_ref());
                let key = &row.key;
                return Err(format!(
                    "[[row]] {key}: it stands beside '{beside}', which is no other row{hint}"
                ));
            }
        }
        Ok(())
    }
}

impl Row {
    /// Fields of a row besides those of its run.
    const FIELDS: [&'static str; 5] = ["key", "title", "beside", "at_least", "at_most"];

    fn from_value(value: Value, base: &Table) -> Result<Self, String> {
        let Value::Table(mut table) = value else {
            return Err("rows are written as [[row]]".to_owned());
        };
        let key = take_text(&mut table, "key")?.ok_or("a [[row]] has no 'key'")?;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if key.is_empty() || !key.chars().all(is_plain) {
            return Err(format!("the key '{key}' must be of small letters, digits and hyphens"));
        }
        Self::from_table(&key, table, base).map_err(|reason| format!("[[row]] {key}: {reason}"))
    }

    fn from_table(key: &str, mut table: Table, base: &Table) -> Result<Self, String> {
        let known = Setup::fields().into_iter().chain(Self::FIELDS.map(str::to_owned));
        refuse_unknown("it", &table, &known.collect::<Vec<_>>())?;
        let title = take_text(&mut table, "title")?.ok_or("'title' is missing")?;
        let beside = take_text(&mut table, "beside")?;
        let mut goals = goals(take_table(&mut table, "at_least")?, Limit::AtLeast)?;
        goals.extend(self::goals(take_table(&mut table, "at_most")?, Limit::AtMost)?);
        goals.sort_by_key(|goal| figures::place(&goal.metric));
        if beside.is_none() && goals.iter().any(|goal| goal.metric == RATIO) {
            return Err(format!("'{RATIO}' is of a row that stands 'beside' another"));
        }
        let mut fields = base.clone();
        fields.extend(table);
        let setup = setup_of(fields)?;
        if setup.runner == RunnerKind::Simulated {
            return Err("'how' must be what this machine is timed with, such as processes".into());
        }
        Ok(Self { key: key.to_owned(), title, beside, setup, goals })
    }
}

fn goals(table: Table, limit: fn(f64) -> Limit) -> Result<Vec<Goal>, String> {
    let goal = |(metric, value): (String, Value)| {
        if metrics::find(&metric).is_none() {
            let names = metrics::METRICS.iter().map(|metric| metric.name);
            return Err(format!("nothing is measured as '{metric}'{}", suggestion(&metric, names)));
        }
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let number = number.ok_or_else(|| format!("the goal '{metric}' is {value}, no number"))?;
        Ok(Goal { metric, limit: limit(number) })
    };
    table.into_iter().map(goal).collect()
}
