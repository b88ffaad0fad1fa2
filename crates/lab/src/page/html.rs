//! The page around charts and tables.
//!
//! It is written so that it can be parsed as XML as well as HTML: every element is closed, every
//! attribute quoted. So a test can read it with a strict parser.

use super::figures::{self, Figure};
use super::run::scheme;
use super::{Run, charts, file, tables};
use crate::bench::Report;
use crate::chart::{self, Plot, Size, escape};
use crate::text::grouped;
use std::fmt::Write;

const STYLE: &str = concat!(include_str!("style.css"), include_str!("dark.css"));
/// The same without the part for readers who prefer dark pages.
pub(crate) const LIGHT_PAGE_STYLE: &str = include_str!("style.css");
/// What a line says under the pointer.
pub(crate) const READOUT: &str = include_str!("readout.js");

/// A chart over the full width, and the same for a telephone.
const FULL: [Size; 2] =
    [Size { width: 1_040.0, height: 250.0 }, Size { width: 420.0, height: 220.0 }];
/// A chart over half of it.
const HALF: [Size; 2] =
    [Size { width: 508.0, height: 230.0 }, Size { width: 420.0, height: 220.0 }];

/// The figures at the top.
const HEADLINES: [&str; 6] = [
    "committed by every healthy validator",
    "latency, median",
    "latency, 99 %",
    "bytes sent by all validators",
    "CPU of all validators",
    "memory of one validator, at most",
];

/// A page that shows these runs, and holds them.
///
/// # Panics
/// When there are none.
#[must_use]
pub fn html(runs: &[Run]) -> String {
    let title = title(runs);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&title),
        chart::STYLE,
    );
    header(&mut out, &title, runs);
    headlines(&mut out, runs);
    drawings(&mut out, runs);
    details(&mut out, runs);
    // No tag can begin inside the results, nor an entity.
    let results = file::results(runs).replace('<', "\\u003c").replace('&', "\\u0026");
    let _ = write!(
        out,
        "</main>\n{}{results}{}\n<script>\n{READOUT}</script>\n</body>\n</html>\n",
        file::OPENING,
        file::CLOSING,
    );
    out
}

/// What a page of these runs is called.
#[must_use]
pub fn title(runs: &[Run]) -> String {
    match runs {
        [run] => format!(
            "{} validators, {}, {}",
            grouped(&run.report.setting("validators")),
            scheme(&run.report.setting("scheme")),
            load(&run.report),
        ),
        _ => runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>().join(" against "),
    }
}

/// What was offered: in a closed loop that is no setting.
fn load(report: &Report) -> String {
    match report.setting("load").as_str() {
        "closed" => "closed loop".to_owned(),
        _ => format!("{} tx/s offered", grouped(&report.setting("rate"))),
    }
}

fn header(out: &mut String, title: &str, runs: &[Run]) {
    let _ = writeln!(out, "<header><p class=\"over\">quorate bench</p><h1>{}</h1>", escape(title));
    for run in runs {
        let name =
            if runs.len() > 1 { format!("<b>{}</b>: ", escape(&run.label)) } else { String::new() };
        let _ = writeln!(out, "<p>{name}{}</p>", escape(&circumstances(&run.report)));
    }
    for run in runs.iter().filter(|run| !run.report.command.is_empty()) {
        let _ = writeln!(out, "<p><code>{}</code></p>", escape(&run.report.command));
    }
    if runs.iter().any(|run| run.report.config["machine"]["optimised"] == false) {
        out.push_str(
            "<p class=\"warning\">The binary was not optimised: these figures mean little.</p>\n",
        );
    }
    out.push_str("</header>\n");
}

/// Under what circumstances it was measured, in one sentence.
fn circumstances(report: &Report) -> String {
    let setting = |path| report.setting(path);
    format!(
        "{}-byte operations, {} service, {}; {} s after {} s of warm-up; {}, {} cores, shared with \
         the load; quorate {} ({}); {}.",
        setting("tx_bytes"),
        setting("service"),
        setting("durability"),
        setting("duration_s"),
        setting("warmup_s"),
        setting("machine.cpu"),
        setting("machine.cores"),
        setting("machine.version"),
        setting("machine.commit"),
        report.started,
    )
}

fn headlines(out: &mut String, runs: &[Run]) {
    let several = if runs.len() > 1 { " several" } else { "" };
    let _ = writeln!(out, "<section class=\"cards{several}\">");
    let all = figures::all();
    for figure in HEADLINES.iter().filter_map(|name| all.iter().find(|f| f.name == *name)) {
        let _ = writeln!(out, "<div class=\"card\"><h2>{}</h2>", escape(figure.name));
        for (index, run) in runs.iter().enumerate() {
            card_line(out, figure, runs, index, run);
        }
        out.push_str("</div>\n");
    }
    out.push_str("</section>\n");
    let beside: String = runs.iter().map(tables::beside).collect();
    if !beside.is_empty() {
        let _ = writeln!(out, "<section class=\"beside\">{beside}</section>");
    }
}

fn card_line(out: &mut String, figure: &Figure, runs: &[Run], index: usize, run: &Run) {
    let (value, unit) = (figure.text(&run.report), escape(figure.unit));
    let _ = match runs {
        [_] => writeln!(out, "<p><b>{value}</b> {unit}</p>"),
        _ => writeln!(
            out,
            "<p class=\"of\"><i class=\"dot d{}\"></i><b>{value}</b> {unit} <span>{}</span></p>",
            index % chart::COLOURS,
            escape(&run.label),
        ),
    };
}

fn drawings(out: &mut String, runs: &[Run]) {
    let plots = charts::of(runs);
    let wide = |plot: &&Plot| ["throughput", "latency", "latency-heat"].contains(&&*plot.name);
    section(out, "Over time", plots.iter().filter(wide), FULL);
    let distribution = |plot: &&Plot| plot.name.starts_with("latency-") && plot.heat.is_none();
    section(out, "Latency of all operations that count", plots.iter().filter(distribution), HALF);
    let validators = |plot: &&Plot| plot.name.starts_with("validators-");
    section(out, "Validators", plots.iter().filter(validators), HALF);
    for run in runs {
        if runs.len() > 1 {
            let _ = writeln!(out, "<h3>{}</h3>", escape(&run.label));
        }
        out.push_str(&tables::validators(run));
    }
}

fn section<'a>(
    out: &mut String,
    title: &str,
    plots: impl Iterator<Item = &'a Plot>,
    sizes: [Size; 2],
) {
    let plots: Vec<&Plot> = plots.collect();
    let [wide, narrow] = sizes;
    let indents = sizes.map(|size| chart::indent(plots.iter().copied(), size));
    let half = if wide == HALF[0] { " half" } else { "" };
    let _ = writeln!(out, "<section><h2>{title}</h2><div class=\"charts{half}\">");
    for plot in plots {
        let _ = write!(
            out,
            "<figure id=\"{}\"><figcaption><b>{}</b> <span>{}</span></figcaption>\n\
             <div class=\"wide\">{}</div><div class=\"narrow\">{}</div></figure>\n",
            plot.name,
            escape(&plot.title),
            escape(&plot.note),
            chart::svg(plot, wide, indents[0]),
            chart::svg(plot, narrow, indents[1]),
        );
    }
    out.push_str("</div></section>\n");
}

fn details(out: &mut String, runs: &[Run]) {
    let note = match runs {
        [_] => String::new(),
        _ => format!(
            "<p>Differences and ratios are to {}. A change within 5 % is not called one; a single \
             run of each proves neither.</p>\n",
            escape(&runs[0].label)
        ),
    };
    let _ = writeln!(out, "<section><h2>Figures</h2>\n{note}{}</section>", tables::figures(runs));
    let marked = if runs.len() > 1 { "<p>What differs is marked.</p>\n" } else { "" };
    let _ = writeln!(
        out,
        "<section><h2>Configuration</h2>\n{marked}<div class=\"groups\">{}</div></section>",
        tables::settings(runs)
    );
    out.push_str(READING);
}

const READING: &str = "<section class=\"reading\"><h2>How to read it</h2><ul>\n\
<li><b>Open loop</b>, unless the configuration says otherwise. Operations are scheduled ahead, and \
latency runs from an operation's scheduled time to its (f+1)-th equal signed reply: a committee or client \
that stalls cannot hide what it delayed.</li>\n\
<li><b>The slowest counts.</b> The committed rate is that of the healthy validator that executed \
least.</li>\n\
<li><b>The load shares the machine</b> with all validators. Its own CPU time is given apart.</li>\n\
<li>This page holds its results: <code>quorate report</code> draws it again, and compares it with \
others.</li>\n</ul></section>\n";
