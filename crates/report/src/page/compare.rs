//! Runs compared as text.

use super::Run;
use super::figures::{self, Figure};
use super::settings::{differing, flatten};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Figures side by side, with the ratio of each run to the first, and the settings that differ.
#[must_use]
pub fn table(runs: &[Run]) -> String {
    let mut text = lines(&figures(runs));
    let settings = settings(runs);
    if settings.row_count() == 0 {
        text.push_str("\nThe runs have the same settings on the same machine.\n");
    } else {
        text.push_str("\nWhat differs in their settings:\n");
        text.push_str(&lines(&settings));
    }
    text
}

fn figures(runs: &[Run]) -> Table {
    let mut table = plain();
    let mut header = vec![String::new(), String::new()];
    for (index, run) in runs.iter().enumerate() {
        header.push(run.label.clone());
        if index > 0 {
            header.push("ratio".to_owned());
        }
    }
    table.set_header(header);
    for figure in figures::of(&runs.iter().map(|run| &run.report)) {
        table.add_row(row(&figure, runs));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(figure: &Figure, runs: &[Run]) -> Vec<String> {
    let mut cells = vec![figure.name.to_owned(), figure.unit.to_owned()];
    for (index, run) in runs.iter().enumerate() {
        cells.push(figure.text(&run.report));
        if index > 0 {
            let ratio = figure.ratio(&runs[0].report, &run.report);
            cells.push(ratio.map_or("-".to_owned(), |ratio| format!("×{ratio:.2}")));
        }
    }
    cells
}

fn settings(runs: &[Run]) -> Table {
    let mut table = plain();
    let all: Vec<_> = runs.iter().map(|run| flatten(&run.report.config)).collect();
    for path in differing(&all) {
        let value = |rows: &std::collections::BTreeMap<String, String>| {
            rows.get(&path).map_or("-".to_owned(), String::clone)
        };
        let mut cells = vec![path.clone()];
        cells.extend(all.iter().map(value));
        table.add_row(cells);
    }
    table
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("  {}\n", line.trim_end())).collect()
}
