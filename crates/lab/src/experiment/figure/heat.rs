//! Heat maps: how many operations took how long, by when they were due.

use super::{Figure, Scale, series};
use crate::experiment::metrics::{self, Metric};
use crate::experiment::{Kept, Record};
use quorate_report::chart::{Axis, Heat, Kind, Plot};
use quorate_report::page::heat;
use std::collections::BTreeMap;

/// A panel for each point, in the order of what tells them apart.
pub(super) fn panels(figure: &Figure, records: &[Record]) -> Vec<Plot> {
    let chosen = firsts(series::in_order(figure, records));
    let panel = |(index, record): (usize, &&Record)| {
        let mut plot = panel(figure, record, &Kept::of(&record.details)?);
        if chosen.len() > 1 {
            plot.name = format!("{}-{}", figure.name, index + 1).into();
        }
        Some(plot)
    };
    chosen.iter().enumerate().filter_map(panel).collect()
}

/// Of each point the repeat with the least seed.
fn firsts(records: Vec<&Record>) -> Vec<&Record> {
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    for record in &records {
        let seed = first.entry(record.setup.without_seed()).or_insert(u64::MAX);
        *seed = record.setup.seed.min(*seed);
    }
    let is_first = |record: &&Record| first[&record.setup.without_seed()] == record.setup.seed;
    records.into_iter().filter(is_first).collect()
}

fn panel(figure: &Figure, record: &Record, kept: &Kept) -> Plot {
    let (warmup_s, window_s) = (record.setup.warmup_s as f64, record.setup.duration_s as f64);
    let cells = heat(warmup_s, &kept.over_time.until(1_000.0 * (warmup_s + window_s)), 1);
    let [due, latency] = figure.axes();
    let x = label(figure.x_label.as_ref(), due);
    let name = series::line_name(figure, record);
    let separator = if name.is_empty() { "" } else { ": " };
    Plot {
        name: figure.name.clone().into(),
        title: format!("{}{separator}{name}", figure.title),
        note: figure.note.clone(),
        x: Axis::exact(&x, "s", Kind::Linear, -warmup_s, window_s),
        y: latencies(figure, &label(figure.y_label.as_ref(), latency), &cells),
        series: Vec::new(),
        heat: Some(cells),
        marks: Vec::new(),
        notches: None,
        shade: (warmup_s > 0.0).then(|| (-warmup_s, 0.0, "warm-up".to_owned())),
        dots: Vec::new(),
    }
}

fn label(own: Option<&String>, metric: Option<&Metric>) -> String {
    own.cloned().or_else(|| metric.map(metrics::label)).unwrap_or_default()
}

fn latencies(figure: &Figure, label: &str, heat: &Heat) -> Axis {
    let axis = match figure.y_scale {
        Scale::Linear => Axis::from_zero(label, "ms", heat.cells.iter().map(|cell| cell.y.1)),
        Scale::Log => {
            let edges = heat.cells.iter().flat_map(|cell| [cell.y.0, cell.y.1]);
            Axis::log(&format!("{label}, logarithmic"), "ms", edges)
        }
    };
    match figure.y_max {
        Some(max) => Axis { high: max, ..axis },
        None => axis,
    }
}
