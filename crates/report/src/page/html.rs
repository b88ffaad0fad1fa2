//! The page of runs: charts and tables, and what is around them.

use super::document::{Colours, Results, document};
use super::figures::{self, Figure};
use super::run::scheme;
use super::{Run, charts, file, tables};
use crate::Report;
use crate::chart::{self, Plot, Size};
use crate::text::grouped;
use maud::{Markup, PreEscaped, html};

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
    let shown = html! {
        (header(&title, runs))
        (headlines(runs))
        (drawings(runs))
        (details(runs))
        (reading())
    };
    let text = file::results(runs);
    let results = Results { media_type: file::MEDIA_TYPE, id: file::ID, text: &text };
    document(&title, Colours::LightAndDark, &shown, &results)
}

/// Title of a page of these runs.
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

/// The offered load: in a closed loop its rate is no setting.
fn load(report: &Report) -> String {
    match report.setting("load").as_str() {
        "closed" => "closed loop".to_owned(),
        _ => format!("{} tx/s offered", grouped(&report.setting("rate"))),
    }
}

fn header(title: &str, runs: &[Run]) -> Markup {
    let unoptimised = runs.iter().any(|run| run.report.config["machine"]["optimised"] == false);
    html! {
        header {
            p.over { "quorate bench" }
            h1 { (title) }
            @for run in runs {
                p {
                    @if runs.len() > 1 { b { (run.label) } ": " }
                    (circumstances(&run.report))
                }
            }
            @for run in runs.iter().filter(|run| !run.report.command.is_empty()) {
                p { code { (run.report.command) } }
            }
            @if unoptimised {
                p.warning { "The binary was not optimised: these figures mean little." }
            }
        }
    }
}

/// Circumstances of the measurement, in one sentence.
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

fn headlines(runs: &[Run]) -> Markup {
    let all = figures::all();
    let figures = HEADLINES.iter().filter_map(|name| all.iter().find(|f| f.name == *name));
    let beside: Vec<Markup> = runs.iter().filter_map(tables::beside).collect();
    html! {
        section.cards.several[runs.len() > 1] {
            @for figure in figures {
                div.card {
                    h2 { (figure.name) }
                    @for (index, run) in runs.iter().enumerate() {
                        (card_line(figure, runs, index, run))
                    }
                }
            }
        }
        @if !beside.is_empty() {
            section.beside { @for table in &beside { (table) } }
        }
    }
}

fn card_line(figure: &Figure, runs: &[Run], index: usize, run: &Run) -> Markup {
    let value = figure.text(&run.report);
    let colour = index % chart::COLOURS;
    html! {
        @if runs.len() == 1 {
            p { b { (value) } " " (figure.unit) }
        } @else {
            p.of {
                i class={ "dot d" (colour) } {}
                b { (value) } " " (figure.unit) " " span { (run.label) }
            }
        }
    }
}

fn drawings(runs: &[Run]) -> Markup {
    let plots = charts::of(runs);
    let wide = |plot: &&Plot| ["throughput", "latency", "latency-heat"].contains(&&*plot.name);
    let distribution = |plot: &&Plot| plot.name.starts_with("latency-") && plot.heat.is_none();
    let validators = |plot: &&Plot| plot.name.starts_with("validators-");
    html! {
        (section("Over time", plots.iter().filter(wide), FULL))
        (section("Latency of all operations that count", plots.iter().filter(distribution), HALF))
        (section("Validators", plots.iter().filter(validators), HALF))
        @for run in runs {
            @if runs.len() > 1 { h3 { (run.label) } }
            (tables::validators(run))
        }
    }
}

fn section<'a>(title: &str, plots: impl Iterator<Item = &'a Plot>, sizes: [Size; 2]) -> Markup {
    let plots: Vec<&Plot> = plots.collect();
    let [wide, narrow] = sizes;
    let [wide_indent, narrow_indent] = sizes.map(|size| chart::indent(plots.iter().copied(), size));
    html! {
        section {
            h2 { (title) }
            div.charts.half[wide == HALF[0]] {
                @for plot in plots {
                    figure id=(plot.name) {
                        figcaption { b { (plot.title) } " " span { (plot.note) } }
                        div.wide { (PreEscaped(chart::svg(plot, wide, wide_indent))) }
                        div.narrow { (PreEscaped(chart::svg(plot, narrow, narrow_indent))) }
                    }
                }
            }
        }
    }
}

fn details(runs: &[Run]) -> Markup {
    html! {
        section {
            h2 { "Figures" }
            @if let [first, _, ..] = runs {
                p {
                    "Differences and ratios are to " (first.label) ". A change within 5 % is not "
                    "called one; a single run of each proves neither."
                }
            }
            (tables::figures(runs))
        }
        section {
            h2 { "Configuration" }
            @if runs.len() > 1 { p { "What differs is marked." } }
            div.groups.several[runs.len() > 1] { (tables::settings(runs)) }
        }
    }
}

fn reading() -> Markup {
    html! {
        section.reading {
            h2 { "How to read it" }
            ul {
                li {
                    b { "Open loop" } ", unless the configuration says otherwise. Operations are "
                    "scheduled ahead, and latency runs from an operation's scheduled time to its "
                    "(f+1)-th equal signed reply: a committee or client that stalls cannot hide "
                    "what it delayed."
                }
                li {
                    b { "The slowest counts." } " The committed rate is that of the healthy "
                    "validator that executed least."
                }
                li {
                    b { "The load shares the machine" } " with all validators. Its own CPU time is "
                    "given apart."
                }
                li {
                    "This page holds its results: " code { "quorate report" } " draws it again, "
                    "and compares it with others."
                }
            }
        }
    }
}
