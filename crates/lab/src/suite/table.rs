//! A result as text, for a terminal.

use super::figures::FIGURES;
use super::{RowResult, SuiteResult};
use crate::bench::table::plain;
use comfy_table::Table;

/// Draws the result as text.
#[must_use]
pub fn render(result: &SuiteResult) -> String {
    let mut text = head(result);
    text.push_str(&lines(&figures(result)));
    text.push('\n');
    for row in &result.rows {
        text.push_str(&format!("  {}: {}\n", row.row, row.work()));
    }
    if let Some(against) = against(result) {
        text.push_str(&against);
    }
    for (mark, heading, rows) in remarks(result) {
        let lines: String = rows.map(|(row, said)| format!("  {row}: {said}\n")).collect();
        if !lines.is_empty() {
            text.push_str(&format!("\n{mark}{heading}:\n{lines}"));
        }
    }
    if result.machine["optimised"] == false {
        text.push_str("\nThis binary is not optimised: build with --release for figures that mean something.\n");
    }
    text
}

/// A row's figures in one line, while others are still to come.
#[must_use]
pub fn line(row: &RowResult) -> String {
    if let Some(reason) = &row.record.failed {
        return format!("{}: no result: {reason}", row.row);
    }
    let figure = |figure: &super::figures::Figure| {
        let (_, value) = figure.of(&row.record)?;
        Some(format!("{} {}", figure.heading, (figure.text)(value)))
    };
    let figures: Vec<String> = FIGURES.iter().filter_map(figure).collect();
    format!("{}: {}", row.row, figures.join(" · "))
}

fn head(result: &SuiteResult) -> String {
    let (met, goals) = result.goals();
    format!(
        "{} · {} · {} · commit {} · seed {}\n{met} of {goals} goals met\n\n",
        result.title,
        result.started,
        result.processor(),
        result.commit(),
        result.seed,
    )
}

fn figures(result: &SuiteResult) -> Table {
    let columns = columns("goal");
    let mut table = plain(&columns, &[0, columns.len() - 1]);
    for row in &result.rows {
        table.add_row(cells(row, "\n"));
    }
    table
}

/// Cells of a row: its key, marked where the machine was not quiet, its figures and its goals.
pub(super) fn cells(row: &RowResult, between: &str) -> Vec<String> {
    let mark = if row.disturbances.is_empty() { "" } else { " *" };
    let goals = row.goals.iter().map(|goal| goal.describe(row.beside.as_deref()));
    let goals = goals.collect::<Vec<_>>().join(between);
    let figures = FIGURES.iter().map(|figure| figure.cell(&row.record));
    [format!("{}{mark}", row.row)].into_iter().chain(figures).chain([goals]).collect()
}

/// Ratios to the earlier result, where there is one.
fn against(result: &SuiteResult) -> Option<String> {
    let heading = against_heading(result)?;
    let columns = columns("note");
    let mut table = plain(&columns, &[0, columns.len() - 1]);
    for row in &result.rows {
        table.add_row(ratio_cells(row));
    }
    Some(format!("\n{heading}:\n{}", lines(&table)))
}

/// The earlier result in words.
pub(super) fn against_heading(result: &SuiteResult) -> Option<String> {
    let earlier = result.against.as_ref()?;
    let machine = if earlier.processor == result.processor() {
        String::new()
    } else {
        format!(" on another machine ({})", earlier.processor)
    };
    let (started, commit) = (&earlier.started, &earlier.commit);
    Some(format!("Ratios to the result of {started}, commit {commit}{machine}"))
}

/// Headings of a table: the row, its figures, and what stands behind them.
pub(super) fn columns(last: &'static str) -> Vec<&'static str> {
    ["row"].into_iter().chain(FIGURES.iter().map(|figure| figure.heading)).chain([last]).collect()
}

/// Cells of a row in the table of ratios.
pub(super) fn ratio_cells(row: &RowResult) -> Vec<String> {
    let compared = row.against.clone().unwrap_or_default();
    let ratio = |figure: &super::figures::Figure| {
        let found = compared.ratios.iter().find(|(name, _)| figure.has(name));
        found.map_or("-".to_owned(), |(_, ratio)| format!("×{ratio:.2}"))
    };
    let ratios = FIGURES.iter().map(ratio);
    let note = compared.note.clone().unwrap_or_default();
    [row.row.clone()].into_iter().chain(ratios).chain([note]).collect()
}

/// What is to be known of single rows: those without a result, and those on a machine that was not
/// quiet, each with what is said of it. Before each heading is its mark in the tables.
pub(super) fn remarks(
    result: &SuiteResult,
) -> [(&'static str, &'static str, impl Iterator<Item = (&str, String)>); 2] {
    let rows = |said: fn(&RowResult) -> Option<String>| {
        result.rows.iter().filter_map(move |row| Some((row.row.as_str(), said(row)?)))
    };
    let disturbed =
        |row: &RowResult| Some(row.disturbances.join("; ")).filter(|said| !said.is_empty());
    [
        ("", "Without a result", rows(|row| row.record.failed.clone())),
        ("* ", "Where the machine was not quiet", rows(disturbed)),
    ]
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("  {}\n", line.trim_end())).collect()
}
