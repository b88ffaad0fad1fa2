//! The page of runs: charts and tables, and what is around them.

use super::document::{Colours, Results, document};
use super::figures::{self, Figure};
use super::run::scheme;
use super::{Run, charts, file, reading, tables};
use crate::Report;
use crate::chart::{self, Plot, Size};
use crate::results::{CommittedBy, Measurement};
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

/// The same where no validator was looked at.
const LOAD_HEADLINES: [&str; 6] = [
    "answered to this load",
    "offered",
    "latency, median",
    "latency, 99 %",
    "operations answered",
    "operations never answered",
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
        (reading::how(runs))
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
            "{}{} validators, {}, {}",
            loads(&run.report),
            grouped(&run.report.setting("validators")),
            scheme(&run.report.setting("scheme")),
            load(&run.report),
        ),
        _ => runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>().join(" against "),
    }
}

/// Number of the loads on a committee, of one that is not a bench's.
fn loads(report: &Report) -> String {
    match &report.measurement {
        Measurement::Bench => String::new(),
        Measurement::Load(_) => "a load on ".to_owned(),
        Measurement::Merged(merged) => format!("{} loads on ", merged.loads.len()),
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
            p.over { (program(runs)) }
            h1 { (title) }
            @for run in runs {
                p {
                    @if runs.len() > 1 { b { (run.label) } ": " }
                    (circumstances(&run.report))
                    @if let Measurement::Merged(merged) = &run.report.measurement {
                        " Of several loads: " (merged.describe()) "."
                    }
                }
            }
            @for run in runs.iter().filter(|run| !run.report.command.is_empty()) {
                p { code { (run.report.command) } }
            }
            @for warning in runs.iter().filter_map(|run| warning(&run.report)) {
                p.warning { "Mind: " (warning) "." }
            }
            @if unoptimised {
                p.warning { "The binary was not optimised: these figures mean little." }
            }
        }
    }
}

/// Command that measured them.
fn program(runs: &[Run]) -> &'static str {
    let is_bench = |run: &Run| run.report.measurement == Measurement::Bench;
    if runs.iter().any(is_bench) { "quorate bench" } else { "quorate load" }
}

fn warning(report: &Report) -> Option<String> {
    match &report.measurement {
        Measurement::Merged(merged) => merged.warning(),
        Measurement::Bench | Measurement::Load(_) => None,
    }
}

/// Circumstances of the measurement, in one sentence.
fn circumstances(report: &Report) -> String {
    let setting = |path| report.setting(path);
    let of_load = |from: String| {
        format!(
            "{}-byte operations, {} service; {} s after {} s of warm-up; {from}; {}.",
            setting("tx_bytes"),
            setting("service"),
            setting("duration_s"),
            setting("warmup_s"),
            report.started,
        )
    };
    match &report.measurement {
        Measurement::Bench => {}
        Measurement::Merged(_) => return of_load("loads of several hosts at once".to_owned()),
        Measurement::Load(origin) => {
            let version = setting("machine.version");
            return of_load(format!("{}, {}; quorate {version}", origin.name(), origin.clock()));
        }
    }
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
    let is_answered = |run: &Run| run.report.committed_by == CommittedBy::Answers;
    let names = if runs.iter().all(is_answered) { LOAD_HEADLINES } else { HEADLINES };
    let figures = names.iter().filter_map(|name| all.iter().find(|f| f.name == *name));
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
        @for table in runs.iter().filter_map(|run| tables::loads(&run.report)) {
            section { h2 { "Loads" } (table) }
        }
        (section("Over time", plots.iter().filter(wide), FULL))
        (section("Latency of all operations that count", plots.iter().filter(distribution), HALF))
        @if runs.iter().any(|run| !run.report.validators.is_empty()) {
            (section("Validators", plots.iter().filter(validators), HALF))
        }
        @for run in runs.iter().filter(|run| !run.report.validators.is_empty()) {
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
