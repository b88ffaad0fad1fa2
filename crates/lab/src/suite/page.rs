//! A result as a page of documentation, in Markdown.

use super::result::write;
use super::table::{against_heading, cells, columns, ratio_cells, remarks};
use super::{SuiteError, SuiteResult};
use quorate_report::text::{markdown_table, span};
use serde_json::Value;
use std::path::Path;

/// Checks that figures of a binary may go into documentation: it is optimised, and one commit is
/// all of it.
///
/// # Errors
/// A sentence that says what to do.
pub fn check_binary(machine: &Value) -> Result<(), String> {
    let commit = machine["commit"].as_str().unwrap_or("unknown");
    if commit == "unknown" || commit.ends_with("-dirty") {
        return Err(format!(
            "a page names the commit of its figures, and that of this binary is {commit}: commit \
             what was changed, build again, and measure with that"
        ));
    }
    if machine["optimised"] != true {
        return Err("a page has figures of an optimised binary: build with --release".to_owned());
    }
    Ok(())
}

/// The result as a page.
#[must_use]
pub fn markdown(result: &SuiteResult) -> String {
    let rows = result.rows.iter().map(|row| cells(row, "; "));
    let mut text = format!("{}\n{}", head(result), table(&columns("goal"), rows));
    text.push_str(&sections(result));
    text
}

/// Writes the page.
///
/// # Errors
/// When the system refuses.
pub fn write_page(path: &Path, result: &SuiteResult) -> Result<(), SuiteError> {
    write(path, &markdown(result))
}

fn head(result: &SuiteResult) -> String {
    let order: Vec<String> = result.order.iter().map(|key| format!("`{key}`")).collect();
    let (met, goals) = result.goals();
    let early = match &result.ended_early {
        Some(reason) => format!(" It ended early: {reason}."),
        None => String::new(),
    };
    format!(
        "# {title}\n\n{shows}\n\n```console\n{command}\n```\n\n\
         Commit {commit}; {processor}, {memory} MiB, {disk}, {kernel}; {started}, {took} in one sitting. \
         Rows ran in this order, which seed {seed} decided: {order}.{early} {met} of {goals} goals are met.\n",
        title = result.title,
        shows = result.shows,
        command = result.command,
        commit = result.commit(),
        processor = result.processor(),
        memory = result.machine["memory_mb"],
        disk = result.machine["disk"].as_str().unwrap_or("unknown disk"),
        kernel = result.machine["kernel"].as_str().unwrap_or("unknown kernel"),
        started = result.started,
        took = span(result.wall_s),
        seed = result.seed,
        order = order.join(", "),
    )
}

fn sections(result: &SuiteResult) -> String {
    let mut text = "\n".to_owned();
    for row in &result.rows {
        text.push_str(&format!("- `{}`: {}.\n", row.row, row.work()));
    }
    if let Some(heading) = against_heading(result) {
        let rows = result.rows.iter().map(ratio_cells);
        text.push_str(&format!("\n## Against an earlier result\n\n{heading}.\n\n"));
        text.push_str(&table(&columns("note"), rows));
    }
    for (_, heading, rows) in remarks(result) {
        let items: String = rows.map(|(row, said)| format!("- `{row}`: {said}.\n")).collect();
        if !items.is_empty() {
            text.push_str(&format!("\n## {heading}\n\n{items}"));
        }
    }
    text
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let headings: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    markdown_table(&headings, rows)
}
