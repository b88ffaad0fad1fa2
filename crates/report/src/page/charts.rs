//! The charts of one run, or of several compared.

mod validators;

use super::Run;
use super::lines::{self, Points};
use crate::Report;
use crate::chart::{Axis, Kind, Look, Mark, Notches, Plot, Series};
use crate::results::CommittedBy;

/// The label of every time axis.
const TIME: &str = "seconds into the measured window (s)";

/// All charts of these runs. The same charts whether there is anything to draw or not.
#[must_use]
pub fn of(runs: &[Run]) -> Vec<Plot> {
    let mut plots = vec![throughput(runs), latency(runs)];
    plots.extend(heats(runs));
    plots.extend([distribution(runs), tail(runs)]);
    plots.extend(validators::of(runs));
    plots
}

/// The names of the charts that [`of`] gives for one run; compared runs have `latency-heat` once
/// each.
pub const NAMES: [&str; 9] = [
    "throughput",
    "latency",
    "latency-heat",
    "latency-distribution",
    "latency-percentiles",
    "validators-committed",
    "validators-cpu",
    "validators-memory",
    "validators-height",
];

fn throughput(runs: &[Run]) -> Plot {
    let mut series = offered(runs);
    if let [run] = runs {
        let (report, committed) = (&run.report, &run.report.committed);
        let each = |values: &[Option<f64>]| lines::over_time(report, committed.interval_ms, values);
        let answered = lines::over_time(report, report.load.interval_ms, &report.load.answered_tps);
        if report.committed_by == CommittedBy::Answers {
            series.push(new("answered to this load", 0, Look::Strong, answered));
        } else {
            series.push(new("answered to clients", 4, Look::Plain, answered));
            series.push(new("committed, fastest", 2, Look::Plain, each(&committed.fastest_tps)));
            series.push(new("committed, slowest", 0, Look::Strong, each(&committed.slowest_tps)));
        }
    } else {
        series.extend(each_run(runs, Look::Strong, |report| {
            let (interval_ms, tps) = committed_or_answered(report);
            let smooth = lines::smoothed(&tps, interval_ms);
            lines::over_time(report, interval_ms, &smooth)
        }));
    }
    let y = Axis::from_zero("operations per second (tx/s)", "tx/s", values(&series));
    let y = Axis { high: y.high.min(HEADROOM * usual(&series)), ..y };
    let note = match runs {
        [run] if run.report.committed_by == CommittedBy::Answers => {
            "Operations due, and answered to this load by f+1 validators alike."
        }
        [_] => {
            "Operations due, and executed by the slowest and the fastest validator that ran all along."
        }
        _ => {
            "Operations executed by the slowest validator that ran all along; at each tenth of a second \
             the mean of the half second around it."
        }
    };
    over_time("throughput", "Throughput over time", note, y, series, runs)
}

/// Operations per second that the slowest validator executed in each interval; those answered where
/// no validator was looked at.
fn committed_or_answered(report: &Report) -> (u64, Vec<Option<f64>>) {
    match report.committed_by {
        CommittedBy::Validators => {
            (report.committed.interval_ms, report.committed.slowest_tps.clone())
        }
        CommittedBy::Answers => {
            (report.load.interval_ms, report.load.answered_tps.iter().copied().map(Some).collect())
        }
    }
}

/// Height of a chart of rates over the usual rate: a backlog that is answered all at once would
/// otherwise press everything else to the floor.
const HEADROOM: f64 = 2.2;

/// The rate that most of the points stay below.
fn usual(series: &[Series]) -> f64 {
    let ninth = |line: &Series| {
        let mut values: Vec<f64> = line.points.iter().filter_map(|point| point.1).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() * 9 / 10).copied().unwrap_or(0.0)
    };
    let usual = series.iter().map(ninth).fold(0.0, f64::max);
    if usual > 0.0 { usual } else { f64::MAX / HEADROOM }
}

/// Lines of the offered rate: one if it was the same in every run.
fn offered(runs: &[Run]) -> Vec<Series> {
    let points = |report: &Report| {
        lines::over_time(report, report.load.interval_ms, &report.load.offered_tps)
    };
    let same = runs
        .windows(2)
        .all(|pair| pair[0].report.load.offered_tps == pair[1].report.load.offered_tps);
    match runs {
        [first, ..] if same => {
            vec![new("offered", 0, Look::Reference, points(&first.report))]
        }
        _ => named_runs(runs, ", offered", Look::Dotted, points),
    }
}

fn latency(runs: &[Run]) -> Plot {
    let series = if let [run] = runs {
        let grid = lines::readable_grid(&run.report);
        let of = |quantile| lines::quantile(&run.report, &grid, quantile);
        vec![
            least(run),
            new("99 % (p99)", 1, Look::Plain, of(0.99)),
            new("90 % (p90)", 2, Look::Plain, of(0.9)),
            new("median (p50)", 0, Look::Strong, of(0.5)),
        ]
    } else {
        let at = |quantile| {
            move |report: &Report| {
                let grid = lines::readable_grid(report);
                lines::quantile(report, &grid, quantile)
            }
        };
        let mut series = named_runs(runs, ", median", Look::Strong, at(0.5));
        series.extend(named_runs(runs, ", p99", Look::Dashed, at(0.99)));
        series
    };
    let series: Vec<Series> = series.into_iter().filter(|line| !line.points.is_empty()).collect();
    let y = Axis::log("latency (ms, logarithmic)", "ms", values(&series));
    let note = "From when an operation was due until f+1 validators had answered it alike, over the \
                operations that were due in each interval.";
    over_time("latency", "Latency over time", note, y, series, runs)
}

/// The least median that the emulated network allows for; no points where there is none.
fn least(run: &Run) -> Series {
    let ends = [-run.report.warmup_s(), run.report.duration_s()];
    let minimum = run.report.beside.minimum.iter();
    let points = minimum.flat_map(|minimum| ends.map(|x| (x, Some(minimum.least.p50_ms))));
    new("least median on this network", 0, Look::Reference, points.collect())
}

fn heats(runs: &[Run]) -> Vec<Plot> {
    let heats: Vec<_> = runs
        .iter()
        .map(|run| lines::heat(run.report.warmup_s(), &lines::readable_grid(&run.report), 2))
        .collect();
    let edges = heats.iter().flat_map(|heat| &heat.cells).flat_map(|cell| [cell.y.0, cell.y.1]);
    let y = Axis::log("latency (ms, logarithmic)", "ms", edges);
    let plot = |(run, heat): (&Run, _)| {
        let title = match runs {
            [_] => "Every operation".to_owned(),
            _ => format!("Every operation: {}", run.label),
        };
        let note = "Number of operations by when they were due and how long they took. Darker, or \
                    brighter on a dark page, is more; the scale is logarithmic.";
        let one = std::slice::from_ref(run);
        let plot = over_time("latency-heat", &title, note, y.clone(), Vec::new(), one);
        Plot { heat: Some(heat), ..plot }
    };
    runs.iter().zip(heats).map(plot).collect()
}

fn distribution(runs: &[Run]) -> Plot {
    let series = each_run(runs, Look::Steps, lines::histogram);
    let xs = || series.iter().flat_map(|line| &line.points).map(|point| point.0);
    Plot {
        name: "latency-distribution".into(),
        title: "Latency distribution".to_owned(),
        note: "The share of the operations that count whose latency lies in each step of 12 %."
            .to_owned(),
        x: Axis::log("latency (ms, logarithmic)", "ms", xs()),
        y: Axis::from_zero("share of operations (%)", "%", values(&series)),
        series,
        heat: None,
        marks: Vec::new(),
        notches: None,
        shade: None,
        dots: Vec::new(),
    }
}

fn tail(runs: &[Run]) -> Plot {
    let series = each_run(runs, Look::Strong, lines::tail);
    let xs = series.iter().flat_map(|line| &line.points).map(|point| point.0);
    let last = xs.fold(0.9, f64::max).max(0.99);
    Plot {
        name: "latency-percentiles".into(),
        title: "Latency by percentile".to_owned(),
        note:
            "The share of operations answered within each latency; every step to the right leaves \
               a tenth of those slower."
                .to_owned(),
        x: Axis::exact("share of operations answered within (%)", "", Kind::Tail, 0.0, last),
        y: Axis::log("latency (ms, logarithmic)", "ms", values(&series)),
        series,
        heat: None,
        marks: Vec::new(),
        notches: None,
        shade: None,
        dots: Vec::new(),
    }
}

fn over_time(
    name: &'static str,
    title: &str,
    note: &str,
    y: Axis,
    series: Vec<Series>,
    runs: &[Run],
) -> Plot {
    let longest =
        |value: fn(&Report) -> f64| runs.iter().map(|run| value(&run.report)).fold(0.0, f64::max);
    let (warmup, end) = (longest(Report::warmup_s), longest(Report::duration_s));
    Plot {
        name: name.into(),
        title: title.to_owned(),
        note: note.to_owned(),
        x: Axis::exact(TIME, "s", Kind::Linear, -warmup, end),
        y,
        series,
        heat: None,
        marks: marks(runs),
        notches: view_changes(runs),
        shade: (warmup > 0.0).then(|| (-warmup, 0.0, "warm-up".to_owned())),
        dots: Vec::new(),
    }
}

/// Marks of the fault events: one for all runs that have the same.
fn marks(runs: &[Run]) -> Vec<Mark> {
    let mut found: Vec<(Mark, Vec<&str>)> = Vec::new();
    for run in runs {
        for event in &run.report.events {
            let mark = Mark { at: event.at_s, text: event.describe() };
            let same = |known: &&mut (Mark, Vec<&str>)| {
                known.0.text == mark.text && (known.0.at - mark.at).abs() < 0.15
            };
            match found.iter_mut().find(same) {
                Some(known) => known.1.push(&run.label),
                None => found.push((mark, vec![&run.label])),
            }
        }
    }
    let name = |(mark, labels): (Mark, Vec<&str>)| {
        let everywhere = labels.len() == runs.len();
        let text =
            if everywhere { mark.text } else { format!("{} ({})", mark.text, labels.join(", ")) };
        Mark { at: mark.at, text }
    };
    let mut marks: Vec<Mark> = found.into_iter().map(name).collect();
    marks.sort_by(|a, b| a.at.total_cmp(&b.at));
    marks
}

/// Views that timed out, where only one run is shown.
fn view_changes(runs: &[Run]) -> Option<Notches> {
    let [run] = runs else { return None };
    let changed = run.report.timeline.iter().filter(|second| second.view_changes > 0);
    let notch = |second: &crate::results::Second| {
        let words = format!("{} view changes before {} s", second.view_changes, second.second);
        (second.second as f64 - 0.5, words)
    };
    Some(Notches { name: "second with view changes".to_owned(), at: changed.map(notch).collect() })
}

fn each_run(runs: &[Run], look: Look, points: impl Fn(&Report) -> Points) -> Vec<Series> {
    named_runs(runs, "", look, points)
}

/// One series a run, in the run's colour; a lone run needs no name.
fn named_runs(
    runs: &[Run],
    what: &str,
    look: Look,
    points: impl Fn(&Report) -> Points,
) -> Vec<Series> {
    let name = |run: &Run| match runs {
        [_] => String::new(),
        _ => format!("{}{what}", run.label),
    };
    let one = |(index, run): (usize, &Run)| new(&name(run), index, look, points(&run.report));
    runs.iter().enumerate().map(one).collect()
}

fn new(name: &str, colour: usize, look: Look, points: Points) -> Series {
    Series { name: name.to_owned(), colour, look, points }
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|line| &line.points).filter_map(|point| point.1)
}
