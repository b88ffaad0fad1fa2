//! The first screen is short, and its table says nothing that no page of results says.

use crate::finding::Finding;
use crate::tree::Tree;

const PAGE: &str = "README.md";
const LINES_MAX: usize = 100;
const COLUMNS: [&str; 8] =
    ["n", "protocol", "scheme", "tx/s", "p50 ms", "p99 ms", "machine", "commit"];
/// Protocol of a bench that names none.
const DEFAULT_PROTOCOL: &str = "Jolteon";

/// Rows whose figures stand in no line of the page that they link; and lines beyond the first
/// hundred.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.page(PAGE);
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        let advice =
            format!("{lines} lines, {LINES_MAX} are the most: move what is no first screen");
        found.push(Finding::new(PAGE, lines, advice));
    }
    let header = format!("| {} |", COLUMNS.join(" | "));
    let start = text.lines().position(|line| line == header);
    let Some(start) = start else {
        found.push(Finding::new(PAGE, 1, format!("there is no table of results: {header}")));
        return found;
    };
    let rows = text.lines().enumerate().skip(start + 2);
    for (at, row) in rows.take_while(|(_, row)| row.starts_with('|')) {
        if let Err(advice) = row_is_current(tree, &cells(row)) {
            found.push(Finding::new(PAGE, at + 1, advice));
        }
    }
    found
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// Compares a row with the page that its last cell links, `[commit](page)`.
fn row_is_current(tree: &Tree, row: &[&str]) -> Result<(), String> {
    let [n, protocol, scheme, figures @ .., machine, link] = row else {
        return Err("a row has the columns of the header".to_owned());
    };
    let (commit, path) = link
        .strip_prefix('[')
        .and_then(|link| link.strip_suffix(')'))
        .and_then(|link| link.split_once("]("))
        .ok_or("the last cell links the page of results by its commit")?;
    let page = tree.page(path);
    let words = page.to_lowercase();
    let mut named = machine.split(", ").chain([commit, *scheme]);
    if let Some(missing) = named.find(|part| !words.contains(&part.to_lowercase())) {
        return Err(format!("{path} does not name “{missing}”"));
    }
    let figures: Vec<&str> = figures.iter().filter(|&&figure| figure != "–").copied().collect();
    if tables(page).iter().any(|table| has_line(table, page, n, protocol, scheme, &figures)) {
        Ok(())
    } else {
        Err(format!("no line of {path} has these figures: copy it from there"))
    }
}

/// Tables of a page: their lines' cells, the header first.
fn tables(page: &str) -> Vec<Vec<Vec<&str>>> {
    let mut tables: Vec<Vec<Vec<&str>>> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let row = line.starts_with('|');
        match tables.last_mut() {
            Some(table) if row && inside => table.push(cells(line)),
            _ if row => tables.push(vec![cells(line)]),
            _ => {}
        }
        inside = row;
    }
    tables
}

/// Returns `true` if one line of the table has all figures, and it or its page the rest.
fn has_line(
    table: &[Vec<&str>],
    page: &str,
    n: &str,
    protocol: &str,
    scheme: &str,
    figures: &[&str],
) -> bool {
    let schemes = table[0].contains(&"scheme");
    table.iter().skip(2).any(|line| {
        let numbers: Vec<&str> = line.iter().flat_map(|cell| numbers(cell)).collect();
        let column =
            line.iter().position(|cell| figures.get(1).is_some_and(|p50| cell.starts_with(p50)));
        let above = column.and_then(|column| table[0].get(column)).copied().unwrap_or_default();
        let runs = above.eq_ignore_ascii_case(protocol)
            || line.iter().any(|cell| cell.eq_ignore_ascii_case(protocol))
            || protocol == DEFAULT_PROTOCOL;
        let signed = !schemes || line.iter().any(|cell| cell.eq_ignore_ascii_case(scheme));
        let size =
            if table[0][0] == "n" { line[0] == n } else { page.contains(&format!("n = {n}")) };
        runs && signed && size && figures.iter().all(|figure| numbers.contains(figure))
    })
}

/// Numbers in a cell, with their commas and points.
fn numbers(cell: &str) -> impl Iterator<Item = &str> {
    let parts = cell.split(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
    parts.map(|part| part.trim_matches([',', '.'])).filter(|part| !part.is_empty())
}
