//! One self-contained page for an experiment's results, and its figures as files.
//!
//! Written so that it can be parsed as XML, as a bench's page is; light whatever the reader prefers,
//! since its figures go into documents.

mod tables;

use super::figure::{self, Figure};
use super::results;
use super::{Experiment, Record, Signatures};
use crate::chart::{self, LIGHT_STYLE, Plot, Size, escape};
use crate::page::{LIGHT_PAGE_STYLE, READOUT};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A figure on a page, and the same for a telephone.
const SIZES: [Size; 2] =
    [Size { width: 1_040.0, height: 400.0 }, Size { width: 420.0, height: 300.0 }];
/// A figure in a file of its own.
const ALONE: Size = Size { width: 900.0, height: 380.0 };

/// One of several panels in a file.
const PANEL: Size = Size { width: 900.0, height: 230.0 };

/// What else a page says of how its results came about.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The preset.
    pub preset: String,
    /// The command that asked for it.
    pub command: String,
}

/// The page.
#[must_use]
pub fn html(experiment: &Experiment, records: &[Record], origin: &Origin) -> String {
    let title = format!("{}: {}", experiment.id, experiment.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light\"/>\n\
         <title>{}</title>\n<style>\n{LIGHT_STYLE}{LIGHT_PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&title),
    );
    header(&mut out, experiment, records, origin);
    for shown in &experiment.figures {
        section(&mut out, shown, records);
    }
    out.push_str(&tables::failures(records));
    out.push_str(&tables::settings(records));
    out.push_str(READING);
    // No tag can begin inside the results, nor an entity.
    let lines = results::lines(records).replace('<', "\\u003c").replace('&', "\\u0026");
    let _ = write!(
        out,
        "</main>\n<script type=\"application/jsonl\" id=\"quorate-experiment\">\n{lines}</script>\n\
         <script>\n{READOUT}</script>\n</body>\n</html>\n",
    );
    out
}

fn header(out: &mut String, experiment: &Experiment, records: &[Record], origin: &Origin) {
    let _ = writeln!(
        out,
        "<header><p class=\"over\">quorate reproduce · {}</p><h1>{}</h1>\n<p>{}</p>",
        escape(&experiment.id),
        escape(&experiment.title),
        escape(&experiment.shows),
    );
    if !experiment.source.is_empty() {
        let _ = writeln!(out, "<p>After {}.</p>", escape(&experiment.source));
    }
    for note in &experiment.notes {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    let _ = writeln!(out, "<p>{}</p>", escape(&circumstances(records, origin)));
    if !origin.command.is_empty() {
        let _ = writeln!(out, "<p><code>{}</code></p>", escape(&origin.command));
    }
    if records.iter().any(|record| record.machine["optimised"] == false) {
        out.push_str(
            "<p class=\"warning\">The binary was not optimised: measured times mean little.</p>\n",
        );
    }
    out.push_str("</header>\n");
}

/// Under what circumstances the results came about, in a few words.
#[must_use]
pub fn circumstances(records: &[Record], origin: &Origin) -> String {
    let Some(first) = records.first() else { return "No results.".to_owned() };
    let priced = records.iter().filter(|one| one.signatures == Signatures::Priced).count();
    let signatures = match priced {
        0 => "real signatures",
        some if some == records.len() => "priced signatures",
        _ => "real and priced signatures",
    };
    let of = |field: &str| first.machine[field].as_str().unwrap_or("unknown").to_owned();
    format!(
        "Preset {}: {} results, {signatures}; {}, {} cores; quorate {} ({}); {}.",
        origin.preset,
        records.len(),
        of("cpu"),
        first.machine["cores"],
        of("version"),
        first.commit(),
        first.started,
    )
}

fn section(out: &mut String, shown: &Figure, records: &[Record]) {
    let plots = figure::plots(shown, records);
    if plots.is_empty() {
        let [x, y] = shown.axes().map(|metric| metric.map_or("", |metric| metric.label));
        let _ = writeln!(
            out,
            "<section><h2>{}</h2><p class=\"quiet\">No result has both {} and {}.</p></section>",
            escape(&shown.title),
            escape(x),
            escape(y),
        );
        return;
    }
    let _ = write!(out, "<section><h2>{}</h2>", escape(&shown.title));
    for plot in &plots {
        let caption = match plots.len() {
            1 => plot.note.clone(),
            _ => format!("{}. {}", plot.title, plot.note),
        };
        let _ = write!(
            out,
            "<div class=\"charts\"><figure id=\"{}\"><figcaption><span>{}</span></figcaption>\n\
             <div class=\"wide\">{}</div><div class=\"narrow\">{}</div></figure></div>\n",
            escape(&plot.name),
            escape(&caption),
            drawn(plot, SIZES[0]),
            drawn(plot, SIZES[1]),
        );
    }
    let _ = writeln!(out, "{}</section>", tables::figure(shown, records));
}

fn drawn(plot: &Plot, size: Size) -> String {
    chart::svg(plot, size, chart::indent([plot], size))
}

/// Writes the page beside its results, and each figure as an SVG file. Returns what was written, the
/// page first.
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

const READING: &str = "<section class=\"reading\"><h2>How to read it</h2><ul>\n\
<li><b>Points</b> are means of repeats with other seeds; bars reach one sample standard deviation to \
each side, and are left out where they would lie within the point.</li>\n\
<li><b>Lines</b> go through the points in the order of the load, or of what lies on the x axis: a curve \
that bends back is a committee that was offered more than it takes.</li>\n\
<li><b>Stars</b> are published values, arrows published bounds; what they are read from is in the tables.</li>\n\
<li>This page holds its results as JSON lines, each with its full configuration.</li>\n\
</ul></section>\n";
