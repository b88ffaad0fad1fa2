//! One self-contained page for an experiment's results, and its figures as files.
//!
//! Light whatever the reader prefers, since its figures go into documents.

mod tables;

use super::figure::{self, Figure};
use super::results;
use super::{Experiment, Record, Signatures};
use maud::{Markup, PreEscaped, html};
use quorate_report::chart::{self, Plot, Size};
use quorate_report::page::{Colours, Results, document};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A figure on a page, and the same for a telephone.
const SIZES: [Size; 2] =
    [Size { width: 1_040.0, height: 400.0 }, Size { width: 420.0, height: 300.0 }];
/// A figure in a file of its own.
const ALONE: Size = Size { width: 900.0, height: 380.0 };

/// One of several panels in a file.
const PANEL: Size = Size { width: 900.0, height: 230.0 };

/// Origin of a page's results besides the experiment.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the preset.
    pub preset: String,
    /// The command that asked for it.
    pub command: String,
}

/// The page of an experiment, which holds its results.
#[must_use]
pub fn html(experiment: &Experiment, records: &[Record], origin: &Origin) -> String {
    let title = format!("{}: {}", experiment.id, experiment.title);
    let shown = html! {
        (header(experiment, records, origin))
        @for shown in &experiment.figures { (section(shown, records)) }
        (tables::failures(records))
        (tables::doubts(records))
        (tables::settings(records))
        (reading())
    };
    let text = format!("\n{}", results::lines(records));
    let results =
        Results { media_type: "application/jsonl", id: "quorate-experiment", text: &text };
    document(&title, Colours::Light, &shown, &results)
}

fn header(experiment: &Experiment, records: &[Record], origin: &Origin) -> Markup {
    let unoptimised = records.iter().any(|record| record.machine["optimised"] == false);
    html! {
        header {
            p.over { "quorate reproduce · " (experiment.id) }
            h1 { (experiment.title) }
            p { (experiment.shows) }
            @if !experiment.source.is_empty() { p { "After " (experiment.source) "." } }
            @for note in &experiment.notes { p { (note) } }
            p { (circumstances(records, origin)) }
            @if !origin.command.is_empty() { p { code { (origin.command) } } }
            @if unoptimised {
                p.warning { "The binary was not optimised: measured times mean little." }
            }
        }
    }
}

/// Under what circumstances the results came about, in a few words.
#[must_use]
pub fn circumstances(records: &[Record], origin: &Origin) -> String {
    let Some(first) = records.iter().min_by_key(|record| &record.started) else {
        return "No results.".to_owned();
    };
    let priced = records.iter().filter(|one| one.signatures == Signatures::Priced).count();
    let signatures = match priced {
        0 => "real signatures",
        some if some == records.len() => "priced signatures",
        _ => "real and priced signatures",
    };
    let of = |field: &str| first.machine[field].as_str().unwrap_or("unknown").to_owned();
    let processors: BTreeSet<String> = records.iter().map(Record::processor).collect();
    format!(
        "Preset {}: {} results, {signatures}; {}; quorate {} ({}); {}.",
        origin.preset,
        records.len(),
        processors.into_iter().collect::<Vec<_>>().join(" and "),
        of("version"),
        first.commit(),
        first.started,
    )
}

fn section(shown: &Figure, records: &[Record]) -> Markup {
    let plots = figure::plots(shown, records);
    let [x, y] = shown.axes().map(|metric| metric.map_or("", |metric| metric.label));
    html! {
        section {
            h2 { (shown.title) }
            @if plots.is_empty() {
                p.quiet { "No result has both " (x) " and " (y) "." }
            } @else {
                @for plot in &plots { (drawing(plot, plots.len())) }
                (tables::figure(shown, records))
            }
        }
    }
}

/// One plot of a figure of `count`: several have their own titles.
fn drawing(plot: &Plot, count: usize) -> Markup {
    html! {
        div.charts {
            figure id=(plot.name) {
                figcaption { span { @if count > 1 { (plot.title) ". " } (plot.note) } }
                div.wide { (drawn(plot, SIZES[0])) }
                div.narrow { (drawn(plot, SIZES[1])) }
            }
        }
    }
}

fn drawn(plot: &Plot, size: Size) -> Markup {
    PreEscaped(chart::svg(plot, size, chart::indent([plot], size)))
}

/// Writes the page beside its results, and each figure as an SVG file. Returns what was written,
/// the page first.
///
/// # Errors
/// When the system refuses.
pub fn write(
    folder: &Path,
    experiment: &Experiment,
    records: &[Record],
    origin: &Origin,
) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let page = folder.join(format!("{}.{}.html", experiment.id, origin.preset));
    fs::write(&page, html(experiment, records, origin))?;
    let mut written = vec![page];
    for shown in &experiment.figures {
        let plots = figure::plots(shown, records);
        let Some(first) = plots.first() else { continue };
        let path = folder.join(format!("{}.{}.{}.svg", experiment.id, origin.preset, shown.name));
        let heading = format!("{}: {}", experiment.id, experiment.title);
        let lines = [first.note.clone(), circumstances(records, origin)];
        let size = if plots.len() == 1 { ALONE } else { PANEL };
        fs::write(&path, chart::standalone_light(&heading, &lines, &plots, size))?;
        written.push(path);
    }
    Ok(written)
}

fn reading() -> Markup {
    html! {
        section.reading {
            h2 { "How to read it" }
            ul {
                li {
                    b { "Points" } " are means of repeats with other seeds; bars reach one sample "
                    "standard deviation to each side, and are left out where they would lie within "
                    "the point."
                }
                li {
                    b { "Lines" } " go through the points in the order of the load, or of what lies "
                    "on the x axis: a curve that bends back is a committee that was offered more "
                    "than it takes."
                }
                li {
                    b { "Crosses" } " are points whose window was not stationary, had too few samples "
                    "or views that timed out though nobody crashed, however long it was made; "
                    "what each failed is in a table."
                }
                li {
                    b { "Stars" } " are published values, arrows published bounds; what they are "
                    "read from is in the tables."
                }
                li {
                    "This page holds its results as JSON lines, each with its full configuration."
                }
            }
        }
    }
}
