//! Suites, as files describe them.

use super::goal::{Goal, Limit, RATIOS};
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
    /// The rate offered is so many times that of the row beside it, which is measured before.
    pub rate_times: Option<f64>,
    /// Everything that decides it; [`Row::rate_times`] changes the rate.
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

    /// Those rows alone, and those that their rates follow from, in their order.
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
        let wanted = |row: &&Row| keys.contains(&row.key);
        let bases = self.rows.iter().filter(wanted).filter_map(Row::base).map(str::to_owned);
        let keys: Vec<String> = bases.chain(keys.iter().cloned()).collect();
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
            self.validate_beside(row)?;
        }
        Ok(())
    }

    /// Checks the row that one stands beside.
    fn validate_beside(&self, row: &Row) -> Result<(), String> {
        let Some(beside) = &row.beside else { return Ok(()) };
        let key = &row.key;
        let others = self.rows.iter().filter(|other| other.key != row.key);
        let Some(base) = others.clone().find(|other| other.key == *beside) else {
            let hint = suggestion(beside, others.map(|other| other.key.as_str()));
            return Err(format!(
                "[[row]] {key}: it stands beside '{beside}', which is no other row{hint}"
            ));
        };
        if row.rate_times.is_some() && base.rate_times.is_some() {
            return Err(format!(
                "[[row]] {key}: its rate follows from '{beside}', whose own follows from another's"
            ));
        }
        Ok(())
    }
}

impl Row {
    /// Fields of a row besides those of its run.
    const FIELDS: [&'static str; 6] =
        ["key", "title", "beside", "rate_times", "at_least", "at_most"];

    /// Key of the row that its rate follows from, if it does.
    pub(super) fn base(&self) -> Option<&str> {
        self.rate_times.and(self.beside.as_deref())
    }

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
        let rate_times = rate_times(&mut table, beside.is_some())?;
        let mut goals = goals(take_table(&mut table, "at_least")?, Limit::AtLeast)?;
        goals.extend(self::goals(take_table(&mut table, "at_most")?, Limit::AtMost)?);
        goals.sort_by_key(|goal| figures::place(&goal.metric));
        let mut fields = base.clone();
        fields.extend(table);
        let setup = setup_of(fields)?;
        if setup.runner == RunnerKind::Simulated {
            return Err("'how' must be what this machine is timed with, such as processes".into());
        }
        let divided = goals.iter().find(|goal| RATIOS.contains(&goal.metric.as_str()));
        if let Some(Goal { metric, .. }) = divided.filter(|_| beside.is_none() && !setup.overload) {
            return Err(format!("'{metric}' is of a row that stands 'beside' another"));
        }
        if rate_times.is_some() && setup.find_max {
            return Err("'find_max' finds a rate, which 'rate_times' sets".to_owned());
        }
        Ok(Self { key: key.to_owned(), title, beside, rate_times, setup, goals })
    }
}

/// How many times the rate of the row beside it one is offered, if it is.
fn rate_times(table: &mut Table, is_beside: bool) -> Result<Option<f64>, String> {
    let Some(value) = table.remove("rate_times") else { return Ok(None) };
    if !is_beside {
        return Err("'rate_times' is of a row that stands 'beside' another".to_owned());
    }
    match number(&value) {
        Some(times) if times > 0.0 && times <= 100.0 => Ok(Some(times)),
        _ => Err(format!("'rate_times' is {value}; it must be above 0 and at most 100")),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn goals(table: Table, limit: fn(f64) -> Limit) -> Result<Vec<Goal>, String> {
    let goal = |(metric, value): (String, Value)| {
        if metrics::find(&metric).is_none() {
            let names = metrics::METRICS.iter().map(|metric| metric.name);
            return Err(format!("nothing is measured as '{metric}'{}", suggestion(&metric, names)));
        }
        let number =
            number(&value).ok_or_else(|| format!("the goal '{metric}' is {value}, no number"))?;
        Ok(Goal { metric, limit: limit(number) })
    };
    table.into_iter().map(goal).collect()
}
